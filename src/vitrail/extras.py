"""Packages of the extras: where one is missing, one sentence says what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackageError(ImportError, ValueError):
    """A package that an extra brings is not installed."""


@contextmanager
def needs(extra: str, feature: str) -> Iterator[None]:
    """Imports of packages of the extra; a missing one raises MissingPackageError.

    Args:
        extra: The extra of vitrail that brings the packages.
        feature: What needs them, the subject of the sentence.

    Example:
        >>> with needs("lab", "drawing"):
        ...     import matplotlib
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        raise MissingPackageError(missing(feature, package, extra)) from error


def missing(feature: str, package: str, extra: str) -> str:
    """The sentence about a package that is not installed."""
    return f"{feature} needs {package}, which is not installed; run: pip install 'vitrail[{extra}]'"

"""Packages of the extras, and errors that say what to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackageError(ImportError, ValueError):
    """A package of an extra is not installed."""


@contextmanager
def needs(extra: str, feature: str) -> Iterator[None]:
    """Import packages of an extra; a missing one raises MissingPackageError.

    Args:
        extra: The extra of vitrail that installs the packages.
        feature: The feature that needs them, the subject of the sentence.

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

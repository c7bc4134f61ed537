"""Reading state from untrusted JSON: every field is checked, and nothing is executed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from vitrail.errors import DataError


class StateReader:
    """Reads typed fields from a mapping; missing, invalid and unknown fields are DataErrors.

    Defaults are for fields that older files lack.
    """

    def __init__(self, state: object, what: str) -> None:
        self._what = what
        self.require(isinstance(state, Mapping), "is not a mapping")
        self._left: dict[Any, Any] = dict(state)  # pyright: ignore[reportCallIssue, reportArgumentType]

    def require(self, holds: bool, fault: str) -> None:
        """Raise a DataError unless the condition holds."""
        if not holds:
            raise DataError(f"malformed {self._what}: it {fault}; save the model again")

    def items(self, key: str, default: list[Any] | None = None) -> list[Any]:
        return self._take(key, _is_list, "a list", default)

    def optional_items(self, key: str) -> list[Any] | None:
        """A list, or null."""
        return self._take(key, lambda value: value is None or _is_list(value), "a list")

    def text(self, key: str, default: str | None = None) -> str:
        return self._take(key, _is_text, "text", default)

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        return tuple(self._take_all(key, _is_text, "text", default))

    def flag(self, key: str, default: bool | None = None) -> bool:
        return self._take(key, lambda value: isinstance(value, bool), "true or false", default)

    def number(self, key: str) -> float:
        return float(self._take(key, _is_number, "a finite number"))

    def numbers(self, key: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        return tuple(map(float, self._take_all(key, _is_number, "a finite number", default)))

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number from low to high."""
        return self._take(key, _is_whole(low, high), _whole_text(low, high), default)

    def wholes(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """A list of whole numbers from low to high."""
        return tuple(self._take_all(key, _is_whole(low, high), _whole_text(low, high)))

    def optional_wholes(self, key: str, low: int, high: int) -> tuple[int, ...] | None:
        """A list of whole numbers, or null."""
        if key in self._left and self._left[key] is None:
            return self._left.pop(key)
        return self.wholes(key, low, high)

    def mapping(self, key: str) -> Mapping[Any, Any]:
        return self._take(key, lambda value: isinstance(value, Mapping), "a mapping")

    def done(self) -> None:
        """Raise a DataError if fields are left."""
        self.require(not self._left, f"has the unknown field {next(iter(self._left), None)!r}")

    def _take(
        self, key: str, fits: Callable[[Any], bool], expected: str, default: Any = None
    ) -> Any:
        if key not in self._left and default is not None:
            return default
        self.require(key in self._left, f"lacks the field {key!r}")
        return self._checked(key, self._left.pop(key), fits, expected)

    def _take_all(
        self, key: str, fits: Callable[[Any], bool], expected: str, default: Any = None
    ) -> list[Any]:
        return [
            self._checked(key, item, fits, expected)
            for item in self._take(key, _is_list, "a list", default)
        ]

    def _checked(self, key: str, value: Any, fits: Callable[[Any], bool], expected: str) -> Any:
        if not fits(value):
            raise DataError(
                f"malformed {self._what}: the field {key!r} is not {expected}; save the model again"
            )
        return value


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)  # tuples become lists in JSON


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # JSON integers have no bound
        return False


def _is_whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _whole_text(low: int, high: int) -> str:
    return f"a whole number from {low} to {high}"

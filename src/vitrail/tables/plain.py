"""Reading state back from JSON that may come from anyone: every field is checked, none is run."""

from __future__ import annotations

import math
from collections.abc import Mapping

from vitrail.errors import DataError


class PlainReader:
    """Takes typed fields out of a mapping; what is absent, odd or left over is a DataError."""

    def __init__(self, state: object, what: str) -> None:
        self._what = what
        self._left: dict[object, object] = {}
        self.require(isinstance(state, Mapping), "is not a mapping")
        if isinstance(state, Mapping):
            self._left = dict(state)

    def require(self, holds: bool, fault: str) -> None:
        """Refuse the state unless the condition holds."""
        if not holds:
            raise DataError(f"malformed {self._what}: it {fault}; save the model again")

    def items(self, key: str) -> list[object]:
        value = self._take(key)
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return value

    def optional_items(self, key: str) -> list[object] | None:
        """A list, or null."""
        value = self._take(key)
        if value is not None and not isinstance(value, list):
            raise self._wrong(key, "a list")
        return value

    def text(self, key: str) -> str:
        return self._text(key, self._take(key))

    def texts(self, key: str) -> tuple[str, ...]:
        return tuple(self._text(key, item) for item in self.items(key))

    def flag(self, key: str) -> bool:
        value = self._take(key)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def has(self, key: str) -> bool:
        """Whether the field is there; older files lack some."""
        return key in self._left

    def number(self, key: str) -> float:
        return self._number(key, self._take(key))

    def numbers(self, key: str) -> tuple[float, ...]:
        return tuple(self._number(key, item) for item in self.items(key))

    def whole(self, key: str, low: int, high: int) -> int:
        """A whole number from low to high."""
        return self._whole(key, self._take(key), low, high)

    def wholes(self, key: str, low: int, high: int) -> tuple[int, ...]:
        """A list of whole numbers from low to high."""
        return tuple(self._whole(key, item, low, high) for item in self.items(key))

    def optional_wholes(self, key: str, low: int, high: int) -> tuple[int, ...] | None:
        """A list of whole numbers, or null."""
        value = self._take(key)
        if value is None:
            return None
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return tuple(self._whole(key, item, low, high) for item in value)

    def mapping(self, key: str) -> Mapping[object, object]:
        value = self._take(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a mapping")
        return value

    def done(self) -> None:
        """Refuse fields nobody asked for."""
        self.require(not self._left, f"has the unknown field {next(iter(self._left), None)!r}")

    def _take(self, key: str) -> object:
        self.require(key in self._left, f"lacks the field {key!r}")
        return self._left.pop(key)

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def _whole(self, key: str, value: object, low: int, high: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self._wrong(key, f"a whole number from {low} to {high}")
        return value

    def _number(self, key: str, value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong(key, "a finite number")
        try:
            number = float(value)
        except OverflowError:  # JSON integers have no bound
            raise self._wrong(key, "a finite number") from None
        if not math.isfinite(number):
            raise self._wrong(key, "a finite number")
        return number

    def _wrong(self, key: str, expected: str) -> DataError:
        return DataError(
            f"malformed {self._what}: the field {key!r} is not {expected}; save the model again"
        )

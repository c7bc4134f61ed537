"""Factor→variable messages, one estimator per file; `UPDATES` lists them by name."""

from collections.abc import Callable

from vitrail.updates.base import Estimate, Messages, Update
from vitrail.updates.closed_form import closed_form
from vitrail.updates.counting import counting
from vitrail.updates.exact import exact
from vitrail.updates.flip import flip
from vitrail.updates.pinned import pinned

UPDATES: dict[str, Callable[..., Update]] = {
    "exact": exact,
    "closed_form": closed_form,
    "pinned": pinned,
    "flip": flip,
    "counting": counting,
}
"""Each update by name, as `BinaryNetClassifier(update=…)` and the command line take it."""

__all__ = [
    "UPDATES",
    "Estimate",
    "Messages",
    "Update",
    "closed_form",
    "counting",
    "exact",
    "flip",
    "pinned",
]

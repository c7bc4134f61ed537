"""Surveys: histograms of messages and their updates; `VARIABLES` lists those at variables."""

from collections.abc import Callable

from vitrail.surveys.gaussian import gaussian
from vitrail.surveys.tilted import tilted
from vitrail.surveys.variable import VariableUpdate
from vitrail.surveys.weighted import weighted

VARIABLES: dict[str, Callable[..., VariableUpdate]] = {
    "weighted": weighted,
    "tilted": tilted,
    "gaussian": gaussian,
}
"""Each variable→factor update by name."""

__all__ = [
    "VARIABLES",
    "gaussian",
    "tilted",
    "weighted",
]

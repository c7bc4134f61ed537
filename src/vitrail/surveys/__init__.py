"""Surveys: histograms of messages, and how they are updated. `VARIABLES` names the updates."""

from collections.abc import Callable

from vitrail.surveys.cavity import Feed
from vitrail.surveys.gaussian import Gaussian, gaussian
from vitrail.surveys.histogram import Grid, Split
from vitrail.surveys.tilted import Tilted, tilted
from vitrail.surveys.variable import VariableUpdate
from vitrail.surveys.weighted import Weighted, weighted

VARIABLES: dict[str, Callable[..., VariableUpdate]] = {
    "weighted": weighted,
    "tilted": tilted,
    "gaussian": gaussian,
}

__all__ = [
    "VARIABLES",
    "Feed",
    "Gaussian",
    "Grid",
    "Split",
    "Tilted",
    "VariableUpdate",
    "Weighted",
    "gaussian",
    "tilted",
    "weighted",
]

"""Kinds of factors: tables, perceptrons, networks and any function."""

from vitrail.factors.base import HARD, Classifiers, Factors
from vitrail.factors.network import BlackBox, Network, blackbox, network, perceptron
from vitrail.factors.table import Table, table

__all__ = [
    "HARD",
    "BlackBox",
    "Classifiers",
    "Factors",
    "Network",
    "Table",
    "blackbox",
    "network",
    "perceptron",
    "table",
]

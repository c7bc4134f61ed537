"""Kinds of factors: tables, perceptrons, networks and any function."""

from vitrail.factors.base import HARD, Classifiers, Factors
from vitrail.factors.network import BlackBox, Network, blackbox, network
from vitrail.factors.perceptron import Perceptron, perceptron
from vitrail.factors.table import MAX_TABLE_ARITY, Table, table

__all__ = [
    "HARD",
    "MAX_TABLE_ARITY",
    "BlackBox",
    "Classifiers",
    "Factors",
    "Network",
    "Perceptron",
    "Table",
    "blackbox",
    "network",
    "perceptron",
    "table",
]

"""Kinds of factors: tables, perceptrons, networks and any function."""

from vitrail.factors.base import HARD, Factors
from vitrail.factors.discrete import DiscreteModel, LogTable
from vitrail.factors.model_files import read_model, result_text
from vitrail.factors.network import BlackBox, Network, blackbox, network, perceptron
from vitrail.factors.table import Table, table

__all__ = [
    "HARD",
    "BlackBox",
    "DiscreteModel",
    "Factors",
    "LogTable",
    "Network",
    "Table",
    "blackbox",
    "network",
    "perceptron",
    "read_model",
    "result_text",
    "table",
]

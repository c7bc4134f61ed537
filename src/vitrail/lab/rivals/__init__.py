"""Other classifiers in C: trees, forests, boosting and logistic regression."""

from vitrail.lab.rivals.costs import RivalCost, rival_costs
from vitrail.lab.rivals.features import Features, as_integers, device_columns
from vitrail.lab.rivals.headers import headers, majority
from vitrail.lab.rivals.logistic import Logistic

__all__ = [
    "Features",
    "Logistic",
    "RivalCost",
    "as_integers",
    "device_columns",
    "headers",
    "majority",
    "rival_costs",
]

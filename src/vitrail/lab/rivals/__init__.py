"""What people export instead: trees, forests, boosting and logistic regression, written in C."""

from vitrail.lab.rivals.costs import RivalCost, rival_costs
from vitrail.lab.rivals.features import Features, as_whole, device_columns
from vitrail.lab.rivals.headers import headers, majority
from vitrail.lab.rivals.logistic import Logistic

__all__ = [
    "Features",
    "Logistic",
    "RivalCost",
    "as_whole",
    "device_columns",
    "headers",
    "majority",
    "rival_costs",
]

"""What people export instead: trees, forests, boosting and logistic regression, written in C."""

from vitrail.lab.rivals.beside import Beside, beside
from vitrail.lab.rivals.features import Features, as_whole, device_columns
from vitrail.lab.rivals.in_c import headers, voted
from vitrail.lab.rivals.logistic import Logistic

__all__ = [
    "Beside",
    "Features",
    "Logistic",
    "as_whole",
    "beside",
    "device_columns",
    "headers",
    "voted",
]

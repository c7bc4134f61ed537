"""Other classifiers in C: trees, forests, boosting and logistic regression."""

from footprints.rivals.features import Features, as_integers, device_columns
from footprints.rivals.headers import headers, majority
from footprints.rivals.logistic import Logistic

__all__ = [
    "Features",
    "Logistic",
    "as_integers",
    "device_columns",
    "headers",
    "majority",
]

"""Training sets, all offline: two random families and two sets of images.

Every maker returns a `Dataset`; real data are embedded in vitrail or in scikit-learn.
"""

from vitrail.datasets.dataset import Dataset
from vitrail.datasets.glass import glass, stained_glass
from vitrail.datasets.images import digits, mnist

__all__ = ["Dataset", "digits", "glass", "mnist", "stained_glass"]

"""Training sets, all offline: two random families, two sets of images, and a user's own files.

Every maker returns a `Dataset`; real data are embedded in vitrail or in scikit-learn.
"""

from vitrail.datasets.dataset import Dataset
from vitrail.datasets.glass import glass, stained_glass
from vitrail.datasets.idx import load_idx
from vitrail.datasets.images import digits, mnist

__all__ = ["Dataset", "digits", "glass", "load_idx", "mnist", "stained_glass"]

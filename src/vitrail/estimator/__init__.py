"""The scikit-learn classifier."""

from vitrail.estimator.classifier import BinaryNetClassifier

__all__ = ["BinaryNetClassifier"]

"""The scikit-learn face."""

from vitrail.estimator.classifier import BinaryNetClassifier

__all__ = ["BinaryNetClassifier"]

"""scikit-learn's own checks, every one that applies."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from vitrail import BinaryNetClassifier


@parametrize_with_checks([BinaryNetClassifier()])
def test_scikit_learn_accepts_the_classifier(estimator, check):
    check(estimator)

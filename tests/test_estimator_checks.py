"""scikit-learn's own checks, every one that applies."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from vitrail import BinaryNetClassifier

# some checks fit labels of pure noise
NOISE = pytest.mark.filterwarnings("ignore:held-out rows show no relation:UserWarning")


@NOISE
@parametrize_with_checks([BinaryNetClassifier(networks=64)])
def test_scikit_learn_accepts_the_classifier(estimator, check):
    check(estimator)


@pytest.mark.long
@NOISE
@parametrize_with_checks([BinaryNetClassifier()])
def test_scikit_learn_accepts_the_classifier_with_all_its_networks(estimator, check):
    check(estimator)

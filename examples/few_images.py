"""Few images: ten digits from ten images each, by the votes of networks and by one network.

    python examples/few_images.py

The votes are drawn from the posterior: all networks that fit the images, not one of them. Where
they disagree the answer is unsure, and can be left open.
"""

import numpy as np

from vitrail import BinaryNetClassifier
from vitrail.datasets import mnist

SHOTS = 10
data = mnist()  # 14×14 bits, embedded
images, labels = data.inputs.numpy(), data.labels.numpy()
unseen, truth = data.test_inputs.numpy()[:2000], data.test_labels.numpy()[:2000]
few = np.concatenate([np.flatnonzero(labels == digit)[:SHOTS] for digit in range(10)])

one = BinaryNetClassifier(hidden=(), predictor="best", random_state=0)
one.fit(images[few], labels[few])
print(f"one network: {one.score(unseen, truth):.3f} right, {one.model_.bits} bits")

votes = BinaryNetClassifier(hidden=(7,), random_state=0).fit(images[few], labels[few])
probabilities = votes.predict_proba(unseen)
right = probabilities.argmax(1) == truth
print(f"{len(votes.model_.networks)} networks: {right.mean():.3f} right")

confident = probabilities.max(1) >= np.median(probabilities.max(1))
print(f"on the half of highest confidence: {right[confident].mean():.3f} right")

"""Your own torch module, its weights as bits: a wide way and a direct one, added up.

    python examples/own_module.py

Layers of vitrail.nn may stand anywhere in a module; other parameters are constants. The trained
module is an ordinary torch module again.
"""

import torch
from torch import nn

from vitrail import BinaryNetClassifier
from vitrail.datasets import stained_glass
from vitrail.nn import BinaryLinear, Sign, num_weights, set_bits


class TwoWays(nn.Module):
    """A hidden layer of signs, and a way around it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.wide = nn.Sequential(BinaryLinear(inputs, hidden), Sign(), BinaryLinear(hidden, 1))
        self.direct = BinaryLinear(inputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.wide(x) + self.direct(x)


data = stained_glass(200, 21, seed=0, num_test=500)
net = TwoWays(21, 5)
classifier = BinaryNetClassifier(
    module=net, inputs="bipolar", bias=0, predictor="best", epochs=5, random_state=0
)
classifier.fit(data.inputs.numpy(), data.labels.numpy())
score = classifier.score(data.test_inputs.numpy(), data.test_labels.numpy())
print(f"{num_weights(net)} bits: {score:.3f} of unseen rows right")

set_bits(net, classifier.model_.best[0])
answer = net(data.test_inputs[:3].float()) > 0
print("as a plain torch module:", answer[:, 0].tolist())

"""Networks whose weights are bits, as torch modules."""

from torch.nn import Flatten, MaxPool2d, Sequential

from vitrail.data.dataset import Coding
from vitrail.nn.coding import checked_inputs, low_value, values
from vitrail.nn.evaluate import evaluate, get_bits, num_weights, scratch_floats, set_bits
from vitrail.nn.layers import BinaryConv2d, BinaryLayer, BinaryLinear, Sign, Threshold
from vitrail.nn.nets import mlp, paper_conv, paper_linear, paper_mlp

__all__ = [
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Coding",
    "Flatten",
    "MaxPool2d",
    "Sequential",
    "Sign",
    "Threshold",
    "checked_inputs",
    "evaluate",
    "get_bits",
    "low_value",
    "mlp",
    "num_weights",
    "paper_conv",
    "paper_linear",
    "paper_mlp",
    "scratch_floats",
    "set_bits",
    "values",
]

"""Networks whose weights are bits, as torch modules and as programs."""

from torch.nn import Flatten, MaxPool2d, Sequential

from vitrail.datasets.dataset import Coding
from vitrail.nn.augment import RandomLevel, RandomWarp
from vitrail.nn.coding import centred
from vitrail.nn.layers import (
    BinaryConv1d,
    BinaryConv2d,
    BinaryLayer,
    BinaryLinear,
    Gate,
    Levels,
    Sign,
    Threshold,
)
from vitrail.nn.nets import conv, mlp, paper_conv, paper_linear, paper_mlp, small_conv
from vitrail.nn.parameters import get_bits, num_weights, set_bits
from vitrail.nn.program import Program, program_of

__all__ = [
    "BinaryConv1d",
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Coding",
    "Flatten",
    "Gate",
    "Levels",
    "MaxPool2d",
    "Program",
    "RandomLevel",
    "RandomWarp",
    "Sequential",
    "Sign",
    "Threshold",
    "centred",
    "conv",
    "get_bits",
    "mlp",
    "num_weights",
    "paper_conv",
    "paper_linear",
    "paper_mlp",
    "program_of",
    "set_bits",
    "small_conv",
]

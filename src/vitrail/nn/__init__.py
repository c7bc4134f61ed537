"""Networks whose weights are bits, as torch modules and as programs."""

from torch.nn import Flatten, MaxPool2d, Sequential

from vitrail.datasets.dataset import Coding
from vitrail.nn.coding import checked_inputs, low_value, numbers, values
from vitrail.nn.layers import (
    BinaryConv1d,
    BinaryConv2d,
    BinaryLayer,
    BinaryLinear,
    Sign,
    Threshold,
)
from vitrail.nn.nets import conv, mlp, paper_conv, paper_linear, paper_mlp
from vitrail.nn.parameters import get_bits, num_weights, set_bits
from vitrail.nn.program import Program, Shallow, linear_program, program_of

__all__ = [
    "BinaryConv1d",
    "BinaryConv2d",
    "BinaryLayer",
    "BinaryLinear",
    "Coding",
    "Flatten",
    "MaxPool2d",
    "Program",
    "Sequential",
    "Shallow",
    "Sign",
    "Threshold",
    "checked_inputs",
    "conv",
    "get_bits",
    "linear_program",
    "low_value",
    "mlp",
    "num_weights",
    "numbers",
    "paper_conv",
    "paper_linear",
    "paper_mlp",
    "program_of",
    "set_bits",
    "values",
]

"""Files in MNIST's idx format, made for a test."""

import struct

import numpy as np


def idx_bytes(array: np.ndarray, kind: int = 8) -> bytes:
    """The contents of an idx file of that type code; values are written as bytes."""
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, kind, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()

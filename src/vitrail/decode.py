"""Marginals to bits."""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.random import Key, Stream, lanes32


def threshold(key: Key, log_odds: Tensor) -> Tensor:
    """Each variable's likelier value, (V,) bool: P > ½ is one, exactly ½ is settled by a coin."""
    if bool((log_odds != 0).all()):
        return log_odds > 0
    zero = torch.zeros((), dtype=torch.int64, device=log_odds.device)
    coin = lanes32(key.of(Stream.DECODE), zero, zero, log_odds.shape[0]) >= 2**31
    return torch.where(log_odds == 0, coin, log_odds > 0)

"""Configurations drawn from cavities, each at its own address."""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.factors import Factors
from vitrail.kernels.dispatch import find
from vitrail.random import Key, bernoulli
from vitrail.updates.base import Backend


def configurations(
    key: Key, factors: Factors, threshold: Tensor, samples: int, backend: Backend = "torch"
) -> Tensor:
    """S configurations for each track of cavities: (F, R·S, A) bool.

    threshold (F, R, A) int32. Draw s of track r has the sample number r·S + s.
    """
    if backend != "torch" and threshold.is_cuda:
        twin = find("draw", "auto", factors, threshold.numel() * samples, samples)
        if twin is not None:
            return twin.configurations(key, factors, threshold, samples)
    num_factors, tracks, _ = threshold.shape
    number = torch.arange(tracks * samples, device=threshold.device).view(tracks, samples)
    ids = factors.ids.view(num_factors, 1, 1)
    return bernoulli(key, ids, number, threshold[:, :, None, :]).flatten(1, 2)

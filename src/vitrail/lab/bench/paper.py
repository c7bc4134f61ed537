"""The paper's formulation of Algorithms 1 and 2, vectorised; the baseline of `vitrail bench`.

For every factor, sample, variable and value, one configuration of all N weights is drawn:
`torch.rand` of [m, L_BP, 2N, N] for belief propagation and [m, L_SP, L_BP, 2N, N] for surveys, for
the number m of factors at a time that runs fastest. Networks are evaluated by broadcast products,
convolutions by grouped convolutions.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from vitrail.factors import Network


def messages(factors: Network, cavity: Tensor, samples: int) -> Tensor:
    """Log-odds (m, N) from cavities (m, N), log-odds, by Algorithm 1."""
    return _log_odds(factors, torch.sigmoid(cavity.float())[:, None], samples)[:, 0]


def survey_messages(factors: Network, surveys: Tensor, survey_samples: int, samples: int) -> Tensor:
    """New surveys (m, N, K) of factors from their incoming ones (m, N, K), by Algorithm 2."""
    m, n, bins = surveys.shape
    grid = torch.linspace(0, 1, bins, device=surveys.device)
    drawn = torch.multinomial(surveys.view(m * n, bins), survey_samples, replacement=True)
    probability = grid[drawn].view(m, n, survey_samples).transpose(1, 2)
    one, zero = _means(factors, probability, samples)
    mass = one + zero
    place = torch.round(torch.where(mass > 0, one / mass, 0.5) * (bins - 1)).long()
    out = torch.zeros(m, n, bins, device=surveys.device)
    out.scatter_add_(-1, place.transpose(1, 2), mass.transpose(1, 2))
    return out / out.sum(-1, keepdim=True).clamp(min=1e-12)


def _log_odds(factors: Network, probability: Tensor, samples: int) -> Tensor:
    one, zero = _means(factors, probability, samples)
    return torch.logit((one / (one + zero)).clamp(0.001, 0.999).nan_to_num(0.5))


def _means(factors: Network, probability: Tensor, samples: int) -> tuple[Tensor, Tensor]:
    """p̃(1) and p̃(0), (m, R, N), from R sets of cavities (m, R, N)."""
    m, tracks, n = probability.shape
    draws = torch.rand(m, tracks, samples, 2 * n, n, device=probability.device)
    bits = draws < probability[:, :, None, None, :]
    variables = torch.arange(n, device=probability.device)
    bits[:, :, :, variables, variables] = True
    bits[:, :, :, n + variables, variables] = False
    satisfied = _satisfied(factors, bits.view(m, -1, n)).view(m, tracks, samples, 2 * n)
    floor = factors.floor.float()[:, None, None]
    mean = floor + (1 - floor) * satisfied.float().mean(2)
    return mean[..., :n], mean[..., n:]


def _satisfied(factors: Network, bits: Tensor) -> Tensor:
    """Whether configurations (m, S, N) meet the label, (m, S)."""
    weights = bits.float() * 2 - 1
    x = factors.inputs.float()
    if bits.shape[-1] == 89:
        margin = _conv(weights, x)
    elif bits.shape[-1] == x[0].numel():
        margin = (weights * x.flatten(1)[:, None]).sum(-1)
    else:
        margin = _one_hidden(weights, x.flatten(1))
    return (margin > 0) == (factors.labels == 1)[:, None]


def _one_hidden(weights: Tensor, x: Tensor) -> Tensor:
    hidden, inputs = weights.shape[-1] // (x.shape[1] + 1), x.shape[1]
    first = weights[..., : hidden * inputs].unflatten(-1, (hidden, inputs))
    active = torch.where((first * x[:, None, None]).sum(-1) > 0, 1.0, -1.0)
    return (weights[..., hidden * inputs :] * active).sum(-1)


def _conv(weights: Tensor, x: Tensor) -> Tensor:
    """The 89-weight net; every configuration is a group of its own."""
    m, configurations, _ = weights.shape
    groups = m * configurations
    weights = weights.reshape(groups, -1)
    images = x[:, None].expand(m, configurations, 1, 14, 14).reshape(1, groups, 14, 14)
    first, second = weights[:, :27].reshape(-1, 1, 3, 3), weights[:, 27:81].reshape(-1, 3, 3, 3)
    hidden = (F.conv2d(images, first, stride=2, groups=groups) > 0).float()
    hidden = (F.conv2d(hidden, second, stride=2, groups=groups) > 0).float()
    return (hidden.view(groups, 8) * weights[:, 81:]).sum(-1).view(m, configurations)

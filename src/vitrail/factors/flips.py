"""Flips of networks with at most one hidden layer, O(1) per weight.

Changing w_ji changes one hidden sum h_j by a known step, which may switch the activation a_j;
changing an output weight v_cj changes one output by a known step. Hence S configurations give all A
flipped scores at the cost of S evaluations.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vitrail.factors.base import meets
from vitrail.nn.coding import values
from vitrail.nn.program import Shallow


def shallow_flips(
    net: Shallow, states: Tensor, inputs: Tensor, labels: Tensor
) -> tuple[Tensor, Tensor]:
    """Whether the label is met with each weight set to 1 and to 0: two (F, S, A) bool.

    states (F, S, A) bool, inputs (F, I) int8, labels (F,) int64.
    """
    x = inputs.to(torch.float32)[:, None, :]
    if net.num_hidden == 0:
        return _output_flips(net, states, x, labels)
    split = net.num_hidden * net.num_inputs
    bits, out_bits = states[..., :split], states[..., split:]
    bits = bits.unflatten(-1, (net.num_hidden, net.num_inputs))
    hidden = torch.einsum("fsji,fsi->fsj", values(bits, net.low_hidden), x)
    active = hidden > 0
    activation = values(active, net.low_active)

    weights = values(out_bits, net.low_output).unflatten(-1, (net.num_outputs, -1))
    outputs = torch.einsum("fscj,fsj->fsc", weights, activation)
    now = meets(outputs, labels[:, None])
    # outputs if unit j switched: every output changes by v_cj·(other − own activation)
    change = values(~active, net.low_active) - activation
    switched = outputs[:, :, None, :] + (weights * change[:, :, None, :]).transpose(-1, -2)
    if_switched = meets(switched, labels[:, None, None])

    step = x[:, :, None, :] * (1 - net.low_hidden)
    with_zero = hidden[..., None] - step * bits
    own, other = now[..., None, None], if_switched[..., None]
    one = torch.where((with_zero + step > 0) == active[..., None], own, other)
    zero = torch.where((with_zero > 0) == active[..., None], own, other)
    out_one, out_zero = _output_flips(net, out_bits, activation, labels)
    return (
        torch.cat([one.flatten(2), out_one], dim=-1),
        torch.cat([zero.flatten(2), out_zero], dim=-1),
    )


def _output_flips(net: Shallow, bits: Tensor, x: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Flips of the last layer: bits (F, S, C·J), its inputs x (F, S or 1, J)."""
    bits = bits.unflatten(-1, (net.num_outputs, -1))
    outputs = torch.einsum("fscj,fsj->fsc", values(bits, net.low_output), x)
    step = x[:, :, None, :] * (1 - net.low_output)
    with_zero = outputs[..., None] - step * bits
    with_one = with_zero + step
    if net.num_outputs == 1:
        wanted = (labels == 1)[:, None, None, None]
        return ((with_one > 0) == wanted).flatten(2), ((with_zero > 0) == wanted).flatten(2)
    # class y wins when out_y ≥ out_c + [c < y] for every other c
    classes = torch.arange(net.num_outputs, device=bits.device)
    is_label = (classes == labels[:, None])[:, None, :]
    handicap = (classes < labels[:, None]).to(outputs.dtype)[:, None, :]
    rival = (outputs + handicap).masked_fill(is_label, -torch.inf)
    own = outputs.gather(-1, labels[:, None, None].expand(-1, outputs.shape[1], 1))
    losing = (rival > own).sum(-1, keepdim=True)
    others_lose = (losing - (rival > own).to(torch.int64)) == 0
    hardest = rival.amax(-1, keepdim=True)

    def met(changed: Tensor) -> Tensor:
        as_label = changed >= hardest[..., None]
        as_rival = others_lose[..., None] & (changed + handicap[..., None] <= own[..., None])
        return torch.where(is_label[..., None], as_label, as_rival).flatten(2)

    return met(with_one), met(with_zero)

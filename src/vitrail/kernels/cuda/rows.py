"""How every row begins and ends on the GPU: thresholds from cavities, messages from hits."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def settled(cavity, edges):
    """Thresholds int32 of cavities float64: the sigmoid guesses, the table of edges decides.

    Where the guess is clear of a step no edge is read.
    """
    steps = 65536.0 / (1.0 + tl.exp(-cavity)) + 0.5
    guess = steps.to(tl.int32)
    rest = steps - guess.to(tl.float64)
    doubt = (rest < 1e-3) | (rest > 1.0 - 1e-3)
    above = tl.load(edges + guess + 1, mask=doubt, other=float("inf"))
    below = tl.load(edges + guess, mask=doubt, other=float("-inf"))
    guess = guess + (cavity >= above).to(tl.int32) - (cavity < below).to(tl.int32)
    return tl.minimum(guess, 65536)


@triton.jit
def cavities(belief, start, message, slots, used, limit):
    """Belief minus own message, clipped, float64."""
    mine = tl.load(belief + start + slots, mask=used, other=0.0)
    cavity = mine - tl.load(message + slots, mask=used, other=0.0).to(tl.float64)
    return tl.minimum(tl.maximum(cavity, -limit), limit)


@triton.jit
def write(table, one, zero, limit, log_odds, starved, slots, used):
    """Messages of a row from its hits through the table of log p̃ by number of hits."""
    log_one = tl.load(table + one, mask=used, other=0.0)
    log_zero = tl.load(table + zero, mask=used, other=0.0)
    nothing = (log_one == float("-inf")) & (log_zero == float("-inf"))
    odds = tl.where(nothing, 0.0, log_one) - tl.where(nothing, 0.0, log_zero)
    odds = tl.minimum(tl.maximum(odds, -limit), limit)
    tl.store(log_odds + slots, odds, mask=used)
    tl.store(starved + slots, nothing, mask=used)

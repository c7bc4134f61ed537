"""Votes of networks, in integers from the first sum to the last digit of a probability.

One rule for one network, committees and posteriors, so that every language computes the same:

    h      output of network k, an integer; > 0 means class 1 (of a pair (i, j): class j)
    m      clamp(2·h − 1, −clip, clip): odd, never 0; clip 1 makes it a vote
    s      Σ_k votes[k]·m_k, from −clip·V to clip·V, V = Σ_k votes[k]
    level  ((s + clip·V)·256) // (2·clip·V), from 0 to 256
    q      table[level], from 0 to 65535, non-decreasing: the probability of class 1 is q/65535

Two classes: the answer is class 1 where q > 32767. With more classes the highest score is the
answer, the first of equals.

Pairs: with r = max(64, q), or max(64, 65535 − q) for the first class of a pair, a class costs
Σ 2³⁰ // r over its pairs, and scores 2³⁰ // (cost − 2¹⁴·(C − 2)). Where all pairs agree, r / 65535
is p_i / (p_i + p_j), and the score 2¹⁶·p_i. One against the rest: each class has a net,
whose q is its score. One net with an output per class, argmax: class c leads rival r by h_c − h_r,
and by one more where c < r, so that of equals the first wins; its smallest lead takes the place of
h, and its q is its score.

Scores become probabilities by integer division, the remainder going to the answer, so that they add
up to 65535.
"""

from __future__ import annotations

from itertools import combinations
from typing import Literal

import torch
from torch import Tensor

Scheme = Literal["argmax", "pairs", "one-vs-rest"]  # "argmax" for two classes: one net, one output
LEVELS = 256  # of scores; a table has one more entry
ONE = 65535  # probability 1
HALF = 32767  # the largest q below a majority
LEAST = 64  # of a class in a pair, so that costs of 256 classes fit 32 bits
COSTS, CERTAIN = 2**30, 2**14  # CERTAIN is the cost of a pair of probability 1


def raw_margins(outputs: Tensor) -> Tensor:
    """The raw margin of class 1, or of each class: (…, O) → (…, 1) or (…, O) int64.

    Outputs that are not integers (of own modules) are rounded up, which keeps their sign.
    """
    num = outputs.shape[-1]
    if num == 1:
        return torch.ceil(outputs).to(torch.int64)
    least = torch.full(outputs.shape, 2**40, dtype=torch.int64, device=outputs.device)
    for rival in range(num):
        apart = outputs - outputs[..., rival : rival + 1]
        up = torch.ceil(apart)
        first = torch.arange(num, device=outputs.device) < rival
        raw = up.to(torch.int64) + (first & (up == apart)).to(torch.int64)
        raw[..., rival] = 2**40
        least = torch.minimum(least, raw)
    return least


def clipped_margins(raw: Tensor, clip: int) -> Tensor:
    """The clipped margin of each network, odd: clamp(2·raw − 1, −clip, clip)."""
    return (2 * raw - 1).clamp(-clip, clip)


def scores(raw: Tensor, votes: Tensor, clip: int) -> Tensor:
    """Σ_k votes·m: raw_margins (rows, K, N, O) and votes (K, N) → (rows, N, O) int64."""
    return (clipped_margins(raw, clip) * votes.to(torch.int64)[None, :, :, None]).sum(1)


def tally(raw: Tensor, votes: Tensor, clip: int) -> tuple[Tensor, Tensor]:
    """Scores, and the votes for class 1, or for each class, (rows, N, O) int64 each."""
    agreeing = ((raw > 0) * votes.to(torch.int64)[None, :, :, None]).sum(1)
    return scores(raw, votes, clip), agreeing


def levels(score: Tensor, votes: Tensor, clip: int) -> Tensor:
    """The level of each score (rows, N, O), from 0 to LEVELS."""
    most = clip * votes.to(torch.int64).sum(0)[None, :, None]
    return (score + most) * LEVELS // (2 * most)


def net_probabilities(level: Tensor, table: Tensor) -> Tensor:
    """q of each level (rows, N, O) by the tables (N, LEVELS + 1): int64."""
    nets = torch.arange(table.shape[0])[None, :, None]
    return table.to(torch.int64)[nets, level]


def num_nets(num_classes: int, scheme: Scheme) -> tuple[int, int]:
    """The number of nets of a model, and of outputs per net."""
    if scheme == "pairs":
        return num_classes * (num_classes - 1) // 2, 1
    if scheme == "one-vs-rest":
        return num_classes, 1
    return 1, 1 if num_classes == 2 else num_classes


def class_scores(probability: Tensor, num_classes: int, scheme: Scheme) -> Tensor:
    """Scores of the classes from q (rows, N, O): (rows, C) int64."""
    if scheme == "one-vs-rest":
        return probability[:, :, 0]
    if scheme == "argmax":
        q = probability[:, 0]
        return torch.cat([ONE - q, q], 1) if num_classes == 2 else q
    cost = probability.new_full((len(probability), num_classes), -CERTAIN * (num_classes - 2))
    for net, (low, high) in enumerate(combinations(range(num_classes), 2)):
        cost[:, low] += COSTS // (ONE - probability[:, net, 0]).clamp(min=LEAST)
        cost[:, high] += COSTS // probability[:, net, 0].clamp(min=LEAST)
    return COSTS // cost


def class_probabilities(score: Tensor) -> Tensor:
    """Scores (rows, C) as probabilities that add up to ONE, (rows, C) int64."""
    part = score * ONE // score.sum(1, keepdim=True).clamp(min=1)
    answer = score.argmax(1, keepdim=True)
    return part.scatter_add(1, answer, ONE - part.sum(1, keepdim=True))


def decisions(
    score: Tensor, votes: Tensor, clip: int, table: Tensor, num_classes: int, scheme: Scheme
) -> Tensor:
    """Log-odds of the classes (rows, C) float64, finer than the probabilities.

    score (rows, N, O): of `tally`. A probability of p parts becomes (p + r)/(ONE + 1), where r in
    (0, 1) orders rows of equal p: by the scores of the classes, then by votes. Of classes with
    equal scores the answer, which is the first, gets the largest value among them.
    """
    chosen = class_scores(net_probabilities(levels(score, votes, clip), table), num_classes, scheme)
    most = clip * votes.to(torch.int64).sum(0)[None, :, None]
    share = class_scores(ONE * (score + most).double() / (2 * most), num_classes, scheme)
    top = ONE * max(1, num_classes - 1)  # of a class's score
    finer = class_probabilities(chosen) + (chosen + (share + 1) / (top + 2)) / (top + 1)
    if num_classes > 2:
        finer = finer.scatter(1, chosen.argmax(1, keepdim=True), finer.amax(1, keepdim=True))
    return torch.logit(finer / (ONE + 1))


def votes_against(
    agreeing: Tensor, votes: Tensor, answer: Tensor, num_classes: int, scheme: Scheme
) -> Tensor:
    """The share of votes against the answer (rows,), in parts of ONE: disagreement of networks.

    agreeing (rows, N, O): of `tally`. With pairs it is the mean over the pairs of the answer;
    against the rest, of the answer's net.
    """
    total = votes.to(torch.int64).sum(0)
    if scheme == "argmax" and agreeing.shape[-1] > 1:
        mine = agreeing[:, 0].gather(1, answer[:, None])[:, 0]
        return (total[0] - mine) * ONE // total[0]
    for_high = agreeing[..., 0]  # (rows, N)
    if scheme == "one-vs-rest":
        own = answer[:, None]
        return ONE - for_high.gather(1, own)[:, 0] * ONE // total[answer]
    against = answer.new_zeros(len(answer))
    kinds = list(combinations(range(num_classes), 2))
    for net, (low, high) in enumerate(kinds):
        share = for_high[:, net] * ONE // total[net]
        against += torch.where(answer == low, share, 0)
        against += torch.where(answer == high, ONE - share, 0)
    return against // (num_classes - 1)

"""Metropolis chains of nets with one hidden layer and one output, run by a compiled kernel.

Chains sample exp(−beta·E)·prior, where E is the weight of misclassified examples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vitrail import interrupts
from vitrail.random import Key, Stream, bernoulli
from vitrail.ranks import ALONE, World
from vitrail.solvers.journal import Journal
from vitrail.solvers.sampling import WARM_BETA

FAIR_COIN = 32768  # of 65536
PROPOSAL_COST = 160  # fixed cost of a proposal, in lanes drawn; its words add to it
PINNED_LOG_ODDS = 1e9  # log-odds of a weight that stays 1
USED = 3.0  # pairs of a monotone column that a unit uses a priori
CHECK_EVERY = 10  # sweeps between two checks for Ctrl-C


Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Sample:
    """The examples of one net."""

    inputs: Tensor  # (F, I) int8 of 0/1
    labels: Tensor  # (F,) int64 of 0/1
    weight: Tensor  # (F,) float64


def random_starts(key: Key, chains: int, nets: int, num_bits: int) -> Tensor:
    """Uniformly random configurations (chains, nets, bits)."""
    fair = torch.full((chains, nets, num_bits), FAIR_COIN, dtype=torch.int32)
    net, chain = torch.arange(nets)[None], torch.arange(chains)[:, None]
    return bernoulli(key.of(Stream.PRIOR), net, chain, fair)


def warm_up(cold: Sequence[float], sweeps: int) -> Iterator[tuple[int, list[float], list[float]]]:
    """Arguments of successive `Chains.advance`: betas rise to `cold` in the first half."""
    rising = max(1, sweeps // 2)
    betas = warm = [min(WARM_BETA, beta) for beta in cold]
    for first in range(0, sweeps, CHECK_EVERY):
        before, last = betas, min(first + CHECK_EVERY, sweeps)
        share = min(1.0, last / rising)
        betas = [low + (high - low) * share for low, high in zip(warm, cold, strict=True)]
        yield last - first, before, betas


class Chains:
    """Many chains for each of several nets, all at the same sweep.

    starts: (C, N, A) bool. A sweep makes one proposal per bit of a net. A net with as many bits as
    inputs is linear: one unit, whose output weight stays 1. Every chain is a function of key, net
    and chain number, independent of threads. couplings (C,): of neighbouring weights, none by
    default. Each rank runs its own chains and gathers the states
    of all. journal: recorded states, after whose last one the chains continue.

    ordered: for each monotone column, pairs of inputs (low, high) of which exactly one is 1. No
    unit's weight of `low` may exceed that of `high`, and output weights stay 1: the output never
    falls where `low` goes off and `high` on. Starts that break this are changed, and proposals that
    would are not made. A pair is used where its weights differ; a priori a unit uses about USED of
    a column. With all pairs alike, columns would have nearly the same slope in all units.
    """

    def __init__(
        self,
        key: Key,
        samples: Sequence[Sample],
        starts: Tensor,
        *,
        partner: Tensor,
        swaps: float = 0.0,
        prior: Tensor | None = None,
        couplings: Sequence[float] | None = None,
        ordered: Sequence[Pairs] = (),
        world: World = ALONE,
        journal: Journal | None = None,
    ) -> None:
        from vitrail.kernels.cpu.chains import PackedRows

        count, nets, num_bits = starts.shape
        self._rows = [
            PackedRows.of(one.inputs.numpy(), one.labels.numpy(), one.weight.numpy())
            for one in samples
        ]
        places = [(chain, net) for net in range(nets) for chain in range(count)]
        self._world, self._places = world, places[world.share(len(places))]
        self._shape = (count, nets, num_bits)
        self._words = max(one.columns.shape[1] for one in self._rows)
        self._linear = num_bits == samples[0].inputs.shape[1]
        self._key, self._partner, self._swaps = key, partner.numpy(), swaps
        self._prior = None if prior is None else prior.double()
        self._couplings = [0.0] * count if couplings is None else list(couplings)
        self._journal, self._replayed = journal, None
        self._bounds = np.full((2, len(self._partner) if ordered else 0), -1)
        if ordered:
            starts, self._prior = self._in_order(starts, ordered)
        self._chains = self._build_chains(starts, 0)

    def _in_order(self, starts: Tensor, ordered: Sequence[Pairs]) -> tuple[Tensor, Tensor]:
        """The starts with their pairs in order, and the prior."""
        inputs, bits = len(self._partner), starts.shape[-1]
        units = 1 if self._linear else bits // (inputs + 1)
        starts, prior = starts.clone(), torch.zeros(starts.shape, dtype=torch.float64)
        weights, log_odds = (
            of[..., : units * inputs].unflatten(-1, (units, inputs)) for of in (starts, prior)
        )
        for pairs in ordered:
            low, high = torch.tensor(pairs).T
            self._bounds[0, high.numpy()], self._bounds[1, low.numpy()] = low.numpy(), high.numpy()
            first, second = weights[..., low], weights[..., high]
            weights[..., low], weights[..., high] = first & second, first | second
            used = min(1 / 3, USED / len(pairs))
            unused = math.log((1 - used) / (2 * used))  # in log-odds, each of two ways
            log_odds[..., low], log_odds[..., high] = unused, -unused
        starts[..., units * inputs :] = True
        prior[..., units * inputs :] = PINNED_LOG_ODDS
        return starts, prior if self._prior is None else prior + self._prior

    def _build_chains(self, bits: Tensor, proposals: int) -> list[Any]:
        """This rank's chains, in state bits (C, N, A) after `proposals` proposals."""
        from vitrail.kernels.cpu.chains import Chain

        prior, bits = self._prior, bits.contiguous()
        if self._linear:
            pinned = torch.full((*bits.shape[:2], 1), PINNED_LOG_ODDS, dtype=torch.float64)
            before = torch.zeros(bits.shape, dtype=torch.float64) if prior is None else prior
            prior = torch.cat([before, pinned], -1)
            bits = torch.cat([bits, torch.ones(*bits.shape[:2], 1, dtype=torch.bool)], -1)
        states, priors = bits.numpy(), None if prior is None else prior.contiguous().numpy()
        words = self._key.of(Stream.CHAIN).words()
        made = []
        for chain, net in self._places:
            rows = self._rows[net]
            made.append(
                Chain(
                    rows,
                    states[chain, net],
                    states.shape[-1] // len(rows.columns),
                    words,
                    (chain, net, self._key.step),
                    self._partner,
                    self._swaps,
                    None if priors is None else priors[chain, net],
                    self._couplings[chain],
                    self._bounds,
                    first=proposals,
                )
            )
        return made

    @property
    def bits(self) -> Tensor:
        """Current states of the chains, (C, N, A) bool."""
        if self._replayed is not None:
            return self._replayed.bits
        bits = np.empty((len(self._chains), self._shape[-1]), np.bool_)
        for place, chain in enumerate(self._chains):
            bits[place] = chain.bits[: self._shape[-1]]
        return self._gather(torch.from_numpy(bits))

    @property
    def wrong(self) -> Tensor:
        """Weight of the examples that each network misclassifies, (C, N) float64."""
        if self._replayed is not None:
            return self._replayed.wrong
        wrong = [chain.wrong for chain in self._chains]
        return self._gather(torch.tensor(wrong, dtype=torch.float64))

    def _gather(self, mine: Tensor) -> Tensor:
        """Values of the chains of all ranks, (C, N, …)."""
        (count, nets, _), world, known = self._shape, self._world, mine
        if world.size > 1:
            known = mine.new_zeros(count * nets, *mine.shape[1:])
            known[world.share(len(known))] = mine
            known = world.any(known) if mine.dtype == torch.bool else world.sum(known)[0]
        return known.view(nets, count, *mine.shape[1:]).transpose(0, 1).contiguous()

    def advance(self, sweeps: int, warm: Sequence[float], cold: Sequence[float]) -> None:
        """Run some sweeps, with the beta of chain c rising from warm[c] to cold[c].

        A stop is raised before chains move, or after the running chains have finished.
        """
        from vitrail.kernels.cpu.threads import over_rows

        proposals = sweeps * (self._shape[-1] + self._linear)
        interrupts.check()
        if self._journal is not None:
            known = self._journal.next(self._shape, proposals)
            if known is not None:
                self._replayed = known
                return
        if self._replayed is not None:
            self._chains = self._build_chains(self._replayed.bits, self._replayed.proposals)
            self._replayed = None

        def run(begin: int, end: int) -> None:
            for place in range(begin, end):
                if interrupts.stop_pending():
                    return  # a chain is consistent after any number of proposals
                number = self._places[place][0]
                self._chains[place].run(proposals, (warm[number], cold[number]))

        with interrupts.defer_stop():
            over_rows(run, len(self._places), proposals * (PROPOSAL_COST + 2 * self._words))
        if self._journal is not None and not interrupts.stop_pending():
            self._journal.add(self.bits, self.wrong)

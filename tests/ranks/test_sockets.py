"""Small sums by sockets: the same bits at every rank, and a rank that goes is noticed."""

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import reduce

import numpy as np
import pytest
from torch.distributed import HashStore  # pyright: ignore[reportPrivateImportUsage]

from vitrail.sockets import LOOPBACK, MAX_BYTES, RankSockets, connect_ranks

WAIT = timedelta(seconds=20)


def together(size: int, work: Callable[[RankSockets, int], object]) -> list:
    """What each of so many ranks, here threads, comes to."""
    store = HashStore()

    def rank(number: int) -> object:
        sockets = connect_ranks(number, size, store, WAIT)
        try:
            return work(sockets, number)
        finally:
            sockets.close()

    with ThreadPoolExecutor(size) as ranks:
        return list(ranks.map(rank, range(size)))


def vectors(size: int, count: int) -> np.ndarray:
    return np.random.default_rng(count).standard_normal((size, count))


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [0, 1, 196, MAX_BYTES // 8])
@pytest.mark.parametrize("how", [np.add, np.maximum], ids=["sum", "max"])
def test_every_rank_has_the_vectors_of_all_put_together_in_order(size, count, how):
    given = vectors(size, count)

    def work(sockets: RankSockets, rank: int) -> list[np.ndarray]:
        found = []
        for _ in range(3):
            values = given[rank].copy()
            sockets.combine(values, how)
            found.append(values)
        return found

    expected = reduce(how, given)
    for found in together(size, work):
        for values in found:
            assert np.array_equal(values, expected)  # to the last bit


def test_a_rank_that_goes_is_noticed():
    def work(sockets: RankSockets, rank: int) -> str:
        if rank == 2:
            return "gone"
        with pytest.raises(ConnectionError):
            sockets.combine(np.ones(3), np.add)
        return "noticed"

    assert together(3, work) == ["noticed", "noticed", "gone"]


def test_a_connection_without_the_token_is_refused():
    store = HashStore()

    def unauthenticated() -> bytes:
        port, _ = store.get("vitrail/server/0").decode().split()
        with socket.create_connection((LOOPBACK, int(port)), 20) as wire:
            wire.sendall(bytes(20))
            return wire.recv(1)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(connect_ranks, 0, 2, store, WAIT)
        assert pool.submit(unauthenticated).result() == b""
        second = pool.submit(connect_ranks, 1, 2, store, WAIT)
        for sockets in (first.result(), second.result()):
            sockets.close()

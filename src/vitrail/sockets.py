"""Small sums between the ranks of one machine, over a socket for each pair of ranks.

gloo, which computes large sums, has its own threads. Where ranks keep all cores busy, these
threads wait for a core, and one spins while it waits for another: a sum of 196 numbers over two
ranks took 2 to 5 ms on two cores. Sockets read by the rank itself take a tenth of that.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta

import numpy as np
from torch.distributed import Store  # pyright: ignore[reportPrivateImportUsage] (documented there)

LOOPBACK = "127.0.0.1"
TOKEN = 16  # bytes of the authentication token between ranks
RANK = 4  # bytes of a rank's number
MAX_BYTES = 2**16  # bytes of a vector; gloo's ring is faster for larger ones
BUFFER_BYTES = 4 * MAX_BYTES  # bytes buffered in a socket: all ranks may write before any reads


class RankSockets:
    """One socket to every other rank."""

    def __init__(self, rank: int, others: Mapping[int, socket.socket]) -> None:
        self._rank, self._others = rank, others

    def combine(self, values: np.ndarray, how: Callable[..., object]) -> None:
        """`how`, such as `np.add`, over the vectors (n,) of all ranks, in place.

        Every rank adds in rank order, so all results have the same bits.
        """
        if not values.size:
            return
        for other in self._others.values():
            other.sendall(values.data)
        mine, theirs = values.copy(), np.empty_like(values)
        for rank in range(len(self._others) + 1):
            if rank != self._rank:
                _receive(self._others[rank], theirs)
            part = mine if rank == self._rank else theirs
            if rank:
                how(values, part, out=values)
            else:
                values[:] = part

    def close(self) -> None:
        """Close all sockets; ranks waiting for this one get an error."""
        for other in self._others.values():
            other.close()


def connect_ranks(rank: int, size: int, store: Store, wait: timedelta) -> RankSockets:
    """Connect the ranks of one machine, which exchange ports through the store."""
    token, seconds = secrets.token_bytes(TOKEN), wait.total_seconds()
    others: dict[int, socket.socket] = {}
    with socket.create_server((LOOPBACK, 0), backlog=size) as server:
        server.settimeout(seconds)
        store.set(f"vitrail/server/{rank}", f"{server.getsockname()[1]} {token.hex()}")
        for number in range(rank):
            port, theirs = store.get(f"vitrail/server/{number}").decode().split()
            other = socket.create_connection((LOOPBACK, int(port)), seconds)
            other.sendall(bytes.fromhex(theirs) + rank.to_bytes(RANK, "big"))
            others[number] = other
        while len(others) < size - 1:
            other, _ = server.accept()
            other.settimeout(seconds)
            greeting = np.zeros(TOKEN + RANK, np.uint8)
            with suppress(ConnectionError):
                _receive(other, greeting)
            if hmac.compare_digest(greeting[:TOKEN].tobytes(), token):
                others[int.from_bytes(greeting[TOKEN:].tobytes(), "big")] = other
            else:
                other.close()
    for other in others.values():
        other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # send small vectors at once
        for end in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            other.setsockopt(socket.SOL_SOCKET, end, BUFFER_BYTES)
    return RankSockets(rank, others)


def _receive(socket_: socket.socket, buffer: np.ndarray) -> None:
    """Fill an array."""
    left = buffer.data.cast("B")
    while left:
        count = socket_.recv_into(left)
        if not count:
            raise ConnectionError("the other rank has closed its socket")
        left = left[count:]

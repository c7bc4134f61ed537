"""Philox4x32-10, compiled: the same bits as `vitrail.random.philox`, one call at a time."""

from __future__ import annotations

from numba import njit, uint32, uint64


@njit(
    "UniTuple(uint32, 4)(uint32, uint32, uint32, uint32, uint32, uint32)",
    cache=True,
    nogil=True,
)
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit words of the counter (c0, c1, c2, c3) under the key (k0, k1)."""
    for _ in range(10):
        p0 = uint64(c0) * uint64(0xD2511F53)
        p1 = uint64(c2) * uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            uint32(p1 >> uint64(32)) ^ c1 ^ k0,
            uint32(p1),
            uint32(p0 >> uint64(32)) ^ c3 ^ k1,
            uint32(p0),
        )
        k0 = uint32(k0 + uint32(0x9E3779B9))
        k1 = uint32(k1 + uint32(0xBB67AE85))
    return c0, c1, c2, c3

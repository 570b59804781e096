# SPDX-License-Identifier: Apache-2.0
"""Command streams for the cluster datapath and what the reference model says they must give.

A :class:`Stream` holds operand pools, issues and drain/peer commands as arrays; :func:`expect` turns it and
the cycles in which the commands were taken into the expected sums, emitted words, sent tiles and final tile
contents (docs/spec/numerics.md 4, 5; docs/spec/cluster.md 6).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from kohakutpu.model.numerics import Layout, acc_add, block_dot, chain, pack_l1, to_fp16

EMIT, SEND, ADD_PEER = 0, 1, 2
Array = np.ndarray[tuple[int, ...], np.dtype[Any]]
_LOAD, _ADD, _PEER, _READ = 0, 1, 2, 3


@dataclass
class Pool:
    """Operand entries: elements ``qa``/``qb`` (n, 4 lanes, 32), scale bytes ``sa``/``sb`` (n, 4)."""

    qa: Array
    sa: Array
    qb: Array
    sb: Array

    def words(self, side: str) -> Array:
        """L1 entries of side ``a`` or ``b`` as uint8 (n, 116)."""
        if side == "a":
            return pack_l1(self.qa, self.sa, Layout.A)
        return pack_l1(self.qb, self.sb, Layout.B)


def random_pool(
    rng: np.random.Generator, n: int, lo: int = -64, hi: int = 63, scale: tuple[int, int] = (90, 190)
) -> Pool:
    """Random entries: elements lo..hi, every lane its own scale byte scale[0]..scale[1]."""
    q = rng.integers(lo, hi + 1, (2, n, 4, 32)).astype(np.int8)
    s = rng.integers(scale[0], scale[1] + 1, (2, n, 4)).astype(np.uint8)
    return Pool(q[0], s[0], q[1], s[1])


ISS = ("a", "b", "load", "emit", "bank", "addr", "anchor", "gap", "phase")
X = ("op", "bank", "addr", "peer", "gap", "phase")


@dataclass
class Stream:
    """Pools and both command lists; columns are appended by :meth:`issue` and :meth:`command`."""

    pool: Pool
    peers: Array = field(default_factory=lambda: np.zeros((1, 16), dtype=np.uint32))
    iss: dict[str, list[Array]] = field(default_factory=lambda: {k: [] for k in ISS})
    x: dict[str, list[Array]] = field(default_factory=lambda: {k: [] for k in X})

    def issue(
        self, addr: Any, a: Any, b: Any, *, load: Any = 0, emit: Any = 0, bank: Any = 0, **more: Any
    ) -> None:
        """Append issues; scalars broadcast. ``more``: anchor (40), gap (0), phase (0)."""
        values = {"anchor": 40, "gap": 0, "phase": 0, **more}
        values.update(addr=addr, a=a, b=b, load=load, emit=emit, bank=bank)
        _append(self.iss, ISS, values)

    def command(
        self, op: Any, addr: Any, *, bank: Any = 0, peer: Any = 0, gap: Any = 0, phase: Any = 0
    ) -> None:
        """Append drain or peer commands; scalars broadcast."""
        _append(self.x, X, {"op": op, "addr": addr, "bank": bank, "peer": peer, "gap": gap, "phase": phase})


def _append(columns: dict[str, list[Array]], names: tuple[str, ...], values: dict[str, Any]) -> None:
    unknown = set(values) - set(names)
    if unknown:
        raise TypeError(f"unknown columns {sorted(unknown)}")
    arrays = np.broadcast_arrays(*(np.asarray(values[k], dtype=np.int64) for k in names))
    for name, array in zip(names, arrays, strict=True):
        columns[name].append(np.atleast_1d(array).ravel())


def columns(lists: dict[str, list[Array]]) -> dict[str, Array]:
    """The appended pieces of every column as one array."""
    return {k: np.concatenate(v) if v else np.zeros(0, dtype=np.int64) for k, v in lists.items()}


def space(addr: Array, bank: Array, gap: Array, reuse_min: int) -> Array:
    """Raise ``gap`` where needed so that issues of one sub-tile are at least ``reuse_min`` cycles apart."""
    last: dict[tuple[int, int], int] = {}
    out = np.array(gap, dtype=np.int64)
    now = -1
    for n, key in enumerate(zip(addr.tolist(), bank.tolist(), strict=True)):
        now += 1 + int(out[n])
        wait = last.get(key, -reuse_min) + reuse_min - now
        if wait > 0:
            out[n] += wait
            now += wait
        last[key] = now
    return out


@dataclass
class Expected:
    """Reference results in the order in which the hardware must hand them out."""

    sums: Array
    emit_addr: Array
    emit_half: Array
    emit_clamp: Array
    send_addr: Array
    send_codes: Array


def clamped(code: Array, mw: int) -> Array:
    """Codes whose rounded FP16 magnitude exceeds 65504, decided on the code's exact value."""
    c = np.asarray(code, dtype=np.int64)
    e = ((c >> mw) & 127) - 63
    significand = (1 << mw) | (c & ((1 << mw) - 1))
    # 65520 = 4095 * 2^4 is the first value that rounds beyond 65504
    over: Array = (e > 15) | ((e == 15) & ((significand << 11) >= (4095 << mw)))
    return over


def block_codes(pool: Pool, iss: dict[str, Array], mw: int) -> tuple[Array, Array]:
    """Exact sums (n, 16) and accumulator codes (n, 16) of the issues."""
    n = len(iss["a"])
    sums = np.zeros((n, 16), dtype=np.int64)
    codes = np.zeros((n, 16), dtype=np.uint32)
    for at in range(0, n, 8192):
        part = slice(at, at + 8192)
        a, b, anchor = iss["a"][part], iss["b"][part], iss["anchor"][part]
        d = block_dot(pool.qa[a], pool.qb[b])
        sums[part] = d.reshape(-1, 16)
        for value in np.unique(anchor):
            m = anchor == value
            sa, sb = pool.sa[a[m]][:, :, None], pool.sb[b[m]][:, None, :]
            codes[part][m] = chain(d[m], sa, sb, int(value), mw).reshape(-1, 16)
    return sums, codes


def expect(
    stream: Stream, iss_time: Array, x_time: Array, tiles: Array, *, mw: int, slot_lat: int, one_bank: bool
) -> Expected:
    """What ``stream`` gives when issue n was taken in cycle iss_time[n] and command m in x_time[m].

    Args:
        tiles: accumulator codes (2, TILES, 16); updated in place.
        slot_lat: cycles from an issue to its accumulator slot; a drain command acts in its own cycle.
        one_bank: TILE_BANKS = 1, bank bits have no meaning.
    """
    iss, x = columns(stream.iss), columns(stream.x)
    n, m = len(iss["a"]), len(x["op"])
    sums, codes = block_codes(stream.pool, iss, mw)
    depth = tiles.shape[1]
    bank = np.concatenate([iss["bank"], x["bank"]]) * (0 if one_bank else 1)
    key = bank * depth + np.concatenate([iss["addr"], x["addr"]])
    slot = np.concatenate([iss_time + slot_lat, x_time])
    kind = np.concatenate(
        [np.where(iss["load"] == 1, _LOAD, _ADD), np.where(x["op"] == ADD_PEER, _PEER, _READ)]
    )
    operand = np.concatenate([codes, stream.peers[x["peer"]].astype(np.uint32)]) if n + m else codes

    # Commands of one sub-tile act in slot order; the k-th commands of all sub-tiles are done together.
    order = np.lexsort((slot, key))
    sorted_key = key[order]
    first = np.r_[True, sorted_key[1:] != sorted_key[:-1]]
    start = np.maximum.accumulate(np.where(first, np.arange(n + m), 0))
    rank = np.empty(n + m, dtype=np.int64)
    rank[order] = np.arange(n + m) - start
    flat = tiles.reshape(-1, 16)
    value = np.zeros((n + m, 16), dtype=np.uint32)
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.searchsorted(rank[by_rank], np.arange(int(rank.max(initial=-1)) + 2))
    for lo, hi in pairwise(bounds.tolist()):
        now = by_rank[lo:hi]
        old, k = flat[key[now]], kind[now][:, None]
        added = acc_add(old, operand[now], mw)
        value[now] = np.where(k == _READ, old, np.where(k == _LOAD, operand[now], added))
        flat[key[now]] = value[now]

    emit_iss = np.flatnonzero(iss["emit"])
    emit_x = np.flatnonzero(x["op"] == EMIT)
    taken = np.concatenate([iss_time[emit_iss] * 2 + 1, x_time[emit_x] * 2])
    emits = np.concatenate([emit_iss, n + emit_x])[np.argsort(taken, kind="stable")]
    sends = np.flatnonzero(x["op"] == SEND)
    addr = np.concatenate([iss["addr"], x["addr"]])
    return Expected(
        sums=sums,
        emit_addr=addr[emits],
        emit_half=to_fp16(value[emits], mw),
        emit_clamp=np.any(clamped(value[emits], mw), axis=1),
        send_addr=x["addr"][sends],
        send_codes=value[n + sends],
    )

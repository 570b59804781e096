# SPDX-License-Identifier: Apache-2.0
"""Attention over key blocks with a running maximum and sum (docs/spec/kernels.md 5.4).

No score matrix is ever kept: a step holds the scores of one block of queries against one block of keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import (
    In,
    Int,
    Out,
    adjacent,
    dims,
    exp2,
    kernel,
    loop,
    maximum,
    row_max,
    row_sum,
    table,
    temp,
    tile,
    units,
    where,
)
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.kernels.library.helpers import MASKED, PART, SUB_ROW, tiles

LAYER = "L4"

_KBLOCK = 32

Lq, Lkv, Dk, Dv = dims("Lq, Lkv, Dk, Dv")


@kernel
def flash_attention(
    q: Any = In(..., Lq, Dk),
    k: Any = In(..., Lkv, Dk),
    v: Any = In(..., Dv, Lkv),
    o: Any = Out(..., Lq, Dv),
    *,
    block: Any = 64,
    qblock: Any = None,
    causal: Any = False,
    keys: Any = None,
    groups: Any = 1,
    part: Any = PART,
    gm: Any = None,
    gn: Any = None,
    nk: Any = None,
) -> None:
    """o[..., Lq, Dv] = softmax(q k^T) v, with q scaled by log2(e)/sqrt(Dk) by its producer and v transposed.

    Args:
        block: keys of a step, a multiple of 32 up to 128; Lkv and Dv are whole blocks.
        qblock: queries of a step, which bound the temps; all of them by default.
        causal: query i sees keys 0..i; qblock = block and Lq = Lkv.
        keys: real keys, the first of Lkv; k and v may hold anything behind them that is finite. Sets qblock to block.
        groups: query heads that share a KV head, stacked on the row axis (:func:`stack_groups`).

    Raises:
        TraceError: a block that is no multiple of 32 up to 128, keys below 1, and combinations of the knobs that the
            list above excludes.
    """
    queries = _checked(block, qblock, causal, keys, groups)
    state = _State(q, k, v, o, block, queries or Lq, part, (gm, gn, nk))
    if causal:
        lower = table(np.tril(np.ones((block, block)))).repeated()
        blocks = tiles(Lkv, block // 4)
        real = blocks if keys is None else keys // block
        for i in loop(real):
            state.begin(i, i, lower)
            for j in loop(i):
                state.step(i, j)
            state.finish(i)
        if keys is not None:
            for i in loop(blocks - real):  # queries behind the last key see all of them
                state.start()
                for j in loop(real):
                    state.step(i + real, j)
                state.finish(i + real)
        return
    for i in loop(tiles(Lq, queries // 4)) if queries else (0,):
        if keys is not None and keys % block:
            mask = table((np.arange(block) < keys % block).astype(np.float64)).repeated()
            state.begin(i, keys // block, mask)
        else:
            state.start()
        full = k.tiles(block // 4) if keys is None else keys // block
        if not isinstance(full, int) or full:
            for j in loop(full):
                state.step(i, j)
        state.finish(i)


def _checked(block: int, qblock: int | None, causal: bool, keys: int | None, groups: int) -> int | None:
    """Queries of a step, None for all of them."""
    if block < _KBLOCK or block % _KBLOCK or block > SUB_ROW:
        raise TraceError(f"block = {block}; a key block is 32, 64, 96 or {SUB_ROW} keys")
    if not isinstance(groups, Integral) or groups < 1:
        raise TraceError(f"groups = {groups}; give the query heads that share a KV head, at least 1")
    if qblock is not None and (qblock < 4 or qblock % 4):
        raise TraceError(f"qblock = {qblock}; a query block is a multiple of 4 rows")
    if causal:
        if groups > 1:
            raise TraceError(f"causal with groups = {groups}: rows of one query position repeat; pass k and v per head")
        if qblock != block:
            raise TraceError(f"causal with qblock = {qblock}; the diagonal is square, name qblock = block = {block}")
        if keys is not None and keys % block:
            raise TraceError(f"causal with keys = {keys}; give whole blocks of {block}, or leave keys out")
    if keys is None:
        return qblock
    if keys < 1:
        raise TraceError(f"keys = {keys}; a row needs at least one key")
    if qblock not in (None, block):
        raise TraceError(f"keys = {keys} with qblock = {qblock}; keys set it to block = {block}, leave it out")
    return block


@dataclass
class _State:
    """The running maximum, sum and result of a query block."""

    q: Buffer
    k: Buffer
    v: Buffer
    o: Buffer
    block: int
    span: Int | int
    part: int
    knobs: tuple[Any, Any, Any]

    def __post_init__(self) -> None:
        self.top, self.total, self.corr, self.scores, self.weights = (temp(self.span, self.block) for _ in range(5))
        self.part_o, self.acc_o = temp(self.span, Dv), temp(self.span, Dv)
        adjacent(self.weights, self.total, self.corr, self.top)

    def start(self) -> None:
        """Nothing seen yet."""
        for e in units(self.top.parts(self.part)):
            self.top[e] <<= MASKED
            self.total[e] <<= 0.0
        for e in units(self.acc_o.parts(self.part)):
            self.acc_o[e] <<= 0.0

    def begin(self, i: Int | int, j: Int | int, mask: Buffer) -> None:
        """Take in the masked key block ``j`` first: nothing seen before has to be read."""
        self._scores(i, j)
        for e in units(self.scores.parts(self.part)):
            s = where(mask[e], self.scores[e], MASKED)
            highest = row_max(s)
            p = exp2(s - highest)
            self.weights[e] <<= p
            self.total[e] <<= row_sum(p)
            self.top[e] <<= highest
        self._values(j, self.acc_o)

    def step(self, i: Int | int, j: Int | int) -> None:
        """Take in key block ``j`` for query block ``i``."""
        self._scores(i, j)
        for e in units(self.scores.parts(self.part)):
            highest = maximum(self.top[e], row_max(self.scores[e]))
            corr, p = exp2(self.top[e] - highest), exp2(self.scores[e] - highest)
            self.weights[e] <<= p
            self.total[e] <<= self.total[e] * corr + row_sum(p)
            self.corr[e] <<= corr
            self.top[e] <<= highest
        self._values(j, self.part_o)
        corr_o = self.corr.row_repeat(Dv // self.block)
        for e in units(self.acc_o.parts(self.part)):
            self.acc_o[e] <<= self.acc_o[e] * corr_o[e] + self.part_o[e]

    def _scores(self, i: Int | int, j: Int | int) -> None:
        gm, gn, nk = self.knobs
        rows, columns = self.scores.tiles(gm), tiles(self.block, gn)
        for m, n in units(rows, columns):
            acc = tile(gm, gn, nk)
            for c in loop(self.q.chunks32(nk)):
                acc += self.q[m + rows * i, c] @ self.k[n + columns * j, c]
            self.scores[m, n] <<= acc

    def _values(self, j: Int | int, result: Buffer) -> None:
        gm, gn, nk = self.knobs
        chunks = self.weights.chunks32(nk)
        for m, n in units(self.weights.tiles(gm), self.v.tiles(gn)):
            acc = tile(gm, gn, nk)
            for c in loop(chunks):
                acc += self.weights[m, c] @ self.v[n, c + chunks * j]
            result[m, n] <<= acc

    def finish(self, i: Int | int) -> None:
        """Store query block ``i``."""
        out = self.o.rows_from(self.span * i)
        total = self.total.row_repeat(Dv // self.block)
        for e in units(self.acc_o.parts(self.part)):
            out[e] <<= self.acc_o[e] / total[e]

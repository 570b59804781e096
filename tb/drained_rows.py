# SPDX-License-Identifier: Apache-2.0
"""Requests whose products are read in rows, and what a schedule made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import ktpu
from kohakubench.plans import Half, expected, run_plan
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.kernels.library import flash_attention
from kohakutpu.schedule import Band, Contraction, Elementwise, Operand, Request, Schedule, Tiling
from kohakutpu.schedule.lifetimes import Placed, conflicts
from kohakutpu.schedule.requantise import ToRows
from kohakutpu.views import Window

Case = tuple[list[Request], dict[str, Half], list[Operand]]
"""Requests, values of the host's operands, buffers that only parts name."""


def half(*shape: int, seed: int = 3) -> Half:
    """Normal values around 0.3."""
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * 0.3).astype(np.float16)


def given(*contractions: Contraction) -> dict[str, Half]:
    """Values of the operands the host holds."""
    return {o.name: half(*o.shape) for c in contractions for o in (c.a, c.b) if o.role == "in"}


def chain(name: str) -> Chain:
    """A pass over one operand: "softmax" over its rows, or "relu"; "mul" of two."""
    b = ChainBuilder()
    x = b.operand(0)
    if name == "relu":
        return b.chain([b.op("maximum", x, b.const(0.0))])
    if name == "mul":
        return b.chain([b.op("mul", x, b.operand(1))])
    e = b.op("exp2", b.op("sub", x, b.op("row_max", x)))
    return b.chain([b.op("mul", e, b.op("recip", b.op("row_sum", e)))])


def folded(name: str, shape: tuple[int, int], tiling: Tiling | None = None) -> Case:
    """A product of ``shape``, a pass over it, and a product that reads the pass."""
    m, n = shape
    z, y = Operand("z", "temp", shape), Operand("y", "temp", shape)
    first = Contraction(Operand("x", "in", (m, 64)), Operand("w", "in", (n, 64)), z, tiling)
    last = Contraction(y, Operand("v", "in", (16, n)), Operand("o", "out", (m, 16)))
    return [first, Elementwise(chain(name), (z,), (y,)), last], given(first, last), []


def joined(name: str, shape: tuple[int, int], tiling: Tiling | None = None) -> Case:
    """Two products of ``shape`` side by side in one buffer, and a pass over its rows."""
    m, n = shape
    whole = Operand("cat", "temp", (m, 2 * n))
    made = [
        Contraction(
            Operand(f"x{i}", "in", (m, 64)),
            Operand("w", "in", (n, 64)),
            Operand(f"c{i}", "temp", shape, of="cat", window=Window(1, 0, m, i * n, n)),
            tiling,
        )
        for i in range(2)
    ]
    passed = Elementwise(chain("relu"), (whole,), (Operand("o", "out", whole.shape),))
    folds = Elementwise(chain(name), (Operand("c", "in", shape),), (Operand("p", "out", shape),))
    return [*made, passed, folds], {**given(*made), "c": half(*shape, seed=5)}, [whole]


def attention(heads: int, queries: int, length: int, value: int = 64, **knobs: Any) -> Any:
    """A call of flash_attention with heads of 64, and of ``value`` for the values, over ``length`` keys."""
    q, k, v = half(heads, queries, 64), half(heads, length, 64, seed=4), half(heads, value, length, seed=5)
    return ktpu.call(flash_attention, q, k, v, **knobs)


def conversions(schedule: Schedule) -> tuple[int, int, int]:
    """Conversions of tiles into rows by the mover and by the cores, and products drained as rows."""
    moved = sum(isinstance(c, ToRows) for c in schedule.conversions)
    cores = sum(b.role == "relayout" for b in schedule.bands)
    return moved, cores, sum(isinstance(b, Band) and b.rows for b in schedule.bands)


def checked(case: Case, machine: dict[str, Any], plain: dict[str, Any], **options: Any) -> Schedule:
    """Run: every bit is that of the whole-array evaluation and of the machine ``plain``, and no bytes are shared."""
    requests, values, buffers = case
    schedule, got = run_plan(requests, values, machine, buffers=buffers, **options)
    _, other = run_plan(requests, values, plain, buffers=buffers, **options)
    want = expected(requests, values)
    assert got
    for name, bits in got.items():
        assert np.array_equal(bits, want[name].view(np.uint16)), name
        assert np.array_equal(bits, other[name]), name
    placed = [Placed(b.name, b.address, b.nbytes, schedule.lives[b.name]) for b in schedule.buffers.values()]
    assert conflicts(placed) == []
    return schedule

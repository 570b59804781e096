# SPDX-License-Identifier: Apache-2.0
"""Machines, requests and values that the tests of the planner share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.plans import Half, expected, run_plan
from kohakubench.programs import description
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.schedule import (
    Contraction,
    Elementwise,
    Operand,
    Request,
    Schedule,
    Tiling,
)
from kohakutpu.schedule.lifetimes import Placed, conflicts
from kohakutpu.views import Window

STAGE = 1 << 39
BASE = ("emit_fuse", "stage_l2", "vshuf_pred")
MOVER = description(2, cores=2, features=(*BASE, "xform_granule"), stage_bytes=2 << 20)
CORES = description(2, cores=2, features=BASE, stage_bytes=2 << 20)
BOTH = pytest.mark.parametrize("text", [MOVER, CORES], ids=["mover", "cores"])


def half(*shape: int, seed: int = 3, scale: float = 1.0) -> Half:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float16)


def value(name: str, shape: tuple[int, int], role: str = "temp", **more: Any) -> Operand:
    return Operand(name, role, shape, **more)


def check(requests: list[Request], values: dict[str, Half], text: dict[str, Any], **options: Any) -> Schedule:
    """Run, and compare every bit of every output with the whole-array evaluation of the requests."""
    schedule, got = run_plan(requests, values, text, **options)
    want = expected(requests, values)
    assert got
    for name, bits in got.items():
        assert np.array_equal(bits, want[name].view(np.uint16)), name
    sound(schedule)
    return schedule


def sound(schedule: Schedule) -> None:
    """No two buffers that live in one step share a byte."""
    placed = [Placed(b.name, b.address, b.nbytes, schedule.lives[b.name]) for b in schedule.buffers.values()]
    assert conflicts(placed) == []


def chain(text: str) -> Chain:
    """A few passes by name."""
    b = ChainBuilder()
    x = b.operand(0)
    match text:
        case "neg":
            return b.chain([b.op("neg", x)])
        case "add":
            return b.chain([b.op("add", x, b.operand(1))])
        case "softmax":
            e = b.op("exp2", b.op("sub", x, b.op("row_max", x)))
            return b.chain([b.op("mul", e, b.op("recip", b.op("row_sum", e)))])
        case "centre":
            return b.chain([b.op("sub", x, b.op("mul", b.op("row_sum", x), b.const(1 / 64)))])
    raise ValueError(text)


def batched(z: int, m: int, n: int, k: int, *, shared: str = "", tiling: Tiling | None = None) -> Contraction:
    """Z products; "a" or "b" is shared by all."""
    wa = None if shared == "a" else Window(z, 0, m, 0, k)
    wb = None if shared == "b" else Window(z, 0, n, 0, k)
    a = value("a", (m if shared == "a" else z * m, k), "in")
    b = value("b", (n if shared == "b" else z * n, k), "in")
    return Contraction(a, b, value("c", (z * m, n), "out"), tiling, wa, wb, batch=z)


def given(*contractions: Contraction, seed: int = 3) -> dict[str, Half]:
    """Values of the operands the host holds."""
    out = {}
    for c in contractions:
        for o in (c.a, c.b):
            if o.role == "in":
                out[o.name] = half(*o.shape, seed=seed, scale=0.3)
    return out


def folded(name: str, shape: tuple[int, int] = (32, 64), k: int = 64) -> tuple[list[Request], dict[str, Half]]:
    """A pass that reduces rows of a product, and a product that reads its result."""
    m, n = shape
    z, y, o = value("z", shape), value("y", shape), value("o", (m, 16), "out")
    first = Contraction(value("x", (m, k), "in"), value("w", (n, k), "in"), z)
    last = Contraction(y, value("v", (16, n), "in"), o)
    return [first, Elementwise(chain(name), (z,), (y,)), last], given(first, last)

# SPDX-License-Identifier: Apache-2.0
"""Blocks, windows and shared operands of a plan (docs/spec/compiler.md 5.1, 5.3, 5.6)."""

from __future__ import annotations

import random

import pytest

from kohakubench.programs import description, spec
from kohakutpu.errors import CompileError
from kohakutpu.program import Fill
from kohakutpu.schedule import (
    Band,
    Contraction,
    Request,
    Tiling,
    emit,
    plan,
)
from kohakutpu.schedule.requantise import ToRows
from kohakutpu.views import Window
from plan_requests import MOVER, batched, check, given, value

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("shared", ["", "a", "b"])
@pytest.mark.parametrize("tiling", [None, Tiling(2, 1, 1), Tiling(4, 3, 2)], ids=str)
def test_batch(shared: str, tiling: Tiling | None) -> None:
    """Three products of 16x24x64 in one band, an operand shared or not, chosen and named tilings."""
    c = batched(3, 16, 24, 64, shared=shared, tiling=tiling)
    schedule = check([c], given(c), MOVER)
    (band,) = schedule.bands
    assert isinstance(band, Band)
    assert len(list(band.instances())) == len(set(band.instances())) == band.grid[0] * band.grid[1]
    assert " batch=3" in band.text()


def test_resident_operand_of_a_block() -> None:
    """B stays in L1 across the row tiles of its own block: one fill a block, column and chunk."""
    c = batched(2, 32, 16, 64, tiling=Tiling(2, 2, 1))
    text = description(1)
    schedule = check([c], given(c), text)
    (band,) = schedule.bands
    assert isinstance(band, Band)
    assert band.resident == ("b",)
    assert list(band.instances())[:8] == [(mo, no) for no in (0, 1) for mo in (0, 1, 2, 3)]
    ((program,),) = emit(schedule, spec(text))
    fills = [i for i in program if isinstance(i, Fill) and i.side == "b"]
    assert len(fills) == 2 * 2 * 2


def test_joined_heads() -> None:
    """One accumulator sweeps the columns of four heads (docs/spec/compiler.md 13.3): A is [heads*L][Dv]."""
    heads, length, depth, width = 4, 8, 32, 20
    c = Contraction(
        value("a", (heads * length, depth), "in"),
        value("b", (width, heads * depth), "in"),
        value("c", (length, width), "out"),
        a_window=Window(heads, 0, length, 0, depth),
        join=heads,
    )
    schedule = check([c], given(c), MOVER)
    assert " join=4" in schedule.bands[0].text()


def random_blocks(seed: int) -> Contraction:
    """A contraction with windows, a batch and joined heads whose blocks a tiling can divide."""
    rng = random.Random(seed)
    z, h = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    m, n, k = 4 * rng.randint(1, 4), 4 * rng.randint(1, 4), 32 * rng.randint(1, 3)
    before = [4 * rng.randint(0, 2) for _ in range(4)]
    col = [32 * rng.randint(0, 2) for _ in range(4)]
    blocks_a, blocks_b = rng.choice([1, z * h]), rng.choice([1, z])
    a = value("a", (blocks_a * (before[0] + m + before[1]), col[0] + k + col[1]), "in")
    b = value("b", (blocks_b * (before[2] + n + before[3]), col[2] + h * k + col[3]), "in")
    wa = Window(blocks_a, before[0], m, col[0], k)
    wb = Window(blocks_b, before[2], n, col[2], h * k)
    return Contraction(a, b, value("c", (z * m, n), "out"), None, wa, wb, z, h)


@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed: int) -> None:
    """Rows and columns from the middle of operands, in blocks, shared and not, with and without heads."""
    c = random_blocks(seed)
    check([c], given(c, seed=seed), description(1 + seed % 3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_random_windows_long(seed: int) -> None:
    c = random_blocks(seed)
    check([c], given(c, seed=seed), description(1 + seed % 3))


BAD: list[tuple[Contraction, str]] = [
    (batched(2, 6, 8, 32), "blocks of 6 rows of a and 8 of b in a batch; pad them to a multiple of 4"),
    (batched(2, 8, 6, 32), "blocks of 8 rows of a and 6 of b in a batch; pad them to a multiple of 4"),
    (batched(2, 16, 8, 32, tiling=Tiling(3, 2, 1)), "gm = 3: 12 rows of a block of A do not divide 16; use a divisor"),
    (batched(2, 16, 8, 32, tiling=Tiling(2, 4, 1)), "gn = 4: 16 rows of a block of B do not divide 8; use a divisor"),
    (
        Contraction(
            value("a", (8, 96), "in"),
            value("b", (8, 48), "in"),
            value("c", (8, 8), "out"),
            a_window=Window(1, 0, 8, 0, 48),
        ),
        "nk = 1: 32 columns of a block do not divide 48; pad the block to a multiple of 32",
    ),
    (
        Contraction(
            value("a", (8, 128), "in"),
            value("b", (8, 64), "in"),
            value("c", (8, 8), "out"),
            Tiling(1, 1, 2),
            a_window=Window(1, 0, 8, 32, 64),
        ),
        "nk = 2: 64 columns of a block do not divide 32; use a divisor of 1 as nk",
    ),
    (
        Contraction(value("a", (8, 32), "in"), value("b", (8, 32), "in"), value("c", (8, 12), "out")),
        r"c \(8, 12\): its operands give \(8, 8\)",
    ),
    (
        Contraction(value("a", (8, 32), "in"), value("b", (8, 64), "in"), value("c", (8, 8), "out")),
        "1 x 32 columns of a meet 64 of b; K is the same on both",
    ),
    (
        Contraction(
            value("a", (8, 32), "in"),
            value("b", (8, 32), "in"),
            value("c", (8, 8), "out"),
            b_window=Window(3, 0, 3, 0, 32),
        ),
        r"b \(8, 32\) has no part \[3\*0:3, 0:32\]",
    ),
    (
        Contraction(
            value("a", (12, 32), "in"),
            value("b", (8, 32), "in"),
            value("c", (8, 8), "out"),
            a_window=Window(3, 0, 4, 0, 32),
            batch=2,
        ),
        "3 blocks of a; 2 are read, or 1 by all",
    ),
]


@pytest.mark.parametrize(("c", "message"), BAD, ids=[m[:30] for _, m in BAD])
def test_blocks_that_are_refused(c: Contraction, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        plan([c], spec(MOVER))


# -- shared operands --


def test_one_packing_for_all_readers() -> None:
    """Three products of one x, of different widths: the smallest order of all, x in memory once (5.6)."""
    x = value("x", (64, 256), "in")
    sizes = {"q": 256, "k": 64, "v": 16}
    requests: list[Request] = [
        Contraction(x, value(f"w{n}", (width, 256), "in"), value(n, (64, width), "out")) for n, width in sizes.items()
    ]
    alone = [plan([r], spec(MOVER)).bands[0].tiling for r in requests]  # type: ignore[union-attr]
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    tilings = [b.tiling for b in schedule.bands if isinstance(b, Band)]
    assert len({(t.gm, t.nk) for t in alone}) > 1
    assert {(t.gm, t.nk) for t in tilings} == {(min(t.gm for t in alone), min(t.nk for t in alone))}
    assert [b.name for b in schedule.buffers.values() if b.name.startswith("x")] == ["x"]


def test_named_tilings_that_disagree_get_copies() -> None:
    """Each tiling has its own copy; a product without a named tiling takes one that is there."""
    x, w = value("x", (32, 64), "in"), value("w", (32, 64), "in")
    requests: list[Request] = [
        Contraction(x, w, value("c", (32, 32), "out"), Tiling(4, 4, 1)),
        Contraction(x, value("u", (32, 64), "in"), value("d", (32, 32), "out"), Tiling(2, 4, 2)),
        Contraction(x, value("t", (32, 64), "in"), value("e", (32, 32), "out")),
    ]
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    copies = {n: b.layout for n, b in schedule.buffers.items() if (b.source or n) == "x"}
    assert copies == {"x": "mx:4x1:a", "x:mx:2x2:a": "mx:2x2:a"}
    third = schedule.bands[2]
    assert isinstance(third, Band)
    assert third.reads[0] in copies


def test_a_computed_operand_is_quantised_once_an_order() -> None:
    """Two named tilings of readers give two quantise items, a third reader of one of them none."""
    x, w = value("x", (32, 64), "in"), value("w", (64, 64), "in")
    h = value("h", (32, 64))
    requests: list[Request] = [Contraction(x, w, h, Tiling(4, 4, 1))]
    for name, tiling in (("c", Tiling(4, 4, 1)), ("d", Tiling(2, 4, 2)), ("e", Tiling(2, 4, 2))):
        requests.append(Contraction(h, value(f"w{name}", (32, 64), "in"), value(name, (32, 32), "out"), tiling))
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    assert [c.operand for c in schedule.conversions if not isinstance(c, ToRows)] == ["h:mx:4x1:a", "h:mx:2x2:a"]

# SPDX-License-Identifier: Apache-2.0
"""Lifetimes, tiers, coverage and split K of a plan (docs/spec/compiler.md 5.2, 5.4, 8)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from kohakubench.plans import Bits, Half, expected, run_plan, sum_chain
from kohakubench.programs import description, spec
from kohakutpu.errors import CompileError
from kohakutpu.schedule import (
    Band,
    Contraction,
    Elementwise,
    Request,
    Tiling,
    VectorBand,
    plan,
)
from kohakutpu.schedule.blocks import entries
from kohakutpu.views import Window
from plan_requests import BASE, BOTH, CORES, MOVER, STAGE, batched, chain, check, folded, given, half, sound, value

pytestmark = pytest.mark.unit

# -- attention --


def attention(heads: int = 2, length: int = 32, depth: int = 32, width: int = 64) -> list[Request]:
    """softmax(q k^T) v per head, joined and projected; q and k are computed, v transposed."""
    hl = heads * length
    x, wq, wk = value("x", (hl, width), "in"), value("wq", (depth, width), "in"), value("wk", (depth, width), "in")
    q, k, v = value("q", (hl, depth)), value("k", (hl, depth)), value("v", (heads * depth, length), "in")
    s, p, o = value("s", (hl, length)), value("p", (hl, length)), value("o", (hl, depth))
    y = value("y", (length, width), "out")
    rows = Window(heads, 0, length, 0, depth)
    return [
        Contraction(x, wq, q),
        Contraction(x, wk, k),
        Contraction(q, k, s, None, rows, rows, batch=heads),
        Elementwise(chain("softmax"), (s,), (p,)),
        Contraction(
            p, v, o, None, Window(heads, 0, length, 0, length), Window(heads, 0, depth, 0, length), batch=heads
        ),
        Contraction(o, value("wo", (width, heads * depth), "in"), y, a_window=rows, join=heads),
    ]


@BOTH
@pytest.mark.parametrize("options", [{}, {"reuse_temps": False}, {"clusters": 1, "cores": 1}, {"emit_fuse": False}])
def test_attention(text: dict[str, Any], options: dict[str, Any]) -> None:
    """Batched, softmaxed, joined: every bit, whatever the placement."""
    requests = attention()
    values = given(*(r for r in requests if isinstance(r, Contraction)))
    schedule = check(requests, values, text, **options)
    stack = {n: b for n, b in schedule.buffers.items() if b.role == "temp"}
    assert all(b.address >= STAGE for b in stack.values())
    assert schedule.staging_full == 0
    apart = sum(b.nbytes for b in stack.values())
    top = max(b.address + b.nbytes for b in stack.values()) - STAGE
    assert (top < apart) == options.get("reuse_temps", True)


# -- lifetimes and tiers --


def chained(seed: int) -> tuple[list[Request], dict[str, Half]]:
    """A random chain of products and passes, each reading one or two earlier values of one shape."""
    rng = random.Random(seed)
    m, n = 4 * rng.randint(1, 5), 16 * rng.randint(1, 4)
    known = [value("x", (m, n), "in")]
    requests: list[Request] = []
    for i in range(rng.randint(2, 6)):
        made = value(f"t{i}", (m, n))
        source = known[rng.randrange(len(known))] if i else known[0]
        kind = rng.choice(["product", "softmax", "neg", "add"]) if i else "neg"
        if kind == "product" and source.role != "in":
            requests.append(Contraction(source, value(f"w{i}", (n, n), "in"), made))
        elif kind == "add":
            requests.append(Elementwise(chain("add"), (source, known[-1]), (made,)))
            if source == known[-1]:
                requests[-1] = Elementwise(chain("neg"), (source,), (made,))
        else:
            requests.append(Elementwise(chain("softmax" if kind == "softmax" else "neg"), (source,), (made,)))
        known.append(made)
    last = value("y", (m, n), "out")
    requests.append(Elementwise(chain("add"), (known[-1], known[-2]), (last,)))
    values = given(*(r for r in requests if isinstance(r, Contraction)), seed=seed)
    values["x"] = half(m, n, seed=seed)
    return requests, values


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int) -> None:
    """Random chains on both engines, placed with and without reuse and with a small store: one result."""
    requests, values = chained(seed)
    want = expected(requests, values)["y"].view(np.uint16)
    small = description(1, cores=2, features=(*BASE, "xform_granule"), stage_bytes=4096)
    for text, options in ((MOVER, {}), (CORES, {"reuse_temps": False}), (small, {}), (CORES, {"fuse": "never"})):
        schedule, got = run_plan(requests, values, text, **options)
        assert np.array_equal(got["y"], want), options
        sound(schedule)


def test_reuse_needs_less() -> None:
    """A long chain of passes takes the room of two temps."""
    names = [value("x", (64, 64), "in"), *(value(f"t{i}", (64, 64)) for i in range(6)), value("y", (64, 64), "out")]
    requests: list[Request] = [Elementwise(chain("neg"), (a,), (b,)) for a, b in pairwise(names)]
    machine = spec(description(1, cores=1))
    spans = {}
    for reuse in (True, False):
        s = plan(requests, machine, reuse_temps=reuse)
        spans[reuse] = max(b.address + b.nbytes for b in s.buffers.values())
    assert spans == {True: 4 * 8192, False: 8 * 8192}
    check(requests, {"x": half(64, 64)}, description(1, cores=1))


def test_adjacent_values() -> None:
    """Members lie one after another and live together."""
    x = value("x", (16, 64), "in")
    a, b, c = (value(n, (16, 64)) for n in "abc")
    requests: list[Request] = [
        Elementwise(chain("neg"), (x,), (a,)),
        Elementwise(chain("softmax"), (a,), (c,)),
        Elementwise(chain("add"), (c, a), (b,)),
        Elementwise(chain("add"), (b, c), (value("y", (16, 64), "out"),)),
    ]
    schedule = check(requests, {"x": half(16, 64)}, CORES, adjacent=[("b", "a")])
    first, second = schedule.buffers["b"], schedule.buffers["a"]
    assert second.address == first.address + first.nbytes
    assert schedule.lives["a"].meets(schedule.lives["b"])
    for groups, message in (
        ([("b", "nobody")], "nobody has no buffer of its own"),
        ([("a", "b"), ("b", "c")], "b is in two ADJACENT groups"),
        ([("a",)], "names fewer than two buffers"),
    ):
        with pytest.raises(CompileError, match=message):
            plan(requests, spec(CORES), adjacent=groups)


def tiered(tier: str) -> tuple[list[Request], dict[str, Half]]:
    x, y = value("x", (64, 64), "in"), value("y", (64, 64), "out")
    t, u = value("t", (64, 64), tier=tier), value("u", (64, 64), tier=tier)
    return [
        Elementwise(chain("neg"), (x,), (t,)),
        Elementwise(chain("add"), (t, x), (u,)),
        Elementwise(chain("add"), (u, t), (y,)),
    ], {"x": half(64, 64)}


def test_tiers_of_the_author() -> None:
    """l2 is kept or refused with the sizes, dram is never proposed away; bits do not depend on it."""
    results: list[Bits] = []
    for tier in ("", "dram", "l2"):
        requests, values = tiered(tier)
        schedule, got = run_plan(requests, values, CORES)
        results.append(got["y"])
        places = [schedule.buffers[n].address >= STAGE for n in "tu"]
        assert places == {"": [True, False], "dram": [False, False], "l2": [True, True]}[tier]
    assert all(np.array_equal(results[0], r) for r in results)
    requests, _ = tiered("l2")
    small = spec(CORES).with_(stage_bytes=12288)
    with pytest.raises(CompileError, match=r"u: 8192 bytes do not fit; .* at once: t 8192, u 8192; place one of them"):
        plan(requests, small)
    with pytest.raises(CompileError, match="t: tier l2: machine hand2 has no staging store"):
        plan(requests, spec(CORES).with_(stage_bytes=0))


def test_proposals_fall_back() -> None:
    """What conversions make comes first; what does not fit goes to memory and is counted."""
    requests, values = folded("softmax")
    whole, want = run_plan(requests, values, MOVER)
    assert whole.staging_full == 0
    tight, got = run_plan(requests, values, {**MOVER, "stage_bytes": 4096})
    assert np.array_equal(got["o"], want["o"])
    staged = {n for n, b in tight.buffers.items() if b.address >= STAGE}
    assert staged
    assert staged < {n for n, b in whole.buffers.items() if b.address >= STAGE}
    assert tight.staging_full == len([n for n, b in whole.buffers.items() if b.address >= STAGE]) - len(staged)


# -- properties --


@st.composite
def contractions(draw: st.DrawFn) -> Contraction:
    """Batches, heads and splits of any legal size."""
    z, h, split = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 3]))
    m, n = (4 * draw(st.integers(1, 20)) - (0 if z > 1 else draw(st.integers(0, 3))) for _ in range(2))
    k = 32 * split * draw(st.integers(1, 4))
    wb = Window(z, 0, n, 0, h * k) if draw(st.booleans()) and n % 4 == 0 else None
    b = value("b", ((z if wb else 1) * n, h * k), "in")
    a = value("a", (z * h * m, k), "in")
    wa = Window(z * h, 0, m, 0, k) if z * h > 1 else None
    if z * h > 1 and m % 4:
        m -= m % 4 - 4
        a, wa = value("a", (z * h * m, k), "in"), Window(z * h, 0, m, 0, k)
    route = "memory" if split > 1 else ""
    return Contraction(a, b, value("c", (z * m, n), "out"), None, wa, wb, z, h, split, route)


@settings(max_examples=80, deadline=None)
@drawn(contractions(), st.integers(1, 2))
def test_every_element_once(c: Contraction, clusters: int) -> None:
    """Tiles cover every element once, each partial is there once, and every K chunk is read once."""
    schedule = plan([c], spec(CORES), clusters=clusters)
    sound(schedule)
    band = schedule.bands[0]
    assert isinstance(band, Band)
    rects = list(band.rects())
    counts = np.zeros((c.split, *c.c.shape), int)
    for r in rects:
        counts[r.ko, r.r0 : r.r1, r.c0 : r.c1] += 1
    assert (counts == 1).all()
    shapes = schedule.buffers["a"].shape, schedule.buffers["b"].shape
    size = band.tiling.gm * band.tiling.nk
    last = {key[:2] for key in band.instances()}
    for mo, no in last:
        keys = [(mo, no)] if c.split == 1 else [(mo, no, ko) for ko in range(c.split)]
        read = [at for key in keys for at, _ in entries(band, band.products[0], shapes, key)]
        assert len(set(read)) == len(read) == band.chunks * c.split
        assert all(at % size == 0 for at in read)


@settings(max_examples=30, deadline=None)
@drawn(st.integers(0, 1 << 20), st.booleans(), st.sampled_from([0, 4096, 2 << 20]))
def test_live_spans_never_intersect(seed: int, mover: bool, store: int) -> None:
    """Any chain of products and passes, any store."""
    requests, _ = chained(seed)
    sound(plan(requests, spec(MOVER if mover else CORES).with_(stage_bytes=store)))


# -- printed --


def test_printed_schedule_of_a_fold() -> None:
    """A product, its rows by the mover, a softmax, the next product."""
    requests, _ = folded("softmax", (16, 32), 32)
    assert plan(requests, spec(MOVER)).text().splitlines() == [
        "schedule for hand2, pass budget 64",
        "in x: mx:4x1:a 16x32 at 0x8000000000, 512 bytes",
        "in w: mx:4x1:b 32x32 at 0x0, 1024 bytes",
        "temp z: tile:1x2:4x4 16x32 at 0x8000000400, 1024 bytes",
        "temp z:flat: flat 16x32 at 0x8000000800, 1024 bytes",
        "temp y: flat 16x32 at 0x8000000400, 1024 bytes",
        "temp y:mx:2x1:a: mx:2x1:a 16x32 at 0x8000000800, 512 bytes",
        "in v: mx:4x1:b 16x32 at 0x8000000200, 512 bytes",
        "out o: tile:2x1:2x4 16x16 at 0x800, 512 bytes",
        "band MG contract 16x32x32 grid=1x2x1 tile=gm4,gn4,nk1 chunks=1 reads=x,w writes=z resident=- double=x,w "
        "tier=dram role=compute out=emit",
        "  dealt unit 0: 1, unit 1: 1",
        "band VC mul(exp2(sub(x0, row_max(x0))), recip(row_sum(exp2(sub(x0, row_max(x0)))))) 16x32 form=rows "
        "instances=1 steps=16 vl=32 l1=64 reads=z:flat writes=y role=compute",
        "  dealt unit 0: 1",
        "band MG contract 16x16x32 grid=2x1x1 tile=gm2,gn4,nk1 chunks=1 reads=y:mx:2x1:a,v writes=o resident=v "
        "double=y:mx:2x1:a,v tier=dram role=compute out=emit",
        "  dealt unit 0: 1, unit 1: 1",
        "relayout before band 1: z -> z:flat",
        "quantise before band 2: y -> y:mx:2x1:a",
        "note: z: FP16, bound unknown, saturates at 65504",
        "note: y: FP16, bound unknown, saturates at 65504",
        "note: o: FP16, bound unknown, saturates at 65504",
    ]


def test_printed_schedule_of_a_split_batch() -> None:
    """Blocks, batch and split with its route, and the pass that adds the partials."""
    b = batched(2, 8, 8, 64)
    c = Contraction(b.a, b.b, b.c, Tiling(1, 2, 1), b.a_window, b.b_window, 2, split=2, route="memory")
    assert plan([c], spec(CORES)).text().splitlines() == [
        "schedule for hand2, pass budget 64",
        "in a: mx:1x1:a 16x64 at 0x0, 1024 bytes",
        "in b: mx:2x1:b 16x64 at 0x800, 1024 bytes",
        "temp c:part0: tile:4x1:1x2 16x8 at 0x1800, 256 bytes",
        "temp c:part1: tile:4x1:1x2 16x8 at 0x2000, 256 bytes",
        "out c: tile:4x1:1x2 16x8 at 0x1000, 256 bytes",
        "band MG contract 16x8x64 grid=4x1x2 tile=gm1,gn2,nk1 chunks=1 reads=a,b writes=c:part0,c:part1 resident=b "
        "double=a,b tier=dram role=compute out=emit batch=2 split=2 route=memory a[2*0:8, 0:64] b[2*0:8, 0:64]",
        "  dealt unit 0: 4, unit 1: 4",
        "band VC add(x0, x1) 16x8 form=flat instances=1 steps=1 vl=128 l1=24 reads=c:part0,c:part1 writes=c "
        "role=reduce",
        "  dealt unit 0: 1",
        "note: c:part0: FP16, bound unknown, saturates at 65504",
        "note: c:part1: FP16, bound unknown, saturates at 65504",
        "note: c: FP16, bound unknown, saturates at 65504",
    ]


# -- split K --


@pytest.mark.parametrize("split", [2, 4])
def test_split_k_through_memory(split: int) -> None:
    """Partials in FP16 and one pass that adds them; printed, noted, and different from one accumulator."""
    c = Contraction(
        value("a", (24, 256), "in"),
        value("b", (20, 256), "in"),
        value("c", (24, 20), "out"),
        split=split,
        route="memory",
    )
    schedule = check([c], given(c), CORES)
    product, adding = schedule.bands
    assert isinstance(product, Band)
    assert isinstance(adding, VectorBand)
    assert f" split={split} route=memory" in product.text()
    assert (product.grid[2], adding.role, adding.reads) == (split, "reduce", product.writes)
    assert [n for n in schedule.notes if ":part" in n] == [
        f"c:part{i}: FP16, bound unknown, saturates at 65504" for i in range(split)
    ]
    plain = Contraction(c.a, c.b, c.c)
    assert not np.array_equal(expected([c], given(c))["c"], expected([plain], given(c))["c"])


def test_split_k_of_a_batch_feeds_an_epilogue() -> None:
    """The sum keeps the tiles of the product, so a pass behind it stays in their order."""
    b = batched(2, 16, 16, 128)
    z = value("z", (32, 16))
    c = Contraction(b.a, b.b, z, Tiling(2, 4, 1), b.a_window, b.b_window, 2, split=2, route="memory")
    schedule = check([c, Elementwise(chain("neg"), (z,), (value("y", (32, 16), "out"),))], given(c), CORES)
    assert schedule.buffers["y"].layout == schedule.buffers["z"].layout == "tile:4x1:2x4"


def test_splits_that_are_refused() -> None:
    base = batched(1, 8, 8, 128)

    def split(count: int, route: str, tiling: Tiling | None = None) -> Contraction:
        return Contraction(base.a, base.b, base.c, tiling, split=count, route=route)

    for c, message in (
        (split(2, "host"), "route 'host'; it is one of peer, core, memory"),
        (split(1, "memory"), "route memory without a split"),
        (split(2, "memory", Tiling(1, 1, 4)), "nk = 4: 1 chunks of K do not divide into 2 parts"),
        (split(3, "memory"), "chunks of K do not divide into 3 parts"),
    ):
        with pytest.raises(CompileError, match=message):
            plan([c], spec(CORES))


def test_sum_chain_is_the_order_of_the_partials() -> None:
    assert sum_chain(3).chain.text() == "add(add(x0, x1), x2)"

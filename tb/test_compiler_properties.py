# SPDX-License-Identifier: Apache-2.0
"""Properties of coverage, byte orders, lifetimes, rounds and artifacts (docs/spec/compiler.md 5.2, 6, 8.2, 10, 17).

The compiler's own checks are compared with counts made here one by one. ``byte_orders.json`` holds the SHA-256 of the
bytes of a fixed matrix in every order; ``python tb/test_compiler_properties.py`` prints what they are.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktpu
from kohakuabi import Artifact, Kick, Seed, command_count
from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.schedule.cover import Rect, check_cover, check_intervals
from kohakutpu.schedule.ir import Band, Schedule, VectorBand
from kohakutpu.schedule.layout import ChannelBias, Entry, Flat, MxEntry, Tile, from_key
from kohakutpu.schedule.layout_batch import Batched, Rows
from kohakutpu.schedule.layout_conv import ConvEntry, MxConv
from kohakutpu.schedule.lifetimes import Guard, Placed
from ktpu.diagnosis import unit_kinds
from random_deep import deep

pytestmark = pytest.mark.unit

TABLE = Path(__file__).with_name("byte_orders.json")
SEEDS = st.integers(0, 4000)

# ------------------------------------------------------------------ coverage


def rect(r0: int, r1: int, c0: int, c1: int, number: int) -> Rect:
    return Rect(number, 0, 0, r0, r1, c0, c1)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.lists(st.tuples(*[st.integers(0, 6)] * 2, *[st.integers(1, 6)] * 2), max_size=5),
    st.booleans(),
)
def test_cover_is_a_count(m: int, n: int, given_rects: list[tuple[int, ...]], tiled: bool) -> None:
    """Rectangles cover a matrix exactly if each starts inside it and every element is in one of them."""
    rects = [rect(r, r + h, c, c + w, i) for i, (r, c, h, w) in enumerate(given_rects)]
    if tiled:
        h, w = (given_rects[0][2:]) if given_rects else (2, 2)
        tiles = [(r, c) for r in range(0, m, h) for c in range(0, n, w)]
        rects = [rect(r, r + h, c, c + w, i) for i, (r, c) in enumerate(tiles)] + rects[1:2]
    count = Counter((i, j) for r in rects for i in range(r.r0, r.r1) for j in range(r.c0, r.c1))
    exact = all(count[i, j] == 1 for i in range(m) for j in range(n))
    inside = all(r.r0 < m and r.c0 < n for r in rects)
    try:
        check_cover((m, n), rects)
    except CoverageError:
        assert not (exact and inside)
    else:
        assert exact
        assert inside


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 12), st.lists(st.tuples(st.integers(-1, 12), st.integers(1, 5)), max_size=6))
def test_intervals_are_a_count(words: int, runs: list[tuple[int, int]]) -> None:
    """Runs write an image exactly if every word of it, and no other, is in one of them."""
    count = Counter(w for first, n in runs for w in range(first, first + n))
    try:
        check_intervals("y", words, runs)
    except CoverageError:
        assert count != Counter(range(words))
    else:
        assert count == Counter(range(words))


@lru_cache(maxsize=64)
def compiled(seed: int) -> ktpu.Compiled | None:
    """Program ``seed`` of :mod:`random_deep`, None if it is refused."""
    k = deep(seed)
    try:
        return ktpu.compile(k.call, k.machine, **k.options)
    except CompileError:
        return None


def places(band: VectorBand, k: int) -> Counter[int]:
    """Words of result ``k`` that the instances write, counted one by one."""
    store, column = band.stores[k], k - len(band.stores)
    out: Counter[int] = Counter()
    for number, offsets in enumerate(band.offsets):
        last = number == len(band.offsets) - 1
        walk = band.short[column] if band.short and last else store.drain
        at = [offsets[column]]
        for stride, bound in walk.dims:
            at = [a + stride * i for i in range(bound) for a in at]
        assert all(a % 32 == 0 for a in at)
        out.update(a // 32 for a in at)
    return out


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_programs_write_everything_once(seed: int) -> None:
    """Every element of a product, and every word of a pass, is written once; parts stay in their part."""
    made = compiled(seed)
    for band in made.schedule.bands if made else ():
        if isinstance(band, Band) and band.split == 1:
            m, n, _ = band.extents
            count = np.zeros((m, n), int)
            for r in band.rects():
                count[r.r0 : r.r1, r.c0 : r.c1] += 1
            assert (count == 1).all()
        elif isinstance(band, VectorBand) and band.stores[0].drain is not None:
            for k in range(len(band.stores)):
                target = band.targets[k] if band.targets else None
                want = range(band.words) if target is None else target.words(16).tolist()
                assert places(band, k) == Counter(want)


# ------------------------------------------------------------------ byte orders


def codes(*shape: int) -> npt.NDArray[np.float16]:
    """Every element another code, none of them zero."""
    count = math.prod(shape)
    assert count < 1 << 16
    return np.arange(1, count + 1, dtype=np.uint16).reshape(shape).view(np.float16)


small = st.integers(1, 4)
extents = st.tuples(st.integers(1, 70), st.integers(1, 150))


@st.composite
def matrix_orders(draw: st.DrawFn) -> tuple[Any, tuple[int, int]]:
    """An order of a matrix, and a shape."""
    shape, g, b = draw(extents), draw(small), draw(small)
    kind = draw(st.sampled_from(["flat", "entry", "tile", "bias", "rows"]))
    if kind == "flat":
        return Flat(), shape
    if kind == "entry":
        return Entry(g, b), shape
    if kind == "tile":
        return Tile.of(shape, g, b), shape
    if kind == "bias":
        return ChannelBias(g), (1, shape[1])
    least = Rows.of(shape, g, 4 * b).pitch
    return Rows.of(shape, g, 4 * b, least + draw(st.integers(0, 3))), shape


@settings(max_examples=150, deadline=None)
@given(matrix_orders())
def test_packing_loses_nothing(drawn: tuple[Any, tuple[int, int]]) -> None:
    """Packed bytes give the matrix back, have the stated size, and hold nothing else but zeros."""
    order, shape = drawn
    array = codes(*shape)
    raw = order.pack(array)
    assert len(raw) == order.nbytes(shape)
    assert np.array_equal(order.unpack(raw, shape).view(np.uint16), array.view(np.uint16))
    times = 4 if isinstance(order, ChannelBias) else 1
    held = Counter(np.frombuffer(raw, np.uint16).tolist())
    assert {c: n for c, n in held.items() if c} == dict.fromkeys(range(1, array.size + 1), times)
    if not isinstance(order, Rows):
        assert from_key(order.key) == order


@settings(max_examples=40, deadline=None)
@given(matrix_orders(), st.integers(1, 4), st.sampled_from([0, 5000]))
def test_packing_a_batch_loses_nothing(drawn: tuple[Any, tuple[int, int]], count: int, pad: int) -> None:
    """Blocks of any order lie apart, each as it is alone."""
    inner, shape = drawn
    order = Batched(inner, count, shape, pad)
    arrays = np.stack([codes(*shape) for _ in range(count)])
    raw = order.pack(arrays)
    assert len(raw) == order.nbytes((count, *shape))
    assert np.array_equal(order.unpack(raw, (count, *shape)).view(np.uint16), arrays.view(np.uint16))
    block = inner.pack(arrays[0])
    assert all(raw[i * order.stride :].startswith(block) for i in range(count))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 3), st.integers(0, 2), small, st.integers(1, 3))
def test_packing_an_image_loses_nothing(h: int, w: int, blocks: int, pad: int, gm: int, step: int) -> None:
    """Pixels come back, and everything between them is zero."""
    order, shape = ConvEntry(pad, gm, step), (h, w, 32 * blocks)
    array = codes(*shape)
    raw = order.pack(array)
    assert len(raw) == order.nbytes(shape)
    assert np.array_equal(order.unpack(raw, shape).view(np.uint16), array.view(np.uint16))
    held = Counter(np.frombuffer(raw, np.uint16).tolist())
    assert {c: n for c, n in held.items() if c} == dict.fromkeys(range(1, array.size + 1), 1)


@settings(max_examples=60, deadline=None)
@given(extents, small, small, st.sampled_from("ab"))
def test_quantised_entries_do_not_depend_on_their_order(shape: tuple[int, int], g: int, b: int, side: Any) -> None:
    """The same entries of 128 bytes, each quantised alone, in another order."""
    rng = np.random.default_rng(shape)
    array = rng.standard_normal(shape).astype(np.float16)
    order, one = MxEntry(g, b, side), MxEntry(1, 1, side)
    raw, want = order.pack(array), one.pack(array)
    assert len(raw) == order.nbytes(shape)
    entries = Counter(raw[i : i + 128] for i in range(0, len(raw), 128))
    zeros = one.pack(np.zeros((4, 32), np.float16))
    plain = Counter(want[i : i + 128] for i in range(0, len(want), 128))
    del entries[zeros], plain[zeros]
    assert entries == plain


def orders() -> dict[str, Callable[[], bytes]]:
    """Every byte order on a fixed matrix [22][75] or image [9][7][64], by key."""
    shape, image = (22, 75), (9, 7, 64)
    rng = np.random.default_rng(20)
    matrix = rng.standard_normal(shape).astype(np.float16)
    matrix[3, 5:9] = np.array([0.0, -0.0, 6e-8, -65504.0], np.float16)
    picture = rng.standard_normal(image).astype(np.float16)
    taps = [(dy, dx) for dy in range(3) for dx in range(3)]
    plain = [
        Flat(),
        *(Entry(g, b) for g, b in ((1, 1), (2, 1), (4, 2))),
        *(MxEntry(g, b, side) for g, b in ((1, 1), (4, 2)) for side in ("a", "b")),
        *(Tile.of(shape, gm, gn) for gm, gn in ((1, 1), (2, 4), (4, 8))),
        *(Rows.of(shape, gm, 4, pitch) for gm, pitch in ((1, None), (2, 7))),
        Batched(Tile.of((11, 75), 2, 4), 2, (11, 75), 5000),
    ]
    images = [ConvEntry(1, 2), ConvEntry(1, 4, 2), ConvEntry(0, 1, 3)]
    images += [MxConv.of(order, image, taps) for order in images[:2]]
    out: dict[str, Callable[[], bytes]] = {}
    for order in plain:
        array = matrix.reshape(2, 11, 75) if isinstance(order, Batched) else matrix
        out[order.key] = lambda order=order, array=array: order.pack(array)
    for gn in (1, 4):
        out[ChannelBias(gn).key] = lambda gn=gn: ChannelBias(gn).pack(matrix[:1])
    for order in images:
        out[order.key] = lambda order=order: order.pack(picture)
    return out


def test_byte_orders_are_those_of_the_table() -> None:
    """No byte of any order has moved since the table was made."""
    table = json.loads(TABLE.read_text())
    assert {key: sha256(pack()).hexdigest() for key, pack in orders().items()} == table
    assert len(set(table.values())) == len(table) >= 20


# ------------------------------------------------------------------ lifetimes


def touched(schedule: Schedule) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(read, written) of every step in the order they run: moves of the mover before each band, then the band."""
    out: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    held = schedule.buffers
    for number in range(len(schedule.bands) + 1):
        out += [((read,), (made,)) for c in schedule.conversions if c.band == number for read, made in c.steps()]
        for band in schedule.bands[number : number + 1]:
            out.append((tuple(n for n in band.reads if n in held), tuple(n for n in band.writes if n in held)))
    return out


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_no_two_live_buffers_share_bytes(seed: int) -> None:
    """Between first write and last touch a buffer has its bytes to itself, and nothing is read once overwritten."""
    made = compiled(seed)
    if made is None:
        return
    schedule = made.schedule
    steps = touched(schedule)
    for name, b in schedule.buffers.items():
        life = schedule.lives[name]
        mine = [i for i, (reads, writes) in enumerate(steps) if name in (*reads, *writes)]
        assert all(life.first <= i <= life.last for i in mine), name
        assert b.role == "temp" or (life.first, life.last) == (0, max(len(steps) - 1, 0)), name
    names = sorted(schedule.buffers)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            a, b = schedule.buffers[one], schedule.buffers[other]
            p, q = schedule.lives[one], schedule.lives[other]
            apart = a.address + a.nbytes <= b.address or b.address + b.nbytes <= a.address
            assert apart or p.last < q.first or q.last < p.first, (one, other)
    guard = Guard({n: Placed(n, b.address, b.nbytes, schedule.lives[n]) for n, b in schedule.buffers.items()})
    for reads, writes in steps:
        for name in reads:
            guard.read(name)
        for name in writes:
            guard.write(name)


# ------------------------------------------------------------------ rounds and artifacts


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_rounds_keep_every_limit(seed: int) -> None:
    """Staging slots, commands, credit and queues, counted from the steps themselves."""
    made = compiled(seed)
    if made is None:
        return
    machine, artifact = made.machine, made.artifact
    kinds, total = unit_kinds(artifact), 0
    for r in artifact.rounds():
        kicks = [s for s in r.steps if isinstance(s, Kick)]
        credit = sum(s.n for s in r.steps if isinstance(s, Seed))
        assert sum(k.n for k in kicks) == len(r.payloads) <= machine.stage_flits
        assert command_count(r.steps) <= machine.ncmd
        depth = min((machine.inst_depth[kinds[k.x, k.y]] for k in kicks), default=0)
        assert not kicks or len(kicks) < credit <= depth
        slots = [s for k in kicks for s in range(k.base, k.base + k.n)]
        assert sorted(slots) == list(range(len(r.payloads)))
        total += len(r.payloads)
    assert total == len(artifact.payloads)


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_artifacts_of_programs_survive_both_forms(seed: int) -> None:
    """Bytes, JSON and a file give back an equal artifact with the same digest, and any lost byte is noticed."""
    made = compiled(seed)
    if made is None:
        return
    artifact = made.artifact
    raw = artifact.to_bytes()
    with tempfile.TemporaryDirectory() as folder:
        artifact.save(Path(folder) / "program.ktpu")
        loaded = Artifact.load(Path(folder) / "program.ktpu")
    for again in (Artifact.from_bytes(raw), Artifact.from_json(artifact.to_json()), loaded):
        assert again.digest() == artifact.digest()
        assert (again.payloads, again.steps, again.outputs) == (artifact.payloads, artifact.steps, artifact.outputs)
        assert [(i.address, i.data) for i in again.images] == [(i.address, i.data) for i in artifact.images]
        assert again.to_bytes() == raw


if __name__ == "__main__":
    print(json.dumps({key: sha256(pack()).hexdigest() for key, pack in orders().items()}, indent=2))

# SPDX-License-Identifier: Apache-2.0
"""Tile choice, dealing, coverage, arena (docs/spec/compiler.md 5.2, 5.3, 8.1, 10.2)."""

from __future__ import annotations

import itertools
import os
import random
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohakubench.programs import description, spec
from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.cover import Rect, check_cover
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.ir import Band
from kohakutpu.schedule.tiles import Tiling, check, choose

pytestmark = pytest.mark.unit

MACHINE = spec(description())
Ints = npt.NDArray[np.int64]

SHAPES = int(os.environ.get("KOHAKU_SHAPES", "10000"))

# M, N, K, tiles, (gm, gn, nk) without occupancy, with occupancy on eight clusters: the table of 5.3
VECTORS = [
    (256, 256, 1024, 512, (16, 32, 8), (16, 32, 8)),
    (256, 256, 1024, 4096, (64, 64, 4), (16, 32, 8)),
    (300, 300, 300, 512, (16, 32, 2), (16, 32, 2)),
    (300, 300, 300, 4096, (32, 128, 2), (16, 32, 2)),
    (4096, 320, 2880, 512, (32, 16, 2), (32, 16, 2)),
    (1024, 1280, 1280, 4096, (64, 64, 4), (64, 64, 4)),
    (77, 1280, 2048, 512, (16, 32, 8), (16, 32, 8)),
    (32, 32, 128, 512, (8, 8, 4), (2, 4, 4)),
    (64, 64, 64, 512, (16, 16, 2), (4, 8, 2)),
]


@pytest.mark.parametrize("row", VECTORS, ids=str)
def test_tile_vectors(row: tuple[int, int, int, int, tuple[int, int, int], tuple[int, int, int]]) -> None:
    """Every row of the table of 5.3; one cluster equals the pass option off."""
    m, n, k, tiles, off, on = row
    machine = MACHINE.with_(tiles=tiles)
    assert choose(m, n, k, machine) == Tiling(*off)
    assert choose(m, n, k, machine, 8) == Tiling(*on)
    assert choose(m, n, k, machine, 1) == Tiling(*off)


def by_the_page(m: int, n: int, k: int, tiles: int, clusters: int | None) -> tuple[int, int, int]:
    """The choice written again from 5.3, in exact fractions."""
    best, found = None, (0, 0, 0)
    powers = [1, 2, 4, 8, 16, 32, 64, 128]
    for gm, gn, nk in itertools.product(powers, powers, powers):
        if gm * gn > tiles or gm * nk > 256 or gn * nk > 256:
            continue
        bm, bn, bk = 4 * gm, 4 * gn, 32 * nk
        instances = -(-m // bm) * -(-n // bn)
        padded = (m + -m % bm) * (n + -n % bn) * (k + -k % bk)
        score = Fraction(2 * gm * gn, gm + gn) * Fraction(m * n * k, padded)
        if clusters:
            score *= Fraction(instances, -(-instances // clusters) * clusters)
        key = (round(4096 * score), nk, -abs(gm - gn), -gm)
        if best is None or key > best:
            best, found = key, (gm, gn, nk)
    return found


def test_choice_is_the_maximum() -> None:
    """Random shapes: the chosen tiling is the page's maximum in exact arithmetic."""
    rng = random.Random(5)
    for _ in range(40):
        m, n, k = (rng.choice([rng.randint(1, 64), rng.randint(1, 2048)]) for _ in range(3))
        tiles, clusters = rng.choice([16, 512, 4096]), rng.choice([None, 1, 2, 8])
        got = choose(m, n, k, MACHINE.with_(tiles=tiles), clusters)
        want = by_the_page(m, n, k, tiles, clusters)
        assert (got.gm, got.gn, got.nk) == want, (m, n, k, tiles, clusters)


def keys_of(shapes: Ints, limits: tuple[int, int, int], clusters: Ints) -> tuple[Ints, Ints]:
    """All legal tilings (gm, gn, nk) and their keys (shapes, tilings, 4), a whole sheet at once."""
    tiles, bank_a, bank_b = limits
    grid = np.array(list(itertools.product(*[[1 << i for i in range(8)]] * 3)))
    gm, gn, nk = grid.T
    grid = grid[(gm * gn <= tiles) & (gm * nk <= bank_a) & (gn * nk <= bank_b)]
    gm, gn, nk = grid.T
    m, n, k = (shapes[:, [i]] for i in range(3))
    instances = -(-m // (4 * gm)) * -(-n // (4 * gn))
    padded = (m + -m % (4 * gm)) * (n + -n % (4 * gn)) * (k + -k % (32 * nk))
    u = clusters[:, None]
    score = 2 * gm * gn / (gm + gn) * ((m * n * k) / padded) * (instances / (-(-instances // u) * u))
    rest = [np.broadcast_to(v, score.shape) for v in (nk, -np.abs(gm - gn), -gm)]
    return grid, np.stack([np.round(4096 * score).astype(np.int64), *rest], axis=-1)


def brute_force(count: int, machine: MachineSpec) -> None:
    rng = np.random.default_rng(6)
    shapes = (2 ** rng.uniform(0, 12, (count, 3))).astype(np.int64)
    clusters = rng.integers(1, 9, count)
    grid, keys = keys_of(shapes, (machine.tiles, *machine.bank_entries), clusters)
    for shape, u, key in zip(shapes.tolist(), clusters.tolist(), keys, strict=True):
        best = np.lexsort(key.T[::-1])[-1]
        got = choose(*shape, machine, u)
        assert (got.gm, got.gn, got.nk) == tuple(grid[best]), (shape, u)
        assert check(got, machine) == got


MACHINES = [MACHINE, MACHINE.with_(tiles=4096), MACHINE.with_(tiles=16, l1_a=32, l1_b=64)]


@pytest.mark.parametrize("machine", MACHINES, ids=["512", "4096", "small"])
def test_choice_against_brute_force(machine: MachineSpec) -> None:
    """Random shapes on three clusters: limits respected, the maximum of the key."""
    brute_force(120, machine)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES, ids=["512", "4096", "small"])
def test_choice_against_brute_force_long(machine: MachineSpec) -> None:
    brute_force(SHAPES // 3, machine)


@pytest.mark.parametrize(
    ("tiling", "message"),
    [
        (Tiling(0, 1, 1), "gm = 0"),
        (Tiling(1, 1, -1), "nk = -1"),
        (Tiling(32, 17, 1), "gm\\*gn = 544 exceeds the 512"),
        (Tiling(16, 1, 17), "gm\\*nk = 272"),
        (Tiling(1, 16, 17), "gn\\*nk = 272"),
    ],
)
def test_named_tiling_is_checked(tiling: Tiling, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        check(tiling, MACHINE)


def test_limits_of_a_named_tiling() -> None:
    """The largest legal products pass; on a double-pumped cluster an odd nk above 1 does not."""
    for t in (Tiling(32, 16, 1), Tiling(16, 1, 16), Tiling(1, 16, 16), Tiling(1, 1, 3)):
        assert check(t, MACHINE) == t
    double = MACHINE.with_(k_per_issue=2)
    assert check(Tiling(1, 1, 1), double).nk == 1
    assert check(Tiling(1, 1, 2), double).nk == 2
    with pytest.raises(CompileError, match="nk = 3 is odd"):
        check(Tiling(1, 1, 3), double)


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, -2)])
def test_extent_below_one(shape: tuple[int, int, int]) -> None:
    with pytest.raises(CompileError, match="at least 1"):
        choose(*shape, MACHINE)
    with pytest.raises(CompileError, match="0 clusters"):
        choose(4, 4, 4, MACHINE, 0)


# -- dealing --


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40), st.integers(1, 8))
def test_deal(keys: set[tuple[int, int]], units: int) -> None:
    """Key i of the sorted keys runs on node i mod n, in whatever order they come."""
    listed = list(keys)
    dealt = deal(listed, range(units))
    assert list(dealt) == listed
    assert [dealt[k] for k in sorted(listed)] == [i % units for i in range(len(listed))]


def test_deal_to_nobody() -> None:
    with pytest.raises(ValueError, match="no node"):
        deal([1], [])


# -- coverage --


def rects(m: int, n: int, gm: int, gn: int, split: int = 1) -> list[Rect]:
    band = Band("MG", (m, n, 32), Tiling(gm, gn, 1), ("contract",), ("a", "b"), ("c",))
    return [Rect(r.mo, r.no, ko, r.r0, r.r1, r.c0, r.c1) for r in band.rects() for ko in range(split)]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(1, 5), st.integers(1, 5))
def test_bands_cover_exactly_once(m: int, n: int, gm: int, gn: int) -> None:
    check_cover((m, n), rects(m, n, gm, gn))


def test_split_k_with_its_reduction() -> None:
    check_cover((40, 40), rects(40, 40, 2, 2, 3), split_k=3, reductions=1)


def broken(change: str) -> tuple[list[Rect], dict[str, int]]:
    good = rects(40, 24, 2, 2)
    last = good[-1]
    match change:
        case "OVERSHOOT":
            return [*good, Rect(5, 0, 0, 40, 48, 0, 8)], {}
        case "GAP":
            return [r for r in good if (r.mo, r.no) != (2, 1)], {}
        case "OVERLAP":
            return [*good[:-1], Rect(last.mo, last.no, 0, last.r0 - 1, last.r1, last.c0, last.c1)], {}
        case "SPLIT":
            return rects(40, 24, 2, 2, 2)[:-1], {"split_k": 2, "reductions": 1}
        case _:
            return rects(40, 24, 2, 2, 2), {"split_k": 2, "reductions": 0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("OVERSHOOT", r"instance \(5,0\) starts at \(40,0\) outside 40x24"),
        ("GAP", r"element \(16, 8\) is never computed"),
        ("OVERLAP", r"element \(31, 16\) is computed 2 times"),
        ("SPLIT", r"instance \(4,2\) has partials 0: 1x; expected 0..1"),
        ("NOREDUCE", "2 partials are read by 0 reduction bands"),
    ],
)
def test_coverage_faults(change: str, message: str) -> None:
    """Each class of 5.2 is named with its first element or instance."""
    found, options = broken(change)
    with pytest.raises(CoverageError, match=f"{change}: {message}"):
        check_cover((40, 24), found, **options)


def test_more_coverage_faults() -> None:
    """A partial twice, a partial that is one too many, a negative start, two reductions."""
    good = rects(40, 24, 2, 2)
    for found, options, message in (
        ([*good, good[3]], {}, "SPLIT"),
        ([*good, Rect(0, 0, 1, 0, 8, 0, 8)], {}, "SPLIT"),
        ([*good, Rect(9, 9, 0, -4, 4, 0, 4)], {}, "OVERSHOOT"),
        (rects(40, 24, 2, 2, 2), {"split_k": 2, "reductions": 2}, "NOREDUCE"),
    ):
        with pytest.raises(CoverageError, match=message):
            check_cover((40, 24), found, **options)


# -- arena --


def test_arena_best_fit() -> None:
    """The smallest hole that fits, the lower address of two equal ones; freed spans coalesce."""
    arena = Arena(0, 20 * 2048)
    spans = [arena.alloc(2048 * n) for n in (1, 3, 1, 2, 1, 2, 1)]
    for i in (1, 3, 5):
        arena.free(spans[i])
    assert arena.alloc(2048 * 2).base == spans[3].base
    assert arena.alloc(1).base == spans[5].base
    assert arena.stats()["free_spans"] == 3
    arena.free(spans[2])
    assert arena.stats()["free_spans"] == 3
    assert arena.alloc(2048 * 4).base == spans[1].base


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9000), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_arena_never_overlaps(sizes: list[int], rng: random.Random) -> None:
    """Random allocations and releases: live spans disjoint and aligned, nothing lost at the end."""
    arena = Arena(4096, 1 << 20)
    live = []
    for size in sizes:
        live.append(arena.alloc(size))
        if rng.random() < 0.4:
            arena.free(live.pop(rng.randrange(len(live))))
        spans = sorted((s.base, s.base + max(1, s.nbytes)) for s in live)
        assert all(b >= a[1] for a, (b, _) in itertools.pairwise(spans))
        assert all(s.base % 2048 == 0 for s in live)
    for s in live:
        arena.free(s)
    assert arena.stats()["largest_free"] == 1 << 20
    assert arena.stats()["used"] == 0


def test_arena_refusals() -> None:
    arena = Arena(0, 4096)
    span = arena.alloc(1, "x")
    with pytest.raises(CompileError, match="y: 4096 bytes do not fit; the largest free span is 2048"):
        arena.alloc(2049, "y")
    arena.free(span)
    with pytest.raises(CompileError, match="not live"):
        arena.free(span)
    span = arena.alloc(1)
    arena.reset()
    with pytest.raises(CompileError, match="epoch 0 is not live in epoch 1"):
        arena.free(span)

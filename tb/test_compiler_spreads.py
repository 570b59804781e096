# SPDX-License-Identifier: Apache-2.0
"""Passes with periodic reads and results that are parts of a buffer (docs/spec/compiler.md 9.4 and 11, Spread)."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohakubench.chains import random_chain
from kohakubench.lane_rig import Case, Part, check
from kohakubench.programs import description, spec
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.errors import CannotFuse, CompileError, CoverageError
from kohakutpu.program import Dims, vector_program
from kohakutpu.schedule import Elementwise, Operand, VectorBand
from kohakutpu.schedule.lanes import (
    LaneOptions,
    covered,
    flat_band,
    lane_band,
    plain,
    resident_band,
    row_band,
    tile_band,
    work_of,
)
from kohakutpu.schedule.lanes_nest import Nest, region
from kohakutpu.schedule.layout import Tile
from kohakutpu.views import Spread, Window

pytestmark = pytest.mark.unit

MACHINE = spec(description(cores=4))
SHAPES = [(8, 64), (33, 128), (5, 16), (24, 80), (6, 256), (3, 1024), (64, 48)]


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float16).view(np.uint16)


def total(operands: int) -> Chain:
    """The sum of all operands."""
    b = ChainBuilder()
    y = b.operand(0)
    for k in range(1, operands):
        y = b.op("add", y, b.operand(k))
    return b.chain([y if operands > 1 else b.op("neg", y)])


def pair(x: np.ndarray, spread: Spread, shape: tuple[int, int]) -> Case:
    """x, read through ``spread``, plus an operand of the shape of the pass."""
    return Case(total(2), shape, [x, values(9, *shape)], [spread, None], [None])


# -- forms of a periodic read --


@pytest.mark.parametrize("count", range(1, 6))
@pytest.mark.parametrize("shape", SHAPES)
def test_row_repeat(shape: tuple[int, int], count: int) -> None:
    """Each row read ``count`` times before the next; in L1 it lies once."""
    m, n = shape
    band = check(pair(values(1, m, n), Spread(0, n, count, n), (m * count, n)), MACHINE, 3)
    assert band.reach[0] == (m * n // 16 if count > 1 else band.words)
    if count > 1 and n == 128:
        filled = band.streams[0].fill
        assert filled is not None
        assert filled.words < band.stores[0].drain.words


@pytest.mark.parametrize("rows", range(1, 8))
@pytest.mark.parametrize("width", [16, 80, 128, 384])
def test_per_group(rows: int, width: int) -> None:
    """Row 0 of every group for the group; the buffer ends with the last group's first row."""
    groups = 6
    exact = groups * rows - rows + 1
    case = pair(values(2, exact, width), Spread(0, width, rows, rows * width), (groups * rows, width))
    band = check(case, MACHINE, 2)
    if rows > 1:
        assert band.reach[0] == exact * width // 16


@pytest.mark.parametrize("table", [16, 48, 128, 512, 4096])
@pytest.mark.parametrize("elements", [16, 1000, 2048, 20_000])
def test_repeated(table: int, elements: int) -> None:
    """A whole buffer for any length, whole periods or not; the advance does not matter."""
    repeat = -(-elements // table)
    for advance in (0, table, 7):
        case = pair(values(3, 1, table), Spread(0, table, repeat, advance), (1, elements))
        band = check(case, MACHINE, 4)
        assert band.form == ("flat" if table == elements else "spread")
        if band.form == "spread":
            assert band.reach[0] == min(table // 16, -(-elements // 16))
            assert band.words == -(-elements // 16)


@pytest.mark.parametrize("row", [0, 1, 3, 10])
@pytest.mark.parametrize("width", [16, 80, 128])
def test_rows_from(row: int, width: int) -> None:
    """A pass over rows from ``row`` on of two offsets of one buffer, of any number of rows, prime ones too."""
    for rows in (1, 7, 31, 101):
        buffer = values(4, row + rows + 2, width)
        left, right = (Spread(r * width, rows * width, 1, rows * width) for r in (row, row + 2))
        case = Case(total(2), (rows, width), [buffer, buffer], [left, right], [None])
        band = check(case, MACHINE, 4)
        assert band.form == "spread"
        assert band.reach[1] == (row + 2 + rows) * width // 16


def test_long_pass_of_a_prime_length() -> None:
    """A prime number of steps is divided into equal RUNs and a shorter last one, which writes nothing behind it."""
    rows = 397
    buffer = values(4, rows + 5, 128)
    case = pair(buffer, Spread(5 * 128, rows * 128, 1, rows * 128), (rows, 128))
    band = check(case, MACHINE, 4)
    usual = band.stores[0].drain.words
    assert band.short
    assert band.short[-1].words < usual
    assert (len(band.offsets) - 1) * usual + band.short[-1].words == band.words == rows * 8


@pytest.mark.parametrize("rows", [397, 399, 401])
def test_shorter_run_over_a_repeated_row(rows: int) -> None:
    """A row that lies in L1 once is filled once by the shorter RUN, too."""
    case = pair(values(3, 2, 128), Spread(128, 128, rows, 0), (rows, 128))
    band = check(case, MACHINE, 4)
    assert band.streams[0].words == 8
    assert band.short[-1].words > 8
    assert band.short[0].words == 8


def softmax_step() -> Chain:
    """Attention, one block of keys: scores, running maximum and sum to weights, sum, maximum and correction."""
    b = ChainBuilder()
    scores, top, before = b.operand(0), b.operand(1), b.operand(2)
    m2 = b.op("maximum", top, b.op("row_max", scores))
    corr = b.op("exp2", b.op("sub", top, m2))
    p = b.op("exp2", b.op("sub", scores, m2))
    return b.chain([p, b.op("add", b.op("mul", before, corr), b.op("row_sum", p)), m2, corr])


@pytest.mark.parametrize("block", [32, 80, 128])
@pytest.mark.parametrize("span", [1, 6, 37])
def test_three_operands_and_four_results(span: int, block: int) -> None:
    """All eight descriptors, rows reduced, the running maximum one row for all; nothing behind a result is written."""
    arrays = [values(5, span, block), values(6, 2, block), values(7, span, block)]
    reads: list[Spread | None] = [None, Spread(block, block, span, 0), None]
    band = check(Case(softmax_step(), (span, block), arrays, reads, [None] * 4), MACHINE, 2)
    assert band.vl == block
    assert band.words == span * block // 16
    arrays[1] = values(6, span, block)
    check(Case(softmax_step(), (span, block), arrays, [None] * 3, [None] * 4), MACHINE, 2, exact=True)


@pytest.mark.parametrize("times", [2, 3, 4])
def test_correction_of_a_wider_accumulator(times: int) -> None:
    """acc*corr + part with corr [span][block] and acc [span*c][block]."""
    span, block = 24, 128
    b = ChainBuilder()
    chain = b.chain([b.op("fma", b.operand(0), b.operand(1), b.operand(2))])
    shape = (span * times, block)
    arrays = [values(1, *shape), values(2, span, block), values(3, *shape)]
    check(Case(chain, shape, arrays, [None, Spread(0, block, times, block), None], [None]), MACHINE, 4)


@pytest.mark.parametrize("rows", [2, 3, 8, 20])
def test_fold_with_periodic_operand(rows: int) -> None:
    """A row step that reads the mean of its group: row_sum((v - mean)/128 * (v - mean))."""
    b = ChainBuilder()
    d = b.op("sub", b.operand(0), b.operand(1))
    chain = b.chain([b.op("row_sum", b.op("mul", b.op("mul", d, b.const(1 / 128)), d))])
    shape = (rows * 5, 128)
    arrays = [values(1, *shape), values(2, rows * 4 + 1, 128)]
    case = Case(chain, shape, arrays, [None, Spread(0, 128, rows, rows * 128)], [None])
    band = check(case, MACHINE, 4)
    assert (band.vl, band.reach[1]) == (128, (rows * 4 + 1) * 8)


def test_fold_of_narrow_rows_over_longer_periods() -> None:
    """Rows of 64 that a table of four rows goes along with, and rows a table of half a row repeats in."""
    b = ChainBuilder()
    chain = b.chain([b.op("row_max", b.op("add", b.operand(0), b.operand(1)))])
    for take, repeat in ((256, 12), (32, 96)):
        arrays = [values(1, 48, 64), values(2, 1, take)]
        case = Case(chain, (48, 64), arrays, [None, Spread(0, take, repeat, 0)], [None])
        assert check(case, MACHINE, 2).vl == 64


# -- parts --

PARTS = [
    (Window(1, 0, 8, 0, 64), (8, 64)),
    (Window(1, 3, 8, 0, 64), (20, 64)),
    (Window(2, 4, 3, 0, 48), (20, 48)),
    (Window(3, 1, 7, 0, 128), (30, 128)),
    (Window(1, 0, 33, 32, 64), (33, 256)),
    (Window(2, 1, 12, 640, 320), (28, 960)),
    (Window(3, 0, 4, 16, 16), (15, 48)),
    (Window(1, 2, 6, 0, 8), (10, 8)),
    (Window(3, 4, 6, 0, 8), (36, 8)),
]


@pytest.mark.parametrize(("window", "shape"), PARTS)
def test_parts(window: Window, shape: tuple[int, int]) -> None:
    """Rows and columns of one to three blocks; what is no part of the result keeps its bytes."""
    inner = (window.blocks * window.rows, window.cols)
    case = Case(total(2), inner, [values(1, *inner), values(2, *inner)], [None, None], [Part(window, shape)])
    band = check(case, MACHINE, 2)
    assert band.writes == ("p0",)
    assert band.stores[0].name == "p0"


def test_part_beside_a_whole_result() -> None:
    """Two results, one a part; an operand read row by row; a fold into a part."""
    window, shape = Window(2, 1, 4, 16, 64), (10, 96)
    b = ChainBuilder()
    x, y = b.operand(0), b.operand(1)
    chain = b.chain([b.op("add", x, y), b.op("row_max", x)])
    case = Case(chain, (8, 64), [values(1, 8, 64), values(2, 4, 64)], [None, Spread(0, 64, 2, 64)], [None] * 2)
    for parts in ([Part(window, shape), None], [None, Part(window, shape)], [Part(window, shape)] * 2):
        check(replace(case, parts=list(parts)), MACHINE, 2)


def test_parts_are_covered() -> None:
    """A word of a part that is missing, written twice, or outside is found."""
    case = Case(total(1), (80, 64), [values(1, 80, 64)], [None], [Part(Window(2, 1, 40, 16, 64), (100, 96))])
    band = case.band(MACHINE, 4)
    covered(band, MACHINE)
    first, second = band.offsets[:2]
    with pytest.raises(CoverageError, match=r"OVERLAP: p0 word 7 is written twice"):
        covered(replace(band, offsets=np.array([first, first, *band.offsets[2:]])), MACHINE)
    with pytest.raises(CoverageError, match="GAP: p0 word"):
        covered(replace(band, offsets=band.offsets[:-1]), MACHINE)
    moved = (second[0], second[1] + 32)
    with pytest.raises(CoverageError, match=r"OVERSHOOT: p0 word \d+ is no part of the result"):
        covered(replace(band, offsets=np.array([first, moved, *band.offsets[2:]])), MACHINE)


# -- random cases --


def random_case(seed: int) -> Case:
    """Random operands, reads and parts over one shape."""
    rng = random.Random(seed)
    folds = rng.random() < 0.4
    n = 16 * rng.randint(1, 8) if folds else 16 * rng.choice([1, 2, 3, 5, 8, 9, 16, 40])
    groups, size, blocks = rng.randint(1, 8), rng.randint(1, 6), rng.randint(1, 3)
    m = groups * size * blocks
    arrays, reads = [], []
    for k in range(rng.randint(1, 3)):
        first = 16 * rng.choice([0, 0, 1, 7])
        spread, last = {
            "full": (None, m * n),
            "row": (None, n),
            "part": (Spread(first, m * n, 1, m * n), m * n),
            "group": (Spread(first, n, size, rng.choice([n, size * n, 3 * n])), 0),
            "table": (Spread(first, n * size, m, rng.choice([0, 5])), 0),
            "narrow": (Spread(first, 16, n // 16, n), 0),
        }[rng.choice(["full", "row", "part", "group", "table", "narrow"])]
        shape = (m, n) if last == m * n else (1, n)
        if spread is not None:
            shape = (1, spread.last(m * n) + 1)
        arrays.append(values(seed + k, *shape))
        reads.append(spread)
    chain = random_chain(rng, len(arrays), rng.randint(1, 5), folds=folds)
    parts: list[Part | None] = []
    for _ in chain.results:
        rows = m // blocks
        above, left, right = rng.randint(0, 3), 16 * rng.randint(0, 2), 16 * rng.randint(0, 2)
        window = Window(blocks, above, rows, left, n)
        part = Part(window, (blocks * (above + rows + rng.randint(0, 2)), left + n + right))
        parts.append(part if rng.random() < 0.4 else None)
    return Case(chain, (m, n), arrays, reads, parts)


@pytest.mark.parametrize("seed", range(60))
def test_random(seed: int) -> None:
    """Every bit, every word once, nothing read beyond the stated reach."""
    check(random_case(seed), MACHINE, 1 + seed % 4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 1100))
def test_random_long(seed: int) -> None:
    check(random_case(seed), MACHINE, 1 + seed % 4)


@settings(max_examples=150, deadline=None)
@given(
    dims=st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0, 1, 2, 5, 60])), min_size=1, max_size=4),
    size=st.integers(1, 64),
    step=st.integers(1, 8),
)
def test_nest(dims: list[tuple[int, int]], size: int, step: int) -> None:
    """A cut gives every RUN its words, from one walk and one base; every step finds them in L1 one after another."""
    nest = Nest.of(3, tuple(dims))
    whole = np.arange(np.prod([e for e, _ in dims]))
    plainly, rest = np.full(whole.shape, 3), whole
    for extent, stride in dims:
        plainly, rest = plainly + rest % extent * stride, rest // extent
    assert np.array_equal(nest.at(whole), plainly)
    cut = nest.cut(size)
    if cut is None:
        return
    r = region(cut, step, MACHINE)
    places = r.walk.places() // 32
    for first in range(0, len(whole), size):
        words = nest.at(np.arange(first, first + size))
        l1 = words[0] + places
        for s, offset in enumerate(r.offsets):
            want = words[s * step : (s + 1) * step]
            assert np.array_equal(l1[offset : offset + len(want)], want)
            assert offset + step <= r.words
    head = nest.head(size)
    assert head is not None
    assert head == cut


# -- programs --


def test_shorter_last_run() -> None:
    """Only the RUN that is shorter rewrites dimensions, behind all others of its core."""
    rows = 397
    case = pair(values(4, rows + 5, 128), Spread(5 * 128, rows * 128, 1, rows * 128), (rows, 128))
    band = case.band(MACHINE, 4)
    runs = tuple(tuple(32 * k for k in range(3)) for _ in range(2))
    programs = [list(vector_program(0, work_of(band, runs, ends=ends), MACHINE, 10_000)) for ends in (False, True)]
    added = [i for i in programs[1] if i not in programs[0]]
    assert len(programs[1]) == len(programs[0]) + 3
    assert added == [Dims(1 + k, 0, 32, w.words) for k, w in enumerate(band.short)]
    assert programs[1][-4:-1] == added
    with pytest.raises(CompileError, match="2 walks of a shorter run for 3 fills and drains"):
        vector_program(0, replace(work_of(band, runs), short=band.short[:2]), MACHINE, 128)
    longer = (*band.short[:2], replace(band.stores[0].drain, dims=((32, 256),)))
    with pytest.raises(CompileError, match="y0: 256 words are moved, its region holds"):
        vector_program(0, replace(work_of(band, runs), short=longer), MACHINE, 128)


def test_row_read_by_every_step_is_loaded_once() -> None:
    """One group in all RUNs: the repeated row is filled as one row and loaded ahead of the steps."""
    case = pair(values(1, 1, 128), Spread(0, 128, 64, 128), (64, 128))
    band = replace(case, reads=[Spread(0, 128, 32, 128), None], arrays=[values(1, 2, 128), case.arrays[1]])
    stream = check(band, MACHINE, 2).streams[0]
    assert stream.steady
    assert stream.fill is not None
    assert stream.fill.words == 8


def test_plain_reads() -> None:
    """A periodic read that reads a buffer of the pass's shape, or one row for all, is none."""
    e = pair(values(1, 8, 64), Spread(0, 512, 1, 512), (8, 64)).request()
    assert plain(e).reads == ()
    row = pair(values(1, 1, 64), Spread(0, 64, 8, 0), (8, 64))
    assert plain(row.request()).reads == ()
    assert check(row, MACHINE).form == "rows"
    shifted = pair(values(1, 9, 64), Spread(64, 512, 1, 512), (8, 64)).request()
    assert plain(shifted).reads == shifted.reads


def test_computed_values_have_no_padding() -> None:
    """A pass over a temp reads nothing behind it; one over an uploaded value may read its padding."""
    for role, words in (("in", 8 * 41), ("temp", 313), ("out", 313)):
        e = Elementwise(total(1), (Operand("x", role, (1, 5000)),), (Operand("y", "out", (1, 5000)),))
        band = lane_band(e, MACHINE, 1, LaneOptions())
        assert (band.words > 313) == (words > 313)
        assert band.reach == (band.words,)


# -- refusals --

X = values(1, 8, 64)
REFUSED: list[tuple[Case, str]] = [
    (pair(X, Spread(8, 64, 1, 64), (4, 64)), r"x0 is read as \(8\+64x1\+64\); .* whole words of 16 elements, pad"),
    (pair(X, Spread(0, 40, 2, 40), (8, 40)), "whole words of 16 elements, pad its rows"),
    (pair(X, Spread(0, 32, 2, 40), (4, 64)), "whole words of 16 elements, pad its rows"),
    (pair(X, Spread(0, 64, 3, 64), (16, 64)), "its period of 192 elements does not divide the pass of 1024, pad"),
    (pair(X, Spread(0, 64, 2, 64), (18, 64)), "up to element 575 for a pass of 1152; it has 512 elements, shorten"),
    (pair(X, Spread(64, 512, 1, 512), (8, 64)), "up to element 575 for a pass of 512; it has 512 elements"),
    (pair(X, Spread(0, 64, 2, -64), (4, 64)), "starts and advances by 0 or more"),
    (pair(X, Spread(0, 64, 0, 64), (4, 64)), "takes 1 or more at least once"),
    (
        Case(total(2), (8, 64), [X, values(2, 4, 64)], [Spread(64, 64, 8, 0), None], [None]),
        "x1 has the shape 4x64, the pass 8x64; an operand has the shape of the pass, or one row of a multiple of 16",
    ),
    (
        Case(total(1), (8, 64), [X], [None], [Part(Window(1, 4, 8, 0, 64), (10, 64))]),
        r"y0 is the part \[4:12, 0:64\] of p0 10x64, the pass writes 8x64; a part lies inside its parent",
    ),
    (
        Case(total(1), (8, 64), [X], [None], [Part(Window(1, 0, 9, 0, 64), (10, 64))]),
        "the pass writes 8x64; a part lies inside its parent and has the pass's shape",
    ),
    (
        Case(total(1), (8, 64), [X], [None], [Part(Window(1, 0, 8, 8, 64), (10, 96))]),
        r"y0 is the part \[0:8, 8:72\] of p0 10x96; a part is made of whole words of 16 elements, pad the columns",
    ),
]


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=[m[:45] for _, m in REFUSED])
def test_refusals(case: Case, message: str) -> None:
    """Named with the value, the limit and the fix."""
    with pytest.raises(CompileError, match=message):
        case.band(MACHINE)


def test_refused_rows() -> None:
    """Rows that are reduced are at most one step, of whole words."""
    b = ChainBuilder()
    chain = b.chain([b.op("row_max", b.operand(0))])
    for n in (40, 256):
        spread = Spread(16 * n, 8 * n, 1, 8 * n)
        with pytest.raises(CompileError, match=f"rows of {n} elements are reduced; .* at most 128, pad the row or"):
            Case(chain, (8, n), [values(1, 24, n)], [spread], [None]).band(MACHINE)


def test_refused_rows_of_a_plain_pass() -> None:
    """The same limits of a pass over rows as they lie."""
    b = ChainBuilder()
    chain = b.chain([b.op("row_max", b.operand(0))])
    for n, message in (
        (130, "rows of 130 elements; a row .* a multiple of 16, pad it"),
        (144, "rows of 144 elements are reduced; one reduction takes at most 128"),
    ):
        with pytest.raises(CompileError, match=message):
            Case(chain, (4, n), [values(1, 4, n)], [None], [None]).band(MACHINE)


def test_reads_that_no_run_fits() -> None:
    """Periods that no RUN of up to 256 words covers or divides together."""
    x, y = values(1, 1, 16 * 7 * 263), values(2, 1, 16 * 11 * 263)
    long = Spread(0, 16 * 7 * 263, 11, 0)
    case = Case(total(2), (77, 16 * 263), [x, y], [long, Spread(0, 16 * 11 * 263, 7, 0)], [None])
    assert case.band(MACHINE).stores[0].drain.words == 1 or case.band(MACHINE).stores[0].drain.words == 263
    many = [Spread(16, 16, 77 * 263, 0)] * 8
    with pytest.raises(CompileError, match=r"8 operands .* a band reads at most 7"):
        Case(total(8), (77, 16 * 263), [values(1, 1, 32)] * 8, list(many), [None]).band(MACHINE)


def test_part_without_a_window() -> None:
    e = Case(total(1), (8, 64), [X], [None], [None]).request()
    odd = replace(e, results=(Operand("y", "out", (8, 64), of="p"),))
    case = Case(total(1), (8, 64), [X], [None], [None])
    case.request = lambda: odd  # type: ignore[method-assign]
    with pytest.raises(CompileError, match="y is a part of p without a window or that buffer's shape; state both"):
        case.band(MACHINE)


def test_whole_buffers_only() -> None:
    """Passes over tiles and over whole buffers do not take periodic reads or parts."""
    e: Elementwise = pair(X, Spread(0, 64, 2, 64), (16, 64)).request()
    part = Case(total(1), (8, 64), [X], [None], [Part(Window(1, 0, 8, 0, 64), (10, 64))]).request()
    tile, options = Tile.of((16, 64), 2, 4), LaneOptions()
    for odd, message in ((e, r"x0 is read as \(0\+64x2\+64\), but the pass"), (part, "y0 is a part of p0, but")):
        with pytest.raises(CannotFuse, match=message):
            resident_band(odd, tile, ("x0",), (0,) * 8, MACHINE, options)
        with pytest.raises(CompileError, match=message):
            tile_band(odd, tile, MACHINE, 1, options)
        with pytest.raises(CompileError, match=message):
            row_band(odd, MACHINE, 1, options)
        with pytest.raises(CompileError, match=message):
            flat_band(odd, 64, MACHINE, 1, options)


def test_printed() -> None:
    """The printed form names the parent and the form."""
    case = Case(total(1), (8, 64), [X], [None], [Part(Window(1, 0, 8, 16, 64), (10, 96))])
    band = case.band(MACHINE)
    assert isinstance(band, VectorBand)
    assert band.text() == (
        "band VC neg(x0) 8x64 form=spread instances=1 steps=4 vl=128 l1=64 reads=x0 writes=p0 role=compute"
    )

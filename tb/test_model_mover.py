# SPDX-License-Identifier: Apache-2.0
"""Memory mover of the model against a word-by-word witness: walks and modes (docs/spec/memory.md 12)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohakubench import scale
from kohakubench.mover_rig import (
    DRAM_BYTES,
    DST,
    SRC,
    STAGE,
    STAGE_BYTES,
    WORD,
    Pair,
    ctrl,
    index_vector,
    longer,
    random_move,
    random_walk,
    words,
)
from kohakubench.mover_witness import philox_word
from kohakutpu.isa import mover as isa
from kohakutpu.isa.codec import EncodingError
from kohakutpu.isa.generated import MoverFault as F
from kohakutpu.isa.generated import MoverTransform
from kohakutpu.model import prng
from kohakutpu.model.walker import Dimension, Walker
from kohakutpu.walks import Dim, Walk, contiguous

pytestmark = pytest.mark.unit


# ------------------------------------------------------------------ walkers


def test_walker_against_a_grid() -> None:
    """Six dimensions of distinct prime counts with strides of both signs, cut anywhere: the numpy grid."""
    counts, strides = (2, 3, 5, 7, 11, 13), (-64, 4096, -32, 0, 96, 1 << 20)
    walker = Walker(base=1 << 35)
    walker.ndim = 6
    walker.dims = [Dimension(c, s, 1 + d % 2, d - 3) for d, (c, s) in enumerate(zip(counts, strides, strict=True))]
    walker.axis_base, walker.extent = [4, -2], [20, 40]
    grid = np.indices(counts).reshape(6, -1)
    address = (1 << 35) + np.tensordot(strides, grid, 1)
    axis = [b + sum((d - 3) * grid[d] for d in range(6) if d % 2 == a) for a, b in enumerate((4, -2))]
    valid = (axis[0] >= 0) & (axis[0] < 20) & (axis[1] >= 0) & (axis[1] < 40)
    assert walker.length() == len(address) == 30030
    assert 0 < valid.sum() < len(valid)
    for first, n in ((0, 30030), (1, 1), (12345, 6789), (30029, 1)):
        got, good = walker.part(first, n)
        assert np.array_equal(got, address[first : first + n])
        assert np.array_equal(good, valid[first : first + n])


def test_walker_sums_do_not_wrap() -> None:
    walker = Walker(base=(1 << 40) - 32, ndim=6)
    walker.dims = [Dimension(65535, (1 << 31) - 1, 1, 32767) for _ in range(6)]
    last, _ = walker.part(walker.length() - 1, 1)
    assert last[0] == (1 << 40) - 32 + 6 * 65534 * ((1 << 31) - 1)
    walker.dims = [Dimension(65535, -(1 << 31)) for _ in range(6)]
    assert walker.part(walker.length() - 1, 1)[0][0] == (1 << 40) - 32 - 6 * 65534 * (1 << 31)


# ------------------------------------------------------------------ moves


@pytest.mark.parametrize("seed", range(scale(20, 200)))
def test_random_moves(seed: int) -> None:
    """Fifty random legal moves each, between and inside both tiers, in another mesh too."""
    rng = random.Random(seed)
    mesh = seed % 4
    pair = Pair(seed, mesh=mesh)
    m = mesh << 36
    # index vectors stand behind their source region and are small enough that no row leaves memory
    index = np.random.default_rng(seed).integers(0, 300, 1024, dtype=np.uint32)
    for _ in range(50):
        source, destination = rng.sample([m, m | 0x1_0000, m | STAGE, m | STAGE | 0x1_0000], 2)
        pair.store(source + (1 << 15), index.tobytes())
        pair.run(random_move(rng, source, destination))
    assert pair.w.moves == 50


@settings(max_examples=scale(150, 3000), deadline=None)
@given(st.data())
def test_raw_register_writes(data: st.DataObject) -> None:
    """Any sequence of register writes, legal or not, ends the same on both sides."""
    edges = [0, 32, DRAM_BYTES - 64, DRAM_BYTES, (1 << 36) + 64, 1 << 38, STAGE | 1 << 32, (1 << 40) - 32]
    base = st.one_of(
        st.integers(0, 500).map(lambda n: SRC + WORD * n),
        st.integers(0, 500).map(lambda n: DST + WORD * n),
        st.sampled_from([*edges, STAGE | STAGE_BYTES - 96, SRC + 8]),
    )
    small = st.sampled_from((0, 1, 2, 3, 4, 8))
    walker = st.integers(0, 1)
    write = st.one_of(
        st.builds(
            lambda w, b, n, i, m: isa.write("HDR", walker=w, base=b, ndim=n, xform_id=i, xform_mode=m),
            *(walker, base, st.sampled_from((0, 1, 1, 2, 3, 7)), st.integers(0, 3), st.integers(0, 3)),
        ),
        st.builds(
            lambda w, i, c, s: isa.write("DIM", walker=w, index=i, count=c, stride=s),
            *(walker, st.sampled_from((0, 0, 1, 2, 6)), small, st.sampled_from((0, 32, 32, 128, -32, 4096, 8))),
        ),
        st.builds(lambda a, s: isa.write("AXIS", axis=a, step=s), st.integers(0, 3), st.integers(-2, 2)),
        st.builds(
            lambda w, a, b, e: isa.write("WINDOW", walker=w, axis=a, base=b, extent=e),
            *(walker, st.integers(0, 1), st.integers(-2, 2), st.sampled_from((0, 0, 0, 3))),
        ),
        st.builds(lambda a, c: isa.write("INDEX", addr=a, count=c), base, st.sampled_from((0, 1, 9, 2049))),
        st.builds(lambda v: isa.write("SEED", seed=v), st.integers(0, (1 << 64) - 1)),
        st.builds(lambda v: isa.write("IMM", imm=v), st.integers(0, (1 << 32) - 1)),
        st.builds(lambda p, n: isa.write("GATHER", pitch=p, words=n), st.sampled_from((0, 32, 1 << 31)), small),
        st.builds(lambda f, n: isa.write("CLEAR", fault=f, nonfinite=n), st.integers(0, 1), st.integers(0, 1)),
        st.tuples(st.sampled_from((0x48, 0x58, 0x78)), st.integers(0, (1 << 64) - 1)),
    )
    pair = Pair(granule=data.draw(st.booleans()), filled=1 << 14)
    # a source in the staging store could overlap the destination: such moves leave bytes open
    for _ in range(3):
        pair.send(data.draw(st.lists(write, min_size=4, max_size=14)))
        tiers = [w.base >> 39 for w in pair.w.walkers]
        mode = data.draw(st.integers(0, 7))
        if tiers[0] == tiers[1] and mode in (0, 2, 5):
            mode = 4
        pair.run([ctrl(mode, data.draw(st.sampled_from((0, 1, 2, 2, 2, 3))))], fault=None)


def test_word_transpose_and_broadcast() -> None:
    pair = Pair()
    source = Walk(SRC, (Dim(8, 32), Dim(4, 8 * 32)))
    pair.run(isa.copy(source, contiguous(DST, 32)))
    before = words(pair, SRC, 32)
    assert words(pair, DST, 32) == [before[8 * r + c] for c in range(8) for r in range(4)]
    pair.run(isa.copy(Walk(SRC, (Dim(3, 0), Dim(2, 32))), contiguous(DST, 6)))
    assert words(pair, DST, 6) == before[:2] * 3
    assert pair.m.agent.counts["dram"] == [38, 0]


def test_padding_and_windows() -> None:
    """A 3 x 4 picture with a border of one: source bounded on both axes, negative axis bases."""
    pair = Pair()
    source = Walk(SRC - 5 * 32, (Dim(5, 4 * 32, 1, 1), Dim(6, 32, 2, 1)), ((-1, 3), (-1, 4)))
    pair.run(isa.copy(source, contiguous(DST, 30), pad=0x1234, ewidth=1))
    pad = int("1234" * 16, 16)
    inside, got = words(pair, SRC, 12), words(pair, DST, 30)
    want = [inside[4 * (r - 1) + c - 1] if 0 < r < 4 and 0 < c < 5 else pad for r in range(5) for c in range(6)]
    assert got == want
    for width, text in ((0, "34" * 32), (2, "abcd1234" * 8)):
        pair.run(isa.copy(source, contiguous(DST, 30), pad=0xABCD1234, ewidth=width))
        assert words(pair, DST, 1) == [int(text, 16)]
    # both walkers bounded: the destination skips what lies outside its own window
    kept = words(pair, DST, 8)
    target = Walk(DST, (Dim(8, 32, 1, 1),), ((-2, 4), (0, 0)))
    pair.run(isa.copy(contiguous(SRC, 8), target))
    assert words(pair, DST, 8) == [*kept[:2], *words(pair, SRC + 64, 4), *kept[6:]]
    # extent 0 leaves an axis unbounded, however large its value
    pair.run(isa.copy(contiguous(SRC, 4), Walk(DST, (Dim(4, 32, 1, 32767),), ((-32768, 0), (0, 0)))))


def test_flags_and_reserved_bits_change_nothing() -> None:
    """Every burst cap with and without coalescing, and every ignored bit of every register."""
    pair = Pair()
    want = None
    for flags in range(256):
        writes = [w for w in isa.copy(contiguous(SRC, 40), Walk(DST, (Dim(5, 480), Dim(8, 32)))) if w[0]]
        pair.run([*writes, (0, flags << 8 | 1 << 16 | 1 << 3 | (1 << 63) - (1 << 17))])
        got = pair.m.read_mem(DST, 2400)
        want = want or got
        assert got == want
    noisy = {0x10: 0xF878_0000_0000_000E, 0x18: 0xFFF << 52, 0x20: ~0x3FFFF & (1 << 64) - 1, 0x28: 0x3FFF_FFFF << 34}
    pair.run([(o, v | noisy.get(o, 0)) for o, v in isa.copy(contiguous(SRC + 32, 40), contiguous(DST, 40))])
    pair.send([(o | 7, v) for o, v in isa.copy(contiguous(SRC, 40), contiguous(DST, 40))])
    pair.compare()
    assert pair.m.read_mem(DST, 1280) == pair.m.read_mem(SRC, 1280)


@pytest.mark.parametrize(("width", "text"), [(0, "ef" * 32), (1, "beef" * 16), (2, "deadbeef" * 8)])
def test_fill(width: int, text: str) -> None:
    pair = Pair()
    pair.run(isa.fill(contiguous(DST, 5), 0xDEADBEEF, ewidth=width))
    assert words(pair, DST, 5) == [int(text, 16)] * 5
    assert pair.m.agent.counts == {"dram": [0, 0], "stage": [0, 5]}


# ------------------------------------------------------------------ generate

PHILOX = [
    (0, 0, "074944b373a459f5ea2362496ad0c5ec9b00dbd8bc57ac4ce169c58d6627e8d5"),
    (0x0123456789ABCDEF, 0x3000, "31ce76227c6edfe5dbfed4cea879e1fd9bbe9c0a98f22d768a6853d2ac9b17bd"),
    (0x0123456789ABCDEF, 0x3020, "a971abab1f3215a038e9c177645bad8e9756ea6bad48d81b4e2c70cdc0da8f7d"),
    (0x0123456789ABCDEF, 0x80_0000_0000, "2a19900e499c169485286fbffd8bf43d3541816af6b2ed80f6998be487582655"),
    (1, 0x20_0000_1000, "aacfab22059478cd8571dfde2b2f555d322f2a16c3463b4ac8ed575507bfe038"),
]


@pytest.mark.parametrize(("seed", "address", "text"), PHILOX)
def test_generator_table(seed: int, address: int, text: str) -> None:
    got = prng.words(seed, np.array([address]))
    assert got[0][::-1].tobytes().hex() == text
    assert philox_word(seed, address) == int(text, 16)
    pair = Pair(mesh=address >> 36 & 3)
    pair.run(isa.generate(contiguous(address, 1), seed))
    assert words(pair, address, 1) == [int(text, 16)]


def test_generator_is_invariant_under_splits() -> None:
    whole, parts = Pair(), Pair()
    whole.run(isa.generate(contiguous(DST, 200), 99))
    for first, n in ((130, 70), (0, 1), (1, 129)):
        parts.run(isa.generate(contiguous(DST + 32 * first, n), 99))
    assert words(whole, DST, 200) == words(parts, DST, 200)
    assert len(set(words(whole, DST, 200))) == 200


# ------------------------------------------------------------------ gather


def test_gather_rows_of_two_words() -> None:
    pair = Pair()
    index_vector(pair, 0x9000, [4, 0, 4, 31, 7])
    pair.run(isa.gather(SRC, 0x9000, 5, contiguous(DST, 10), pitch=96, words=2))
    want = [w for row in (4, 0, 4, 31, 7) for w in words(pair, SRC + 96 * row, 2)]
    assert words(pair, DST, 10) == want
    assert pair.m.agent.counts["dram"] == [11, 0]


@pytest.mark.parametrize("count", [1, 8, 9, 2048])
def test_gather_counts(count: int) -> None:
    pair = Pair()
    index_vector(pair, 0x9000, [(n * 37) % 64 for n in range(count)])
    pair.run(isa.gather(SRC, 0x9000, count, contiguous(DST, count), pitch=32, words=1))
    assert pair.m.agent.counts["dram"] == [count + (count + 7) // 8, 0]


def test_gather_indices_at_the_end_of_the_range() -> None:
    pair = Pair()
    index_vector(pair, 0x9000, [0xFFFF_FFFF] * 2)
    pair.run(isa.gather(SRC, 0x9000, 2, contiguous(DST, 2), pitch=0, words=1))
    done = words(pair, DST, 2)
    # sums of 64 bits, of 52 bits and inside 40 bits
    for pitch in (0xFFFF_FFE0, 1 << 20, 32):
        pair.run(isa.gather(SRC, 0x9000, 2, contiguous(DST, 2), pitch=pitch, words=1), F.F_RANGE)
        assert pair.m.agent.faults[-1].addr == (SRC + 0xFFFF_FFFF * pitch) % (1 << 40)
    assert words(pair, DST, 2) == done


def test_gather_counts_skipped_elements() -> None:
    pair = Pair()
    index_vector(pair, 0x9000, [3, 5, 7])
    target = Walk(DST, (Dim(6, 32, 1, 1),), ((-3, 3), (0, 0)))
    pair.run(isa.gather(SRC, 0x9000, 3, target, pitch=64, words=2))
    assert words(pair, DST + 96, 3) == [
        *words(pair, SRC + 64 * 5 + 32, 1),
        *words(pair, SRC + 64 * 7, 2),
    ]


# ------------------------------------------------------------------ software side


def test_builder_refuses_what_would_fault() -> None:
    with pytest.raises(EncodingError, match="source walk has 3 elements, the destination 4"):
        isa.copy(contiguous(0, 3), contiguous(64, 4))
    with pytest.raises(EncodingError, match="0 rows of 1 words"):
        isa.gather(0, 0, 0, contiguous(0, 1), pitch=0, words=1)
    with pytest.raises(EncodingError, match="9 elements"):
        isa.gather(0, 0, 4, contiguous(0, 9), pitch=0, words=2)
    with pytest.raises(EncodingError, match="transform 3 does not exist"):
        isa.transform(contiguous(0, 8), contiguous(0, 1), 3)
    with pytest.raises(EncodingError, match="1 entries of 8 and 1 words"):
        isa.transform(contiguous(0, 9), contiguous(0, 2), 1)
    with pytest.raises(EncodingError, match="8 destination elements are needed, there are 2"):
        isa.transform(contiguous(0, 8), contiguous(0, 2), MoverTransform.GRANULE, 1)
    with pytest.raises(EncodingError, match="7 dimensions"):
        isa.fill(Walk(0, (Dim(1, 0),) * 7), 0)
    with pytest.raises(EncodingError, match=r"MV_DIM.count = 65536"):
        isa.fill(Walk(0, (Dim(65536, 32),)), 0)


def test_long_contiguous_walks() -> None:
    for count in (1, 65535, 65536, 65536 * 3, 3 * 5 * 7 * 11 * 13 * 17 * 19):
        walk = contiguous(64, count)
        assert walk.elements == count
        walker = Walker(64, len(walk.dims), [Dimension(d.count, d.stride) for d in walk.dims])
        at, _ = walker.part(count - 1, 1)
        assert at[0] == 64 + 32 * (count - 1)
    with pytest.raises(ValueError, match="move a tail separately"):
        contiguous(0, 65537)
    with pytest.raises(ValueError, match=r"contiguous\(0\)"):
        contiguous(0, 0)


def test_example_moves_of_the_page() -> None:
    """The two programs the page prints are what the builder makes, but for the windows it adds."""
    copy = isa.copy(contiguous(0x10_0000, 64), contiguous(0x20_0000, 64))
    page = ["1000_0100_0000", "200_0400", "0", "0", "2", "1000_0200_0001", "200_0401", "0", "1", "3"]
    assert [v for o, v in copy if o not in (0x40, 0)] == [int(t.replace("_", ""), 16) for t in page]
    assert copy[-1] == (0, 0x1_0808)
    quantise = isa.transform(contiguous(0x10_0000, 24), contiguous(STAGE, 3, 128), isa.QUANTISE, 1)
    values = [v for o, v in quantise if o in (0x10, 0x18, 0)]
    assert values == [0x0080_9000_0100_0000, 0x200_0180, 0x1800_0000_0001, 0x800_0031, 0x1_080D]


def test_helpers_of_this_file() -> None:
    """Random walks stay inside their region and cover one another, else the comparisons above mean little."""
    rng = random.Random(3)
    for _ in range(300):
        walk = random_walk(rng, 0x4000, 0x2000)
        walker = Walker(walk.base, len(walk.dims), [Dimension(d.count, d.stride) for d in walk.dims])
        at, _ = walker.part(0, walker.length())
        assert at.min() >= 0x4000
        assert at.max() + 32 <= 0x6000
        other = random_walk(rng, 0, 0x2000)
        assert longer(other, walk).elements >= walk.elements

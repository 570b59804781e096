# SPDX-License-Identifier: Apache-2.0
"""Faults of the mover of the model, and how a round tells them (docs/spec/memory.md 12.6)."""

from __future__ import annotations

import pytest

from kohakuabi.steps import Move as Step
from kohakubench.mover_rig import (
    DRAM_BYTES,
    DST,
    SRC,
    STAGE,
    STAGE_BYTES,
    Pair,
    ctrl,
    index_vector,
    words,
)
from kohakutpu.isa import mover as isa
from kohakutpu.isa.generated import MemFault as M
from kohakutpu.isa.generated import MoverFault as F
from kohakutpu.isa.generated import MoverMode
from kohakutpu.walks import Dim, Walk, contiguous

pytestmark = pytest.mark.unit


def with_ctrl(writes: isa.Writes, mode: int, ewidth: int = 1) -> list[tuple[int, int]]:
    return [*writes[:-1], ctrl(mode, ewidth)]


def bad_dim(walker: int) -> list[tuple[int, int]]:
    return [isa.write("DIM", walker=walker, index=6, count=1, stride=0), isa.write("AXIS")]


def raw_walk(walker: int, base: int, ndim: int) -> tuple[int, int]:
    return isa.write("HDR", walker=walker, base=base, ndim=ndim)


COPY = isa.copy(contiguous(SRC, 8), contiguous(DST, 8))
XFORM = isa.transform(contiguous(SRC, 24), contiguous(DST, 3, 128), isa.QUANTISE)
GATHER = isa.gather(SRC, 0x9000, 4, contiguous(DST, 8), pitch=64, words=2)

AT_GO = {
    "ewidth": (with_ctrl(COPY, MoverMode.COPY, 3), F.F_EWIDTH),
    "ewidth_before_mode": (with_ctrl(COPY, 7, 3), F.F_EWIDTH),
    "transpose": (with_ctrl(COPY, MoverMode.TRANSPOSE), F.F_MODE),
    "mode_6": (with_ctrl(COPY, 6), F.F_MODE),
    "mode_7": (with_ctrl(COPY, 7), F.F_MODE),
    "mode_before_walk": ([*COPY[:-1], raw_walk(1, DST, 0), ctrl(1)], F.F_MODE),
    "occupant": ([*XFORM[:-1], isa.write("HDR", walker=0, base=SRC, ndim=1, xform_id=3), ctrl(5)], F.F_XFORM),
    "occupant_15": ([*XFORM[:-1], isa.write("HDR", walker=0, base=SRC, ndim=7, xform_id=15), ctrl(5)], F.F_XFORM),
    "ndim_0": ([*COPY[:-1], raw_walk(1, DST, 0), ctrl(0)], F.F_WALK),
    "ndim_7": ([*COPY[:-1], raw_walk(0, SRC, 7), ctrl(0)], F.F_WALK),
    "fill_ndim_7": ([*COPY[:-1], raw_walk(1, DST, 7), ctrl(4)], F.F_WALK),
    "index_6": ([*COPY[:-1], *bad_dim(0), ctrl(0)], F.F_WALK),
    "index_6_destination": ([*COPY[:-1], *bad_dim(1), ctrl(3)], F.F_WALK),
    "gather_no_words": ([*GATHER[:-1], isa.write("GATHER", pitch=64, words=0), ctrl(2)], F.F_WALK),
    "gather_walk_before_index": (
        [*GATHER[:-1], isa.write("GATHER"), isa.write("INDEX", addr=0x9000, count=0), ctrl(2)],
        F.F_WALK,
    ),
    "gather_no_index": ([*GATHER[:-1], isa.write("INDEX", addr=0x9000, count=0), ctrl(2)], F.F_IDXLEN),
    "gather_2049": ([*GATHER[:-1], isa.write("INDEX", addr=0x9000, count=2049), ctrl(2)], F.F_IDXLEN),
}


@pytest.mark.parametrize("name", AT_GO)
def test_faults_before_any_access(name: str) -> None:
    writes, fault = AT_GO[name]
    pair = Pair()
    pair.run(writes, fault)
    assert pair.m.agent.counts == {"dram": [0, 0], "stage": [0, 0]}
    assert pair.m.agent.fault_count == 0
    pair.run(COPY)
    assert (pair.w.moves, pair.w.sticky) == (1, 1)
    pair.send([isa.write("CLEAR", fault=1)])
    pair.compare()
    assert pair.w.sticky == 0


def test_unused_source_is_not_checked() -> None:
    """FILL and GENERATE do not care for the source, GATHER only for its base."""
    pair = Pair()
    index_vector(pair, 0x9000, [1, 2, 3, 4])
    pair.send([raw_walk(0, SRC, 7), *bad_dim(0)])
    pair.run(isa.fill(contiguous(DST, 2), 1))
    pair.run(isa.generate(contiguous(DST, 2), 1))
    gathered = [w for w in GATHER if w[0] not in (0x10, 0x18, 0x20) or w[1] & 1]
    pair.run([raw_walk(0, SRC, 0), *bad_dim(0), *gathered])
    pair.run(COPY)


def test_a_bad_dimension_marks_until_the_next_header() -> None:
    pair = Pair()
    pair.run([*COPY[:-1], *bad_dim(0), ctrl(0)], F.F_WALK)
    pair.run([ctrl(0)], F.F_WALK)
    pair.run([raw_walk(1, DST, 1), ctrl(0)], F.F_WALK)
    pair.run([raw_walk(0, SRC, 1), ctrl(0)])


SMALL = Walk(SRC, (Dim(8, 32),))
END = DRAM_BYTES - 4 * 32
AFTER_FOUR: dict[str, tuple[isa.Writes, F, M]] = {
    "destination_range": (isa.copy(SMALL, contiguous(END, 8)), F.F_RANGE, M.M_RANGE),
    "staging_range": (isa.copy(SMALL, contiguous(STAGE | STAGE_BYTES - 128, 8)), F.F_RANGE, M.M_RANGE),
    "source_range": (isa.copy(contiguous(END, 8), contiguous(DST, 8)), F.F_RANGE, M.M_RANGE),
    "bit_38": (isa.copy(SMALL, Walk(STAGE | 96, (Dim(8, -32),))), F.F_RANGE, M.M_RSVD),
    "far_offset": (isa.copy(SMALL, Walk(DST, (Dim(2, 1 << 30), Dim(4, 32)))), F.F_RANGE, M.M_RANGE),
    "below_zero": (isa.fill(Walk(96, (Dim(8, -32),)), 0), F.F_RANGE, M.M_RANGE),
    "destination_align": (isa.copy(SMALL, Walk(DST, (Dim(2, 136), Dim(4, 32)))), F.F_ALIGN, M.M_NONE),
    "source_align": (isa.copy(Walk(SRC, (Dim(2, 136), Dim(4, 32))), contiguous(DST, 8)), F.F_ALIGN, M.M_NONE),
    "source_ended": (
        (*isa.walk_writes(0, contiguous(SRC, 4)), *isa.walk_writes(1, contiguous(DST, 8)), ctrl(0)),
        F.F_WALK,
        M.M_NONE,
    ),
    "row_missing": (
        (*GATHER[:-1], isa.write("INDEX", addr=0x9000, count=2), ctrl(2)),
        F.F_IDXLEN,
        M.M_NONE,
    ),
}


@pytest.mark.parametrize("name", AFTER_FOUR)
def test_earlier_elements_are_written(name: str) -> None:
    """A fault at the fifth element: four are written, the move ends, the next one runs."""
    writes, fault, code = AFTER_FOUR[name]
    pair = Pair()
    index_vector(pair, 0x9000, [1, 2, 3, 4])
    pair.run(writes, fault)
    assert pair.m.mover.last is not None
    assert pair.m.mover.last.elements == 4
    assert [e.code for e in pair.m.agent.faults] == ([code] if code else [])
    assert pair.m.agent.fault_count == int(code != 0)
    pair.run(COPY)


def test_a_walk_into_another_mesh() -> None:
    """Downwards over the border of mesh 1: the fifth element belongs to mesh 0."""
    pair = Pair(mesh=1)
    m = 1 << 36
    pair.run(isa.copy(contiguous(m | SRC, 8), Walk(m | 96, (Dim(8, -32),))), F.F_RANGE)
    pair.run(isa.copy(Walk(m | 96, (Dim(8, -32),)), contiguous(m | DST, 8)), F.F_RANGE)
    assert [(e.code, e.addr) for e in pair.m.agent.faults] == [(M.M_MESH, m - 32)] * 2
    assert words(pair, m | DST, 4) == words(pair, m | 0, 4)[::-1]


CLASSES = [
    (1 << 38, M.M_RSVD),
    (1 << 36, M.M_MESH),
    (STAGE | 3 << 36, M.M_MESH),
    (STAGE | 1 << 32, M.M_APER),
    (DRAM_BYTES, M.M_RANGE),
    (STAGE | STAGE_BYTES, M.M_RANGE),
]


@pytest.mark.parametrize(("address", "code"), CLASSES)
@pytest.mark.parametrize("role", ["source", "destination", "index", "entry source", "entry destination"])
def test_every_class_in_every_role(role: str, address: int, code: M) -> None:
    pair = Pair()
    at = contiguous(address, 8)
    writes = {
        "source": isa.copy(at, contiguous(DST, 8)),
        "destination": isa.copy(contiguous(SRC, 8), at),
        "index": isa.gather(SRC, address, 8, contiguous(DST, 8), pitch=32, words=1),
        "entry source": isa.transform(at, contiguous(DST, 1), isa.QUANTISE),
        "entry destination": isa.transform(contiguous(SRC, 8), at, isa.QUANTISE),
    }[role]
    pair.run(writes, F.F_RANGE)
    value, _ = pair.m.host_read(pair.m.register_address("MEM_FAULT"))
    assert value == address << 24 | 2 << 4 | code
    assert pair.m.host_read(pair.m.register_address("MEM_DROP"))[0] == 1


def test_precedence_at_one_element() -> None:
    """Destination alignment, destination class, source alignment, source class."""
    pair = Pair()
    odd, outside = SRC + 4, DRAM_BYTES
    for to, at, fault in (
        (odd, odd, F.F_ALIGN),
        (outside, odd, F.F_RANGE),
        (outside + 4, outside, F.F_ALIGN),
        (DST, odd, F.F_ALIGN),
        (DST, outside, F.F_RANGE),
        (DST, outside + 4, F.F_ALIGN),
    ):
        pair.run(isa.copy(contiguous(at, 1), contiguous(to, 1)), fault)
    # a skipped element is not looked at, a padded one only at its destination
    bound = ((-1, 1), (0, 0))
    skipped = Walk(odd, (Dim(1, 0),), bound)
    pair.run(isa.copy(contiguous(outside, 1), skipped))
    pair.run(isa.copy(Walk(outside + 4, (Dim(1, 0),), bound), contiguous(DST, 1), pad=7))
    pair.run(isa.copy(Walk(outside + 4, (Dim(1, 0),), bound), contiguous(odd, 1), pad=7), F.F_ALIGN)


def test_short_source_under_a_skipped_destination() -> None:
    pair = Pair()
    source, target = contiguous(SRC, 2), Walk(DST, (Dim(3, 32, 1, 1),), ((-2, 1), (0, 0)))
    pair.run([*isa.walk_writes(0, source), *isa.walk_writes(1, target), ctrl(0)], F.F_WALK)
    target = Walk(DST, (Dim(3, 32, 1, 1),), ((0, 2), (0, 0)))
    pair.run([*isa.walk_writes(0, source), *isa.walk_writes(1, target), ctrl(0)], F.F_WALK)
    assert pair.m.mover.last is not None
    assert pair.m.mover.last.elements == 2


@pytest.mark.parametrize("at", ["source", "destination", "index"])
def test_bus_errors(at: str) -> None:
    pair = Pair()
    index_vector(pair, 0x9000, [1, 2, 3, 4])
    pair.fail({"source": SRC + 64, "destination": 0x8_0040, "index": 0x9000}[at])
    target = contiguous(0x8_0000, 8)
    if at == "index":
        pair.run(isa.gather(SRC, 0x9000, 4, target, pitch=64, words=2), F.F_AXI)
    else:
        pair.run(isa.copy(contiguous(SRC, 8), target), F.F_AXI)
    assert pair.m.agent.faults[0].code == M.M_BUS
    pair.run(isa.generate(contiguous(DST, 3), 5))


# ------------------------------------------------------------------ rounds


def test_a_round_tells_how_its_moves_ended() -> None:
    """A fault of any move fails the round; the next round starts with the sticky bit cleared."""
    pair = Pair()
    bad = isa.copy(contiguous(1 << 38, 1), contiguous(DST, 1))
    good = pair.m.run_round([Step(COPY), Step(isa.fill(contiguous(DST, 1), 9))], [])
    assert (good.failed, good.moves, good.mover_fault, good.mover_sticky) == (False, 2, F.F_NONE, False)
    assert good.counters == {"dram": (8, 0), "stage": (0, 9)}
    for steps, last in (((bad, COPY), F.F_NONE), ((COPY, bad), F.F_RANGE)):
        done = pair.m.run_round([Step(w) for w in steps], [])
        assert (done.failed, done.moves, done.mover_fault, done.mover_sticky) == (True, 1, last, True)
        assert {(e.code, e.addr) for e in done.mem_faults} == {(M.M_RSVD, 1 << 38)}
    assert not pair.m.run_round([Step(COPY)], []).failed

# SPDX-License-Identifier: Apache-2.0
"""Transform slot of the mover of the model (docs/spec/memory.md 13)."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kohakubench.mover_rig import (
    DRAM_BYTES,
    DST,
    SRC,
    STAGE,
    Pair,
    ctrl,
    words,
)
from kohakutpu.isa import mover as isa
from kohakutpu.isa.generated import MoverFault as F
from kohakutpu.model.numerics import Layout, quantise_entries
from kohakutpu.walks import Dim, Walk, contiguous

pytestmark = pytest.mark.unit

COPY = isa.copy(contiguous(SRC, 8), contiguous(DST, 8))
XFORM = isa.transform(contiguous(SRC, 24), contiguous(DST, 3, 128), isa.QUANTISE)


def lane_codes() -> np.ndarray:
    """The known-answer entry of 13.1: element (k - 15) * 0.125 * (lane + 1)."""
    k, lane = np.arange(32), np.arange(4)
    return ((k - 15) * 0.125 * (lane[:, None] + 1)).astype("<f2")


KNOWN = {
    0: """973a955b373064973a955b3730649332854af6efe2973a955b37306479818589
          cfaf772ebe7e00cfaf772ebe7e00cdab771ebe7e00cfaf772ebe7e0079818589
          081c58e2454c9c081c58e2454c9c081c58f2458d1e081c58e2454c9c79818589
          40913ab5cc9ab940913ab5cc9ab942954ac60d1bbb40913ab5cc9ab979818589""",
    1: """972e4cb9d3a64ea54a852ab56a55b366bd9b972ddcc182fe0c99316479818589
          cf9f367d7af56bddbb76ee5cb8f2ebd7af5f3e7cf9f9f3e7c000000079818589
          08102040e1c387162c58b1c3878e24489122a54b153264d193870f1c79818589
          40810a048912a44e9d4a756ad62b5cb982e64c9a326ad5bb572e5db979818589""",
}


@pytest.mark.parametrize("packing", [0, 1])
def test_known_answer_entry(packing: int) -> None:
    pair = Pair()
    pair.store(SRC, lane_codes().tobytes())
    pair.run(isa.transform(contiguous(SRC, 8), contiguous(DST, 1), isa.QUANTISE, packing))
    assert words(pair, DST, 4) == [int(text, 16) for text in KNOWN[packing].split()]


@pytest.mark.parametrize("packing", [0, 1, 14, 15])
@pytest.mark.parametrize("seed", range(3))
def test_strided_sources_and_separate_entries(packing: int, seed: int) -> None:
    """A gathered source, entries that cross 4 KiB, several chunks of the model's own."""
    rng = random.Random(100 * seed + packing)
    pair = Pair(seed)
    source = Walk(SRC + 0x2000, (Dim(2, -0x1000), Dim(3, 0x400), Dim(4, 64), Dim(2, 32)))
    target = Walk(DST + 32 * rng.randint(0, 9), (Dim(2, 0x1000 - 64), Dim(3, 160)))
    pair.run(isa.transform(source, target, isa.QUANTISE, packing))


def test_many_entries_and_counters() -> None:
    pair = Pair()
    pair.run(isa.transform(contiguous(0, 2048), contiguous(DST, 300, 128), isa.QUANTISE, 1))
    assert pair.m.agent.counts == {"dram": [2048, 0], "stage": [0, 1024]}
    raw = np.frombuffer(pair.m.read_mem(0, 65536), dtype=np.uint8).reshape(-1, 256)
    assert pair.m.read_mem(DST, 32768) == quantise_entries(raw, Layout.B).tobytes()


def test_identity_and_granule() -> None:
    pair = Pair()
    pair.run(isa.transform(contiguous(SRC, 12), contiguous(DST, 3, 160), isa.IDENTITY, 9))
    pair.run(isa.transform(contiguous(SRC, 64), contiguous(DST, 16, 128), isa.GRANULE))
    assert pair.m.read_mem(DST + 40, 8) == pair.m.read_mem(SRC + 32 + 8 * 1, 8)
    assert pair.m.read_mem(DST + 8, 8) == pair.m.read_mem(SRC + 32, 8)
    # twice is the identity, also when the destination counts words
    back = Walk(STAGE, (Dim(16, 128), Dim(4, 32)))
    pair.run(isa.transform(contiguous(DST, 64), back, isa.GRANULE, 1))
    assert pair.m.read_mem(STAGE, 2048) == pair.m.read_mem(SRC, 2048)
    pair.run(isa.transform(contiguous(SRC, 16), Walk(DST, (Dim(4, 32), Dim(4, 1024))), isa.GRANULE, 1))
    plain = Pair(granule=False)
    plain.run(isa.transform(contiguous(SRC, 4), contiguous(DST, 1), isa.GRANULE), F.F_XFORM)


def test_build_without_a_bank() -> None:
    pair = Pair()
    machine = type(pair.m.mover)(pair.m.agent, bank=False)
    for offset, value in XFORM:
        machine.write(offset, value)
    assert machine.fault == F.F_MODE


def entry_faults() -> dict[str, tuple[list[tuple[int, int]], F, int]]:
    """Moves of three entries, what ends them, and how many entries are written."""
    source, target = contiguous(SRC, 24), contiguous(DST, 3, 128)
    bound = ((0, 2), (0, 0))
    short = ((0, 19), (0, 0))

    def raw(src: Walk, dst: Walk, occupant: int = isa.QUANTISE, mode: int = 0) -> list[tuple[int, int]]:
        return [*isa.walk_writes(0, src, occupant, mode), *isa.walk_writes(1, dst), ctrl(5)]

    return {
        "partial entry": (raw(contiguous(SRC, 19), target), F.F_WALK, 2),
        "few entries": (raw(source, contiguous(DST, 2, 128)), F.F_WALK, 2),
        "few entries and partial": (raw(contiguous(SRC, 17), contiguous(DST, 2, 128)), F.F_WALK, 2),
        "padded source": (raw(Walk(SRC, (Dim(24, 32, 1, 1),), short), target), F.F_XPAD, 2),
        "skipped entry": (raw(source, Walk(DST, (Dim(3, 128, 1, 1),), bound)), F.F_XPAD, 2),
        "source align": (raw(Walk(SRC, (Dim(2, 516), Dim(16, 32))), contiguous(DST, 4, 128)), F.F_ALIGN, 2),
        "target align": (raw(source, Walk(DST, (Dim(2, 260), Dim(2, 128)))), F.F_ALIGN, 2),
        "source range": (raw(contiguous(DRAM_BYTES - 512, 24), target), F.F_RANGE, 2),
        "target range": (raw(source, contiguous(DRAM_BYTES - 288, 3, 128)), F.F_RANGE, 2),
        "skip before align": (
            raw(source, Walk(DST, (Dim(2, 260, 1, 1), Dim(2, 128)), ((0, 1), (0, 0)))),
            F.F_XPAD,
            2,
        ),
        "few words": (raw(contiguous(SRC, 12), contiguous(DST, 10), isa.GRANULE, 1), F.F_WALK, 2),
        "word range": (
            raw(contiguous(SRC, 12), contiguous(DRAM_BYTES - 288, 12), isa.GRANULE, 1),
            F.F_RANGE,
            2,
        ),
    }


@pytest.mark.parametrize("name", entry_faults())
def test_whole_entries_before_a_fault(name: str) -> None:
    writes, fault, entries = entry_faults()[name]
    pair = Pair()
    pair.run(writes, fault)
    assert pair.m.mover.last is not None
    assert pair.m.mover.last.elements == entries
    pair.run(XFORM)


def test_nonfinite_is_sticky_and_not_of_unwritten_entries() -> None:
    pair = Pair(filled=0)
    pair.run(XFORM)
    assert pair.w.nonfinite == 0
    pair.store(SRC + 256 * 2 + 64, bytes.fromhex("007c") + bytes(30))
    pair.run(
        [*isa.walk_writes(0, contiguous(SRC, 23), 1), *isa.walk_writes(1, contiguous(DST, 3, 128)), ctrl(5)], F.F_WALK
    )
    assert pair.w.nonfinite == 0
    pair.run(XFORM)
    assert pair.w.nonfinite == 1
    pair.run(COPY)
    pair.send([isa.write("CLEAR", fault=1)])
    pair.compare()
    assert (pair.w.nonfinite, pair.w.sticky) == (1, 0)
    pair.send([isa.write("CLEAR", nonfinite=1)])
    pair.compare()
    assert pair.w.nonfinite == 0
    # the identity does not look at what it moves
    pair.run(isa.transform(contiguous(SRC, 24), contiguous(DST, 6, 128), isa.IDENTITY))
    assert pair.w.nonfinite == 0


@pytest.mark.parametrize("where", ["source", "target"])
def test_bus_error_in_an_entry(where: str) -> None:
    pair = Pair()
    pair.fail(SRC + 256 + 96 if where == "source" else 0x8_0000 + 128 + 32)
    pair.run(isa.transform(contiguous(SRC, 24), contiguous(0x8_0000, 3, 128), isa.QUANTISE), F.F_AXI)
    assert pair.m.mover.last is not None
    assert pair.m.mover.last.elements == 1

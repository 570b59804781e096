# SPDX-License-Identifier: Apache-2.0
"""A pass over elements planned for model cores, executed, and compared with the pass on whole arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakubench.chains import evaluate
from kohakutpu.chain import Chain
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.vector import PlainLink, VectorUnit
from kohakutpu.program import encode, vector_program
from kohakutpu.schedule import Elementwise, Operand, VectorBand
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.lanes import LaneOptions, lane_band, work_of
from kohakutpu.views import Spread, Window

U16 = npt.NDArray[np.uint16]
WORD = 32
UNTOUCHED = 0x5A5A
"""What stands in a result's buffer before the pass."""


@dataclass(frozen=True)
class Part:
    """A result that is ``window`` of a buffer of ``shape``."""

    window: Window
    shape: tuple[int, int]


class WatchedLink(PlainLink):
    """Keeps the addresses of all words that are read, and counts those written."""

    def __init__(self) -> None:
        super().__init__(pos=(1, 0))
        self.was_read: set[int] = set()
        self.was_written: Counter[int] = Counter()

    def read(self, l1: int, address: int, n: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        """As the link, noted."""
        self.was_read.update(range(address, address + WORD * n, WORD))
        return super().read(l1, address, n)

    def write(self, address: int, words: npt.NDArray[np.uint8]) -> None:
        """As the link, noted."""
        self.was_written.update(range(address, address + words.size, WORD))
        super().write(address, words)


@dataclass
class Case:
    """A pass, the contents of its operands, and the parents of results that are parts."""

    chain: Chain
    shape: tuple[int, int]
    arrays: list[U16]
    reads: list[Spread | None]
    parts: list[Part | None]

    def request(self) -> Elementwise:
        """The pass as the schedule is asked for it."""
        operands = tuple(Operand(f"x{k}", "in", a.shape) for k, a in enumerate(self.arrays))
        results = tuple(
            Operand(f"y{k}", "out", self.shape, of=f"p{k}" if p else "", window=p.window if p else None)
            for k, p in enumerate(self.parts)
        )
        return Elementwise(self.chain, operands, results, tuple(self.reads) if any(self.reads) else ())

    def parents(self) -> dict[str, tuple[int, int]]:
        """Shapes of the parents."""
        return {f"p{k}": p.shape for k, p in enumerate(self.parts) if p}

    def band(self, machine: MachineSpec, cores: int = 1, *, exact: bool = False) -> VectorBand:
        """The planned pass."""
        return lane_band(self.request(), machine, cores, LaneOptions(), self.parents(), exact=exact)

    def wanted(self) -> list[U16]:
        """Every result on whole arrays."""
        m, n = self.shape
        given = [
            a if s is None else a.reshape(-1)[s.sources(m * n)].reshape(m, n)
            for a, s in zip(self.arrays, self.reads, strict=True)
        ]
        return evaluate(self.chain, given, self.shape)


def check(case: Case, machine: MachineSpec, cores: int = 1, *, exact: bool = False) -> VectorBand:
    """Plan and execute ``case``; every bit of every result, every word once, nothing beyond what the band states."""
    band = case.band(machine, cores, exact=exact)
    link = WatchedLink()
    at: dict[str, int] = {}
    free = 0x10_0000
    for k, a in enumerate(case.arrays):
        at[f"x{k}"] = free
        raw = np.ascontiguousarray(a).view(np.uint8).reshape(-1)
        link.image.write(free, raw)
        free += WORD * max(band.reach[k], -(-raw.size // WORD)) + 4096
    allowed = {at[f"x{k}"] + WORD * w for k, reach in enumerate(band.reach) for w in range(reach)}
    for k, p in enumerate(case.parts):
        size = -(-p.shape[0] * p.shape[1] // 16) if p else band.words
        at[band.writes[k]] = free
        link.image.write(free, np.full(16 * size, UNTOUCHED, np.uint16).view(np.uint8))
        free += WORD * size + 4096
    _execute(band, machine, cores, link, at)
    assert link.was_read <= allowed
    assert max(link.was_written.values()) == 1
    for k, (p, want) in enumerate(zip(case.parts, case.wanted(), strict=True)):
        base = at[band.writes[k]]
        if p is None:
            got = link.image.read(base, 2 * want.size).view(np.uint16).reshape(case.shape)
            assert np.array_equal(got, want), (k, band.text())
            continue
        whole = np.full(p.shape, UNTOUCHED, np.uint16)
        w = p.window
        stack = whole.reshape(w.blocks, -1, p.shape[1])
        stack[:, w.row : w.row + w.rows, w.col : w.col + w.cols] = want.reshape(w.blocks, w.rows, w.cols)
        got = link.image.read(base, 2 * whole.size).view(np.uint16).reshape(p.shape)
        assert np.array_equal(got, whole), (k, band.text())
    total = sum(w.size for w in case.wanted())
    if exact or band.form == "spread":
        assert len(link.was_written) == sum(-(-w.size // 16) for w in case.wanted()), total
    return band


def _execute(band: VectorBand, machine: MachineSpec, cores: int, link: WatchedLink, at: dict[str, int]) -> None:
    names = [s.name for s in band.streams] + [s.name for s in band.stores]
    number = len(band.offsets)
    units: dict[int, list[int]] = {}
    for instance, unit in deal(range(number), range(cores)).items():
        units.setdefault(unit, []).append(instance)
    for unit, instances in units.items():
        runs = tuple(tuple(at[n] + o for n, o in zip(names, band.offsets[i], strict=True)) for i in instances)
        core = VectorUnit(link)
        work = work_of(band, runs, ends=instances[-1] == number - 1)
        for ins in vector_program(unit, work, machine, 128):
            done = core.execute(encode(ins, machine), last=False)
            assert not done.fault, (ins, hex(done.result))

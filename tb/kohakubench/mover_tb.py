# SPDX-License-Identifier: Apache-2.0
"""Drives the memory mover of ``tb_mag``: register scripts for the player, the reference mover beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from kohakubench import checks, clocks
from kohakubench.mag_model import WORD
from kohakubench.mag_tb import DROP, FAULT, MagTb
from kohakutpu.isa.generated import MoverMode, MoverTransform
from kohakutpu.model.agent import MemoryAgent
from kohakutpu.model.description import MachineDescription
from kohakutpu.model.memory import Image
from kohakutpu.model.mover import Mover

SOURCE, DESTINATION = 0, 1
CTRL, CLEAR, HDR, DIM, AXIS, WINDOW, INDEX, SEED, IMM, GATHER = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80)
GO, COALESCE = 1 << 16, 1 << 11
HALF = 0x10000
"""Sources of the tests lie below it in DRAM, destinations from it on."""

Writes = list[tuple[int, int]]


@dataclass
class Dim:
    """One dimension; ``axis`` 1 and 2 name axis 0 and 1."""

    count: int
    stride: int = 0
    axis: int = 0
    step: int = 0


@dataclass
class Walk:
    """One walker: base address, dimensions outermost first, (base, extent) of both axes."""

    base: int
    dims: list[Dim] = field(default_factory=lambda: [Dim(1)])
    windows: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

    def writes(self, walker: int, *, xform: tuple[int, int] = (0, 0), ndim: int | None = None) -> Writes:
        """Register writes that describe this walker."""
        n = len(self.dims) if ndim is None else ndim
        head = walker | self.base << 4 | n << 44
        if walker == SOURCE:
            head |= xform[0] << 47 | xform[1] << 55
        out = [(HDR, head)]
        for d, dim in enumerate(self.dims):
            out.append((DIM, walker | d << 1 | dim.count << 4 | (dim.stride & 0xFFFFFFFF) << 20))
            out.append((AXIS, dim.axis | (dim.step & 0xFFFF) << 2))
        for axis, (base, extent) in enumerate(self.windows):
            out.append((WINDOW, walker | axis << 1 | (base & 0xFFFF) << 2 | extent << 18))
        return out


def line(base: int, words: int) -> Walk:
    """``words`` consecutive words."""
    return Walk(base, [Dim(words, WORD)])


def move(
    mode: MoverMode,
    source: Walk | None,
    target: Walk,
    *,
    ewidth: int = 1,
    cap: int = 0,
    coalesce: bool = True,
    xform: tuple[int, int] = (0, 0),
) -> Writes:
    """Register writes of a whole move, GO included."""
    out = [] if source is None else source.writes(SOURCE, xform=xform)
    out += target.writes(DESTINATION)
    return [*out, (CTRL, mode | ewidth << 3 | COALESCE * coalesce | cap << 13 | GO)]


def copy(source: Walk, target: Walk, **kw: Any) -> Writes:
    """COPY."""
    return move(MoverMode.COPY, source, target, **kw)


def transform(occupant: MoverTransform, mode: int, source: Walk, target: Walk, **kw: Any) -> Writes:
    """XFORM with one occupant."""
    return move(MoverMode.XFORM, source, target, xform=(occupant, mode), **kw)


class MoverTb:
    """One run: ``await MoverTb.start(dut)``; ``dram`` and ``stage`` are the reference images."""

    _stage: ClassVar[Image | None] = None  # contents of the staging store outlive a reset

    def __init__(self, tb: MagTb, dut: Any) -> None:
        self.tb, self.dut, self.rng = tb, dut, tb.rng
        machine = MachineDescription(
            name="mover",
            nx=1,
            ny=1,
            units={},
            mem_ports=((tb.port & 15, tb.port >> 4),),
            orch=(tb.port & 15, tb.port >> 4),
            mesh_id=tb.mesh,
            stage_bytes=tb.stage_bytes,
            dram_bytes=tb.bytes,
        )
        self.agent = MemoryAgent(machine, lambda _: None, None, lambda _: None)
        self.mover = Mover(self.agent, granule=bool(int(dut.XFORM_GRANULE.value)))
        self.agent.dram.write(0, np.frombuffer(bytes(tb.model.memory), dtype=np.uint8))
        self.agent.stage = MoverTb._stage = MoverTb._stage or self.agent.stage

    @classmethod
    async def start(cls, dut: Any, **dram: int) -> MoverTb:
        """Reset, random DRAM; the staging store keeps what it holds."""
        tb = await MagTb.start(dut, **dram)
        return cls(tb, dut)

    def own(self, at: int) -> int:
        """Address of a DRAM byte of this mesh."""
        return self.tb.own(at)

    def staged(self, at: int) -> int:
        """Address of a byte of the staging store."""
        return self.tb.staged(at)

    async def run(self, writes: Writes, *, gaps: tuple[int, ...] = (0,), limit: int = 100_000) -> None:
        """Play the writes on the mover and on the reference, wait until it is not busy, compare status."""
        from cocotb.triggers import RisingEdge, Timer, with_timeout

        d = self.dut
        for offset, data in writes:
            self.mover.write(offset, data)
        lines = (f"{self.rng.choice(gaps) << 72 | offset << 64 | data:020x}" for offset, data in writes)
        (self.tb.dir / "aux.hex").write_text("\n".join(lines) + "\n")
        d.n_aux.value = len(writes)
        await Timer(1, unit="ps")
        d.aux_play.value = 1
        await clocks.cycles(2)
        await with_timeout(RisingEdge(d.aux_done), limit * clocks.PERIOD_NS, "ns")
        d.aux_play.value = 0
        await clocks.cycles(2)
        checks.equal("GO without busy", int(d.aux_early.value), 0)
        self.status()

    def status(self) -> None:
        """AUX_STAT agrees, except the two counters of the mesh ports."""
        mask = ~(0xFFFFFFFF << 8)
        got, exp = int(self.dut.aux_stat.value) & mask, self.mover.status(0x78) & mask
        names = (("moves", 40, 24), ("fault", 4, 4), ("nonfinite", 2, 1), ("sticky", 1, 1), ("busy", 0, 1))
        show = [tuple((n, v >> s & (1 << w) - 1) for n, s, w in names) for v in (got, exp)]
        checks.equal("AUX_STAT", show[0], show[1], n=len(names))

    async def memories(self) -> None:
        """Both memories hold what the reference holds."""
        tb = self.tb
        got = await tb.dram.read(0, tb.bytes)
        _same("DRAM", got, self.agent.dram.read(0, tb.bytes).tobytes())
        checks.equal("AXI violations", tb.dram.count("err_count"), 0)
        if not tb.stage_bytes:
            return
        tb.model.stage[:] = self.agent.stage.read(0, tb.stage_bytes).tobytes()
        await tb.compare_stage(dram=False)

    async def faults(self) -> None:
        """MEM_FAULT and MEM_DROP agree with the reference; both are cleared on both sides."""
        exp = self.agent.faults[0].register() if self.agent.faults else 0
        checks.equal("MEM_FAULT", await self.tb.register(FAULT), exp)
        checks.equal("MEM_DROP", await self.tb.register(DROP), self.agent.fault_count)
        await self.tb.clear()
        self.agent.faults.clear()
        self.agent.fault_count = 0

    def read(self, addr: int, words: int) -> list[int]:
        """Reference words at an address."""
        fault, image, offset = self.agent.check(addr, words * WORD)
        checks.true(f"address {addr:#x}", not fault)
        raw = image.read(offset, words * WORD).tobytes()
        return [int.from_bytes(raw[k : k + WORD], "little") for k in range(0, len(raw), WORD)]

    async def poke(self, at: int, data: bytes) -> None:
        """Put bytes into DRAM on both sides."""
        await self.tb.dram.load(at, data)
        self.agent.dram.write(at, np.frombuffer(data, dtype=np.uint8))


def _same(what: str, got: bytes, exp: bytes) -> None:
    if got != exp:
        bad = [a for a in range(0, len(exp), WORD) if got[a : a + WORD] != exp[a : a + WORD]]
        a = bad[0]
        raise AssertionError(
            f"{what}: {len(bad)} words differ, first {a:#x}: got {got[a : a + WORD][::-1].hex()}, "
            f"expected {exp[a : a + WORD][::-1].hex()}"
        )
    checks.true(what, True)

# SPDX-License-Identifier: Apache-2.0
"""Drives ``tb_mag``: plays a script of flits, compares everything with the reference agent."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kohakubench import checks, clocks, seed
from kohakubench.dram import DRAM_PUBLIC, Dram
from kohakubench.mag_model import APERTURE, RD_RESP, WORD, WR_ACK, Flit, MagModel, read_request

SOURCES = [
    "rtl/common/ram_sdp.v",
    "rtl/common/fifo_sync.v",
    "rtl/common/skid2.v",
    "rtl/memory/mag_classify.v",
    "rtl/memory/mag_intake.v",
    "rtl/memory/mag_read.v",
    "rtl/memory/mag_slots.v",
    "rtl/memory/mag_write.v",
    "rtl/memory/mag_port.v",
    "rtl/memory/mag_stage.v",
    "rtl/memory/mag_path.v",
    "rtl/memory/mag_regs.v",
    "rtl/memory/mag_host.v",
    "rtl/memory/mag.v",
    "rtl/memory/mag_sva.sv",
    "rtl/memory/mag_path_sva.sv",
    "rtl/noc/link_checker_sva.sv",
    "tb/hdl/axi_dram_model.v",
    "tb/hdl/tb_mag.v",
    "tb/hdl/tb_mag_links.sv",
]
MOVER_SOURCES = ["rtl/memory/mag_quant*.v", "rtl/memory/mov_*.v"]
PUBLIC = DRAM_PUBLIC
UNITS = (0x11, 0x12, 0x21, 0x22, 0x13, 0x31)  # node bytes {y, x}
_IDLE = [f"s_axi_mem_{s}" for s in ("awvalid", "wvalid", "bready", "arvalid", "rready")] + ["aux_play", "n_aux"]
CAPS, FAULT, DROP, STGCNT, DRAMCNT = 0x00, 0x08, 0x10, 0x18, 0x20


@dataclass(frozen=True)
class Step:
    """One scripted flit: ``gap`` idle cycles, and not before ``acks`` acknowledgements left."""

    flit: int
    gap: int = 0
    acks: int = 0


def interleave(rng: random.Random, streams: list[list[int]], gaps: tuple[int, ...] = (0,)) -> list[Step]:
    """Merge the streams flit by flit in random order, each stream in its own order."""
    queues = [list(s) for s in streams if s]
    out = []
    while queues:
        q = rng.choice(queues)
        out.append(Step(q.pop(0), rng.choice(gaps)))
        queues = [q for q in queues if q]
    return out


class MagTb:
    """One bench run; ``await MagTb.start(dut)``."""

    _stage = bytearray()  # contents of the staging store: they outlive a reset

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.rng = random.Random(seed())
        self.bytes = 1 << int(dut.DRAM_LOG2.value)
        self.port = int(dut.PORT_Y.value) << 4 | int(dut.PORT_X.value)
        self.mesh = int(dut.MESH_ID.value)
        self.stage_bytes = int(dut.STAGE_ENTRIES.value) * 128 if int(dut.STAGE.value) else 0
        self.model = MagModel(self.bytes, mesh=self.mesh, port=self.port, stage_bytes=self.stage_bytes)
        if len(MagTb._stage) != self.stage_bytes:
            MagTb._stage = self.model.stage
        self.model.stage = MagTb._stage
        self.dram = Dram(dut.u_dram, words=self.bytes // WORD)
        self.dir = Path(os.environ.get("KOHAKU_RUN_DIR", "."))
        self.captured: list[tuple[int, Flit]] = []
        self.bus: list[tuple[int, int, int, int]] = []  # write, cycle, len, addr

    @classmethod
    async def start(cls, dut: Any, **dram: int) -> MagTb:
        """Reset, random memory image, the DRAM behaviour asked for (random by default)."""
        self = cls(dut)
        for name in (
            "mreg_en",
            "mreg_we",
            "mreg_addr",
            "mreg_wdata",
            "ctrl_drop_in",
            "remote_drop_in",
            "busy_pct",
        ):
            getattr(dut, name).value = 0
        for name in ("play", "dump", "n_play", "goal", *_IDLE):
            getattr(dut, name).value = 0
        dut.lfsr_seed.value = self.rng.getrandbits(31)
        clocks.start(dut.clk)
        await clocks.reset(dut)
        random_dram = {"lat_min": 2, "lat_max": 60, "reorder": 1, "interleave": 1, "ideal": 0, "fatal": 1}
        random_dram |= {f"{c}_pct": 75 for c in ("ar", "aw", "w", "r", "b")}
        self.dram.configure(**{**random_dram, "err_rd": 0, "err_wr": 0, "err_lo": 0, "err_hi": 0, **dram})
        await self.dram.reseed(self.rng.getrandbits(31) | 1)
        self.model.memory[:] = self.rng.randbytes(self.bytes)
        await self.dram.load(0, bytes(self.model.memory))
        await clocks.cycles(8)
        return self

    def own(self, addr: int) -> int:
        """``addr`` with this mesh's number."""
        return self.mesh << 36 | addr

    def staged(self, offset: int) -> int:
        """Address of a byte of this mesh's staging store."""
        return APERTURE | self.own(offset)

    async def play(self, steps: list[Step] | list[int], *, compare: bool = True, limit: int = 60_000) -> None:
        """Send the flits, wait for everything the model expects, compare all of it."""
        from cocotb.triggers import RisingEdge, SimTimeoutError, Timer, with_timeout

        script = [s if isinstance(s, Step) else Step(s) for s in steps]
        self.model.start()
        for s in script:
            self.model.feed(s.flit)
        lines = (f"{s.acks << 304 | s.gap << 288 | s.flit:080x}" for s in script)
        (self.dir / "stim.hex").write_text("\n".join(lines) + "\n")
        d = self.dut
        d.n_play.value = len(script)
        d.goal.value = self.model.flits_out
        await Timer(1, unit="ps")
        d.play.value = 1
        try:
            await with_timeout(RisingEdge(d.done), limit * clocks.PERIOD_NS, "ns")
        except SimTimeoutError:
            n = int(d.n_cap.value)
            raise AssertionError(f"no end: {n} of {self.model.flits_out} flits came back") from None
        await clocks.cycles(150)  # anything more would be one too many
        d.play.value = 0
        await self._collect()
        if compare:
            self.compare_flits()
            await self.compare_memory()

    async def _collect(self) -> None:
        from cocotb.triggers import Timer

        d = self.dut
        d.dump.value = 1
        await Timer(1, unit="ps")
        d.dump.value = 0
        await clocks.cycles(2)
        n, n_ax = int(d.n_cap.value), int(d.n_ax.value)
        self.captured = []
        for text in _lines(self.dir / "cap.hex")[:n]:
            raw = int(text, 16)
            self.captured.append((raw >> 288, Flit.of(raw & (1 << 288) - 1)))
        self.raw = [int(text[-72:], 16) for text in _lines(self.dir / "cap.hex")[:n]]
        self.bus = []
        for text in _lines(self.dir / "ax.hex")[:n_ax]:
            raw = int(text, 16)
            self.bus.append((raw >> 80, raw >> 48 & 0xFFFFFFFF, raw >> 40 & 255, raw & (1 << 40) - 1))

    def compare_flits(self) -> None:
        """Responses in order; acknowledgements of each source in order; nothing else."""
        got = [raw for raw, (_, f) in zip(self.raw, self.captured, strict=True) if f.kind == RD_RESP]
        exp = self.model.responses
        for k, (g, e) in enumerate(zip(got, exp, strict=False)):
            if g != e:
                raise AssertionError(f"response {k} of {len(exp)}: got {Flit.of(g)}, expected {Flit.of(e)}")
        checks.equal("number of responses", len(got), len(exp), n=max(1, len(exp)))
        acks: dict[int, list[int]] = {}
        for raw, (_, f) in zip(self.raw, self.captured, strict=True):
            if f.kind == WR_ACK:
                acks.setdefault(f.dst, []).append(raw)
        checks.equal("sources acknowledged", sorted(acks), sorted(self.model.acks))
        for src, expected in self.model.acks.items():
            show = [(f.txn, f.payload) for f in map(Flit.of, acks[src])]
            want = [(f.txn, f.payload) for f in map(Flit.of, expected)]
            checks.equal(f"acks of {src:#x} (txn, payload)", show, want)
            checks.equal(f"ack flits of {src:#x}", acks[src], expected, n=len(expected))
        checks.equal("flits out", len(self.raw), self.model.flits_out)
        checks.equal("flits lost", int(self.dut.n_lost.value), self.model.lost)

    async def compare_memory(self) -> None:
        """The whole image, except words whose write failed on the bus."""
        got = await self.dram.read(0, self.bytes)
        exp = self.model.memory
        for at in self.model.undefined:
            exp[at : at + WORD] = got[at : at + WORD]
        if got != bytes(exp):
            at = next(a for a in range(0, self.bytes, WORD) if got[a : a + WORD] != exp[a : a + WORD])
            raise AssertionError(
                f"memory word {at:#x}: got {got[at : at + WORD][::-1].hex()}, "
                f"expected {exp[at : at + WORD][::-1].hex()}"
            )
        checks.true("memory image", True)
        checks.equal("AXI violations", self.dram.count("err_count"), 0)

    async def compare_stage(self, *, dram: bool = True) -> None:
        """The whole staging store, read through the port; the DRAM image as well unless ``dram`` is False."""
        n = min(256, self.stage_bytes // WORD)
        await self.play(
            [
                read_request(UNITS[k % 4], k & 255, self.staged(n * WORD * k), n, port=self.port)
                for k in range(self.stage_bytes // WORD // n)
            ],
            compare=False,
            limit=400_000,
        )
        self.compare_flits()
        if dram:
            await self.compare_memory()

    # ------------------------------------------------------------ registers
    async def register(self, addr: int, *, write: bool = False) -> int:
        """One register access; returns the data sampled a cycle after mreg_en."""
        from cocotb.triggers import FallingEdge

        d = self.dut
        await FallingEdge(d.clk)
        d.mreg_en.value, d.mreg_we.value, d.mreg_addr.value = 1, int(write), addr
        d.mreg_wdata.value = self.rng.getrandbits(64)
        await FallingEdge(d.clk)
        d.mreg_en.value, d.mreg_we.value = 0, 0
        self.register_error = int(d.mreg_err.value)
        return int(d.mreg_rdata.value)

    async def clear(self) -> None:
        """Clear MEM_FAULT and MEM_DROP."""
        await self.register(FAULT, write=True)
        await self.register(DROP, write=True)

    async def compare_events(self, *, control_drops: int = 0) -> None:
        """MEM_FAULT holds one of the faults (the only one: exactly it), MEM_DROP all counts."""
        got = await self.register(FAULT)
        allowed = {(a << 24 | t << 16 | s << 8 | c) for c, s, t, a in self.model.faults} or {0}
        checks.true("MEM_FAULT", got in allowed, f"{got:#x} is none of {[hex(a) for a in allowed]}")
        m = self.model
        exp = (m.drops + control_drops) << 32 | m.orphans << 16 | m.fault_count
        checks.equal("MEM_DROP", await self.register(DROP), exp)


def _lines(path: Path) -> list[str]:
    return [ln for ln in path.read_text().split() if not ln.startswith(("//", "@", "0x"))]

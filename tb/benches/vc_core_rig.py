# SPDX-License-Identifier: Apache-2.0
"""Stimulus, run and comparison for the bench of the whole vector core (top ``tb_vc_core``).

The functional model executes every instruction and burst in the order in which the script names them; what it sends is
what the core has to send.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import First, RisingEdge, Timer

from benches.vc_mem_rig import burst_flits, read_rows, sequence, write_rows
from kohakubench import checks, clocks, seed
from kohakubench.vector_kernels import DESCRIPTORS, END, Kernel, assemble
from kohakubench.vector_programs import SOURCE, SOURCE_WORDS, Case, Descriptor, ProgramMaker, random_word
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import MemFault, MessageType, VectorError, VectorFault
from kohakutpu.model.messages import DataBurst, Flit, ReadRequest, WriteBurst, int_to_word
from kohakutpu.model.shell import Shell
from kohakutpu.model.vector import ShellLink, VectorUnit

OWN, MEM, CTRL = (1, 0), (0, 1), (1, 1)
WORDS = 65536
"""Words of the bench memory; addresses are taken modulo its size."""
BAD_READ, BAD_WRITE = 0xC000, 0xE000
"""The word that always answers with an error, and the one whose writes are refused."""
DUMP_AT = 380
DUMP_MEMORY = 0x10_0000

COUNTS = ("lane beats", "hazard stalls", "L1-port stalls", "fill words", "drain words")

CONFIG = {
    "cfg_credit": 32, "cfg_order": 0, "cfg_lat": 37, "cfg_gap": 0, "cfg_ack": 20, "cfg_limit": 0x7FFFFFFF,
    "rd_bad_lo": BAD_READ, "rd_bad_hi": BAD_READ + 1, "wr_bad_lo": BAD_WRITE, "wr_bad_hi": BAD_WRITE + 1,
    "cfg_busy": 0, "block_flit": 0xFFFFFFFF, "block_len": 0, "cfg_mix": 128,
}  # fmt: skip


@dataclass
class Trace:
    """Events of a run with their cycles."""

    out: list[tuple[int, int]] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)
    counts: list[tuple[int, int]] = field(default_factory=list)
    entered: list[tuple[int, int]] = field(default_factory=list)
    requests: list[int] = field(default_factory=list)
    responses: list[int] = field(default_factory=list)

    @staticmethod
    def load(path: Path) -> Trace:
        t = Trace()
        for line in path.read_text().splitlines():
            kind, cycle, *rest = line.split()
            c = int(cycle)
            if rest:
                {"O": t.out, "D": t.done, "N": t.counts, "I": t.entered}[kind].append((c, int(rest[0], 16)))
            else:
                {"A": t.accepted, "R": t.requests, "P": t.responses}[kind].append(c)
        return t

    def of(self, *kinds: int) -> list[int]:
        """Flits sent of these types, in order."""
        return [f for _, f in self.out if f >> 268 & 15 in kinds]

    def cycles(self, n: int) -> int:
        """Cycles of instruction n as section 16.1 counts them."""
        return self.done[n][0] - self.accepted[n] - 1

    def counted(self, n: int) -> dict[str, int]:
        """The counts of section 16.1 when instruction n, a RUN, retired."""
        value = self.counts[n][1]
        return {name: value >> 32 * (len(COUNTS) - 1 - i) & 0xFFFFFFFF for i, name in enumerate(COUNTS)}


class Network:
    """Mesh and memory around the model; it keeps all the model sends."""

    def __init__(self, memory: np.ndarray, limit: int) -> None:
        self.memory, self.left = memory, limit
        self.signals: list[int] = []
        self.reads: list[tuple[int, int]] = []
        self.writes: list[int] = []
        self.bursts: list[int] = []
        self.shell: Shell | None = None

    def deliver(self, value: int) -> None:
        self.signals.append(value)
        self._back([value])

    def deliver_burst(self, burst: DataBurst) -> None:
        flits = list(burst.flits())
        self.bursts += flits
        self._back(flits)

    def _back(self, flits: list[int]) -> None:
        """Flits to the core's own coordinate."""
        for f in flits:
            if Flit(f).dst == OWN and self.shell is not None:
                self.shell.take(Flit(f))

    def observe(self, node: Any, event: object) -> None:
        if isinstance(event, ReadRequest):
            self.reads += [(event.txn + i, event.addr + 32 * i) for i in range(event.count)]
        elif isinstance(event, WriteBurst):
            self.writes += list(event.flits())

    # ---- the agent of the model's shell
    def read(self, src: Any, txn: int, addr: int, words: int, *, entries: int = 1) -> tuple[np.ndarray, np.ndarray]:
        at = (addr // 32 + np.arange(words)) % WORDS
        failed = addr // 32 + np.arange(words) == BAD_READ
        return np.where(failed[:, None], 0, self.memory[at]).astype(np.uint8), failed

    def write(self, src: Any, txn: int, addr: int, words: np.ndarray) -> MemFault:
        at = addr // 32 + np.arange(len(words))
        if (at == BAD_WRITE).any():
            return MemFault.M_BUS
        self.memory[at % WORDS] = words
        return MemFault.M_NONE


class Link(ShellLink):
    """A shell whose memory stops answering after a number of words."""

    def __init__(self, shell: Shell, network: Network) -> None:
        super().__init__(shell)
        self.network = network

    def read(self, l1: int, address: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        words, codes = super().read(l1, address, n)
        lost = np.arange(n) >= self.network.left
        self.network.left -= min(self.network.left, n)
        codes[lost] = VectorFault.F_WDOG
        return words, codes


class Rig:
    """One script with its surroundings; ``run`` resets the core, plays it and compares."""

    def __init__(self, dut: Any, seed: int, **config: int) -> None:
        self.dut = dut
        self.rng = random.Random(seed)
        self.np_rng = np.random.default_rng(seed)
        self.config = {**CONFIG, **config, "seed": seed}
        self.memory = np.zeros((WORDS, 32), np.uint8)
        for first in (SOURCE // 32, BAD_READ - 512):
            for n in range(2 * SOURCE_WORDS):
                self.memory[first + n] = int_to_word(random_word(self.rng))
        self.network = Network(self.memory.copy(), self.config["cfg_limit"])
        agent: Any = self.network
        self.shell = self.network.shell = Shell(OWN, MEM, self.network, agent)
        self.unit = VectorUnit(Link(self.shell, self.network), bool(int(dut.MX_STORE.value)))
        self.shell.attach(self.unit)
        self.core = self.unit.core
        self.inst: list[int] = []
        self.data: list[int] = []
        self.runs: list[int] = []  # instruction indices of RUNs
        self.descriptors: dict[int, Descriptor] = {}
        self.await_recv = 0  # DATA_RECEIVED the next instruction waits for
        self.pause = 0  # cycles the next instruction waits after the completion of the last one

    # ---- script
    def word(self, payload: int, last: int = 0, delay: int = 0, done: int = 0) -> int:
        """An instruction, executed by the model at once; its index."""
        index = len(self.inst)
        txn = index & 0xFF
        flit = message.encode("CU_INST", dst=OWN, src=CTRL, txn=txn, last=last) | payload
        recv, self.await_recv = self.await_recv, 0
        if self.pause:
            delay, done, recv, self.pause = self.pause, index, 0, 0
        self.inst.append(control(delay, done=done, recv=recv) << 288 | flit)
        self.shell.take(Flit(flit))
        return index

    def load(self, words: Iterable[int], at: int = 0) -> None:
        for n, word in enumerate(words):
            self.word(isa.load_word(at + n, word))

    def text(self, text: str, at: int = 0) -> None:
        """A kernel and its VHALT."""
        self.load(assemble(text + END), at)

    def describe(self, ad: int, base: int, *dims: tuple[int, int]) -> None:
        """A whole descriptor; ``dims`` are (stride, bound)."""
        pairs = [*dims, *[(0, 1)] * (4 - len(dims))]
        self._descriptor(ad, (base, [s for s, _ in pairs], [b for _, b in pairs]))

    def _descriptor(self, ad: int, want: Descriptor) -> None:
        """Write the fields that differ from what the script wrote before."""
        have = self.descriptors.get(ad)
        if have is None or have[0] != want[0]:
            self.word(isa.set_base(ad, want[0]))
        for d in range(4):
            if have is None or (have[1][d], have[2][d]) != (want[1][d], want[2][d]):
                self.word(isa.set_dimension(ad, d, want[1][d], want[2][d]))
        self.descriptors[ad] = (want[0], list(want[1]), list(want[2]))

    def go(self, pc: int = 0, **how: int) -> int:
        """A RUN; its index."""
        index = self.word(isa.run(pc), **how)
        self.runs.append(index)
        return index

    def kernel(self, kernel: Kernel) -> None:
        """A directed kernel with its descriptors."""
        moved = self._movable({**DESCRIPTORS, **kernel.descriptors}, set(kernel.read_errors))
        for ad, descriptor in moved.items():
            self._descriptor(ad, descriptor)
        self.load(kernel.words, kernel.at)
        self.go(kernel.at)

    def case(self, case: Case) -> None:
        """A random case."""
        moved = self._movable(dict(enumerate(case.descriptors)), case.read_errors)
        for ad, descriptor in moved.items():
            self._descriptor(ad, descriptor)
        self.load(case.words, case.pc)
        self.go(case.pc)

    @staticmethod
    def _movable(descriptors: Mapping[int, Descriptor], errors: set[int]) -> dict[int, Descriptor]:
        """Move a fill that shall fail so that the failing word is the one of the bench that does."""
        out = dict(descriptors)
        for address in errors:
            for ad in (3, 4):
                base, strides, bounds = out[ad]
                walked = {base + strides[0] * i for i in range(max(bounds[0], 1))}
                if address in walked:
                    out[ad] = (base + BAD_READ * 32 - address, strides, bounds)
        return out

    def burst(
        self, off: int, data: np.ndarray, *, buf: int = 0, src: tuple[int, int] = (2, 1), ack: tuple[int, int] = (1, 1),
        signal: int = 1, txn: int = 0, delay: int = 0, gap: int = 0, flits: list[int] | None = None, **when: int,
    ) -> None:  # fmt: skip
        """A burst that ends before the next instruction if it signals; without ``when`` it starts after the last one.

        flits: the burst as sent, where it is not well framed.
        """
        flits = burst_flits(buf, off, data, src, ack, signal, txn) if flits is None else flits
        when = when or {"done": len(self.inst)}
        for k, f in enumerate(flits):
            self.stray(f, delay=gap if k else delay, **({} if k else when))
            self.shell.take(Flit(f))
        self.await_recv = self.received

    def flit(self, value: int) -> None:
        """Any flit, after the last instruction and well before the next."""
        self.stray(value, done=len(self.inst))
        self.shell.take(Flit(value))
        self.pause = 200

    def stray(self, value: int, delay: int = 0, **when: int) -> None:
        """A flit on the data stream that the model does not see."""
        self.data.append(control(delay, **when) << 288 | value)

    @property
    def received(self) -> int:
        """DATA_RECEIVED signals the core has to send so far."""
        return sum(f >> 248 & 255 == 3 for f in self.network.signals)

    def words(self, n: int) -> np.ndarray:
        """n random words."""
        return self.np_rng.integers(0, 256, (n, 32), dtype=np.uint8)

    # ---- state
    def install_dump(self) -> None:
        """Write the kernel of :meth:`dump`."""
        self.load(assemble(DUMP), DUMP_AT)

    def mend(self) -> None:
        """Write what a failed fill left undefined, in core and model alike."""
        undefined = np.flatnonzero(self.core.memory.undefined)
        if len(undefined):
            first, n = int(undefined[0]), int(undefined[-1] - undefined[0] + 1)
            for at in range(first, first + n, 256):
                self.burst(at, self.words(min(256, first + n - at)))

    def dump(self) -> None:
        """Drain L1, every vector and scalar register, predicates, K3 and the trace of VL."""
        self.mend()
        self.describe(0, DUMP_MEMORY, (32, 256))
        self.describe(1, DUMP_MEMORY + 0x2000, (32, 256))
        self.describe(2, 0, (1, 16))
        self.describe(3, DUMP_MEMORY + 0x4000, (32, 256))
        self.describe(4, DUMP_MEMORY + 0x6000, (32, 112))
        self.go(DUMP_AT)

    # ---- run
    async def start(self) -> Path:
        """Reset and begin to play the script; the folder of its files."""
        final = len(self.inst)
        request = message.encode("CU_CTRL_REQ", dst=OWN, src=CTRL, txn=0x5A, index=4)
        self.stray(request, delay=300, done=final)
        folder, d = Path.cwd(), self.dut
        write_rows(folder / "mem.hex", self.memory)
        for name, stream in (("inst", self.inst), ("data", self.data)):
            (folder / f"{name}.hex").write_text("".join(f"{f:080x}\n" for f in stream))
        for name, value in self.config.items():
            getattr(d, name).value = value
        d.n_inst.value, d.n_data.value = len(self.inst), len(self.data)
        d.expect_done.value, d.expect_recv.value = final, self.received
        d.load.value = d.dump.value = d.go.value = d.stop.value = 0
        await clocks.reset(d, 8)
        d.load.value = 1
        await clocks.cycles(2)
        d.go.value = 1
        return folder

    async def cut(self, cycles: int) -> int:
        """Play for some cycles and leave the core as it is then, for the next script to reset; flits sent so far."""
        folder = await self.start()
        await clocks.cycles(cycles)
        self.dut.stop.value = 1
        await clocks.cycles(2)
        return len(Trace.load(folder / "trace.txt").out)

    async def run(self, cycles: int = 2_000_000, errors: bool = True) -> Trace:
        """Reset, play everything, wait for the end, compare with the model."""
        folder, d, final = await self.start(), self.dut, len(self.inst)
        end = RisingEdge(d.finished)
        got = await First(end, Timer(cycles * clocks.PERIOD_NS, unit="ns"))
        self.debug = int(d.dbg_ctr.value)
        d.stop.value = 1
        d.dump.value = 1
        await clocks.cycles(2)
        t = Trace.load(folder / "trace.txt")
        if got is not end:
            raise AssertionError(
                f"hang: {len(t.done)} of {final} instructions, {len(t.of(6))} signals after {cycles} cycles; "
                f"{self.received} DATA_RECEIVED expected"
            )
        self.compare(t, folder, errors)
        return t

    def compare(self, t: Trace, folder: Path, errors: bool) -> None:
        """Everything the core sent, class by class, the memory image, its error register and cycle counts."""
        runs = set(self.runs)
        done = [f for f in t.of(6) if f >> 248 & 255 != 3]
        want = [f for f in self.network.signals if f >> 248 & 255 != 3]
        for n, (got, exp) in enumerate(zip(done, want, strict=False)):
            if n in runs and exp >> 248 & 255 == 0:
                checks.equal(f"cycles of instruction {n}", got >> 216 & 0xFFFFFFFF, t.cycles(n))
                checks.equal(f"completion {n}", hex(got & ~(0xFFFFFFFF << 216)), hex(exp))
            else:
                checks.equal(f"completion {n}", hex(got), hex(exp))
        checks.equal("completions", len(done), len(want))
        received = [f for f in self.network.signals if f >> 248 & 255 == 3]
        sequence("DATA_RECEIVED", [f for f in t.of(6) if f >> 248 & 255 == 3], received)
        sequence("word asked for", requested(t), self.network.reads)
        sequence("write flit", t.of(1, 4), self.network.writes)
        sequence("peer flit", t.of(8), self.network.bursts)
        checks.equal("memory protocol", int(self.dut.broken.value), 0)
        framing(t)
        checks.arrays("memory", read_rows(folder / "dump.hex"), self.network.memory)
        checks.equal("last fault", self.debug >> 32, self.unit.debug() >> 32)
        if errors:
            reply = t.of(MessageType.CU_CTRL)[-1] >> 176 & 0xFFFF
            checks.equal("CU_ERR", reply, self.shell.sticky)


def requested(t: Trace) -> list[tuple[int, int]]:
    """(tag, address) of every word asked for, requests expanded."""
    out = []
    for f in t.of(0):
        checks.equal("read request header", f >> 268, 0x01 << 12 | OWN[0] << 8 | OWN[1] << 4)
        count = f >> 192 & 255 if f >> 206 & 1 else 1
        out += [((f >> 260 & 255) + i, (f >> 216) % (1 << 40) + 32 * i) for i in range(count)]
    return out


def framing(t: Trace) -> None:
    """No unit flit stands between a write descriptor and its last data flit; peer bursts hold no write."""
    left = peer = 0
    for _, f in t.out:
        kind = f >> 268 & 15
        received = kind == 6 and f >> 248 & 255 == 3
        if left and (kind in (0, 1, 8) or received):
            checks.true("write framing", False, f"flit of type {kind} inside a write burst")
        if peer and kind in (1, 4):
            checks.true("peer framing", False, f"flit of type {kind} inside a peer burst")
        if kind == 1:
            left = (f >> 208 & 255) + 1
        elif kind == 4:
            left -= 1
        elif kind == 8:
            peer = peer - 1 if peer else (f >> 224 & 255) + 1


def control(delay: int = 0, done: int = 0, recv: int = 0, reads: int = 0, accepted: int = 0) -> int:
    """Control word of a stimulus: at most one count to wait for."""
    counts = (done, recv, reads, accepted)
    used = [n for n, count in enumerate(counts) if count]
    assert len(used) <= 1
    assert 0 <= delay < 4096
    return sum(counts) << 16 | (1 << 12 + used[0] if used else 0) | delay


def _dump_text() -> str:
    """Registers into L1 256 words from 0, then what the sequence had to overwrite, then scalars and predicates.

    The length in force shows in how much of v14 and v15 the first stores write and in how far VMOV reaches.
    """
    lines = ["VDRAIN A0, L1 0", "VDRAIN A1, L1 256"]
    lines += ["VST.FP32 v15, A2+256", "VBCAST v15, S15", "VST.FP32 v15, A2+272", "VST.FP32 v14, A2+288"]
    lines += ["VSETMODE FLAT", "VMOV v14, K1", "S15 = 128", "VSETVL S15"]
    lines += [f"VST.FP32 v{r}, A2{16 * r:+d}" for r in range(16)]
    lines += ["VDRAIN A3, L1 0"]
    for p in range(4):
        lines += ["VMOV v0, K0", f"VMOV v0, K1 where P{p}", f"VST.FP16 v0, A2+{304 + 8 * p}"]
    lines += ["S15 = 16", "VSETVL S15"]
    for s in range(15):
        lines += [f"VBCAST v0, S{s}", f"VST.FP32 v0, A2+{336 + 2 * s}"]
    lines += ["VMOV v0, K3", "VST.FP32 v0, A2+366", "VDRAIN A4, L1 256"]
    return "\n".join(lines) + END


DUMP = _dump_text()
assert DUMP_AT + len(assemble(DUMP)) <= 512
CLAMP = 1 << 8 + VectorError.CLAMP


async def play_random(dut: Any, block: int, *, quantising: bool = False) -> None:
    """Fifty random programs in random surroundings; after two of three the whole state is drained.

    Args:
        block: number of the run in its test; it chooses the order of responses and the seed.
        quantising: drains that quantise are among the words.
    """
    number = 1000 * seed() + block
    rig, maker = Rig(dut, number), ProgramMaker(number, quantising=quantising)
    rig.config["cfg_order"] = block % 3
    rig.config["cfg_busy"] = rig.rng.choice((0, 0, 30, 128))
    rig.config["cfg_gap"] = rig.rng.choice((0, 0, 60, 200))
    rig.config["cfg_lat"] = rig.rng.choice((3, 36, 150))
    rig.install_dump()
    for n in range(50):
        if rig.rng.randrange(5) == 0:
            rig.burst(rig.rng.randrange(257), rig.words(256))
        rig.case(maker.case(0.25))
        if n % 3 != 1:
            rig.dump()
    rig.dump()
    await rig.run()

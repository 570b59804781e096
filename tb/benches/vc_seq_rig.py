# SPDX-License-Identifier: Apache-2.0
"""Rig of the vector core's sequencer and lanes: the same script through the RTL and through the model."""

import os

import numpy as np
from cocotb.triggers import RisingEdge, Timer

from kohakubench import checks, clocks, memfile, seed
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorDtype, VectorError
from kohakutpu.isa.generated import VectorFault as F
from kohakutpu.model.numerics import e8m15_to_fp16
from kohakutpu.model.vector import PlainLink, VectorUnit
from kohakutpu.model.vector_memory import VectorMemory

INST, POKE, SNAP, INJECT, EVENT, DELAY = range(6)
COMMANDS = {"VLD": 0, "VST": 1, "VFILL": 2, "VDRAIN": 3, "VBAR": 4, "VHALT": 5}
SPECIAL = np.array(
    [
        *(0x000000, 0x800000, 0x000001, 0x807FFF, 0x3F8000, 0xBF8000, 0x3F8001, 0xBF7FFF, 0x400000, 0xC00000),
        *(0x7F8000, 0xFF8000, 0x7FC000, 0xFFC000, 0x7F8001, 0xFFFFFF, 0x008000, 0x7F7FFF, 0x477FF0, 0xC77FFF),
    ],
    dtype=np.uint32,
)
LOADER, DUMPER = 384, 430
ONES = 0x3F8000


class StandIn(VectorMemory):
    """The memory unit of tb/hdl/vc_seq_mem.v: raw FP32, prepared faults, no traffic."""

    def __init__(self, link):
        super().__init__(link)
        self.prepared = {}

    def _fault(self, name):
        return self.prepared.pop(name, None)

    def load(self, dtype, ad, off, vl):
        """VLD; FP32 elements are 24-bit codes."""
        fault = self._fault("VLD")
        if fault or dtype not in list(VectorDtype):
            return np.zeros(0, dtype=np.uint32), fault or F.F_DTYPE
        if dtype == VectorDtype.FP16:
            return super().load(dtype, ad, off, vl)
        words, fault = self._reachable(ad, off, 2 * -(-vl // 16))
        return self.l1[words].reshape(-1).view("<u4") & 0xFFFFFF, fault

    def store(self, dtype, ad, off, vl, elements):
        """VST; FP32 elements are 24-bit codes. Its clamp is the memory unit's."""
        fault = self._fault("VST")
        if fault or dtype not in list(VectorDtype):
            return fault or F.F_DTYPE
        wide = dtype == VectorDtype.FP32
        words, fault = self._reachable(ad, off, -(-vl // 16) << wide)
        n = len(words) * (8 if wide else 16)
        rows = elements[:n].astype("<u4") if wide else e8m15_to_fp16(elements[:n]).astype("<u2")
        for w, data in zip(words, rows.view(np.uint8).reshape(-1, 32), strict=True):
            self.l1[w] = data
        return fault

    def fill(self, ad, l1):
        """VFILL only answers."""
        return self._fault("VFILL")

    def drain(self, *args):
        """VDRAIN only answers."""
        return self._fault("VDRAIN")

    def barrier(self):
        """VBAR and VHALT only answer; which of the two is asked, the caller of `inject` knows."""
        return self._fault("VBAR") or self._fault("VHALT")


def seti(register, value):
    """VSETI of ``S<n>`` or ``K3``."""
    return [isa.parse(f"VSETI {register}"), value]


def asm(*items):
    """Words of assembly lines, words and lists of either."""
    words = []
    for item in items:
        if isinstance(item, str):
            words.append(isa.parse(item))
        elif isinstance(item, list):
            words += asm(*item)
        else:
            words.append(int(item))
    return words


def codes(rng, shape, special=0.1):
    """Random E8M15 codes, most of them of moderate size, some special."""
    value = rng.integers(0, 1 << 15, shape) | rng.integers(110, 145, shape) << 15 | rng.integers(0, 2, shape) << 23
    wild = rng.integers(0, 1 << 24, shape)
    value = np.where(rng.random(shape) < 0.1, wild, value)
    return np.where(rng.random(shape) < special, rng.choice(SPECIAL, shape), value).astype(np.uint32)


class Rig:
    """Collects a script, runs it in the model at once and in the RTL on `play`."""

    def __init__(self, dut):
        self.dut = dut
        self.rng = np.random.default_rng(seed())
        self.link = PlainLink()
        self.unit = VectorUnit(self.link)
        self.core = self.unit.core
        self.core.memory = StandIn(self.link)
        self.run_id = 0
        self._records, self._expected, self._snaps = [], [], []

    async def start(self):
        """Clock, reset, descriptors and the two helper kernels."""
        self.dut.go.value = 0
        clocks.start(self.dut.clk)
        await clocks.reset(self.dut, 520)
        for ad in range(4):
            self.inst(isa.set_dimension(ad, 0, 1, 16))
        self.load(LOADER, asm(
            seti("S15", 128), "VSETVL S15", "VSETMODE FLAT",
            [f"VLD.FP32 v{r}, A0+{16 * r}" for r in range(16)], "VHALT",
        ))  # fmt: skip
        self.load(DUMPER, asm(
            "VSETMODE FLAT", "VST.FP32 v0, A0+480", seti("S15", 128), "VSETVL S15",
            [f"VST.FP32 v{r}, A0+{16 * r}" for r in range(16)],
            [[f"VMOV v{p}, K0", f"VMOV v{p}, K1 where P{p}", f"VST.FP32 v{p}, A0+{256 + 16 * p}"] for p in range(4)],
            seti("S15", 16), "VSETVL S15", "VMOV v0, K3", "VST.FP32 v0, A0+320",
            [[f"VBCAST v1, S{s}", f"VST.FP32 v1, A0+{322 + 2 * s}"] for s in range(16)], "VHALT",
        ))  # fmt: skip
        return self

    # ------------------------------------------------------------ script

    def _record(self, kind, low=0, data=0):
        self._records.append((kind << 12 | low, data))

    def inst(self, payload):
        """One envelope instruction; the model executes it now. Returns its index among the results."""
        self.link.errors = 0
        done = self.unit.execute(payload)
        clamp = self.link.errors >> VectorError.CLAMP & 1
        is_run = payload >> 252 == 3
        self._expected.append((done.fault, done.result, self.unit.debug() >> 32, clamp, is_run))
        self._record(INST, 0, payload)
        return len(self._expected) - 1

    def load(self, at, words):
        """Kernel words from `at` on, those that change."""
        for n, word in enumerate(words):
            if int(self.core.imem[at + n]) != word:
                self.inst(isa.load_word(at + n, word))

    def run(self, pc):
        """RUN; index of its result."""
        return self.inst(isa.run(pc))

    def kernel(self, *items, at=0, faults=False):
        """Assemble, load and run; VHALT is added. Without `faults` the kernel has to end well."""
        self.load(at, asm(*items, "VHALT"))
        index = self.run(at)
        checks.true("legal kernel", faults or not self._expected[-1][0], f"faults: {self._expected[-1]}")
        return index

    def poke(self, at, words):
        """L1 words uint8 (n, 32) from `at` on."""
        self.core.memory.l1[at : at + len(words)] = words
        for n, word in enumerate(words):
            self._record(POKE, at + n, int.from_bytes(word.tobytes(), "little"))

    def registers(self, values):
        """All vector registers, uint32 (16, 128), through L1."""
        self.poke(0, values.astype("<u4").reshape(256, 8).view(np.uint8).reshape(256, 32))
        self.run(LOADER)

    def dump(self):
        """Every register into L1, and L1 into the results."""
        self.run(DUMPER)
        self.snap()

    def snap(self):
        """All of L1 into the results."""
        self._snaps.append(self.core.memory.l1.copy())
        self._record(SNAP)

    def inject(self, name, code):
        """The next command of this opcode answers with a fault."""
        self.core.memory.prepared[name] = F(code)
        self._record(INJECT, COMMANDS[name] << 8 | code)

    def event(self, *codes):
        """Asynchronous events that arrive between two instructions, in one cycle."""
        bits = 0
        for code in sorted(codes):
            bits |= 1 if code == F.F_CUDATA else 2
            if self.unit._event is None:
                self.unit._event = code
        self._record(EVENT, bits)

    def delay(self, most):
        """Random delays of the memory unit; 0 = ideal."""
        self._record(DELAY, most)

    # ------------------------------------------------------------ run

    async def play(self, name):
        """Run the script and compare; returns the results as dicts."""
        self.run_id += 1
        low, data = zip(*self._records, strict=True)
        words = np.zeros((len(low), 34), dtype=np.uint8)
        words[:, :32] = np.frombuffer(b"".join(d.to_bytes(32, "little") for d in data), np.uint8).reshape(-1, 32)
        words[:, 32:] = np.array(low, dtype="<u2").view(np.uint8).reshape(-1, 2)
        script = f"script_{self.run_id}.hex"
        memfile.write(script, words)
        d = self.dut
        d.run_id.value, d.n_script.value = self.run_id, len(low)
        d.go.value = 1
        await RisingEdge(d.done)
        d.go.value = 0
        await Timer(5 * clocks.PERIOD_NS, unit="ns")
        os.remove(script)
        results = self._results(name)
        self._images(name)
        checks.equal(f"{name}: protocol errors", int(d.errors.value), 0)
        self._records, self._expected, self._snaps = [], [], []
        return results

    def _results(self, name):
        path = f"results_{self.run_id}.hex"
        raw = memfile.read(path, 18)
        os.remove(path)
        out = [
            dict(zip(("result", "dbg", "fault", "clamp", "beats", "stalls"), row, strict=True))
            for row in zip(
                *(
                    memfile.field(raw, at, width).tolist()
                    for at, width in ((0, 32), (32, 32), (64, 8), (72, 8), (80, 32), (112, 32))
                ),
                strict=True,
            )
        ]
        checks.equal(f"{name}: retirements", len(out), len(self._expected))
        for n, (got, (fault, result, dbg, clamp, is_run)) in enumerate(zip(out, self._expected, strict=True)):
            where = f"{name}: instruction {n}"
            checks.equal(f"{where} faults", got["fault"], int(fault))
            if fault or not is_run:
                checks.equal(f"{where} result", got["result"], int(result))
            checks.equal(f"{where} last fault", got["dbg"], int(dbg))
            checks.equal(f"{where} clamp", got["clamp"], int(clamp))
        return out

    def _images(self, name):
        path = f"snaps_{self.run_id}.hex"
        if not self._snaps:
            return
        got = memfile.read(path, 32)
        os.remove(path)
        for n, exp in enumerate(self._snaps):
            seen = np.ascontiguousarray(got[512 * n : 512 * (n + 1)]).view("<u4")
            checks.arrays(f"{name}: snapshot {n}", seen, np.ascontiguousarray(exp).view("<u4"))

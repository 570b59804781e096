# SPDX-License-Identifier: Apache-2.0
"""Stimulus, run and comparison of the memory unit's bench (top ``tb_vc_mem``)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import First, RisingEdge, Timer

from kohakubench import checks, clocks
from kohakubench.vc_mem_ref import OWN, QUIESCE, VBAR, VDRAIN, VFILL, VHALT, VLD, VST, VcMemRef, flit

WORDS = 65536
"""Words of the bench memory."""

CONFIG = {
    "cfg_order": 0, "cfg_lat": 39, "cfg_gap": 0, "cfg_limit": 0x7FFFFFFF, "rd_bad_lo": 0, "rd_bad_hi": 0,
    "cfg_busy": 0, "cfg_mix": 128, "block_flit": 0xFFFFFFFF, "block_len": 0, "cfg_quiet": 0,
}  # fmt: skip
LATENCY = 40
"""Cycles from a read request accepted on send_* to its response on recv_*, with CONFIG."""

HOLD, ANSWER, BUSY, GAP = range(4)


@dataclass
class Trace:
    """Events of a run with their cycles."""

    out: list[tuple[int, int]] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    answers: list[tuple[int, int]] = field(default_factory=list)
    events: list[tuple[int, int]] = field(default_factory=list)
    entered: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def load(path: Path) -> Trace:
        t = Trace()
        for line in path.read_text().splitlines():
            kind, cycle, text = line.split()
            c, value = int(cycle), int(text, 16)
            if kind == "C":
                t.accepted.append(c)
            else:
                {"O": t.out, "R": t.answers, "E": t.events, "I": t.entered}[kind].append((c, value))
        return t

    def of(self, *kinds: int) -> list[int]:
        """Flits sent of these types, in order."""
        return [f for _, f in self.out if f >> 268 & 15 in kinds]

    def cycles(self, k: int) -> int:
        """Cycles from the acceptance of command k to its answer."""
        return self.answers[k][0] - self.accepted[k]

    def raised(self, bit: int) -> int:
        """Cycles with this bit of {cudata, aresp, unit_err}."""
        return sum(v >> bit & 1 for _, v in self.events)


class Rig:
    """One script with its surroundings; the reference executes it as it is written down."""

    def __init__(self, dut: Any, seed: int, **config: int) -> None:
        self.dut = dut
        self.rng = np.random.default_rng(seed)
        self.config = {**CONFIG, **config, "seed": seed}
        self.memory = self.rng.integers(0, 256, (WORDS, 32), dtype=np.uint8)
        self.regs = self.rng.integers(0, 1 << 24, (128, 16), dtype=np.uint32)
        self.l1 = self.rng.integers(0, 256, (512, 32), dtype=np.uint8)
        self.cmds: list[int] = []
        self.data: list[int] = []
        self.ref = VcMemRef(
            self.memory.copy(), self.regs.copy(), self.l1.copy(),
            (self.config["rd_bad_lo"], self.config["rd_bad_hi"]), self.config["cfg_limit"],
        )  # fmt: skip
        self.ignore_l1: list[int] = []  # words whose data are undefined
        self.delay = 0

    # ---- script
    def _rec(self, kind: int, value: int) -> None:
        self.cmds.append(kind << 92 | self.delay << 80 | value)
        self.delay = 0

    def pause(self, cycles: int) -> None:
        """Wait before the next record."""
        self.delay = min(4095, cycles)

    def desc(self, ad: int, base: int, *dims: tuple[int, int]) -> None:
        """Write a whole descriptor; ``dims`` are (stride, bound)."""
        self.field(ad, 0, base)
        for d in range(4):
            stride, bound = dims[d] if d < len(dims) else (0, 1)
            self.field(ad, d + 1, (stride & 0x3FFFF) << 16 | bound)

    def field(self, ad: int, fld: int, value: int) -> None:
        """Write one descriptor field."""
        self._rec(1, ad << 43 | fld << 40 | value)
        d = self.ref.desc[ad]
        if fld == 0:
            d.base = value
        else:
            stride = value >> 16 & 0x3FFFF
            d.stride[fld - 1] = stride - (stride >> 17 << 18)
            d.bound[fld - 1] = value & 0xFFFF

    def raw(self, op: int, word: int, vl: int = 128) -> int:
        """A command; its index. The expected answer is the reference's."""
        self._rec(0, op << 45 | vl << 32 | word)
        self.ref.command(op, word, vl)
        return len(self.ref.codes) - 1

    def vld(self, v: int, ad: int, off: int = 0, *, vl: int = 128, dtype: int = 1) -> int:
        return self.raw(VLD, 0x14 << 27 | dtype << 24 | ad << 21 | v << 17 | off & 0x3FFF, vl)

    def vst(self, v: int, ad: int, off: int = 0, *, vl: int = 128, dtype: int = 1) -> int:
        return self.raw(VST, 0x15 << 27 | dtype << 24 | ad << 21 | v << 17 | off & 0x3FFF, vl)

    def vfill(self, ad: int, l1: int) -> int:
        return self.raw(VFILL, 0x1D << 27 | ad << 21 | l1)

    def vdrain(self, ad: int, l1: int) -> int:
        return self.raw(VDRAIN, 0x1E << 27 | ad << 21 | l1)

    def peer(self, ad: int, l1: int, dst: tuple[int, int], buf: int = 0, signal: int = 0, mx: int = 0) -> int:
        word = 0x1E << 27 | mx << 26 | signal << 25 | 1 << 24 | ad << 21 | dst[0] << 17 | dst[1] << 13 | buf << 9 | l1
        return self.raw(VDRAIN, word)

    def vbar(self) -> int:
        return self.raw(VBAR, 0x1C << 27)

    def vhalt(self) -> int:
        return self.raw(VHALT, 0x1F << 27)

    def quiesce(self) -> int:
        return self.raw(QUIESCE, 0)

    def wait_signals(self, n: int) -> None:
        self._rec(2, n)

    def wait_entered(self) -> None:
        """Until every flit of the data stream so far has been taken."""
        self._rec(3, len(self.data))

    def wait_sent(self, n: int) -> None:
        self._rec(5, n)

    def setting(self, which: int, value: int) -> None:
        self._rec(4, which << 32 | value)

    def stray(self, value: int, after: int = 0, gap: int = 0) -> None:
        """Any flit on the data stream, unknown to the reference."""
        self.data.append(after << 304 | gap << 288 | value)

    def burst(
        self, off: int, data: np.ndarray, *, buf: int = 0, src: tuple[int, int] = (2, 1), ack: tuple[int, int] = (1, 1),
        signal: int = 1, txn: int = 0, after: int = 0, delay: int = 0, gap: int = 0, reason: int = 0,
    ) -> None:  # fmt: skip
        """A burst on the data stream; the reference receives it here."""
        for k, f in enumerate(burst_flits(buf, off, data, src, ack, signal, txn)):
            self.stray(f, after, gap if k else delay)
        self.ref.burst(buf, off, data, src, ack, signal, txn, reason)

    def words(self, n: int) -> np.ndarray:
        """n random words."""
        return self.rng.integers(0, 256, (n, 32), dtype=np.uint8)

    # ---- run
    async def run(self, cycles: int = 2_000_000, reads: bool = True, data: bool = True) -> Trace:
        """Reset, play, wait for the end and compare everything with the reference.

        Args:
            reads: compare the words asked for.
            data: compare what was moved; not after undefined words were used.
        """
        folder, d = Path.cwd(), self.dut
        (folder / "cmd.hex").write_text("".join(f"{c:024x}\n" for c in self.cmds))
        (folder / "data.hex").write_text("".join(f"{c:080x}\n" for c in self.data))
        write_rows(folder / "mem.hex", self.memory)
        write_rows(folder / "l1.hex", self.l1)
        (folder / "regs.hex").write_text("".join(f"{_pack(r):096x}\n" for r in self.regs))
        for name, value in self.config.items():
            getattr(d, name).value = value
        d.n_cmd.value = len(self.cmds)
        d.n_data.value = len(self.data)
        d.load.value = d.dump.value = d.go.value = 0
        await clocks.reset(d, 8)
        d.load.value = 1
        await clocks.cycles(2)
        d.go.value = 1
        end = RisingEdge(d.finished)
        if not int(d.finished.value):
            got = await First(end, Timer(cycles * clocks.PERIOD_NS, unit="ns"))
            checks.true("end", got is end, f"the script did not end within {cycles} cycles")
        d.go.value = 0
        d.dump.value = 1
        await clocks.cycles(3)
        t = Trace.load(folder / "trace.txt")
        checks.equal("ports", int(d.broken.value), 0)
        self.compare(t, folder, reads, data)
        return t

    def compare(self, t: Trace, folder: Path, reads: bool, data: bool) -> None:
        ref = self.ref
        sequence("answer", [c for _, c in t.answers], ref.codes)
        if reads and not self.config["cfg_quiet"]:
            sequence("word asked for", requested(t), ref.reads)
        sequence("DATA_RECEIVED", t.of(6), ref.received)
        if not data:
            shown = (1 << 288) - 1 ^ (1 << 256) - 1
            sequence("write header", [f & shown for f in t.of(1, 4)], [f & shown for f in ref.writes])
            sequence("peer header", [f & shown for f in t.of(8)], [f & shown for f in ref.node])
            return
        if not self.config["cfg_quiet"]:
            sequence("write flit", t.of(1, 4), ref.writes)
        sequence("peer flit", t.of(8), ref.node)
        checks.equal("limited words", t.raised(3), ref.limited)
        checks.equal("rejected bursts", t.raised(9), ref.rejected)
        checks.equal("rejected bursts flag", t.raised(1), ref.rejected)
        lanes = np.array(
            [_unpack(r) for r in (folder / "regs_out.hex").read_text().split() if r[0] not in "/@"], np.uint32
        )
        checks.arrays("registers", lanes, ref.regs)
        checks.arrays("memory", read_rows(folder / "dump.hex"), ref.memory)
        got, exp = read_rows(folder / "l1_out.hex"), ref.l1.copy()
        got[self.ignore_l1] = exp[self.ignore_l1] = 0
        checks.arrays("L1", got, exp)


def requested(t: Trace) -> list[tuple[int, int]]:
    """(tag, address) of every word asked for, requests expanded."""
    out = []
    for f in t.of(0):
        checks.equal("read request header", f >> 268, 0x01 << 12 | OWN[0] << 8 | OWN[1] << 4)
        count = f >> 192 & 255 if f >> 206 & 1 else 1
        for i in range(count):
            out.append(((f >> 260 & 255) + i, (f >> 216) % (1 << 40) + 32 * i))
    return out


def sequence(name: str, got: list[Any], exp: list[Any]) -> None:
    """Require two lists to be equal; names the first difference."""
    for i, (g, e) in enumerate(zip(got, exp, strict=False)):
        if g != e:
            show = [hex(v) if isinstance(v, int) else [hex(x) for x in v] for v in (g, e)]
            checks.true(f"{name} {i}", False, f"got {show[0]}, expected {show[1]}")
    checks.equal(f"number of {name}s", len(got), len(exp), n=max(1, len(got)))


def burst_flits(
    buf: int, off: int, data: np.ndarray, src: tuple[int, int], ack: tuple[int, int], signal: int, txn: int
) -> list[int]:
    """Descriptor and data flits of a burst to the unit."""
    head = buf << 40 | off << 24 | (len(data) - 1) << 16 | signal << 8 | ack[1] << 4 | ack[0]
    flits = [flit(OWN, src, 8, txn, 0, 0, head << 208)]
    for i, word in enumerate(data):
        flits.append(flit(OWN, src, 8, txn, int(i == len(data) - 1), 0, int.from_bytes(word.tobytes(), "little")))
    return flits


def write_rows(path: Path, rows: np.ndarray) -> None:
    text = rows[:, ::-1].tobytes().hex()
    path.write_text("\n".join(text[i : i + 64] for i in range(0, len(text), 64)))


def read_rows(path: Path) -> np.ndarray:
    rows = [r for r in path.read_text().split() if r[0] not in "/@"]
    words = np.frombuffer(bytes.fromhex("".join(rows)), np.uint8).reshape(-1, 32)
    return np.ascontiguousarray(words[:, ::-1])


def _pack(lanes: np.ndarray) -> int:
    return sum(int(v) << 24 * i for i, v in enumerate(lanes))


def _unpack(text: str) -> list[int]:
    value = int(text, 16)
    return [value >> 24 * i & 0xFFFFFF for i in range(16)]

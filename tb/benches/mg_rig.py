# SPDX-License-Identifier: Apache-2.0
"""Stimulus, run and comparison for the cluster bench (top ``tb_mg_cluster``)."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cocotb.triggers import First, RisingEdge, Timer

from benches.mg_ref import CTRL, DRAIN, GEMM, MEM_WORDS, UNIT, Ref, flit, pack
from benches.mg_twin import Twin
from kohakubench import checks, clocks

CONFIG = {
    "cfg_credit": 32, "cfg_lat": 38, "cfg_gap": 0, "cfg_perm": 0, "cfg_mute": 0, "cfg_ack": 20,
    "rd_bad_lo": 0, "rd_bad_hi": 0, "wr_bad_lo": 0, "wr_bad_hi": 0, "cfg_busy": 0,
    "block_flit": 0xFFFFFFFF, "block_len": 0, "cfg_mix": 0, "seed": 1,
}  # fmt: skip
"""Ideal memory: request accepted on send_* to first response on recv_* = 40 cycles."""


def operand_words(rng: np.random.Generator, n: int, low: int = 16, high: int = 20) -> np.ndarray:
    """n random memory words: any int7 elements, scale exponents in low..high."""
    words = rng.integers(0, 256, (n, 32), dtype=np.uint8)
    e = rng.integers(low, high + 1, (n, 4), dtype=np.uint8)
    words[:, :4] = e << 3 | rng.integers(0, 8, (n, 4), dtype=np.uint8)
    return words


@dataclass
class Trace:
    """Events of a run: each list in order, with its cycle."""

    out: list[tuple[int, int]] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    done: list[tuple[int, int]] = field(default_factory=list)  # cycle, {cover, fault, result}
    first: list[int] = field(default_factory=list)
    last: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    acks: list[int] = field(default_factory=list)
    entered: list[tuple[int, int]] = field(default_factory=list)

    @staticmethod
    def load(path: Path) -> Trace:
        t = Trace()
        for line in path.read_text().splitlines():
            kind, cycle, *rest = line.split()
            c = int(cycle)
            if kind == "O":
                t.out.append((c, int(rest[0], 16)))
            elif kind == "D":
                t.done.append((c, int(rest[0], 16)))
            elif kind == "I":
                t.entered.append((c, int(rest[0], 16)))
            else:
                {"A": t.accepted, "F": t.first, "L": t.last, "R": t.reads, "K": t.acks}[kind].append(c)
        return t

    def of(self, *kinds: int) -> list[int]:
        """Flits of these types, in order."""
        return [f for _, f in self.out if f >> 268 & 15 in kinds]

    def signals(self, received: bool) -> list[int]:
        return [f for f in self.of(6) if (f >> 248 & 255 == 3) == received]

    def elapsed(self) -> int:
        """Acceptance of the first instruction to the last exec_done."""
        return self.done[-1][0] - self.accepted[0]


class Rig:
    """One program with its surroundings; ``run`` resets the cluster, plays it and returns the trace."""

    def __init__(self, dut: Any, seed: int, **sizes: int) -> None:
        self.dut = dut
        self.rng = np.random.default_rng(seed)
        self.random = random.Random(seed)
        self.memory = np.zeros((MEM_WORDS, 32), np.uint8)
        self.config = dict(CONFIG, seed=seed)
        self.inst: list[tuple[int, int]] = []  # control, flit
        self.data: list[tuple[int, int]] = []
        self.script: list[Any] = []  # what the reference does, in order
        self.sizes = {"rowmajor": int(dut.ROWMAJOR.value), **sizes}
        self.extra_recv = 0

    # ---- program
    def word(
        self,
        payload: int,
        last: int = 0,
        txn: int | None = None,
        delay: int = 0,
        done: int = 0,
        recv: int = 0,
        force: int = 0,
    ) -> None:
        """An instruction; sent after ``done`` completions or ``recv`` DATA_RECEIVED signals."""
        tag = len(self.inst) & 0xFF if txn is None else txn
        self.inst.append((_control(delay, done, recv), flit(UNIT, CTRL, 5, tag, last, 0, payload)))
        self.script.append(("inst", payload, last, tag, force))

    def op(
        self, op: int, addr: int = 0, *, last: int = 0, delay: int = 0, done: int = 0, recv: int = 0,
        force: int = 0, **f: int,
    ) -> None:  # fmt: skip
        self.word(pack(op, addr, **f), last, None, delay, done, recv, force)

    def event(self, code: int) -> None:
        """An asynchronous event that the reference does not see by itself."""
        self.script.append(("event", code))

    def pressure(self, busy: int) -> None:
        """The output link holds back in ``busy`` of 256 cycles, the memory in half as many."""
        self.config.update(cfg_busy=busy, cfg_gap=busy // 2)

    def operands(self, words: int = 8192) -> None:
        """Random operand words from address 0."""
        self.memory[:words] = operand_words(self.rng, words)

    def probe(self, addr: int = 0x80000, sides: tuple[int, ...] = (0, 1)) -> None:
        """Read out every entry of both L1 sides through the array: four GEMMs of 16x16x16."""
        for a in sides:
            for b in sides:
                self.op(GEMM, gm=16, gn=16, nk=16, abank=a, bbank=b)
                self.op(DRAIN, addr + 0x4000 * a + 0x2000 * b, n=256)

    def burst(
        self,
        buf: int,
        off: int,
        data: np.ndarray,
        *,
        src: tuple[int, int] = (1, 0),
        ack: tuple[int, int] = (3, 1),
        signal: int = 1,
        txn: int = 2,
        delay: int = 0,
        done: int = 0,
        recv: int = 0,
        gap: int = 0,
        expect: bool = True,
        reason: int | None = None,
    ) -> None:
        """A CU_DATA burst on the data stream; with ``expect`` the reference receives it here."""
        for k, f in enumerate(burst_flits(buf, off, data, src, ack, signal, txn)):
            self.data.append((_control(gap if k else delay, 0 if k else done, 0 if k else recv), f))
        if expect:
            self.script.append(("burst", buf, off, data, bool(signal), ack if any(ack) else src, reason))

    def stray(self, f: int, delay: int = 0, done: int = 0, recv: int = 0) -> None:
        """Any flit on the data stream, unknown to the reference."""
        self.data.append((_control(delay, done, recv), f))

    # ---- run
    async def run(self, expect: bool = True, dump: bool = True, cycles: int = 2_000_000) -> Trace:
        """Reset, play everything, wait for the end; compare with the reference if ``expect``."""
        ref = Ref(
            self.memory.copy(),
            rd_bad=(self.config["rd_bad_lo"], self.config["rd_bad_hi"]),
            wr_bad=(self.config["wr_bad_lo"], self.config["wr_bad_hi"]),
            **self.sizes,
        )
        if expect:
            for kind, *args in self.script:
                if kind == "inst":
                    ref.execute(*args)
                elif kind == "event":
                    ref.event(*args)
                elif kind == "patch":
                    ref.l1[args[0]][args[1]] = args[2]
                else:
                    ref.burst(*args)
            self.against_model(ref)
        self.ref = ref
        folder = Path.cwd()
        _write_memory(folder / "mem.hex", self.memory)
        _write_stimulus(folder / "inst.hex", self.inst)
        _write_stimulus(folder / "data.hex", self.data)
        d = self.dut
        for name, value in self.config.items():
            getattr(d, name).value = value
        d.n_inst.value = len(self.inst)
        d.n_data.value = len(self.data)
        d.expect_done.value = sum(1 for _, f in self.inst if f >> 268 & 15 == 5)
        d.expect_recv.value = len(ref.received) + self.extra_recv
        d.load.value = d.dump.value = d.go.value = d.stop.value = 0
        await clocks.reset(d, 8)
        d.load.value = 1
        await clocks.cycles(2)
        d.go.value = 1
        end = RisingEdge(d.finished)
        got = await First(end, Timer(cycles * clocks.PERIOD_NS, unit="ns"))
        self.counters = int(d.dbg_ctr.value)
        self.retired = tuple(int(x.value) for x in (d.dbg_fills, d.dbg_gemms, d.dbg_drains))
        d.stop.value = 1
        d.dump.value = int(dump)
        await clocks.cycles(2)
        trace = Trace.load(folder / "trace.txt")
        if got is not end:
            raise AssertionError(
                f"hang: {len(trace.signals(False))} of {len(self.inst)} completions, "
                f"{len(trace.signals(True))} DATA_RECEIVED after {cycles} cycles"
            )
        if dump:
            self.image = _read_memory(folder / "dump.hex")
        if expect:
            self.compare(trace, dump)
        return trace

    def against_model(self, ref: Ref) -> None:
        """Require the functional model to give what ``ref`` expects, where the script is free of races."""
        if any(
            k in ("event", "patch") or (k == "inst" and a[-1]) or (k == "burst" and a[-1] is not None)
            for k, *a in self.script
        ):
            return
        twin = Twin(self.memory.copy(), ref.rd_bad, ref.wr_bad, **self.sizes)
        for kind, *args in self.script:
            if kind == "inst":
                twin.execute(*args[:3])
            else:
                buf, off, data, signal, ack, _ = args
                twin.burst(burst_flits(buf, off, data, (1, 0), ack, int(signal), 2))
        for name in ("completions", "received", "reads", "writes", "node"):
            _sequence(f"model {name}", getattr(twin, name), getattr(ref, name))
        checks.arrays("model memory", twin.memory, ref.memory)

    def compare(self, t: Trace, dump: bool) -> None:
        """Everything the unit sent, class by class, and the whole memory image."""
        ref = self.ref
        got = [(f >> 248 & 255, f >> 216 & 0xFFFFFFFF, f >> 260 & 255) for f in t.signals(False)]
        _sequence("completion", got, ref.completions)
        for f in t.signals(False):
            checks.equal("completion header", f >> 268, CTRL[0] << 16 | CTRL[1] << 12 | UNIT[0] << 8 | UNIT[1] << 4 | 6)
        got_recv = [((f >> 284 & 15, f >> 280 & 15), f >> 216 & 0xFFFFFFFF) for f in t.signals(True)]
        _sequence("DATA_RECEIVED", got_recv, ref.received)
        _sequence("read request", t.of(0), ref.reads)
        _sequence("write flit", t.of(1, 4), ref.writes)
        _sequence("node flit", t.of(8), ref.node)
        if dump:
            checks.arrays("memory image", self.image, ref.memory)


def burst_flits(
    buf: int, off: int, data: np.ndarray, src: tuple[int, int], ack: tuple[int, int], signal: int, txn: int
) -> list[int]:
    """Descriptor and data flits of a burst."""
    head = buf << 40 | off << 24 | (len(data) - 1) << 16 | signal << 8 | ack[1] << 4 | ack[0]
    flits = [flit(UNIT, src, 8, txn, 0, 0, head << 208)]
    for i, word in enumerate(data):
        value = int.from_bytes(word.tobytes(), "little")
        flits.append(flit(UNIT, src, 8, txn, int(i == len(data) - 1), 0, value))
    return flits


def _control(delay: int, done: int, recv: int) -> int:
    assert not (done and recv)
    assert delay < 4096
    return (done or recv) << 16 | bool(recv) << 13 | bool(done) << 12 | delay


def _sequence(name: str, got: list[Any], exp: list[Any]) -> None:
    for i, (g, e) in enumerate(zip(got, exp, strict=False)):
        show = [hex(v) if isinstance(v, int) else [hex(x) if isinstance(x, int) else x for x in v] for v in (g, e)]
        checks.true(f"{name} {i}", g == e, f"got {show[0]}, expected {show[1]}")
    checks.equal(f"number of {name}s", len(got), len(exp))


def _write_stimulus(path: Path, words: list[tuple[int, int]]) -> None:
    path.write_text("".join(f"{c << 288 | f:080x}\n" for c, f in words))


def _write_memory(path: Path, memory: np.ndarray) -> None:
    text = memory[:, ::-1].tobytes().hex()
    path.write_text("\n".join(text[i : i + 64] for i in range(0, len(text), 64)))


def _read_memory(path: Path) -> np.ndarray:
    rows = [r for r in path.read_text().splitlines() if r and not r.startswith("//") and r[0] != "@"]
    words = np.frombuffer(bytes.fromhex("".join(rows)), np.uint8).reshape(-1, 32)
    return np.ascontiguousarray(words[:, ::-1])


def run_dir() -> Path:
    """Folder of this run's results."""
    return Path(os.environ.get("KOHAKU_RUN_DIR", "."))

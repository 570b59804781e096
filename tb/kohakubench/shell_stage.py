# SPDX-License-Identifier: Apache-2.0
"""Drives ``tb_cu_base``: plays flits, sets levels, waits, and replays the log."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

from kohakubench import checks, clocks, seed
from kohakubench.shell_model import OP_READ, Config, Instruction, Node, completions, control
from kohakubench.shell_trace import Replay, replay

CONTROLLERS = ((1, 1), (3, 2))
ELSEWHERE = (5, 9)

_numbers = itertools.count(1)
Play = int | tuple[int, int]


_clocked: list[Any] = []  # the test that started the clock


def start_clock(clk: Any) -> None:
    """Start the clock of this test, once however often the test begins anew."""
    from cocotb.task import current_task

    test = current_task()
    if test not in _clocked:
        _clocked[:] = [test]
        clocks.start(clk)


def same_flits(name: str, got: list[int], expected: list[int]) -> None:
    """Require two lists of flits to be equal; reports the first difference in hexadecimal."""
    for k, (g, e) in enumerate(zip(got, expected, strict=False)):
        checks.true(f"{name}, flit {k}", g == e, f"got {g:072x}, expected {e:072x}")
    checks.equal(f"{name}, number of flits", len(got), len(expected))


def random_program(rng: random.Random, n: int, *, drops: bool) -> list[Instruction]:
    """A program whose batches all find an owner; the last instruction covers."""
    program = []
    for k in range(n):
        ins = Instruction(rng.choice(CONTROLLERS), rng.randrange(256), int(rng.random() < 0.15))
        ins.result = rng.getrandbits(32)
        ins.work = rng.choice((0, 0, 1, 2, 3, 9, rng.randrange(60)))
        ins.fault = rng.random() < 0.1
        kind = rng.random()
        if kind < 0.08:
            ins.dst = ELSEWHERE
        elif kind < 0.45:
            ins.writes, ins.beats = rng.choice((1, 1, 2, 3, 8, 20)), rng.randint(1, 8)
            ins.batch = rng.random() < 0.4
            ins.cover = not ins.batch and rng.random() < 0.8
        else:
            ins.cover = rng.random() < 0.5
        if k == n - 1:
            ins.dst, ins.batch, ins.cover = None, False, True
        if drops and ins.writes and ins.dst is None:
            hit = rng.sample(range(ins.writes), min(ins.writes, rng.choice((0, 0, 0, 1, 2))))
            ins.drops = [(index, rng.randint(1, 15)) for index in hit]
        program.append(ins)
    return program


class Stage:
    """One test on the shell bench.

    Levels are the top's own port names: ``s.set(out_mode=1)``. ``play`` takes flits or
    (idle cycles, flit) pairs.
    """

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        p = {
            n: int(getattr(dut, n).value)
            for n in (
                "POS_X",
                "POS_Y",
                "CU_TYPE",
                "CU_VERSION",
                "N_BUFFERS",
                "INST_DEPTH",
                "RECV_DEPTH",
                "MAX_INFLIGHT",
                "ACK_FENCE",
                "RD_ERR_FAULT",
                "FEATURES",
                "RECV_TYPES",
            )
        }
        self.config = Config(
            (p["POS_X"], p["POS_Y"]),
            p["CU_TYPE"],
            p["CU_VERSION"],
            p["N_BUFFERS"],
            p["INST_DEPTH"],
            p["RECV_DEPTH"],
            p["MAX_INFLIGHT"],
            bool(p["ACK_FENCE"]),
            bool(p["RD_ERR_FAULT"]),
            p["FEATURES"],
            p["RECV_TYPES"],
        )
        self.own = self.config.pos
        self.program: list[Instruction] = []

    async def begin(self, **levels: int) -> Stage:
        """Start the clock, reset, and open a new log."""
        dut = self.dut
        self.number = next(_numbers)
        start_clock(dut.clk)
        idle = dict.fromkeys(
            (
                "play",
                "play_count",
                "log_flush",
                "out_mode",
                "out_level",
                "inst_mode",
                "inst_level",
                "recv_mode",
                "recv_level",
                "hold_exec",
                "spurious",
                "aux_go",
                "dbg_ctr",
                "unit_err",
                "ack_hold",
                "ack_min",
                "ack_span",
            ),
            0,
        )
        self.set(
            **{
                **idle,
                "seed": seed() * 2654435761 % 2**32,
                "log_id": self.number,
                "credit": self.config.inst_depth,
                **levels,
            }
        )
        await clocks.reset(dut)
        return self

    def set(self, **levels: int) -> None:
        """Drive ports of the top; takes effect before the next rising edge."""
        for name, value in levels.items():
            getattr(self.dut, name).value = value

    async def play(self, flits: list[Play], *, wait: bool = True) -> None:
        """Offer ``flits`` to the shell, in order; optionally until all have been taken."""
        from cocotb.triggers import FallingEdge, RisingEdge

        pairs = [f if isinstance(f, tuple) else (0, f) for f in flits]
        Path("stim.hex").write_text("".join(f"{gap << 288 | word:076x}\n" for gap, word in pairs))
        await FallingEdge(self.dut.clk)
        self.set(play=1, play_count=len(pairs))
        await FallingEdge(self.dut.clk)
        self.set(play=0)
        if wait and not int(self.dut.play_done.value):
            await RisingEdge(self.dut.play_done)
            await FallingEdge(self.dut.clk)

    async def instructions(self, program: list[Instruction], *, gap: int = 0, wait: bool = True) -> None:
        """Send ``program`` and remember it for :meth:`finish`."""
        self.program += program
        await self.play([(gap, i.word(self.own)) for i in program], wait=wait)

    async def read(self, index: int, op: int = OP_READ, src: Node = CONTROLLERS[0], txn: int = 0) -> None:
        """Send one CU_CTRL request and wait for the reply, which the replay then holds."""
        before = int(self.dut.out_flits.value)
        await self.play([control(self.own, src, txn, op, index, 0x1234)])
        await self.until("out_flits", before + 1)

    async def pulse(self, name: str, value: int = 1) -> None:
        """Drive ``name`` for exactly one cycle."""
        from cocotb.triggers import FallingEdge

        await FallingEdge(self.dut.clk)
        self.set(**{name: value})
        await FallingEdge(self.dut.clk)
        self.set(**{name: 0})

    async def until(self, name: str, value: int, *, limit: int = 200_000) -> None:
        """Wait for a counter or level of the top, woken by its changes only.

        Raises:
            AssertionError: not reached within ``limit`` cycles.
        """
        from cocotb.triggers import FallingEdge, Timer, ValueChange, with_timeout

        handle = getattr(self.dut, name)
        end = clocks.now() + limit
        while int(handle.value) != value:
            left = end - clocks.now()
            if left <= 0:
                raise AssertionError(f"hang: {name} stayed {int(handle.value)}, waited for {value}")
            try:
                await with_timeout(ValueChange(handle), left * clocks.PERIOD_NS, "ns")
            except TimeoutError:
                raise AssertionError(f"hang: {name} stayed {int(handle.value)}, waited for {value}") from None
        await Timer(1, unit="ns")
        await FallingEdge(self.dut.clk)

    async def check(self) -> Replay:
        """Close the log and require every cycle of it to agree with the reference."""
        await self.pulse("log_flush")
        r = replay(Path(f"events_{self.number}.log"), self.config)
        checks.true("cycles replayed", r.cycles > 0, "empty log")
        checks.equal("levels compared", r.compared > 0, True, n=r.compared)
        return r

    async def finish(self, *, limit: int = 200_000) -> Replay:
        """Wait until every instruction has completed, then compare cycles and completions."""
        await self.until("completions", len(self.program), limit=limit)
        await clocks.cycles(4)
        checks.equal("busy after the last completion", int(self.dut.busy.value), 0)
        r = await self.check()
        same_flits("completions", r.completions(), completions(self.program, self.own))
        return r

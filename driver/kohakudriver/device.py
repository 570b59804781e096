# SPDX-License-Identifier: Apache-2.0
"""A machine that runs artifacts (docs/spec/fabric.md 8.1, the await recipe)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kohakuabi import Artifact, Command
from kohakuabi.artifact import Round
from kohakuabi.commands import build_round
from kohakuabi.steps import Kick, Step
from kohakudriver import generated as g
from kohakudriver.registers import address, fields
from kohakudriver.result import Node, NodeResult, RoundResult, RunResult, Signal
from kohakudriver.transport import Transport

ALL_ONES = (1 << 64) - 1
CONTROL_REPLY_TRIES = 64
IDLE_TRIES = 64
CYCLES_PER_POLL = 96
"""Upper bound of one POLL read with its wait, used only to bound a run."""

RoundHook = Callable[[Round, RoundResult], None]


class DriverError(RuntimeError):
    """The machine and the program do not fit, or the machine does not answer."""


class Device:
    """Owns a transport and the cumulative signal counts of its nodes."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.description: dict[str, Any] = transport.description
        self.name: str = self.description["name"]
        self.nodes: list[Node] = sorted(
            (x, y) for kind in self.description["units"].values() for x, y in kind
        )
        self._txn = 0
        self._expect: dict[Node, int] = {}
        self._check_machine()
        self.resync()

    def _check_machine(self) -> None:
        caps, engine = self.transport.read64([address("CAPS2"), address("ENG_CAPS")])
        seen = fields("CAPS2", caps)
        for what, have, want in (
            ("staging slots", seen["stage_flits"], self.description["stage_flits"]),
            ("orchestrator (x, y)", (seen["orc_x"], seen["orc_y"]), tuple(self.description["orch"])),
            ("command slots", fields("ENG_CAPS", engine)["ncmd"], self.description["ncmd"]),
        ):
            if have != want:
                raise DriverError(f"machine {self.name}: {what} read as {have}, its description says {want}")
        self._orch: Node = (seen["orc_x"], seen["orc_y"])

    def resync(self) -> None:
        """Read the cumulative signal counts, as after opening and after a failed round."""
        values = self.transport.read64([address("NODE_STATUS", y << 4 | x) for x, y in self.nodes])
        for node, value in zip(self.nodes, values, strict=True):
            self._expect[node] = fields("NODE_STATUS", value)["signal_count"]

    # -- memory --
    def write(self, addr: int, data: bytes) -> None:
        """Write bytes at a 40-bit address; whole 32-byte words.

        Raises:
            DriverError: an address or length that is not a whole number of words.
        """
        if addr % g.MEM_WORD_BYTES or len(data) % g.MEM_WORD_BYTES:
            raise DriverError(f"write of {len(data)} bytes at {addr:#x}: whole words of {g.MEM_WORD_BYTES} bytes only")
        self.transport.mem_write(addr, data)

    def read(self, addr: int, n: int) -> bytes:
        """Read ``n`` bytes at a 40-bit address; whole 32-byte words."""
        if addr % g.MEM_WORD_BYTES or n % g.MEM_WORD_BYTES:
            raise DriverError(f"read of {n} bytes at {addr:#x}: whole words of {g.MEM_WORD_BYTES} bytes only")
        return self.transport.mem_read(addr, n)

    # -- programs --
    def load(self, artifact: Artifact) -> None:
        """Write the artifact's images into memory.

        Raises:
            DriverError: compiled for another machine.
        """
        if artifact.machine != self.name:
            raise DriverError(f"artifact was compiled for {artifact.machine}, this device is {self.name}; compile it again")
        for image in artifact.images:
            pad = -len(image.data) % g.MEM_WORD_BYTES
            self.write(image.address, image.data + bytes(pad))

    def run(
        self,
        artifact: Artifact,
        *,
        load: bool = True,
        on_round: RoundHook | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> RunResult:
        """Run every round until one fails.

        Args:
            load: write the images first.
            on_round: called after each round, failed or not.
            progress: called with (round, cycles so far) now and then.
        """
        if load:
            self.load(artifact)
        costs = artifact.meta.get("modelled_cycles", [])
        done: list[RoundResult] = []
        for r in artifact.rounds():
            cost = costs[r.index] if r.index < len(costs) else 0
            tick = None if progress is None else (lambda c, i=r.index: progress(i, c))
            result = self.run_round(r, cost, tick)
            done.append(result)
            if on_round:
                on_round(r, result)
            if result.failed:
                self._recover()
                break
        return RunResult(tuple(done))

    def run_round(self, r: Round, modelled_cycles: int = 0, progress: Callable[[int], None] | None = None) -> RoundResult:
        """Upload, GO, wait, read back (docs/spec/fabric.md 8)."""
        counters = [address("SIG_DONE"), address("MEM_DRAMCNT")]
        signals_before = len(self.transport.signals() or [])
        sig_before, dram_before = self.transport.read64(counters)
        poll_limit = max(4096, 8 * modelled_cycles // (g.POLL_IVL + 1))
        commands = build_round(r.steps, self._expect, code=r.index)
        writes = [(address("ERR_STAT"), ALL_ONES), (address("MEM_FAULT"), 0), (address("MEM_DROP"), 0)]
        writes += self._staging(r.steps, r.payloads)
        writes += self._commands(commands)
        writes += [(address("ENG_POLL_LIMIT"), poll_limit), (address("ENG_CTRL"), 1)]
        self.transport.write64(writes)
        polls = sum(c.op == "POLL" for c in commands)
        limit = polls * poll_limit * CYCLES_PER_POLL + 100_000
        if not self.transport.wait_done(limit, progress):
            raise DriverError(f"round {r.index}: the engine did not stop within {limit} cycles although its polls are bounded")
        return self._collect(r, sig_before, dram_before, signals_before)

    def _staging(self, steps: Sequence[Step], payloads: Sequence[int]) -> list[tuple[int, int]]:
        writes = []
        for number, kick in enumerate(s for s in steps if isinstance(s, Kick)):
            for i in range(kick.n):
                slot = kick.base + i
                last = int(i == kick.n - 1)
                header = g.MessageType.CU_INST << 12 | (number & 255) << 4 | last << 3
                payload = payloads[slot]
                words = [payload >> 64 * w & ALL_ONES for w in range(4)] + [header]
                writes += [(address("STAGE", g.FLIT_WORDS * slot + w), v) for w, v in enumerate(words)]
        return writes

    def _commands(self, commands: Sequence[Command]) -> list[tuple[int, int]]:
        if len(commands) > self.description["ncmd"]:
            raise DriverError(f"{len(commands)} commands exceed the {self.description['ncmd']} command slots")
        op = {"WR": g.OP_WR, "POLL": g.OP_POLL, "DONE": g.OP_DONE}
        writes = []
        for n, c in enumerate(commands):
            target = address(c.register, c.index) if c.register else 0
            for f, value in enumerate((op[c.op], target, c.data, c.mask)):
                writes.append((address("CMD", 4 * n + f), value))
        return writes

    def _collect(self, r: Round, sig_before: int, dram_before: int, signals_before: int) -> RoundResult:
        names = ("ENG_CTRL", "ENG_PC", "ENG_CODE", "ERR_STAT", "ERR_INFO", "PROG_STAT", "SIG_DONE", "MEM_FAULT",
                 "MEM_DROP", "MEM_DRAMCNT")
        values = dict(zip(names, self.transport.read64([address(n) for n in names]), strict=True))
        everything = self.transport.signals()
        fresh = None if everything is None else [Signal.from_flit(f) for f in everything[signals_before:]]
        nodes = [self._node(n, fresh) for n in self.nodes]
        before, after = fields("MEM_DRAMCNT", dram_before), fields("MEM_DRAMCNT", values["MEM_DRAMCNT"])
        return RoundResult(
            index=r.index,
            eng_ctrl=values["ENG_CTRL"],
            eng_pc=values["ENG_PC"],
            eng_code=values["ENG_CODE"],
            err_stat=values["ERR_STAT"],
            err_info=values["ERR_INFO"],
            prog_stat=values["PROG_STAT"],
            sig_done=(values["SIG_DONE"] - sig_before) & 0xFFFF,
            mem_fault=values["MEM_FAULT"],
            mem_drop=values["MEM_DROP"],
            dram_words=(
                (after["read"] - before["read"]) & 0xFFFF_FFFF,
                (after["written"] - before["written"]) & 0xFFFF_FFFF,
            ),
            nodes=tuple(nodes),
        )

    def _node(self, node: Node, fresh: list[Signal] | None) -> NodeResult:
        x, y = node
        status = fields("NODE_STATUS", self.transport.read64([address("NODE_STATUS", y << 4 | x)])[0])
        mine = None if fresh is None else [s for s in fresh if s.node == node]
        return NodeResult(
            node=node,
            signal_count=status["signal_count"],
            last_code=status["code"],
            last_arg=status["arg"],
            retired=fields("CU_COUNTERS", self.control_read(node, g.ControlIndex.CU_COUNTERS))["retired"],
            err_bits=self.control_read(node, g.ControlIndex.CU_ERR) & 0xFFFF,
            completions=None if mine is None else tuple(s for s in mine if s.code != g.Signal.DATA_RECEIVED),
            data_received=None if mine is None else tuple(s for s in mine if s.code == g.Signal.DATA_RECEIVED),
        )

    def control_read(self, node: Node, index: int) -> int:
        """A discovery register of a unit, through the mailbox (docs/spec/fabric.md 5.5 and 6.4).

        Raises:
            DriverError: no answer.
        """
        self._txn = (self._txn + 1) & 255
        ox, oy = self._orch
        header = (node[0] << 28 | node[1] << 24 | ox << 20 | oy << 16 | g.MessageType.CU_CTRL << 12
                  | self._txn << 4 | 1 << 3)
        words = [0, 0, 0, index << 48, header]
        self.transport.write64([(address("TX_FLIT", w), v) for w, v in enumerate(words)] + [(address("TX_KICK"), 1)])
        for _ in range(CONTROL_REPLY_TRIES):
            (status,) = self.transport.read64([address("RX_STATUS")])
            if fields("RX_STATUS", status)["empty"]:
                continue
            flit = sum(v << 64 * w for w, v in enumerate(self.transport.read64([address("RX_FLIT", w) for w in range(5)])))
            self.transport.write64([(address("RX_POP"), 1)])
            if (flit >> 268 & 15, flit >> 260 & 255) == (g.MessageType.CU_CTRL, self._txn):
                return flit >> 176 & ALL_ONES
        raise DriverError(f"unit {node} did not answer the read of control register {index}")

    def _recover(self) -> None:
        """After a failed round: stop the dispatcher, let units come to rest, read the counts again."""
        for attempt in range(IDLE_TRIES):
            (stat,) = self.transport.read64([address("PROG_STAT")])
            if not fields("PROG_STAT", stat)["run"]:
                break
            if attempt == 1:
                self.transport.write64([(address("PROG_ABORT"), 1)])
        for node in self.nodes:
            for _ in range(IDLE_TRIES):
                status = self.control_read(node, g.ControlIndex.CU_STATUS)
                if not fields("CU_STATUS", status)["busy"]:
                    break
            else:
                raise DriverError(f"unit {node} is still busy after the failed round; reset the machine")
        self.resync()

    def close(self) -> None:
        """Release the machine."""
        self.transport.close()

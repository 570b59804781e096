# SPDX-License-Identifier: Apache-2.0
"""A machine that runs artifacts (docs/spec/fabric.md 8.1, the await recipe)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kohakuabi import Artifact, Command, Round, build_round
from kohakuabi.steps import Kick, Move, Step
from kohakudriver import generated as g
from kohakudriver.errors import DriverError
from kohakudriver.memory import HostWindow, check_words
from kohakudriver.registers import address, fields, pack
from kohakudriver.result import Disassembler, Faulted, Node, NodeResult, RoundResult, RunResult, Signal
from kohakudriver.transport import Transport

LAYER = "L0"

ALL_ONES = (1 << 64) - 1
MIN_POLL_LIMIT = 4096
CONTROL_REPLY_TRIES = 64
IDLE_TRIES = 64
CYCLES_PER_POLL = 96
"""Upper bound of one POLL read with its wait, used only to bound a run."""
CYCLES_PER_ROUND = 100_000
"""Upper bound of everything in a round that is no POLL."""

_OPS = {"WR": g.OP_WR, "POLL": g.OP_POLL, "DONE": g.OP_DONE}
_RESULT_REGISTERS = [
    "ENG_CTRL",
    "ENG_PC",
    "ENG_CODE",
    "ERR_STAT",
    "ERR_INFO",
    "PROG_STAT",
    "SIG_DONE",
    "MEM_FAULT",
    "MEM_DROP",
    "MEM_DRAMCNT",
    "MEM_STGCNT",
]

RoundHook = Callable[[Round, RoundResult], None]


class Device:
    """Owns a transport and the cumulative signal counts of its nodes.

    Args:
        transport: the machine.
        machine_hash: digest of the MachineSpec programs for this machine are compiled with;
            None accepts any program that names this machine.
        disassemble: shows instructions that fault.
        window: memory is reached through the host's memory window instead of the transport's back door.

    Raises:
        DriverError: the machine is not what its description says.
    """

    def __init__(
        self,
        transport: Transport,
        machine_hash: str | None = None,
        disassemble: Disassembler | None = None,
        *,
        window: bool = False,
    ) -> None:
        self.transport = transport
        self.machine_hash = machine_hash
        self.description: dict[str, Any] = transport.description
        self.name: str = self.description["name"]
        self.nodes: list[Node] = sorted((x, y) for kind in self.description["units"].values() for x, y in kind)
        self.disassemble = disassemble
        self.window = window
        self._kinds: dict[Node, str] = {
            (x, y): kind for kind, places in self.description["units"].items() for x, y in places
        }
        self._sent: dict[Node, list[int]] = {}
        self._txn = 0
        self._expect: dict[Node, int] = {}
        self._check_machine()
        self.resync()

    def _check_machine(self) -> None:
        names = ("CAPS2", "ENG_CAPS", "MEM_CAPS")
        caps, engine, memory = self.transport.read64([address(n) for n in names])
        seen, store = fields("CAPS2", caps), fields("MEM_CAPS", memory)
        for what, have, want in (
            ("staging slots", seen["stage_flits"], self.description["stage_flits"]),
            ("orchestrator (x, y)", (seen["orc_x"], seen["orc_y"]), tuple(self.description["orch"])),
            ("command slots", fields("ENG_CAPS", engine)["ncmd"], self.description["ncmd"]),
            ("bytes of DRAM", 1 << store["dram_log2"], self.description.get("dram_bytes", 1 << 32)),
            ("bytes of the staging store", store["stage_bytes"], self.description.get("stage_bytes", 0)),
        ):
            if have != want:
                raise DriverError(f"machine {self.name}: {what} read as {have}, its description says {want}")
        self._orch: Node = (seen["orc_x"], seen["orc_y"])

    def resync(self) -> None:
        """Read the cumulative signal counts, as after opening and after a failed round."""
        external: list[Node] = [(x, y) for x, y in self.description.get("external", [])]
        senders = sorted({*self.nodes, *external})
        values = self.transport.read64([address("NODE_STATUS", y << 4 | x) for x, y in senders])
        for node, value in zip(senders, values, strict=True):
            self._expect[node] = fields("NODE_STATUS", value)["signal_count"]

    def reset(self) -> None:
        """Reset the machine; memory keeps its contents."""
        self.transport.reset()
        self.resync()

    # -- memory --
    def write(self, addr: int, data: bytes) -> None:
        """Write bytes at a 40-bit address.

        Raises:
            DriverError: an address or length that is not a whole number of 32-byte words.
        """
        check_words("write", addr, len(data))
        if self.window:
            self.upload(addr, data)
            return
        self.transport.mem_write(addr, data)

    def read(self, addr: int, n: int) -> bytes:
        """Read ``n`` bytes at a 40-bit address.

        Raises:
            DriverError: an address or length that is not a whole number of 32-byte words.
        """
        check_words("read", addr, n)
        if self.window:
            return self.readback(addr, n)
        return self.transport.mem_read(addr, n)

    def upload(self, addr: int, data: bytes, strobe: bytes | None = None) -> None:
        """Write through the host's memory window, as a card does: checked and counted by the machine.

        Args:
            addr: 40-bit address in DRAM or in the staging store.
            strobe: one byte a byte of data, 0 keeps what is there.

        Raises:
            DriverError: not whole words, no window, or a refused burst; names address and response.
        """
        HostWindow(self.transport).write(addr, data, strobe)

    def readback(self, addr: int, n: int) -> bytes:
        """Read through the host's memory window.

        Raises:
            DriverError: as :meth:`upload`.
        """
        return HostWindow(self.transport).read(addr, n)

    # -- programs --
    def load(self, artifact: Artifact) -> None:
        """Check an artifact and write its images into memory.

        Raises:
            DriverError: compiled for another machine.
            kohakuabi.ArtifactError: compiled for another build of this machine, or unfit to run.
        """
        if artifact.machine != self.name:
            raise DriverError(
                f"artifact was compiled for {artifact.machine}, this device is {self.name}; compile it again"
            )
        artifact.check(self.machine_hash)
        self._sent = {}
        self.place_adapters()
        for image in artifact.images:
            self.write(image.address, image.data + bytes(-len(image.data) % g.MEM_WORD_BYTES))

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
            load: check the artifact and write its images first.
            on_round: called after each round, failed or not.
            progress: called with (round, cycles so far) now and then.
        """
        if load:
            self.load(artifact)
        done: list[RoundResult] = []
        for r in artifact.rounds():
            tick = partial(progress, r.index) if progress else None
            result = self.run_round(r, artifact.cycles(r.index), tick)
            done.append(result)
            if on_round:
                on_round(r, result)
            if result.failed:
                break
        return RunResult(tuple(done))

    def run_round(
        self, r: Round, modelled_cycles: int = 0, progress: Callable[[int], None] | None = None
    ) -> RoundResult:
        """Upload, GO, wait, read back (docs/spec/fabric.md 8); a failed round leaves the machine at rest.

        Raises:
            DriverError: the engine or a unit does not come to rest.
        """
        signals_before = len(self.transport.signals() or [])
        counters = ("SIG_DONE", "MEM_DRAMCNT", "MEM_STGCNT")
        before = dict(zip(counters, self.transport.read64([address(n) for n in counters]), strict=True))
        expect = dict(self._expect)
        commands = build_round(r.steps, expect, code=r.index)
        poll_limit = max(MIN_POLL_LIMIT, 8 * modelled_cycles // (g.POLL_IVL + 1))
        self.transport.write64(
            [
                *self._clear(r.steps),
                *self._staging(r.steps, r.payloads),
                *self._commands(commands),
                (address("ENG_POLL_LIMIT"), poll_limit),
                (address("ENG_CTRL"), pack("ENG_CTRL", go=1)),
            ]
        )
        limit = sum(c.op == "POLL" for c in commands) * poll_limit * CYCLES_PER_POLL + CYCLES_PER_ROUND
        if not self.transport.wait_done(limit, progress):
            raise DriverError(f"round {r.index}: the engine did not stop within {limit} cycles although its polls end")
        mine: dict[Node, list[int]] = {}
        for kick in (s for s in r.steps if isinstance(s, Kick)):
            mine.setdefault((kick.x, kick.y), []).extend(r.payloads[kick.base : kick.base + kick.n])
        result = self._collect(r, before, signals_before, commands, mine)
        for node, payloads in mine.items():
            self._sent.setdefault(node, []).extend(payloads)
        if result.failed:
            self._recover()
        else:
            self._expect = expect
        return result

    @staticmethod
    def _clear(steps: Sequence[Step]) -> list[tuple[int, int]]:
        writes = [(address("ERR_STAT"), ALL_ONES), (address("MEM_FAULT"), 0), (address("MEM_DROP"), 0)]
        if any(isinstance(s, Move) for s in steps):
            writes.append((address("MV_CLEAR"), pack("MV_CLEAR", nonfinite=1, fault=1)))
        return writes

    @staticmethod
    def _staging(steps: Sequence[Step], payloads: Sequence[int]) -> list[tuple[int, int]]:
        writes = []
        for number, kick in enumerate(s for s in steps if isinstance(s, Kick)):
            for i in range(kick.n):
                slot = kick.base + i
                flit = pack(
                    "FLIT",
                    type=g.MessageType.CU_INST,
                    txn=number & 255,
                    last=int(i == kick.n - 1),
                    payload=payloads[slot],
                )
                writes += [(address("STAGE", g.FLIT_WORDS * slot + w), v) for w, v in enumerate(_words(flit))]
        return writes

    def _commands(self, commands: Sequence[Command]) -> list[tuple[int, int]]:
        if len(commands) > self.description["ncmd"]:
            raise DriverError(f"{len(commands)} commands exceed the {self.description['ncmd']} command slots")
        writes = []
        for n, c in enumerate(commands):
            target = address(c.register, c.index) if c.register else 0
            for f, value in enumerate((_OPS[c.op], target, c.data, c.mask)):
                writes.append((address("CMD", 4 * n + f), value))
        return writes

    def _collect(
        self,
        r: Round,
        before: dict[str, int],
        signals_before: int,
        commands: Sequence[Command],
        sent: Mapping[Node, Sequence[int]],
    ) -> RoundResult:
        values = dict(
            zip(_RESULT_REGISTERS, self.transport.read64([address(n) for n in _RESULT_REGISTERS]), strict=True)
        )
        # while a dispatch runs the mailbox sends nothing, so the units could not be asked
        self._stop_dispatcher()
        moves = any(isinstance(s, Move) for s in r.steps)
        everything = self.transport.signals()
        fresh = None if everything is None else [Signal.from_flit(f) for f in everything[signals_before:]]
        pc = fields("ENG_PC", values["ENG_PC"])["pc"]
        return RoundResult(
            index=r.index,
            eng_ctrl=values["ENG_CTRL"],
            eng_pc=pc,
            eng_code=values["ENG_CODE"],
            err_stat=values["ERR_STAT"],
            err_info=values["ERR_INFO"],
            prog_stat=values["PROG_STAT"],
            sig_done=(values["SIG_DONE"] - before["SIG_DONE"]) & 0xFFFF,
            mem_fault=values["MEM_FAULT"],
            mem_drop=values["MEM_DROP"],
            dram_words=_counted("MEM_DRAMCNT", before, values),
            stage_words=_counted("MEM_STGCNT", before, values),
            nodes=tuple(self._node(n, fresh, sent.get(n, ())) for n in self.nodes),
            command=commands[pc] if pc < len(commands) else None,
            aux_stat=self.transport.read64([address("AUX_STAT")])[0] if moves else None,
        )

    def _node(self, node: Node, fresh: list[Signal] | None, sent: Sequence[int]) -> NodeResult:
        x, y = node
        status = fields("NODE_STATUS", self.transport.read64([address("NODE_STATUS", y << 4 | x)])[0])
        mine = None if fresh is None else [s for s in fresh if s.node == node]
        received = g.Signal.DATA_RECEIVED
        completions = None if mine is None else tuple(s for s in mine if s.code != received)
        return NodeResult(
            node=node,
            signal_count=status["signal_count"],
            last_code=status["code"],
            last_arg=status["arg"],
            retired=fields("CU_COUNTERS", self.control_read(node, g.ControlIndex.CU_COUNTERS))["retired"],
            cu_err=self.control_read(node, g.ControlIndex.CU_ERR),
            completions=completions,
            data_received=None if mine is None else tuple(s for s in mine if s.code == received),
            instructions=self._explained(node, completions or (), sent),
        )

    def _explained(self, node: Node, completions: Sequence[Signal], sent: Sequence[int]) -> dict[int, str]:
        """Disassembly of the node's instructions of this round that faulted, by position."""
        faulted = [i for i, s in enumerate(completions) if s.code == g.Signal.FAULT and i < len(sent)]
        if not faulted or self.disassemble is None:
            return {}
        debug = self.control_read(node, g.ControlIndex.CU_DBG)
        earlier = tuple(self._sent.get(node, ()))
        return {
            i: self.disassemble(Faulted(
                    self._kinds.get(node, ""), sent[i], completions[i].arg, (*earlier, *sent[: i + 1]), debug
                ))
            for i in faulted
        }

    def control_read(self, node: Node, index: int) -> int:
        """A discovery register of a unit, through the mailbox (docs/spec/fabric.md 5.5 and 6.4).

        Raises:
            DriverError: no answer.
        """
        return self._control(node, g.CTRL_OP_READ, index)["value"]

    def control_write(self, node: Node, index: int, value: int) -> int:
        """Write a control register behind a unit's coordinate; the value it answers with.

        Raises:
            DriverError: no answer, or the register cannot be written.
        """
        reply = self._control(node, g.CTRL_OP_WRITE, index, value)
        if reply["op"] != g.CTRL_OP_RSP:
            raise DriverError(f"unit {node} refused the write of {value:#x} to control register {index:#04x}")
        return reply["value"]

    def _control(self, node: Node, op: int, index: int, value: int = 0) -> dict[str, int]:
        self._txn = (self._txn + 1) & 255
        request = pack(
            "FLIT",
            dst_x=node[0],
            dst_y=node[1],
            src_x=self._orch[0],
            src_y=self._orch[1],
            type=g.MessageType.CU_CTRL,
            txn=self._txn,
            last=1,
            payload=pack("CU_CTRL_REQ", op=op, index=index, value=value),
        )
        writes = [(address("TX_FLIT", w), v) for w, v in enumerate(_words(request))]
        self.transport.write64([*writes, (address("TX_KICK"), 1)])
        for _ in range(CONTROL_REPLY_TRIES):
            (status,) = self.transport.read64([address("RX_STATUS")])
            if fields("RX_STATUS", status)["empty"]:
                continue
            words = self.transport.read64([address("RX_FLIT", w) for w in range(g.FLIT_WORDS)])
            self.transport.write64([(address("RX_POP"), 1)])
            head = fields("FLIT", sum(v << 64 * w for w, v in enumerate(words)))
            reply = fields("CU_CTRL_RSP", head["payload"])
            if (head["type"], head["txn"], reply["index"]) == (g.MessageType.CU_CTRL, self._txn, index):
                return reply
        what = "write" if op == g.CTRL_OP_WRITE else "read"
        raise DriverError(f"unit {node} did not answer the {what} of control register {index}")

    def place_adapters(self) -> None:
        """Open the window of every L2 adapter at its recommended place (docs/spec/memory.md 11.3).

        The units have to be at rest. Loading a program does it, because a reset closes the windows.

        Raises:
            DriverError: an adapter that is not what the description says.
        """
        base, _, step = g.ADDRESS_MAP["adapter"]
        base += int(self.description.get("mesh_id", 0)) * step
        lines: dict[str, int] = self.description.get("adapter_lines", {})
        for node in self.nodes:
            depth = lines.get(self._kinds[node], 0)
            if not depth:
                continue
            caps = fields("AD_CAPS", self.control_read(node, g.AdapterIndex.CAPS))
            if (caps["kind"], caps["depth"]) != (g.MEM_ADAPTER_KIND, depth):
                raise DriverError(
                    f"unit {node}: its adapter reads as kind {caps['kind']} with {caps['depth']} lines, "
                    f"the description says {depth}"
                )
            self.control_write(node, g.AdapterIndex.BASE, base)
            self.control_write(node, g.AdapterIndex.ENABLE, 1)

    def _recover(self) -> None:
        """After a failed round: let units come to rest, read the counts again."""
        for node in self.nodes:
            for _ in range(IDLE_TRIES):
                status = self.control_read(node, g.ControlIndex.CU_STATUS)
                if not fields("CU_STATUS", status)["busy"]:
                    break
            else:
                raise DriverError(f"unit {node} is still busy after the failed round; reset the machine")
        self.resync()

    def _stop_dispatcher(self) -> None:
        """Wait until no dispatch runs, aborting one that is stuck.

        Raises:
            DriverError: it runs on.
        """
        for attempt in range(IDLE_TRIES):
            (stat,) = self.transport.read64([address("PROG_STAT")])
            if not fields("PROG_STAT", stat)["run"]:
                return
            if attempt == 1:
                self.transport.write64([(address("PROG_ABORT"), 1)])
        raise DriverError("the dispatcher still runs after it was aborted; reset the machine")

    def close(self) -> None:
        """Release the machine."""
        self.transport.close()


def _words(flit: int) -> list[int]:
    return [flit >> 64 * w & ALL_ONES for w in range(g.FLIT_WORDS)]


def _counted(name: str, before: dict[str, int], after: dict[str, int]) -> tuple[int, int]:
    """(read, written) words between two values of a counter pair."""
    b, a = fields(name, before[name]), fields(name, after[name])
    return (a["read"] - b["read"]) & 0xFFFF_FFFF, (a["written"] - b["written"]) & 0xFFFF_FFFF

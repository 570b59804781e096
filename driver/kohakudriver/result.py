# SPDX-License-Identifier: Apache-2.0
"""What a run left behind: everything the determinism contract compares, and what went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from kohakuabi import Command
from kohakudriver import generated as g
from kohakudriver.registers import fields

LAYER = "L0"

Node = tuple[int, int]

_FAULT_SPACES: dict[int, tuple[str, type[IntEnum]]] = {
    g.CU_TYPE_CLUSTER: ("MG", g.ClusterFault),
    g.CU_TYPE_VECTOR: ("VC", g.VectorFault),
    g.FAULT_MAGIC: ("shell", g.ShellFault),
}


def name_of(codes: type[IntEnum], code: int) -> str:
    """Name of a code, or the bare number if the table has none."""
    return codes(code).name if code in list(codes) else f"{code:#04x}"


def fault_text(arg: int) -> str:
    """A fault word in words: ``MG fault F_GEMM_A (0x05), detail 2``."""
    word = fields("FAULT_ARG", arg)
    space, codes = _FAULT_SPACES.get(word["tag"], (f"{word['tag']:#06x}", g.ShellFault))
    return f"{space} fault {name_of(codes, word['code'])} ({word['code']:#04x}), detail {word['detail']}"


@dataclass(frozen=True)
class Signal:
    """One CU_SIGNAL as the orchestrator took it."""

    node: Node
    code: int
    arg: int
    txn: int

    @classmethod
    def from_flit(cls, flit: int) -> Signal:
        """Decode a 288-bit flit (docs/spec/fabric.md 1.3)."""
        head = fields("FLIT", flit)
        body = fields("CU_SIGNAL", head["payload"])
        return cls((head["src_x"], head["src_y"]), body["code"], body["arg"], head["txn"])

    def text(self) -> str:
        """``INST_COMPLETE arg 0x0 txn 0`` and the like; a fault in words."""
        words = f": {fault_text(self.arg)}" if self.code == g.Signal.FAULT else ""
        return f"{name_of(g.Signal, self.code)} arg {self.arg:#010x} txn {self.txn}{words}"


@dataclass(frozen=True)
class Faulted:
    """What is known of an instruction that ended in a fault, for whoever can read it.

    Args:
        kind: unit type of the node.
        payload: the instruction.
        sent: every payload the node was sent since the program was loaded, oldest first, up to this one.
        debug: CU_DBG of the node after the round.
        arg: argument of the fault.
    """

    kind: str
    payload: int
    arg: int
    sent: tuple[int, ...]
    debug: int


Disassembler = Callable[[Faulted], str]
"""Turns an instruction into text; the driver knows no instruction set."""


@dataclass(frozen=True)
class Fault:
    """A FAULT completion: which node, which instruction of its programs, and the word.

    ``position`` counts the node's instructions of the round from 0; None when only the last
    signal of the node is known. ``instruction`` is its disassembly, "" without a disassembler.
    """

    node: Node
    position: int | None
    arg: int
    instruction: str = ""

    def text(self) -> str:
        """Node, instruction and fault word in words."""
        which = "an instruction" if self.position is None else f"instruction {self.position}"
        shown = f": {self.instruction}" if self.instruction else ""
        return f"node {self.node}: {which} ended in {fault_text(self.arg)}{shown}"


@dataclass(frozen=True)
class NodeResult:
    """State of one node at the end of a round; ``instructions`` are the faulted ones by position, as text."""

    node: Node
    signal_count: int
    last_code: int
    last_arg: int
    retired: int
    cu_err: int
    completions: tuple[Signal, ...] | None
    data_received: tuple[Signal, ...] | None
    instructions: Mapping[int, str] = field(default_factory=dict)

    @property
    def err_bits(self) -> int:
        """Sticky bits of CU_ERR, without the header of the first event."""
        sticky = fields("CU_ERR", self.cu_err)
        return self.cu_err & ~(sticky["first_hdr"] << 16)

    def faults(self) -> list[Fault]:
        """FAULT completions in order; the last signal when the sequence is unknown."""
        if self.completions is None:
            return [Fault(self.node, None, self.last_arg)] if self.last_code == g.Signal.FAULT else []
        return [
            Fault(self.node, i, s.arg, self.instructions.get(i, ""))
            for i, s in enumerate(self.completions)
            if s.code == g.Signal.FAULT
        ]

    def problems(self) -> list[str]:
        """Faults, rejected bursts and sticky errors in words."""
        out = [f.text() for f in self.faults()]
        for s in self.data_received or ():
            word = fields("DATA_ARG", s.arg)
            if word["reject"]:
                reason = name_of(g.RejectReason, word["reason"])
                out.append(f"node {self.node}: burst to buffer {word['buf_id']} rejected, {reason}")
        sticky = [f"{n} = {v:#x}" if v > 1 else n for n, v in fields("CU_ERR", self.err_bits).items() if v]
        if sticky:
            out.append(f"node {self.node}: CU_ERR {', '.join(sticky)}")
        return out


@dataclass(frozen=True)
class RoundResult:
    """One round as the driver saw it after the engine was done.

    Args:
        command: the command at ``eng_pc``.
        aux_stat: status of the mover, None if the round moves nothing.
        dram_words, stage_words: (read, written) during the round.
    """

    index: int
    eng_ctrl: int
    eng_pc: int
    eng_code: int
    err_stat: int
    err_info: int
    prog_stat: int
    sig_done: int
    mem_fault: int
    mem_drop: int
    dram_words: tuple[int, int]
    stage_words: tuple[int, int]
    nodes: tuple[NodeResult, ...]
    command: Command | None = None
    aux_stat: int | None = None

    @property
    def failed(self) -> bool:
        """True by the await recipe: engine error, ERR_STAT, or a fault of the mover."""
        moved_badly = self.aux_stat is not None and fields("MV_STAT", self.aux_stat)["sticky"]
        return bool(fields("ENG_CTRL", self.eng_ctrl)["err"] or self.err_stat or moved_badly)

    def problems(self) -> list[str]:
        """Every reason why the round failed, in words."""
        if not self.failed:
            return []
        out = []
        ctrl = fields("ENG_CTRL", self.eng_ctrl)
        if ctrl["err"]:
            at = f" {command_text(self.command)}" if self.command else ""
            out.append(
                f"engine stopped at command {self.eng_pc}{at}: {name_of(g.EngineError, ctrl['err_code'])}"
            )
        out += [f"ERR_STAT.{n}" for n, v in fields("ERR_STAT", self.err_stat).items() if v]
        if self.err_info:
            e = fields("ERR_INFO", self.err_info)
            first = Signal((e["node_x"], e["node_y"]), e["code"], e["arg"], 0)
            out.append(f"ERR_INFO: {e['events']} events, the first from node {first.node}, {first.text()}")
        if self.mem_fault:
            m = fields("MEM_FAULT", self.mem_fault)
            who = f"node {(m['node'] & 15, m['node'] >> 4)}, txn {m['txn']}"
            if m["cls"] != g.RequesterClass.PORT:
                who = f"requester {name_of(g.RequesterClass, m['cls'])}"
            out.append(f"MEM_FAULT {name_of(g.MemFault, m['code'])} at address {m['addr']:#x}, {who}")
        if self.aux_stat is not None:
            m = fields("MV_STAT", self.aux_stat)
            if m["sticky"]:
                which = f"mover fault {name_of(g.MoverFault, m['fault'])}"
                if not m["fault"]:
                    which = "a move before the last one faulted,"
                out.append(f"AUX_STAT: {which} after {m['moves']} moves")
        for n in self.nodes:
            out += n.problems()
        return out


def command_text(c: Command) -> str:
    """``POLL NODE_STATUS[18] mask 0xffff01 want 0x501`` and the like."""
    if c.op == "DONE":
        return f"DONE {c.data}"
    where = f"{c.register}[{c.index}]" if c.index else c.register
    return f"WR {where} {c.data:#x}" if c.op == "WR" else f"POLL {where} mask {c.mask:#x} want {c.data:#x}"


@dataclass(frozen=True)
class RunResult:
    """All rounds that ran; a failed round is the last one."""

    rounds: tuple[RoundResult, ...] = field(default_factory=tuple)

    @property
    def failed(self) -> bool:
        """True if a round failed."""
        return any(r.failed for r in self.rounds)

    def problems(self) -> list[str]:
        """Problems of the failed round, each with the round's number."""
        return [f"round {r.index}: {p}" for r in self.rounds for p in r.problems()]

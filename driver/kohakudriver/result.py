# SPDX-License-Identifier: Apache-2.0
"""What a run left behind: everything the determinism contract compares, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakudriver import generated as g
from kohakudriver.registers import fields

Node = tuple[int, int]


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
        return cls(
            (flit >> 276 & 15, flit >> 272 & 15), flit >> 248 & 255, flit >> 216 & 0xFFFF_FFFF, flit >> 260 & 255
        )

    def text(self) -> str:
        """``INST_COMPLETE arg 0x0 txn 0`` and the like."""
        name = g.Signal(self.code).name if self.code in list(g.Signal) else f"code {self.code:#x}"
        return f"{name} arg {self.arg:#010x} txn {self.txn}"


@dataclass(frozen=True)
class Fault:
    """A FAULT completion: which node, which instruction of its programs, and the word."""

    node: Node
    position: int
    arg: int

    def text(self) -> str:
        """The fault word in words."""
        tag, detail, code = self.arg >> 16, self.arg >> 8 & 15, self.arg & 255
        space = {g.CU_TYPE_CLUSTER: "MG", g.CU_TYPE_VECTOR: "VC", g.FAULT_MAGIC: "shell"}.get(tag, f"{tag:#06x}")
        return f"node {self.node}: instruction {self.position} ended in {space} fault {code:#04x}, detail {detail}"


@dataclass(frozen=True)
class NodeResult:
    """State of one node at the end of a round."""

    node: Node
    signal_count: int
    last_code: int
    last_arg: int
    retired: int
    err_bits: int
    completions: tuple[Signal, ...] | None
    data_received: tuple[Signal, ...] | None

    def faults(self) -> list[Fault]:
        """FAULT completions in order; empty when the sequence is unknown."""
        return [
            Fault(self.node, i, s.arg)
            for i, s in enumerate(self.completions or ())
            if s.code == g.Signal.FAULT
        ]


@dataclass(frozen=True)
class RoundResult:
    """One round as the driver saw it after the engine was done."""

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
    nodes: tuple[NodeResult, ...]

    @property
    def failed(self) -> bool:
        """True by the await recipe: the engine stopped with an error, or ERR_STAT is set."""
        return bool(fields("ENG_CTRL", self.eng_ctrl)["err"]) or self.err_stat != 0

    def problems(self) -> list[str]:
        """Every reason why the round failed, in words."""
        if not self.failed:
            return []
        out = []
        ctrl = fields("ENG_CTRL", self.eng_ctrl)
        if ctrl["err"]:
            out.append(f"engine stopped at command {self.eng_pc}: {g.EngineError(ctrl['err_code']).name}")
        out += [f"ERR_STAT.{n}" for n, v in fields("ERR_STAT", self.err_stat).items() if v]
        if self.mem_fault & 15:
            m = fields("MEM_FAULT", self.mem_fault)
            name = g.MemFault(m["code"]).name
            out.append(f"MEM_FAULT {name} at address {m['addr']:#x}, node {m['node'] & 15, m['node'] >> 4}, txn {m['txn']}")
        for n in self.nodes:
            out += [f.text() for f in n.faults()]
        return out


@dataclass(frozen=True)
class RunResult:
    """All rounds that ran; a failed round is the last one."""

    rounds: tuple[RoundResult, ...] = field(default_factory=tuple)

    @property
    def failed(self) -> bool:
        return any(r.failed for r in self.rounds)

    def problems(self) -> list[str]:
        """Problems of the failed round, each with the round's number."""
        return [f"round {r.index}: {p}" for r in self.rounds for p in r.problems()]

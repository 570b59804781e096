# SPDX-License-Identifier: Apache-2.0
"""Cycles counted while payloads execute: the second route to the figures of docs/spec/compiler.md 14.2.

Works on payload words alone. A vector core runs them on its reference model; a cluster's are decoded, because no
instruction of it depends on another.
"""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.cost.profile import HiddenFills, Profile, Spent, filled
from kohakutpu.ints import cdiv, up
from kohakutpu.isa import generated as g
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import ClusterOp, EnvelopeOp
from kohakutpu.isa.generated import VectorOp as Op
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.cluster_decode import Instruction as ClusterInstruction
from kohakutpu.model.vector import PlainLink, VectorUnit
from kohakutpu.model.vector_core import RunResult, VectorCore
from kohakutpu.model.vector_decode import Instruction
from kohakutpu.model.vector_memory import Link

LAYER = "L0"

_ENTRY_WORDS = g.MG_ENTRY_WORDS
"""Words a VDRAIN writes for every MXFP7 entry it quantises."""
_CONTROL = frozenset({Op.VSETI, Op.VSETVL, Op.VSETMODE, Op.VBAR, Op.VFILL, Op.VDRAIN})


class CountingCore(VectorCore):
    """The reference model of a core, with a count of what it executes."""

    def __init__(self, link: Link, mx_store: bool = False) -> None:
        super().__init__(link, mx_store)
        self.lanes = 0
        self.issued = 0
        self.halted = 0
        self.walked = 0

    def run(self, pc: int, limit: int | None = None) -> RunResult:
        """One RUN; its VHALT counts the beats of the vector length it finds."""
        result = super().run(pc, limit)
        self.halted += self._beats if result.fault is None else 0
        return result

    @property
    def _beats(self) -> int:
        return cdiv(self.vl, g.VC_LANES)

    def _execute(self, i: Instruction, at: int) -> None:
        beats = self._beats
        super()._execute(i, at)
        if i.op in _CONTROL:
            self.issued += 1
        else:
            # a chain group fetches its further words while it executes
            self.lanes += beats * (self._next - at)
        if i.op in (Op.VFILL, Op.VDRAIN):
            self.walked += self.memory.descriptors[i.ad].total * (_ENTRY_WORDS if i.mx else 1)


def payloads(kind: str, words: Iterable[int], machine: MachineSpec, profile: Profile) -> Spent:
    """What a unit of type ``kind`` spends on these payloads, in order, coming from reset.

    Raises:
        ValueError: a type without a model, or a vector kernel that faults.
    """
    if kind == "MG":
        return _cluster([ClusterInstruction.decode(w) for w in words], machine, profile)
    if kind == "VC":
        return _vector(list(words), machine, profile)
    raise ValueError(f"a unit of type {kind} has no cost model; there are MG and VC")


def _cluster(listed: list[ClusterInstruction], machine: MachineSpec, profile: Profile) -> Spent:
    mac = fill = drain = words = 0
    hidden = HiddenFills()
    for i in listed:
        if i.op == ClusterOp.FILL:
            fill += filled(i.n, profile.refill, hidden, profile)
            words += i.n * machine.mx_entry_bytes // machine.word_bytes
        elif i.op == ClusterOp.GEMM:
            sweep = cdiv(
                machine.lanes**2 * i.gm * i.gn * machine.kblock * up(i.nk, machine.k_per_issue), machine.macs_per_cycle
            )
            fill += filled((i.gm + i.gn) * i.nk, not profile.refill, hidden, profile)
            mac += sweep
            hidden.sweep(sweep)
            words += i.gm * i.gn if i.emit and not i.node else 0
        elif i.op == ClusterOp.DRAIN:
            drain += i.granules
            words += 0 if i.fuse or i.node else i.n
    return Spent(mac, fill, drain, hidden=hidden.total, payloads=len(listed), words=words)


def _vector(listed: list[int], machine: MachineSpec, profile: Profile) -> Spent:
    link = PlainLink()
    unit = VectorUnit(link)
    core = unit.core = CountingCore(link, "vec_mx_store" in machine.features)
    loaded = 0
    for number, word in enumerate(listed):
        retired = unit.execute(word)
        if retired.fault:
            raise ValueError(f"payload {number} ends in fault {retired.result:#x}; only sound kernels have a cost")
        loaded += isa.decode_envelope(word)[0] is not EnvelopeOp.RUN
    control = profile.control * (loaded + core.issued + core.halted)
    return Spent(
        lanes=core.lanes,
        control=control,
        walk=profile.walk * core.walked,
        payloads=len(listed),
        words=core.walked,
    )

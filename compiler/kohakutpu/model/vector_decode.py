# SPDX-License-Identifier: Apache-2.0
"""Instruction words of the vector core and the checks one word can be judged by alone (docs/spec/vector.md).

The rows follow the order of section 11.2: F_OPCODE, reserved encodings, F_CHAIN, F_VSRC.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache

from kohakutpu.isa import generated as g
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import BroadcastSource, ImmediateTarget, LaneMode, Reduction, Source
from kohakutpu.isa.generated import VectorFault as F
from kohakutpu.isa.generated import VectorOp as Op

LAYER = "L0"

DEPTH = {LaneMode.FLAT: 1, LaneMode.D2: 2, LaneMode.D4: 4, LaneMode.TREE: 1}
"""Words of an arithmetic group."""

COMPARES = (Op.VCMPLT, Op.VCMPGT, Op.VCMPEQ)
_READS = {Op[name]: frozenset(row[2]) for name, row in g.VC_OPCODES.items()}


@dataclass(frozen=True)
class Instruction:
    """One decoded word; fields its format does not have are 0. `sa` is a register number in VSETVL and VLOOP."""

    op: Op
    sa: int = 0
    sb: int = 0
    sc: int = 0
    vd: int = 0
    va: int = 0
    vb: int = 0
    vc: int = 0
    pr: int = 0
    pm: int = 0
    dtype: int = 0
    ad: int = 0
    off: int = 0
    sd: int = 0
    kind: int = 0
    d: int = 0
    a: int = 0
    sk: int = 0
    mode: int = 0
    sel: int = 0
    body: int = 0
    l1: int = 0
    mx: int = 0
    signal: int = 0
    node: int = 0
    dst_x: int = 0
    dst_y: int = 0
    buf: int = 0

    @property
    def arithmetic(self) -> bool:
        """True for opcodes 0x00..0x11."""
        return self.op <= Op.VRSQRT

    @property
    def compare(self) -> bool:
        """True for VCMPLT, VCMPGT, VCMPEQ."""
        return self.op in COMPARES

    @property
    def operands(self) -> dict[str, tuple[int, int]]:
        """Operand -> (selector, register number) of the slots an arithmetic opcode reads."""
        slots = {"a": (self.sa, self.va), "b": (self.sb, self.vb), "c": (self.sc, self.vc)}
        return {name: slot for name, slot in slots.items() if name in _READS[self.op]}

    @property
    def selectors(self) -> tuple[int, int, int]:
        """The three source selectors, read or not."""
        return self.sa, self.sb, self.sc


_NAMES = frozenset(f.name for f in fields(Instruction))


@lru_cache(maxsize=4096)
def decode(word: int) -> Instruction:
    """Fields of a 32-bit word; reserved bits are ignored."""
    op, values = isa.decode(word)
    return Instruction(op, **{name: value for name, value in values.items() if name in _NAMES})


def check_arithmetic(i: Instruction, mode: LaneMode, position: int) -> F | None:
    """Word `position` of an arithmetic group of `mode`."""
    depth = DEPTH[mode]
    if mode == LaneMode.TREE or not i.arithmetic:
        return F.F_OPCODE
    if i.pm > g.PredicateMode.CLEAR or (i.pm and (i.compare or position < depth - 1)):
        return F.F_ENC
    if any(sel == Source.K and number >= g.VC_KREGS for sel, number in i.operands.values()):
        return F.F_ENC
    if position == 0 and Source.C in i.selectors:
        return F.F_CHAIN
    if position > 0 and Source.V in i.selectors:
        return F.F_VSRC
    return None


def check_move(i: Instruction) -> F | None:
    """Reserved encodings of the remaining instructions that no descriptor is needed for."""
    match i.op:
        case Op.VCVT:
            return None if i.dtype in list(g.VectorDtype) else F.F_DTYPE
        case Op.VBCAST:
            return None if i.sa in list(BroadcastSource) else F.F_ENC
        case Op.VSHUF:
            return F.F_ENC if i.pm > g.PredicateMode.CLEAR else None
        case Op.VSETMODE:
            return None if i.mode in list(LaneMode) else F.F_ENC
        case Op.VSETI:
            return None if i.sel in list(ImmediateTarget) else F.F_ENC
    return None


def check_reduction(i: Instruction, mode: LaneMode, vl: int) -> F | None:
    """VRED: encodings, then F_REDVL, then F_OPCODE."""
    if i.kind not in list(Reduction) or i.pm or (i.kind == Reduction.SUMSQ and i.vb != i.va):
        return F.F_ENC
    if i.kind in (Reduction.ANY, Reduction.ALL):
        return None
    if vl % g.VC_LANES:
        return F.F_REDVL
    return None if mode == LaneMode.TREE else F.F_OPCODE

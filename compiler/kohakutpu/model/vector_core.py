# SPDX-License-Identifier: Apache-2.0
"""The kernel interpreter of the vector core: one RUN, word by word (docs/spec/vector.md sections 3 to 8, 11).

Registers are numpy arrays and every instruction is one array operation. `VectorMemory` does the memory words.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import (
    ImmediateTarget,
    LaneMode,
    PredicateMode,
    Reduction,
    Source,
    VectorDtype,
    VectorFault,
)
from kohakutpu.isa.generated import VectorFault as F
from kohakutpu.isa.generated import VectorOp as Op
from kohakutpu.model.numerics import e8m15_to_fp16, fp16_to_e8m15, lane, reduce_elements
from kohakutpu.model.numerics.bits import U32
from kohakutpu.model.numerics.e8m15_codes import MINUS_ONE, ONE, ZERO
from kohakutpu.model.vector_decode import (
    DEPTH,
    Instruction,
    check_arithmetic,
    check_move,
    check_reduction,
    decode,
)
from kohakutpu.model.vector_memory import Link, VectorMemory

LAYER = "L0"

Bool = npt.NDArray[np.bool_]


class RunawayError(RuntimeError):
    """A RUN executed more instructions than its caller allowed."""


@dataclass(frozen=True)
class RunResult:
    """How a RUN ended: fault or None, and the address of the faulting instruction or of the VHALT.

    `pc` of a fault in a chain group or VSETI pair is its first word; a fetch past word 511 reports 0.
    `instructions` counts what was executed, a chain group as one.
    """

    fault: VectorFault | None
    pc: int
    instructions: int


class _FaultError(Exception):
    """Ends a RUN."""

    def __init__(self, code: VectorFault) -> None:
        self.code = code


@dataclass
class _Loop:
    top: int
    end: int
    left: int


class VectorCore:
    """Architectural state of one core, as after reset, and its execution.

    `v` is uint32 (16, 128), `s` uint32 (16,), `k` uint32 (4,), `p` bool (4, 128), `imem` uint32 (512,).
    `memory` holds L1 and descriptors.
    """

    def __init__(self, link: Link, mx_store: bool = False) -> None:
        self.memory = VectorMemory(link, mx_store)
        self.v: U32 = np.zeros((g.VC_VREGS, g.VC_VLMAX), dtype=np.uint32)
        self.s: U32 = np.zeros(g.VC_SREGS, dtype=np.uint32)
        self.k: U32 = np.array([ZERO, ONE, MINUS_ONE, ZERO], dtype=np.uint32)
        self.p: Bool = np.zeros((g.VC_PREGS, g.VC_VLMAX), dtype=bool)
        self.imem: U32 = np.zeros(g.VC_IMEM_WORDS, dtype=np.uint32)
        self.vl = g.VC_VLMAX
        self.mode = LaneMode.FLAT
        self._loop: _Loop | None = None
        self._next = 0

    def write_imem(self, addr: int, words: Iterable[int]) -> None:
        """Instruction words from `addr` on."""
        for n, word in enumerate(words):
            self.imem[addr + n] = word

    # ------------------------------------------------------------ control

    def run(self, pc: int, limit: int | None = None) -> RunResult:
        """One RUN from `pc`. Raises RunawayError after `limit` instructions, for tests."""
        self._loop, self._next = None, pc
        count = 0
        start = pc
        fault: VectorFault | None = None
        try:
            while True:
                start = self._next
                i = decode(self._fetch())
                count += 1
                if limit is not None and count > limit:
                    raise RunawayError(f"RUN {pc}: more than {limit} instructions")
                if i.op == Op.VHALT:
                    _stop(self.memory.barrier())
                    break
                self._execute(i, start)
                self._close_loop()
        except _FaultError as stopped:
            fault = stopped.code
        self.memory.retire()
        return RunResult(fault, start % g.VC_IMEM_WORDS, count)

    def _fetch(self) -> int:
        """The next word; inside an instruction the loop end is a limit too, and comes first."""
        if self._loop is not None and self._next > self._loop.end:
            raise _FaultError(F.F_LOOP)
        if self._next >= g.VC_IMEM_WORDS:
            raise _FaultError(F.F_PC)
        self._next += 1
        return int(self.imem[self._next - 1])

    def _close_loop(self) -> None:
        loop = self._loop
        if loop is None or self._next != loop.end + 1:
            return
        loop.left -= 1
        if loop.left:
            self._next = loop.top
        else:
            self._loop = None

    def _execute(self, i: Instruction, at: int) -> None:
        if i.arithmetic:
            self._group(i)
            return
        _stop(check_move(i))
        match i.op:
            case Op.VCVT:
                self._convert(i)
            case Op.VRED:
                self._reduce(i)
            case Op.VLD:
                elements, fault = self.memory.load(i.dtype, i.ad, i.off, self.vl)
                self.v[i.vd, : len(elements)] = elements
                _stop(fault)
            case Op.VST:
                _stop(self.memory.store(i.dtype, i.ad, i.off, self.vl, self.v[i.vd]))
            case Op.VBCAST:
                if i.sa == g.BroadcastSource.S:
                    self.v[i.d, : self._whole] = self.s[i.a]
                else:
                    self.s[i.d] = self.v[i.a, 0]
            case Op.VSHUF:
                self._shuffle(i)
            case Op.VSETVL:
                length = int(self.s[i.sa])
                _stop(None if 1 <= length <= g.VC_VLMAX else F.F_VL)
                self.vl = length
            case Op.VSETMODE:
                self.mode = LaneMode(i.mode)
            case Op.VSETI:
                self._immediate(i)
            case Op.VLOOP:
                self._start_loop(i, at)
            case Op.VBAR:
                _stop(self.memory.barrier())
            case Op.VFILL:
                _stop(self.memory.fill(i.ad, i.l1))
            case Op.VDRAIN:
                dst = (i.dst_x, i.dst_y)
                _stop(self.memory.drain(i.ad, i.l1, i.node, dst, i.buf, i.signal, i.mx))

    def _immediate(self, i: Instruction) -> None:
        word = codec("VC_IMM").decode(self._fetch())
        _stop(F.F_ENC if word["zero"] else None)
        if i.sel == ImmediateTarget.K3:
            self.k[3] = word["imm"]
        else:
            self.s[i.sd] = word["imm"]

    def _start_loop(self, i: Instruction, at: int) -> None:
        count = int(self.s[i.sa])
        end = at + i.body
        if self._loop is not None or count == 0 or i.body == 0 or end >= g.VC_IMEM_WORDS:
            raise _FaultError(F.F_LOOP)
        self._loop = _Loop(at + 1, end, count)

    # ------------------------------------------------------------ vectors

    @property
    def _whole(self) -> int:
        """Elements of the whole chunks that VL touches."""
        return -(-self.vl // g.VC_LANES) * g.VC_LANES

    def _group(self, head: Instruction) -> None:
        """One FLAT word or one chain group; nothing is written before all its words are sound."""
        words = [head]
        _stop(check_arithmetic(head, self.mode, 0))
        for position in range(1, DEPTH[self.mode]):
            words.append(decode(self._fetch()))
            _stop(check_arithmetic(words[-1], self.mode, position))
        value = np.zeros(self.vl, dtype=np.uint32)
        for i in words:
            got = {name: self._operand(sel, number, value) for name, (sel, number) in i.operands.items()}
            value = np.broadcast_to(lane(i.op, *(got.get(x, value) for x in "abc")), (self.vl,))
        last = words[-1]
        if last.compare:
            self.p[last.pr, : self.vl] = value != 0
        else:
            np.copyto(self.v[last.vd, : self.vl], value, where=self._mask(last, self.vl))

    def _operand(self, sel: int, number: int, chained: U32) -> npt.ArrayLike:
        if sel == Source.V:
            return self.v[number, : self.vl]
        if sel == Source.C:
            return chained
        return int(self.s[number] if sel == Source.S else self.k[number])

    def _mask(self, i: Instruction, n: int) -> Bool:
        """Which of the first n elements an instruction may write."""
        if i.pm == PredicateMode.ALL:
            return np.ones(n, dtype=bool)
        mask = self.p[i.pr, :n]
        return mask if i.pm == PredicateMode.SET else ~mask

    def _convert(self, i: Instruction) -> None:
        source = self.v[i.va, : self._whole].copy()
        if i.dtype == VectorDtype.FP16:
            self.memory.watch_clamp(source[: self.vl])
            source = fp16_to_e8m15(e8m15_to_fp16(source))
        self.v[i.vd, : self._whole] = source

    def _shuffle(self, i: Instruction) -> None:
        n = self._whole
        turn = int(self.s[i.sk]) % g.VC_LANES
        rotated = np.roll(self.v[i.va, :n].reshape(-1, g.VC_LANES), -turn, axis=1).reshape(-1)
        np.copyto(self.v[i.vd, :n], rotated, where=self._mask(i, n))

    def _reduce(self, i: Instruction) -> None:
        _stop(check_reduction(i, self.mode, self.vl))
        if i.kind in (Reduction.ANY, Reduction.ALL):
            bits = self.p[i.pr, : self.vl]
            self.s[i.sd] = ONE if (bits.any() if i.kind == Reduction.ANY else bits.all()) else ZERO
            return
        result, leaves = reduce_elements(i.kind, self.v[i.va, : self.vl], self.v[i.vb, : self.vl])
        self.s[i.sd] = result
        if leaves is not None:
            self.v[i.vb, : self.vl] = leaves


def _stop(fault: VectorFault | None) -> None:
    """Raise the fault, if there is one."""
    if fault is not None:
        raise _FaultError(fault)

# SPDX-License-Identifier: Apache-2.0
"""The renderer and the compiler tinygrad asks for code (docs/spec/compiler.md 13.2).

The renderer writes the lowered loop nest down as it is; what becomes of it is decided when it is first run, because
only then a substitution and the device are known.
"""

from __future__ import annotations

from typing import Any

from tinygrad.device import CompileError, Compiler
from tinygrad.dtype import AddrSpace, DType, dtypes
from tinygrad.helpers import ansistrip
from tinygrad.renderer import Renderer
from tinygrad.uop import Ops
from tinygrad.uop.ops import AxisType, UOp, python_alu

from ktpu_tinygrad.listing import Line, Listing, parse

REDUCTIONS = (AxisType.REDUCE, AxisType.UNROLL, AxisType.GROUP_REDUCE)
SKIPPED = (Ops.SINK, Ops.NOOP, Ops.GROUP, Ops.BARRIER)
OPERATIONS = (
    *(Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.NEG, Ops.TRUNC),
    *(Ops.ADD, Ops.SUB, Ops.MUL, Ops.MAX, Ops.CDIV, Ops.CMOD, Ops.SHL, Ops.SHR, Ops.XOR, Ops.OR, Ops.AND),
    *(Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ, Ops.WHERE),
)
"""What the host evaluates; tinygrad rewrites every other operation into these."""


class KtpuCompiler(Compiler):
    """Checks a listing. Nothing is kept on disk: a listing costs less than its look-up."""

    def __init__(self) -> None:
        super().__init__(None)

    def compile(self, src: str) -> bytes:
        """The listing as bytes.

        Raises:
            CompileError: a text the renderer does not write.
        """
        try:
            return parse(src).text().encode()
        except (ValueError, KeyError, TypeError) as e:
            raise CompileError(f"no listing of a kernel: {e}") from e


class KtpuRenderer(Renderer):
    """Declares the machine to tinygrad.

    The machine has no threads, no shared memory and no vectors a kernel could name, so a nest keeps its loops. No
    tensor core is declared: tinygrad 0.14 splits the columns of one over local threads, which this machine has not.
    """

    supports_float4 = False
    has_local = False
    has_threads = False
    has_shared = False
    global_max = None
    local_max = None
    shared_max = 0
    tensor_cores = []  # noqa: RUF012 - tinygrad declares it so
    compiler = KtpuCompiler()
    # shifts are left out where a multiplication does: an index stays a sum of products
    code_for_op = {op: python_alu[op] for op in OPERATIONS if op not in (Ops.SHL,) and op in python_alu}  # noqa: RUF012

    def supported_dtypes(self) -> set[DType]:
        """Element types of buffers and registers; the device itself computes on half alone, the host on all."""
        return {*dtypes.ints, dtypes.bool, dtypes.half, dtypes.float, dtypes.double}

    def render(self, uops: list[UOp]) -> str:
        """The listing of a linearised kernel.

        Raises:
            CompileError: an operation of another kind of machine, such as a vector or a thread index.
        """
        return _Writer().listing(uops).text()


class _Writer:
    """Numbers the operations that become lines."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.number: dict[UOp, int] = {}
        self.name, self.optimised = "kernel", ""

    def listing(self, uops: list[UOp]) -> Listing:
        """All of them."""
        for u in uops:
            if u.op is Ops.SINK and u.arg is not None:
                self.name = ansistrip(u.arg.name)
                self.optimised = " ".join(f"{o.op.name}({o.axis}, {o.arg})" for o in u.arg.applied_opts)
            elif u.op is Ops.AFTER:
                self.number[u] = self.number[u.src[0]]
            elif u.op not in SKIPPED and (u.op is not Ops.STACK or u.src):  # an empty stack is a shape
                self.number[u] = len(self.lines)
                self.lines.append(self._line(u))
        return Listing(self.name, tuple(self.lines), self.optimised)

    def _line(self, u: UOp) -> Line:
        if u.op in (Ops.PARAM, Ops.BUFFER):
            return self._storage(u)
        if u.op is Ops.RANGE and u.dtype is not dtypes.void:
            kind = "reduce" if u.arg[-1] in REDUCTIONS else "parallel"
            return Line("range", _type(u), self._args(u.src[:1]), kind=kind)
        if u.op is Ops.END and len(u.src) == 2:
            return Line("end", args=self._args(u.src[1:]))
        if u.op is Ops.IF:
            return Line("if", args=self._args(u.src[:1]))
        if u.op is Ops.CONST:
            return Line("const", _type(u), value=_number(u.val))
        if u.op in (Ops.ENDIF, Ops.INDEX, Ops.LOAD, Ops.STORE, Ops.CAST, Ops.BITCAST, Ops.STACK) or u.op in OPERATIONS:
            return Line(u.op.name.lower(), _type(u), self._args(u.src), size=_elements(u))
        raise CompileError(f"{self.name}: {u.op.name} of {u.dtype} is no operation of this device")

    def _storage(self, u: UOp) -> Line:
        if u.addrspace is AddrSpace.ALU:
            return Line("var", _type(u), value=u.arg.slot)
        if u.op is Ops.PARAM:
            return Line("param", _type(u), value=u.arg.slot, size=u.max_numel())
        return Line("reg", _type(u), size=u.max_numel())

    def _args(self, sources: tuple[UOp, ...]) -> tuple[int, ...]:
        return tuple(self.number[s] for s in sources)


def _type(u: UOp) -> str:
    name: str = u.dtype.name
    return "" if name == "void" else name


def _elements(u: UOp) -> int:
    return int(u.max_numel()) if u.op in (Ops.LOAD, Ops.STACK) else 0


def _number(value: Any) -> int | float | bool:
    """A constant as a number of Python; tinygrad has its own class of floats."""
    return value if isinstance(value, bool | int) else float(value)

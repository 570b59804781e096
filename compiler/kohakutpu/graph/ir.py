# SPDX-License-Identifier: Apache-2.0
"""Values and ops of a graph (docs/spec/compiler.md 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kohakutpu.chain import ARITY
from kohakutpu.dtypes import BY_NAME
from kohakutpu.errors import CompileError
from kohakutpu.views import Spread, Strided, Window

LAYER = "L3"

Role = Literal["in", "out", "temp", "table", "const"]
Matrix = tuple[int, int]
REARRANGE = "rearrange"
"""The op that stores what a strided read of a buffer gives."""
KINDS = {"contract": 2, REARRANGE: 1, **ARITY}
"""Operands of every op kind."""


@dataclass(frozen=True)
class Value:
    """A buffer, a part of one, or a value that never leaves a unit.

    Args:
        dtype: name; a temp of a dtype that has no words in memory (``e8m15``) lives in registers.
        number: of a scalar constant.
        tier: where its author wants it, "dram" or "l2"; "" leaves it to the schedule.
        of, window: the buffer this value is the part ``window`` of, [blocks * rows][cols]. Its parts write that
            buffer, each element once; it is read as a whole.
    """

    name: str
    dtype: str
    shape: Matrix
    role: Role
    number: float | None = None
    tier: str = ""
    of: str = ""
    window: Window | None = None

    @property
    def in_memory(self) -> bool:
        """True if it is a buffer."""
        return self.number is None and (self.dtype not in BY_NAME or BY_NAME[self.dtype].memory)

    def text(self) -> str:
        """Printed form."""
        number = "" if self.number is None else f" = {self.number!r}"
        part = f" of {self.of}{'' if self.window is None else self.window.text()}" if self.of else ""
        tier = f" tier={self.tier}" if self.tier else ""
        return f"{self.role} {self.name}: {self.dtype}{list(self.shape)}{number}{part}{tier}"


@dataclass(frozen=True)
class Op:
    """One hardware feature: kind, argument names, result name, attributes, parts of the arguments that are read.

    ``contract``, with Z = ``batch`` and H = ``join`` (1 if not stated) and the windows A [Z*H or 1 blocks][M][Ka] and
    B [Z or 1 blocks][N][H*Ka]: result[z*M + m, n] = sum over h, k of A[z*H + h][m, k] * B[z][n, h*Ka + k]; a single
    block is shared by all. Without a window an argument is one block. ``split`` SK and ``route`` ("peer", "core",
    "memory") divide the sum into SK partial sums (5.4).

    The lane operations of :data:`kohakutpu.chain.ARITY` work element by element; an operand of one row is read by
    every row, one of one column by every column. ``row_max`` and ``row_sum`` reduce [M][N] to [M][1]. An operand read
    through a Spread has the shape of the result, or of ``rows`` x ``cols`` where they are stated; a fold states them
    for such an operand, and its operand is repeated up to them. A result in memory may be taller or wider than its
    operands: the row, or the value a row, is stored to all of it.

    ``rearrange`` stores to a buffer the elements a Strided read of another gives, in their order; no bit changes.
    """

    kind: str
    args: tuple[str, ...]
    result: str
    attrs: tuple[tuple[str, int | str], ...] = ()
    reads: tuple[Window | Spread | Strided | None, ...] = ()

    def attr(self, name: str) -> int | None:
        """Value of a number attribute, None if not stated."""
        found = dict(self.attrs).get(name)
        return found if isinstance(found, int) else None

    @property
    def route(self) -> str:
        """How partial sums are added, "" if not stated."""
        return str(dict(self.attrs).get("route", ""))

    def read(self, position: int) -> Window | Spread | Strided | None:
        """The part of argument ``position`` that is read, None for all of it."""
        return self.reads[position] if self.reads else None

    def window(self, position: int, shape: Matrix) -> Window:
        """The blocks a contraction reads of argument ``position``, whose value has ``shape``."""
        read = self.read(position)
        return read if isinstance(read, Window) else Window(1, 0, shape[0], 0, shape[1])

    @property
    def space(self) -> Matrix | None:
        """The stated rows and columns of a lane operation."""
        rows, cols = self.attr("rows"), self.attr("cols")
        return None if rows is None or cols is None else (rows, cols)

    def text(self) -> str:
        """Printed form."""
        reads = [self.read(i) for i in range(len(self.args))]
        args = ", ".join(f"{a}{'' if r is None else r.text()}" for a, r in zip(self.args, reads, strict=True))
        return f"{self.result} = {self.kind}({args})" + "".join(f" {k}={v}" for k, v in self.attrs)


@dataclass
class Graph:
    """Values and ops in program order, and groups of values that lie one after another."""

    values: dict[str, Value] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    adjacent: list[tuple[str, ...]] = field(default_factory=list)

    def value(self, value: Value) -> Value:
        """Declare a value.

        Raises:
            CompileError: the name is bound already.
        """
        if value.name in self.values:
            raise CompileError(f"value {value.name} is bound twice; every value is assigned once")
        if any(e < 1 for e in value.shape):
            raise CompileError(f"value {value.name} has shape {value.shape}; every extent must be at least 1")
        self.values[value.name] = value
        return value

    def parts(self) -> dict[str, list[Value]]:
        """The parts of every buffer that is written in parts."""
        out: dict[str, list[Value]] = {}
        for v in self.values.values():
            if v.of:
                out.setdefault(v.of, []).append(v)
        return out

    def text(self) -> str:
        """Printed form, one line a value, a group and an op."""
        groups = [f"adjacent {' '.join(g)}" for g in self.adjacent]
        return "\n".join([*(v.text() for v in self.values.values()), *groups, *(op.text() for op in self.ops)])

# SPDX-License-Identifier: Apache-2.0
"""How a kernel of the device reads the buffers of a nest (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod

from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.library.helpers import STEP
from ktpu_tinygrad.expression import Access, Expr
from ktpu_tinygrad.nest import NoMatchError

FULL, ROW, COLUMN, SCALAR = "full", "row", "column", "scalar"
MAX_OPERANDS = 3
"""Operands of a generated chain, the operands of a product not counted."""

Loop = tuple[int, int]
"""Number and extent of a loop."""


@dataclass(frozen=True)
class Operand:
    """A buffer as an operand.

    Args:
        slot: the parameter.
        form: :data:`FULL`, one value an element; :data:`ROW`, a row all rows read; :data:`COLUMN`, one value a row;
            :data:`SCALAR`, one value.
        shape: the extents the kernel reads, the repetitions included; one axis is a row all rows read.
    """

    slot: int
    form: str
    shape: tuple[int, ...]

    @property
    def one_row(self) -> bool:
        """True if the kernel's port is one row."""
        return len(self.shape) == 1


@dataclass(frozen=True)
class Match:
    """A kernel of the device that does what a nest does.

    Args:
        what: name shown in the schedule.
        kernel: made on demand; a shape the kernel refuses is a CompileError there.
        operands: in order of the kernel's ports.
        shape: extents of the result as the kernel stores it.
        column: the buffer of the nest holds the first value of every row.
        knobs: knobs of the kernel.
        before: kernels that run ahead of it; their results are operands with slots -1, -2 and so on.
    """

    what: str
    kernel: Callable[[], Kernel]
    operands: tuple[Operand, ...]
    shape: tuple[int, ...]
    column: bool = False
    knobs: tuple[tuple[str, float], ...] = ()
    before: tuple[Match, ...] = ()


@dataclass(frozen=True)
class Plane:
    """Matrices of [rows][columns], as the loops of a nest walk them; a loop of one turn is None.

    Args:
        batch: loops in front of the rows.
    """

    row: Loop | None
    column: Loop | None
    batch: tuple[Loop, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return *(n for _, n in self.batch), _extent(self.row), _extent(self.column)

    def whole(self) -> Access:
        """How all elements are walked in order."""
        rows, columns = _extent(self.row), _extent(self.column)
        blocks = {n: rows * columns * prod(e for _, e in self.batch[i + 1 :]) for i, (n, _) in enumerate(self.batch)}
        strides = {**blocks, **_walk(self.row, columns), **_walk(self.column, 1)}
        return Access(tuple(sorted(strides.items())))

    def form(self, access: Access, size: int, prefer: str) -> str:
        """How ``access`` reads a buffer of ``size`` elements, ``prefer`` of several, "" for what no kernel reads."""
        rows, columns = _extent(self.row), _extent(self.column)
        forms = {
            FULL: (dict(self.whole().strides), prod(self.shape)),
            ROW: (_walk(self.column, 1), columns),
            COLUMN: (_walk(self.row, 1), rows),
            SCALAR: ({}, 1),
        }
        found = [f for f, known in forms.items() if (dict(access.strides), size) == known]
        if prefer in found:
            return prefer
        return next((f for f in found if f != COLUMN or not self.batch), "")

    def operand(self, load: Expr, size: int, aligned: bool) -> Operand:
        """A load as an operand.

        Args:
            aligned: a row is shared only if it ends on a word, else every row has its own.

        Raises:
            NoMatchError: strides or a size no kernel reads.
        """
        form = self.form(load.access, size, FULL if aligned else ROW)
        if not form:
            raise NoMatchError(f"strides {_shown(load.access)} into {size} elements fit no operand of {self.shape}")
        shared = form == ROW and not (aligned and self.shape[-1] % STEP)
        return Operand(load.slot, form, self.shape[-1:] if shared else self.shape)


def _extent(loop: Loop | None) -> int:
    return loop[1] if loop else 1


def _walk(loop: Loop | None, stride: int) -> dict[int, int]:
    return {loop[0]: stride} if loop else {}


def _shown(access: Access) -> str:
    return str([stride for _, stride in access.strides])


def loads(value: Expr) -> list[Expr]:
    """The different loads of an expression, in order of appearance."""
    return list(dict.fromkeys(n for n in value.nodes() if n.op == "load"))


def gathered(places: Mapping[Expr, Plane], sizes: Mapping[int, int], *, aligned: bool = True) -> dict[Expr, Operand]:
    """Each load as an operand of its plane.

    Raises:
        NoMatchError: too many of them, or one no kernel reads.
    """
    found = {load: plane.operand(load, sizes[load.slot], aligned) for load, plane in places.items()}
    count = len(dict.fromkeys(found.values()))
    if count > MAX_OPERANDS:
        raise NoMatchError(f"{count} operands; a chain takes at most {MAX_OPERANDS}")
    return found

# SPDX-License-Identifier: Apache-2.0
"""Ports, temps, tables, their views, and accumulators, as a kernel body sees them (docs/spec/compiler.md 11)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.integers import Int, cdiv, covering, integer, product
from kohakutpu.kernels.language.lanes import Arithmetic, Lane

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from kohakutpu.kernels.language.recorder import Recorder

LAYER = "L4"

Role = Literal["in", "out", "temp", "table"]
PERIODIC = ("repeated", "per_group", "row_repeat")
STRIDED = ("permute", "slice")
_LANE_GROUP = 4
_KBLOCK = 32


class Port:
    """A parameter default: ``In(..., M, K)`` or ``Out(M, N)``.

    Args:
        dims: extents; a leading ``...`` stands for batch axes, ``...`` alone for one block of any rank.

    Raises:
        TraceError: an ellipsis that is not first, or an extent that is no integer expression.
    """

    role: Role = "in"

    def __init__(self, *dims: Int | int | EllipsisType) -> None:
        if not dims:
            raise TraceError(f"{type(self).__name__}() names no axis; write In(M, K), In(..., M, K) or In(...)")
        self.batch = dims[0] is ...
        rest = dims[1:] if self.batch else dims
        if any(d is ... for d in rest):
            raise TraceError("`...` stands first in a port: In(..., M, K)")
        self.whole = self.batch and not rest
        self.dims = tuple(integer(d, "an extent") for d in rest)


class In(Port):
    """An operand."""


class Out(Port):
    """A result; allocated by the call and returned."""

    role: Role = "out"


@dataclass(frozen=True, eq=False)
class Step:
    """One view step: "rows_from" r, "as_rows" w, "repeated", "per_group" rows, "row_repeat" k, "plane" gm.

    Strided ones have several numbers in ``args``: "permute" axes, "slice" axis, first, count, step.
    """

    kind: str
    arg: Int | None = None
    args: tuple[Int, ...] = ()

    def text(self) -> str:
        """Printed form."""
        given = self.args if self.arg is None else (self.arg,)
        return f".{self.kind}({', '.join(a.text() for a in given)})"


@dataclass(frozen=True, eq=False)
class Buffer(Arithmetic):
    """A port, temp or table, or a view of one.

    Args:
        name: of the underlying buffer.
        dims: extents without the batch; empty for a block of any rank.
        whole: declared ``In(...)``: any rank, only its length is known.
        batch: has leading batch axes.
        steps: view steps in order.
        data: contents of a table.
        tier: wanted tier of a temp.
    """

    recorder: Recorder
    name: str
    role: Role
    dims: tuple[Int, ...]
    whole: bool = False
    batch: bool = False
    steps: tuple[Step, ...] = ()
    data: npt.NDArray[np.float64] | None = None
    tier: str = "dram"

    # ------------------------------------------------------------------ extents
    @property
    def length(self) -> Int:
        """Elements of the underlying buffer, without the batch."""
        return Int("extent", (f"len({self.name})",)) if self.whole else product(self.dims)

    @property
    def extents(self) -> tuple[Int, ...]:
        """Extents of a permuted or sliced view, without the batch; those of the buffer for any other."""
        out = self.dims
        for step in self.steps:
            if step.kind == "permute":
                out = tuple(out[a.value({})] for a in step.args)
            elif step.kind == "slice":
                axis = step.args[0].value({})
                out = (*out[:axis], step.args[2], *out[axis + 1 :])
        return out

    @property
    def row_width(self) -> Int | None:
        """Elements of a row, None if nothing says."""
        if self.strided:
            return self.extents[-1] if len(self.dims) > 1 else None
        for step in reversed(self.steps):
            if step.kind == "as_rows":
                return step.arg
        return self.dims[-1] if len(self.dims) > 1 else None

    @property
    def rows(self) -> Int:
        """Rows of the view, without the batch.

        Raises:
            TraceError: nothing says how wide a row is, or the view reads elements more than once.
        """
        width = self.row_width
        if width is None or self.periodic:
            raise TraceError(f"{self.text()}.rows: the view has no rows of its own; say as_rows(width)")
        return self.remaining // width

    @property
    def remaining(self) -> Int:
        """Elements from the first row of the view on, without the batch."""
        if self.strided:
            return product(self.extents)
        width: Int | None = self.dims[-1] if len(self.dims) > 1 else None if self.whole else Int("const", (1,))
        left = self.length
        for step in self.steps:
            if step.kind == "as_rows":
                width = step.arg
            elif step.kind == "rows_from" and step.arg is not None and width is not None:
                left = left - step.arg * width
        return left

    @property
    def periodic(self) -> bool:
        """Read more than once per element."""
        return any(s.kind in PERIODIC for s in self.steps)

    @property
    def strided(self) -> bool:
        """Permuted or sliced."""
        return any(s.kind in STRIDED for s in self.steps)

    def tiles(self, g: Int | int) -> Int:
        """Instances along the rows: extent over lane groups of 4, ``g`` groups each."""
        return covering(self._axis(0, "tiles"), integer(_knob(g, "a tiling knob")) * _LANE_GROUP)

    def chunks32(self, nk: Int | int) -> Int:
        """Chunks along K: extent over blocks of 32, ``nk`` blocks each."""
        return cdiv(self._axis(1, "chunks32"), integer(_knob(nk, "a tiling knob")) * _KBLOCK)

    def parts(self, n: Int | int) -> Int:
        """Parts of ``n`` elements; the last may be shorter."""
        return covering(self.length if self.periodic else self.remaining, integer(_knob(n, "a part")))

    def _axis(self, axis: int, what: str) -> Int:
        if len(self.dims) != 2:
            raise TraceError(f"{self.text()}.{what}() needs a port with two extents, as In(..., M, K)")
        extent = self.extents[axis]
        for step in self.steps:
            if step.kind == "rows_from" and axis == 0 and step.arg is not None:
                extent = extent - step.arg
        return extent

    # -------------------------------------------------------------------- views
    def _view(self, kind: str, arg: Int | int | None = None) -> Buffer:
        self._steps_agree(kind, strided=False)
        value = None if arg is None else integer(arg, f"{kind}()")
        if value is not None and value.op == "const" and int(str(value.args[0])) < (kind != "rows_from"):
            raise TraceError(f"{self.text()}.{kind}({value.text()}): at least {int(kind != 'rows_from')}")
        return replace(self, steps=(*self.steps, Step(kind, value)))

    def _steps_agree(self, kind: str, *, strided: bool) -> None:
        """Refuse a permuted or sliced view of another view, and the other way round."""
        if self.steps and self.strided != strided:
            raise TraceError(
                f"{self.text()}.{kind}(...): permute() and slice() follow no other view and no other view follows "
                "them; write the view to a temp first"
            )

    def _place(self, axis: object, kind: str) -> int:
        """Number of an axis of the view, counted from 0; -1 is the last."""
        if not self.dims:
            raise TraceError(f"{self.name}.{kind}(...): In(...) has no axes; declare its extents, as In(B, M, N)")
        rank = len(self.dims)
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise TraceError(
                f"{self.text()}.{kind}(...) names axis {axis}; the view has axes 0..{rank - 1}, batch axes not counted"
            )
        return axis % rank

    def permute(self, *axes: int) -> Buffer:
        """The elements with axis ``axes[0]`` outermost, then ``axes[1]`` and so on; the last axis stays last.

        Args:
            axes: every axis once, batch axes not counted.

        Raises:
            TraceError: axes that are no permutation, or another axis innermost.
        """
        self._steps_agree("permute", strided=True)
        places = tuple(self._place(a, "permute") for a in axes)
        shown = ", ".join(map(str, axes))
        if sorted(places) != list(range(len(self.dims))):
            raise TraceError(
                f"{self.text()}.permute({shown}) is no permutation of its {len(self.dims)} axes; name each once"
            )
        if places[-1] != len(places) - 1:
            raise TraceError(
                f"{self.text()}.permute({shown}) puts axis {places[-1]} innermost; a move copies whole words of rows, "
                f"so axis {len(places) - 1} stays last: swap the operands of the product, or pass the port transposed"
            )
        return replace(self, steps=(*self.steps, Step("permute", args=tuple(integer(p) for p in places))))

    def slice(self, axis: int, first: Int | int, count: Int | int, step: Int | int = 1) -> Buffer:
        """Elements ``first``, ``first + step``, ... of one axis, ``count`` of them; of the last axis whole words.

        Raises:
            TraceError: an axis the view does not have, or a step along the last axis.
        """
        self._steps_agree("slice", strided=True)
        place = self._place(axis, "slice")
        given = tuple(integer(n, "slice()") for n in (first, count, step))
        if place == len(self.dims) - 1 and given[2].text() != "1":
            raise TraceError(
                f"{self.text()}.slice({axis}, ...) has step {given[2].text()} along the last axis; a move copies whole "
                "words of rows, so the step is 1 there"
            )
        return replace(self, steps=(*self.steps, Step("slice", args=(integer(place), *given))))

    def rows_from(self, r: Int | int) -> Buffer:
        """View from row r."""
        return self._view("rows_from", r)

    def as_rows(self, w: Int | int) -> Buffer:
        """The same bytes as rows of w elements."""
        return self._view("as_rows", w)

    def repeated(self) -> Buffer:
        """The whole buffer read again for any length."""
        return self._view("repeated")

    def per_group(self, rows: Int | int) -> Buffer:
        """Row 0 of each group of ``rows`` rows, repeated over the group; 1 is the buffer itself."""
        return self if isinstance(rows, int) and rows == 1 else self._view("per_group", rows)

    def row_repeat(self, k: Int | int) -> Buffer:
        """Each row read ``k`` times before advancing; 1 is the buffer itself."""
        return self if isinstance(k, int) and k == 1 else self._view("row_repeat", k)

    # --------------------------------------------------------------- statements
    def __getitem__(self, key: object) -> Ref:
        parts = key if isinstance(key, tuple) else (key,)
        index = []
        for part in parts:
            if isinstance(part, slice):
                raise TraceError(
                    f"{self.name}[...:...]: slices are not views; use rows_from(r), as_rows(w), "
                    "slice(axis, first, count, step) or a part index"
                )
            if part is Ellipsis:
                raise TraceError(f"{self.name}[...] inside a body; the batch axis is there already, index the block")
            index.append(integer(part, f"an index of {self.name}"))
        if all(i.op == "const" for i in index):
            raise TraceError(
                f"{self.name}[{', '.join(i.text() for i in index)}] reads one element; a kernel is traced without "
                "data: index with what units(), grid() or loop() gave"
            )
        return Ref(self, tuple(index))

    def __setitem__(self, key: object, value: object) -> None:
        if not (isinstance(value, Ref) and value.recorded):
            raise TraceError(f"{self.name}[...] = ... rebinds nothing on the machine; write {self.name}[...] <<= ...")

    def __ilshift__(self, value: object) -> Buffer:
        self.recorder.assign(Ref(self, ()), value)
        return self

    def __matmul__(self, other: object) -> NoReturn:
        raise TraceError(
            f"{self.text()} @ ...: a contraction of bare buffers has no tiling; inside a kernel write "
            "acc += a[i, k] @ b[j, k], on whole arrays use the tensor operators"
        )

    def __iter__(self) -> NoReturn:
        raise TraceError(f"`for ... in {self.name}`: elements are not read one by one; use parts(), tiles() or rows")

    def text(self) -> str:
        """Printed form."""
        return self.name + "".join(s.text() for s in self.steps)


@dataclass(frozen=True, eq=False)
class Ref(Arithmetic):
    """A buffer at an index: a part, a tile, a chunk, or all of it if ``index`` is empty.

    Args:
        recorded: what ``<<=`` leaves behind, so that plain assignment can be told apart.
    """

    buffer: Buffer
    index: tuple[Int, ...]
    recorded: bool = False

    def lane(self) -> Lane:
        """As a leaf of an expression."""
        node = Lane("read", leaf=self)
        self.buffer.recorder.read(node)
        return node

    def __matmul__(self, other: object) -> Product:
        if isinstance(other, Ref | Region):
            return Product(self, other)
        if isinstance(other, Buffer):
            raise TraceError(f"{other.text()} on the right of @ has no index; write {other.name}[j, k]")
        raise TraceError(f"the right side of @ is {type(other).__name__}; write b[j, k]")

    def __ilshift__(self, value: object) -> Ref:
        self.buffer.recorder.assign(self, value)
        return replace(self, recorded=True)

    def __getitem__(self, key: object) -> NoReturn:
        raise TraceError(f"{self.text()} is indexed twice; give all indices at once")

    def text(self) -> str:
        """Printed form."""
        if not self.index:
            return self.buffer.text()
        return f"{self.buffer.text()}[{', '.join(i.text() for i in self.index)}]"


@dataclass(frozen=True)
class Product:
    """a[i, k] @ b[j, k], to be added to an accumulator."""

    left: Ref | Region
    right: Ref | Region


@dataclass(eq=False)
class Region:
    """A place in L1 for ``g`` lane groups of ``b`` K blocks; filled with ``<<=``."""

    recorder: Recorder
    name: str
    g: Int
    b: Int
    side: str | None = None
    held: Ref | None = None

    def __ilshift__(self, value: object) -> Region:
        if not isinstance(value, Ref):
            raise TraceError(f"{self.name} <<= {type(value).__name__}: a region is filled from an operand, a[i, k]")
        self.recorder.load(self, value)
        return self

    def __matmul__(self, other: object) -> Product:
        if isinstance(other, Ref | Region):
            return Product(self, other)
        raise TraceError(f"the right side of @ is {type(other).__name__}; write a region or b[j, k]")

    def text(self) -> str:
        """Printed form."""
        return self.name


@dataclass(eq=False)
class Tile(Arithmetic):
    """An accumulator of gm x gn sub-tiles, swept in chunks of nk K blocks, in ``split`` partial sums."""

    recorder: Recorder
    name: str
    gm: Int
    gn: Int
    nk: Int
    depth: int
    swept: bool = False
    split: int = 1
    route: str = ""

    def __iadd__(self, other: object) -> Tile:  # type: ignore[override]
        if not isinstance(other, Product):
            raise TraceError(
                f"{self.name} += {type(other).__name__}: an accumulator adds products, acc += a[i, k] @ b[j, k]; "
                "add values in the statement that hands the tile out"
            )
        self.recorder.sweep(self, other)
        return self

    def __matmul__(self, other: object) -> NoReturn:
        raise TraceError(
            f"{self.name} @ ...: a resident tile is no operand of a contraction; drain it to a temp and contract that"
        )

    def __ilshift__(self, value: object) -> NoReturn:
        raise TraceError(f"{self.name} <<= ...: an accumulator is written by sweeping, acc += a[i, k] @ b[j, k]")

    def text(self) -> str:
        """Printed form."""
        return self.name


def _knob(value: Any, what: str) -> Int | int:
    if value is None:
        raise TraceError(f"{what} is None; give a number, or name the parameter gm, gn or nk to leave it open")
    if isinstance(value, int) and value < 1:
        raise TraceError(f"{what} is {value}; it must be at least 1")
    return integer(value, what)

# SPDX-License-Identifier: Apache-2.0
"""Records the statements of a kernel body while it runs once (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer, Product, Ref, Region, Tile, _knob
from kohakutpu.kernels.language.integers import Int, integer, same
from kohakutpu.kernels.language.lanes import COMPARES, FOLDS, Lane, lane

LAYER = "L4"


@dataclass(eq=False)
class Block:
    """A grid ("units", "grid") or a "loop": its indices, their counts, and the statements inside."""

    kind: str
    index: tuple[Int, ...]
    count: tuple[Int, ...]
    body: list[Statement] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Load:
    """region <<= a[i, k]."""

    region: Region
    source: Ref


@dataclass(frozen=True, eq=False)
class Sweep:
    """acc += left @ right; ``sides`` are what is multiplied, after regions are looked through."""

    acc: Tile
    left: Ref | Region
    right: Ref | Region


@dataclass(frozen=True, eq=False)
class Drain:
    """c[i, j] <<= acc."""

    target: Ref
    acc: Tile


@dataclass(frozen=True, eq=False)
class Assign:
    """y[e] <<= expression; with accumulators inside, a fused epilogue."""

    target: Ref
    value: Lane

    @property
    def accumulators(self) -> list[Tile]:
        """Resident tiles in the expression, in the order they were opened."""
        found = [n.leaf for n in self.value.nodes() if n.op == "resident"]
        return sorted((t for t in found if isinstance(t, Tile)), key=lambda t: t.name)


Statement = Block | Load | Sweep | Drain | Assign

_current: ContextVar[Recorder | None] = ContextVar("recorder", default=None)


def current(construct: str) -> Recorder:
    """The recorder of the kernel being traced.

    Raises:
        TraceError: outside a kernel body.
    """
    recorder = _current.get()
    if recorder is None:
        raise TraceError(f"{construct} is used outside a kernel body; decorate the function with @kernel")
    return recorder


class Recorder:
    """State of one trace."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.buffers: list[Buffer] = []
        self.adjacent: list[tuple[str, ...]] = []
        self.body: list[Statement] = []
        self._open: list[Block] = []
        self._names: dict[str, int] = {}
        self._left: list[str] = []
        self._regions: list[Region] = []

    # -------------------------------------------------------------- bookkeeping
    def __enter__(self) -> Recorder:
        self._token = _current.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    def fresh(self, stem: str) -> str:
        """A name nobody has yet."""
        count = self._names[stem] = self._names.get(stem, -1) + 1
        return f"{stem}{count}"

    def declare(self, buffer: Buffer) -> Buffer:
        """Add a port, temp or table."""
        self.buffers.append(buffer)
        return buffer

    def _add(self, statement: Statement) -> None:
        (self._open[-1].body if self._open else self.body).append(statement)

    @property
    def grid(self) -> Block | None:
        """The innermost open grid."""
        return next((b for b in reversed(self._open) if b.kind != "loop"), None)

    def block(self, kind: str, counts: tuple[object, ...]) -> Iterator[Int | tuple[Int, ...]]:
        """Open a grid or loop, hand out its indices once, close it."""
        if not counts:
            raise TraceError(f"{kind}() names no count; write {kind}(x.tiles(gm), w.tiles(gn))")
        limit = 1 if kind == "loop" else 2
        if len(counts) > limit:
            raise TraceError(f"{kind}() takes {limit} count{'s' * (limit > 1)}, {len(counts)} were given")
        count = tuple(integer(c, f"a count of {kind}()") for c in counts)
        for c in count:
            if c.op == "const" and int(str(c.args[0])) < 1:
                raise TraceError(f"{kind}({c.text()}) runs never; a count is at least 1")
        stem = "s" if kind == "loop" else "i"
        index = tuple(Int("index", (self.fresh(stem),)) for _ in count)
        block = Block(kind, index, count)
        self._add(block)
        self._open.append(block)
        try:
            yield index[0] if len(index) == 1 else index
        except GeneratorExit:
            self._left.append(f"{kind}({', '.join(c.text() for c in count)})")
            raise
        self._open.pop()

    def finish(self) -> None:
        """The body has returned.

        Raises:
            TraceError: a block left early, or nothing computed.
        """
        if self._left:
            raise TraceError(
                f"{self.kernel}: `break` or `return` inside {self._left[0]}; a body is recorded once for all "
                "iterations, so every iteration runs to its end: use where() or another count"
            )

    # --------------------------------------------------------------- statements
    def load(self, region: Region, source: Ref) -> None:
        """Record ``region <<= source``."""
        self._operand(source)
        region.held = source
        self._add(Load(region, source))

    def _operand(self, side: Ref | Region) -> None:
        if isinstance(side, Region):
            if side.held is None:
                raise TraceError(f"{side.name} is read before it was filled; write {side.name} <<= a[i, k] first")
            return
        view = side.buffer
        bad = [s for s in view.steps if s.kind != "plane"]
        if bad:
            raise TraceError(
                f"{side.text()} in a contraction: a {bad[0].kind} view cannot be indexed by the cluster, whose "
                "entries start at whole tiles; materialise the view in a temp first"
            )
        if len(side.index) not in (2, 3):
            raise TraceError(
                f"{side.text()} in a contraction has {len(side.index)} indices; write x[i, k] or x[i, k, tap]"
            )

    def sweep(self, acc: Tile, what: Product) -> None:
        """Record ``acc += left @ right``."""
        for side in (what.left, what.right):
            self._operand(side)
        if what.left is what.right and isinstance(what.left, Region):
            raise TraceError(f"region {what.left.name} is read as both sides; fill a second region")
        for side, name in ((what.left, "left"), (what.right, "right")):
            if isinstance(side, Region):
                if side.side not in (None, name):
                    raise TraceError(
                        f"region {side.name} was read as the {side.side} side and now as the {name}; "
                        "the sides have memories of their own, fill a second region"
                    )
                side.side = name
        self._check_blocks(acc, what)
        loops = [b for b in self._open[acc.depth :] if b.kind == "loop"]
        if len(loops) > 1:
            raise TraceError(
                f"{acc.name} is swept inside {len(loops)} nested loops opened after it: the first sweep of the "
                "innermost loop would clear what the outer one summed; write one loop over the product of the counts"
            )
        acc.swept = True
        self._add(Sweep(acc, what.left, what.right))

    def _check_blocks(self, acc: Tile, what: Product) -> None:
        want = {"left": (acc.gm, acc.nk), "right": (acc.gn, acc.nk)}
        for side, name in ((what.left, "left"), (what.right, "right")):
            if isinstance(side, Region):
                g, b = want[name]
                if not (same(side.g, g) and same(side.b, b)):
                    raise TraceError(
                        f"region {side.name} holds {side.g.text()} groups of {side.b.text()} blocks, the {name} side "
                        f"of {acc.name} sweeps {g.text()} of {b.text()}; both sides and the tile agree in blocks"
                    )

    def assign(self, target: Ref, value: object) -> None:
        """Record ``target <<= value``: a drain, a fused epilogue or a vector statement."""
        buffer = target.buffer
        if buffer.role in ("in", "table"):
            raise TraceError(f"{target.text()} <<= ...: {buffer.name} is an operand; write to an Out() port or a temp")
        if buffer.periodic:
            raise TraceError(
                f"{target.text()} <<= ...: writing through a periodic view would write elements more than once; "
                "write the buffer itself"
            )
        if isinstance(value, Product):
            raise TraceError(f"{target.text()} <<= a @ b: open an accumulator with tile(gm, gn, nk) and sweep it")
        if isinstance(value, Tile):
            self._need_swept(value, target)
            self._add(Drain(target, value))
            return
        if not target.index and self.grid is not None:
            raise TraceError(
                f"{target.text()} <<= ... inside a grid: every instance would write all of {buffer.name}; index it "
                "with what the grid gave, or put the statement outside"
            )
        node = lane(value)
        if node.op in COMPARES:
            raise TraceError(f"{target.text()} <<= {node.op}(...): a comparison is no value; use where(...)")
        statement = Assign(target, node)
        for acc in statement.accumulators:
            self._need_swept(acc, target)
        self._check_lane(statement)
        self._add(statement)

    def _need_swept(self, acc: Tile, target: Ref) -> None:
        if not acc.swept:
            raise TraceError(f"{target.text()} <<= {acc.name}: nothing was swept into it; acc += a[i, k] @ b[j, k]")
        if self.grid is None:
            raise TraceError(f"{target.text()} <<= {acc.name} outside a grid; for i, j in units(...)")
        if len(target.index) != 2:
            raise TraceError(f"{target.text()} <<= {acc.name}: a tile goes to c[i, j], two indices")

    def _check_lane(self, statement: Assign) -> None:
        fused = bool(statement.accumulators)
        for node in statement.value.nodes():
            if node.op in FOLDS:
                if fused:
                    raise TraceError(
                        f"{node.op}() in a fused epilogue: a tile's rows are not whole; drain to a temp and fold that"
                    )
                widths = [r.buffer.row_width for n in node.nodes() if n.op == "read" and isinstance(r := n.leaf, Ref)]
                if not any(w is not None for w in widths):
                    raise TraceError(f"{node.text()} has no row width; say x.as_rows(width) on an operand")
            ref = node.leaf
            if node.op == "read" and isinstance(ref, Ref):
                self._check_read(statement, ref, fused)

    def _check_read(self, statement: Assign, ref: Ref, fused: bool) -> None:
        target = statement.target
        # a per-channel operand of an epilogue has one value a column
        column = fused and len(ref.index or ref.buffer.dims) == 1
        want = target.index[-1:] if column else target.index
        mine, theirs = [i.text() for i in want], [i.text() for i in ref.index]
        if want and not ref.index:
            raise TraceError(
                f"{target.text()} <<= ... reads all of {ref.text()} in every instance; index it: "
                f"{ref.text()}[{', '.join(mine)}]"
            )
        if len(theirs) != len(mine):
            raise TraceError(
                f"{target.text()} <<= ... reads {ref.text()}: a vector statement reads all its operands at one part; "
                "index them alike"
            )
        if theirs != mine:
            raise TraceError(
                f"{target.text()} <<= ... reads {ref.text()}, another part than [{', '.join(mine)}]; instances run in "
                "any order: shift with rows_from(r), or use a second stage"
            )
        if not self._open:
            return
        outer = self._open[0]
        for earlier in _statements(outer.body):
            if isinstance(earlier, Drain | Assign) and earlier.target.buffer.name == ref.buffer.name:
                a, b = [i.text() for i in earlier.target.index], [i.text() for i in ref.index]
                if a != b or ref.buffer.steps or earlier.target.buffer.steps:
                    raise TraceError(
                        f"{target.text()} <<= ... reads {ref.text()}, which {earlier.target.text()} writes in the same "
                        "stage; another instance may not have written it yet: put the statement in a grid of its own"
                    )


def _statements(body: list[Statement]) -> Iterator[Statement]:
    for s in body:
        if isinstance(s, Block):
            yield from _statements(s.body)
        else:
            yield s


# -------------------------------------------------------------------- constructs
def units(*counts: object) -> Iterator[Any]:
    """Instances ``for i, j in units(x.tiles(gm), w.tiles(gn))``; a barrier follows the grid."""
    return current("units()").block("units", counts)


def grid(*counts: object) -> Iterator[Any]:
    """Instances without a barrier after them."""
    return current("grid()").block("grid", counts)


def loop(count: object) -> Iterator[Any]:
    """Iterations, recorded once; outside a grid whole stages repeat."""
    return current("loop()").block("loop", (count,))


def tile(gm: object, gn: object, nk: object) -> Tile:
    """An accumulator of gm x gn sub-tiles swept nk K blocks at a time.

    Raises:
        TraceError: outside a grid, or a knob below 1.
    """
    recorder = current("tile()")
    if recorder.grid is None:
        raise TraceError("tile() outside a grid; for i, j in units(x.tiles(gm), w.tiles(gn)): acc = tile(gm, gn, nk)")
    g, h, k = (integer(_knob(v, f"{n} of tile()")) for v, n in ((gm, "gm"), (gn, "gn"), (nk, "nk")))
    return Tile(recorder, recorder.fresh("acc"), g, h, k, len(recorder._open))


def region(g: object, b: object) -> Region:
    """A place in L1: ``ra = region(gm, nk); ra <<= a[i, k]; acc += ra @ rb``.

    Raises:
        TraceError: outside a grid, or a size below 1.
    """
    recorder = current("region()")
    if recorder.grid is None:
        raise TraceError("region() outside a grid; L1 belongs to an instance")
    return Region(
        recorder,
        recorder.fresh("region"),
        integer(_knob(g, "groups of region()")),
        integer(_knob(b, "blocks of region()")),
    )


def temp(*shape: object, tier: str = "dram") -> Buffer:
    """An intermediate buffer in tier "dram", "l2" or "near".

    Raises:
        TraceError: no shape, or an unknown tier.
    """
    recorder = current("temp()")
    if not shape:
        raise TraceError("temp() names no extent; temp(M, N)")
    if tier not in ("dram", "l2", "near"):
        raise TraceError(f"temp(tier={tier!r}); tiers are 'dram', 'l2' and 'near'")
    dims = tuple(integer(d, "an extent of temp()") for d in shape)
    return recorder.declare(Buffer(recorder, recorder.fresh("t"), "temp", dims, tier=tier))


def table(array: npt.ArrayLike) -> Buffer:
    """A buffer with contents known now, uploaded once a compilation."""
    recorder = current("table()")
    data = np.asarray(array, dtype=np.float64)
    if data.size == 0:
        raise TraceError("table() of an empty array")
    dims = tuple(integer(int(d)) for d in (data.shape or (1,)))
    return recorder.declare(Buffer(recorder, recorder.fresh("const"), "table", dims, data=data.reshape(-1)))


def plane(x: Buffer, gm: object) -> Buffer:
    """A convolution operand: ``plane(x, gm)[i, k, tap]`` reads at a lane offset."""
    return x._view("plane", integer(_knob(gm, "gm of plane()")))


def adjacent(*buffers: Buffer) -> None:
    """Place buffers consecutively in this order.

    Raises:
        TraceError: fewer than two, a view, or a buffer named twice.
    """
    recorder = current("adjacent()")
    names = tuple(b.name for b in buffers)
    if len(names) < 2:
        raise TraceError("adjacent() takes two buffers or more")
    if any(b.steps for b in buffers):
        raise TraceError("adjacent() takes buffers, not views; a view has no place of its own")
    taken = {n for g in recorder.adjacent for n in g}
    if len(set(names)) < len(names) or taken & set(names):
        raise TraceError(f"adjacent({', '.join(names)}): a buffer has one place; name it once")
    recorder.adjacent.append(names)

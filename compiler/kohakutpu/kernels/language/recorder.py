# SPDX-License-Identifier: Apache-2.0
"""Records the statements of a kernel body while it runs once (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer, Product, Ref, Region, Tile
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
    """acc += left @ right; ``sources`` are what is multiplied, regions looked through."""

    acc: Tile
    left: Ref | Region
    right: Ref | Region
    sources: tuple[Ref, Ref]


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


@dataclass(frozen=True, eq=False)
class Read:
    """A buffer is named in an expression, which means what the buffer holds at this place."""

    node: Lane


Statement = Block | Load | Sweep | Drain | Assign | Read

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
        taken = {b.name for b in self.buffers}
        while (name := f"{stem}{self._names.setdefault(stem, 0)}") in taken:
            self._names[stem] += 1
        self._names[stem] += 1
        return name

    def declare(self, buffer: Buffer) -> Buffer:
        """Add a port, temp or table."""
        self.buffers.append(buffer)
        return buffer

    def read(self, node: Lane) -> None:
        """Record that ``node`` reads a buffer here."""
        self._add(Read(node))

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

    def _operand(self, side: Ref | Region) -> Ref:
        """What ``side`` stands for at this place."""
        if isinstance(side, Region):
            if side.held is None:
                raise TraceError(f"{side.name} is read before it was filled; write {side.name} <<= a[i, k] first")
            return side.held
        view = side.buffer
        bad = [s for s in view.steps if s.kind not in ("plane", "rows_from")]
        if bad:
            raise TraceError(
                f"{side.text()} in a contraction: a {bad[0].kind} view cannot be indexed by the cluster, which reads "
                "every entry once and in order; materialise the view in a temp first"
            )
        if len(side.index) not in (2, 3):
            raise TraceError(
                f"{side.text()} in a contraction has {len(side.index)} indices; write x[i, k] or x[i, k, tap]"
            )
        return side

    def sweep(self, acc: Tile, what: Product) -> None:
        """Record ``acc += left @ right``."""
        sources = self._operand(what.left), self._operand(what.right)
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
        for source in sources:
            for earlier in self._written_here(source.buffer.name):
                raise TraceError(
                    f"{acc.name} sweeps {source.text()}, which {earlier.text()} writes in the same stage; another "
                    "instance may not have written it yet: put the sweep in a grid of its own"
                )
        self._check_blocks(acc, what)
        loops = [b for b in self._open[acc.depth :] if b.kind == "loop"]
        if len(loops) > 1:
            raise TraceError(
                f"{acc.name} is swept inside {len(loops)} nested loops opened after it: the first sweep of the "
                "innermost loop would clear what the outer one summed; write one loop over the product of the counts"
            )
        acc.swept = True
        self._add(Sweep(acc, what.left, what.right, sources))

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
        if buffer.strided:
            raise TraceError(
                f"{target.text()} <<= ...: writing through a permuted or sliced view; write a temp, and what reads it "
                "reads the view"
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
                self._check_read(statement, ref)

    def _check_read(self, statement: Assign, ref: Ref) -> None:
        target = statement.target
        if ref.buffer.strided and len(target.index) == 2:
            raise TraceError(
                f"{target.text()} <<= ... reads {ref.text()} in a grid of tiles; write the view to a temp first"
            )
        # a per-channel operand of a grid of tiles has one value a column
        column = len(target.index) == 2 and len(ref.index or ref.buffer.dims) == 1
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
        # a loop around a grid repeats whole stages, so a stage begins with the outermost grid
        for earlier in self._written_here(ref.buffer.name):
            a, b = [i.text() for i in earlier.index], [i.text() for i in ref.index]
            if a != b or ref.buffer.steps or earlier.buffer.steps:
                raise TraceError(
                    f"{target.text()} <<= ... reads {ref.text()}, which {earlier.text()} writes in the same stage; "
                    "another instance may not have written it yet: put the statement in a grid of its own"
                )

    def _written_here(self, name: str) -> Iterator[Ref]:
        """Targets of the statements of the open stage, the outermost grid, that write buffer ``name``."""
        stage = next((b for b in self._open if b.kind != "loop"), None)
        for earlier in _statements(stage.body if stage else []):
            if isinstance(earlier, Drain | Assign) and earlier.target.buffer.name == name:
                yield earlier.target


def _statements(body: list[Statement]) -> Iterator[Statement]:
    for s in body:
        if isinstance(s, Block):
            yield from _statements(s.body)
        else:
            yield s

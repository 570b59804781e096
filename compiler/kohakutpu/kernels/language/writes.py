# SPDX-License-Identifier: Apache-2.0
"""What every statement of a kernel writes, and the products it hands out (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kohakutpu.errors import TraceError
from kohakutpu.graph import Matrix
from kohakutpu.kernels.language.buffers import Ref, Tile
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.lanes import FOLDS
from kohakutpu.kernels.language.matrices import Matrices
from kohakutpu.kernels.language.products import Rectangles, Swept, rectangles, swept
from kohakutpu.kernels.language.recorder import Assign, Drain, Sweep
from kohakutpu.kernels.language.spreads import view
from kohakutpu.kernels.language.unroll import Step, named_width, reads
from kohakutpu.kernels.language.versions import Write
from kohakutpu.views import Window

LAYER = "L4"


@dataclass(frozen=True)
class Work:
    """A statement that writes.

    Args:
        shape: [rows][columns] of what it writes, blocks of the batch under one another.
        blocks: blocks of the batch.
        origin: row and column in a block of the target where the tiles of an epilogue start.
        products: accumulators it hands out, by name.
    """

    write: Write
    shape: Matrix
    blocks: int
    origin: tuple[int, int] = (0, 0)
    products: Mapping[str, tuple[Swept, Rectangles]] = field(default_factory=dict)


def works(steps: Sequence[Step], matrices: Matrices) -> dict[int, Work]:
    """Every writing statement by its number in ``steps``.

    Raises:
        TraceError: a statement whose grid does not fit what it writes, or a sweep without a product in the graph.
    """
    tiles: dict[str, Swept] = {}
    out: dict[int, Work] = {}
    for number, step in enumerate(steps):
        s = step.statement
        if isinstance(s, Sweep):
            made = swept(step)
            if s.acc.name in tiles and tiles[s.acc.name].run == step.run:
                raise TraceError(
                    f"{s.acc.name} is swept by two statements; the graph knows one product a tile, write the second "
                    "into a tile of its own and add them where they are handed out"
                )
            tiles[s.acc.name] = made
        elif isinstance(s, Drain | Assign):
            if step.loops:
                raise TraceError(
                    f"{s.target.text()} <<= ... inside loop() inside a grid: an instance hands a part out once; put "
                    "the loop around the grid"
                )
            accumulators = [s.acc] if isinstance(s, Drain) else s.accumulators
            if accumulators:
                out[number] = _tiles(number, s.target, accumulators, tiles, step, matrices)
            else:
                assert isinstance(s, Assign)
                out[number] = _elements(number, s, step, matrices)
    return out


def _tiles(
    number: int, target: Ref, accumulators: Sequence[Tile], tiles: Mapping[str, Swept], step: Step, matrices: Matrices
) -> Work:
    products: dict[str, tuple[Swept, Rectangles]] = {}
    for acc in accumulators:
        if acc.name not in tiles or tiles[acc.name].run != step.run:
            raise TraceError(
                f"{target.text()} <<= {acc.name}: its tile belongs to another grid; hand it out in its own"
            )
        products[acc.name] = tiles[acc.name], rectangles(tiles[acc.name], target, matrices)
    shapes = {(r.m, r.n, r.row, r.col) for _, r in products.values()}
    if len(shapes) > 1:
        found = " and ".join(sorted(f"{m}x{n}" for m, n, _, _ in shapes))
        raise TraceError(f"{target.text()} <<= ... takes tiles of {found}; the tiles of an epilogue have one shape")
    m, n, row, col = shapes.pop()
    name = target.buffer.name
    blocks = matrices.blocks(name)
    window: Window | None = Window(blocks, row, m, col, n)
    if (row, col, m, n) == (0, 0, *matrices.block(name)):
        window = None
    return Work(Write(number, step.run, name, window), (blocks * m, n), blocks, (row, col), products)


def _elements(number: int, s: Assign, step: Step, matrices: Matrices) -> Work:
    target = s.target
    name = target.buffer.name
    (rows, width), blocks = matrices.block(name), matrices.blocks(name)
    length = rows * width
    _check_rows(s, step, width)
    seen = view(target.buffer, step.env, length)
    covered = _covered(target, step, width, length - seen.first)
    if not seen.chosen and covered != length:
        raise TraceError(
            f"{target.text()} <<= ...: the grid covers {covered} elements, {name} has {length}; write for e in "
            f"units({name}.parts(part))"
        )
    if seen.first + covered > length or covered < 1:
        raise TraceError(
            f"{target.text()} <<= ... writes {covered} elements from element {seen.first}; {name} has {length}"
        )
    if seen.first % width or covered % width:
        raise TraceError(
            f"{target.text()} <<= ... writes {covered} elements from element {seen.first} of {name}; a part is whole "
            f"rows of {width}"
        )
    window = None if covered == length else Window(blocks, seen.first // width, covered // width, 0, width)
    return Work(Write(number, step.run, name, window), (blocks * covered // width, width), blocks)


def _covered(target: Ref, step: Step, width: int, left: int) -> int:
    """Elements of a block that a statement covers."""
    if not target.index:
        return left
    grid = step.grid
    assert grid is not None  # an index without a grid is refused when the kernel is traced
    if [i.text() for i in target.index] != [i.text() for i in grid.index]:
        order = ", ".join(i.text() for i in grid.index)
        raise TraceError(
            f"{target.text()} <<= ...: the parts are {target.buffer.name}[{order}]; shift with rows_from(r)"
        )
    extents = [step.value(_extent(c)) for c in grid.count]
    if len(extents) == 1:
        return extents[0]
    if extents[1] != width:
        raise TraceError(
            f"{target.text()} <<= ...: the grid covers {extents[1]} columns, {target.buffer.name} has {width}; write "
            f"whole rows, for e in units({target.buffer.name}.parts(part))"
        )
    return extents[0] * extents[1]


def _extent(count: Int) -> Int:
    covered = count.args[0] if count.op == "cdiv" else count
    return covered if isinstance(covered, Int) else count


def _check_rows(s: Assign, step: Step, width: int) -> None:
    if not any(n.op in FOLDS for n in s.value.nodes()):
        return
    named = {
        w
        for r in reads(s)
        if not r.buffer.periodic and r.buffer.row_width is not None and (w := named_width(r.buffer, step.env))
    }
    if len(named | {width}) > 1:
        raise TraceError(
            f"{s.target.text()} <<= ... mixes rows of {' and '.join(map(str, sorted(named | {width})))} elements; one "
            "expression has one row shape, use as_rows() alike"
        )

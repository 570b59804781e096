# SPDX-License-Identifier: Apache-2.0
"""The statements of a trace in the order they take effect, loops around grids unrolled (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer, Ref
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.kernel import OPEN_KNOBS, Bound
from kohakutpu.kernels.language.recorder import Assign, Block, Drain, Load, Read, Statement, Sweep

LAYER = "L4"


@dataclass(frozen=True)
class Step:
    """One statement at one iteration of the loops around its grid.

    Args:
        env: extents, knobs and indices of the unrolled loops. A tiling knob the compiler chooses is 1 here: index
            arithmetic names the same elements whatever is chosen.
        blocks: the grid and the loops inside it, outermost first; none outside a grid.
        run: number of the execution of the grid, or of the statement outside a grid.
    """

    statement: Load | Sweep | Drain | Assign | Read
    env: Mapping[str, int]
    blocks: tuple[Block, ...]
    run: int

    @property
    def grid(self) -> Block | None:
        """The grid around the statement."""
        return self.blocks[0] if self.blocks else None

    @property
    def loops(self) -> tuple[Block, ...]:
        """Loops inside the grid."""
        return tuple(b for b in self.blocks if b.kind == "loop")

    def value(self, number: Int, **indices: int) -> int:
        """``number`` here, with indices of the grid and its loops given."""
        return number.value({**self.env, **indices})


def unroll(bound: Bound) -> list[Step]:
    """Every statement of ``bound`` as often as loops outside grids repeat it.

    Raises:
        TraceError: a grid inside a grid.
    """
    knobs = {k: 1 for k in OPEN_KNOBS if bound.trace.knobs.get(k, 0) is None}
    return list(_steps(bound.trace.body, {**bound.env, **knobs}, (), 0, count()))


def _steps(
    body: Sequence[Statement], env: Mapping[str, int], blocks: tuple[Block, ...], run: int, runs: Iterator[int]
) -> Iterator[Step]:
    for s in body:
        if not isinstance(s, Block):
            yield Step(s, env, blocks, run if blocks else next(runs))
        elif s.kind == "loop" and not blocks:
            for i in range(s.count[0].value(env)):
                yield from _steps(s.body, {**env, s.index[0].text(): i}, (), run, runs)
        elif s.kind != "loop" and blocks:
            counts = ", ".join(c.text() for c in s.count)
            raise TraceError(f"{s.kind}({counts}) inside a grid: the graph has no view of a tile; write it behind")
        else:
            yield from _steps(s.body, env, (*blocks, s), run if blocks else next(runs), runs)


def reads(statement: Assign) -> Iterator[Ref]:
    """The buffers an expression names."""
    yield from (leaf for n in statement.value.nodes() if n.op == "read" and isinstance(leaf := n.leaf, Ref))


def named_width(view: Buffer, env: Mapping[str, int]) -> int | None:
    """Elements of a row as the view or the declaration names it, None for a block of any rank."""
    if view.strided:
        return view.extents[-1].value(env)
    for step in reversed(view.steps):
        if step.kind == "as_rows" and step.arg is not None:
            return step.arg.value(env)
    return None if view.whole else view.dims[-1].value(env)

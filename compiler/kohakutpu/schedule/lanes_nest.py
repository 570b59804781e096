# SPDX-License-Identifier: Apache-2.0
"""Which word of a buffer each word of a pass reads or writes (docs/spec/compiler.md 9.4 and 11, Spread)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import ChainBuilder
from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Walk
from kohakutpu.schedule.ir import Elementwise, Operand, Target
from kohakutpu.schedule.lanes_choice import Region, name_of
from kohakutpu.views import Spread

LAYER = "L2"


@dataclass(frozen=True)
class Nest:
    """Word w of a pass is word ``first`` plus the digits of w, each times its stride.

    Args:
        dims: (digits, stride in words) of each place, the fastest first. The last place takes any number.
    """

    first: int
    dims: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, first: int, dims: tuple[tuple[int, int], ...]) -> Nest:
        """Places that follow one another without a gap are one; a place of one digit is none."""
        out: list[tuple[int, int]] = []
        for extent, stride in dims:
            if out and stride == out[-1][0] * out[-1][1]:
                out[-1] = (out[-1][0] * extent, out[-1][1])
            elif extent > 1:
                out.append((extent, stride))
        return cls(first, tuple(out) or ((1, 1),))

    def at(self, words: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The word of the buffer for every word of the pass."""
        out = np.full(words.shape, self.first, dtype=np.int64)
        rest = words
        for extent, stride in self.dims[:-1]:
            out += rest % extent * stride
            rest = rest // extent
        return out + rest * self.dims[-1][1]

    def cut(self, words: int) -> tuple[tuple[int, int], ...] | None:
        """Places of a RUN of ``words`` words that starts at a multiple of them; None if RUNs would differ."""
        return self._cut(words, whole=True)

    def head(self, words: int) -> tuple[tuple[int, int], ...] | None:
        """Places of the first ``words`` words of a RUN; None if they are no box."""
        return self._cut(words, whole=False)

    def _cut(self, words: int, *, whole: bool) -> tuple[tuple[int, int], ...] | None:
        out: list[tuple[int, int]] = []
        left = words
        for number, (extent, stride) in enumerate(self.dims):
            if number == len(self.dims) - 1 or (left < extent and (not whole or extent % left == 0)):
                out.append((left, stride))
                break
            if left % extent:
                return None
            out.append((extent, stride))
            left //= extent
            if left == 1:
                break
        return tuple(out)


def region(dims: tuple[tuple[int, int], ...], step: int, machine: MachineSpec) -> Region:
    """L1 of a RUN over ``dims`` in steps of ``step`` words.

    Words that are read again lie in L1 once if every step finds its words one after another, else each time.
    """
    total = prod(extent for extent, _ in dims)
    at = np.zeros(1, dtype=np.int64)
    kept = [(extent, stride) for extent, stride in dims if stride]
    size = 1
    for extent, stride in dims:
        at = (np.arange(extent, dtype=np.int64)[:, None] * (size if stride else 0) + at).reshape(-1)
        size *= extent if stride else 1
    firsts = np.arange(0, total, step)
    phase = np.arange(total) % step
    if (at == np.repeat(at[firsts], step)[:total] + phase).all():
        words = max(size, int(at[firsts].max()) + step)
        return Region(words, tuple(at[firsts].tolist()), walk(tuple(kept), machine))
    return Region(len(firsts) * step, tuple(firsts.tolist()), walk(dims, machine))


def walk(dims: tuple[tuple[int, int], ...], machine: MachineSpec) -> Walk:
    """The walk over ``dims``."""
    word = machine.word_bytes
    return Walk(tuple((word * stride, extent) for extent, stride in dims if extent > 1) or ((word, 1),))


# -------------------------------------------------------------------- operands and results


def plain(e: Elementwise) -> Elementwise:
    """The pass without periodic reads that read a buffer of its shape, or one row for every row, as they lie.

    What two operands then read alike is one operand.
    """
    if not e.reads:
        return e
    m, n = e.shape

    def needed(index: int) -> Spread | None:
        o, spread = e.operands[index], e.spread(index)
        if spread is None or spread.first:
            return spread
        contiguous = spread.take >= m * n or (spread.repeat == 1 and spread.advance == spread.take)
        if o.shape == e.shape and contiguous:
            return None
        every_row = spread.take == n and (spread.repeat >= m or spread.advance == 0)
        return None if o.shape == (1, n) and m > 1 and every_row else spread

    return _merged(replace(e, reads=tuple(needed(k) for k in range(len(e.operands)))))


def _merged(e: Elementwise) -> Elementwise:
    """The pass with every operand that is read in one way once."""
    found = list(zip(e.operands, e.reads, strict=True))
    kept = list(dict.fromkeys(found))
    builder = ChainBuilder()
    made: list[int] = []
    for n in e.chain.nodes:
        index = kept.index(found[n.index]) if n.op == "operand" else n.index
        made.append(builder.add(replace(n, args=tuple(made[a] for a in n.args), index=index)))
    reads = tuple(read for _, read in kept)
    operands = tuple(o for o, _ in kept)
    chain = builder.chain([made[r] for r in e.chain.results])
    return replace(e, chain=chain, operands=operands, reads=reads if any(reads) else ())


def operand_nest(e: Elementwise, index: int, machine: MachineSpec) -> Nest:
    """The words operand ``index`` is read from.

    Raises:
        CompileError: a periodic read that is not made of words, leaves its buffer or does not divide the pass.
    """
    o, spread = e.operands[index], e.spread(index)
    m, n = e.shape
    elements, slices = m * n, machine.slices
    total = cdiv(elements, slices)
    if spread is None:
        if o.shape == e.shape:
            return Nest.of(0, ((total, 1),))
        if o.shape != (1, n) or n % slices:
            raise CompileError(
                f"{name_of(e)}: {o.name} has the shape {o.shape[0]}x{o.shape[1]}, the pass {m}x{n}; an operand has the "
                f"shape of the pass, or one row of a multiple of {slices} elements, or a periodic read"
            )
        return Nest.of(0, ((n // slices, 1), (m, 0)))
    what = f"{name_of(e)}: {o.name} is read as {spread.text()}"
    if min(spread.first, spread.advance) < 0 or min(spread.take, spread.repeat) < 1:
        raise CompileError(f"{what}; it starts and advances by 0 or more, and takes 1 or more at least once")
    if spread.last(elements) >= o.shape[0] * o.shape[1]:
        raise CompileError(
            f"{what}, up to element {spread.last(elements)} for a pass of {elements}; it has "
            f"{o.shape[0] * o.shape[1]} elements, shorten the pass"
        )
    take, repeat, advance = spread.take, spread.repeat, spread.advance
    if take >= elements or (repeat == 1 and advance == take):
        take, repeat, advance = total * slices, 1, 0
    elif take * repeat >= elements:
        repeat, advance = cdiv(elements, take), 0
    if any(v % slices for v in (spread.first, take, advance)):
        raise CompileError(
            f"{what}; a periodic read starts, takes and advances by whole words of {slices} elements, pad its rows"
        )
    if advance and elements % (take * repeat):
        raise CompileError(
            f"{what}; its period of {take * repeat} elements does not divide the pass of {elements}, pad the pass or "
            "divide it"
        )
    inner = take // slices
    return Nest.of(spread.first // slices, ((inner, 1), (repeat, 0), (cdiv(total, inner * repeat), advance // slices)))


def result_nest(
    e: Elementwise, result: Operand, parent: tuple[int, int] | None, machine: MachineSpec
) -> tuple[Nest, Target | None]:
    """The words ``result`` is written to, and which part of ``parent`` it is.

    Raises:
        CompileError: a part that does not fit its parent or is not made of words.
    """
    m, n = e.shape
    slices = machine.slices
    if not result.of:
        return Nest.of(0, ((cdiv(m * n, slices), 1),)), None
    if result.window is None or parent is None:
        raise CompileError(
            f"{name_of(e)}: {result.name} is a part of {result.of} without a window or that buffer's shape; state both"
        )
    w, (rows, cols) = result.window, parent
    what = f"{name_of(e)}: {result.name} is the part {w.text()} of {result.of} {rows}x{cols}"
    if not w.fits(parent) or (w.blocks * w.rows, w.cols) != (m, n):
        raise CompileError(f"{what}, the pass writes {m}x{n}; a part lies inside its parent and has the pass's shape")
    block = rows // w.blocks * cols
    if w.cols == cols:
        sizes = (w.row * cols, w.rows * cols, block if w.blocks > 1 else 0)
        dims: tuple[tuple[int, int], ...] = ((w.rows * cols // slices, 1), (w.blocks, block // slices))
    else:
        sizes = (w.col, w.cols, cols)
        dims = ((w.cols // slices, 1), (w.rows, cols // slices), (w.blocks, block // slices))
    if any(size % slices for size in sizes):
        raise CompileError(f"{what}; a part is made of whole words of {slices} elements, pad the columns")
    return Nest.of((w.row * cols + w.col) // slices, dims), Target(w, parent)

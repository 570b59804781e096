# SPDX-License-Identifier: Apache-2.0
"""Blocks of the operands of a product: what a tiling has to divide, and which entries an instance reads.

Rows of a block follow those of the block before it without a gap, because tiles divide blocks
(docs/spec/compiler.md 5.1, 5.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.schedule.ir import Band, Contraction, Product
from kohakutpu.schedule.layout import MxEntry, Shape
from kohakutpu.schedule.tiles import Tiling
from kohakutpu.views import Window

LAYER = "L2"

ROUTES = ("peer", "core", "memory")


@dataclass(frozen=True)
class Limits:
    """What the tiling of a product has to divide; 0 is no limit.

    Args:
        rows, cols, chunk: 4*gm, 4*gn and 32*nk divide them.
        splits: K, and the partials its chunks divide into, of every product.
        words: 4 if the result is read back in rows, where gn is a multiple of 4.
        width: columns that 4*gn divides if the choice is free.
    """

    rows: int = 0
    cols: int = 0
    chunk: int = 0
    splits: tuple[tuple[int, int], ...] = ()
    words: int = 1
    width: int = 0

    def join(self, other: Limits) -> Limits:
        """Both at once."""
        return Limits(
            gcd(self.rows, other.rows),
            gcd(self.cols, other.cols),
            gcd(self.chunk, other.chunk),
            self.splits + other.splits,
            max(self.words, other.words),
            gcd(self.width, other.width),
        )

    def legal(self, t: Tiling) -> bool:
        """True if ``t`` keeps all of them."""
        return not self.faults(t) and t.gn % self.words == 0 and self.width % (4 * t.gn) == 0

    def faults(self, t: Tiling) -> str:
        """The first limit ``t`` breaks, with the fix; "" if none."""
        for name, size, whole, what in (
            ("gm", 4 * t.gm, self.rows, "rows of a block of A"),
            ("gn", 4 * t.gn, self.cols, "rows of a block of B"),
            ("nk", 32 * t.nk, self.chunk, "columns of a block"),
        ):
            unit = size // getattr(t, name)
            if whole % size:
                return f"{name} = {getattr(t, name)}: {size} {what} do not divide {whole}; {_fix(name, whole, unit)}"
        for k, parts in self.splits:
            chunks = cdiv(k, 32 * t.nk)
            if chunks % parts:
                return f"nk = {t.nk}: {chunks} chunks of K do not divide into {parts} parts; choose another nk or split"
        return ""


def _fix(name: str, whole: int, unit: int) -> str:
    if whole % unit:
        return f"pad the block to a multiple of {unit}"
    return f"use a divisor of {whole // unit} as {name}"


def _partial(window: Window, shape: Shape) -> bool:
    """True if the rows of ``shape`` are read in blocks, or not all of them."""
    return window.blocks > 1 or window.rows != shape[0]


def limits(c: Contraction, *, words: int = 1, whole: bool = False) -> Limits:
    """What a tiling of ``c`` has to divide; tiles of a part end where it ends.

    Args:
        words: what gn has to be a multiple of.
        whole: tiles end where the rows of the result do, if these are whole words.
    """
    a, b = c.a_blocks, c.b_blocks
    m, n, k = c.extents
    part = c.c.window
    rows = [m] if c.batch > 1 else []
    rows += [part.rows] if part else []
    if _partial(a, c.a.shape):
        rows += [m, a.row, c.a.shape[0] // a.blocks if a.blocks > 1 else 0]
    cols = [part.cols] if part else []
    if _partial(b, c.b.shape):
        cols += [n, b.row, c.b.shape[0] // b.blocks if b.blocks > 1 else 0]
    chunk = [a.cols] if c.join > 1 else []
    for window, shape in ((a, c.a.shape), (b, c.b.shape)):
        if window.cols != shape[1]:
            chunk += [window.cols, window.col]
    width = c.c.shape[1] if whole and c.c.shape[1] % 16 == 0 else 0
    return Limits(gcd(*rows), gcd(*cols), gcd(*chunk), ((k, c.split),), words, width)


def check_blocks(c: Contraction) -> None:
    """Refuse blocks, joins and splits that are no product.

    Raises:
        CompileError: naming the result, the operand and what would be right.
    """
    a, b = c.a_blocks, c.b_blocks
    for operand, window in ((c.a, a), (c.b, b)):
        if not window.fits(operand.shape):
            raise CompileError(f"{c.c.name}: {operand.name} {operand.shape} has no part {window.text()}")
    if min(c.batch, c.join, c.split) < 1:
        raise CompileError(f"{c.c.name}: batch {c.batch}, join {c.join}, split {c.split}; all are at least 1")
    if a.blocks not in (1, c.batch * c.join):
        raise CompileError(f"{c.c.name}: {a.blocks} blocks of {c.a.name}; {c.batch * c.join} are read, or 1 by all")
    if b.blocks not in (1, c.batch):
        raise CompileError(f"{c.c.name}: {b.blocks} blocks of {c.b.name}; {c.batch} are read, or 1 by all")
    if c.join * a.cols != b.cols:
        raise CompileError(
            f"{c.c.name}: {c.join} x {a.cols} columns of {c.a.name} meet {b.cols} of {c.b.name}; K is the same on both"
        )
    if c.c.shape != (c.batch * a.rows, b.rows):
        raise CompileError(f"{c.c.name} {c.c.shape}: its operands give {(c.batch * a.rows, b.rows)}")
    if c.batch > 1 and (a.rows % 4 or (b.blocks > 1 and b.rows % 4)):
        raise CompileError(
            f"{c.c.name}: blocks of {a.rows} rows of {c.a.name} and {b.rows} of {c.b.name} in a batch; "
            "pad them to a multiple of 4"
        )
    _check_split(c)


def _check_split(c: Contraction) -> None:
    if c.split == 1:
        if c.route:
            raise CompileError(f"{c.c.name}: route {c.route} without a split; name the number of partials")
        return
    if c.route and c.route not in ROUTES:
        raise CompileError(f"{c.c.name}: split into {c.split} by route {c.route!r}; it is one of {', '.join(ROUTES)}")


def entries(
    band: Band, product: Product, shapes: tuple[Shape, Shape], key: tuple[int, ...]
) -> Iterator[tuple[int, int]]:
    """Per K chunk of instance ``key``, the first entry it reads of A and of B.

    Args:
        shapes: of the buffers of A and B.
    """
    t = band.tiling
    mo, no, *ko = key
    height = band.grid[0] // band.batch
    z, row = divmod(mo, height) if band.batch > 1 else (0, mo)
    total = band.chunks * band.split
    a = _Blocks(product.a_window, shapes[0], MxEntry(t.gm, t.nk, "a"))
    b = _Blocks(product.b_window, shapes[1], MxEntry(t.gn, t.nk, "b"))
    first = ko[0] * band.chunks if ko else 0
    for s in range(first, first + band.chunks):
        head, u = divmod(s, total // band.join)
        yield a.entry(z * band.join + head, row, u), b.entry(z, no, s)


@dataclass(frozen=True)
class _Blocks:
    """Blocks of a buffer of MXFP7 entries."""

    window: Window | None
    shape: Shape
    order: MxEntry

    def entry(self, block: int, tile: int, chunk: int) -> int:
        """First entry of row tile ``tile`` and K chunk ``chunk`` of a block; a single block is shared."""
        rows, cols = 4 * self.order.g, 32 * self.order.b
        chunks = cdiv(self.shape[1], cols)
        w = self.window
        if w is not None:
            height = self.shape[0] // w.blocks
            tile += (height * (block if w.blocks > 1 else 0) + w.row) // rows
            chunk += w.col // cols
        return self.order.entry_index(tile, chunk, chunks)

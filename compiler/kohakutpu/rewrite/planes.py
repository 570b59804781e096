# SPDX-License-Identifier: Apache-2.0
"""Rewrites of planes [H, W, C]: convolutions and concatenations of channels (docs/spec/compiler.md 13.3).

The machine has no convolution kernels (docs/spec/kernels.md 6), so the two entries that split a convolution give
expressions that the interpreter evaluates; the 1x1 entry gives a product, which runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product as pairs

from kohakutpu.rewrite import ops
from kohakutpu.rewrite.expr import Expr, hole, make, named, some
from kohakutpu.rewrite.rule import Equality, Rewrite
from kohakutpu.rewrite.template import Bound

LAYER = "L5"

CHANNEL_BLOCK = 32
"""Channels that lie together in a plane; a concatenation of whole blocks needs no move."""

_x, _w = hole("x"), hole("w")
_SAME = (1, 1, 1, 1)


def _is_dense_3x3(conv: Expr) -> str:
    """Why a convolution is no dense 3x3 of stride 1 and pad 1, "" if it is."""
    _, tall, wide, _ = conv.args[1].extents
    if (tall, wide) != (3, 3):
        return f"the filter is {tall}x{wide}, not 3x3"
    if conv.attr("stride") != 1 or conv.attr("pad") != _SAME:
        return f"stride {conv.attr('stride')} and pad {conv.attr('pad')}, not 1 and {_SAME}"
    return ""


class FoldedUpsample(Rewrite):
    """A 3x3 convolution of a plane enlarged twice becomes four 2x2 convolutions of the plane itself.

    Output pixel (2r + iy, 2c + ix) reads 2x2 pixels of x, whose weights are sums of the 3x3 weights, computed once at
    load time and rounded to FP16. Preconditions: nearest neighbour, 3x3, stride 1, pad 1.
    """

    name = "folded upsample"
    equality = Equality.FOLDED
    templates = (named("conv", some("conv2d", make("upsample2", _x), _w)),)

    def refusal(self, found: Bound) -> str:
        """A dense 3x3."""
        return _is_dense_3x3(found["conv"])

    def replacement(self, found: Bound) -> Expr:
        """Four planes, interleaved."""
        x, w = found["x"], found["w"]
        rows, columns, _ = x.extents
        classes = [
            ops.conv2d(x, ops.half(folded_weight(w, iy, ix)), 1, (1 - iy, iy, 1 - ix, ix))
            for iy, ix in pairs(range(2), range(2))
        ]
        n = w.extents[0]
        planes = ops.concat(*(ops.reshape(c, 1, rows, columns, n) for c in classes), axis=-4)
        split = ops.reshape(planes, 2, 2, rows, columns, n)
        return ops.reshape(ops.transpose(split, 2, 0, 3, 1, 4), 2 * rows, 2 * columns, n)


def folded_weight(w: Expr, iy: int, ix: int) -> Expr:
    """The 2x2 weight of output pixels (2r + iy, 2c + ix), [N, 2, 2, C], not rounded (docs/spec/kernels.md 6)."""
    taps: dict[tuple[int, int], Expr] = {}
    for dy, dx in pairs(range(3), range(3)):
        at = (iy + dy - 1) // 2 + 1 - iy, (ix + dx - 1) // 2 + 1 - ix
        tap = ops.take(ops.take(w, -3, dy, dy + 1), -2, dx, dx + 1)
        taps[at] = taps[at] + tap if at in taps else tap
    lines = (ops.concat(taps[ty, 0], taps[ty, 1], axis=-2) for ty in range(2))
    return ops.concat(*lines, axis=-3)


class StridedPlane(Rewrite):
    """Every s-th pixel of a dense 3x3 convolution becomes a product over the residue planes of x.

    Residue plane (i, j) holds the pixels (s*r + i, s*c + j) of the padded plane; a tap of the strided convolution is a
    window of one of them. The taps side by side, K index t*C + c with t = 3 dy + dx, against the weight as a matrix
    add the terms of the dense convolution in its order. Preconditions: 3x3, stride 1, pad 1, and the same step from
    pixel 0 along rows and columns.
    """

    name = "residue-split plane"
    equality = Equality.EXACT
    templates = (
        named("rows", some("slice", named("columns", some("slice", named("conv", some("conv2d", _x, _w)))))),
        named("conv", some("conv2d", _x, _w)),
    )

    def matches(self, e: Expr) -> Iterator[Bound]:
        """A slice of a slice, or a convolution that states its stride."""
        for found in super().matches(e):
            if "rows" in found or found["conv"].index("stride") > 1:
                yield found

    def refusal(self, found: Bound) -> str:
        """A dense 3x3 of which every s-th pixel is kept."""
        conv = found["conv"]
        if "rows" not in found:
            dense = ops.conv2d(conv.args[0], conv.args[1], 1, conv.attr("pad"))  # type: ignore[arg-type]
            return _is_dense_3x3(dense)
        slices = found["rows"], found["columns"]
        cuts = sorted((s.index("axis"), s.index("lo"), s.index("step")) for s in slices)
        steps = {cut[2] for cut in cuts}
        if [cut[:2] for cut in cuts] != [(-3, 0), (-2, 0)] or len(steps) != 1 or steps == {1}:
            return "rows and columns are not cut from pixel 0 in one step"
        if any(s.index("hi") != s.args[0].extents[s.index("axis")] for s in slices):
            return "the slices end before the plane"
        return _is_dense_3x3(conv)

    def replacement(self, found: Bound) -> Expr:
        """Windows of residue planes side by side."""
        conv = found["conv"]
        x, w = conv.args
        step = found["rows"].index("step") if "rows" in found else conv.index("stride")
        rows, columns = (-(-n // step) for n in x.extents[:2])
        tall, wide = (n * step + 2 for n in (rows, columns))
        frame = ops.pad(x, 1, max(0, tall - x.extents[0] - 1), 1, max(0, wide - x.extents[1] - 1))
        taps = [_window(frame, (dy, dx), step, (rows, columns)) for dy, dx in pairs(range(3), range(3))]
        n, c = w.extents[0], w.extents[3]
        lines = ops.reshape(ops.concat(*taps), rows * columns, 9 * c)
        return ops.reshape(ops.contract(lines, ops.reshape(w, n, 9 * c)), rows, columns, n)


def _window(frame: Expr, tap: tuple[int, int], step: int, size: tuple[int, int]) -> Expr:
    """The pixels tap (dy, dx) reads: a window of the residue plane (dy mod step, dx mod step)."""
    (dy, dx), (rows, columns) = tap, size
    plane = ops.take(frame, -3, dy % step, frame.extents[0], step)
    plane = ops.take(plane, -2, dx % step, frame.extents[1], step)
    window = ops.take(plane, -3, dy // step, dy // step + rows)
    return ops.take(window, -2, dx // step, dx // step + columns)


class PointConvolution(Rewrite):
    """A 1x1 convolution becomes a product of its pixels.

    Preconditions: 1x1, stride 1, no padding.
    """

    name = "1x1 convolution"
    equality = Equality.BIT
    templates = (named("conv", some("conv2d", _x, _w)),)

    def refusal(self, found: Bound) -> str:
        """1x1, stride 1, no frame."""
        conv = found["conv"]
        _, tall, wide, _ = found["w"].extents
        if (tall, wide) != (1, 1):
            return f"the filter is {tall}x{wide}, not 1x1"
        if conv.attr("stride") != 1 or conv.attr("pad") != (0, 0, 0, 0):
            return f"stride {conv.attr('stride')} and pad {conv.attr('pad')}, not 1 and none"
        return ""

    def replacement(self, found: Bound) -> Expr:
        """Pixels as rows."""
        x, w = found["x"], found["w"]
        rows, columns, c = x.extents
        made = ops.contract(ops.reshape(x, rows * columns, c), ops.reshape(w, w.extents[0], c))
        return ops.reshape(made, rows, columns, w.extents[0])


class ChannelConcat(Rewrite):
    """A concatenation of the channels of planes becomes planes that lie one after another.

    Preconditions: planes [H, W, C] along their channels, and every one but the last has whole blocks of 32 channels;
    a tail of a block would lie between.
    """

    name = "channel concat"
    equality = Equality.BYTE

    def matches(self, e: Expr) -> Iterator[Bound]:
        """Any concatenation."""
        if e.op == "concat":
            yield {"concat": e}

    def refusal(self, found: Bound) -> str:
        """Planes, channels, whole blocks."""
        e = found["concat"]
        if e.ndim != 3 or e.attr("axis") != -1:
            return f"a concatenation along axis {e.attr('axis')} of {e.ndim} axes is none of the channels of planes"
        for position, part in enumerate(e.args[:-1]):
            if part.extents[-1] % CHANNEL_BLOCK:
                return f"member {position} has {part.extents[-1]} channels, no whole blocks of {CHANNEL_BLOCK}"
        return ""

    def replacement(self, found: Bound) -> Expr:
        """Adjacent planes."""
        return ops.adjacent(*found["concat"].args)

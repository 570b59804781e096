# SPDX-License-Identifier: Apache-2.0
"""Expressions each rewrite of docs/spec/compiler.md 13.3 has to change, and near misses it has to leave alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kohakutpu.rewrite import Expr, array, ops

SAME = (1, 1, 1, 1)


@dataclass(frozen=True)
class Positive:
    """An expression the entry matches.

    Args:
        integers: draw small integers, on which every sum is exact.
    """

    entry: str
    label: str
    make: Callable[[], Expr]
    integers: bool = False


@dataclass(frozen=True)
class Negative:
    """A near miss; ``reason`` is part of what the entry says, "" if it is not even its pattern."""

    entry: str
    label: str
    make: Callable[[], Expr]
    reason: str = ""


def qkv(lq: int = 16, lkv: int = 128, dk: int = 64, dv: int = 64, heads: int = 2) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and transposed values."""
    return array("q", heads, lq, dk), array("k", heads, lkv, dk), array("v", heads, dv, lkv)


def attention(scale: float = 0.125, axis: int = -1, **sizes: int) -> Expr:
    """softmax(scale * q k^T) v."""
    q, k, v = qkv(**sizes)
    return ops.softmax((q @ k) * scale, axis) @ v


def _attention_late_division() -> Expr:
    q, k, v = qkv()
    s = q @ k
    e = ops.exp2(s - ops.row_max(s))
    return (e @ v) / ops.row_sum(e)


def _attention_keys(keys: int, v_keys: int | None = None, lq: int = 64) -> Expr:
    q, k, v = qkv(lq)
    real, values = ops.take(k, -2, 0, keys), ops.take(v, -1, (v_keys or keys) - keys, v_keys or keys)
    return ops.softmax((q @ real) * 0.125) @ values


def _attention_biased() -> Expr:
    q, k, v = qkv()
    return ops.softmax((q @ k) + array("b", 16, 128)) @ v


def _shared_keys() -> Expr:
    q, _, v = qkv()
    return ops.softmax(q @ array("k", 128, 64)) @ v


def _x(rows: int = 8, cols: int = 64) -> Expr:
    return array("x", rows, cols)


def _variance(x: Expr, z: Expr, axis: int = -1, z_axis: int = -1, factor: float = 1.0) -> Expr:
    mean = ops.row_mean(z, z_axis)
    return ops.row_mean(x * x, axis) - mean * mean * factor


def _bessel() -> Expr:
    x = _x()
    total = ops.row_sum(x)
    return (ops.row_sum(x * x) - total * total / 64) / 63


def _projection(n: int = 96, rows: int = 16) -> Expr:
    return array("x", rows, 64) @ array("w", n, 64)


def _split(shape: tuple[int, int, int] = (16, 3, 32), axes: tuple[int, int, int] = (1, 0, 2)) -> Expr:
    return ops.transpose(ops.reshape(_projection(), *shape), *axes)


def _joined(axes: tuple[int, int, int] = (1, 0, 2), shape: tuple[int, int] = (16, 96)) -> Expr:
    o = array("o", 3, 16, 32)
    return ops.reshape(ops.transpose(o, *axes), *shape) @ array("w", 20, 96)


def _gate(first: bool = False, bias: bool = False) -> Expr:
    product = _projection()
    h, g = ops.chunk(product + array("b", 96) if bias else product)
    return ops.silu(h) * g if first else h * ops.gelu(g)


def _uneven_gate() -> Expr:
    product = _projection()
    return ops.take(product, -1, 0, 40) * ops.silu(ops.take(product, -1, 48, 88))


def _narrow_gate(half: int, bias: bool = False) -> Expr:
    product = _projection(2 * half)
    h, g = ops.chunk(product + array("b", 2 * half) if bias else product)
    return h * ops.silu(g)


def _heads(rows: int, heads: int, d: int) -> Expr:
    return ops.transpose(ops.reshape(_projection(heads * d, rows), rows, heads, d), 1, 0, 2)


def _join_of(heads: int, rows: int, d: int) -> Expr:
    o = array("o", heads, rows, d)
    return ops.reshape(ops.transpose(o, 1, 0, 2), rows, heads * d) @ array("w", 20, heads * d)


def _gate_of_two() -> Expr:
    other = array("x", 16, 64) @ array("w2", 96, 64)
    return ops.chunk(_projection())[0] * ops.silu(ops.chunk(other)[1])


def _gate_reading_more() -> Expr:
    h, g = ops.chunk(_projection())
    return h * (ops.silu(g) + array("r", 16, 48))


def _chunked_sum() -> Expr:
    h, g = ops.chunk(array("x", 16, 96) + array("z", 16, 96))
    return h * ops.silu(g)


def _row_gate() -> Expr:
    h, g = ops.chunk(_projection(), axis=-2)
    return h * ops.silu(g)


def plane(tall: int = 6, wide: int = 5, channels: int = 4) -> Expr:
    """A plane [H, W, C]."""
    return array("p", tall, wide, channels)


def _conv(x: Expr, k: int = 3, stride: int = 1, frame: tuple[int, int, int, int] = SAME) -> Expr:
    return ops.conv2d(x, array("w", 7, k, k, x.extents[2]), stride, frame)


def strided(step: int, tall: int = 6, wide: int = 5, lo: int = 0, wide_step: int = 0) -> Expr:
    """Every ``step``-th pixel of a dense 3x3 convolution."""
    dense = _conv(plane(tall, wide))
    return ops.take(ops.take(dense, -3, lo, tall, step), -2, lo, wide, wide_step or step)


def _planes(*channels: int, axis: int = -1) -> Expr:
    return ops.concat(*(array(f"p{i}", 4, 4, c) for i, c in enumerate(channels)), axis=axis)


SOFTMAX = "streamed softmax"
VARIANCE = "two-pass variance"
LSE = "shifted log-sum-exp"
UPSAMPLE = "folded upsample"
STRIDE = "residue-split plane"
SPLIT = "head split"
JOIN = "head join"
TRANSPOSE = "transposed product"
GATE = "chunk gate"
POINT = "1x1 convolution"
CONCAT = "channel concat"
EXP2 = "exp as exp2"

POSITIVE = (
    Positive(SOFTMAX, "scaled scores", attention),
    Positive(SOFTMAX, "no scale", lambda: attention(1.0)),
    Positive(SOFTMAX, "large scores", lambda: attention(60.0)),
    Positive(SOFTMAX, "base 2, division behind the product", _attention_late_division),
    Positive(SOFTMAX, "77 of 128 keys", lambda: _attention_keys(77)),
    Positive(SOFTMAX, "77 keys, 96 queries", lambda: _attention_keys(77, lq=96)),
    Positive(SOFTMAX, "7 queries of one head", lambda: attention(lq=7, heads=1)),
    Positive(SOFTMAX, "one key", lambda: _attention_keys(1)),
    Positive(SOFTMAX, "a head of 96", lambda: attention(dv=96, lkv=96)),
    Positive(VARIANCE, "means", lambda: _variance(_x(), _x())),
    Positive(VARIANCE, "of half of x", lambda: _variance(_x() * 0.5, _x() * 0.5)),
    Positive(VARIANCE, "sums and n - 1", _bessel),
    Positive(VARIANCE, "along rows", lambda: _variance(_x(), _x(), -2, -2)),
    Positive(LSE, "base e", lambda: ops.log(ops.row_sum(ops.exp(_x())))),
    Positive(LSE, "base 2", lambda: ops.log2(ops.row_sum(ops.exp2(_x())))),
    *(
        Positive(UPSAMPLE, f"{tall}x{wide}", lambda tall=tall, wide=wide: _conv(ops.upsample2(plane(tall, wide))), True)
        for tall, wide in ((5, 7), (1, 1), (8, 8))
    ),
    *(
        Positive(STRIDE, f"step {s}, {t}x{w}", lambda s=s, t=t, w=w: strided(s, t, w), True)
        for s in (2, 3)
        for t, w in ((6, 5), (8, 8), (9, 7), (2, 4))
    ),
    Positive(STRIDE, "stated stride", lambda: _conv(plane(7, 8), stride=2), True),
    Positive(SPLIT, "three heads of 32", _split),
    Positive(SPLIT, "heads of a transposed projection", lambda: _split(axes=(1, 2, 0))),
    Positive(JOIN, "three heads of 32", _joined, True),
    Positive(TRANSPOSE, "matrix", lambda: ops.transpose(_projection())),
    Positive(TRANSPOSE, "batch", lambda: ops.transpose(array("a", 2, 8, 16) @ array("b", 2, 4, 16), 0, 2, 1)),
    Positive(GATE, "gate second", _gate),
    Positive(GATE, "gate first", lambda: _gate(first=True)),
    Positive(GATE, "halves of 4", lambda: _narrow_gate(4)),
    Positive(GATE, "biases", lambda: _gate(bias=True)),
    Positive(POINT, "plane", lambda: _conv(plane(), 1, frame=(0, 0, 0, 0))),
    Positive(CONCAT, "two planes", lambda: _planes(64, 32)),
    Positive(CONCAT, "a tail at the end", lambda: _planes(32, 64, 20)),
    Positive(EXP2, "factor", lambda: ops.exp(_x() * 0.3)),
    Positive(EXP2, "softmax of scaled scores", lambda: ops.softmax(_x() * 0.125)),
    Positive(EXP2, "negative factor", lambda: ops.softmax(_x() * -2.0)),
)

NEGATIVE = (
    Negative(SOFTMAX, "softmax along queries", lambda: attention(axis=-2), "runs along axis -2"),
    Negative(SOFTMAX, "77 keys", lambda: attention(lkv=77), "77 keys and a head of 64 are no whole blocks"),
    Negative(SOFTMAX, "a head of 48", lambda: attention(dv=48), "a head of 48"),
    Negative(SOFTMAX, "77 of 128 keys, 40 queries", lambda: _attention_keys(77, lq=40), "40 queries and a head"),
    Negative(SOFTMAX, "18 queries of two heads", lambda: attention(lq=18), "18 queries of several heads"),
    Negative(SOFTMAX, "other keys in v", lambda: _attention_keys(77, 100), "77 keys"),
    Negative(SOFTMAX, "biased scores", _attention_biased, "no product of queries and keys"),
    Negative(SOFTMAX, "shared keys", _shared_keys, "different leading axes"),
    Negative(SOFTMAX, "no product behind it", lambda: ops.softmax(_x())),
    Negative(VARIANCE, "another x", lambda: _variance(_x(), array("z", 8, 64)), "different arrays"),
    Negative(VARIANCE, "another axis", lambda: _variance(array("x", 8, 8), array("x", 8, 8), -1, -2), "axis -1 and"),
    Negative(VARIANCE, "half the mean", lambda: _variance(_x(), _x(), factor=0.5), "factors"),
    Negative(VARIANCE, "a sum of both", lambda: _variance(_x(), _x(), factor=-1.0), "factors"),
    Negative(VARIANCE, "a cube", lambda: ops.row_mean(_x() * _x() * _x()) - ops.row_mean(_x()) * ops.row_mean(_x())),
    Negative(
        LSE,
        "shifted already",
        lambda: ops.log(ops.row_sum(ops.exp(_x() - ops.row_max(_x())))),
        "subtracted already",
    ),
    Negative(LSE, "bases mixed", lambda: ops.log(ops.row_sum(ops.exp2(_x())))),
    Negative(UPSAMPLE, "5x5", lambda: _conv(ops.upsample2(plane()), 5), "5x5"),
    Negative(UPSAMPLE, "no frame", lambda: _conv(ops.upsample2(plane()), frame=(0, 0, 0, 0)), "pad (0, 0, 0, 0)"),
    Negative(UPSAMPLE, "stride 2", lambda: _conv(ops.upsample2(plane()), stride=2), "stride 2"),
    Negative(UPSAMPLE, "plain plane", lambda: _conv(plane())),
    Negative(STRIDE, "from pixel 1", lambda: strided(2, lo=1), "not cut from pixel 0"),
    Negative(STRIDE, "two steps", lambda: strided(2, wide_step=3), "in one step"),
    Negative(STRIDE, "1x1", lambda: _conv(plane(), 1, stride=2), "1x1"),
    Negative(STRIDE, "no frame", lambda: _conv(plane(), stride=2, frame=(0, 0, 0, 0)), "pad (0, 0, 0, 0)"),
    Negative(STRIDE, "dense", lambda: _conv(plane())),
    Negative(SPLIT, "no whole heads", lambda: _split((24, 2, 32)), "96 columns are no whole number of heads of 32"),
    Negative(SPLIT, "10 rows", lambda: _heads(10, 3, 32), "10 rows and heads of 32 are no multiples of 4"),
    Negative(SPLIT, "heads of 6", lambda: _heads(16, 3, 6), "16 rows and heads of 6 are no multiples of 4"),
    Negative(SPLIT, "d before heads", lambda: _split(axes=(2, 1, 0)), "axes (2, 1, 0)"),
    Negative(SPLIT, "batched weight", lambda: ops.transpose(ops.reshape(
        array("x", 2, 8, 64) @ array("w", 2, 96, 64), 16, 3, 32), 1, 0, 2), "no matrices"),
    Negative(JOIN, "K order changed", lambda: _joined((1, 2, 0)), "K does not run head by head"),
    Negative(JOIN, "heads of 48", lambda: _join_of(2, 16, 48), "no whole K blocks of 32"),
    Negative(JOIN, "18 rows", lambda: _join_of(2, 18, 32), "heads of 32 and 18 rows"),
    Negative(JOIN, "nothing exchanged", lambda: ops.reshape(array("o", 3, 16, 32), 16, 96) @ array("w", 20, 96)),
    Negative(TRANSPOSE, "leading axes", lambda: ops.transpose(array("a", 2, 8, 16) @ array("b", 2, 4, 16), 1, 0, 2),
             "the last two exchanged"),
    Negative(TRANSPOSE, "of a sum", lambda: ops.transpose(_projection() + 1.0)),
    Negative(GATE, "uneven halves", _uneven_gate, "not its two halves"),
    Negative(GATE, "two products", _gate_of_two),
    Negative(GATE, "gate reads more", _gate_reading_more),
    Negative(GATE, "halves of the rows", _row_gate, "not along the columns"),
    Negative(GATE, "halves of 6", lambda: _narrow_gate(6), "halves of 6 columns are no multiples of 4"),
    Negative(GATE, "biased halves of 20", lambda: _narrow_gate(20, True), "halves of 20 columns are no multiples"),
    Negative(GATE, "of no product", _chunked_sum, "no product"),
    Negative(POINT, "3x3", lambda: _conv(plane()), "3x3"),
    Negative(POINT, "stride 2", lambda: _conv(plane(), 1, 2, (0, 0, 0, 0)), "stride 2"),
    Negative(POINT, "frame", lambda: _conv(plane(), 1), "pad (1, 1, 1, 1)"),
    Negative(CONCAT, "a tail before the end", lambda: _planes(20, 32), "member 0 has 20 channels"),
    Negative(CONCAT, "rows", lambda: _planes(32, 32, axis=-2), "axis -2"),
    Negative(CONCAT, "matrices", lambda: ops.concat(array("a", 4, 32), array("b", 4, 32)), "2 axes"),
    Negative(EXP2, "no factor", lambda: ops.exp(_x()), "no constant factor"),
    Negative(EXP2, "factor on one side", lambda: ops.exp(_x() * 0.3 - ops.row_max(_x())), "no constant factor"),
    Negative(EXP2, "base 2 already", lambda: ops.exp2(_x() * 0.3)),
)  # fmt: skip

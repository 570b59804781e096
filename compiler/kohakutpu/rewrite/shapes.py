# SPDX-License-Identifier: Apache-2.0
"""The operations of tensor expressions and the shapes they take and give (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from kohakutpu.chain import ARITY, FOLDS
from kohakutpu.errors import CompileError

LAYER = "L5"

Shape = tuple[int, ...]
Attr = int | float | str | Shape
Attrs = tuple[tuple[str, Attr], ...]
Rule = Callable[[Sequence[Shape], Mapping[str, Any]], Shape]

ANY = "any"
"""The attribute of a template node that stands for any attributes."""

FUNCTIONS = ("silu", "gelu", "gelu_sigmoid", "sigmoid", "relu")
"""Activations with a name of their own; their formulas are those of the kernel library."""

LANES = {
    **{op: n for op, n in ARITY.items() if op not in FOLDS},
    "div": 2,
    "exp": 1,
    "log": 1,
    "sqrt": 1,
    **dict.fromkeys(FUNCTIONS, 1),
}
"""Operations element by element, by number of operands."""

ROW_GROUP = 4
"""Rows of the blocks of a batch come in multiples of this."""
K_BLOCK = 32
"""Elements of K whose products are added before anything else; a head that is joined has whole blocks."""
VIEW_STEP = 16
"""A part of a row of values begins at a multiple of this."""

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "equal"})
TEMPLATE = frozenset({"hole", "numeral", "named"})


def infer(op: str, shapes: Sequence[Shape | None], attrs: Mapping[str, Any]) -> Shape | None:
    """Shape of the result, None for the node of a template.

    Raises:
        CompileError: a wrong number of operands, missing attributes, or shapes that do not fit.
    """
    arity, names, rule = OPS[op]
    if arity is not None and len(shapes) != arity:
        raise CompileError(f"{op} takes {arity} operands, got {len(shapes)}")
    if arity is None and not shapes:
        raise CompileError(f"{op} needs at least one operand")
    if ANY in attrs:
        return None
    if set(attrs) != set(names):
        raise CompileError(f"{op} has attributes {sorted(names)}, got {sorted(attrs)}")
    if op in TEMPLATE or any(s is None for s in shapes):
        return None
    found = rule([s for s in shapes if s is not None], attrs)
    if any(n < 1 for n in found):
        raise CompileError(f"{op} of {list(shapes)} gives {found}; every extent must be at least 1")
    return found


def broadcast(shapes: Sequence[Shape]) -> Shape:
    """The shape that every operand is repeated to, extents of 1 and missing leading axes filled.

    Raises:
        CompileError: extents that differ.
    """
    rank = max(map(len, shapes))
    out = []
    for extents in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        wide = {n for n in extents if n != 1}
        if len(wide) > 1:
            raise CompileError(f"operands of {' and '.join(map(str, shapes))} do not fit; extents are equal or 1")
        out.append(wide.pop() if wide else 1)
    return tuple(out)


def _lanes(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    return broadcast(shapes)


def _reduce(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis = shapes, attrs["axis"]
    if not -len(shape) <= axis < 0:
        raise CompileError(f"axis {axis} of {shape}; axes count from the last one, -1 to -{len(shape)}")
    return tuple(1 if i == axis + len(shape) else n for i, n in enumerate(shape))


def _contract(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    a, b = shapes
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-1]:
        raise CompileError(f"contract of {a} and {b}; both contract their last axis, [..., M, K] with [..., N, K]")
    return (*broadcast([a[:-2], b[:-2]]), a[-2], b[-2])


def _join(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    a, b = shapes
    if len(a) != 3 or len(b) != 2 or a[0] * a[2] != b[1]:
        raise CompileError(f"contract_heads of {a} and {b}; it takes [heads, M, d] and [N, heads*d]")
    return a[1], b[0]


def _reshape(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    wanted: Shape = attrs["shape"]
    if prod(wanted) != prod(shapes[0]):
        raise CompileError(f"reshape of {shapes[0]} to {wanted}: {prod(shapes[0])} elements stay {prod(shapes[0])}")
    return wanted


def _transpose(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axes = shapes, attrs["axes"]
    if sorted(axes) != list(range(len(shape))):
        raise CompileError(f"transpose of {shape} by {axes}; name every axis once")
    return tuple(shape[i] for i in axes)


def _broadcast(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    wanted: Shape = attrs["shape"]
    if broadcast([shapes[0], wanted]) != wanted:
        raise CompileError(f"{shapes[0]} cannot be repeated to {wanted}")
    return wanted


def _concat(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    axis = attrs["axis"]
    first, rank = shapes[0], len(shapes[0])
    if not -rank <= axis < 0:
        raise CompileError(f"concat along axis {axis} of {first}; axes count from the last one, -1 to -{rank}")
    at = axis + rank
    rests = {(s[:at], s[at + 1 :]) for s in shapes}
    if len(rests) != 1:
        raise CompileError(f"concat of {' and '.join(map(str, shapes))} along axis {axis}; the other extents agree")
    return (*first[:at], sum(s[at] for s in shapes), *first[at + 1 :])


def _adjacent(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    return _concat(shapes, {"axis": -1})


def _slice(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (shape,), axis, lo, hi, step = shapes, attrs["axis"], attrs["lo"], attrs["hi"], attrs["step"]
    if not -len(shape) <= axis < 0 or not 0 <= lo < hi <= shape[axis] or step < 1:
        raise CompileError(f"slice {lo}:{hi}:{step} along axis {axis} of {shape}; it lies inside, axes count from -1")
    return tuple(-(-(hi - lo) // step) if i == axis + len(shape) else n for i, n in enumerate(shape))


def _conv2d(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (x, w), stride, (top, bottom, left, right) = shapes, attrs["stride"], attrs["pad"]
    if len(x) != 3 or len(w) != 4 or x[2] != w[3] or stride < 1:
        raise CompileError(f"conv2d of {x} and {w}; it takes [H, W, C] and [N, kh, kw, C]")
    tall, wide = x[0] + top + bottom - w[1], x[1] + left + right - w[2]
    return tall // stride + 1, wide // stride + 1, w[0]


def _pad(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (shape,), (top, bottom, left, right) = shapes, attrs["pad"]
    if len(shape) != 3:
        raise CompileError(f"pad of {shape}; a plane is [H, W, C]")
    return shape[0] + top + bottom, shape[1] + left + right, shape[2]


def _upsample2(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    (shape,) = shapes
    if len(shape) != 3:
        raise CompileError(f"upsample2 of {shape}; a plane is [H, W, C]")
    return 2 * shape[0], 2 * shape[1], shape[2]


def _attention(shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    (q, k, v), block, keys = shapes, attrs["block"], attrs["keys"]
    fits = len(q) == len(k) == len(v) and q[:-2] == k[:-2] == v[:-2] and q[-1] == k[-1] and k[-2] == v[-1]
    if not fits or block < 1 or k[-2] % block or not 1 <= keys <= k[-2]:
        raise CompileError(
            f"online_attention of {q}, {k}, {v} by blocks of {block}, {keys} keys; it takes [..., Lq, Dk], "
            "[..., Lkv, Dk] and [..., Dv, Lkv], Lkv whole blocks, at most Lkv keys"
        )
    return (*q[:-1], v[-2])


def _same(shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    return shapes[0]


def _stated(_shapes: Sequence[Shape], attrs: Mapping[str, Any]) -> Shape:
    return tuple(attrs["shape"])


def _scalar(_shapes: Sequence[Shape], _attrs: Mapping[str, Any]) -> Shape:
    return ()


OPS: dict[str, tuple[int | None, tuple[str, ...], Rule]] = {
    "input": (0, ("name", "shape"), _stated),
    "const": (0, ("value",), _scalar),
    "hole": (0, ("name",), _scalar),
    "numeral": (0, ("name",), _scalar),
    "named": (1, ("name",), _same),
    **{op: (n, (), _lanes) for op, n in LANES.items()},
    "reduce_max": (1, ("axis",), _reduce),
    "reduce_sum": (1, ("axis",), _reduce),
    "contract": (2, (), _contract),
    "contract_heads": (2, (), _join),
    "reshape": (1, ("shape",), _reshape),
    "transpose": (1, ("axes",), _transpose),
    "broadcast": (1, ("shape",), _broadcast),
    "concat": (None, ("axis",), _concat),
    "adjacent": (None, (), _adjacent),
    "slice": (1, ("axis", "lo", "hi", "step"), _slice),
    "pad": (1, ("pad",), _pad),
    "conv2d": (2, ("stride", "pad"), _conv2d),
    "upsample2": (1, (), _upsample2),
    "half": (1, (), _same),
    "online_attention": (3, ("block", "keys"), _attention),
}
"""Number of operands (None for one or more), attributes, and shape of every operation.

``contract``: c[..., m, n] = sum over k of a[..., m, k] b[..., n, k], leading axes repeated. ``contract_heads``: one sum
over the heads of a [heads, M, d] and, within a head, over d, against b [N, heads*d]. ``reduce_*`` keep the axis.
``adjacent``: the planes one after another in memory, which is a concatenation of channels. ``conv2d``: a plane
[H, W, C] padded by (top, bottom, left, right) with a weight [N, kh, kw, C]. ``upsample2``: every pixel four times.
``half``: rounded to FP16. ``online_attention``: softmax in base 2 of q k^T over the first ``keys`` keys, times v, a
block of keys at a time with a running maximum and sum.
"""

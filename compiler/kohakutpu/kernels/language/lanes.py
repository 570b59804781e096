# SPDX-License-Identifier: Apache-2.0
"""Lane expressions: what one element of a vector statement computes (docs/spec/compiler.md 11)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, NoReturn

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.integers import Int

if TYPE_CHECKING:
    from kohakutpu.kernels.language.buffers import Ref, Tile

LAYER = "L4"

UNARY = ("neg", "absolute", "exp2", "log2", "recip", "rsqrt")
BINARY = ("add", "sub", "mul", "maximum", "minimum", "less", "greater", "equal")
FOLDS = ("row_max", "row_sum")
COMPARES = ("less", "greater", "equal")


class Arithmetic:
    """The operators of whatever stands for an element: a buffer, a reference, an accumulator, an expression."""

    def __add__(self, other: object) -> Lane:
        return apply("add", self, other)

    def __radd__(self, other: object) -> Lane:
        return apply("add", other, self)

    def __sub__(self, other: object) -> Lane:
        return apply("sub", self, other)

    def __rsub__(self, other: object) -> Lane:
        return apply("sub", other, self)

    def __mul__(self, other: object) -> Lane:
        return apply("mul", self, other)

    def __rmul__(self, other: object) -> Lane:
        return apply("mul", other, self)

    def __truediv__(self, other: object) -> Lane:
        return divide(self, other)

    def __rtruediv__(self, other: object) -> Lane:
        return divide(other, self)

    def __neg__(self) -> Lane:
        return apply("neg", self)

    def __pow__(self, _other: object) -> NoReturn:
        raise TraceError("a power of an element; write x * x, or exp2(n * log2(x))")

    def __lt__(self, _other: object) -> NoReturn:
        _ordered()

    def __le__(self, _other: object) -> NoReturn:
        _ordered()

    def __gt__(self, _other: object) -> NoReturn:
        _ordered()

    def __ge__(self, _other: object) -> NoReturn:
        _ordered()

    def __array_ufunc__(self, ufunc: object, _method: str, *operands: object, **_options: object) -> Lane:
        """What numpy does with an element: operators with one of its numbers on the left are ordinary ones."""
        name = getattr(ufunc, "__name__", "")
        if name in _NUMPY_OPERATORS:
            return _NUMPY_OPERATORS[name](*operands)
        raise TraceError(f"np.{name} of an element; numpy does not compute on the machine, use ktpu.language")

    def __bool__(self) -> bool:
        raise TraceError("control flow on an element; write where(condition, a, b)")

    def __float__(self) -> float:
        raise TraceError("reading an element; a kernel is traced without data")


def _ordered() -> NoReturn:
    raise TraceError("a comparison of elements; write where(greater(a, b), c, d), with less, greater or equal")


@dataclass(frozen=True, eq=False)
class Lane(Arithmetic):
    """A node: ``op`` on other nodes, or a leaf "read" (a Ref), "const" (a float), "resident" (a Tile)."""

    op: str
    args: tuple[Lane, ...] = ()
    leaf: Ref | Tile | float | None = None

    def __iadd__(self, other: object) -> Lane:
        from kohakutpu.kernels.language.buffers import Product

        if isinstance(other, Product):
            raise TraceError(
                "`+=` of a product on a name that now holds an expression; an accumulator is only what tile() "
                "gave: sweep it first, then use it in an expression under another name"
            )
        return apply("add", self, other)

    def __matmul__(self, other: object) -> NoReturn:
        raise TraceError(
            "`@` takes operands in memory, not an expression; write the expression to a temp and contract that"
        )

    def __getitem__(self, key: object) -> NoReturn:
        raise TraceError("an expression is not indexed: it stands for every element; index the buffers inside it")

    def nodes(self) -> Iterator[Lane]:
        """All nodes, operands first, each once."""
        seen: set[int] = set()

        def walk(node: Lane) -> Iterator[Lane]:
            if id(node) not in seen:
                seen.add(id(node))
                for arg in node.args:
                    yield from walk(arg)
                yield node

        yield from walk(self)

    def text(self) -> str:
        """Printed form."""
        if self.op == "const":
            return repr(self.leaf)
        if self.op in ("read", "resident"):
            assert self.leaf is not None
            assert not isinstance(self.leaf, float)
            return self.leaf.text()
        return f"{self.op}({', '.join(a.text() for a in self.args)})"


def lane(value: object) -> Lane:
    """``value`` as an operand of a lane op.

    Raises:
        TraceError: something that is neither an expression, a buffer reference, an accumulator nor a number.
    """
    from kohakutpu.kernels.language.buffers import Buffer, Product, Ref, Tile

    if isinstance(value, Lane):
        return value
    if isinstance(value, Ref):
        return value.lane()
    if isinstance(value, Buffer):
        return Ref(value, ()).lane()
    if isinstance(value, Tile):
        return Lane("resident", leaf=value)
    if isinstance(value, bool):
        raise TraceError(f"{value} is no number; write 1.0 or 0.0")
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise TraceError(f"{value} is no finite constant; the lanes saturate at FP16 in memory, use 65504")
        return Lane("const", leaf=float(value))
    if isinstance(value, Int):
        raise TraceError(
            f"{value.text()} is an extent or index, not an element; pass its value as a knob to use it in arithmetic"
        )
    if isinstance(value, Product):
        raise TraceError(
            "a product stands only behind `acc += ...`; open an accumulator with tile(gm, gn, nk), sweep it and use it"
        )
    raise TraceError(f"{value!r} of type {type(value).__name__} cannot be an operand of a lane op")


def apply(op: str, *operands: object) -> Lane:
    """A lane op; a compare may only feed ``where``."""
    nodes = tuple(lane(o) for o in operands)
    for node in nodes:
        if node.op in COMPARES:
            raise TraceError(f"{op} of a comparison; the result of {node.op} may only be the condition of where()")
    return Lane(op, nodes)


def divide(a: object, b: object) -> Lane:
    """a / b: a product with the reciprocal, or with the constant's reciprocal."""
    return Lane("div", (lane(a), lane(b)))


_NUMPY_OPERATORS: dict[str, Callable[..., Lane]] = {
    **{numpy: partial(apply, op) for numpy, op in (("add", "add"), ("subtract", "sub"), ("multiply", "mul"))},
    "divide": divide,
}
"""What an operator with a number of numpy on the left arrives as."""


def absolute(v: object) -> Lane:
    """Magnitude."""
    return apply("absolute", v)


def maximum(a: object, b: object) -> Lane:
    """Larger of two; a NaN in ``a`` is kept (docs/spec/vector.md 12.2)."""
    return apply("maximum", a, b)


def minimum(a: object, b: object) -> Lane:
    """Smaller of two; a NaN in ``a`` is kept."""
    return apply("minimum", a, b)


def fma(a: object, b: object, c: object) -> Lane:
    """a * b + c with one rounding."""
    return apply("fma", a, b, c)


def exp2(v: object) -> Lane:
    """2 to the power v."""
    return apply("exp2", v)


def log2(v: object) -> Lane:
    """Logarithm to base 2."""
    return apply("log2", v)


def recip(v: object) -> Lane:
    """1 / v."""
    return apply("recip", v)


def rsqrt(v: object) -> Lane:
    """1 / sqrt(v)."""
    return apply("rsqrt", v)


def sqrt_approx(v: object) -> Lane:
    """sqrt(v) as the reciprocal of rsqrt; there is no square root op. sqrt(0) = 0."""
    return recip(rsqrt(v))


def sqrt_newton(v: object) -> Lane:
    """sqrt(v) for v > 0 with one Newton step: s + 0.5 (v - s*s) rsqrt(v)."""
    x = lane(v)
    r = rsqrt(x)
    s = apply("mul", x, r)
    rest = apply("sub", x, apply("mul", s, s))
    return fma(apply("mul", rest, 0.5), r, s)


def less(a: object, b: object) -> Lane:
    """Condition a < b, for :func:`where`."""
    return apply("less", a, b)


def greater(a: object, b: object) -> Lane:
    """Condition a > b, for :func:`where`."""
    return apply("greater", a, b)


def equal(a: object, b: object) -> Lane:
    """Condition a == b, for :func:`where`."""
    return apply("equal", a, b)


def where(condition: object, a: object, b: object) -> Lane:
    """``a`` where the condition holds (or a value is not 0), else ``b``."""
    choice, x, y = lane(condition), lane(a), lane(b)
    for node in (x, y):
        if node.op in COMPARES:
            raise TraceError("where() chooses between values; a comparison may only be its condition")
    return Lane("where", (choice, x, y))


def row_max(v: object) -> Lane:
    """Maximum along the row, read back by every element of the row."""
    return apply("row_max", v)


def row_sum(v: object) -> Lane:
    """Sum along the row in the order of docs/spec/vector.md 7.4, read back by every element of the row."""
    return apply("row_sum", v)

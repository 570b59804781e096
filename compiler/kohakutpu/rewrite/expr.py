# SPDX-License-Identifier: Apache-2.0
"""Untiled tensor expressions, on which the rewrites of docs/spec/compiler.md 13.3 work.

An expression says what is computed on arrays of any rank, in exact arithmetic; it knows no tile, no format and no
machine. Nodes are interned: two expressions are equal exactly if they are one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from weakref import WeakValueDictionary

from kohakutpu.errors import CompileError
from kohakutpu.rewrite.shapes import ANY, OPS, Attr, Attrs, Shape, infer

LAYER = "L5"

_known: WeakValueDictionary[tuple[object, ...], Expr] = WeakValueDictionary()
_serials = count()

Number = int | float


class Expr:
    """An operation on expressions.

    Args:
        op: a key of :data:`~kohakutpu.rewrite.shapes.OPS`.
        args: operands.
        attrs: numbers and names the operation needs besides them, by name.
        shape: of the result; None in a template.
        serial: position in the order of creation, an order of nodes that is stable while they live.
    """

    __slots__ = ("__weakref__", "args", "attrs", "op", "serial", "shape")

    op: str
    args: tuple[Expr, ...]
    attrs: Attrs
    shape: Shape | None
    serial: int

    @property
    def extents(self) -> Shape:
        """The shape.

        Raises:
            CompileError: the node of a template, which has none.
        """
        if self.shape is None:
            raise CompileError(f"{self.op} is part of a template; only an expression has a shape")
        return self.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.extents)

    def attr(self, name: str) -> Attr:
        """An attribute by name.

        Raises:
            KeyError: the operation has none of that name.
        """
        return dict(self.attrs)[name]

    def axes(self, name: str) -> Shape:
        """An attribute that is a tuple of integers."""
        value = self.attr(name)
        assert isinstance(value, tuple)
        return value

    def index(self, name: str) -> int:
        """An attribute that is an integer."""
        value = self.attr(name)
        assert isinstance(value, int)
        return value

    @property
    def number(self) -> float | None:
        """The value of a constant, None of anything else."""
        return float(dict(self.attrs)["value"]) if self.op == "const" else None  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """The name of an input or a hole, "" of anything else."""
        return str(dict(self.attrs).get("name", ""))

    # ------------------------------------------------------------------ operators

    def __add__(self, other: Expr | Number) -> Expr:
        return make("add", self, as_expr(other))

    def __radd__(self, other: Number) -> Expr:
        return make("add", as_expr(other), self)

    def __sub__(self, other: Expr | Number) -> Expr:
        return make("sub", self, as_expr(other))

    def __rsub__(self, other: Number) -> Expr:
        return make("sub", as_expr(other), self)

    def __mul__(self, other: Expr | Number) -> Expr:
        return make("mul", self, as_expr(other))

    def __rmul__(self, other: Number) -> Expr:
        return make("mul", as_expr(other), self)

    def __truediv__(self, other: Expr | Number) -> Expr:
        return make("div", self, as_expr(other))

    def __rtruediv__(self, other: Number) -> Expr:
        return make("div", as_expr(other), self)

    def __neg__(self) -> Expr:
        return make("neg", self)

    def __matmul__(self, other: Expr) -> Expr:
        """Contract the last axis of both, [..., M, K] with [..., N, K], as arrays of a device do."""
        return make("contract", self, other)

    def __repr__(self) -> str:
        return f"<{self.op} {self.shape}>"

    def text(self) -> str:
        """Printed form, one line an operation, operands first."""
        lines, names = [], {}
        for position, e in enumerate(walk(self)):
            if e.op == "const":
                names[e] = repr(e.number)
                continue
            names[e] = e.name or f"%{position}"
            attrs = "".join(f" {k}={v}" for k, v in e.attrs if k != "name")
            called = f"{e.op}({', '.join(names[a] for a in e.args)})" if e.args else e.op
            lines.append(f"{names[e]} = {called}{attrs}: {list(e.shape) if e.shape is not None else '?'}")
        return "\n".join(lines)


def make(op: str, *args: Expr, **attrs: Attr) -> Expr:
    """The node of an operation, checked.

    Raises:
        CompileError: an unknown operation, a wrong number of operands or attributes, or shapes that do not fit.
    """
    if op not in OPS:
        raise CompileError(f"operation {op!r} is unknown; known: {', '.join(sorted(OPS))}")
    listed = tuple(sorted(attrs.items()))
    key = (op, tuple(id(a) for a in args), repr(listed))
    found = _known.get(key)
    if found is None:
        found = Expr()
        found.shape = infer(op, [a.shape for a in args], dict(listed))
        found.op, found.args, found.attrs, found.serial = op, args, listed, next(_serials)
        _known[key] = found
    return found


def like(e: Expr, args: tuple[Expr, ...]) -> Expr:
    """``e`` with other operands."""
    return e if args == e.args else make(e.op, *args, **dict(e.attrs))


def as_expr(value: Expr | Number) -> Expr:
    """A number as a constant.

    Raises:
        CompileError: neither an expression nor a finite number.
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < float("inf"):
        raise CompileError(f"{value!r:.60} is no operand of an expression; give an expression or a finite number")
    return make("const", value=float(value))


def array(name: str, *shape: int) -> Expr:
    """An input of an expression."""
    return make("input", name=name, shape=shape)


def hole(name: str) -> Expr:
    """Any expression, in a template; the same name is the same expression."""
    return make("hole", name=name)


def numeral(name: str) -> Expr:
    """Any constant, in a template."""
    return make("numeral", name=name)


def named(name: str, template: Expr) -> Expr:
    """What ``template`` matches, under a name."""
    return make("named", template, name=name)


def some(op: str, *args: Expr) -> Expr:
    """An operation with any attributes, in a template."""
    return make(op, *args, any=ANY)


def walk(root: Expr) -> Iterator[Expr]:
    """Every node once, operands before what reads them."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        e, ready = stack.pop()
        if e in seen:
            continue
        if ready:
            seen.add(e)
            yield e
            continue
        stack.append((e, True))
        stack.extend((a, False) for a in reversed(e.args))


def inputs(root: Expr) -> tuple[Expr, ...]:
    """The inputs, in the order they are first read.

    Raises:
        CompileError: two inputs of one name.
    """
    found = tuple(e for e in walk(root) if e.op == "input")
    by_name: dict[str, Expr] = {}
    for e in found:
        if by_name.setdefault(e.name, e) is not e:
            raise CompileError(f"input {e.name} is read as {by_name[e.name].shape} and as {e.shape}; name them apart")
    return found

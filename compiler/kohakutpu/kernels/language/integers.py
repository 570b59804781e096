# SPDX-License-Identifier: Apache-2.0
"""Symbolic integers of a trace: extents, knobs the compiler chooses, loop indices (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import NoReturn

from kohakutpu.errors import TraceError
from kohakutpu.ints import cdiv as _cdiv

LAYER = "L4"

_SIGN = {"add": "+", "sub": "-", "mul": "*", "div": "//", "mod": "%"}
_EVAL: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "cdiv": _cdiv,
}


@dataclass(frozen=True, eq=False)
class Int:
    """An integer known when the kernel is called, or an index known when an instance runs.

    Args:
        op: "const", "extent", "knob", "index", or an operator.
        args: a value for "const", a name for the other leaves, operands for operators.
    """

    op: str
    args: tuple[object, ...]

    def __add__(self, other: object) -> Int:
        return _binary("add", self, other)

    def __radd__(self, other: object) -> Int:
        return _binary("add", other, self)

    def __sub__(self, other: object) -> Int:
        return _binary("sub", self, other)

    def __rsub__(self, other: object) -> Int:
        return _binary("sub", other, self)

    def __mul__(self, other: object) -> Int:
        return _binary("mul", self, other)

    def __rmul__(self, other: object) -> Int:
        return _binary("mul", other, self)

    def __floordiv__(self, other: object) -> Int:
        return _binary("div", self, other)

    def __rfloordiv__(self, other: object) -> Int:
        return _binary("div", other, self)

    def __mod__(self, other: object) -> Int:
        return _binary("mod", self, other)

    def __rmod__(self, other: object) -> Int:
        return _binary("mod", other, self)

    def _control(self, what: str, hint: str = "") -> NoReturn:
        kind = {"extent": "an extent", "knob": "a knob the compiler chooses", "index": "an index"}.get(
            self.op, "a value that depends on extents or indices"
        )
        raise TraceError(
            f"{what} on {self.text()}, {kind}: a kernel is traced once for all shapes. {hint}"
            "Branch on a knob with a given value instead, or write two kernels and choose by the operands' shapes"
        )

    def __bool__(self) -> bool:  # noqa: PLE0304 - it refuses
        self._control("control flow")

    def __eq__(self, other: object) -> bool:
        self._control("comparison")

    def __ne__(self, other: object) -> bool:
        self._control("comparison")

    def __lt__(self, other: object) -> bool:
        self._control("comparison")

    def __le__(self, other: object) -> bool:
        self._control("comparison")

    def __gt__(self, other: object) -> bool:
        self._control("comparison")

    def __ge__(self, other: object) -> bool:
        self._control("comparison")

    def __int__(self) -> int:
        self._control("int()")

    def __index__(self) -> int:  # noqa: PLE0305 - it refuses
        self._control("use as a Python integer", f"Repeat with `for k in loop({self.text()})`. ")

    def __iter__(self) -> Iterator[object]:
        raise TraceError(
            f"`for ... in {self.text()}` runs over a count known only when the kernel is called; "
            f"write `for k in loop({self.text()})`, or units(...) or grid(...) for instances"
        )

    def __hash__(self) -> int:
        return hash(self.text())

    def text(self) -> str:
        """Printed form, fully parenthesised below the top."""
        if self.op in ("const", "extent", "knob", "index"):
            return str(self.args[0])
        left, right = (a.text() if isinstance(a, Int) else str(a) for a in self.args)
        if self.op == "cdiv":
            return f"cdiv({left}, {right})"
        return f"({left} {_SIGN[self.op]} {right})"

    def value(self, env: Mapping[str, int]) -> int:
        """The integer, with names looked up in ``env``.

        Raises:
            TraceError: an unresolved name; division by zero.
        """
        if self.op == "const":
            return int(str(self.args[0]))
        if self.op in ("extent", "knob", "index"):
            name = str(self.args[0])
            if name not in env:
                raise TraceError(f"{self.op} {name} is unresolved; it must follow from an operand's shape or be passed")
            return env[name]
        left, right = (a.value(env) if isinstance(a, Int) else int(str(a)) for a in self.args)
        if right == 0 and self.op in ("div", "mod", "cdiv"):
            raise TraceError(f"{self.text()} divides by zero")
        return _EVAL[self.op](left, right)

    def names(self, op: str) -> set[str]:
        """Names of all leaves of kind ``op``."""
        if self.op == op:
            return {str(self.args[0])}
        return set().union(*(a.names(op) for a in self.args if isinstance(a, Int)), set())


def integer(value: object, what: str = "an integer") -> Int:
    """``value`` as a symbolic integer.

    Raises:
        TraceError: neither an integer nor symbolic.
    """
    if isinstance(value, Int):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TraceError(f"{what} is {value!r}; give a whole number, an extent or an index")
    return Int("const", (int(value),))


def _binary(op: str, left: object, right: object) -> Int:
    a, b = integer(left, "an operand"), integer(right, "an operand")
    if a.op == b.op == "const" and not (op in ("div", "mod", "cdiv") and b.args[0] == 0):
        return Int("const", (_EVAL[op](int(str(a.args[0])), int(str(b.args[0]))),))
    if op == "mul" and "1" in (a.text(), b.text()):
        return b if a.text() == "1" else a
    if op in ("div", "cdiv") and b.text() == "1":
        return a
    return Int(op, (a, b))


def cdiv(left: object, right: object) -> Int:
    """Ceiling division of symbolic integers."""
    return _binary("cdiv", left, right)


def covering(extent: Int, step: Int) -> Int:
    """Instances of ``step`` elements that cover ``extent``; unlike :func:`cdiv` it keeps what is covered."""
    return Int("cdiv", (extent, step))


def product(values: tuple[Int, ...]) -> Int:
    """Product of all, 1 if there are none."""
    out = Int("const", (1,))
    for v in values:
        out = out * v
    return out


def same(a: Int, b: Int) -> bool:
    """Written the same way."""
    return a.text() == b.text()


def dims(names: str) -> tuple[Int, ...]:
    """Named extents: ``M, N = dims("M, N")``.

    Raises:
        TraceError: a name that is no identifier, or is listed twice.
    """
    listed = [n.strip() for n in names.split(",")]
    for n in listed:
        if not n.isidentifier():
            raise TraceError(f"dims({names!r}): {n!r} is no name; write dims('M, N')")
    if len(set(listed)) < len(listed):
        raise TraceError(f"dims({names!r}) lists a name twice")
    return tuple(Int("extent", (n,)) for n in listed)

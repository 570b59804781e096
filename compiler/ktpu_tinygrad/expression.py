# SPDX-License-Identifier: Apache-2.0
"""What a kernel stores, as an expression of its loads (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

FOLDS = {"sum": "row_sum", "max": "row_max"}
"""Reductions by name, and the lane operation of each."""


@dataclass(frozen=True)
class Access:
    """Where an element lies: the sum of stride times loop index; strides count elements.

    Args:
        strides: (loop, stride) in order of the loops, none of them 0.
    """

    strides: tuple[tuple[int, int], ...] = ()

    def stride(self, loop: int) -> int:
        """The stride of a loop, 0 if the element does not move with it."""
        return dict(self.strides).get(loop, 0)


@dataclass(frozen=True)
class Expr:
    """An operation on expressions, or a leaf.

    Args:
        op: "load" of a ``slot`` at ``access``, "const" with ``value``, "fold" over ``loops`` of its argument with
            ``name`` of :data:`FOLDS` or "product", "register" for what a register holds when a loop begins
            (``slot`` counts registers, ``loops`` names the loop), "accumulator" for the result of a product, or the
            name of a lane operation.
    """

    op: str
    args: tuple[Expr, ...] = ()
    slot: int = 0
    access: Access = Access()
    value: float = 0.0
    name: str = ""
    loops: tuple[int, ...] = ()

    def nodes(self) -> Iterator[Expr]:
        """This expression and all inside it, each once."""
        seen: set[Expr] = set()

        def walk(node: Expr) -> Iterator[Expr]:
            if node not in seen:
                seen.add(node)
                yield node
                for arg in node.args:
                    yield from walk(arg)

        return walk(self)

    def text(self) -> str:
        """Printed form."""
        if self.op == "const":
            return repr(self.value)
        if self.op == "load":
            return f"x{self.slot}[{' + '.join(f'{s}*i{n}' for n, s in self.access.strides)}]"
        inner = ", ".join(a.text() for a in self.args)
        return f"{self.name or self.op}({inner})"


ACCUMULATOR = Expr("accumulator")


def const(value: float) -> Expr:
    """A number."""
    return Expr("const", value=float(value))


def rewritten(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``change`` applied to every node, arguments first."""
    known: dict[Expr, Expr] = {}

    def walk(node: Expr) -> Expr:
        if node not in known:
            known[node] = change(replace(node, args=tuple(walk(a) for a in node.args)))
        return known[node]

    return walk(expr)

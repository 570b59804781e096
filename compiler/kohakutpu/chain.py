# SPDX-License-Identifier: Apache-2.0
"""What one element of a vector pass computes, as a list of lane operations (docs/spec/compiler.md 9.4).

Every level above the unit program builds a :class:`Chain`; only the unit program knows registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import copysign

LAYER = "leaf"

ARITY = {
    "neg": 1,
    "absolute": 1,
    "exp2": 1,
    "log2": 1,
    "recip": 1,
    "rsqrt": 1,
    "add": 2,
    "sub": 2,
    "mul": 2,
    "maximum": 2,
    "minimum": 2,
    "less": 2,
    "greater": 2,
    "equal": 2,
    "fma": 3,
    "where": 3,
    "row_max": 1,
    "row_sum": 1,
}
"""Operands of every lane operation. ``fma(a, b, c)`` is a*b + c, ``where(p, a, b)`` takes a where p is not 0."""

ROUND = "half"
"""Rounds its operand through FP16, as a store and a load do; only the schedule makes it, where it joins two passes."""

COMPARES = frozenset({"less", "greater", "equal"})
FOLDS = frozenset({"row_max", "row_sum"})


@dataclass(frozen=True)
class Node:
    """An operation on earlier nodes, or a leaf.

    Args:
        op: a key of :data:`ARITY`, :data:`ROUND`, ``operand`` (``index`` counts the operands) or ``const``
            (``value``).
    """

    op: str
    args: tuple[int, ...] = ()
    index: int = 0
    value: float = 0.0


@dataclass(frozen=True)
class Chain:
    """Nodes, each after its arguments, and the nodes that are stored, in order of the results."""

    nodes: tuple[Node, ...]
    results: tuple[int, ...]

    @property
    def operands(self) -> int:
        """Number of distinct operands."""
        return len({n.index for n in self.nodes if n.op == "operand"})

    @property
    def folds(self) -> bool:
        """True if a row is reduced."""
        return any(n.op in FOLDS for n in self.nodes)

    def uses(self) -> Counter[int]:
        """How often each node is read, a store counting as a reading."""
        return Counter([*(a for n in self.nodes for a in n.args), *self.results])

    def text(self) -> str:
        """Printed form, results in order: ``mul(x0, recip(add(exp2(mul(x0, -1.5)), 1.0)))``."""
        shown: list[str] = []
        for n in self.nodes:
            if n.op == "operand":
                shown.append(f"x{n.index}")
            elif n.op == "const":
                shown.append(repr(n.value))
            else:
                shown.append(f"{n.op}({', '.join(shown[a] for a in n.args)})")
        return "; ".join(shown[r] for r in self.results)


@dataclass
class ChainBuilder:
    """Builds a chain; an equal node is built once, so a repeated subexpression is one node."""

    nodes: list[Node] = field(default_factory=list)
    _known: dict[tuple[Node, float], int] = field(default_factory=dict)

    def add(self, node: Node) -> int:
        """Number of ``node``."""
        key = node, copysign(1, node.value)  # 0.0 equals -0.0 and is another constant
        if key not in self._known:
            self._known[key] = len(self.nodes)
            self.nodes.append(node)
        return self._known[key]

    def operand(self, index: int) -> int:
        """Operand number ``index``."""
        return self.add(Node("operand", index=index))

    def const(self, value: float) -> int:
        """A constant."""
        return self.add(Node("const", value=float(value)))

    def op(self, name: str, *args: int) -> int:
        """An operation.

        Raises:
            ValueError: an unknown operation or the wrong number of arguments.
        """
        if {**ARITY, ROUND: 1}.get(name) != len(args):
            raise ValueError(f"{name} with {len(args)} operands; known: {ARITY}")
        return self.add(Node(name, args))

    def chain(self, results: Iterable[int]) -> Chain:
        """The chain of ``results`` without the nodes none of them needs."""
        stored = tuple(results)
        needed = set(stored)
        for i in range(len(self.nodes) - 1, -1, -1):
            if i in needed:
                needed.update(self.nodes[i].args)
        place = {old: new for new, old in enumerate(sorted(needed))}
        kept = tuple(
            Node(n.op, tuple(place[a] for a in n.args), n.index, n.value)
            for i, n in enumerate(self.nodes)
            if i in needed
        )
        return Chain(kept, tuple(place[r] for r in stored))

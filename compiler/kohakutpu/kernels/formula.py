# SPDX-License-Identifier: Apache-2.0
"""Writes lane operations into a graph (docs/spec/compiler.md 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohakutpu.chain import FOLDS
from kohakutpu.graph import Graph, Matrix, Op, Value
from kohakutpu.views import Spread

LAYER = "L4"

Argument = tuple[str, Spread | None]
"""A value, and how it is read; None for all of it."""


@dataclass
class Formula:
    """Adds ops to ``graph``; every intermediate value stays in registers."""

    graph: Graph
    _count: dict[str, int] = field(default_factory=dict)
    _numbers: dict[str, str] = field(default_factory=dict)

    def fresh(self, stem: str) -> str:
        """A name no value of the graph has."""
        while f"{stem}{self._count.get(stem, 0)}" in self.graph.values:
            self._count[stem] = self._count.get(stem, 0) + 1
        return f"{stem}{self._count.get(stem, 0)}"

    def number(self, value: float) -> str:
        """A scalar constant."""
        shown = repr(float(value))  # 0.0 equals -0.0 and is another constant
        if shown not in self._numbers:
            name = self.fresh("k")
            self.graph.value(Value(name, "e8m15", (1, 1), "const", float(value)))
            self._numbers[shown] = name
        return self._numbers[shown]

    def op(self, kind: str, *args: str | float, out: str = "") -> str:
        """Apply a lane operation; numbers become constants, and ``out`` names the buffer that stores the result."""
        names = tuple(a if isinstance(a, str) else self.number(a) for a in args)
        shapes = [self.graph.values[n].shape for n in names]
        rows = max(s[0] for s in shapes)
        columns = 1 if kind in FOLDS else max(s[1] for s in shapes)
        if not out:
            out = self.fresh("t")
            self.graph.value(Value(out, "e8m15", (rows, columns), "temp"))
        self.graph.ops.append(Op(kind, names, out))
        return out

    def read(self, kind: str, args: Sequence[Argument], space: Matrix, out: str = "") -> str:
        """Apply a lane operation to values, each read as it is or through a spread of ``space`` elements."""
        shapes = [space if read else self.graph.values[name].shape for name, read in args]
        inner = max(s[0] for s in shapes), max(s[1] for s in shapes)
        fold, spread = kind in FOLDS, any(read for _, read in args)
        if fold and inner[1] != space[1]:
            inner = space  # the row value is repeated over the row before it is reduced
        if not out:
            out = self.fresh("t")
            self.graph.value(Value(out, "e8m15", (inner[0], 1) if fold else inner, "temp"))
        stated = fold and (spread or inner != shapes[0])
        attrs = (("rows", inner[0]), ("cols", inner[1])) if stated else ()
        reads = tuple(read for _, read in args) if spread else ()
        self.graph.ops.append(Op(kind, tuple(name for name, _ in args), out, attrs, reads))
        return out

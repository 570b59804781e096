# SPDX-License-Identifier: Apache-2.0
"""What the renderer writes and the compiler reads: a lowered kernel as numbered lines (docs/spec/compiler.md 13.2).

The operations keep tinygrad's names in lower case. Sequencing edges are dropped: the order of the lines is the order
of execution, a ``range`` opens a loop and the ``end`` that names it closes it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

Number = int | float | bool


@dataclass(frozen=True)
class Line:
    """One operation on the results of earlier lines.

    Args:
        op: "param" (``value`` is the slot, ``size`` the elements), "var" (``value`` is the slot of a number given at
            the call), "reg" (``size`` elements), "const" (``value``), "range" (``kind`` is "parallel" or "reduce",
            the argument its end), "end" (of its argument), "index", "load" (an index, then what stands in for it and
            the condition), "store" (an index, the value, a condition), "if", "endif", or an operation on values.
        dtype: tinygrad's name of the element type, "" where there is none.
    """

    op: str
    dtype: str = ""
    args: tuple[int, ...] = ()
    value: Number | None = None
    size: int = 0
    kind: str = ""


@dataclass(frozen=True)
class Listing:
    """A lowered kernel.

    Args:
        optimised: what tinygrad's own optimiser did to the loops, "" if it left them alone.
    """

    name: str
    lines: tuple[Line, ...]
    optimised: str = ""

    def text(self) -> str:
        """Printed form, one JSON list a line behind the header."""
        head = json.dumps({"kernel": self.name, "optimised": self.optimised})
        body = [json.dumps([n.op, n.dtype, list(n.args), n.value, n.size, n.kind]) for n in self.lines]
        return "\n".join([head, *body])


def parse(text: str) -> Listing:
    """The listing of a text.

    Raises:
        ValueError: a text :meth:`Listing.text` does not write.
    """
    head, *rows = text.splitlines()
    named = json.loads(head)
    lines = []
    for number, row in enumerate(rows):
        op, dtype, args, value, size, kind = json.loads(row)
        if not all(0 <= a < number for a in args):
            raise ValueError(f"line {number} of {named['kernel']} reads a line that does not come before it: {row}")
        lines.append(Line(op, dtype, tuple(args), value, size, kind))
    return Listing(named["kernel"], tuple(lines), named["optimised"])

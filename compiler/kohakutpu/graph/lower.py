# SPDX-License-Identifier: Apache-2.0
"""Graph to what the schedule level works on: one request an op, in program order."""

from __future__ import annotations

from kohakutpu.graph.ir import Graph, Value, verify
from kohakutpu.schedule import Contraction, Operand, Tiling

LAYER = "L3"


def contractions(graph: Graph) -> tuple[Contraction, ...]:
    """Every contraction of ``graph`` with its operands and the tiling its caller named, if any.

    Raises:
        CompileError: what :func:`~kohakutpu.graph.ir.verify` refuses.
    """
    verify(graph)
    out = []
    for op in graph.ops:
        a, b, c = (_operand(graph.values[n]) for n in (*op.args, op.result))
        knobs = dict(op.attrs)
        named = Tiling(knobs["gm"], knobs["gn"], knobs["nk"]) if knobs else None
        out.append(Contraction(a, b, c, named))
    return tuple(out)


def _operand(value: Value) -> Operand:
    return Operand(value.name, value.role, value.shape)

# SPDX-License-Identifier: Apache-2.0
"""Two matrix products chained on the machine, compiled as one program and put together by hand.

y[M][N] = h w2^T with h[M][HIDDEN] = x w1^T rounded to FP16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import ktpu
from kohakuabi import Artifact, Barrier, Move
from kohakubench.programs import operands, reference, spec
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.kernels import Trace
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.moves import Move as Pass
from kohakutpu.program.moves import encode
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import Flat, MxEntry, Tile, from_key
from kohakutpu.tensor import Call

STAGE = 1 << 39
STAGE_BYTES = 2 << 20
M, K, HIDDEN, N = 48, 96, 64, 40
"""Rows, inputs, hidden and output columns."""

FIRST, SECOND = {"gm": 4, "gn": 4, "nk": 1}, {"gm": 4, "gn": 2, "nk": 2}
"""Tilings of the two products."""


def call(
    m: int = M, k: int = K, hidden: int = HIDDEN, n: int = N, *, first: Any = None, second: Any = None, seed: int = 0
) -> Call:
    """Both layers as one kernel; a tiling of None is chosen by the compiler."""
    x, w1 = operands(m, hidden, k, seed)
    _, w2 = operands(m, n, hidden, seed + 1)
    graph = Graph()
    for name, shape, role in (("x", (m, k), "in"), ("w1", (hidden, k), "in"), ("h", (m, hidden), "temp")):
        graph.value(Value(name, "fp16", shape, role))  # type: ignore[arg-type]
    for name, shape, role in (("w2", (n, hidden), "in"), ("y", (m, n), "out")):
        graph.value(Value(name, "fp16", shape, role))  # type: ignore[arg-type]
    graph.ops.append(Op("contract", ("x", "w1"), "h", tuple(sorted((first or {}).items()))))
    graph.ops.append(Op("contract", ("h", "w2"), "y", tuple(sorted((second or {}).items()))))
    halves = {name: a.astype(np.float16) for name, a in (("x", x), ("w1", w1), ("w2", w2))}
    return Call(Trace("mlp", graph, {"M": m, "K": k, "H": hidden, "N": n}), halves)


def expected(mlp: Call) -> npt.NDArray[np.uint16]:
    """Both layers by the reference arithmetic on whole matrices."""
    hidden = reference(mlp.values["x"], mlp.values["w1"])
    return reference(hidden.view(np.float16), mlp.values["w2"])


# ------------------------------------------------------------------ two programs put together by hand


def layers(text: dict[str, Any], second_at: int, *, emit_fuse: bool = True) -> tuple[ktpu.Compiled, ktpu.Compiled]:
    """Both products as programs of their own; the buffers of the second start at DRAM address ``second_at``."""
    mlp, machine = call(), spec(text)
    apart: dict[str, Any] = {"stage_operands": False}
    first = ktpu.matmul(mlp.operands["x"], mlp.operands["w1"], **FIRST)
    second = ktpu.matmul(np.zeros((M, HIDDEN)), mlp.operands["w2"], **SECOND)
    behind = machine.with_(arena_base=second_at)
    return ktpu.compile(first, machine, emit_fuse=emit_fuse, **apart), ktpu.compile(second, behind, **apart)


def requantise(
    first: ktpu.Compiled, second: ktpu.Compiled, rows_at: int, machine: MachineSpec, form: str = "granule"
) -> list[Pass]:
    """Moves from the result of ``first`` to operand ``a`` of ``second``, with its rows at address ``rows_at``.

    form: "granule" if the result is in tiles, "rows" if the drains left rows at ``rows_at`` already.

    Raises:
        kohakutpu.errors.CompileError: orders no move converts between.
    """
    (out,) = first.artifact.outputs
    operand = second.schedule.buffers["a"]
    order, target = from_key(out.layout), from_key(operand.layout)
    assert isinstance(order, Tile)
    assert isinstance(target, MxEntry)
    padded = 4 * order.gi * order.gm, 4 * order.gj * order.gn
    rows = Placed(Flat(), rows_at, padded)
    moves: list[Pass] = []
    if form == "granule":
        moves += conversion(Placed(order, out.address, padded), rows, machine)
    return [*moves, *conversion(rows, Placed(target, operand.address, padded), machine)]


def chained(first: Artifact, second: Artifact, moves: Sequence[Pass]) -> Artifact:
    """``first``, one round of moves, ``second``; only the weights of ``second`` come from the host."""
    between = [Move(encode(move)) for move in moves]
    return replace(
        first,
        payloads=(*first.payloads, *second.payloads),
        steps=(*first.steps, *between, Barrier(), *second.steps),
        images=(*first.images, *(i for i in second.images if i.name != "a")),
        outputs=second.outputs,
        meta={"kernel": "mlp"},
    )

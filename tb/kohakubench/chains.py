# SPDX-License-Identifier: Apache-2.0
"""Chains of lane operations evaluated on whole arrays, bit for bit, without registers, steps or addresses."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import ARITY, COMPARES, FOLDS, ROUND, Chain, ChainBuilder
from kohakutpu.dtypes import e8m15_bits
from kohakutpu.isa.generated import Reduction, VectorOp
from kohakutpu.model.numerics import e8m15_to_fp16, fp16_to_e8m15, lane, reduce_elements
from ktpu.numerics_reference import LANE_OPS

U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]

_ADDITIVE = (VectorOp.VADD, VectorOp.VSUB)
_FOLDS = {"row_max": Reduction.MAX, "row_sum": Reduction.SUM}
_ZERO = np.uint32(0)


def evaluate(chain: Chain, operands: Sequence[U16], shape: tuple[int, int]) -> list[U16]:
    """FP16 bits of every result of shape [M][N]; operands have it too, or are [1][N]."""
    values: list[U32] = []
    for n in chain.nodes:
        args = [values[a] for a in n.args]
        if n.op == "operand":
            values.append(np.broadcast_to(fp16_to_e8m15(operands[n.index]), shape))
        elif n.op == "const":
            values.append(np.full(shape, e8m15_bits(n.value), np.uint32))
        elif n.op in FOLDS:
            rows = [reduce_elements(_FOLDS[n.op], row)[0] for row in args[0]]
            values.append(np.broadcast_to(np.array(rows, np.uint32)[:, None], shape))
        elif n.op == ROUND:
            values.append(fp16_to_e8m15(e8m15_to_fp16(args[0])))
        elif n.op == "where":
            values.append(_where(chain, n.args[0], args))
        else:
            op = LANE_OPS[n.op]
            a, b, c = (args + [np.full(shape, _ZERO)] * 3)[:3]
            values.append(lane(op, a, a, b) if op in _ADDITIVE else lane(op, a, b, c))
    return [e8m15_to_fp16(values[r]) for r in chain.results]


def _where(chain: Chain, decider: int, args: list[U32]) -> U32:
    p, a, b = args
    if chain.nodes[decider].op in COMPARES:
        chosen = np.where(p != 0, a, b)
        return lane(VectorOp.VMOV, chosen, chosen, chosen)
    return lane(VectorOp.VSEL, a, b, p)


def random_chain(rng: random.Random, operands: int, length: int, *, folds: bool = False) -> Chain:
    """``length`` random operations on ``operands`` operands, all read; values stay where nothing saturates."""
    b = ChainBuilder()
    pool = [b.operand(i) for i in range(operands)]
    unread = list(pool)
    ops = [k for k in ARITY if k not in COMPARES and k != "where" and (folds or k not in FOLDS)]
    made = pool[0]
    for _ in range(length):
        kind = rng.choice([*ops, "where", "choose"])

        def pick() -> int:
            if unread and rng.random() < 0.7:
                return unread.pop()
            return (
                b.const(rng.choice([0.0, 1.0, -1.0, 0.5, rng.uniform(-2, 2)]))
                if rng.random() < 0.2
                else rng.choice(pool)
            )

        if kind == "choose":
            made = b.op("where", b.op(rng.choice(sorted(COMPARES)), pick(), pick()), pick(), pick())
        elif kind in FOLDS:
            made = b.op(kind, rng.choice(pool))
        else:
            made = b.op(kind, *(pick() for _ in range(ARITY[kind])))
        pool.append(made)
        if rng.random() < 0.5:
            unread.append(made)
    for x in unread:
        if x != made:
            made = b.op("add", made, x)
    whole = b.chain([made])
    used = sorted({n.index for n in whole.nodes if n.op == "operand"})
    return whole if used == list(range(operands)) else random_chain(rng, operands, length, folds=folds)

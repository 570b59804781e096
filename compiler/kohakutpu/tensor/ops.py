# SPDX-License-Identifier: Apache-2.0
"""Operators on float arrays; each is one kernel call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu import kernels
from kohakutpu.errors import CompileError

LAYER = "L5"

F16 = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Call:
    """A kernel and its operands by name, rounded to FP16 (round to nearest even)."""

    trace: kernels.Trace
    operands: dict[str, F16]


FP16_MAX = float(np.finfo(np.float16).max)


def _half(name: str, array: npt.ArrayLike) -> F16:
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise CompileError(f"{name} is {values.dtype}; an operand holds real numbers")
    if values.ndim != 2:
        raise CompileError(f"{name} has {values.ndim} axes; a matrix product takes two-dimensional operands")
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    beyond = int(np.count_nonzero(~np.isfinite(half)))
    if beyond:
        raise CompileError(
            f"{name} holds {beyond} values beyond {FP16_MAX:.0f} or not a number; scale it first"
        )
    return half


def matmul(a: npt.ArrayLike, b: npt.ArrayLike, **tiling: int) -> Call:
    """C = A @ B.T, contracting the last axis of both.

    Args:
        a: [M][K]; b: [N][K]; real numbers, rounded to FP16.
        tiling: gm, gn, nk to fix the tiling by hand.

    Raises:
        CompileError: operands that are not matrices of finite FP16 values, or disagree in K.
    """
    x, y = _half("a", a), _half("b", b)
    if x.shape[1] != y.shape[1]:
        raise CompileError(f"a is {x.shape}, b is {y.shape}; both contract their last axis, so K must agree")
    trace = kernels.matmul(x.shape[0], y.shape[0], x.shape[1], **tiling)
    return Call(trace, {"a": x, "b": y})


def linear(x: npt.ArrayLike, weight: npt.ArrayLike, **tiling: int) -> Call:
    """x [rows][in] times weight [out][in] transposed, as a Linear layer stores it."""
    return matmul(x, weight, **tiling)

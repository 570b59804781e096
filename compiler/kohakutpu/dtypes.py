# SPDX-License-Identifier: Apache-2.0
"""Number formats as values, and what is proven about conversions between them (docs/spec/compiler.md 2).

A pass asks these predicates before it removes a pair of conversions or places a value in memory. The arithmetic
of the units is in :mod:`kohakutpu.model.numerics`; :meth:`Dtype.round` is the rounding the reference interpreter
applies to exact results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError

LAYER = "leaf"

F64 = npt.NDArray[np.float64]
Overflow = Literal["inf", "saturate"]


@dataclass(frozen=True)
class Dtype:
    """A number format.

    Args:
        bits: stored width of one element.
        exp_bits, man_bits, bias: exponent width, fraction width, exponent bias; an integer format has 0, its
            magnitude bits, 0.
        has_subnormals: exponent 0 holds values below the smallest normal.
        has_inf: the topmost exponent is infinity and NaN; otherwise it is an ordinary binade.
        overflow: what a finite value beyond the largest one becomes.
        block: elements that share one scale (1 if none).
        memory: a buffer in DRAM or staging may hold it.
        engine: unit type that computes in it, "" if none does.
    """

    name: str
    bits: int
    exp_bits: int
    man_bits: int
    bias: int
    has_subnormals: bool
    has_inf: bool
    overflow: Overflow
    block: int = 1
    memory: bool = True
    engine: str = ""

    def _float(self) -> None:
        if self.exp_bits == 0 or self.block > 1:
            raise CompileError(f"{self.name} is no plain float; ranges compare fp32, fp16, e8m15 and acc(MW)")

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory.

        Raises:
            CompileError: a format that memory does not hold.
        """
        if not self.memory:
            raise CompileError(f"{self.name} exists only inside a unit; a buffer holds fp16 or fp32 instead")
        return self.bits // 8

    @property
    def max_fin(self) -> float:
        """Largest finite value; exact, for every format here fits float64.

        Raises:
            CompileError: a format that is no plain float.
        """
        self._float()
        top = (1 << self.exp_bits) - 1 - int(self.has_inf)
        return math.ldexp((1 << (self.man_bits + 1)) - 1, top - self.bias - self.man_bits)

    @property
    def min_pos(self) -> float:
        """Smallest positive value, exact; a subnormal if there are any.

        Raises:
            CompileError: a format that is no plain float.
        """
        self._float()
        return math.ldexp(1.0, 1 - self.bias - (self.man_bits if self.has_subnormals else 0))

    def contains_range_of(self, other: Dtype) -> bool:
        """No finite ``other`` overflows, and no nonzero one lies below what this format holds."""
        return self.max_fin >= other.max_fin and self.min_pos <= other.min_pos

    def is_exact_from(self, other: Dtype) -> bool:
        """Every finite ``other`` is a value of this format.

        A format without subnormals holds those of ``other`` as normals, which the range condition covers.
        """
        return self.contains_range_of(other) and self.man_bits >= other.man_bits

    def round(self, values: npt.ArrayLike) -> F64:
        """float64, the shape of ``values``: to nearest, ties to even, below the smallest value to a signed zero.

        Infinities and NaN stay as they are.
        """
        limit = self.max_fin if self.overflow == "saturate" else math.inf
        v = np.asarray(values, dtype=np.float64)
        finite = np.isfinite(v)
        mantissa, exponent = np.frexp(np.where(finite, v, 0.0))
        low = exponent - self.man_bits - 1
        if self.has_subnormals:
            low = np.maximum(low, 1 - self.bias - self.man_bits)
        out = np.ldexp(np.rint(np.ldexp(mantissa, exponent - low)), low)
        out = np.where(np.abs(out) < self.min_pos, np.copysign(0.0, v), out)
        out = np.where(np.abs(out) > self.max_fin, np.copysign(limit, v), out)
        return np.where(finite, out, v)


FP32 = Dtype("fp32", 32, 8, 23, 127, True, True, "inf")
FP16 = Dtype("fp16", 16, 5, 10, 15, True, True, "saturate")
E8M15 = Dtype("e8m15", 24, 8, 15, 127, False, True, "inf", memory=False, engine="VC")
MXFP7 = Dtype("mxfp7", 8, 5, 6, 20, False, False, "saturate", block=32, engine="MG")
INT8 = Dtype("int8", 8, 0, 7, 0, False, False, "saturate")
INT16 = Dtype("int16", 16, 0, 15, 0, False, False, "saturate")
INT32 = Dtype("int32", 32, 0, 31, 0, False, False, "saturate")


def accumulator(man_bits: int = 14) -> Dtype:
    """ACC(mw), the resident tile of a cluster built with that many fraction bits.

    Raises:
        CompileError: a width that no cluster is built with (docs/spec/numerics.md 2).
    """
    if not 9 <= man_bits <= 24:
        raise CompileError(f"acc({man_bits}): the fraction of a resident tile has 9..24 bits")
    name = f"acc({man_bits})"
    return Dtype(name, man_bits + 8, 7, man_bits, 63, False, False, "saturate", memory=False, engine="MG")


BY_NAME = {d.name: d for d in (FP32, FP16, E8M15, MXFP7, INT8, INT16, INT32)}


def of(name: str) -> Dtype:
    """The format called ``name``; "acc(14)" and its like included.

    Raises:
        CompileError: an unknown name.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    if name.startswith("acc(") and name.endswith(")") and name[4:-1].isdigit():
        return accumulator(int(name[4:-1]))
    raise CompileError(f"dtype {name!r} is unknown; known: {', '.join(BY_NAME)}, acc(MW)")


def e8m15_bits(value: float) -> int:
    """The 24-bit code nearest to ``value``, ties to even.

    Raises:
        ValueError: not a number.
    """
    if math.isnan(value):
        raise ValueError("a constant is not a number")
    rounded = float(E8M15.round(value))
    sign = int(math.copysign(1, rounded) < 0) << 23
    if math.isinf(rounded):
        return sign | 0xFF << 15
    if rounded == 0:
        return sign
    mantissa, exponent = math.frexp(abs(rounded))
    return sign | (exponent + E8M15.bias - 1) << 15 | int(mantissa * (1 << 16)) - (1 << 15)


@dataclass(frozen=True)
class RangeNote:
    """A store or drain to FP16 of a value whose magnitude may exceed 65,504.

    Args:
        value: name of the buffer.
        bound: proven limit of the magnitude, None if nothing is known.
    """

    value: str
    bound: float | None = None

    @property
    def proven(self) -> bool:
        """The value cannot saturate."""
        return self.bound is not None and self.bound <= FP16.max_fin

    def text(self) -> str:
        """One line of the compile report."""
        limit = f"{FP16.max_fin:.0f}"
        if self.bound is None:
            return f"{self.value}: bound unknown, saturates at {limit}"
        if self.proven:
            return f"{self.value}: at most {self.bound:g}, never saturates"
        return f"{self.value}: up to {self.bound:g}, saturates at {limit}"

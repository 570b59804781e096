# SPDX-License-Identifier: Apache-2.0
"""Number formats as values, and what is proven about conversions between them (docs/spec/compiler.md 2).

Nothing here converts a number: the arithmetic is in :mod:`kohakutpu.model.numerics`. A pass asks these
predicates before it removes a pair of conversions or places a value in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from kohakutpu.errors import CompileError

LAYER = "leaf"

Overflow = Literal["inf", "saturate"]


@dataclass(frozen=True)
class DType:
    """A number format.

    Args:
        bits: stored width of one element.
        exp_bits, man_bits, bias: exponent width, fraction width, exponent bias; an integer format has 0, its
            magnitude bits, 0.
        has_subnormals: exponent 0 holds values below the smallest normal.
        has_inf: the topmost exponent is infinity and NaN; otherwise it is an ordinary binade.
        overflow: what a conversion into the format gives beyond its largest finite value.
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

    @property
    def is_float(self) -> bool:
        """A sign, exponent and fraction format without a block scale."""
        return self.exp_bits > 0 and self.block == 1

    @property
    def nbytes(self) -> int:
        """Bytes of one element in memory.

        Raises:
            CompileError: a format that memory does not hold.
        """
        if not self.memory:
            raise CompileError(f"{self.name} exists only inside a unit; a buffer holds fp16 or fp32 instead")
        return self.bits // 8


FP32 = DType("fp32", 32, 8, 23, 127, True, True, "inf")
FP16 = DType("fp16", 16, 5, 10, 15, True, True, "saturate")
E8M15 = DType("e8m15", 24, 8, 15, 127, False, True, "inf", memory=False, engine="VC")
MXFP7 = DType("mxfp7", 8, 5, 6, 20, False, False, "saturate", block=32, engine="MG")
INT8 = DType("int8", 8, 0, 7, 0, False, False, "saturate")
INT16 = DType("int16", 16, 0, 15, 0, False, False, "saturate")
INT32 = DType("int32", 32, 0, 31, 0, False, False, "saturate")


def acc(mw: int = 14) -> DType:
    """ACC(mw), the resident tile of a cluster built with ACC_MW = ``mw``.

    Raises:
        CompileError: a fraction width that no cluster is built with (docs/spec/numerics.md 2).
    """
    if not 9 <= mw <= 24:
        raise CompileError(f"ACC({mw}): the fraction of a resident tile has 9..24 bits")
    return DType(f"acc({mw})", mw + 8, 7, mw, 63, False, False, "saturate", memory=False, engine="MG")


BY_NAME = {d.name: d for d in (FP32, FP16, E8M15, MXFP7, INT8, INT16, INT32)}


def of(name: str) -> DType:
    """The format called ``name``; "acc(14)" and its like included.

    Raises:
        CompileError: an unknown name.
    """
    if name in BY_NAME:
        return BY_NAME[name]
    if name.startswith("acc(") and name.endswith(")") and name[4:-1].isdigit():
        return acc(int(name[4:-1]))
    raise CompileError(f"dtype {name!r} is unknown; known: {', '.join(BY_NAME)}, acc(MW)")


def _float(d: DType) -> None:
    if not d.is_float:
        raise CompileError(f"{d.name} is no plain float; ranges compare fp32, fp16, e8m15 and acc(MW)")


def max_fin(d: DType) -> Fraction:
    """Largest finite value, exact.

    Raises:
        CompileError: a format that is no plain float.
    """
    _float(d)
    top = (1 << d.exp_bits) - 1 - (1 if d.has_inf else 0)
    return (2 - Fraction(1, 1 << d.man_bits)) * Fraction(2) ** (top - d.bias)


def min_pos(d: DType) -> Fraction:
    """Smallest positive value, exact; a subnormal if the format has them.

    Raises:
        CompileError: a format that is no plain float.
    """
    _float(d)
    smallest_normal = Fraction(2) ** (1 - d.bias)
    return smallest_normal / (1 << d.man_bits) if d.has_subnormals else smallest_normal


def contains_range_of(a: DType, b: DType) -> bool:
    """No finite ``b`` overflows ``a`` and no nonzero ``b`` lies below what ``a`` can hold."""
    return max_fin(a) >= max_fin(b) and min_pos(a) <= min_pos(b)


def is_exact_from(a: DType, b: DType) -> bool:
    """Every finite ``b`` is an ``a``.

    ``a`` without subnormals holds the subnormals of ``b`` as normals, which the range condition covers.
    """
    return contains_range_of(a, b) and a.man_bits >= b.man_bits


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
        return self.bound is not None and self.bound <= float(max_fin(FP16))

    def text(self) -> str:
        """One line of the compile report."""
        limit = f"{float(max_fin(FP16)):.0f}"
        if self.bound is None:
            return f"{self.value}: bound unknown, saturates at {limit}"
        if self.proven:
            return f"{self.value}: at most {self.bound:g}, never saturates"
        return f"{self.value}: up to {self.bound:g}, saturates at {limit}"

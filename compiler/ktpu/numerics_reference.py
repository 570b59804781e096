# SPDX-License-Identifier: Apache-2.0
"""What a kernel should give: in float64, in float64 behind the quantiser, in the machine's own arithmetic.

The references of docs/spec/compiler.md 14.3 and the reference arithmetic of docs/spec/numerics.md 6 to 11 applied to
a whole graph, without tiles, registers or addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import FOLDS
from kohakutpu.dtypes import FP16, e8m15_bits
from kohakutpu.graph import Graph, Value
from kohakutpu.graph.interpret import MEANING
from kohakutpu.isa.generated import VectorOp
from kohakutpu.model.numerics import (
    ACC_MW_DEFAULT,
    dequantise,
    e8m15_to_fp16,
    e8m15_to_fp32,
    fp16_to_e8m15,
    lane,
    operand_entries,
    product,
)
from ktpu.numerics_graph import Array, evaluate, outputs

F16 = npt.NDArray[np.float16]
F64 = npt.NDArray[np.float64]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]

LANES, BLOCK = 4, 32


def quantised(matrix: F64) -> F64:
    """The values [R][K] a cluster sees of a matrix stored in FP16: MXFP7 along K, dequantised exactly.

    Values beyond FP16 saturate at its largest, as a store does.
    """
    rows, k = matrix.shape
    padded = np.pad(FP16.round(matrix), ((0, -rows % LANES), (0, -k % BLOCK)))
    codes = padded.astype(np.float16).view(np.uint16)
    values = dequantise(*operand_entries(codes))
    flat = values.transpose(0, 2, 1, 3).reshape(padded.shape)
    return np.asarray(flat[:rows, :k], dtype=np.float64)


@dataclass(frozen=True)
class Real:
    """Float64 without rounding; ``mx`` passes the operands of a contraction through the quantiser."""

    mx: bool = False

    def load(self, array: F16) -> Array:
        """The operand's exact values."""
        return array.astype(np.float64)

    def number(self, value: float, dtype: str) -> Array:
        """The number as written."""
        return np.full((1, 1), value)

    def contract(self, a: Array, b: Array) -> Array:
        """a b^T."""
        x, y = (quantised(a), quantised(b)) if self.mx else (a, b)
        return np.asarray(x @ y.T)

    def lane(self, kind: str, args: list[Array]) -> Array:
        """The operation in float64."""
        return MEANING[kind](*args)

    def store(self, made: Array, value: Value, *, product: bool) -> Array:
        """Nothing is rounded."""
        return made


LANE_OPS = {
    "neg": VectorOp.VNEG,
    "absolute": VectorOp.VABS,
    "exp2": VectorOp.VEXP2,
    "log2": VectorOp.VLOG2,
    "recip": VectorOp.VINV,
    "rsqrt": VectorOp.VRSQRT,
    "add": VectorOp.VADD,
    "sub": VectorOp.VSUB,
    "mul": VectorOp.VMUL,
    "maximum": VectorOp.VMAX,
    "minimum": VectorOp.VMIN,
    "less": VectorOp.VCMPLT,
    "greater": VectorOp.VCMPGT,
    "equal": VectorOp.VCMPEQ,
    "fma": VectorOp.VFMA,
}
"""The instruction of every lane operation that is one."""
_MINUS_INF = np.uint32(0xFF8000)
_ZERO = np.uint32(0)


def _accumulated(codes: U32) -> F64:
    """Magnitudes of ACC codes (docs/spec/numerics.md 5.1)."""
    exponent = (codes >> ACC_MW_DEFAULT & 0x7F).astype(np.int32)
    fraction = (codes & (1 << ACC_MW_DEFAULT) - 1).astype(np.float64)
    return np.where(exponent > 0, np.ldexp(1 + fraction / (1 << ACC_MW_DEFAULT), exponent - 63), 0.0)


def _pair(kind: str, a: U32, b: U32) -> U32:
    """A node of a reduction."""
    return lane(VectorOp.VADD, a, a, b) if kind == "row_sum" else lane(VectorOp.VMAX, a, b, b)


def _fold(kind: str, rows: U32) -> U32:
    """Reduction of rows [R][N] in the order of docs/spec/numerics.md 11, all rows at once."""
    identity = _ZERO if kind == "row_sum" else _MINUS_INF
    beats = rows.reshape(rows.shape[0], -1, 16)
    while beats.shape[-1] > 1:
        beats = _pair(kind, beats[..., 0::2], beats[..., 1::2])
    held = np.full((rows.shape[0], 16), identity, np.uint32)
    used = beats.shape[1]
    held[:, :used] = _pair(kind, beats[..., 0], held[:, :used])
    while held.shape[-1] > 1:
        held = _pair(kind, held[..., 0::2], held[..., 1::2])
    return held


@dataclass(frozen=True)
class Saturated:
    """Elements of the value ``name`` that a store or drain clamped to 65,504, and the first of them."""

    name: str
    count: int
    first: tuple[int, int]


def _beyond(magnitude: F64) -> npt.NDArray[np.bool_]:
    """Finite magnitudes that round to more than FP16 holds (docs/spec/numerics.md 13)."""
    return (magnitude >= FP16.max_fin + 16) & np.isfinite(magnitude)


def _first(where: npt.NDArray[np.bool_]) -> tuple[int, int]:
    row, column = np.argwhere(where)[0]
    return int(row), int(column)


@dataclass
class Codes:
    """The machine's arithmetic, bit for bit; every value is held as E8M15 codes, which hold every FP16 value.

    ``saturated`` collects what was clamped, values that never leave the machine included.
    """

    saturated: list[Saturated] = field(default_factory=list)
    _emitted: list[npt.NDArray[np.bool_]] = field(default_factory=list)

    def load(self, array: F16) -> Array:
        """E8M15 codes of FP16 values."""
        return fp16_to_e8m15(array.view(np.uint16))

    def number(self, value: float, dtype: str) -> Array:
        """The nearest code."""
        return np.full((1, 1), e8m15_bits(value), np.uint32)

    def contract(self, a: Array, b: Array) -> Array:
        """FP16 values as a cluster emits them, K ascending."""
        x, y = (np.pad(e8m15_to_fp16(v), ((0, -v.shape[0] % LANES), (0, -v.shape[1] % BLOCK))) for v in (a, b))
        held, bits = product(x, y)
        inside = slice(a.shape[0]), slice(b.shape[0])
        self._emitted.append(_beyond(_accumulated(held[inside])))
        return fp16_to_e8m15(bits[inside])

    def lane(self, kind: str, args: list[Array]) -> Array:
        """One rounding an operation; a fold in its fixed order."""
        if kind in FOLDS:
            return _fold(kind, args[0])
        parts: list[U32] = list(np.broadcast_arrays(*args))
        if kind == "where":
            p, a, b = parts
            return lane(VectorOp.VSEL, a, b, p)
        zero = np.zeros_like(parts[0])
        a, b, c = (parts + [zero] * 3)[:3]
        op = LANE_OPS[kind]
        return lane(op, a, a, b) if kind in ("add", "sub") else lane(op, a, b, c)

    def store(self, made: Array, value: Value, *, product: bool) -> Array:
        """FP16 saturates; E8M15 is what the lanes hold already."""
        if value.dtype != "fp16":
            return made
        if not product:
            beyond = _beyond(np.abs(e8m15_to_fp32(made).view(np.float32).astype(np.float64)))
        else:
            beyond, self._emitted = np.concatenate(self._emitted), []
        if beyond.any():
            self.saturated.append(Saturated(value.name, int(beyond.sum()), _first(beyond)))
        return fp16_to_e8m15(e8m15_to_fp16(made))


def real(graph: Graph, operands: Mapping[str, F16], *, mx: bool = False) -> dict[str, F64]:
    """Outputs in float64 as written, from the FP16 operands; ``mx``: with every contraction's operands quantised."""
    return outputs(graph, evaluate(graph, operands, Real(mx)))


def machine(graph: Graph, operands: Mapping[str, F16]) -> tuple[dict[str, U16], list[Saturated]]:
    """FP16 bits of every output by the reference arithmetic on whole arrays, and everything that saturated.

    Only for contractions in one piece: a split of K rounds partial sums elsewhere.
    """
    codes = Codes()
    env = outputs(graph, evaluate(graph, operands, codes))
    return {name: e8m15_to_fp16(v) for name, v in env.items()}, codes.saturated


def exact_bits(graph: Graph, operands: Mapping[str, F16]) -> dict[str, U16]:
    """FP16 bits of every output, see :func:`machine`."""
    return machine(graph, operands)[0]

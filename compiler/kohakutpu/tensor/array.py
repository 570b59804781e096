# SPDX-License-Identifier: Apache-2.0
"""Arrays on a device with operators, one kernel each (docs/spec/compiler.md 13.1)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.kernels.library.chain import Step
from kohakutpu.tensor import ops
from kohakutpu.tensor.operand import ANY_RANK, Array, Call, DeviceArray, Memory, Shape, matrix, to_half

LAYER = "L5"


class Runner(Memory, Protocol):
    """A device that runs calls on its arrays."""

    def execute(self, call: Call, **options: int | str | bool | None) -> dict[str, Tensor]:
        """Run a call; its results by name, with the shapes the call states."""


class Tensor(DeviceArray):
    """An array of float16 on a device.

    Operators run one kernel each and leave their result on the device. An operand that is no tensor is rounded to
    FP16 and goes to the device for this call only; make a tensor of what is used again.

    Raises:
        CompileError: operands whose extents do not fit, that live on different devices, or that were made before
            the device was reset.
    """

    device: Runner

    def __init__(self, device: Runner, contents: object, shape: Shape) -> None:
        super().__init__(device, contents, shape)

    # ------------------------------------------------------------------ products

    def __matmul__(self, other: Array) -> Tensor:
        """Contract the last axis of both: [..., M, K] with [N, K], or block by block with [..., N, K]."""
        right = to_half("right operand", other, ANY_RANK[1:])
        if right.ndim == 2:
            return self.linear(right)
        return self._run(ops.matmul_batched(self, right), (*self.shape[:-1], right.shape[-2]))

    def __rmatmul__(self, other: npt.ArrayLike) -> Tensor:
        left = to_half("left operand", other, ANY_RANK)
        rows = left.reshape(matrix(left.shape))
        return self._run(ops.matmul(rows, self._matrix("right operand")), (*left.shape[:-1], self.shape[0]))

    def linear(
        self,
        weight: Array,
        bias: Array | None = None,
        *,
        add: Array | None = None,
        activation: str = "",
        scale: float | None = None,
        **tiling: int,
    ) -> Tensor:
        """activation(scale * self weight^T + bias + add), the weight as a Linear layer stores it, [out][in].

        Args:
            bias: one value a column; add: the shape of the result.
            activation: "silu", "gelu", "gelu_sigmoid", "relu", "exp" or "".
        """
        w = to_half("weight", weight, (2,))
        shape = (*self.shape[:-1], w.shape[0])
        if add is not None:
            residual = to_half("add", add, ANY_RANK)
            if residual.shape != shape:
                raise CompileError(f"add is {residual.shape}, the product is {shape}")
            add = residual.reshape(matrix(shape))
        call = ops.linear(self._rows(), w, bias=bias, add=add, activation=activation, scale=scale, **tiling)
        return self._run(call, shape)

    # ------------------------------------------------------------------ element by element

    def __add__(self, other: Array) -> Tensor:
        return self._with("add", other)

    def __radd__(self, other: npt.ArrayLike) -> Tensor:
        return self._with("add", other, swapped=True)

    def __sub__(self, other: Array) -> Tensor:
        return self._with("sub", other)

    def __rsub__(self, other: npt.ArrayLike) -> Tensor:
        return self._with("sub", other, swapped=True)

    def __mul__(self, other: Array) -> Tensor:
        return self._with("mul", other)

    def __rmul__(self, other: npt.ArrayLike) -> Tensor:
        return self._with("mul", other, swapped=True)

    def __truediv__(self, other: Array) -> Tensor:
        """Times the reciprocal, as the vector core divides."""
        number = _number(other)
        if number is None:
            return self._with("div", other)
        if number == 0:
            raise CompileError("division by the number 0")
        return self._with("mul", 1.0 / number)

    def __rtruediv__(self, other: npt.ArrayLike) -> Tensor:
        return self._with("div", other, swapped=True)

    def __neg__(self) -> Tensor:
        return self._run(ops.elementwise({"x": self._rows()}, [("neg", ("x",))], "neg"), self.shape)

    def relu(self) -> Tensor:
        """max(x, 0)."""
        return self._run(ops.relu(self._rows()), self.shape)

    def silu(self) -> Tensor:
        """x * sigmoid(x)."""
        return self._run(ops.silu(self._rows()), self.shape)

    def gelu(self) -> Tensor:
        """The tanh form of GELU."""
        return self._run(ops.gelu(self._rows()), self.shape)

    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x))."""
        return self._run(ops.sigmoid(self._rows()), self.shape)

    def exp(self) -> Tensor:
        """e^x."""
        return self._run(ops.exp(self._rows()), self.shape)

    # ------------------------------------------------------------------ rows

    def softmax(self, mask: Array | None = None) -> Tensor:
        """Softmax along the last axis; ``mask`` is one row of 0 and 1."""
        return self._run(ops.softmax(self._rows(), mask), self.shape)

    def layernorm(self, weight: Array, bias: Array, *, eps: float = 1e-5) -> Tensor:
        """Normalised along the last axis, times weight plus bias."""
        return self._run(ops.layernorm(self._rows(), weight, bias, eps=eps), self.shape)

    def rmsnorm(self, weight: Array, *, eps: float = 1e-5) -> Tensor:
        """Divided by the root mean square of the last axis, times weight."""
        return self._run(ops.rmsnorm(self._rows(), weight, eps=eps), self.shape)

    # ------------------------------------------------------------------ helpers

    def _rows(self) -> Tensor:
        return self.reshape(matrix(self.shape))

    def _matrix(self, name: str) -> Tensor:
        if self.ndim != 2:
            raise CompileError(f"{name} is {self.shape}; a product reads it as [N][K], reshape it")
        return self

    def _run(self, call: Call, shape: Shape) -> Tensor:
        (result,) = self.device.execute(call).values()
        return result.reshape(shape)

    def _with(self, op: str, other: Array, *, swapped: bool = False) -> Tensor:
        """One operation of this array and a number, an array of its shape, or one row every row reads."""
        number = _number(other)
        if number is not None:
            args: tuple[float | str, ...] = (number, "a") if swapped else ("a", number)
            steps: Sequence[Step] = [(op, args)]
            return self._run(ops.elementwise({"a": self._rows()}, steps, op), self.shape)
        b = to_half("operand", other, ANY_RANK)
        mine, theirs = matrix(self.shape), matrix(b.shape)
        one_row = theirs == (1, mine[1]) or mine == (1, theirs[1])
        if self.shape != b.shape and not one_row:
            raise CompileError(
                f"{op} of {self.shape} and {b.shape}; both have one shape, or one of them is a row of the other"
            )
        operands: dict[str, Array] = {"a": self._rows(), "b": b.reshape(theirs)}
        order = ("b", "a") if swapped else ("a", "b")
        call = ops.elementwise(operands, [(op, order)], op)
        return self._run(call, self.shape if mine[0] >= theirs[0] else b.shape)


def _number(value: object) -> float | None:
    """``value`` as a Python number, None if it is an array."""
    if not (isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0)):
        return None
    number = float(value)
    if not np.isfinite(number):
        raise CompileError(f"{number} is no number an operation can take")
    return number

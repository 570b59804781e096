# SPDX-License-Identifier: Apache-2.0
"""A call of a kernel on operands: values of the host rounded to FP16, or arrays that live on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.kernels import Trace

LAYER = "L5"

F16 = npt.NDArray[np.float16]
Shape = tuple[int, ...]
FP16_MAX = float(np.finfo(np.float16).max)
ANY_RANK = tuple(range(1, 9))
"""Numbers of axes an array may have."""

Self = TypeVar("Self", bound="DeviceArray")


class Memory(Protocol):
    """What an array needs of its device; ``contents`` is the device's own handle of a matrix of values."""

    def fetch(self, contents: object) -> F16:
        """The values of a matrix."""

    def reshaped(self, contents: object, rows: int, columns: int) -> object:
        """The same values in the same order as a matrix of other extents."""

    def keep(self, contents: object, pinned: bool) -> None:
        """Keep what was made of a matrix for its readers, or let it go when room is needed."""


class DeviceArray:
    """An array of float16 on a device.

    The device knows it as a matrix: leading axes are folded into the rows, one axis is one row.
    """

    dtype = np.dtype(np.float16)
    # so that numpy leaves an operator with an array on the left to the array of the device
    __array_ufunc__ = None

    def __init__(self, device: Memory, contents: object, shape: Shape) -> None:
        self.device = device
        self.contents = contents
        self.shape = shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without padding."""
        return 2 * self.size

    def numpy(self) -> F16:
        """The values, read back from the device.

        Raises:
            CompileError: the device was reset since the array was made.
        """
        return self.device.fetch(self.contents).reshape(self.shape)

    def reshape(self: Self, *shape: int | Shape) -> Self:
        """The same elements in row-major order with other extents; -1 stands for the rest.

        Extents that keep the last axis cost nothing. Others may bring the array into rows on the device.

        Raises:
            CompileError: another number of elements, or an array the device cannot bring into rows.
        """
        flat: list[int] = []
        for extent in shape:
            flat += extent if isinstance(extent, tuple) else (extent,)
        wanted = self._extents(tuple(flat))
        rows, columns = matrix(wanted)
        contents = self.contents
        if (rows, columns) != matrix(self.shape):
            contents = self.device.reshaped(contents, rows, columns)
        return type(self)(self.device, contents, wanted)

    def _extents(self, wanted: Shape) -> Shape:
        rest = prod(n for n in wanted if n != -1)
        if wanted.count(-1) == 1 and rest > 0 and self.size % rest == 0:
            wanted = tuple(self.size // rest if n == -1 else n for n in wanted)
        if not wanted or any(n < 1 for n in wanted) or prod(wanted) != self.size:
            raise CompileError(f"reshape of {self.shape} to {wanted}: {self.size} elements stay {self.size}")
        return wanted

    def pin(self: Self) -> Self:
        """Keep the forms products read this array in, also when room is needed or the cache is emptied."""
        self.device.keep(self.contents, True)
        return self

    def unpin(self: Self) -> Self:
        """Undo :meth:`pin`."""
        self.device.keep(self.contents, False)
        return self

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, float16, {self.device})"


Operand = F16 | DeviceArray
Array = npt.ArrayLike | DeviceArray


@dataclass(frozen=True)
class Call:
    """A kernel and its operands by name: values rounded to FP16, or arrays of a device."""

    trace: Trace
    operands: Mapping[str, Operand]

    @property
    def values(self) -> dict[str, F16]:
        """The operands of a call none of which lives on a device.

        Raises:
            CompileError: naming the first that does.
        """
        out: dict[str, F16] = {}
        for name, operand in self.operands.items():
            if isinstance(operand, DeviceArray):
                raise CompileError(
                    f"operand {name} lives on device {operand.device}; run the call there with ktpu.run(call, device), "
                    "or compile it with the operand's numpy()"
                )
            out[name] = operand
        return out


def matrix(shape: Shape) -> tuple[int, int]:
    """(rows, columns) a device knows an array of ``shape`` as."""
    return prod(shape[:-1]), shape[-1]


def to_half(name: str, array: Array, axes: tuple[int, ...] = (2,)) -> Operand:
    """``array`` rounded to FP16 (nearest even), or itself if it lives on a device.

    Raises:
        CompileError: no real numbers, another number of axes, or values FP16 cannot hold.
    """
    if isinstance(array, DeviceArray):
        _check_axes(name, array.ndim, axes)
        return array
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise CompileError(f"{name} is {values.dtype}; an operand holds real numbers")
    _check_axes(name, values.ndim, axes)
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    beyond = int(np.count_nonzero(~np.isfinite(half)))
    if beyond:
        raise CompileError(f"{name} holds {beyond} values beyond {FP16_MAX:.0f} or not a number; scale it first")
    return half


def _check_axes(name: str, ndim: int, axes: tuple[int, ...]) -> None:
    if ndim not in axes:
        what = " to ".join(str(n) for n in sorted({axes[0], axes[-1]}))
        raise CompileError(f"{name} has {ndim} axes; it takes {what}, reshape it")


def row(name: str, array: Array, n: int) -> Operand:
    """One value a column as [1][n].

    Raises:
        CompileError: another number of values.
    """
    half = to_half(name, array, (1, 2)).reshape(1, -1)
    if half.shape[1] != n:
        raise CompileError(f"{name} has {half.shape[1]} values; one for each of {n} columns is needed")
    return half

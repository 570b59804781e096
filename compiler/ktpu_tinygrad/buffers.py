# SPDX-License-Identifier: Apache-2.0
"""Buffers of tinygrad and their copies on the device (docs/spec/compiler.md 13.2).

A buffer is bytes of the host. A kernel of the device reads an array made from them when it first needs one, and leaves
its result as an array; the bytes follow when the host next reads them. Values that stay with kernels of the device
cross no border.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.tensor import Tensor
from ktpu_tinygrad.operands import COLUMN, FULL, ROW, Operand

F16 = npt.NDArray[np.float16]
HALF = 2
"""Bytes of an element."""


class Maker(Protocol):
    """Makes arrays of a device."""

    def tensor(self, array: F16) -> Tensor:
        """An array with these values, uploaded when a kernel first reads it."""


@dataclass
class _Copy:
    """An array with the values of some bytes.

    Args:
        tensor: [rows][columns], or what the kernel that made it stated.
        column: the bytes hold the first value of each row of it.
        newer: the bytes are older than it.
    """

    tensor: Tensor
    column: bool
    newer: bool


@dataclass
class Memory:
    """Bytes of the host and arrays of the device that hold the same values.

    Args:
        copies: by (first byte, bytes, form and shape).
    """

    data: bytearray
    copies: dict[tuple[int, int, object], _Copy]

    def settle(self, first: int, nbytes: int) -> None:
        """Bring bytes up to date."""
        for (at, length, _), copy in self.copies.items():
            if copy.newer and at < first + nbytes and first < at + length:
                values = copy.tensor.numpy()
                values = values.reshape(-1, values.shape[-1])[:, 0] if copy.column else values
                self.data[at : at + length] = np.ascontiguousarray(values).tobytes()
                copy.newer = False

    def forget(self, first: int, nbytes: int) -> None:
        """Drop the arrays of bytes that are about to change; what only they know is settled first."""
        for key in [k for k in self.copies if k[0] < first + nbytes and first < k[0] + k[1]]:
            if self.copies[key].newer and not (first <= key[0] and key[0] + key[1] <= first + nbytes):
                self.settle(key[0], key[1])
            del self.copies[key]


@dataclass
class Storage:
    """A buffer, or a part of one."""

    memory: Memory
    first: int
    nbytes: int

    @classmethod
    def new(cls, nbytes: int) -> Storage:
        """Zeroed bytes."""
        return cls(Memory(bytearray(nbytes), {}), 0, nbytes)

    def part(self, offset: int, nbytes: int) -> Storage:
        """``nbytes`` of it from ``offset`` on, the same bytes."""
        return Storage(self.memory, self.first + offset, nbytes)

    def read(self) -> memoryview:
        """The bytes, up to date."""
        self.memory.settle(self.first, self.nbytes)
        return memoryview(self.memory.data)[self.first : self.first + self.nbytes]

    def write(self) -> memoryview:
        """The bytes, to be changed by the caller at once; arrays made of them before are dropped."""
        self.memory.settle(self.first, self.nbytes)
        self.memory.forget(self.first, self.nbytes)
        return memoryview(self.memory.data)[self.first : self.first + self.nbytes]

    def array(self, operand: Operand, device: Maker, *, fresh: bool = False) -> Tensor:
        """The values as an operand of a kernel.

        Args:
            fresh: make it from the bytes of the host, whatever arrays there are.

        Raises:
            CompileError: values FP16 cannot hold, or an array the device cannot bring into this shape.
        """
        key = (self.first, self.nbytes, (operand.form, operand.shape))
        known = self.memory.copies.get(key)
        if known is None or fresh:
            known = None if fresh else self._result(operand)
            known = known or _Copy(device.tensor(self._values(operand)), False, False)
            if key not in self.memory.copies:
                self.memory.copies[key] = known
        return known.tensor

    def _result(self, operand: Operand) -> _Copy | None:
        """What a kernel left of exactly these bytes, in the shape the operand is read in."""
        for (at, length, _), copy in self.memory.copies.items():
            if (at, length) == (self.first, self.nbytes):
                if copy.column and operand.form == COLUMN and copy.tensor.shape == operand.shape:
                    return _Copy(copy.tensor, False, False)
                plain = not copy.column and copy.tensor.nbytes == length
                if plain and operand.form in (FULL, ROW) and copy.tensor.size == prod(operand.shape):
                    return _Copy(copy.tensor.reshape(operand.shape), False, False)
        return None

    def _values(self, operand: Operand) -> F16:
        values = np.frombuffer(self.read(), np.float16)
        if operand.form == COLUMN:
            values = np.repeat(values, operand.shape[-1])
        else:
            values = np.tile(values, prod(operand.shape) // values.size)
        return values.reshape(operand.shape)

    def put(self, tensor: Tensor, column: bool) -> None:
        """Let the values be those of an array; the bytes follow when they are read."""
        self.memory.forget(self.first, self.nbytes)
        form = COLUMN if column else FULL
        self.memory.copies[self.first, self.nbytes, (form, tensor.shape)] = _Copy(tensor, column, True)

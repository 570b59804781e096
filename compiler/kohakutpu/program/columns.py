# SPDX-License-Identifier: Apache-2.0
"""Long vector programs as columns (docs/spec/compiler.md 9): nearly all of one is bases of descriptors and RUNs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from kohakutpu.program.instructions import Desc, Instruction, Run

LAYER = "L1"

RUN, OTHER = -1, -2
"""What stands for the descriptor number of a ``Run``, and of anything but a ``Desc`` or ``Run``."""

_run = cache(Run)

Column = npt.NDArray[Any]
"""Integers, of type object where 64 bits do not hold them."""


@dataclass(frozen=True, eq=False)
class Columns(Sequence[Instruction]):
    """Instructions in order, made when they are asked for; equal to any sequence of the same instructions.

    Args:
        ad: per instruction the number of the descriptor a ``Desc`` writes, :data:`RUN`, or :data:`OTHER`.
        at: the base of that descriptor, the first word of the kernel to run, or an index into ``others``.
        others: everything else.
    """

    ad: Column
    at: Column
    others: tuple[Instruction, ...] = ()

    @classmethod
    def runs(cls, numbers: Sequence[int], bases: Column) -> Columns:
        """RUNs of the kernel at word 0, each behind the bases that are not those of the RUN before.

        Args:
            numbers: descriptors, [columns of ``bases``].
            bases: [RUNs][descriptors].
        """
        written = np.ones((len(bases), len(numbers) + 1), dtype=bool)
        written[1:, :-1] = bases[1:] != bases[:-1]
        ad = np.broadcast_to(np.array([*numbers, RUN]), written.shape)
        at = np.zeros(written.shape, dtype=bases.dtype)
        at[:, :-1] = bases
        return cls(ad[written], at[written])

    def insert(self, before: int, instructions: Sequence[Instruction]) -> Columns:
        """The same with more ``instructions`` in front of number ``before``."""
        first = len(self.others)
        numbers = np.arange(first, first + len(instructions))
        others = (*self.others, *instructions)
        return Columns(
            np.insert(self.ad, before, np.full_like(numbers, OTHER)), np.insert(self.at, before, numbers), others
        )

    @property
    def repeated(self) -> bool:
        """True if there is nothing but bases of descriptors and RUNs."""
        return bool(self.ad.min(initial=0) != OTHER)

    def __len__(self) -> int:
        return len(self.ad)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...

    @overload
    def __getitem__(self, index: slice) -> Columns: ...

    def __getitem__(self, index: int | slice) -> Instruction | Columns:
        if isinstance(index, slice):
            return Columns(self.ad[index], self.at[index], self.others)
        return self._made(int(self.ad[index]), int(self.at[index]))

    def __iter__(self) -> Iterator[Instruction]:
        return map(self._made, self.ad.tolist(), self.at.tolist())

    def _made(self, ad: int, at: int) -> Instruction:
        if ad == OTHER:
            return self.others[at]
        return _run(at) if ad == RUN else Desc(ad, at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


def joined(parts: Sequence[Sequence[Instruction]]) -> Sequence[Instruction]:
    """The instructions of all parts; slices of one :class:`Columns` stay one."""
    columns = [p for p in parts if isinstance(p, Columns)]
    if len(columns) == len(parts) and len({id(c.others) for c in columns}) == 1:
        at = np.concatenate([c.at for c in columns])
        return Columns(np.concatenate([c.ad for c in columns]), at, columns[0].others)
    return [ins for p in parts for ins in p]

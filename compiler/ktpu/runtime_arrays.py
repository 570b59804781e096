# SPDX-License-Identifier: Apache-2.0
"""What a device knows of an array: values on the host, byte orders on the device (docs/spec/compiler.md 7.4)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from ktpu.runtime_memory import Storage

F16 = npt.NDArray[np.float16]
Shape = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """The array in one byte order: ``nbytes`` of ``storage`` from its byte ``offset``, padding included."""

    storage: Storage
    nbytes: int
    offset: int = 0

    @property
    def address(self) -> int:
        """Global byte address."""
        return self.storage.address + self.offset


@dataclass(eq=False)
class Contents:
    """A matrix of values and where they are; arrays of other extents share it.

    Args:
        host: the values, if they came from the host.
        source: the byte order its FP16 values are in on the device, "" if they came from the host.
        forms: what there is on the device, by key of the byte order.
        staged: what stands in the staging store besides, dropped when that is needed for something else.
        clean: the padding of ``source`` is zero.
        pinned: forms that could be made again stay.
    """

    name: str
    shape: Shape
    epoch: int
    host: F16 | None = None
    source: str = ""
    forms: dict[str, Form] = field(default_factory=dict)
    clean: bool = False
    pinned: bool = False
    staged: dict[str, Form] = field(default_factory=dict)

    def check(self, epoch: int) -> None:
        """Refuse an array of an older epoch.

        Raises:
            CompileError: the device was reset.
        """
        if self.epoch != epoch:
            raise CompileError(
                f"array {self.name} {self.shape} was made before the device was reset (epoch {self.epoch}, it is "
                f"{epoch}); make it again with ktpu.tensor"
            )

    def drop(self) -> int:
        """Forget every form that can be made again; how many."""
        gone = [key for key in self.forms if key != self.source]
        for key in gone:
            del self.forms[key]
        return len(gone)

    def unstage(self) -> int:
        """Leave the staging store, but for the only form of its byte order a pinned array has; how many left."""
        gone = [key for key in self.staged if key in self.forms or not self.pinned]
        for key in gone:
            del self.staged[key]
        return len(gone)

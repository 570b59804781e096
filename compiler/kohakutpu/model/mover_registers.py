# SPDX-License-Identifier: Apache-2.0
"""What the command registers of the memory mover hold (docs/spec/memory.md 12.1).

``apply(offset, data)`` takes one register write and says whether it starts a move; ``walkers`` are source and
destination as they stand then.
"""

from __future__ import annotations

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import MoverOffset
from kohakutpu.model.walker import Dimension, Walker

LAYER = "L0"

SOURCE, DESTINATION = 0, 1

_NAMES = {int(offset): f"MV_{offset.name}" for offset in MoverOffset}


class MoverRegisters:
    """Registers after reset. `xform` is (XFORM_ID, XFORM_MODE) of the last source header."""

    def __init__(self) -> None:
        self.walkers = (Walker(), Walker())
        self.xform = (0, 0)
        self._values = {name: int(g.REGISTERS[name][3] or 0) for name in _NAMES.values()}
        self._named = SOURCE

    def apply(self, offset: int, data: int) -> bool:
        """A 64-bit write; True if it starts a move. Unlisted offsets are ignored, CLEAR holds nothing."""
        name = _NAMES.get(offset & ~7)
        if name is None:
            return False
        f = codec(name).decode(data)
        match name:
            case "MV_HDR":
                walker = self._name(f["walker"])
                walker.base, walker.ndim, walker.bad_index = f["base"], f["ndim"], False
                if f["walker"] == SOURCE:
                    self.xform = (f["xform_id"], f["xform_mode"])
            case "MV_DIM":
                self._name(f["walker"])
            case "MV_AXIS":
                self._commit(f["axis"], f["step"])
            case "MV_WINDOW":
                walker = self._name(f["walker"])
                walker.axis_base[f["axis"]], walker.extent[f["axis"]] = f["base"], f["extent"]
        self._values[name] = data
        return name == "MV_CTRL" and bool(f["go"])

    def field(self, register: str, field: str) -> int:
        """A field of a register as it was last written."""
        return codec(register).get(self._values[register], field)

    def _name(self, walker: int) -> Walker:
        self._named = walker
        return self.walkers[walker]

    def _commit(self, axis: int, step: int) -> None:
        walker = self.walkers[self._named]
        f = codec("MV_DIM").decode(self._values["MV_DIM"])
        if f["index"] < g.MEM_MOVER_NDIM_MAX:
            walker.dims[f["index"]] = Dimension(f["count"], f["stride"], axis, step)
        else:
            walker.bad_index = True

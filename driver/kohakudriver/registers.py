# SPDX-License-Identifier: Apache-2.0
"""Register addresses and the fields of registers and flits by name, from the generated tables."""

from __future__ import annotations

from typing import Any

from kohakudriver import generated as g

LAYER = "L0"


def address(name: str, index: int = 0, mesh: int = 0) -> int:
    """Host address of a register or of element ``index`` of a register array.

    Raises:
        KeyError: no such register.
        IndexError: an index past the array; names the limit.
    """
    block, offset, _, _, count, stride = g.REGISTERS[name]
    if not 0 <= index < count:
        raise IndexError(f"register {name} has {count} elements, index {index} is out of range")
    base = g.HOST_ENGINE_BASE if block == "engine" else g.HOST_CTRL_BASE + mesh * g.HOST_CTRL_STRIDE
    return base + offset + index * stride


def fields(name: str, value: int) -> dict[str, int]:
    """Fields of a register, message or flit header."""
    return {
        f: value >> lsb & (1 << (msb - lsb + 1)) - 1 for f, msb, lsb, kind, *_ in layout(name) if kind == "u"
    }


def pack(name: str, **values: int) -> int:
    """Value of a register, message or flit header; fields not given are 0.

    Raises:
        KeyError: no such field.
        ValueError: a value its field cannot hold.
    """
    places = {f: (msb, lsb) for f, msb, lsb, kind, *_ in layout(name) if kind in "uo"}
    out = 0
    for field, value in values.items():
        msb, lsb = places[field]
        if not 0 <= value < 1 << (msb - lsb + 1):
            raise ValueError(f"{name}.{field} = {value:#x} does not fit {msb - lsb + 1} bits")
        out |= value << lsb
    return out


def layout(name: str) -> tuple[tuple[Any, ...], ...]:
    """(name, msb, lsb, kind, ...) of every field of a container."""
    rows: tuple[tuple[Any, ...], ...] = g.LAYOUTS[name][2]
    return rows

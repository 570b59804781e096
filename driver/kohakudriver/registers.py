# SPDX-License-Identifier: Apache-2.0
"""Register addresses and fields by name, from the generated tables."""

from __future__ import annotations

from typing import Any

from kohakudriver import generated as g


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
    """Readable fields of a register value."""
    out = {}
    for field, msb, lsb, kind, *_ in layout(name):
        if kind == "u":
            out[field] = value >> lsb & (1 << (msb - lsb + 1)) - 1
    return out


def layout(name: str) -> tuple[tuple[Any, ...], ...]:
    """(name, msb, lsb, kind, ...) of every field of a register."""
    rows: tuple[tuple[Any, ...], ...] = g.LAYOUTS[name][2]
    return rows

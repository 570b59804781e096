# SPDX-License-Identifier: Apache-2.0
"""Control programs as text (docs/spec/fabric.md 7.3): WR, POLL and DONE commands with register names."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kohakutpu.isa import generated as g
from kohakutpu.isa import registers

LAYER = "L0"

Fields = tuple[int, int, int, int]
"""op, addr, data, mask of one command slot."""


def place(address: int, mesh: int | None = None) -> str | None:
    """Register at a host address of the control windows, ``mesh 2 PROG_DST`` if it is not of mesh `mesh`.

    None if no register stands there.
    """
    engine, ctrl = g.HOST_MAP["engine"], g.HOST_MAP["ctrl"]
    if engine[0] <= address < engine[0] + engine[1]:
        return registers.find(address - engine[0], engine=True)
    number, offset = divmod(address - ctrl[0], ctrl[2])
    name = registers.find(offset) if 0 <= number < 4 else None
    return name if name is None or number == (mesh or 0) else f"mesh {number} {name}"


def disasm(command: Fields, mesh: int | None = None) -> str:
    """One line: ``WR PROG_DST dst_y=1 dst_x=2``, ``POLL AUX_STAT mask=0x1 want=0x0``, ``DONE 3``.

    Registers are those of `mesh`, 0 by default; an address without a register stays a number.
    """
    op, address, data, mask = command
    if op == g.OP_DONE:
        return f"DONE {data}"
    name = place(address, mesh)
    where = name or f"0x{address:x}"
    if op == g.OP_POLL:
        return f"POLL {where} mask=0x{mask:x} want=0x{data:x}"
    if op != g.OP_WR:
        return f".command {op} 0x{address:x} 0x{data:x} 0x{mask:x}"
    base = re.sub(r"^mesh \d |\[\d+\]$", "", name or "")
    if base not in registers.NAMES:
        return f"WR {where} 0x{data:x}"
    fields = registers.disasm(base, data).removeprefix(base)
    return f"WR {where}{fields or ' 0'}"


def disasm_program(commands: Iterable[Fields], mesh: int | None = None) -> list[str]:
    """Numbered lines up to the first DONE."""
    lines = []
    for slot, command in enumerate(commands):
        lines.append(f"{slot:3d} {disasm(command, mesh)}")
        if command[0] == g.OP_DONE:
            break
    return lines

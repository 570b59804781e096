# SPDX-License-Identifier: Apache-2.0
"""64-bit registers: control window, engine window, ``CU_CTRL`` indices, mover and adapter."""

from __future__ import annotations

from kohakutpu.isa import generated
from kohakutpu.isa.codec import EncodingError, codec

LAYER = "L0"

_SPACES = ("register", "control", "mover", "adapter")
NAMES = tuple(name for name, row in generated.LAYOUTS.items() if row[0] in _SPACES)


def _known(name: str) -> str:
    if name not in NAMES:
        raise EncodingError(f"no register {name!r}; registers: {', '.join(NAMES)}")
    return name


def encode(name: str, **fields: int) -> int:
    """Value of register ``name`` with the given fields; the others are 0.

    Raises:
        EncodingError: unknown register or field, or a value out of range.
    """
    return codec(_known(name)).encode(**fields)


def decode(name: str, value: int) -> dict[str, int]:
    """Fields of register ``name`` in ``value``."""
    return codec(_known(name)).decode(value)


def matches(name: str, value: int, **fields: int) -> bool:
    """True if ``value`` is a legal value of ``name`` with the given fields."""
    return codec(_known(name)).matches(value, **fields)


def disasm(name: str, value: int) -> str:
    """Text such as ``PROG_DST dst_y=1 dst_x=2``."""
    return codec(_known(name)).disasm(value)


def layout(name: str) -> str:
    """Table of the fields of register ``name``."""
    return codec(_known(name)).layout()


def offset(name: str, index: int = 0) -> int:
    """Byte offset of element ``index`` of register ``name`` in its window.

    Raises:
        EncodingError: ``name`` has no offset, or ``index`` is outside the array.
    """
    if name not in generated.REGISTERS:
        raise EncodingError(f"{name!r} has no window offset; registers: {', '.join(generated.REGISTERS)}")
    _, base, _, _, count, stride = generated.REGISTERS[name]
    if not 0 <= index < count:
        raise EncodingError(f"{name}[{index}] is outside 0..{count - 1}")
    return base + index * stride


def host_address(name: str, index: int = 0, mesh: int = 0) -> int:
    """Host byte address of a register with the default window bases.

    Raises:
        EncodingError: as :func:`offset`, or ``mesh`` outside 0..3.
    """
    if not 0 <= mesh < 4:
        raise EncodingError(f"mesh = {mesh} is outside 0..3")
    window = "engine" if name in generated.REGISTERS and generated.REGISTERS[name][0] == "engine" else "ctrl"
    base, _, step = generated.HOST_MAP[window]
    return base + mesh * step + offset(name, index)


def find(at: int, engine: bool = False) -> str | None:
    """Name of the register at window offset ``at`` (``NAME[i]`` for arrays), None if there is none.

    Registers inside a forwarded block win over the block.
    """
    best: tuple[int, str] | None = None
    for name, (block, base, _, _, count, stride) in generated.REGISTERS.items():
        if (block == "engine") != engine or not base <= at < base + count * stride:
            continue
        text = name if count == 1 else f"{name}[{(at - base) // stride}]"
        if best is None or count < best[0]:
            best = (count, text)
    return None if best is None else best[1]

# SPDX-License-Identifier: Apache-2.0
"""40-bit addresses (``docs/spec/memory.md`` section 1)."""

from __future__ import annotations

from kohakutpu.isa.codec import EncodingError, codec

LAYER = "L0"

_ADDR = codec("ADDR40")
_APERTURES = {0: "staging", 1: "adapter"}


def encode(**fields: int) -> int:
    """Address from ``aperture``, ``mesh`` and ``local`` or ``aperture_index``, ``aperture_offset``."""
    return _ADDR.encode(**fields)


def decode(address: int) -> dict[str, int]:
    """All fields of ``address``."""
    return _ADDR.decode(address)


def matches(address: int, **fields: int) -> bool:
    """True if ``address`` is 40 bits wide, bit 38 is 0 and every given field has its value."""
    return _ADDR.matches(address, zero38=0, **fields)


def layout() -> str:
    """Table of the address fields."""
    return _ADDR.layout()


def dram(offset: int, mesh: int = 0) -> int:
    """Address of byte ``offset`` in the DRAM window of ``mesh``."""
    return _ADDR.encode(local=offset, mesh=mesh)


def staging(offset: int, mesh: int = 0) -> int:
    """Address of byte ``offset`` in the L2 staging store of ``mesh``."""
    return _ADDR.encode(aperture=1, mesh=mesh, aperture_offset=offset)


def adapter(offset: int, mesh: int = 0) -> int:
    """Address of byte ``offset`` in the recommended window of an L2 adapter of ``mesh``."""
    return _ADDR.encode(aperture=1, mesh=mesh, aperture_index=1, aperture_offset=offset)


def disasm(address: int) -> str:
    """Text such as ``mesh 2 staging + 0x80``."""
    try:
        fields = _ADDR.decode(address)
    except EncodingError:
        return f".address 0x{address:x}"
    bad = ", bit 38 set" if fields["zero38"] else ""
    if not fields["aperture"]:
        return f"mesh {fields['mesh']} dram + 0x{fields['local']:x}{bad}"
    index = fields["aperture_index"]
    name = _APERTURES.get(index, f"aperture {index}")
    return f"mesh {fields['mesh']} {name} + 0x{fields['aperture_offset']:x}{bad}"

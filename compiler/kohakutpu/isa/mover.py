# SPDX-License-Identifier: Apache-2.0
"""Moves of the memory mover as register writes, and back as text (docs/spec/memory.md 12.1).

A move is a tuple of (offset in the mover's window, value), the write with GO last: what a `move` step of an
artifact holds. Every function writes all it relies on, both windows included, so no move inherits bounds.

>>> from kohakutpu.isa.address import staging
>>> from kohakutpu.walks import contiguous
>>> for line in disasm(transform(contiguous(0x10_0000, 24), contiguous(staging(0), 3, 128), QUANTISE, 1)):
...     print(line)
MV_HDR xform_mode=1 xform_id=1 ndim=1 base=0x100000
MV_DIM stride=32 count=24
MV_AXIS
MV_WINDOW
MV_WINDOW axis=1
MV_HDR ndim=1 base=0x8000000000 walker=1
MV_DIM stride=128 count=3 walker=1
MV_AXIS
MV_WINDOW walker=1
MV_WINDOW axis=1 walker=1
MV_CTRL go=1 coalesce=1 ewidth=1 mode=5
"""

from __future__ import annotations

from collections.abc import Sequence

from kohakutpu.isa import generated as g
from kohakutpu.isa import registers
from kohakutpu.isa.codec import EncodingError
from kohakutpu.isa.generated import MoverMode, MoverOffset, MoverTransform
from kohakutpu.walks import Walk, contiguous

LAYER = "L0"

Writes = tuple[tuple[int, int], ...]

IDENTITY, QUANTISE, GRANULE = MoverTransform
_NAMES = {int(offset): f"MV_{offset.name}" for offset in MoverOffset}


def walk_writes(walker: int, walk: Walk, xform_id: int = 0, xform_mode: int = 0) -> Writes:
    """HDR, every DIM with its AXIS, both WINDOWs of walker 0 (source) or 1 (destination).

    Raises:
        EncodingError: a value its field cannot hold, or not 1..6 dimensions.
    """
    if not 1 <= len(walk.dims) <= g.MEM_MOVER_NDIM_MAX:
        raise EncodingError(f"a walk has {len(walk.dims)} dimensions; 1..{g.MEM_MOVER_NDIM_MAX} are possible")
    head = {"walker": walker, "base": walk.base, "ndim": len(walk.dims)}
    out = [write("HDR", **head, xform_id=xform_id, xform_mode=xform_mode)]
    for index, dim in enumerate(walk.dims):
        out.append(write("DIM", walker=walker, index=index, count=dim.count, stride=dim.stride))
        out.append(write("AXIS", axis=dim.axis, step=dim.step))
    for axis, (base, extent) in enumerate(walk.windows):
        out.append(write("WINDOW", walker=walker, axis=axis, base=base, extent=extent))
    return tuple(out)


def write(register: str, **fields: int) -> tuple[int, int]:
    """(offset, value) of one register of the mover by its name, for example ``IMM``."""
    return int(MoverOffset[register]), registers.encode(f"MV_{register}", **fields)


def _go(mode: MoverMode, ewidth: int = 1, coalesce: bool = True, cap: int = 0) -> tuple[int, int]:
    return write("CTRL", mode=mode, ewidth=ewidth, coalesce=int(coalesce), cap=cap, go=1)


def copy(source: Walk, destination: Walk, *, pad: int = 0, ewidth: int = 1) -> Writes:
    """Words of `source` to `destination`; a source element outside its windows gives the pattern of `pad`.

    Raises:
        EncodingError: the source is shorter than the destination, or a value does not fit.
    """
    if source.elements < destination.elements:
        raise EncodingError(
            f"copy: the source walk has {source.elements} elements, the destination {destination.elements}"
        )
    head = (*walk_writes(0, source), *walk_writes(1, destination))
    return (*head, write("IMM", imm=pad), _go(MoverMode.COPY, ewidth))


def fill(destination: Walk, pattern: int, *, ewidth: int = 2) -> Writes:
    """The immediate pattern, elements of 8 << ewidth bits, over `destination`."""
    return (*walk_writes(1, destination), write("IMM", imm=pattern), _go(MoverMode.FILL, ewidth))


def generate(destination: Walk, seed: int) -> Writes:
    """Pseudo-random words over `destination`."""
    return (*walk_writes(1, destination), write("SEED", seed=seed), _go(MoverMode.GENERATE))


def gather(base: int, index: int, count: int, destination: Walk, *, pitch: int, words: int) -> Writes:
    """Rows of `words` words from base + pitch * index[row]; the `count` indices stand at address `index`.

    Raises:
        EncodingError: not 1..2,048 indices, rows of no words, more elements than rows hold.
    """
    if not 1 <= count <= g.MEM_MOVER_INDEX_MAX or words < 1 or destination.elements > count * words:
        raise EncodingError(
            f"gather: {count} rows of {words} words for {destination.elements} elements; 1..{g.MEM_MOVER_INDEX_MAX} "
            "rows of at least one word that cover the destination are needed"
        )
    return (
        *walk_writes(0, contiguous(base, 1)),
        *walk_writes(1, destination),
        write("INDEX", addr=index, count=count),
        write("GATHER", pitch=pitch, words=words),
        _go(MoverMode.GATHER),
    )


def transform(source: Walk, destination: Walk, occupant: int, mode: int = 0) -> Writes:
    """Entries through a transform: `source` counts words, `destination` entries (or words, granule mode 1).

    Raises:
        EncodingError: an unknown occupant, a source that is no whole number of entries, a short destination.
    """
    if occupant not in g.MV_XFORM_WORDS:
        raise EncodingError(f"transform {occupant} does not exist; there are {sorted(g.MV_XFORM_WORDS)}")
    take, give = g.MV_XFORM_WORDS[occupant]
    entries, rest = divmod(source.elements, take)
    places = entries * (give if occupant == GRANULE and mode & 1 else 1)
    if rest or destination.elements < places:
        raise EncodingError(
            f"transform {occupant}: {source.elements} source words are {entries} entries of {take} and {rest} words; "
            f"{places} destination elements are needed, there are {destination.elements}"
        )
    return (*walk_writes(0, source, occupant, mode), *walk_writes(1, destination), _go(MoverMode.XFORM))


def disasm(writes: Sequence[tuple[int, int]]) -> list[str]:
    """One line a write, register and its fields that are not zero."""
    lines = []
    for offset, value in writes:
        name = _NAMES.get(offset)
        lines.append(registers.disasm(name, value) if name else f".write 0x{offset:02x} 0x{value:x}")
    return lines

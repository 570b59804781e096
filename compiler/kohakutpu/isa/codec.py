# SPDX-License-Identifier: Apache-2.0
"""Table-driven packing and unpacking of every container in :mod:`kohakutpu.isa.generated`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import SupportsIndex

from kohakutpu.isa import generated

LAYER = "L0"

_HEX_FIELDS = frozenset(
    ("addr", "addr_hi", "addr_lo", "aperture_offset", "arg", "base", "body", "data", "elements", "first_hdr")
).union(("flags", "imm", "local", "magic", "mask", "payload", "seed", "tag", "value", "value_hi", "word"))


class EncodingError(ValueError):
    """A value cannot be encoded; the message names the container, the field, the value and the limit."""


@dataclass(frozen=True)
class FieldSpec:
    """One named bit range.

    ``signed`` fields hold two's complement. ``reserved`` fields are sent as 0; they are encoded only when
    named and decoded only when nonzero. An ``overlay`` names bits of another field.
    """

    name: str
    msb: int
    lsb: int
    signed: bool
    reserved: bool
    overlay: bool
    default: int
    enum: str
    meaning: str

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.msb - self.lsb + 1

    @property
    def low(self) -> int:
        """Smallest legal value."""
        return -(1 << (self.width - 1)) if self.signed else 0

    @property
    def high(self) -> int:
        """Largest legal value."""
        return (1 << (self.width - 1)) - 1 if self.signed else (1 << self.width) - 1


class Codec:
    """Encoder, decoder and disassembler of one container.

    Args:
        name: container name as in the specification tables, for example ``MEM_RD_REQ``.

    Raises:
        KeyError: no such container.
    """

    def __init__(self, name: str) -> None:
        space, width, rows = generated.LAYOUTS[name]
        self.name = name
        self.space = space
        self.width = width
        self.fields: dict[str, FieldSpec] = {}
        for field, msb, lsb, kind, default, enum, meaning in rows:
            self.fields[field] = FieldSpec(
                field, msb, lsb, kind == "i", kind == "r", kind == "o", default, enum, meaning
            )
        # name -> lowest, highest, mask, lsb, clearing mask: ready made because encode is called most
        self._plan: dict[str, tuple[int, int, int, int, int]] = {}
        for item in self.fields.values():
            mask = (1 << item.width) - 1
            self._plan[item.name] = (item.low, item.high, mask, item.lsb, ~(mask << item.lsb))
        self._overlays = frozenset(item.name for item in self.fields.values() if item.overlay)
        self._base = 0
        self._reserved = 0
        for spec in self.fields.values():
            if spec.reserved:
                self._reserved |= ((1 << spec.width) - 1) << spec.lsb
            elif not spec.overlay:
                self._base |= spec.default << spec.lsb

    def encode(self, **fields: SupportsIndex) -> int:
        """Pack ``fields`` into a word of ``width`` bits.

        Fields not given take their default (0 unless the specification says otherwise). Overlay fields are
        applied last and replace the bits they name.

        Raises:
            EncodingError: unknown field, not an integer, or out of range.
        """
        word = self._base
        names: Iterable[str] = fields
        if self._overlays and not self._overlays.isdisjoint(fields):
            names = sorted(fields, key=self._overlays.__contains__)
        for name in names:
            value = fields[name]
            if name not in self._plan:
                raise EncodingError(f"{self.name} has no field {name!r}; fields: {self._visible()}")
            low, high, mask, lsb, clear = self._plan[name]
            if not isinstance(value, int):
                value = self._integer(name, value)
            if not low <= value <= high:
                raise self._range_error(name, value)
            word = word & clear | (value & mask) << lsb
        return word

    def decode(self, word: int) -> dict[str, int]:
        """All fields of ``word``; ``encode(**decode(word)) == word`` for every word.

        Raises:
            EncodingError: ``word`` does not fit the container.
        """
        self._fits(word)
        return {spec.name: value for spec, value in self._values(word)}

    def get(self, word: int, name: str) -> int:
        """The value of one field of ``word``."""
        self._fits(word)
        return _extract(self.fields[name], word)

    def matches(self, word: int, **fields: int) -> bool:
        """True if ``word`` fits, has no reserved bit set and carries every given value."""
        if not isinstance(word, int) or word < 0 or word >> self.width or word & self._reserved:
            return False
        return all(_extract(self.fields[name], word) == value for name, value in fields.items())

    def disasm(self, word: int) -> str:
        """``NAME field=value ...`` with the fields that are not zero; overlays are left out."""
        if word < 0 or word >> self.width:
            return f".word 0x{word:x}"
        parts = [self.name]
        for spec, value in self._values(word):
            if value and not spec.overlay:
                parts.append(f"{spec.name}={format_value(spec, value)}")
        return " ".join(parts)

    def layout(self) -> str:
        """A table of the container: bits, name, width, meaning; one line a field."""
        lines = [f"{self.name}: {self.width} bits"]
        for spec in self.fields.values():
            bits = f"[{spec.msb}]" if spec.width == 1 else f"[{spec.msb}:{spec.lsb}]"
            mark = "  " if spec.overlay else ""
            lines.append(f"  {mark}{bits:<10} {spec.name:<16} {spec.width:>3}  {spec.meaning}")
        return "\n".join(lines)

    def _values(self, word: int) -> Iterator[tuple[FieldSpec, int]]:
        for spec in self.fields.values():
            value = _extract(spec, word)
            if value or not spec.reserved:
                yield spec, value

    def _visible(self) -> str:
        return ", ".join(name for name, spec in self.fields.items() if not spec.reserved)

    def _integer(self, name: str, value: SupportsIndex) -> int:
        try:
            return value.__index__()
        except AttributeError:
            raise EncodingError(f"{self.name}.{name} = {value!r} is not an integer") from None

    def _range_error(self, name: str, value: int) -> EncodingError:
        spec = self.fields[name]
        kind = f"{spec.width} bits{', signed' if spec.signed else ''}"
        return EncodingError(f"{self.name}.{name} = {value} is outside {spec.low}..{spec.high} ({kind})")

    def _fits(self, word: int) -> None:
        if word < 0 or word >> self.width:
            raise EncodingError(f"{self.name}: word 0x{word:x} does not fit {self.width} bits")


def _extract(spec: FieldSpec, word: int) -> int:
    value = (word >> spec.lsb) & ((1 << spec.width) - 1)
    return value - (1 << spec.width) if spec.signed and value >> (spec.width - 1) else value


def format_value(spec: FieldSpec, value: int) -> str:
    """Text of a field value: hexadecimal for addresses and bit patterns, decimal otherwise."""
    return f"0x{value:x}" if spec.name in _HEX_FIELDS and value >= 0 else str(value)


@cache
def codec(name: str) -> Codec:
    """The shared :class:`Codec` of a container."""
    return Codec(name)


def joined(fields: Mapping[str, int], limit: int, name: str, container: str) -> int:
    """``fields[name]`` checked against ``limit`` bits, for values that the container stores in two parts."""
    value = fields[name]
    if not 0 <= value < 1 << limit:
        raise EncodingError(f"{container}.{name} = {value} is outside 0..{(1 << limit) - 1} ({limit} bits)")
    return value

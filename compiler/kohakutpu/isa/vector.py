# SPDX-License-Identifier: Apache-2.0
"""Envelope instructions and 32-bit words of the vector core (``docs/spec/vector.md`` sections 2, 5, 6)."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from functools import cache, lru_cache
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import Codec, EncodingError, codec
from kohakutpu.isa.vector_parse import extras, match_numbers, parse_word
from kohakutpu.isa.vector_text import word_text

LAYER = "L0"

_ENUMS: dict[str, type[IntEnum]] = {
    "src": g.Source,
    "mode": g.LaneMode,
    "dtype": g.VectorDtype,
    "pm": g.PredicateMode,
    "red": g.Reduction,
    "bcast": g.BroadcastSource,
    "seti": g.ImmediateTarget,
}
_BASE_LOW = codec("VC_DESC").fields["value"].width
_LOW_MASK = (1 << _BASE_LOW) - 1
_BASE_LSB = codec("VC_DESC").fields["value"].lsb
_BASE_HIGH, _BASE_HIGH_LSB = codec("VC_DESC").fields["value_hi"].width, codec("VC_DESC").fields["value_hi"].lsb
BASE_MAX = (1 << g.ADDR_W) - 1
"""Largest base of a descriptor."""


def word_codec(op: int | str) -> Codec:
    """The container of a word: format of its opcode."""
    return codec(f"VC_{g.VC_OPCODES[_opcode(op).name][0]}")


def encode(op: int | str, *, raw: bool = False, **fields: int) -> int:
    """32-bit word of opcode ``op``.

    Args:
        op: name or number of the opcode.
        raw: allow reserved values of enumerated fields (they fault in the core) and reserved bits.
        fields: fields of the opcode's format; the others are 0.

    Raises:
        EncodingError: unknown opcode or field, value out of range, reserved enumeration value.
    """
    number = _opcode(op)
    form = word_codec(number)
    word = form.encode(op=number, **fields)
    if not raw:
        for name in fields:
            spec = form.fields[name]
            value = form.get(word, name)
            if spec.reserved and value:
                raise EncodingError(f"{number.name}: reserved bits {name} = {value}")
            if spec.enum and value not in list(_ENUMS[spec.enum]):
                names = ", ".join(f"{item.name} {item.value}" for item in _ENUMS[spec.enum])
                raise EncodingError(f"{number.name}.{name} = {value} is reserved; values: {names}")
    return word


def immediate(value: int) -> int:
    """Second word of ``VSETI``: a 24-bit value."""
    return codec("VC_IMM").encode(imm=value)


def decode(word: int) -> tuple[g.VectorOp, dict[str, int]]:
    """Opcode and fields of a word; ``encode(op, raw=True, **fields) == word`` for every word."""
    if word < 0 or word >> 32:
        raise EncodingError(f"word 0x{word:x} does not fit 32 bits")
    op = g.VectorOp(word >> 27)
    fields = word_codec(op).decode(word)
    del fields["op"]
    return op, fields


def matches(word: int, op: int | str | None = None, **fields: int) -> bool:
    """True if ``word`` has no reserved bit or value, is of opcode ``op`` and carries the given fields."""
    if word < 0 or word >> 32:
        return False
    have = g.VectorOp(word >> 27)
    form = word_codec(have)
    if (op is not None and _opcode(op) != have) or not form.matches(word, **fields):
        return False
    return all(
        form.get(word, spec.name) in list(_ENUMS[spec.enum]) for spec in form.fields.values() if spec.enum
    )


def layout(op: int | str) -> str:
    """Table of the fields of an opcode."""
    return word_codec(op).layout()


def disasm(word: int) -> str:
    """Assembly text of a word, for example ``VADD v2, v0, v1``; reserved bits follow in braces.

    The second word of ``VSETI`` has no opcode: use :func:`disasm_words` for a kernel.
    """
    if word < 0 or word >> 32:
        return f".word 0x{word:x}"
    op, fields = decode(word)
    return word_text(op, fields)


def parse(text: str) -> int:
    """Word of one line as :func:`disasm` writes it, or of a ``.imm 0x...`` line.

    Raises:
        EncodingError: the line is not an instruction, or a value is out of range.
    """
    immediate_text = re.fullmatch(r"\s*\.imm (0x[0-9a-fA-F]{1,8})\s*", text)
    if immediate_text:
        return int(immediate_text[1], 16)
    op, fields = parse_word(text)
    return encode(op, raw=True, **fields)


def disasm_words(words: list[int]) -> list[str]:
    """One line a word of a kernel; the word after a ``VSETI`` is its immediate."""
    lines: list[str] = []
    pending = False
    for word in words:
        if pending:
            lines.append(f"  .imm 0x{word:08x}")
            pending = False
            continue
        lines.append(disasm(word))
        pending = word >> 27 == g.VectorOp.VSETI
    return lines


def encode_envelope(op: int | str, **fields: int) -> int:
    """256-bit payload of ``IMEM``, ``DESC`` or ``RUN`` with the fields of its layout.

    Raises:
        EncodingError: unknown instruction or field, or a value out of range.
    """
    if isinstance(op, str) and op not in g.EnvelopeOp.__members__:
        raise EncodingError(f"no envelope instruction {op!r}; known: {', '.join(g.EnvelopeOp.__members__)}")
    if isinstance(op, int) and op not in list(g.EnvelopeOp):
        raise EncodingError(f"envelope opcode {op} is outside {', '.join(str(int(o)) for o in g.EnvelopeOp)}")
    kind = g.EnvelopeOp[op] if isinstance(op, str) else g.EnvelopeOp(op)
    return codec(f"VC_{kind.name}").encode(op=kind, **fields)


@lru_cache(maxsize=1 << 14)
def load_word(addr: int, word: int) -> int:
    """``IMEM`` payload: instruction memory word ``addr`` = ``word``."""
    return encode_envelope("IMEM", addr=addr, word=word)


@cache
def _descriptor(ad: int) -> int:
    """``DESC`` payload of base 0."""
    return encode_envelope("DESC", ad=ad, fld=0)


@cache
def run(pc: int) -> int:
    """``RUN`` payload: start the kernel at word ``pc``."""
    return encode_envelope("RUN", pc=pc)


def set_base(ad: int, base: int) -> int:
    """``DESC`` payload: 40-bit base of descriptor ``ad``."""
    if not 0 <= base <= BASE_MAX:
        raise EncodingError(f"VC_DESC.base = {base} is outside 0..{BASE_MAX} (40 bits)")
    base = index(base)
    return _descriptor(ad) | (base & _LOW_MASK) << _BASE_LSB | base >> _BASE_LOW << _BASE_HIGH_LSB


@cache
def _heads() -> list[int]:
    """``DESC`` payloads whose base has only high bits: descriptor by descriptor, every value of these bits."""
    return [set_base(ad, high << _BASE_LOW) for ad in range(g.VC_DESCRIPTORS) for high in range(1 << _BASE_HIGH)]


def set_bases(ads: npt.NDArray[Any], bases: npt.NDArray[Any]) -> list[int]:
    """:func:`set_base` of every pair of a descriptor and a base.

    Raises:
        EncodingError: a descriptor or base out of range.
    """
    if len(ads) == 0:
        return []
    for end in (np.min, np.max):
        set_base(int(end(ads)), int(end(bases)))
    heads, chosen = _heads(), (ads << _BASE_HIGH) + (bases >> _BASE_LOW)
    lows = (bases & _LOW_MASK).tolist()
    return [heads[number] | low << _BASE_LSB for number, low in zip(chosen.tolist(), lows, strict=True)]


def set_dimension(ad: int, dim: int, stride: int, bound: int) -> int:
    """``DESC`` payload: stride (18 bits, signed) and bound (16 bits) of dimension ``dim``."""
    if not 0 <= dim < g.VC_DIMS:
        raise EncodingError(f"VC_DESC.dim = {dim} is outside 0..{g.VC_DIMS - 1}")
    half = 1 << (g.VC_STRIDE_BITS - 1)
    if not -half <= stride < half:
        raise EncodingError(f"VC_DESC.stride = {stride} is outside {-half}..{half - 1} (18 bits, signed)")
    if not 0 <= bound < 1 << g.VC_BOUND_BITS:
        raise EncodingError(f"VC_DESC.bound = {bound} is outside 0..{(1 << g.VC_BOUND_BITS) - 1} (16 bits)")
    value = (stride & (2 * half - 1)) << g.VC_BOUND_BITS | bound
    return encode_envelope("DESC", ad=ad, fld=dim + 1, value=value)


def descriptor_base(fields: dict[str, int]) -> int | None:
    """Base that a decoded ``DESC`` payload writes, None if it writes a dimension."""
    return None if fields["fld"] else fields["value_hi"] << _BASE_LOW | fields["value"]


def descriptor_dimension(fields: dict[str, int]) -> tuple[int, int, int]:
    """(dimension, stride, bound) that a decoded ``DESC`` payload with a nonzero field number writes."""
    stride = fields["value"] >> g.VC_BOUND_BITS
    if stride >> (g.VC_STRIDE_BITS - 1):
        stride -= 1 << g.VC_STRIDE_BITS
    return fields["fld"] - 1, stride, fields["value"] & ((1 << g.VC_BOUND_BITS) - 1)


def peer_base(**fields: int) -> int:
    """40-bit base of a peer drain: ``off``, ``ack_x``, ``ack_y``, ``mesh``, ``fin_x``, ``fin_y``."""
    return codec("VC_PEER_BASE").encode(**fields)


def decode_envelope(payload: int) -> tuple[g.EnvelopeOp | None, dict[str, int]]:
    """Instruction and fields of a payload; None and no fields when the opcode is unknown."""
    kind = _envelope(payload)
    if kind is None:
        return None, {}
    fields = codec(f"VC_{kind.name}").decode(payload)
    del fields["op"]
    return kind, fields


def matches_envelope(payload: int, op: int | str | None = None, **fields: int) -> bool:
    """True if ``payload`` is a legal envelope instruction, ``op`` if given, with the given fields."""
    kind = _envelope(payload)
    if kind is None or (op is not None and op not in (kind, kind.name)):
        return False
    return codec(f"VC_{kind.name}").matches(payload, **fields)


def disasm_envelope(payload: int) -> str:
    """Text of a payload, for example ``DESC A3 base <- 0x8012345680``; unknown ones as ``.word 0x...``."""
    kind, fields = decode_envelope(payload)
    if kind is None:
        return f".word 0x{payload:064x}"
    if kind is g.EnvelopeOp.IMEM:
        text = f"IMEM {fields.pop('addr')} <- {fields.pop('word'):08X}"
    elif kind is g.EnvelopeOp.RUN:
        text = f"RUN {fields.pop('pc')}"
    else:
        text = _descriptor_text(fields)
    extra = " ".join(f"{name}=0x{value:x}" for name, value in fields.items() if value)
    return f"{text} {{{extra}}}" if extra else text


def parse_envelope(text: str) -> int:
    """Payload of one line as :func:`disasm_envelope` writes it.

    Raises:
        EncodingError: the line is not an envelope instruction, or a value is out of range.
    """
    line = text.strip()
    if line.startswith(".word "):
        word = match_numbers(r"\.word (0x[0-9a-f]+)", line, ".word")[0]
        if word >> g.PAYLOAD_W:
            raise EncodingError(f".word 0x{word:x} does not fit {g.PAYLOAD_W} bits")
        return word
    match = re.fullmatch(r"(.*?)\s*(?:\{([^}]*)\})?", line)
    body = match[1] if match else line
    rest = extras(match[2] if match else None)
    for pattern, build in _ENVELOPE_LINES:
        found = re.fullmatch(pattern, body)
        if found:
            fields = codec(f"VC_{body.split()[0]}").decode(build(*found.groups())) | rest
            del fields["op"]
            return encode_envelope(body.split()[0], **fields)
    raise EncodingError(f"cannot read envelope instruction {text!r}")


def _other_field(ad: str, fld: str, value: str) -> int:
    return encode_envelope("DESC", ad=int(ad), fld=int(fld), value=int(value, 16))


_ENVELOPE_LINES: tuple[tuple[str, Callable[..., int]], ...] = (
    (r"IMEM (\d+) <- ([0-9a-fA-F]+)", lambda addr, word: load_word(int(addr), int(word, 16))),
    (r"RUN (\d+)", lambda pc: run(int(pc))),
    (r"DESC A(\d+) base <- (0x[0-9a-fA-F]+)", lambda ad, base: set_base(int(ad), int(base, 16))),
    (
        r"DESC A(\d+) dimension (\d+) <- stride (-?\d+), bound (\d+)",
        lambda ad, dim, stride, bound: set_dimension(int(ad), int(dim), int(stride), int(bound)),
    ),
    (r"DESC A(\d+) field (\d+) <- (0x[0-9a-fA-F]+)", _other_field),
)


def _descriptor_text(fields: dict[str, int]) -> str:
    ad, fld, value = fields.pop("ad"), fields.pop("fld"), fields.pop("value")
    if fld == 0:
        return f"DESC A{ad} base <- 0x{fields.pop('value_hi') << _BASE_LOW | value:x}"
    if fld > g.VC_DIMS:
        return f"DESC A{ad} field {fld} <- 0x{value:x}"
    _, stride, bound = descriptor_dimension({"fld": fld, "value": value})
    return f"DESC A{ad} dimension {fld - 1} <- stride {stride}, bound {bound}"


def _envelope(payload: int) -> g.EnvelopeOp | None:
    if payload < 0 or payload >> 256:
        return None
    number = payload >> 252
    return g.EnvelopeOp(number) if number in list(g.EnvelopeOp) else None


def _opcode(op: int | str) -> g.VectorOp:
    try:
        return g.VectorOp[op] if isinstance(op, str) else g.VectorOp(op)
    except (KeyError, ValueError):
        known = ", ".join(g.VectorOp.__members__)
        raise EncodingError(f"no vector opcode {op!r}; known: {known}") from None

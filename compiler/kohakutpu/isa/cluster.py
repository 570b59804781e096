# SPDX-License-Identifier: Apache-2.0
"""Instructions of the matmul cluster (``docs/spec/cluster.md`` section 2)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import EncodingError, codec, joined

LAYER = "L0"

INSTRUCTION = codec("MG_INST")

_LOW_BITS = INSTRUCTION.fields["addr_lo"].width
_CORE = {
    g.ClusterOp.FILL: ("fbank", "eoff", "n", "addr"),
    g.ClusterOp.GEMM: ("gm", "gn", "nk", "abank", "aoff", "bbank", "boff"),
    g.ClusterOp.DRAIN: ("n",),
}
_FLAGS = {"acc": "acc", "emit": "emit", "fuse": "fuse", "node": "dnode", "rowmajor": "rowmajor"}
_PAIRS = {"dst": ("dst_x", "dst_y"), "dack": ("dack_x", "dack_y")}
_ALIAS = {"bank": "fbank"}
_HEX = {"addr": 0, "dfin": 0, "peer0": 0, "peer1": 0, "peer2": 0}
_TOKEN = re.compile(r"(\w+)=(\(\s*\w+\s*,\s*\w+\s*\)|\w+)|(\w+)")


def encode(op: int | str, *, raw: bool = False, **fields: int) -> int:
    """256-bit payload of one instruction.

    Args:
        op: ``"FILL"``, ``"GEMM"``, ``"DRAIN"`` or their number; with ``raw`` any 4-bit number.
        raw: allow fields the opcode ignores, and reserved bits. Without it they are refused.
        fields: instruction fields; ``addr`` is the whole 40-bit byte address.

    Fields not given are 0, except ``nk`` = 1 and ``anchor`` = 40.

    Raises:
        EncodingError: unknown opcode or field, value out of range, field not used by the opcode.
    """
    number = _opcode(op, raw)
    values = dict(fields)
    if "addr" in values:
        if "addr_lo" in values or "addr_hi" in values:
            raise EncodingError("MG_INST: give addr, or addr_lo and addr_hi, not both")
        address = joined(values, g.ADDR_W, "addr", INSTRUCTION.name)
        del values["addr"]
        values["addr_lo"] = address & ((1 << _LOW_BITS) - 1)
        values["addr_hi"] = address >> _LOW_BITS
    word = INSTRUCTION.encode(op=number, **values)
    if not raw:
        _check_use(g.ClusterOp(number), values)
    return word


def towards(node: tuple[int, int], ack: tuple[int, int]) -> dict[str, int]:
    """Fields that hand a transfer to buffer 0 of the unit at ``node``, acknowledged to the node ``ack``."""
    fields = dict(zip(_PAIRS["dst"], node, strict=True)) | dict(zip(_PAIRS["dack"], ack, strict=True))
    return {"dnode": 1, "dflags": 1, **fields}


def receiver(fields: dict[str, int]) -> tuple[int, int]:
    """The node a decoded transfer goes to."""
    x, y = _PAIRS["dst"]
    return fields[x], fields[y]


def decode(word: int) -> dict[str, int]:
    """All fields of a payload, address joined; ``encode(raw=True, **decode(word)) == word``."""
    fields = INSTRUCTION.decode(word)
    fields["addr"] = fields.pop("addr_hi") << _LOW_BITS | fields.pop("addr_lo")
    return fields


def matches(word: int, **fields: int) -> bool:
    """True if ``word`` has a known opcode, no reserved bit set and every given value (``addr`` joined)."""
    if not INSTRUCTION.matches(word) or _known(word) is None:
        return False
    have = decode(word)
    return all(have[name] == value for name, value in fields.items())


def layout(op: int | str | None = None) -> str:
    """Table of the instruction fields, or of those that ``op`` uses."""
    if op is None:
        return INSTRUCTION.layout()
    name = g.ClusterOp(_opcode(op, raw=False)).name
    lines = [f"{name}: {INSTRUCTION.width} bits"]
    for spec in INSTRUCTION.fields.values():
        use = g.MG_USES[spec.name].get(name)
        if use is None:
            continue
        note = f" (if {use})" if use else ""
        bits = f"[{spec.msb}:{spec.lsb}]"
        lines.append(f"  {bits:<10} {spec.name:<10} {spec.width:>3}  {spec.meaning}{note}")
    return "\n".join(lines)


def disasm(word: int) -> str:
    """One line that :func:`parse` turns back into exactly ``word``.

    Example: ``FILL A bank=0 eoff=0 n=64 addr=0x10000``. A payload with an unknown opcode becomes
    ``.word 0x...``.
    """
    op = _known(word)
    if op is None:
        return f".word 0x{word:064x}"
    fields = decode(word)
    del fields["op"]
    parts = [op.name]
    if op is g.ClusterOp.FILL:
        parts.append("B" if fields.pop("sel") else "A")
    for name in _CORE[op]:
        parts.append(_pair(name, fields.pop(name)))
    if op is g.ClusterOp.DRAIN and not fields["fuse"]:
        parts.append(_pair("addr", fields.pop("addr")))
    parts += _rest(fields)
    return " ".join(parts)


def parse(text: str) -> int:
    """Payload of one line of assembly, as :func:`disasm` writes it; unused fields may be given.

    Raises:
        EncodingError: the text names an unknown instruction, field or value.
    """
    words = text.split(None, 1)
    if not words:
        raise EncodingError("empty instruction")
    if words[0] == ".word":
        return _raw_word(words[1] if len(words) > 1 else "")
    fields: dict[str, int] = {}
    for name, value in _tokens(words[1] if len(words) > 1 else ""):
        if name in fields:
            raise EncodingError(f"{words[0]}: {name} is given twice")
        fields[name] = value
    return encode(words[0], raw=True, **fields)


def _opcode(op: int | str, raw: bool) -> int:
    if isinstance(op, str):
        if op not in g.ClusterOp.__members__:
            raise EncodingError(f"no cluster instruction {op!r}; known: {', '.join(g.ClusterOp.__members__)}")
        return int(g.ClusterOp[op])
    if not raw and op not in list(g.ClusterOp):
        known = ", ".join(f"{item.name} {item.value}" for item in g.ClusterOp)
        raise EncodingError(f"MG_INST.op = {op} is not one of {known}")
    return op


def _known(word: int) -> g.ClusterOp | None:
    if word < 0 or word >> INSTRUCTION.width:
        return None
    number = word >> INSTRUCTION.fields["op"].lsb
    return g.ClusterOp(number) if number in list(g.ClusterOp) else None


def _check_use(op: g.ClusterOp, values: dict[str, int]) -> None:
    """Refuse a value in a field that the hardware would ignore: the caller meant something else."""
    for name, value in values.items():
        spec = INSTRUCTION.fields[name]
        if value == spec.default:
            continue
        uses = g.MG_USES[name]
        if op.name not in uses:
            users = ", ".join(uses) or "nothing"
            raise EncodingError(f"MG_INST.{name} = {value}: not used by {op.name}, only by {users}")
        condition = uses[op.name]
        if condition and not values.get(condition.split(" ")[0], 0):
            raise EncodingError(f"MG_INST.{name} = {value}: {op.name} uses this field only if {condition}")


def _pair(name: str, value: int) -> str:
    shown = f"0x{value:x}" if name in _HEX else str(value)
    return f"{'bank' if name == 'fbank' else name}={shown}"


def _rest(fields: dict[str, int]) -> Iterator[str]:
    for name, field in _FLAGS.items():
        if fields.pop(field):
            yield name
    for name, (x, y) in _PAIRS.items():
        at = (fields.pop(x), fields.pop(y))
        if at != (0, 0):
            yield f"{name}=({at[0]},{at[1]})"
    for name, value in fields.items():
        default = 0 if name == "addr" else INSTRUCTION.fields[name].default
        if value != default:
            yield _pair(name, value)


def _number(text: str, name: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise EncodingError(f"{name}={text} is not a number") from None


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    at = 0
    for match in _TOKEN.finditer(text):
        if text[at : match.start()].strip():
            raise EncodingError(f"cannot read {text[at : match.start()].strip()!r}")
        at = match.end()
        name, value, flag = match.groups()
        if flag in ("A", "B"):
            yield "sel", int(flag == "B")
        elif flag is not None:
            if flag not in _FLAGS:
                raise EncodingError(f"unknown flag {flag!r}; flags: {', '.join(_FLAGS)}")
            yield _FLAGS[flag], 1
        elif name in _PAIRS:
            yield from _coordinates(name, value)
        else:
            yield _ALIAS.get(name, name), _number(value, name)
    if text[at:].strip():
        raise EncodingError(f"cannot read {text[at:].strip()!r}")


def _coordinates(name: str, text: str) -> Iterator[tuple[str, int]]:
    parts = text.strip("()").split(",")
    if len(parts) != 2:
        raise EncodingError(f"{name}={text} is not a coordinate (x,y)")
    for field, part in zip(_PAIRS[name], parts, strict=True):
        yield field, _number(part.strip(), name)


def _raw_word(text: str) -> int:
    word = _number(text.strip(), ".word")
    if not 0 <= word < 1 << INSTRUCTION.width:
        raise EncodingError(f".word 0x{word:x} does not fit {INSTRUCTION.width} bits")
    return word

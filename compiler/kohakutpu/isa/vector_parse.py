# SPDX-License-Identifier: Apache-2.0
"""Assembler of the vector core: the inverse of its disassembler."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import EncodingError

LAYER = "L0"

Fields = dict[str, int]

_LINE = re.compile(r"(\w+)(?:\.(\w+))?\s*(.*?)\s*(?:\{([^}]*)\})?")
_WHERE = re.compile(r"(.*?)(?: where( not| reserved)? P(\d+))?")
_SOURCES = {"v": g.Source.V, "S": g.Source.S, "K": g.Source.K}


def parse_word(text: str) -> tuple[g.VectorOp, Fields]:
    """Opcode and fields of one line of assembly.

    Raises:
        EncodingError: the line is not an instruction.
    """
    match = _LINE.fullmatch(text.strip())
    if match is None or match[1] not in g.VectorOp.__members__:
        raise EncodingError(f"cannot read vector instruction {text!r}")
    op = g.VectorOp[match[1]]
    fields = _READERS[g.VC_OPCODES[op.name][0]](op, match[2] or "", match[3])
    for name, value in extras(match[4]).items():
        if name in fields:
            raise EncodingError(f"{text!r}: {name} is given twice")
        fields[name] = value
    return op, fields


def extras(text: str | None) -> Fields:
    """The ``name=value`` pairs that follow an instruction in braces."""
    out: Fields = {}
    for part in (text or "").split():
        name, _, value = part.partition("=")
        try:
            out[name] = int(value, 0)
        except ValueError:
            raise EncodingError(f"{part!r} is not name=number") from None
    return out


def match_numbers(pattern: str, text: str, what: str) -> list[int]:
    """The groups of ``pattern`` as integers; absent groups are 0."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise EncodingError(f"{what}: cannot read operands {text!r}")
    return [int(group or "0", 0) for group in match.groups()]


def _value(kind: type[IntEnum], name: str, op: g.VectorOp) -> int:
    if name in kind.__members__:
        return int(kind[name])
    if re.fullmatch(r"reserved\d+", name):
        return int(name[len("reserved") :])
    raise EncodingError(f"{op.name}: {name!r} is not one of {', '.join(kind.__members__)}")


def _predicate(text: str) -> tuple[str, Fields]:
    match = _WHERE.fullmatch(text)
    if match is None or match[3] is None:
        return text, {}
    mode = {None: 1, " not": 2, " reserved": 3}[match[2]]
    return match[1], {"pm": mode, "pr": int(match[3])}


def _alu(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    _, cls, reads, _, _ = g.VC_OPCODES[op.name]
    body, fields = _predicate(text)
    target, *operands = [part.strip() for part in body.split(",")]
    letter = "P" if cls == "compare" else "v"
    fields["pr" if cls == "compare" else "vd"] = match_numbers(rf"{letter}(\d+)", target, op.name)[0]
    if len(operands) != len(reads):
        raise EncodingError(f"{op.name} takes {len(reads)} operands, got {len(operands)} in {text!r}")
    for which, operand in zip(reads, operands, strict=True):
        if operand == "C":
            fields[f"s{which}"] = g.Source.C
            continue
        if operand[:1] not in _SOURCES:
            raise EncodingError(f"{op.name}: operand {operand!r} is not v, S or K with a number, or C")
        fields[f"s{which}"] = _SOURCES[operand[:1]]
        fields[f"v{which}"] = match_numbers(r"\w(\d+)", operand, op.name)[0]
    return fields


def _ldst(op: g.VectorOp, suffix: str, text: str) -> Fields:
    vd, ad, off = match_numbers(r"v(\d+), A(\d+)([+-]\d+)?", text, op.name)
    return {"dtype": _value(g.VectorDtype, suffix, op), "vd": vd, "ad": ad, "off": off}


def _cvt(op: g.VectorOp, suffix: str, text: str) -> Fields:
    vd, va = match_numbers(r"v(\d+), v(\d+)", text, op.name)
    return {"dtype": _value(g.VectorDtype, suffix, op), "vd": vd, "va": va}


def _red(op: g.VectorOp, suffix: str, text: str) -> Fields:
    kind = _value(g.Reduction, suffix, op)
    if kind in (g.Reduction.ANY, g.Reduction.ALL):
        sd, pr = match_numbers(r"S(\d+), P(\d+)", text, op.name)
        return {"kind": kind, "sd": sd, "pr": pr}
    if kind in (g.Reduction.DOT, g.Reduction.EXPSUM):
        sd, va, vb = match_numbers(r"S(\d+), v(\d+)(?:, | -> )v(\d+)", text, op.name)
        return {"kind": kind, "sd": sd, "va": va, "vb": vb}
    if kind == g.Reduction.SUMSQ:
        sd, va, *other = match_numbers(r"S(\d+), v(\d+)(?:, v(\d+))?", text, op.name)
        return {"kind": kind, "sd": sd, "va": va, "vb": other[0] if text.count(",") > 1 else va}
    sd, va = match_numbers(r"S(\d+), v(\d+)", text, op.name)
    return {"kind": kind, "sd": sd, "va": va}


def _bcast(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    if text.startswith("v"):
        d, a = match_numbers(r"v(\d+), S(\d+)", text, op.name)
        return {"sa": g.BroadcastSource.S, "d": d, "a": a}
    d, a = match_numbers(r"S(\d+), v(\d+)", text, op.name)
    return {"d": d, "a": a}


def _shuf(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    body, fields = _predicate(text)
    vd, va, sk = match_numbers(r"v(\d+), v(\d+), S(\d+)", body, op.name)
    return {"vd": vd, "va": va, "sk": sk, **fields}


def _setvl(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    return {"sa": match_numbers(r"S(\d+)", text, op.name)[0]}


def _setmode(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    return {"mode": _value(g.LaneMode, text, op)}


def _seti(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    if text == "K3":
        return {"sel": g.ImmediateTarget.K3}
    return {"sd": match_numbers(r"S(\d+)", text, op.name)[0]}


def _loop(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    sa, body = match_numbers(r"S(\d+), (\d+)", text, op.name)
    return {"sa": sa, "body": body}


def _none(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    match_numbers(r"", text, op.name)
    return {}


def _fill(op: g.VectorOp, suffix: str, text: str) -> Fields:
    del suffix
    ad, l1 = match_numbers(r"A(\d+), L1 (\d+)", text, op.name)
    return {"ad": ad, "l1": l1}


def _drain(op: g.VectorOp, suffix: str, text: str) -> Fields:
    if "->" not in text:
        return _fill(op, suffix, text)
    pattern = r"A(\d+), L1 (\d+) -> node \((\d+),(\d+)\) buf (\d+)(?:, signal)?"
    ad, l1, x, y, buf = match_numbers(pattern, text, op.name)
    signal = int(text.endswith("signal"))
    return {"ad": ad, "l1": l1, "node": 1, "dst_x": x, "dst_y": y, "buf": buf, "signal": signal}


_READERS: dict[str, Callable[[g.VectorOp, str, str], Fields]] = {
    "ALU": _alu,
    "LDST": _ldst,
    "CVT": _cvt,
    "RED": _red,
    "BCAST": _bcast,
    "SHUF": _shuf,
    "SETVL": _setvl,
    "SETMODE": _setmode,
    "SETI": _seti,
    "LOOP": _loop,
    "NONE": _none,
    "FILL": _fill,
    "DRAIN": _drain,
}

# SPDX-License-Identifier: Apache-2.0
"""Assembly text of the vector core's 32-bit words."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from kohakutpu.isa import generated as g

LAYER = "L0"

_Fields = dict[str, int]


def word_text(op: g.VectorOp, fields: _Fields) -> str:
    """Text of a decoded word; fields the text has no place for follow in braces when they are not 0."""
    rest = dict(fields)
    text = _WRITERS[g.VC_OPCODES[op.name][0]](op, rest)
    extra = " ".join(f"{name}={value}" for name, value in rest.items() if value)
    return f"{text} {{{extra}}}" if extra else text


def _name(kind: type[IntEnum], value: int) -> str:
    return kind(value).name if value in list(kind) else f"reserved{value}"


def _operand(rest: _Fields, which: str) -> str:
    source, number = rest.pop(f"s{which}"), rest[f"v{which}"]
    if source == g.Source.C:
        return "C"
    del rest[f"v{which}"]
    return f"{'vSCK'[source]}{number}"


def _where(rest: _Fields) -> str:
    mode, predicate = rest.pop("pm"), rest["pr"]
    if mode == g.PredicateMode.ALL:
        return ""
    del rest["pr"]
    return f" {('', 'where', 'where not', 'where reserved')[mode]} P{predicate}"


def _alu(op: g.VectorOp, rest: _Fields) -> str:
    _, cls, reads, _, _ = g.VC_OPCODES[op.name]
    if cls == "compare":
        target, where = f"P{rest.pop('pr')}", ""
    else:
        target, where = f"v{rest.pop('vd')}", _where(rest)
    operands = [_operand(rest, which) for which in reads]
    return f"{op.name} {', '.join([target, *operands])}{where}"


def _ldst(op: g.VectorOp, rest: _Fields) -> str:
    offset = rest.pop("off")
    shift = f"{offset:+d}" if offset else ""
    dtype = _name(g.VectorDtype, rest.pop("dtype"))
    return f"{op.name}.{dtype} v{rest.pop('vd')}, A{rest.pop('ad')}{shift}"


def _cvt(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name}.{_name(g.VectorDtype, rest.pop('dtype'))} v{rest.pop('vd')}, v{rest.pop('va')}"


def _red(op: g.VectorOp, rest: _Fields) -> str:
    kind = rest.pop("kind")
    text = f"{op.name}.{_name(g.Reduction, kind)} S{rest.pop('sd')}"
    if kind in (g.Reduction.ANY, g.Reduction.ALL):
        return f"{text}, P{rest.pop('pr')}"
    va = rest.pop("va")
    text += f", v{va}"
    if kind == g.Reduction.DOT:
        text += f", v{rest.pop('vb')}"
    elif kind == g.Reduction.EXPSUM:
        text += f" -> v{rest.pop('vb')}"
    elif kind == g.Reduction.SUMSQ:
        vb = rest.pop("vb")
        text += "" if vb == va else f", v{vb}"
    return text


def _bcast(op: g.VectorOp, rest: _Fields) -> str:
    source, d, a = rest["sa"], rest.pop("d"), rest.pop("a")
    if source == g.BroadcastSource.S:
        del rest["sa"]
        return f"{op.name} v{d}, S{a}"
    return f"{op.name} S{d}, v{a}"


def _shuf(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name} v{rest.pop('vd')}, v{rest.pop('va')}, S{rest.pop('sk')}{_where(rest)}"


def _setvl(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name} S{rest.pop('sa')}"


def _setmode(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name} {_name(g.LaneMode, rest.pop('mode'))}"


def _seti(op: g.VectorOp, rest: _Fields) -> str:
    if rest["sel"] == g.ImmediateTarget.K3:
        del rest["sel"]
        return f"{op.name} K3"
    return f"{op.name} S{rest.pop('sd')}"


def _loop(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name} S{rest.pop('sa')}, {rest.pop('body')}"


def _none(op: g.VectorOp, rest: _Fields) -> str:
    del rest
    return op.name


def _fill(op: g.VectorOp, rest: _Fields) -> str:
    return f"{op.name} A{rest.pop('ad')}, L1 {rest.pop('l1')}"


def _drain(op: g.VectorOp, rest: _Fields) -> str:
    text = _fill(op, rest)
    if rest.pop("node"):
        text += f" -> node ({rest.pop('dst_x')},{rest.pop('dst_y')}) buf {rest.pop('buf')}"
        text += ", signal" if rest.pop("signal") else ""
    return text


_WRITERS: dict[str, Callable[[g.VectorOp, _Fields], str]] = {
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

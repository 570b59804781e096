# SPDX-License-Identifier: Apache-2.0
"""The verifier: what makes a graph malformed (docs/spec/compiler.md 4)."""

from __future__ import annotations

from kohakutpu.chain import FOLDS
from kohakutpu.errors import CompileError
from kohakutpu.graph.check_ops import check_contract, check_lanes, check_rearrange
from kohakutpu.graph.check_parts import check_adjacent, check_cover, check_part
from kohakutpu.graph.ir import KINDS, REARRANGE, Graph, Op, Value

LAYER = "L3"

_TIERS = ("", "dram", "l2")
_CONTRACT = {"gm", "gn", "nk", "batch", "join", "split", "route"}
_LANES = {"rows", "cols"}


def verify(graph: Graph) -> None:
    """Refuse a malformed graph.

    Raises:
        CompileError: use before definition, rebinding, arity, attribute, dtype, shape, a view outside its buffer,
            blocks that do not divide, parts that leave a gap or overlap, an output never written, or an input never
            read or read only by what leads to no stored value.
    """
    for v in graph.values.values():
        _check_value(graph, v)
    check_adjacent(graph)
    written = _check_ops(graph)
    parts = graph.parts()
    for parent, members in parts.items():
        missing = [v.name for v in members if v.name not in written]
        if missing:
            raise CompileError(f"part {missing[0]} of {parent} is never written; write it or leave it out")
        check_cover(graph.values[parent], members)
    for v in graph.values.values():
        if v.role == "out" and not v.of and v.name not in written and v.name not in parts:
            raise CompileError(f"output {v.name} is never written")
    _check_inputs(graph)


def _check_inputs(graph: Graph) -> None:
    """Refuse an input that nothing reads; an op whose result leads to no stored value is never run."""
    needed: set[str] = set()
    for op in reversed(graph.ops):
        if op.result in needed or graph.values[op.result].in_memory:
            needed.update(op.args)
    for v in graph.values.values():
        if v.role != "in" or v.name in needed:
            continue
        dead = next((op for op in graph.ops if v.name in op.args), None)
        if dead is None:
            raise CompileError(f"input {v.name} is never read")
        raise CompileError(
            f"input {v.name} is read only by {dead.text()}, which leads to no stored value; store what is made of "
            "it, or leave the input out"
        )


def _check_value(graph: Graph, v: Value) -> None:
    if v.tier not in _TIERS:
        raise CompileError(f"value {v.name} asks for tier {v.tier!r}; known: 'dram', 'l2', or '' for none")
    if v.tier and not v.in_memory:
        raise CompileError(f"value {v.name} asks for tier {v.tier!r} but has no words in memory; leave the tier out")
    if v.of:
        check_part(graph, v)
    elif v.window is not None:
        raise CompileError(f"value {v.name} has window {v.window.text()} of no buffer; name the buffer")


def _check_ops(graph: Graph) -> set[str]:
    """Check every op in order; the values that ops write."""
    defined = {v.name for v in graph.values.values() if v.role in ("in", "table", "const")}
    open_parts = {parent: {v.name for v in members} for parent, members in graph.parts().items()}
    written: set[str] = set()
    made: dict[str, str] = {}
    for op in graph.ops:
        _check_form(graph, op)
        for name in op.args:
            _check_read(graph, op, name, defined, open_parts)
        result = graph.values[op.result]
        if op.result in defined or op.result in written:
            raise CompileError(f"{op.kind}: value {op.result} is assigned a second time")
        if op.result in open_parts:
            raise CompileError(f"{op.kind}: {op.result} is written in parts; write a part of it")
        if op.kind == "contract":
            check_contract(graph, op)
        elif op.kind == REARRANGE:
            check_rearrange(graph, op)
        else:
            check_lanes(graph, op, made)
        written.add(op.result)
        made[op.result] = op.kind
        if result.of:
            open_parts[result.of].discard(op.result)
            if not open_parts[result.of]:
                defined.add(result.of)
        else:
            defined.add(op.result)
    return written


def _check_form(graph: Graph, op: Op) -> None:
    if op.kind not in KINDS:
        raise CompileError(f"op kind {op.kind!r} is unknown; known: {', '.join(KINDS)}")
    if len(op.args) != KINDS[op.kind]:
        raise CompileError(f"{op.kind} takes {KINDS[op.kind]} operands, got {len(op.args)}: {op.args}")
    known = {"contract": _CONTRACT, REARRANGE: set[str]()}.get(op.kind, _LANES)
    stray = {k for k, _ in op.attrs} - known
    if stray:
        raise CompileError(f"{op.kind}: unknown attributes {sorted(stray)}")
    if op.reads and len(op.reads) != len(op.args):
        raise CompileError(f"{op.kind}: {op.result} states {len(op.reads)} reads for {len(op.args)} operands")
    for name in (*op.args, op.result):
        if name not in graph.values:
            raise CompileError(f"{op.kind}: value {name} was never declared")
    if len({k for k, _ in op.attrs} & _LANES) == 1:
        raise CompileError(f"{op.kind}: {op.result} states rows or cols alone; state both or none")
    if op.kind in FOLDS and op.read(0) is not None and op.space is None:
        raise CompileError(f"{op.kind}: {op.result} folds a spread read; state rows and cols of what is folded")


def _check_read(graph: Graph, op: Op, name: str, defined: set[str], open_parts: dict[str, set[str]]) -> None:
    value = graph.values[name]
    if value.of:
        raise CompileError(f"{op.kind}: {name} is a part of {value.of}; read {value.of}")
    if name in defined:
        return
    left = open_parts.get(name)
    if left:
        raise CompileError(f"{op.kind}: {name} is read before its part {min(left)} is written")
    raise CompileError(f"{op.kind}: value {name} is used before it is defined")

# SPDX-License-Identifier: Apache-2.0
"""Several calls as one program (docs/spec/compiler.md 13.4).

The graph of a sequence of calls is their graphs one after the other: the result of a call that a later one reads
becomes a temp. The schedule then chooses byte orders, places and conversions for all of them together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kohakutpu.graph import Graph, Op, verify
from kohakutpu.kernels import Trace
from kohakutpu.tensor import KernelCall
from kohakutpu.tensor.operand import Operand, Shape

USES = ("left", "right", "lanes")
"""What reads an operand: products as their left or right operand, or lane operations."""


@dataclass(frozen=True)
class Part:
    """A call of a sequence.

    Args:
        call: its operands stand for shapes; what they hold does not matter.
        reads: for each operand by port, the name of the input or of the earlier result it is.
        result: name of what it gives.
        shape: of the result.
    """

    call: KernelCall
    reads: Mapping[str, str]
    result: str
    shape: Shape


def joinable(parts: Sequence[Part]) -> bool:
    """True if every value has one matrix in all calls that touch it."""
    known: dict[str, tuple[int, int]] = {}
    for part in parts:
        values = part.call.trace.graph.values
        (out,) = (v for v in values.values() if v.role == "out" and not v.of)
        for name, shape in [*((w, values[port].shape) for port, w in part.reads.items()), (part.result, out.shape)]:
            if known.setdefault(name, shape) != shape:
                return False
    return True


@dataclass(frozen=True)
class Joined:
    """One call, and for each of its inputs the input or result of the sequence it holds."""

    call: KernelCall
    sources: Mapping[str, str]


def joined(parts: Sequence[Part], inputs: Mapping[str, Operand], name: str, wanted: Collection[str] = ()) -> Joined:
    """One call that does what ``parts`` do; its results are the last one and those ``wanted``.

    An input that is read in several ways, as a left and as a right operand of products for example, is as many inputs
    of the call: a buffer has one byte order.

    Args:
        inputs: what the inputs hold, by name.
        name: of the kernel.

    Raises:
        CompileError: a graph the verifier refuses.
    """
    graph, operands, sources = Graph(), dict[str, Operand](), dict[str, str]()
    results = {p.result: p.shape for p in parts if p is parts[-1] or p.result in wanted}
    made = {p.result for p in parts}
    uses: dict[str, set[str]] = {}
    for part in parts:
        for port, use in _uses(part).items():
            uses.setdefault(part.reads[port], set()).add(use)
    several = {n for n, found in uses.items() if len(found) > 1 and n not in made}
    for part in parts:
        source = part.call.trace.graph
        names = _names(part, several)
        for v in source.values.values():
            new = names[v.name]
            if v.role == "in" and new in graph.values:
                continue
            role = "temp" if v.role == "out" and part.result not in results else v.role
            graph.value(replace(v, name=new, role=role, of=names.get(v.of, "")))
            if v.role == "in":
                sources[new] = part.reads[v.name]
                operands[new] = inputs[sources[new]].reshape(v.shape)
            elif v.name in part.call.operands:
                operands[new] = part.call.operands[v.name]
        graph.ops += [_renamed(op, names) for op in source.ops]
        graph.adjacent += [tuple(names[n] for n in group) for group in source.adjacent]
    verify(graph)
    trace = Trace(name, graph, dict(parts[-1].call.trace.extents))
    return Joined(KernelCall(trace, operands, results), sources)


def _uses(part: Part) -> dict[str, str]:
    """What reads each port; products come first."""
    out: dict[str, str] = {}
    for op in part.call.trace.graph.ops:
        for position, name in enumerate(op.args):
            if name in part.reads:
                use = USES[position] if op.kind == "contract" else USES[-1]
                out[name] = min(use, out.get(name, use), key=USES.index)
    return out


def _names(part: Part, several: Collection[str]) -> dict[str, str]:
    """New names of the values of a call: inputs and results have those of the sequence."""
    out, uses = {}, _uses(part)
    for v in part.call.trace.graph.values.values():
        if v.role == "in":
            read = part.reads[v.name]
            out[v.name] = f"{read}.{uses[v.name]}" if read in several else read
        else:
            whole = v.role == "out" and not v.of
            out[v.name] = part.result if whole else f"{part.result}.{v.name}"
    return out


def _renamed(op: Op, names: Mapping[str, str]) -> Op:
    return replace(op, args=tuple(names[a] for a in op.args), result=names[op.result])


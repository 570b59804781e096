# SPDX-License-Identifier: Apache-2.0
"""Random kernels with random knobs, compiled and checked on the model (docs/spec/compiler.md 17).

``python tb/random_kernels.py SEED ...`` repeats single kernels; ``--chunk N`` the 100 kernels of a chunk.

Every kernel either compiles or is refused for a reason of :data:`REFUSALS`. A compiled one survives both file forms
of the artifact, the text form of its unit programs and decode and encode of each payload; its result equals the
reference arithmetic on whole arrays bit for bit and lies, like the result of the float64 interpreter, inside the
bounds of :mod:`ktpu.numerics_bounds`, whose derivation stands there.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

import ktpu
from kohakuabi import Artifact
from kohakubench.programs import device
from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.graph import interpret
from kohakutpu.isa import cluster, vector
from kohakutpu.isa.generated import EnvelopeOp, VectorOp
from kohakutpu.model.numerics import error_metrics
from kohakutpu.program import UnitProgram
from ktpu.diagnosis import places, unit_kinds
from ktpu.numerics_bounds import bounds
from ktpu.numerics_reference import exact_bits, real
from random_graphs import KINDS, Kernel, kernel

__all__ = [
    "CHUNK",
    "KINDS",
    "Kernel",
    "Outcome",
    "build",
    "check",
    "check_results",
    "kernel",
    "read_back",
    "refusal",
    "summary",
]

CHUNK = 100
"""Kernels of a chunk."""

REFUSALS = {
    "registers": r"vector registers; \d+ are free",
    "constants": r"\d+ constants; a kernel keeps \d+ in scalar registers",
    "operands": r"a band reads at most 7",
    "descriptors": r"address descriptors",
    "predicates": r"comparisons of \d+ steps exceed the \d+ predicate registers",
    "interleave": r"interleave = \d+: ",
    "image": r"a kernel of \d+ words; instruction memory holds",
    "footprint": r"L1 words are needed; the core has",
    "row width": r"rows of \d+ elements; a row that is reduced or shares an operand has a multiple of 16",
    "row length": r"rows of \d+ elements are reduced; one reduction takes at most 128",
    "row words": r"is read in rows; .*rows of \d+ elements .*do not (end on a word|start on words)",
    "constant row": r"row_(max|sum) of a constant row",
    "one order": r"one buffer holds one byte order",
    "no rows": r"is computed on the machine; .*(xform_granule|gn is a multiple of 4|not padded|no walk of \d)",
    "half entry": r"is computed on the machine; .*end inside an entry",
}
"""Reasons for which a well-formed kernel may be refused, by name, as they appear in the message."""


@dataclass
class Outcome:
    """What became of a kernel: ``refused`` names the reason; elements of the result, how many have a bound, and the
    widest bound of the middle element relative to the peak."""

    kind: str
    refused: str = ""
    elements: int = 0
    bounded: int = 0
    width: float = 0.0


# ------------------------------------------------------------------ checks


def refusal(err: CompileError, k: Kernel) -> str:
    """Name of the reason in the closed list.

    Raises:
        AssertionError: a reason that is not in it.
    """
    if isinstance(err, CannotFuse) and k.options.get("fuse") == "require":
        return "cannot fuse"
    for name, pattern in REFUSALS.items():
        if re.search(pattern, str(err)):
            return name
    raise AssertionError(f"refused for a reason that is not in the list: {type(err).__name__}: {err}")


def build(k: Kernel) -> ktpu.Compiled | str:
    """The compiled kernel, or the reason it is refused for."""
    try:
        return ktpu.compile(k.call, k.machine, **k.options)
    except CompileError as err:
        return refusal(err, k)


def check_forms(compiled: ktpu.Compiled) -> None:
    """Artifact, unit programs and payloads are what their other forms say."""
    artifact = compiled.artifact
    artifact.check()
    raw = artifact.to_bytes()
    again = Artifact.from_bytes(raw)
    assert again.to_bytes() == raw
    assert again.payloads == artifact.payloads
    assert again.steps == artifact.steps
    assert Artifact.from_json(artifact.to_json()).digest() == artifact.digest()
    for band in compiled.programs:
        for unit in band:
            assert UnitProgram.from_text(unit.text()) == unit
    kinds = unit_kinds(artifact)
    for r in artifact.rounds():
        previous: dict[Any, int] = {}
        for p in places(r, kinds):
            assert _encoded(p.kind, p.payload, previous.get(p.node, 0)) == p.payload, p
            previous[p.node] = p.payload


def _encoded(kind: str, payload: int, before: int) -> int:
    """The payload decoded and encoded; the word of an image load too, unless it is an immediate."""
    if kind == "MG":
        f = cluster.decode(payload)
        return cluster.encode(f.pop("op"), raw=True, **f)
    op, f = vector.decode_envelope(payload)
    assert op is not None, hex(payload)
    if op is EnvelopeOp.IMEM:
        last, g = vector.decode_envelope(before)
        immediate = last is EnvelopeOp.IMEM and vector.matches(g["word"], VectorOp.VSETI)
        if not immediate:
            word, fields = vector.decode(f["word"])
            f["word"] = vector.encode(word, raw=True, **fields)
    return vector.encode_envelope(op, **f)


CLASSES = {"M": (4e-3, 1.5e-2, 3e-2), "V": (1e-4, 5e-4, 1.5e-3)}
"""p50, p99 and max of docs/spec/kernels.md 0."""


def check_results(k: Kernel, got: dict[str, np.ndarray]) -> Outcome:
    """Bits equal the reference arithmetic, values lie in the bounds, and so do those of the interpreter."""
    graph, operands = k.call.trace.graph, k.call.operands
    want, box = exact_bits(graph, operands), bounds(graph, operands)
    ideal = interpret(graph, operands)
    out = Outcome(k.kind)
    for name, bits in got.items():
        same = bits == want[name]
        assert same.all(), _difference(k, name, bits, want[name])
        low, high = box[name]
        known = np.isfinite(low)
        for who, values in (("the model", bits.view(np.float16).astype(np.float64)), ("the interpreter", ideal[name])):
            inside = ~known | ((low <= values) & (values <= high))
            assert inside.all(), f"{name}: {who} is outside the bounds at {_first(~inside)}"
        out.elements += bits.size
        out.bounded += int(known.sum())
        peak = np.abs(ideal[name][known]).max(initial=0.0)
        if peak > 0:
            out.width = max(out.width, float(np.median((high - low)[known]) / peak))
    if k.norm:
        _check_class(k, got)
    return out


def _check_class(k: Kernel, got: dict[str, np.ndarray]) -> None:
    want = real(k.call.trace.graph, k.call.operands)
    for name, bits in got.items():
        e = error_metrics(bits.view(np.float16), want[name])
        limits = CLASSES[k.norm]
        found = (e.p50, e.p99, e.max)
        assert all(f <= limit for f, limit in zip(found, limits, strict=True)), (name, k.norm, found)


def _first(bad: np.ndarray) -> str:
    return f"{[int(i) for i in np.argwhere(bad)[0]]} ({int(bad.sum())} of {bad.size} elements)"


def _difference(k: Kernel, name: str, got: np.ndarray, want: np.ndarray) -> str:
    at = tuple(int(i) for i in np.argwhere(got != want)[0])
    count = int((got != want).sum())
    return f"{name}: {count} of {got.size} differ, first at {at}: {got[at]:#06x}, reference {want[at]:#06x}"


def read_back(dev: Any, compiled: ktpu.Compiled) -> dict[str, np.ndarray]:
    """FP16 bits of every output."""
    return {
        o.name: ktpu.read_output(o, dev.read(o.address, o.nbytes)).view(np.uint16) for o in compiled.artifact.outputs
    }


def check(seed: int) -> Outcome:
    """Generate, compile, run and check one kernel.

    Raises:
        AssertionError: what differs, with the kernel's graph, options and the command that repeats it.
    """
    k = kernel(seed)
    try:
        compiled = build(k)
        if isinstance(compiled, str):
            return Outcome(k.kind, compiled)
        check_forms(compiled)
        dev = device(k.body)
        done = dev.run(compiled.artifact)
        assert not done.failed, done.problems()
        return check_results(k, read_back(dev, compiled))
    except Exception as err:
        shown = f"{k.call.trace.graph.text()}\noptions {k.options}, features {k.body['features']}"
        raise AssertionError(f"{type(err).__name__}: {err}\n{shown}\nrepeat: {k.repeat}") from err


def summary(outcomes: list[Outcome]) -> str:
    """Counts of kinds and refusals, and how much the bounds say."""
    kinds = Counter(f"{o.kind}{' refused' if o.refused else ''}" for o in outcomes)
    reasons = Counter(o.refused for o in outcomes if o.refused)
    elements, bounded = sum(o.elements for o in outcomes), sum(o.bounded for o in outcomes)
    widths = [o.width for o in outcomes if o.bounded]
    share = bounded / max(1, elements)
    return (
        f"{len(outcomes)} kernels {dict(sorted(kinds.items()))}, refused {dict(reasons.most_common())}, "
        f"{elements:,} elements equal, {share:.1%} with a bound, median width {np.median(widths or [0]):.1e} of peak"
    )


def main(argv: list[str]) -> int:
    """Check the named kernels or chunks and print what became of them; 1 if one fails."""
    seeds = [int(a) for a in argv if a.isdigit()]
    if "--chunk" in argv:
        seeds = [CHUNK * c + i for c in seeds for i in range(CHUNK)]
    outcomes: list[Outcome] = []
    failed, start = 0, time.monotonic()
    for seed in seeds:
        try:
            outcomes.append(check(seed))
        except AssertionError as err:
            failed += 1
            print(f"kernel {seed}: {err}\n", flush=True)
        if len(outcomes) % CHUNK == 0:
            print(f"{len(outcomes)} checked, {failed} failed, last {seed}", file=sys.stderr, flush=True)
    print(f"{summary(outcomes)}; {failed} failed, {len(seeds) / (time.monotonic() - start):.1f} kernels/s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

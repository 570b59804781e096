# SPDX-License-Identifier: Apache-2.0
"""Random kernels with random knobs, compiled and checked on the model (docs/spec/compiler.md 17).

``python tb/random_kernels.py SEED ...`` repeats single kernels; ``--chunk N ...`` the 100 kernels of each chunk.
``--deep`` takes programs of several layers (:mod:`random_deep`) instead, ``--variants`` compiles each of them in
other ways too and compares the bits.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import ktpu
from kohakuabi import Artifact
from kohakubench.programs import device
from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.graph import Graph, Value, interpret
from kohakutpu.isa import cluster, vector
from kohakutpu.isa.generated import EnvelopeOp, VectorOp
from kohakutpu.kernels import Trace
from kohakutpu.model.numerics import e8m15_to_fp16, error_metrics
from kohakutpu.program import UnitProgram
from kohakutpu.schedule.relayout import RelayoutBand
from kohakutpu.tensor import Call
from ktpu.diagnosis import places, unit_kinds
from ktpu.numerics_bounds import bounds
from ktpu.numerics_graph import evaluate
from ktpu.numerics_reference import Codes, exact_bits, real
from random_deep import FORMS, deep, in_pieces
from random_graphs import KINDS, Kernel, kernel

__all__ = [
    "CHUNK",
    "FORMS",
    "KINDS",
    "Kernel",
    "Outcome",
    "build",
    "check",
    "check_results",
    "deep",
    "kernel",
    "read_back",
    "refusal",
    "summary",
    "variants",
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
    "row words": r"is read in rows; .*rows of \d+ elements do not end on a word; use a multiple of 16 columns",
    "constant row": r"row_(max|sum) of a constant row",
    "one order": r"one buffer holds one byte order",
    "no rows": r"is (computed on the machine|read in rows); .*(xform_granule|gn is a multiple of 4|no walk of \d)",
    "ragged": r"is computed on the machine; .*use a multiple of 16 columns",
}
"""Reasons for which a well-formed kernel may be refused, by name, as they appear in the message."""


@dataclass
class Outcome:
    """What became of a kernel: ``refused`` names the reason; elements of the result, how many have a bound, and the
    widest bound of the middle element relative to the peak; what the program contained; how many other ways of
    compiling it gave the same bits, and how many were refused."""

    kind: str
    refused: str = ""
    elements: int = 0
    bounded: int = 0
    width: float = 0.0
    forms: frozenset[str] = frozenset()
    same: int = 0
    apart: int = 0


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
    graph, operands = in_pieces(k.call.trace.graph), k.call.operands
    want, box = exact_bits(graph, operands), bounds(graph, operands)
    ideal = interpret(graph, operands)
    out = Outcome(k.kind, forms=k.forms)
    assert got.keys() == want.keys()
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


def variants(k: Kernel) -> Iterator[Kernel]:
    """The kernel compiled in other ways that change no bit (docs/spec/compiler.md 0, 8.2, 8.3, 12.7)."""
    features = k.machine.features
    engines = ["cores"] if k.machine.units("VC") else []
    engines += ["mover"] if "xform_granule" in features else []
    for changed in (
        {"reuse_temps": not k.options.get("reuse_temps", True)},
        *({"convert": e} for e in engines),
        {"fuse": "never" if k.options.get("fuse", "auto") == "auto" else "auto"},
        {"clusters": 1, "cores": 1},
        {"emit_fuse": not k.options.get("emit_fuse", True)},
        {"stage_operands": False},
    ):
        yield replace(k, options={**k.options, **changed})
    for tier in ("", "dram", "l2") if k.machine.stage_bytes else ("",):
        yield replace(k, call=Call(Trace(k.call.trace.kernel, _tiered(k.call.trace.graph, tier), {}), k.call.operands))


def _tiered(graph: Graph, tier: str) -> Graph:
    """Every stored temp in one tier, members of a group with a result excepted."""
    temps = {n for n, v in graph.values.items() if v.role == "temp" and v.in_memory and not v.of}
    moved = temps - {n for group in graph.adjacent if not temps.issuperset(group) for n in group}
    values = {n: replace(v, tier=tier) if n in moved else v for n, v in graph.values.items()}
    return Graph(values, list(graph.ops), list(graph.adjacent))


def merged(k: Kernel, compiled: ktpu.Compiled) -> bool:
    """True if a conversion of this program may change bits: no predicated shuffle, and -0 or NaN somewhere.

    docs/spec/compiler.md 7.3: the form without ``vshuf_pred`` is exact for numbers and infinities only.
    """
    if all(b.exact for b in compiled.schedule.bands if isinstance(b, RelayoutBand)):
        return False
    env = evaluate(in_pieces(k.call.trace.graph), k.call.operands, Codes())
    found = [e8m15_to_fp16(v) for n, v in env.items() if k.call.trace.graph.values.get(n, _REGISTER).in_memory]
    return any(((bits == 0x8000) | (bits & 0x7FFF > 0x7C00)).any() for bits in found)


_REGISTER = Value("", "e8m15", (1, 1), "temp")


def run(k: Kernel) -> dict[str, np.ndarray] | str | None:
    """Bits of every output, the reason of a refusal, or None where the machine may lose the sign of a zero.

    Raises:
        AssertionError: a failed round or a form that does not survive.
    """
    compiled = build(k)
    if isinstance(compiled, str):
        return compiled
    check_forms(compiled)
    dev = device(k.body)
    done = dev.run(compiled.artifact)
    assert not done.failed, done.problems()
    return None if merged(k, compiled) else read_back(dev, compiled)


def check(seed: int, make: Callable[[int], Kernel] = kernel, *, others: bool = False) -> Outcome:
    """Generate, compile, run and check one kernel.

    Args:
        make: :func:`kernel` or :func:`deep`.
        others: compile it in other ways too; all that compile give the same bits.

    Raises:
        AssertionError: what differs, with the kernel's graph, options and the command that repeats it.
    """
    k = tried = make(seed)
    try:
        first = run(k)
        if isinstance(first, str):
            out = Outcome(k.kind, first, forms=k.forms)
        else:
            out = Outcome(k.kind, forms=k.forms) if first is None else check_results(k, first)
        want = first if isinstance(first, dict) else None
        for tried in variants(k) if others else ():
            got = run(tried)
            if isinstance(got, dict):
                want = want or {n: v for n, v in got.items() if check_results(tried, got)}
                for name, bits in got.items():
                    assert np.array_equal(bits, want[name]), _difference(tried, name, bits, want[name])
                out.same += 1
            out.apart += isinstance(got, str)
        return out
    except Exception as err:
        shown = f"{tried.call.trace.graph.text()}\noptions {tried.options}, features {k.body['features']}"
        raise AssertionError(f"{type(err).__name__}: {err}\n{shown}\nrepeat: {k.repeat}") from err


def summary(outcomes: list[Outcome]) -> str:
    """Counts of kinds, forms and refusals, and how much the bounds say."""
    kinds = Counter(f"{o.kind}{' refused' if o.refused else ''}" for o in outcomes)
    reasons = Counter(o.refused for o in outcomes if o.refused)
    elements, bounded = sum(o.elements for o in outcomes), sum(o.bounded for o in outcomes)
    widths = [o.width for o in outcomes if o.bounded]
    share = bounded / max(1, elements)
    forms = Counter(f for o in outcomes if not o.refused for f in o.forms)
    same, apart = sum(o.same for o in outcomes), sum(o.apart for o in outcomes)
    return (
        f"{len(outcomes)} kernels {dict(sorted(kinds.items()))}, refused {dict(reasons.most_common())}, "
        f"{elements:,} elements equal, {share:.1%} with a bound, median width {np.median(widths or [0]):.1e} of peak"
        + (f", forms {dict(sorted(forms.items()))}" if forms else "")
        + (f", {same} other ways with the same bits, {apart} refused" if same + apart else "")
    )


def main(argv: list[str]) -> int:
    """Check the named kernels or chunks and print what became of them; 1 if one fails."""
    seeds = [int(a) for a in argv if a.isdigit()]
    if "--chunk" in argv:
        seeds = [CHUNK * c + i for c in seeds for i in range(CHUNK)]
    make, others = (deep if "--deep" in argv else kernel), "--variants" in argv
    outcomes: list[Outcome] = []
    failed, start = 0, time.monotonic()
    for number, seed in enumerate(seeds, 1):
        try:
            outcomes.append(check(seed, make, others=others))
        except AssertionError as err:
            failed += 1
            print(f"kernel {seed}: {err}\n", flush=True)
        if number % CHUNK == 0:
            print(f"{len(outcomes)} checked, {failed} failed, last {seed}", file=sys.stderr, flush=True)
    print(f"{summary(outcomes)}; {failed} failed, {len(seeds) / (time.monotonic() - start):.1f} kernels/s")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

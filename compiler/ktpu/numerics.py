# SPDX-License-Identifier: Apache-2.0
"""Errors of kernels from every source against every reference (docs/spec/compiler.md 14.3, kernels.md 0).

Sources: what the graph means (L3 interpreter), the functional model, the RTL, and the program the automatic path makes
of the formula, on the model. References: float64 as written, and
the same behind the quantiser of the contractions (mx). The row "mx" against float64 is the format's own error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kohakudriver import Device, DriverError
from kohakutpu.graph import interpret
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import ErrorMetrics, error_metrics, relative_errors
from kohakutpu.rewrite import Expr
from kohakutpu.rewrite.expr import array, inputs
from kohakutpu.tensor import Call
from ktpu.automatic import auto
from ktpu.compiling import Compiled, compile, read_output
from ktpu.devices import TensorDevice
from ktpu.numerics_reference import Saturated, machine, real

F64 = npt.NDArray[np.float64]
U16 = npt.NDArray[np.uint16]
Formula = Callable[..., Expr]

INTERPRETER, MODEL, RTL, AUTO, MX, FP64 = "interpreter", "model", "RTL", "auto path", "mx", "fp64"
SEED = 3

LIMITS: Mapping[str, tuple[float, float, float, float, float]] = {
    "V": (1e-4, 5e-4, 1.5e-3, 0.0, 0.0),
    "W": (1e-4, 1e-3, 2e-3, 0.0, 0.0),
    "W8": (1.5e-3, 2e-3, 3e-3, 0.0, 0.0),
    "M": (4e-3, 1.5e-2, 3e-2, 0.06, 0.0),
    "M2": (6e-3, 2e-2, 4e-2, 0.15, 0.0),
    "A": (5e-3, 2e-2, 6e-2, 0.15, 0.0),
}
"""Upper limits of an error class: p50, p99, max, share above 1 % and above 10 %; none saturates."""


@dataclass(frozen=True)
class Case:
    """A kernel call and the error class its model result is graded by, "" for none.

    Args:
        make: gives the call from a generator of random numbers.
        note: what a reader has to know, such as the form of an activation.
        formula: the one result as an expression of the operands of the call, for the automatic path.
    """

    name: str
    make: Callable[[np.random.Generator], Call]
    norm: str = ""
    note: str = ""
    formula: Formula | None = None


CASES: dict[str, Case] = {}
"""Registered cases by name, in order."""


def register(
    name: str, norm: str = "", note: str = "", formula: Formula | None = None
) -> Callable[[Callable[[np.random.Generator], Call]], Case]:
    """Decorator: the function makes the call of a case of this name.

    >>> @register("relu 64x128", "V")
    ... def _(rng): return ktpu.relu(rng.standard_normal((64, 128)))

    Raises:
        ValueError: a name that is taken, or an unknown class.
    """
    if name in CASES:
        raise ValueError(f"case {name!r} is registered already; choose another name")
    if norm and norm not in LIMITS:
        raise ValueError(f"case {name!r}: error class {norm!r} is unknown; known: {', '.join(LIMITS)}")

    def keep(make: Callable[[np.random.Generator], Call]) -> Case:
        CASES[name] = Case(name, make, norm, note, formula)
        return CASES[name]

    return keep


@dataclass(frozen=True)
class Row:
    """One source against one reference; ``errors`` are those of every element."""

    source: str
    reference: str
    metrics: ErrorMetrics
    errors: F64


@dataclass
class Tensor:
    """One output of a case: rows, and what differs from what should be identical.

    Args:
        wrong: elements in which the model differs from the reference arithmetic on whole arrays; None where a split
            of K rounds partial sums that whole arrays do not have.
        differing: elements in which RTL and model differ, None without RTL.
    """

    name: str
    shape: tuple[int, int]
    rows: list[Row]
    wrong: int | None
    differing: int | None = None

    def row(self, source: str, reference: str) -> Row:
        """The row of a source and a reference."""
        return next(r for r in self.rows if (r.source, r.reference) == (source, reference))


@dataclass
class Report:
    """A case on a machine. ``notes`` are the RangeNotes of the compiler; ``saturated`` what was clamped, by value."""

    case: Case
    machine: str
    kernel: str
    tensors: list[Tensor]
    saturated: list[Saturated]
    notes: list[str]
    counters: dict[str, int] = field(default_factory=dict)

    def problems(self) -> Iterator[str]:
        """Every difference that must be 0 and every limit of the class that is exceeded."""
        for t in self.tensors:
            if t.wrong:
                yield f"{self.case.name}: {t.name}: model and reference arithmetic differ in {t.wrong} elements"
            if t.differing:
                yield f"{self.case.name}: {t.name}: RTL and model differ in {t.differing} elements"
            if self.case.norm:
                yield from self._exceeded(t)
        if self.case.norm and self.saturated:
            count = sum(s.count for s in self.saturated)
            yield f"{self.case.name}: {count} elements saturate; class {self.case.norm} has none"

    def _exceeded(self, tensor: Tensor) -> Iterator[str]:
        names = ("p50", "p99", "max", "over_1_percent", "over_10_percent")
        for row in tensor.rows:
            if row.reference != FP64 or row.source not in (MODEL, AUTO):
                continue
            where = f"{self.case.name}: {tensor.name}: " + (f"{AUTO}: " if row.source == AUTO else "")
            for name, limit in zip(names, LIMITS[self.case.norm], strict=True):
                got = getattr(row.metrics, name)
                if not got <= limit:
                    yield f"{where}{name} {got:.2e} exceeds {limit:.1e} of class {self.case.norm}"


def run_bits(compiled: Compiled, device: Device) -> dict[str, U16]:
    """FP16 bits of every output of a run.

    Raises:
        DriverError: a run that ended in a fault.
    """
    done = device.run(compiled.artifact)
    if done.failed:
        raise DriverError("\n".join(done.problems()))
    return {
        o.name: read_output(o, device.read(o.address, o.nbytes)).view(np.uint16) for o in compiled.artifact.outputs
    }


def automatic(case: Case, call: Call, device: Device) -> dict[str, F64]:
    """The result of the automatic program of a case, by the name of the output; nothing without formula or arrays.

    Raises:
        kohakutpu.errors.CompileError: what the compiler refuses.
        DriverError: a run that ended in a fault.
    """
    if case.formula is None or not isinstance(device, TensorDevice):
        return {}
    (name,) = (v.name for v in call.trace.graph.values.values() if v.role == "out")
    formula = case.formula(*(array(n, *v.shape) for n, v in call.values.items()))
    got = auto(formula, *(call.values[e.name] for e in inputs(formula))).run(device).numpy()
    return {name: got.astype(np.float64).reshape(call.trace.graph.values[name].shape)}


def measure(case: Case, spec: MachineSpec, model: Device, rtl: Device | None = None) -> Report:
    """Compile a case for ``spec``, run it on ``model`` and ``rtl``, and grade every source.

    Raises:
        kohakutpu.errors.CompileError: what the compiler refuses.
        DriverError: a run that ended in a fault.
    """
    call = case.make(np.random.Generator(np.random.PCG64(SEED)))
    compiled = compile(call, spec)
    graph, operands = call.trace.graph, call.values
    bits, saturated = machine(graph, operands)
    split = any((op.attr("split") or 1) > 1 for op in graph.ops)
    wanted = {FP64: real(graph, operands), MX: real(graph, operands, mx=True)}
    runs = {MODEL: run_bits(compiled, model), **({RTL: run_bits(compiled, rtl)} if rtl else {})}
    made: dict[str, Mapping[str, F64]] = {
        MX: wanted[MX],
        INTERPRETER: interpret(graph, operands),
        **{source: {n: b.view(np.float16).astype(np.float64) for n, b in run.items()} for source, run in runs.items()},
    }
    by_path = automatic(case, call, model)
    made |= {AUTO: by_path} if by_path else {}
    tensors = []
    for name, mine in runs[MODEL].items():
        clamped = sum(s.count for s in saturated if name in (s.name, graph.values[s.name].of))
        rows = [
            Row(source, reference, error_metrics(values[name], want[name], clamped if source in runs else 0), errors)
            for source, values in made.items()
            for reference, want in wanted.items()
            if source != reference
            for errors in [relative_errors(values[name], want[name])]
        ]
        differing = int((runs[RTL][name] != mine).sum()) if rtl else None
        shape = (mine.shape[0], mine.shape[1])
        wrong = None if split else int((mine != bits[name]).sum())
        tensors.append(Tensor(name, shape, rows, wrong, differing))
    meta = compiled.artifact.meta
    notes = [str(n) for n in meta["notes"]]
    counters = {**meta["counters"], "saturated": sum(s.count for s in saturated)}
    return Report(case, spec.name, call.trace.kernel, tensors, saturated, notes, counters)


# SPDX-License-Identifier: Apache-2.0
"""The numerics report as JSON, Markdown and terminal tables (docs/spec/compiler.md 14.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ktpu.numerics import FP64, LIMITS, MODEL, MX, RTL, SEED, Report, Row, Tensor

COLUMNS = ("p50", "p99", "max", ">1%", ">10%", "rel l2", "max abs", "sat")
INPUTS = f"activations N(0, 1), weights N(0, 0.1^2), gains N(1, 0.2^2), shifts N(0, 0.2^2), PCG64 seed {SEED}"


def as_json(reports: Sequence[Report]) -> dict[str, Any]:
    """Everything of the report but the errors of single elements."""
    return {
        "format": 1,
        "error": "|got - want| / max|want| a tensor",
        "inputs": INPUTS,
        "cases": [_case(r) for r in reports],
        "problems": [p for r in reports for p in r.problems()],
    }


def _case(report: Report) -> dict[str, Any]:
    return {
        "name": report.case.name,
        "kernel": report.kernel,
        "machine": report.machine,
        "class": report.case.norm,
        "note": report.case.note,
        "range_notes": report.notes,
        "saturated": [asdict(s) for s in report.saturated],
        "counters": report.counters,
        "tensors": [_tensor(t) for t in report.tensors],
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "model_differs_from_reference_arithmetic": tensor.wrong,
        "rtl_differs_from_model": tensor.differing,
        "rows": [{"source": r.source, "reference": r.reference, **asdict(r.metrics)} for r in tensor.rows],
    }


def values(row: Row) -> list[str]:
    """The cells of :data:`COLUMNS`."""
    m = row.metrics
    small = [_short(v) for v in (m.p50, m.p99, m.max)]
    shares = [f"{v:.1%}" if v else "0" for v in (m.over_1_percent, m.over_10_percent)]
    return [*small, *shares, _short(m.rel_l2, 1), _short(m.max_abs, 1), str(m.saturated)]


def _short(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}e}".replace("e-0", "e-").replace("e+0", "e") if value else "0"


def identical(tensor: Tensor) -> str:
    """What is compared bit for bit, in words."""
    size = tensor.shape[0] * tensor.shape[1]
    parts = [f"model and reference arithmetic differ in {tensor.wrong} of {size:,} elements"]
    if tensor.wrong is None:
        parts = ["K is split, so whole arrays do not give the model's bits"]
    if tensor.differing is not None:
        parts.append(f"{RTL} and model in {tensor.differing}")
    return ", ".join(parts)


def saturation(report: Report) -> list[str]:
    """One line a value that was clamped."""
    return [f"{s.name}: {s.count} elements saturate at 65,504, the first at {list(s.first)}" for s in report.saturated]


def verdict(report: Report) -> str:
    """Whether the case is within its class, or what exceeds it."""
    found = list(report.problems())
    if found:
        return "; ".join(found)
    return f"class {report.case.norm}: within" if report.case.norm else "no class"


def table(report: Report, tensor: Tensor) -> Table:
    """Rows of one output for a terminal."""
    title = f"{report.case.name}: {tensor.name} {list(tensor.shape)}, {verdict(report)}"
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("source", "ref"):
        shown.add_column(name, no_wrap=True)
    for name in COLUMNS:
        shown.add_column(name, justify="right", no_wrap=True)
    for row in tensor.rows:
        shown.add_row(row.source, row.reference, *values(row), style="dim" if row.source == MX else "")
    return shown


def markdown(reports: Sequence[Report], pictures: Mapping[str, str]) -> str:
    """The report for reading.

    Args:
        pictures: file of the curves of a case by its name, "" for the file of all of them.
    """
    lines = ["# Numerics report", "", *_preface(reports)]
    if "" in pictures:
        lines += ["", f"![Share of elements above an error, all cases]({pictures['']})"]
    lines += ["", "## Model against float64", "", *_overview(reports)]
    for report in reports:
        lines += ["", f"## {report.case.name}", ""]
        lines += [f"`{report.kernel}` on {report.machine}; {verdict(report)}."]
        lines += [f"{report.case.note}."] if report.case.note else []
        for tensor in report.tensors:
            head = f"Output `{tensor.name}` {list(tensor.shape)}: {identical(tensor)}."
            lines += ["", head, "", *_rows(tensor)]
        lines += [""]
        lines += [f"* RangeNote: {n}" for n in report.notes]
        lines += [f"* Saturated: {s}" for s in saturation(report)]
        if report.case.name in pictures:
            lines += ["", f"![Share of elements above an error]({pictures[report.case.name]})"]
    return "\n".join(lines) + "\n"


def _preface(reports: Sequence[Report]) -> list[str]:
    problems = [p for r in reports for p in r.problems()]
    fine = "Every difference that must be 0 is 0, every case is within its class."
    verdicts = [f"* {p}" for p in problems] or [fine]
    return [
        f"Error: |got - want| / max|want| over one output. Inputs: {INPUTS}, rounded to FP16.",
        "`mx` is float64 behind the quantiser of every contraction; its row against `fp64` is the error of the format.",
        "Classes are those of kernels.md 0 and grade the model against `fp64`.",
        "",
        *verdicts,
    ]


def _overview(reports: Sequence[Report]) -> list[str]:
    lines = ["| Case | class | p50 | p99 | max | >1% | format alone, max |", "|---|---|---|---|---|---|---|"]
    for r in reports:
        for t in r.tensors:
            m = t.row(MODEL, FP64)
            cells = [r.case.name, r.case.norm or "-", *values(m)[:4], values(t.row(MX, FP64))[2]]
            lines.append(f"| {' | '.join(cells)} |")
    limits = [f"{k}: {a:g} / {b:g} / {c:g} / {d:.0%}" for k, (a, b, c, d, _) in LIMITS.items()]
    return [*lines, "", f"Limits of p50 / p99 / max / share above 1 %: {'; '.join(limits)}."]


def _rows(tensor: Tensor) -> list[str]:
    lines = [f"| Source | against | {' | '.join(COLUMNS)} |", "|---" * (2 + len(COLUMNS)) + "|"]
    return lines + [f"| {r.source} | {r.reference} | {' | '.join(values(r))} |" for r in tensor.rows]

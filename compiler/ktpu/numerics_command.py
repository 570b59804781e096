# SPDX-License-Identifier: Apache-2.0
"""``ktpu numerics``: the numerics report (docs/spec/compiler.md 14.3)."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from kohakudriver import Device, DriverError
from kohakutpu.errors import CompileError
from ktpu.devices import TargetError, machine, open
from ktpu.numerics import CASES, Case, Report, measure

console = Console(highlight=False)


def _fail(message: object) -> typer.Exit:
    console.print(str(message), style="red", markup=False)
    return typer.Exit(2)


def numerics(
    names: Annotated[list[str] | None, typer.Argument(help="cases, by the start of their names; all if none")] = None,
    on: Annotated[str, typer.Option("--machine", help="machine of the model")] = "mm_mesh",
    rtl: Annotated[str, typer.Option(help="also run the RTL of this machine, and its model")] = "",
    out: Annotated[Path | None, typer.Option(help="folder for numerics.json, numerics.md and curves")] = None,
    cases: Annotated[list[Path] | None, typer.Option(help="Python file that registers more cases")] = None,
    show: Annotated[bool, typer.Option("--list", help="only list the cases")] = False,
) -> None:
    """Errors of every kernel: model and RTL against float64, with and without the quantiser.

    Ends with 1 if RTL and model, or model and reference arithmetic, differ, or if a case exceeds its error class.
    """
    from ktpu.numerics_text import as_json

    chosen = _chosen(names or [], cases or [])
    if show:
        for case in chosen:
            console.print(f"{case.name}  {case.norm or '-'}  {case.note}", markup=False)
        return
    reports = _measured(chosen, rtl or on, with_rtl=bool(rtl))
    for report in reports:
        _print(report)
    if out is not None:
        _write(reports, out)
    problems = as_json(reports)["problems"]
    for problem in problems:
        console.print(problem, style="red", markup=False)
    if problems:
        raise typer.Exit(1)
    console.print(f"[bold green]WITHIN[/] {len(reports)} cases; every difference that must be 0 is 0")


def _chosen(names: list[str], files: list[Path]) -> list[Case]:
    """The registered cases whose names start with one of ``names``."""
    import ktpu.numerics_cases  # noqa: F401  registers the cases of the library

    for file in files:
        if not file.exists():
            raise _fail(f"--cases {file} does not exist")
        runpy.run_path(str(file))
    for name in names:
        if not any(c.startswith(name) for c in CASES):
            raise _fail(f"no case starts with {name!r}; there are: {', '.join(CASES)}")
    return [c for c in CASES.values() if not names or any(c.name.startswith(n) for n in names)]


def _measured(cases: list[Case], name: str, *, with_rtl: bool) -> list[Report]:
    opened: list[Device] = []
    try:
        spec = machine(name)
        opened = [open(f"{kind}:{name}") for kind in ("model", *(["rtl"] if with_rtl else []))]
        shown = track(cases, "kernels", console=console, transient=True, disable=not console.is_terminal)
        return [measure(case, spec, opened[0], opened[1] if with_rtl else None) for case in shown]
    except (CompileError, DriverError, TargetError, RuntimeError) as err:
        raise _fail(err) from err
    finally:
        for device in opened:
            device.close()


def _print(report: Report) -> None:
    from ktpu.numerics_text import identical, saturation, table

    for tensor in report.tensors:
        console.print(table(report, tensor))
        console.print(identical(tensor), markup=False)
    for line in saturation(report):
        console.print(line, style="yellow", markup=False)
    for note in report.notes:
        console.print(f"RangeNote: {note}", style="dim", markup=False)
    console.print()


def _write(reports: list[Report], folder: Path) -> None:
    from ktpu.numerics_plot import PlotError, draw
    from ktpu.numerics_text import as_json, markdown

    folder.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, str] = {}
    try:
        pictures = draw(reports, folder)
    except PlotError as err:
        console.print(str(err), style="yellow", markup=False)
    text = json.dumps(as_json(reports), indent=1, allow_nan=False, default=str)
    (folder / "numerics.json").write_text(text + "\n", encoding="utf-8")
    (folder / "numerics.md").write_text(markdown(reports, pictures), encoding="utf-8")
    console.print(f"{folder}: numerics.json, numerics.md, {len(pictures)} pictures", markup=False)

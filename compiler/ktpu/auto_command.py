# SPDX-License-Identifier: Apache-2.0
"""``ktpu auto-report`` (docs/spec/compiler.md 13.4)."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console


def auto_report(
    machine: Annotated[str, typer.Option(help="machine to compile for")] = "mm_mesh",
    profile: Annotated[str, typer.Option(help="prices of the cost model: default or ref")] = "default",
    only: Annotated[str, typer.Option(help="workloads whose name contains this")] = "",
) -> None:
    """Compare automatic programs with the kernels written by hand; exit 1 if a gap is too wide or unexplained."""
    import ktpu
    from ktpu.auto_report import ACCEPTANCE, report, table

    console = Console(highlight=False)
    try:
        lines = report([w for w in ACCEPTANCE if only in w.name], ktpu.machine(machine), profile)
    except ValueError as err:
        console.print(str(err), style="red", markup=False)
        raise typer.Exit(2) from err
    console.print(f"modelled cycles, everything charged, profile {profile}, machine {machine} (tag model)")
    console.print(table(lines), markup=False, soft_wrap=True)
    if not all(line.accepted for line in lines):
        raise typer.Exit(1)

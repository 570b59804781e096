# SPDX-License-Identifier: Apache-2.0
"""Commands ``run``, ``list``, ``doctor`` and ``plan``."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kohakubench import bench as benches_
from kohakubench.build import BuildError, Options
from kohakubench.run import Request, Verdict
from kohakubench.run import run as run_bench
from kohakubench.tools import ToolError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console(highlight=False)


def show(verdict: Verdict) -> None:
    """Print the one-screen verdict of a run."""
    table = Table(box=None, pad_edge=False)
    for head in ("test", "result", "cycles", "wall s"):
        table.add_column(head, justify="left" if head in ("test", "result") else "right")
    colour = {"passed": "green", "failed": "red", "skipped": "yellow"}
    for c in verdict.cases:
        table.add_row(c.name, f"[{colour[c.status]}]{c.status}[/]", f"{int(c.sim_ns // 10):,}", f"{c.wall_s:.2f}")
    console.print(table)
    built = "cached" if verdict.model.cached else f"built in {verdict.model.seconds:.1f} s"
    console.print(f"model {built}; {verdict.compared:,} comparisons; {verdict.wall_s:.1f} s; {verdict.run_dir}")
    for failure in verdict.failures:
        console.print(failure, style="red", markup=False)
    name = verdict.bench.name + (f" ({verdict.request.variant})" if verdict.request.variant else "")
    if verdict.passed:
        console.print(f"[bold green]PASS[/] {name}: 0 differences")
    else:
        console.print(f"[bold red]FAIL[/] {name}; reproduce with waves: {verdict.reproduce()}")


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="bench, see `list`")],
    variant: Annotated[str, typer.Option(help="one of the bench's variants")] = "",
    testcase: Annotated[str, typer.Option(help="one cocotb test of the bench")] = "",
    seed: Annotated[int, typer.Option(help="seed of every random choice")] = 1,
    sim: Annotated[str, typer.Option(help="verilator or icarus")] = "verilator",
    waves: Annotated[bool, typer.Option(help="write dump.fst into the run directory")] = False,
    debug: Annotated[bool, typer.Option(help="every signal visible to Python; slower")] = False,
    slow: Annotated[bool, typer.Option(help="the long sweeps too")] = False,
    mutation: Annotated[str, typer.Option(help="run with this fault built in; it must fail")] = "",
    echo: Annotated[bool, typer.Option(help="show the simulator's log while it runs")] = False,
) -> None:
    """Build one bench, run it and print its verdict; exit code 1 on failure, 2 if it cannot run."""
    # a killed run must take its simulator with it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = Options(simulator=sim, waves=waves, debug=debug, mutation=mutation or None)
    request = Request(variant or None, testcase or None, seed, slow, options)
    try:
        verdict = run_bench(benches_.load(name), request, echo=echo)
    except (BuildError, ToolError, KeyError, FileNotFoundError, benches_.BenchError) as err:
        console.print(str(err.args[0] if isinstance(err, KeyError) else err), style="red", markup=False)
        raise typer.Exit(2) from err
    show(verdict)
    raise typer.Exit(0 if verdict.passed else 1)


@app.command(name="list")
def list_() -> None:
    """List every bench with its tier, variants and mutations; exit code 1 if a file is broken."""
    table = Table(box=None, pad_edge=False)
    for head in ("TEST=", "tier", "variants", "mutations"):
        table.add_column(head)
    found, broken = benches_.survey()
    for b in found:
        table.add_row(b.name, b.tier, ", ".join(b.variants) or "-", str(len(b.mutations)))
    console.print(table)
    for reason in broken.values():
        console.print(reason, style="red", markup=False)
    raise typer.Exit(1 if broken else 0)


@app.command()
def doctor() -> None:
    """Check tools and packages, then build and run the canary design."""
    from kohakubench.doctor import doctor as examine

    raise typer.Exit(0 if examine(console) else 1)


@app.command()
def plan(
    all_: Annotated[bool, typer.Option("--all", help="every obligation with its tests")] = False,
) -> None:
    """Coverage of the specification's obligations by tests; exit code 1 if one has none."""
    from kohakubench import testplan

    chosen = testplan.entries()
    pages = {page: testplan.of_page(page, chosen) for page in testplan.PLANNED}
    states: tuple[testplan.State, ...] = ("full", "partial", "waits", "missing")
    table = Table(box=None, pad_edge=False)
    for head in ("page", "obligations", *states):
        table.add_column(head, justify="left" if head == "page" else "right")
    for page, rows in pages.items():
        seen: list[testplan.State] = [e.state if e else "missing" for _, e in rows]
        table.add_row(page, str(len(rows)), *(str(seen.count(s)) for s in states))
    console.print(table)
    bad = 0
    for page, rows in pages.items():
        for o, e in rows:
            state = e.state if e else "missing"
            bad += state == "missing"
            if state == "full" and not all_:
                continue
            part = f" [{e.part}]" if e and e.part else ""
            console.print(f"{state:8}{page}: {o.text[:90]}{part}", markup=False)
            for test in e.tests if e and all_ else ():
                console.print(f"          {test}", markup=False)
            for clause in e.open if e else ():
                console.print(f"          open: {clause}", markup=False)
    raise typer.Exit(1 if bad else 0)

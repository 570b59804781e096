# SPDX-License-Identifier: Apache-2.0
"""The ``ktpu`` command."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from kohakuabi import Artifact, ArtifactError
from kohakudriver import Device, DriverError
from ktpu.auto_command import auto_report
from ktpu.numerics_command import numerics

if TYPE_CHECKING:
    from ktpu.replay import ReplayReport

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
console = Console(highlight=False)

Target = Annotated[str, typer.Option("--on", help="model:<machine> or rtl:<machine>")]


def _fail(message: object) -> typer.Exit:
    console.print(str(message), style="red", markup=False)
    return typer.Exit(2)


def _open(target: str, **options: object) -> Device:
    import ktpu

    try:
        return ktpu.open(target, **options)
    except (ValueError, RuntimeError) as err:
        raise _fail(err) from err


def _load(path: Path) -> Artifact:
    try:
        return Artifact.load(path)
    except (ArtifactError, OSError) as err:
        raise _fail(err) from err


def _operand(
    name: str, path: Path | None, shape: tuple[int, int], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    if path is None:
        return rng.standard_normal(shape)
    array: npt.NDArray[np.float64] = np.load(path)
    if array.shape != shape:
        raise ValueError(f"--{name} {path} holds {array.shape}, the product needs {shape}")
    return array


@app.command()
def compile(
    m: int,
    n: int,
    k: int,
    out: Annotated[Path, typer.Option("-o", help="artifact to write; .json for the text form")],
    machine: Annotated[str, typer.Option(help="machine to compile for")] = "mm_mesh",
    seed: Annotated[int, typer.Option(help="seed of the random operands")] = 3,
    tiling: Annotated[str, typer.Option(help="gm,gn,nk by hand")] = "",
    a: Annotated[Path | None, typer.Option(help=".npy file of A [M][K] instead of random values")] = None,
    b: Annotated[Path | None, typer.Option(help=".npy file of B [N][K]")] = None,
) -> None:
    """Compile C[m, n] = A[m, k] B[n, k]^T into an artifact."""
    import ktpu

    rng = np.random.default_rng(seed)
    try:
        left = _operand("a", a, (m, k), rng)
        right = _operand("b", b, (n, k), rng) if b else rng.standard_normal((n, k)) / np.sqrt(k)
        knobs = dict(zip(("gm", "gn", "nk"), map(int, tiling.split(",")), strict=True)) if tiling else {}
        compiled = ktpu.compile(ktpu.matmul(left, right, **knobs), ktpu.machine(machine))
        compiled.artifact.save(out)
    except (ValueError, OSError) as err:
        raise _fail(err) from err
    console.print(compiled.schedule.text(), markup=False)
    console.print(f"{out}: {compiled.artifact.meta['counters']}", markup=False)


@app.command()
def replay(
    file: Annotated[Path, typer.Argument(help="artifact")],
    on: Target = "rtl:mm_mesh",
    waves: Annotated[bool, typer.Option(help="record waves of the RTL")] = False,
    seed: Annotated[int, typer.Option(help="seed of the memory's random behaviour")] = 1,
    bisect: Annotated[bool, typer.Option(help="on a difference, find its first step and instruction")] = True,
) -> None:
    """Run an artifact on the model and on another device, and compare every bit."""
    artifact = _load(file)
    options: dict[str, object] = {"waves": waves, "seed": seed} if on.startswith("rtl:") else {}
    report = _compare(artifact, on, options)
    for problem in report.problems:
        console.print(f"both: {problem}", style="yellow", markup=False)
    _findings(report)
    words = sum(r.words for r in report.rounds)
    signals = sum(r.signals for r in report.rounds)
    head = f"{len(report.rounds)} rounds; {words:,} memory words, {signals:,} signals and "
    head += f"{sum(r.values for r in report.rounds):,} counters compared"
    if report.agree:
        console.print(f"[bold green]AGREE[/] model and {on}: {head}, 0 differing bits")
        return
    console.print(f"[bold red]DIFFER[/] model and {on}: {head}")
    repeat = file
    if bisect and report.findings():
        repeat = _narrowed(report, file, on, {**options, "waves": False} if options else {})
    console.print(f"reproduce with waves: ktpu replay {repeat} --on {on} --seed {seed} --waves", markup=False)
    raise typer.Exit(1)


def _narrowed(report: ReplayReport, file: Path, on: str, options: dict[str, object]) -> Path:
    """Find the first difference, tell it and store the program up to it; the file to replay."""
    from ktpu.bisect import bisect as narrow

    try:
        found = narrow(report, lambda part: _compare(part, on, options))
    except typer.Exit:
        console.print("no first instruction: a shortened program does not run on both devices")
        return file
    if found is None:
        console.print("a second run of the same program agrees: the difference is not reproducible")
        return file
    shortest = file.with_name(f"{file.stem}.first{file.suffix}")
    found.artifact.save(shortest)
    console.print(f"first difference ({found.runs} runs): {found.where}", style="red", markup=False)
    _findings(found.report)
    console.print(f"{shortest}: the program up to there", markup=False)
    return shortest


def _findings(report: ReplayReport) -> None:
    for finding in report.findings():
        console.print(finding.text(), style="red", markup=False)


def _compare(artifact: Artifact, on: str, options: dict[str, object]) -> ReplayReport:
    """One replay on devices of its own."""
    from ktpu.replay import replay as compare

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"building and starting {on}")
        other = _open(on, **options)
        model = _open(f"model:{on.partition(':')[2]}")
        try:
            return compare(
                artifact,
                model,
                other,
                target=on,
                progress=lambda i, c: bar.update(task, description=f"round {i}: {c:,} cycles"),
                whole=int(getattr(other.transport, "memory_bytes", 0)),
            )
        except (DriverError, ArtifactError, RuntimeError) as err:
            raise _fail(err) from err
        finally:
            for device in (model, other):
                device.close()
            if options.get("waves"):
                for recorded in sorted(Path(getattr(other.transport, "run_dir", "")).glob("dump.*")):
                    console.print(f"waves: {recorded}", markup=False)


@app.command()
def show(file: Annotated[Path, typer.Argument(help="artifact")]) -> None:
    """Print an artifact: steps, disassembled payloads, images and results."""
    from ktpu.diagnosis import places, unit_kinds
    from ktpu.disassembly import disassemble
    from ktpu.moving import move_lines, step_text

    artifact = _load(file)
    console.print(
        f"machine {artifact.machine} ({artifact.machine_hash}), {artifact.meta.get('counters', {})}",
        markup=False,
    )
    for image in artifact.images:
        console.print(f"image {image.name}: {len(image.data)} bytes at {image.address:#x}", markup=False)
    for o in artifact.outputs:
        console.print(f"result {o.name}: {o.layout} {list(o.shape)} at {o.address:#x}", markup=False)
    for r in artifact.rounds():
        console.print(f"round {r.index}: " + "; ".join(map(step_text, r.steps)), markup=False)
        for line in move_lines(r):
            console.print(f"  {line}", markup=False)
        for p in places(r, unit_kinds(artifact)):
            shown = disassemble(p.kind, p.payload)
            console.print(f"  ({p.node[0]},{p.node[1]}) {p.position:>4}  {shown}", markup=False)


@app.command()
def explain(
    kernel: Annotated[str, typer.Argument(help="kernel of the library, or file.py:name")],
    shape: Annotated[list[str], typer.Option(help="extents, M=256,N=1280; batch=4 for leading axes")],
    machine: Annotated[str, typer.Option(help="machine to compile for")] = "mm_mesh",
    knob: Annotated[list[str] | None, typer.Option(help="knobs of the kernel, gm=8")] = None,
    fuse: Annotated[str, typer.Option(help="epilogues on the arriving tile: auto, require or never")] = "auto",
    profile: Annotated[str, typer.Option(help="prices of the cost model: default or ref")] = "default",
    mesh: Annotated[int | None, typer.Option(help="also simulate the mesh, with a memory of so many cycles")] = None,
    full: Annotated[bool, typer.Option(help="every instruction and round")] = False,
    html: Annotated[Path | None, typer.Option(help="also write one page with pictures")] = None,
) -> None:
    """Show what the compiler makes of a kernel, level by level, and why."""
    import ktpu
    from ktpu import explain_call
    from ktpu.explain import gather, sections
    from ktpu.explain_print import show as print_sections

    try:
        named = explain_call.find(kernel)
        knobs = {n: explain_call.knob(v) for n, v in explain_call.pairs("--knob", knob or []).items()}
        call = explain_call.build(named, explain_call.pairs("--shape", shape), knobs)
        compiled = ktpu.compile(call, ktpu.machine(machine), fuse=fuse)
        trace = named.kernel.trace(**knobs).text()
        found = gather(compiled, name=named.text, trace=trace, profile=profile, latency=mesh)
        print_sections(sections(found, full=full), console)
        if html is not None:
            from ktpu.explain_html import page

            html.write_text(page(found), encoding="utf-8")
            console.print(f"{html}: {html.stat().st_size:,} bytes", markup=False)
    except ModuleNotFoundError as err:
        raise _fail(f"--html needs the package {err.name}; pip install {err.name}") from err
    except (ValueError, OSError) as err:
        raise _fail(err) from err


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def run(
    ctx: typer.Context,
    script: Annotated[Path, typer.Argument(help="Python file")],
    on: Target = "model:mm_mesh",
) -> None:
    """Run a Python file with the device named by --on; the file reads it from ``sys.argv``."""
    if not script.exists():
        raise _fail(f"{script} does not exist")
    sys.argv = [str(script), "--on", on, *ctx.args]
    runpy.run_path(str(script), run_name="__main__")


@app.command()
def gen(check: Annotated[bool, typer.Option(help="only tell whether anything is stale")] = False) -> None:
    """Regenerate headers, constants and tables from spec/."""
    from kohakutpu.gen import main

    raise typer.Exit(main(["--check"] if check else []))


app.command()(numerics)
app.command()(auto_report)

# SPDX-License-Identifier: Apache-2.0
"""Compile time of every kernel of the library at its acceptance shape (docs/spec/kernels.md 3 and 4), part by part.

    PYTHONPATH=compiler:driver:tb python benchmarks/compile_time.py
    PYTHONPATH=compiler:driver:tb python benchmarks/compile_time.py --only flash --profile

Seconds are CPU time of the process, so another load on the machine does not count. A kernel is compiled with an empty
trace cache; divisions of passes and encoded words that an earlier kernel needed are known. Putting the operands into
their byte orders is no part of it. Goals: 1 s a kernel, 10 s the whole network.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import platform
import pstats
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import kernel_cases as kc
import ktpu
from kohakubench import sdxl
from kohakutpu.collector import paused
from kohakutpu.dispatch import link
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.lower import lower
from kohakutpu.program import assemble, assemble_moves
from kohakutpu.schedule import emit, emit_moves
from kohakutpu.schedule.model_plan import ModelPlan
from ktpu.compiling import scheduled

RESULT = Path(__file__).parent / "results" / "compile_time.json"
MACHINE = "mm_store"
PARTS = ("trace", "lower", "plan", "emit", "link")
GOAL, NETWORK_GOAL = 1.0, 10.0
MESH = 4 << 30


@dataclass(frozen=True)
class Job:
    """A kernel and the shapes of its operands."""

    name: str
    kernel: Callable[[], Kernel]
    shapes: dict[str, tuple[int, ...]]
    knobs: dict[str, Any]


def of_case(case: kc.Case) -> Job:
    """The job of an acceptance case."""
    return Job(case.name, case.kernel, {n: v.shape for n, v in case.draw().items()}, case.knobs)


def flash(heads: int, lq: int, lkv: int, dk: int = 64, dv: int = 64, **knobs: Any) -> Job:
    """Attention at a shape no other test draws operands for."""
    shapes = {"q": (heads, lq, dk), "k": (heads, lkv, dk), "v": (heads, dv, lkv)}
    shown = "".join(f"_{k}_{v}" for k, v in knobs.items())
    return Job(f"flash_{heads}x{lq}x{lkv}_{dk}_{dv}{shown}", lambda: lib.flash_attention, shapes, knobs)


def group(size: int, *, silu: bool) -> Job:
    """Two groups of ``size`` elements."""
    name = "group_norm_silu_wide" if silu else "group_norm_wide"
    shapes = dict.fromkeys(("x", "w", "b"), (2, size))
    return Job(f"{name}_2x{size}", lambda: getattr(lib, name)(size), shapes, {})


def jobs() -> list[Job]:
    """Sections 3 to 5: the cases of the tests, all group sizes, and the attention shapes of 5.4 and 5.6."""
    drawn = [of_case(c) for c in kc.CASES if c.row != 14]
    groups = [group(g, silu=s) for g in (*kc.GROUPS, *kc.DECODER_GROUPS) for s in (False, True)]
    large = [
        flash(20, 256, 256, block=64),
        flash(10, 512, 512, block=64),
        flash(20, 256, 128, block=64, keys=77),
        flash(10, 1024, 128, block=64, keys=77),
        flash(1, 1024, 1024, 512, 512, block=128, qblock=512),
    ]
    return [*drawn, *groups, *large]


def fresh(kernel: Kernel) -> Kernel:
    """The same kernel with nothing traced."""
    return Kernel(kernel.__wrapped__)


@paused()
def seconds(job: Job, machine: Any) -> dict[str, float]:
    """CPU seconds of every part, without collections, as ``ktpu.compile`` runs them."""
    taken: dict[str, float] = {}

    def part(name: str, run: Callable[[], Any]) -> Any:
        start = time.process_time()
        result = run()
        taken[name] = taken.get(name, 0.0) + time.process_time() - start
        return result

    kernel = job.kernel()
    bound = part("trace", lambda: fresh(kernel).trace(**job.knobs).extents(job.shapes))
    trace = part("lower", lambda: lower(bound))
    schedule = part("plan", lambda: scheduled(trace, machine))
    programs = part("emit", lambda: emit(schedule, machine))
    moves = part("emit", lambda: emit_moves(schedule, machine))
    work = part("link", lambda: [assemble(band, machine) for band in programs])
    passes = part("link", lambda: [assemble_moves(between) for between in moves])
    part("link", lambda: link(machine, work, [], [], {}, (), passes))
    return taken


def network() -> float:
    """CPU seconds to place the whole denoiser in one mesh."""
    start = time.process_time()
    net = sdxl.Network(ModelPlan(MESH))
    sdxl.unet(net)
    net.plan.solve()
    return time.process_time() - start


def profiled(job: Job, machine: Any) -> None:
    """Where the time of one job goes."""
    profile = cProfile.Profile()
    profile.runcall(seconds, job, machine)
    pstats.Stats(profile).sort_stats("cumulative").print_stats(35)


def measure(chosen: list[Job], console: Console, *, times: int = 1) -> list[dict[str, Any]]:
    """One row a job, the fastest of ``times``."""
    machine = ktpu.machine(MACHINE)
    rows = []
    for job in chosen:
        parts = min((seconds(job, machine) for _ in range(times)), key=lambda p: sum(p.values()))
        total = round(sum(parts.values()), 4)
        rows.append({"name": job.name, **{p: round(parts[p], 4) for p in PARTS}, "total": total})
        if console.is_terminal:
            console.print(f"{job.name}: {total:.3f} s", highlight=False)
    return rows


def shown(rows: list[dict[str, Any]]) -> Table:
    """The slowest first."""
    table = Table("kernel", *PARTS, "total", title=f"CPU seconds on {MACHINE}, goal {GOAL} s")
    for row in sorted(rows, key=lambda r: -r["total"]):
        style = "red" if row["total"] >= GOAL else ""
        table.add_row(row["name"], *(f"{row[p]:.3f}" for p in (*PARTS, "total")), style=style)
    return table


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="jobs whose name contains this; stores nothing")
    parser.add_argument("--profile", action="store_true", help="where the time of each goes; stores nothing")
    parser.add_argument("--times", type=int, default=1, help="runs of a job, the fastest counts")
    args = parser.parse_args()
    console = Console(width=max(100, Console().width))
    chosen = [j for j in jobs() if args.only in j.name]
    if args.profile:
        for job in chosen:
            profiled(job, ktpu.machine(MACHINE))
        return
    rows = measure(chosen, console, times=args.times)
    console.print(shown(rows))
    plan = network()
    slow = [r["name"] for r in rows if r["total"] >= GOAL]
    console.print(f"{len(rows)} kernels, {len(slow)} above {GOAL} s; network plan {plan:.2f} s, goal {NETWORK_GOAL} s")
    if not args.only:
        host = {"python": platform.python_version(), "numpy": np.__version__, "cpus": os.cpu_count()}
        stored = {"clock": "process CPU seconds", "machine": MACHINE, "host": host, "network_plan": round(plan, 3)}
        stored["rows"] = rows
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

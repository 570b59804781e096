# SPDX-License-Identifier: Apache-2.0
"""Cycles of the vector core: its instructions and kernels alone, and compiled kernels through the whole machine.

    python benchmarks/vector_cycles.py

The core's own figures come from its benches, which compare every result with the functional model and hold every
count against docs/spec/vector.md 16.2. A compiled kernel counts from the first kick to the last completion, on one
core and one cluster, and is compared with the reference bit for bit first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import ktpu
from benches.mm_mesh_vector import EPILOGUES, TILE, epilogue
from kohakubench import bench, figures, run
from kohakubench.epilogues import FORMS, FOUR, both, counters, half
from kohakubench.programs import device
from kohakutpu.tensor import Call
from ktpu.replay import replay

MACHINE = "mm_mesh"
RESULT = Path(__file__).parent / "results" / "vector_cycles.json"
LATENCY = 20
LANES = 16
VL = 128
ELEMENTS = 1024
"""Elements of the kernels of the page's second table."""
MEASURED = {
    "instructions": ("vc_seq", "cycles", "sequencer"),
    "loads and stores": ("vc_mem", "load_store_cycles", "load_store"),
    "drains": ("vc_mem", "drain_cycles", "drains"),
    "fills and drains": ("vc_core", "fills_and_drains", "moves"),
    "chains": ("vc_core", "chains_by_mode", "chains"),
    "kernels": ("vc_core", "kernels_of_the_table", "kernels"),
    "double buffering": ("vc_core", "double_buffering", "double_buffering"),
}
"""What is measured -> bench, its test, the figures that test leaves."""
ORIGINAL = {"fused": {"payloads": 94, "temp_bytes": 0}, "staged": {"payloads": 107, "temp_bytes": 2048}}
"""linear_silu 32x64x32 on four cores of each kind, docs/spec/compiler.md 12.7."""

MODES = {1: "FLAT", 2: "D2", 4: "D4"}

Row = dict[str, Any]


def measured(what: str) -> list[Row]:
    """Figures of the core; the bench has to pass."""
    name, test, figure = MEASURED[what]
    verdict = run.run(bench.load(name), run.Request(testcase=test))
    if not verdict.passed:
        raise SystemExit("\n".join([f"{name}, {test}:", *verdict.failures]))
    return figures.read(verdict.run_dir, figure)


def by_length(rows: list[Row], results: int) -> list[Row]:
    """One row a name: cycles at every n, and at the largest n results a cycle beside those of bound and goal.

    Args:
        results: elements that one unit of n stands for.
    """
    out = []
    for name in dict.fromkeys(r["name"] for r in rows):
        mine = [r for r in rows if r["name"] == name]
        last = mine[-1]
        row: Row = {"name": name, "cycles": {str(r["n"]): whole_number(r["cycles"]) for r in mine}}
        row |= {"bound": last["bound"], "goal": last["goal"]}
        if mine[0]["bound"] != last["bound"]:  # a cost that grows with the elements
            row["results_per_cycle"] = rates(last, results * last["n"])
        out.append(row)
    return out


def whole_number(value: float) -> int | float:
    """Averages over copies of an instruction are whole unless the copies differ."""
    return int(value) if value == int(value) else value


def rates(row: Row, results: int) -> dict[str, float]:
    """Results a cycle as measured, and where bound and goal of the page lie."""
    return {k: round(results / row[k], 3) for k in ("cycles", "bound", "goal") if row.get(k)}


def core() -> dict[str, Any]:
    """Everything that is measured on the core alone."""
    kernels = [
        {**r, "results_per_cycle": rates(r, ELEMENTS), "lane_occupancy": round(r["beats"] / r["cycles"], 3)}
        for r in measured("kernels")
    ]
    chains = [
        {**r, "results_per_cycle": rates(r, ELEMENTS), "lane_occupancy": round(r["operations"] * 64 / r["cycles"], 3)}
        for r in measured("chains")
    ]
    (overlap,) = measured("double buffering")
    return {
        "instructions": by_length(measured("instructions"), LANES),
        "loads_and_stores": by_length(measured("loads and stores"), LANES),
        "fills_and_drains": by_length(measured("fills and drains"), LANES),
        "drains": by_length(measured("drains"), LANES),
        "chains": chains,
        "kernels": kernels,
        "double_buffering": {**overlap, "ratio": round(overlap["both"] / max(overlap["fills"], overlap["rest"]), 4)},
    }


STEPS = [
    ("mul", ("x", 0.5)),
    ("add", ("_", 1.0)),
    *[("mul", ("_", 0.75)), ("add", ("_", 1.0))] * 3,
    ("mul", ("_", 0.5)),
]
"""Nine operations, each reading the one before."""


def count(operations: int) -> str:
    """A number of operations in words."""
    return f"{operations} operation{'s' * (operations > 1)}"


def compiled_kernels() -> Iterator[tuple[str, int, Call, dict[str, Any]]]:
    """(name, results, call, options of the compiler)."""
    for n, lengths in ((4096, (1, 2, 4, 9)), (65_536, (1, 9))):
        for length in lengths:
            for group in (1, 2, 4) if n == 4096 else (1,):
                if group <= length:
                    call = ktpu.elementwise({"x": half(n)}, STEPS[:length])
                    yield f"{count(length)}, {MODES[group]}, {n:,}", n, call, {"group": group}
    yield "silu, 4,096", 4096, ktpu.silu(half(4096)), {}
    yield "gelu, 4,096", 4096, ktpu.gelu(half(4096)), {}
    x, w, b = half(64, 128), half(128, seed=4), half(128, seed=5)
    yield "softmax, 64x128", x.size, ktpu.softmax(x), {}
    yield "layernorm, 64x128", x.size, ktpu.layernorm(x, w, b), {}
    yield "rmsnorm, 64x128", x.size, ktpu.rmsnorm(x, w), {}
    for name in EPILOGUES:
        call = epilogue(name, (32, 32, 64), **TILE)
        for form, fuse in (("fused", "require"), ("staged", "never")):
            yield f"linear, {name}, {form}, 32x64x32", 1024, call, {"fuse": fuse}


def whole() -> list[Row]:
    """One row a compiled kernel on the RTL of the machine."""
    machine = ktpu.machine(MACHINE)
    rtl: Any = ktpu.open(f"rtl:{MACHINE}", dram={"ideal": 1, "lat_min": LATENCY, "lat_max": LATENCY})
    model = ktpu.open(f"model:{MACHINE}")
    rows = []
    for name, results, call, options in compiled_kernels():
        compiled = ktpu.compile(call, machine, **options)
        rtl.transport.marks()
        report = replay(compiled.artifact, model, rtl)
        if not report.agree:
            raise SystemExit("\n".join([name, *(f.text() for f in report.findings()), *report.problems]))
        marks = rtl.transport.marks()
        cycles = marks["last_signal"] - marks["first_kick"]
        row = {"name": name, "results": results, "cycles": cycles, "results_per_cycle": round(results / cycles, 3)}
        rows.append(row | cost(compiled, model))
    rtl.close()
    return rows


def cost(compiled: ktpu.Compiled, model: Any) -> Row:
    """Instruction flits, rounds and memory of a program; the replay has shown that both machines move as much."""
    done = model.run(compiled.artifact)
    read, written = (32 * sum(r.dram_words[i] for r in done.rounds) for i in (0, 1))
    counted = counters(compiled)
    moved = {"bytes_read": read, "bytes_written": written, "temp_bytes": counted["temp_bytes"]}
    return {"payloads": counted["payloads"], "rounds": counted["rounds"], **moved}


def four_cores() -> dict[str, Row]:
    """linear_silu 32x64x32 on four cores of each kind, in the functional model: fused and through memory."""
    fused, staged, _ = both(FORMS["silu"], FOUR)
    forms = {"fused": fused, "staged": staged}
    return {name: {**cost(c, device(FOUR)), "original": ORIGINAL[name]} for name, c in forms.items()}


def show(title: str, heads: list[str], rows: list[list[Any]]) -> None:
    """One table on the console."""
    table = Table(*heads, box=None, pad_edge=False, title=title or None)
    for row in rows:
        table.add_row(*(f"{v:,}" if isinstance(v, int) else "" if v is None else str(v) for v in row))
    Console(width=130, highlight=False).print(table)


def report(found: dict[str, Any]) -> None:
    """Print what was measured."""

    def line(r: Row) -> list[Any]:
        cycles = r["cycles"]
        last = list(cycles.values())[-1] if isinstance(cycles, dict) else cycles
        rate = r.get("results_per_cycle", {})
        return [last, r["bound"], r.get("goal"), *(rate.get(k) for k in ("cycles", "bound", "goal"))]

    heads = ["cycles", "bound", "goal", "results a cycle", "at bound", "at goal"]
    only = found["core"]
    show(f"instructions, VL = {VL}", ["", *heads], [[r["name"], *line(r)] for r in only["instructions"]])
    show(f"memory unit, VL = {VL}", ["", *heads], [[r["name"], *line(r)] for r in only["loads_and_stores"]])
    moves = only["fills_and_drains"] + [r | {"name": f"VDRAIN, {r['name']}"} for r in only["drains"]]
    show("256 words, L = 40", ["", *heads], [[r["name"], *line(r)] for r in moves])
    rows = [[r["name"], *line(r), r["lane_occupancy"]] for r in only["kernels"]]
    rows += [[f"{count(r['operations'])}, {MODES[r['depth']]}", *line(r), r["lane_occupancy"]] for r in only["chains"]]
    show("kernels of one RUN, 1,024 elements, L = 40", ["", *heads, "lanes busy"], rows)
    d = only["double_buffering"]
    text = f"{d['both']:,} cycles, fills {d['fills']:,}, rest {d['rest']:,}: {d['ratio']} of the longer (1.1)"
    Console(width=130).print(f"double buffering, {d['batches']} batches, L = 200: {text}")
    keys = ["name", "cycles", "results_per_cycle", "payloads", "rounds", "bytes_read", "bytes_written", "temp_bytes"]
    heads = ["", "cycles", "results a cycle", "payloads", "rounds", "read", "written", "temps"]
    title = f"compiled kernels on {MACHINE}, DRAM latency {LATENCY} cycles"
    show(title, heads, [[r[k] for k in keys] for r in found["machine"]])
    heads = ["linear_silu 32x64x32, four of each", "payloads", "original", "read", "written", "temps", "original"]
    rows = []
    for name, r in found["four_cores"].items():
        was = r["original"]
        moved = [r["bytes_read"], r["bytes_written"], r["temp_bytes"], was["temp_bytes"]]
        rows.append([name, r["payloads"], was["payloads"], *moved])
    show("", heads, rows)


def text_of(value: Any, depth: int = 0) -> str:
    """JSON with one row a line."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if depth > 2 or not any(isinstance(v, dict | list) for v in inner):
        return json.dumps(value)
    pad = " " * (depth + 1)
    if isinstance(value, dict):
        parts = [f"{json.dumps(k)}: {text_of(v, depth + 1)}" for k, v in value.items()]
    else:
        parts = [json.dumps(v) for v in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return f"{opened}\n{pad}" + f",\n{pad}".join(parts) + f"\n{' ' * depth}{closed}"


def main() -> None:
    """Measure, print, store."""
    found: dict[str, Any] = {
        "latency": LATENCY,
        "core": core(),
        "machine": whole(),
        "four_cores": four_cores(),
    }
    report(found)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text_of(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

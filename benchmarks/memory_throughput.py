# SPDX-License-Identifier: Apache-2.0
"""Words a cycle and read latency of the memory agent, beside the limit of one word a cycle.

    python benchmarks/memory_throughput.py

The figures come from a bench that compares every word it moves with the reference first. A port is measured from its
first word to its last, a move by the difference between two lengths, so that starting it is no part of its rate.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kohakubench import bench, figures, run

NAME = "mag_rates"
RESULT = Path(__file__).parent / "results" / "memory_throughput.json"
TESTS = ("reads", "writes", "mover", "read_latency")
CONFIGURATIONS = {"4": None, "16": "rd16"}
"""Bursts a requester may have in flight -> variant of the bench."""

Row = dict[str, Any]


def measured(variant: str | None) -> dict[str, list[Row]]:
    """Rows of every test; the bench has to pass."""
    verdict = run.run(bench.load(NAME), run.Request(variant=variant))
    if not verdict.passed:
        raise SystemExit("\n".join([f"{NAME}:", *verdict.failures]))
    return {test: figures.read(verdict.run_dir, test) for test in TESTS}


def show(title: str, rows: list[list[Any]], heads: list[str]) -> None:
    """One table on the console."""
    table = Table(*heads, box=None, pad_edge=False, title=title)
    for row in rows:
        table.add_row(*(f"{v:,}" if isinstance(v, int) else "" if v is None else str(v) for v in row))
    Console(width=130, highlight=False).print(table)


def by_latency(rows: list[Row], key: str = "rate") -> dict[str, dict[int, Any]]:
    """Name -> memory latency -> figure."""
    out: dict[str, dict[int, Any]] = {}
    for row in rows:
        out.setdefault(row["name"], {})[row["latency"]] = row[key]
    return out


def report(found: dict[str, dict[str, list[Row]]]) -> None:
    """Print what was measured."""
    for outstanding, tests in found.items():
        for test in ("reads", "writes", "mover"):
            latencies = sorted({r["latency"] for r in tests[test]})
            rows = [[n, *(at.get(k) for k in latencies)] for n, at in by_latency(tests[test]).items()]
            title = f"{test}, words a cycle, {outstanding} bursts in flight"
            show(title, rows, ["", *(f"latency {k}" for k in latencies)])
        heads = ["name", "spacing", "reads", "min", "p50", "p90", "p99", "max"]
        rows = [[r[h] for h in heads] for r in tests["read_latency"]]
        show(f"read latency in cycles, memory 2 to 60, {outstanding} bursts in flight", rows, heads)


def text_of(found: dict[str, dict[str, list[Row]]]) -> str:
    """JSON with one row a line."""
    parts = []
    for outstanding, tests in found.items():
        inner = ",\n".join(
            f"  {json.dumps(t)}: [\n" + ",\n".join(f"   {json.dumps(r)}" for r in rows) + "\n  ]"
            for t, rows in tests.items()
        )
        parts.append(f" {json.dumps('RD_OUT ' + outstanding)}: {{\n{inner}\n }}")
    return "{\n" + ",\n".join(parts) + "\n}"


def main() -> None:
    """Measure, print, store."""
    found = {outstanding: measured(variant) for outstanding, variant in CONFIGURATIONS.items()}
    report(found)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(text_of(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Cycles of cube products through the whole machine, one cluster, first kick to last completion.

    python benchmarks/gemm_cycles.py

Two memories: ideal (fixed latency, one beat a cycle, many outstanding) and one outstanding
transaction. Percent of 512 MAC a cycle, beside the figures of the machine this one follows
(docs/spec/cluster.md 10.2). Every product is compared with the reference bit for bit first.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import ktpu
from ktpu.replay import replay

MACHINE = "mm_mesh"
RESULT = Path(__file__).parent / "results" / "gemm_cycles.json"
LATENCY = 20
MACS = 512
MEMORIES = {"ideal": {}, "one outstanding": {"SINGLE": 1}}
BEFORE = {
    ("ideal", 64): 44.9,
    ("ideal", 128): 71.7,
    ("ideal", 256): 85.0,
    ("one outstanding", 64): 25.9,
    ("one outstanding", 128): 43.8,
    ("one outstanding", 256): 69.7,
}
TILINGS = {
    64: [(16, 16, 2), (16, 16, 1), (8, 16, 2), (8, 16, 1), (8, 8, 1), (8, 8, 2), (16, 8, 1)],
    128: [(16, 32, 4), (16, 32, 1), (16, 32, 2), (8, 32, 1), (16, 16, 2), (32, 16, 2), (8, 32, 2)],
    256: [(16, 32, 8), (16, 32, 4), (16, 32, 2)],
}


def measure(memory: str, params: dict[str, int]) -> list[dict[str, object]]:
    """One row a (size, tiling)."""
    machine = ktpu.machine(MACHINE)
    device = ktpu.open(f"rtl:{MACHINE}", dram_params=params, dram={"ideal": 1, "lat_min": LATENCY, "lat_max": LATENCY})
    model = ktpu.open(f"model:{MACHINE}")
    rows = []
    for n, tilings in TILINGS.items():
        rng = np.random.default_rng(n)
        a, b = rng.standard_normal((n, n)), rng.standard_normal((n, n)) / np.sqrt(n)
        for tiling in [None, *tilings]:
            knobs = dict(zip(("gm", "gn", "nk"), tiling, strict=True)) if tiling else {}
            compiled = ktpu.compile(ktpu.matmul(a, b, **knobs), machine)
            device.transport.marks()
            report = replay(compiled.artifact, model, device)
            if not report.agree:
                raise SystemExit("\n".join(f.text() for f in report.findings()))
            marks = device.transport.marks()
            cycles = marks["last_signal"] - marks["first_kick"]
            band = compiled.schedule.bands[0].tiling
            rows.append(
                {
                    "memory": memory,
                    "n": n,
                    "tiling": [band.gm, band.gn, band.nk],
                    "chosen": tiling is None,
                    "payloads": len(compiled.artifact.payloads),
                    "rounds": len(report.rounds),
                    "cycles": cycles,
                    "percent": round(100 * n**3 / (MACS * cycles), 2),
                    "before": BEFORE[(memory, n)],
                }
            )
    device.close()
    return rows


def main() -> None:
    """Measure, print, store."""
    rows = [row for memory, params in MEMORIES.items() for row in measure(memory, params)]
    table = Table(box=None, pad_edge=False, title=f"cube products on one cluster, DRAM latency {LATENCY} cycles")
    for head in ("memory", "n", "gm,gn,nk", "", "payloads", "rounds", "cycles", "% of 512 MAC", "before %"):
        table.add_column(head)
    for r in rows:
        table.add_row(
            str(r["memory"]),
            str(r["n"]),
            ",".join(map(str, r["tiling"])),
            "chosen" if r["chosen"] else "",
            str(r["payloads"]),
            str(r["rounds"]),
            f"{r['cycles']:,}",
            f"{r['percent']:.2f}",
            str(r["before"]),
        )
    Console(width=120).print(table)
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"machine": MACHINE, "latency": LATENCY, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

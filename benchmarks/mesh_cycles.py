# SPDX-License-Identifier: Apache-2.0
"""The cost model beside the machine: cycles of whole kernels, first kick to last completion.

    python benchmarks/mesh_cycles.py

The analytic bracket and the mesh-level mode (docs/spec/compiler.md 14.2) price the programs that then run on the RTL,
with a memory of 20 cycles and one beat a cycle. Every kernel is compared with the reference bit for bit first. What a
host does between two rounds is in the machine's figure alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import ktpu
from kohakutpu.kernels import library
from kohakutpu.tensor import Call
from ktpu.replay import replay

RESULT = Path(__file__).parent / "results" / "mesh_cycles.json"
LATENCY = 20


def _normal(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def product(n: int, tile: int, nk: int) -> Call:
    """A cube by tiles of tile x tile sub-tiles."""
    return ktpu.matmul(_normal(n, n), _normal(n, n), gm=tile, gn=tile, nk=nk)


CASES = {
    "mm_quad": {
        "64-cube, 4x4 sub-tiles": lambda: product(64, 4, 2),
        "128-cube, 8x8 sub-tiles": lambda: product(128, 8, 2),
        "128-cube, 16x16 sub-tiles": lambda: product(128, 16, 2),
        "256-cube, 8x8 sub-tiles": lambda: product(256, 8, 2),
        "layernorm 32x128": lambda: ktpu.call(library.layernorm(128), _normal(32, 128), _normal(128), _normal(128)),
    },
    "mm_store": {
        "softmax 16x128": lambda: ktpu.call(library.softmax(128), _normal(16, 128)),
        "mlp 64x128x256": lambda: ktpu.call(library.mlp(), _normal(64, 128), _normal(256, 128), _normal(128, 256)),
    },
}


def measure(name: str, call: Call, model: ktpu.Device, device: ktpu.Device) -> dict[str, object]:
    """One kernel: three figures of the model beside the machine's."""
    compiled = ktpu.compile(call, ktpu.machine(name))
    device.transport.marks()
    report = replay(compiled.artifact, model, device)
    if not report.agree:
        raise SystemExit("\n".join(f.text() for f in report.findings()))
    marks = device.transport.marks()
    bracket, mesh = ktpu.cost(compiled), ktpu.mesh_cost(compiled, LATENCY)
    return {
        "low": bracket.low,
        "high": bracket.high,
        "mesh": mesh.cycles,
        "limiters": [b.limiter for b in mesh.bands],
        "rounds": len(report.rounds),
        "cycles": marks["last_signal"] - marks["first_kick"],
    }


def main() -> None:
    """Measure, print, store."""
    table = Table("machine", "kernel", "rounds", "bracket", "mesh", "RTL", "mesh / RTL", "limiters on the mesh")
    rows = []
    for machine, cases in CASES.items():
        device = ktpu.open(f"rtl:{machine}", dram={"ideal": 1, "lat_min": LATENCY, "lat_max": LATENCY})
        model = ktpu.open(f"model:{machine}")
        for kernel, make in cases.items():
            row: dict[str, Any] = {"machine": machine, "kernel": kernel, **measure(machine, make(), model, device)}
            rows.append(row)
            figures = [f"{row['rounds']}", f"{row['low']:,}..{row['high']:,}", f"{row['mesh']:,}", f"{row['cycles']:,}"]
            limiters = ", ".join(sorted(set(row["limiters"])))
            table.add_row(machine, kernel, *figures, f"{row['mesh'] / row['cycles']:.2f}", limiters)
        device.close()
    Console(width=150).print(table)
    RESULT.write_text(json.dumps({"latency": LATENCY, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

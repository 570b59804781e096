# SPDX-License-Identifier: Apache-2.0
"""Speed of the reference model: products on one cluster, and the arithmetic alone.

`python benchmarks/model_speed.py` prints a table and writes `benchmarks/results/model_speed.json`. Run it
with OPENBLAS_NUM_THREADS=1 on an otherwise idle core, from an installed package or with PYTHONPATH=compiler.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kohakutpu.isa import cluster as isa
from kohakutpu.model import numerics as num
from kohakutpu.model.description import MachineDescription
from kohakutpu.model.machine import Machine

ROOT = Path(__file__).resolve().parents[1]
NODE = (2, 1)
GM, GN = 16, 32
B_BASE, C_BASE = 0x100_0000, 0x200_0000
MAX_PROGRAM = 32


def one_cluster() -> MachineDescription:
    """A 2x1 mesh with one cluster, as in mm_mesh."""
    return MachineDescription(
        "model_speed", 2, 1, units={"MG": (NODE,)}, mem_ports=((0, 1),), orch=(1, 1), credit_max=32
    )


def operand_image(q: np.ndarray, scale: np.ndarray, layout: num.Layout) -> bytes:
    """Entries (groups, nk, 4, 32) in group order, K ascending: what one FILL per group reads."""
    return num.pack_words(q, scale, layout).tobytes()


def product_program(m: int, n: int, k: int) -> list[int]:
    """FILL, GEMM and DRAIN of an m x n x k product in tiles of 16 x 32 sub-tiles."""
    nk = k // 32
    chunk = min(nk, 256 // GN)
    words: list[int] = []
    for tm in range(m // (4 * GM)):
        for tn in range(n // (4 * GN)):
            for kb in range(0, nk, chunk):
                for g in range(GM):
                    addr = 128 * ((tm * GM + g) * nk + kb)
                    words.append(isa.encode("FILL", addr=addr, n=chunk, sel=0, eoff=g * chunk))
                for g in range(GN):
                    addr = B_BASE + 128 * ((tn * GN + g) * nk + kb)
                    words.append(isa.encode("FILL", addr=addr, n=chunk, sel=1, eoff=g * chunk))
                words.append(isa.encode("GEMM", gm=GM, gn=GN, nk=chunk, acc=int(kb > 0)))
            tile = tm * (n // (4 * GN)) + tn
            words.append(isa.encode("DRAIN", addr=C_BASE + 32 * GM * GN * tile, n=GM * GN))
    return words


def read_result(machine: Machine, m: int, n: int) -> np.ndarray:
    """FP16 codes (m, n) from the drained tile images."""
    raw = np.frombuffer(machine.read_mem(C_BASE, 2 * m * n), dtype="<u2")
    grid = raw.reshape(m // (4 * GM), n // (4 * GN), GM, GN, 4, 4)
    return grid.transpose(0, 2, 4, 1, 3, 5).reshape(m, n)


def machine_product(m: int, n: int, k: int) -> tuple[float, int]:
    """Seconds of the dispatches of one product on one cluster, and its instruction count."""
    rng = np.random.default_rng(1)
    a, b = num.fp16_codes(rng.standard_normal((m, k))), num.fp16_codes(rng.standard_normal((n, k)))
    machine = Machine(one_cluster())
    machine.write_mem(0, operand_image(*num.operand_entries(a), num.Layout.A))
    machine.write_mem(B_BASE, operand_image(*num.operand_entries(b), num.Layout.B))
    program = product_program(m, n, k)
    start = time.perf_counter()
    for at in range(0, len(program), MAX_PROGRAM):
        machine.dispatch(NODE, 0, program[at : at + MAX_PROGRAM])
    seconds = time.perf_counter() - start
    if not np.array_equal(read_result(machine, m, n), num.product(a, b)[1]):
        raise SystemExit(f"{m}x{n}x{k}: the machine and the reference product differ")
    return seconds, len(program)


def best(run: Callable[[], object], times: int = 3) -> float:
    """Shortest of a few runs, in seconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def measure() -> list[dict[str, float | str]]:
    """All rows: name, seconds, rate and its unit."""
    rows: list[dict[str, float | str]] = []
    for m, n, k in ((256, 256, 256), (256, 256, 1024)):
        seconds, count = min(machine_product(m, n, k) for _ in range(3))
        name = f"machine {m}x{n}x{k}, tiles 16x32, {count} instructions"
        rows.append({"name": name, "seconds": seconds, "rate": m * n * k / seconds, "unit": "MAC/s"})
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 1 << 22, (2, 1 << 20))
    fp16 = rng.integers(0, 1 << 16, (1 << 15, 32))
    for name, run, work in (
        ("acc_add, 2^20 pairs", lambda: num.acc_add(codes[0], codes[1]), 1 << 20),
        ("to_fp16, 2^20 codes", lambda: num.to_fp16(codes[0]), 1 << 20),
        ("quantise, 2^15 lanes", lambda: num.quantise(fp16), 1 << 20),
    ):
        seconds = best(run)
        rows.append({"name": name, "seconds": seconds, "rate": work / seconds, "unit": "elements/s"})
    return rows


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "model_speed.json")
    out: Path = parser.parse_args().out
    rows = measure()
    width = max(len(str(r["name"])) for r in rows)
    for r in rows:
        print(f"{r['name']:<{width}}  {r['seconds']:8.4f} s  {float(r['rate']) / 1e6:10.1f} M {r['unit']}")
    out.parent.mkdir(parents=True, exist_ok=True)
    host = {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()}
    out.write_text(json.dumps({"host": host, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

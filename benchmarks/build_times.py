# SPDX-License-Identifier: Apache-2.0
"""Seconds to build the model of mm_mesh and to start a session, cold and warm.

    python benchmarks/build_times.py

Cold: nothing cached. Recompiled: the compiler cache holds the objects. Warm: the model is
found by its key. Each figure is one run in an empty folder of its own. ``bench_warm_s`` is
``make TEST=canary`` with its model cached, from process start to verdict: the fastest of five.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).parent / "results" / "build_times.json"
CODE = """
import json, time
start = time.monotonic()
from kohakubench.session import RtlSession
session = RtlSession("mm_mesh")
ready = time.monotonic() - start
build = session.model.seconds
session.close()
print(json.dumps({"build_s": round(build, 2), "ready_s": round(ready, 2), "cached": session.model.cached}))
"""


def once(folder: str) -> dict[str, object]:
    """One process: import, build or find the model, start the simulator, be ready."""
    env = {**os.environ, "KOHAKU_SIM_BUILD": folder}
    done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
    row: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return row


def bench(folder: str) -> float:
    """Seconds of one run of the smallest bench, everything included."""
    start = time.monotonic()
    env = {**os.environ, "KOHAKU_SIM_BUILD": folder}
    subprocess.run(["make", "TEST=canary"], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=True)
    return round(time.monotonic() - start, 2)


def main() -> None:
    """Measure, print, store."""
    result: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="ktpu-build-") as folder:
        bench(folder)
        result["bench_warm_s"] = min(bench(folder) for _ in range(5))
        result["cold"] = once(folder)
        shutil.rmtree(Path(folder) / "models")
        result["recompiled"] = once(folder)
        result["warm"] = once(folder)
    print(json.dumps(result, indent=1))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

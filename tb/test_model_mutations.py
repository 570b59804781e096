# SPDX-License-Identifier: Apache-2.0
"""Faults put into a copy of the reference model, each of which its tests have to notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.mutation

ROOT = Path(__file__).resolve().parents[1]
MODEL = Path("compiler/kohakutpu/model")

# name: (file, text, replacement, test file, tests to run)
MUTATIONS = {
    "reciprocal of 13": ("numerics/mxfp7.py", "2520", "2521", "numerics", "random_entries"),
    "scale carry": ("numerics/mxfp7.py", "(m8 >= 16)", "(m8 > 16)", "numerics", "scale_boundaries"),
    "scale clamp": ("numerics/mxfp7.py", "-SCALE_BIAS, 11", "-19, 11", "numerics", "lone_code"),
    "tie direction": ("numerics/mxfp7.py", "(shift + 15))", "(shift + 15)) - 1", "numerics", "lone_code"),
    "slot order": ("numerics/mxfp7.py", "(-2, -1, -3)", "(-2, -3, -1)", "numerics", "quantiser_vectors"),
    "block rounding": ("numerics/bits.py", "(floor & 1) == 1", "(floor & 1) == 0", "numerics", "chain"),
    "lost bits": ("numerics/accumulator.py", "(lost | ", "(~lost | ", "accumulator", "contract"),
    "alignment clamp": (
        "numerics/accumulator.py",
        "eb - es, mw + 9",
        "eb - es, mw",
        "accumulator",
        "exponent",
    ),
    "saturation": ("numerics/accumulator.py", "over = e >= 127", "over = e >= 126", "accumulator", "corners"),
    "flush to zero": ("numerics/accumulator.py", "(q <= 0)", "(q < 0)", "accumulator", "exhaustive"),
    "granule width": (
        "numerics/accumulator.py",
        "w = mw + 8",
        "w = mw + 7",
        "accumulator",
        "vectors or commands",
    ),
    "order of K": ("numerics/tiles.py", "in range(nk)", "in reversed(range(nk))", "accumulator", "products"),
    "subnormal store": ("numerics/convert.py", "118 - e", "117 - e", "numerics", "boundaries"),
    "first FILL row": ("cluster_decode.py", "i.n > g.MG_FILL_MAX", "i.n > 256", "decode", "decode_row"),
    "row order": ("cluster_decode.py", "i.node and i.dfin == 0", "i.dfin == 0", "decode", "decode_row"),
    "fence mark": ("cluster.py", "last or (passed and", "last or (True and", "machine", "owner_is"),
    "async kept": (
        "cluster.py",
        "fault, self._async = self._async, None",
        "fault = self._async",
        "bursts",
        "reject",
    ),
    "opened count": ("cluster.py", "max(self.opened, i.gm * i.gn)", "i.gm * i.gn", "machine", "partial"),
    "fault counts": (
        "cluster.py",
        "if fault is None:\n            # an",
        "if True:\n            # an",
        "machine",
        "success",
    ),
    "partition": ("cluster.py", "n = min(g.MG_WBURST,", "n = min(7,", "machine", "node_drain"),
    "first failure": ("shell.py", "self._pending or code", "code or self._pending", "machine", "owner_is"),
    "split entry": ("operand_store.py", "good = False\n", "good = True\n", "bursts", "split_entry"),
    "reply target": (
        "cud_rx.py",
        "ack if ack != (0, 0) else flit.src",
        "ack",
        "bursts",
        "acknowledgement or single",
    ),
    "count of a burst": ("cud_rx.py", "last != (burst.left == 0)", "False", "bursts", "last_against"),
    "order of checks": ("memory.py", "aligned and addr % WORD", "False", "memory", "classify"),
    "whole run": (
        "agent.py",
        "self.check(addr, words * WORD)",
        "self.check(addr, WORD)",
        "memory",
        "faulting",
    ),
    "credit of a batch": (
        "orchestrator.py",
        "if fault or code ==",
        "if True or code ==",
        "control",
        "credit",
    ),
    "credit ceiling": (
        "orchestrator.py",
        "min(self.credit + 1, self._ceiling)",
        "self.credit + 1",
        "control",
        "ceiling",
    ),
    "first event": (
        "orchestrator.py",
        "if self._first_event is None:\n                self",
        "if True:\n                self",
        "control",
        "first_event",
    ),
    "slot without DONE": (
        "engine.py",
        "self.pc == self.desc.ncmd - 1",
        "self.pc == 126",
        "control",
        "engine_ends",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, test, select = MUTATIONS[name]
    skip = shutil.ignore_patterns("__pycache__", "sim_build", ".*")
    for folder in ("compiler", "spec", "tb"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    target = tmp_path / MODEL / file
    text = target.read_text()
    assert old in text, f"{file} no longer contains {old!r}; adapt the mutation"
    target.write_text(text.replace(old, new))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tmp_path / f) for f in ("compiler", "tb"))}
    command = [sys.executable, "-m", "pytest", f"tb/test_model_{test}.py", "-x", "-q", "-k", select]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert " failed" in done.stdout

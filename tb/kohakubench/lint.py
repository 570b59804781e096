# SPDX-License-Identifier: Apache-2.0
"""Verilog lint: every module of ``rtl/`` on its own, no warning allowed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kohakubench import tools
from kohakubench.bench import ROOT
from kohakubench.build import INCLUDE, LINT_WAIVERS


def modules() -> list[Path]:
    """Synthesizable source files, one module each; checkers are not among them."""
    return [p for p in sorted((ROOT / "rtl").rglob("*.v")) if not p.stem.endswith("_sva")]


def verilator_lint(path: Path) -> str:
    """Warnings of ``verilator --lint-only -Wall`` for the module of ``path``; empty if clean."""
    ver = tools.verilator()
    command = [str(ver.program), "--lint-only", "-Wall", "--timing", "--language", "1364-2005"]
    command += [f"-I{INCLUDE}"]
    for folder in sorted({p.parent for p in modules()}):
        command += ["-y", str(folder)]
    if LINT_WAIVERS.exists():
        command.append(str(LINT_WAIVERS))
    command += ["--top-module", path.stem, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ver.env}, check=False, cwd=ROOT)
    return done.stderr.strip() if done.returncode or done.stderr.strip() else ""

# SPDX-License-Identifier: Apache-2.0
"""Style, types and layers are part of the tests, so nobody has to remember them."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kohakubench.bench import ROOT
from kohakubench.lint import modules, verilator_lint

pytestmark = pytest.mark.unit


def _tool(*command: str) -> None:
    program = Path(sys.executable).parent / command[0]
    path = str(program) if program.exists() else shutil.which(command[0])
    assert path, f"{command[0]} is missing; fix: make setup"
    done = subprocess.run([path, *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.stem)
def test_verilog_has_no_warning(path: Path) -> None:
    """``verilator --lint-only -Wall`` accepts the module as a top of its own."""
    warnings = verilator_lint(path)
    assert not warnings, warnings


@pytest.mark.parametrize("path", modules(), ids=lambda p: p.stem)
def test_verilog_file_holds_its_module(path: Path) -> None:
    """One module a file, named like the file, with the licence line and the nettype guard."""
    text = path.read_text()
    lines = [ln.split("//")[0].split() for ln in text.splitlines()]
    names = [w[1].split("(")[0].split("#")[0] for w in lines if len(w) > 1 and w[0] == "module"]
    assert names == [path.stem]
    assert text.startswith("// SPDX-License-Identifier: Apache-2.0")
    assert "`default_nettype none" in text
    assert "`default_nettype wire" in text


def test_ruff() -> None:
    """The Python code follows the configured rules."""
    _tool("ruff", "check", "compiler", "driver", "tb", "benchmarks", "examples")


def test_mypy() -> None:
    """The packages type-check under strict settings."""
    packages = ("kohakutpu", "kohakuabi", "kohakudriver", "kohakubench", "ktpu", "ktpu_tinygrad")
    _tool("mypy", *(word for package in packages for word in ("-p", package)))


def test_import_layers() -> None:
    """Compiler and driver never meet, and the levels keep their order."""
    _tool("lint-imports")

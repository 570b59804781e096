# SPDX-License-Identifier: Apache-2.0
"""Mesh generator: a picture becomes the Verilog top of a machine and its description (docs/spec/fabric.md 4).

``generate(path, out_dir)`` writes ``<name>.v`` (the top), ``<name>_checked.sv`` (the top with a link checker
on every link, for benches) and ``<name>.machine.json`` (for compiler and driver).
"""

from __future__ import annotations

import json
from pathlib import Path

from kohakutpu.mesh.checked import checked_top
from kohakutpu.mesh.machine import Machine, derive
from kohakutpu.mesh.picture import MeshError, read
from kohakutpu.mesh.pictures import find, names
from kohakutpu.mesh.verilog import top

LAYER = "L0"

__all__ = ["Machine", "MeshError", "find", "generate", "load", "names"]


def load(path: str | Path) -> Machine:
    """Read and check a mesh description file.

    Raises:
        MeshError: every violated rule, one a line.
        OSError: the file cannot be read.
    """
    return derive(read(Path(path)))


def generate(path: str | Path, out_dir: str | Path) -> Machine:
    """Write everything that follows from the mesh description file ``path`` into ``out_dir``.

    Raises:
        MeshError: every violated rule, one a line; nothing is written then.
        OSError: a file cannot be read or written.
    """
    machine = load(path)
    out = Path(out_dir)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{machine.name}.v").write_text(top(machine), encoding="utf-8")
    (out / f"{machine.name}_checked.sv").write_text(checked_top(machine), encoding="utf-8")
    text = json.dumps(machine.description(), indent=2) + "\n"
    (out / f"{machine.name}.machine.json").write_text(text, encoding="utf-8")
    return machine

# SPDX-License-Identifier: Apache-2.0
"""Writes or checks the generated files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kohakutpu.gen import check, documents, python, seed_rom, tables, verilog

LAYER = "L0"

COMMAND = "python -m kohakutpu.gen"
_SOURCE = "spec/*.json"


def default_root() -> Path:
    """The repository that holds this package."""
    return Path(__file__).resolve().parents[3]


def outputs(root: Path) -> dict[str, str]:
    """Relative path and text of every generated file.

    Raises:
        SpecError: the tables contradict themselves; the message lists every contradiction.
    """
    spec = tables.load(root)
    found = check.problems(spec)
    if found:
        raise tables.SpecError("\n".join(found))
    note = f"Generated from {_SOURCE} by `{COMMAND}`; do not edit."
    files = {
        "rtl/include/ktpu_defs.vh": verilog.render(spec, note),
        "rtl/vector/vc_seed_rom.v": seed_rom.render(spec, note),
        "compiler/kohakutpu/isa/generated.py": python.render_isa(spec, note),
        "compiler/kohakutpu/model/numerics/seed_tables.py": python.render_seeds(spec, note),
        "driver/kohakudriver/generated.py": python.render_driver(spec, note),
    }
    for name, text in documents.render(spec, note).items():
        files[f"docs/spec/tables/{name}"] = text
    return files


def main(argv: Sequence[str] | None = None) -> int:
    """Write every generated file, or with ``--check`` name the stale ones.

    Returns 0 when everything is up to date or written, 1 when ``--check`` found a stale file, 2 when
    the specification contradicts itself.
    """
    parser = argparse.ArgumentParser(prog=COMMAND, description="generate the files derived from spec/*.json")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 and name stale files")
    parser.add_argument("--root", type=Path, default=default_root(), help="repository root")
    args = parser.parse_args(argv)
    try:
        files = outputs(args.root)
    except tables.SpecError as error:
        print(f"spec/*.json is inconsistent:\n{error}", file=sys.stderr)
        return 2
    stale = 0
    for name, text in files.items():
        path = args.root / name
        if path.is_file() and path.read_text() == text:
            continue
        stale += 1
        if args.check:
            print(f"stale: {name} (run: {COMMAND})")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"wrote {name}")
    return 1 if args.check and stale else 0

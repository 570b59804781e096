# SPDX-License-Identifier: Apache-2.0
"""The test plan as data: which tests meet which obligation of the specification.

``tb/testplan.toml`` holds one table per obligation. An obligation is quoted by its first words;
a test is ``bench`` or ``bench::cocotb_test`` or ``file.py::pytest_function``.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from kohakubench.bench import ROOT

PLAN = ROOT / "tb" / "testplan.toml"
PAGES = ROOT / "docs" / "spec"


@dataclass(frozen=True)
class Obligation:
    """One checkbox of a page's last section."""

    page: str
    group: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One table of the plan."""

    page: str
    starts: str
    tests: tuple[str, ...]
    part: str


def obligations(page: str) -> list[Obligation]:
    """Checkboxes of ``docs/spec/<page>.md`` in order."""
    found: list[Obligation] = []
    group = ""
    inside = False
    for line in (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            inside = "Verification obligations" in line
        elif inside and line.startswith("- [ ] "):
            found.append(Obligation(page, group, line[6:].strip()))
        elif inside and line and not line.startswith(("-", " ")):
            group = line.strip().strip("`")
    return found


def entries(path: Path = PLAN) -> list[Entry]:
    """The plan."""
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    return [Entry(e["page"], e["starts"], tuple(e.get("tests", ())), e.get("part", "")) for e in text["obligation"]]


def parts_not_built(path: Path = PLAN) -> set[str]:
    """Names of the parts of the machine that do not exist yet; their obligations wait for them."""
    return set(tomllib.loads(path.read_text(encoding="utf-8")).get("not_built", ()))


def known_tests() -> set[str]:
    """Every name an entry may refer to."""
    names: set[str] = set()
    for path in sorted((ROOT / "tb" / "benches").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        bench = re.search(r"BENCH\s*=\s*\w+\(\s*(?:name=)?\"([^\"]+)\"", text)
        if bench is None:
            continue
        names.add(bench[1])
        modules = [path, *_imported_benches(path)]
        for module in modules:
            names.update(f"{bench[1]}::{n}" for n in _cocotb_tests(module))
    for path in sorted((ROOT / "tb").glob("test_*.py")):
        names.add(path.name)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                names.add(f"{path.name}::{node.name}")
    return names


def _imported_benches(path: Path) -> list[Path]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    out = []
    for node in ast.walk(tree):
        stems: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            stems = [node.module.split(".")[-1], *(a.name for a in node.names)]
        for stem in stems:
            candidate = path.parent / f"{stem}.py"
            if candidate.exists() and candidate != path:
                out.append(candidate)
    return out


def _cocotb_tests(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = set()
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and any("cocotb" in ast.unparse(d) for d in node.decorator_list):
            found.add(node.name)
    return found

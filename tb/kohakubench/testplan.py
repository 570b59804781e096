# SPDX-License-Identifier: Apache-2.0
"""The test plan as data: which tests meet which obligation of the specification.

``tb/testplan.toml`` holds one table per obligation. An obligation is quoted by its first words;
a test is ``bench``, ``bench::cocotb_test`` (``bench-variant`` for one build of it), ``file.py`` or
``file.py::pytest_function``. Clauses that no test checks stand under ``open``; ``part`` names the
part of the machine that has to be built before the rest can be tested.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kohakubench.bench import ROOT

PLAN = ROOT / "tb" / "testplan.toml"
PAGES = ROOT / "docs" / "spec"
PLANNED = ("fabric", "cluster", "memory", "vector", "numerics", "compiler", "kernels")
"""Pages whose obligations the plan has to cover."""

_KEYS = {"page", "starts", "tests", "open", "part"}

State = Literal["full", "partial", "waits", "missing"]


@dataclass(frozen=True)
class Obligation:
    """One checkbox, or a line ``group: text``, of a page's last section."""

    page: str
    group: str
    text: str


@dataclass(frozen=True)
class Entry:
    """One table of the plan."""

    page: str
    starts: str
    tests: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    part: str = ""

    @property
    def state(self) -> State:
        """How much of the obligation is tested."""
        if not self.tests:
            return "waits" if self.part else "missing"
        return "partial" if self.open or self.part else "full"


def obligations(page: str) -> list[Obligation]:
    """Obligations of ``docs/spec/<page>.md`` in order."""
    found: list[Obligation] = []
    group = ""
    inside = False
    for line in (PAGES / f"{page}.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            inside = "Verification obligations" in line
        elif inside and line.startswith("- [ ] "):
            found.append(Obligation(page, group, line[6:].strip()))
        elif inside and line and not line.startswith(("-", " ")):
            # a group of one obligation stands in one line
            name, _, text = line.partition(": ")
            group = name.strip().strip("`")
            if text:
                found.append(Obligation(page, group, line.strip()))
    return found


def entries(path: Path = PLAN) -> list[Entry]:
    """The plan.

    Raises:
        ValueError: a key that means nothing.
    """
    found = []
    for e in tomllib.loads(path.read_text(encoding="utf-8"))["obligation"]:
        unknown = set(e) - _KEYS
        if unknown:
            raise ValueError(f"{path.name}, {e.get('starts')!r}: unknown key {', '.join(sorted(unknown))}")
        tests, left = tuple(e.get("tests", ())), tuple(e.get("open", ()))
        found.append(Entry(e["page"], e["starts"], tests, left, e.get("part", "")))
    return found


def parts_not_built(path: Path = PLAN) -> set[str]:
    """Names of the parts of the machine that do not exist yet; their obligations wait for them."""
    return set(tomllib.loads(path.read_text(encoding="utf-8")).get("not_built", ()))


def of_page(page: str, plan: Iterable[Entry]) -> list[tuple[Obligation, Entry | None]]:
    """Every obligation of a page with its entry."""
    mine = [e for e in plan if e.page == page]
    return [(o, next((e for e in mine if o.text.startswith(e.starts)), None)) for o in obligations(page)]


def known_tests() -> set[str]:
    """Every name an entry may refer to; read from the source text, nothing is imported."""
    names: set[str] = set()
    for path in sorted((ROOT / "tb" / "benches").glob("*.py")):
        bench = _declaration(path)
        if bench is None:
            continue
        name, variants = bench
        builds = [name, *(f"{name}-{v}" for v in variants)]
        names.update(builds)
        names.update(f"{b}::{t}" for b in builds for t in _cocotb_tests(path))
    for path in sorted((ROOT / "tb").glob("test_*.py")):
        names.add(path.name)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                names.add(f"{path.name}::{node.name}")
    return names


def _declaration(path: Path) -> tuple[str, list[str]] | None:
    """Name and variants of the bench a file declares."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
            continue
        if [t.id for t in node.targets if isinstance(t, ast.Name)] != ["BENCH"]:
            continue
        named = {k.arg: k.value for k in node.value.keywords}
        name = named.get("name") or (node.value.args[0] if node.value.args else None)
        if not isinstance(name, ast.Constant):
            continue
        variants = named.get("variants")
        keys = variants.keys if isinstance(variants, ast.Dict) else []
        return str(name.value), [str(k.value) for k in keys if isinstance(k, ast.Constant)]
    return None


def _cocotb_tests(path: Path) -> set[str]:
    """Tests in the namespace of a bench file: its own and those it imports from other bench files."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.AsyncFunctionDef):
            if any(re.match(r"cocotb\.test\b", ast.unparse(d)) for d in node.decorator_list):
                found.add(node.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("benches."):
            other = path.parent / f"{(node.module or '').split('.')[-1]}.py"
            if other.exists() and other != path:
                theirs = _cocotb_tests(other)
                wanted = {a.name for a in node.names}
                found |= theirs if "*" in wanted else theirs & wanted
    return found

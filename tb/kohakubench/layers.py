# SPDX-License-Identifier: Apache-2.0
"""Checks the six levels of the compiler (docs/spec/compiler.md section 1) on the source text alone.

``check(packages, rules)`` gives every broken rule as one line, ``<module>: <what>``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

LAYER = "L0"

LEVELS = {"L5": 5, "L4": 4, "L3": 3, "L2": 2, "L1": 1, "L0": 0}
LEAF = "leaf"

_HIGH = frozenset(
    [
        "addr",
        "address",
        "flit",
        "payload",
        "coord",
        "slot",
        "kick",
        "credit",
        "artifact",
        "pack",
        "unpack",
        "stage_addr",
    ]
)
WORDS: Mapping[str, frozenset[str]] = {
    "L5": _HIGH,
    "L4": _HIGH,
    "L3": frozenset({"byte_order", "offset_bytes", "coord", "flit"}),
}
"""Identifiers and attributes a level must not use."""

HEADER_FIELDS = frozenset(
    ["dst_x", "dst_y", "src_x", "src_y", "txn", "rsvd", "dack_x", "dack_y", "dst", "src", "coord", "xy"]
)
"""Coordinates and header fields, of which L1 knows nothing."""

MAX_LITERAL = 0x1000
"""L5 and L4 hold no integer this large: it would be an address."""


@dataclass
class Module:
    """A parsed source file."""

    name: str
    tree: ast.Module
    package: bool

    @cached_property
    def sources(self) -> dict[str, tuple[str, str]]:
        """Names bound by ``from module import name``, as (module, name)."""
        return {
            alias.asname or alias.name: (_absolute(self, node), alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    @property
    def layer(self) -> str | None:
        """Value of its ``LAYER`` constant."""
        for node in self.tree.body:
            match node:
                case ast.Assign(targets=[ast.Name(id="LAYER")], value=ast.Constant(value=value)):
                    return str(value)
        return None


@dataclass
class Rules:
    """Exceptions; each has to be used, so none outlives its reason.

    Args:
        seams: upward imports ``(from module, to module)``; at most one.
        words: ``(module, word)`` pairs the vocabulary check lets pass.
    """

    seams: frozenset[tuple[str, str]] = frozenset()
    words: frozenset[tuple[str, str]] = frozenset()
    field_names: frozenset[str] = frozenset()
    _used: set[tuple[str, str]] = field(default_factory=set)


def load(roots: Mapping[str, Path]) -> dict[str, Module]:
    """Every module below the given packages, ``{package name: folder}``."""
    modules = {}
    for package, folder in roots.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            modules[name] = Module(name, ast.parse(path.read_text(encoding="utf-8")), is_package)
    return modules


def imports(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    """The modules that define what ``module`` imports, at any depth of the file.

    A name imported from a package that only passes it on leads to the module it comes from.
    """
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in modules)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(module, node)
            for alias in node.names:
                found = definer(source, alias.name, modules)
                if found:
                    yield found


def definer(source: str, name: str, modules: Mapping[str, Module], depth: int = 0) -> str | None:
    """Module that defines ``name`` of module ``source``; None outside the checked packages."""
    if f"{source}.{name}" in modules:
        return f"{source}.{name}"
    if source not in modules:
        return None
    passed_on = modules[source].sources.get(name)
    if passed_on and depth < len(modules):
        return definer(*passed_on, modules, depth + 1) or source
    return source


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    base = parts[: len(parts) - node.level + module.package]
    return ".".join([*base, *([node.module] if node.module else [])])


def check(modules: Mapping[str, Module], rules: Rules | None = None) -> list[str]:
    """Rules 1 to 4; an empty list means that every module keeps its level."""
    rules = rules or Rules()
    rules._used.clear()
    found = [f"{m.name}: LAYER is {m.layer!r}" for m in modules.values() if m.layer not in (*LEVELS, LEAF)]
    if len(rules.seams) > 1:
        found.append(f"seam list: {len(rules.seams)} entries, at most one is allowed")
    for m in modules.values():
        if m.layer in (*LEVELS, LEAF):
            found += _edges(m, modules, rules)
            found += _vocabulary(m, rules)
    unused = (rules.seams | rules.words) - rules._used
    found += [f"{name}: the exception for {what} is used no more" for name, what in sorted(unused)]
    return sorted(set(found))


def _edges(m: Module, modules: Mapping[str, Module], rules: Rules) -> Iterator[str]:
    for target in imports(m, modules):
        there = modules[target].layer
        if target == m.name or there not in (*LEVELS, LEAF) or there == LEAF:
            continue
        if m.layer == LEAF:
            yield f"{m.name}: a leaf imports {target} ({there})"
            continue
        step = LEVELS[str(m.layer)] - LEVELS[there]
        if step < 0:
            if (m.name, target) in rules.seams:
                rules._used.add((m.name, target))
            else:
                yield f"{m.name}: {m.layer} imports upward from {target} ({there})"
        elif step > 1:
            yield f"{m.name}: {m.layer} imports {target} ({there}), {step} levels below"


def _vocabulary(m: Module, rules: Rules) -> Iterator[str]:
    for word, what in _words(m, rules.field_names):
        if (m.name, word) in rules.words:
            rules._used.add((m.name, word))
        else:
            yield f"{m.name}: {m.layer} {what}"


def _words(m: Module, field_names: frozenset[str]) -> Iterator[tuple[str, str]]:
    level = m.layer
    for node in ast.walk(m.tree):
        for name in _identifiers(node):
            if name in WORDS.get(str(level), ()):
                yield name, f"uses the word {name!r}"
            if level == "L1" and name in HEADER_FIELDS:
                yield name, f"names {name!r}, a coordinate or header field"
            if level == "L2" and name in field_names:
                yield name, f"names the field width {name!r}"
        match node:
            case ast.Constant(value=int(value)) if level in ("L5", "L4") and value >= MAX_LITERAL:
                yield str(value), f"holds the number {value:#x}"
            case ast.BinOp(op=ast.LShift() | ast.RShift(), right=ast.Constant(value=by)) if level == "L2":
                yield f"shift {by!r}", f"shifts by the literal {by!r}"


def _identifiers(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            yield name
        case ast.keyword(arg=str(name)):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.ImportFrom() | ast.Import():
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[-1]


def crossing(modules: Mapping[str, Module], left: str, right: str) -> list[str]:
    """Imports between two packages that must not know each other (rule 5)."""
    found = []
    for m in modules.values():
        for node in ast.walk(m.tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [_absolute(m, node)]
            for name in names:
                roots = (m.name.split(".")[0], name.split(".")[0])
                if roots in ((left, right), (right, left)):
                    found.append(f"{m.name}: imports {name}")
    return found

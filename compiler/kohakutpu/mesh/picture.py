# SPDX-License-Identifier: Apache-2.0
"""Mesh description file: parsing and the checks of docs/spec/fabric.md 4.2.

All violations are collected, so one run shows them all; each names the place, the value, the limit and the
fix. Rows and columns count from 0, so a position in the picture is the coordinate (x = column, y = row).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAYER = "L0"

KINDS = ("memory", "orchestrator", "cluster", "vector", "external", "custom")
ADAPTED_KINDS = ("cluster", "vector", "custom")
CLOCKED_KINDS = (*ADAPTED_KINDS, "external")
MESH_CLOCK = "mesh"
GRID_MAX = 14
MEMORY_PORTS_MAX = 4

_TOKEN = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_TOP_KEYS = {"format", "name", "rows", "mesh_id", "fabric", "control", "unit"}
_UNIT_KEYS = {"kind", "module", "params", "clock", "adapter"}
# name: (type, default, lowest, highest) or (type, default, allowed values)
_FABRIC: dict[str, tuple[Any, ...]] = {
    "router_fifo": (int, 32, 4, 4096),
    "router_mem": (str, "dist", ("dist", "block")),
}
_CONTROL: dict[str, tuple[Any, ...]] = {
    "stage_flits": (int, 128, 1, 128),
    "ncmd": (int, 128, 2, 128),
    "poll_ivl": (int, 31, 0, 65535),
    "attach": (str, "hub", ("hub", "token")),
    "engine": (bool, True, (True, False)),
}


class MeshError(ValueError):
    """A mesh description that breaks a rule; the message lists every violation, one a line."""


@dataclass(frozen=True)
class Unit:
    """A ``[unit.<token>]`` table."""

    kind: str
    module: str | None = None
    params: Mapping[str, int | str] = field(default_factory=dict)
    clock: str = MESH_CLOCK
    adapter: int = 0


@dataclass(frozen=True)
class Picture:
    """A mesh description without contradictions in itself; ``cells[y][x]`` are tokens."""

    name: str
    mesh_id: int
    cells: tuple[tuple[str, ...], ...]
    units: Mapping[str, Unit]
    fabric: Mapping[str, Any]
    control: Mapping[str, Any]

    @property
    def nx(self) -> int:
        """Router columns."""
        return len(self.cells[0]) - 2

    @property
    def ny(self) -> int:
        """Router rows."""
        return len(self.cells) - 2

    def placed(self) -> list[tuple[int, int, str]]:
        """(x, y, token) of every endpoint in scan order."""
        return [
            (x, y, token)
            for y, row in enumerate(self.cells)
            for x, token in enumerate(row)
            if token not in (".", "-")
        ]

    def router_of(self, x: int, y: int) -> tuple[int, int]:
        """The router that endpoint (x, y) hangs on."""
        return min(max(x, 1), self.nx), min(max(y, 1), self.ny)


def read(path: Path) -> Picture:
    """Parse and check the file.

    Raises:
        MeshError: with every violation.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise MeshError(f"{path.name}: not a TOML file: {err}") from err
    return parse(data, path.name)


def parse(data: Mapping[str, Any], source: str) -> Picture:
    """Check a parsed description.

    Raises:
        MeshError: with every violation, each starting with ``source``.
    """
    errors: list[str] = []
    _unknown(errors, "", data, _TOP_KEYS)
    if data.get("format") != 1 or isinstance(data.get("format"), bool):
        errors.append(f"format = {data.get('format')!r}: this generator reads format 1; write `format = 1`")
    name = data.get("name")
    if not (isinstance(name, str) and _TOKEN.match(name)):
        errors.append(f"name = {name!r}: a module name is needed (letters, digits, _; a letter first)")
    mesh_id = _value(errors, "mesh_id", data.get("mesh_id", 0), (int, 0, 0, 3))
    fabric = _section(errors, data, "fabric", _FABRIC)
    control = _section(errors, data, "control", _CONTROL)
    depth = fabric["router_fifo"]
    if isinstance(depth, int) and depth & (depth - 1):
        errors.append(f"fabric.router_fifo = {depth}: a power of two >= 4 is needed")
    units = _units(errors, data.get("unit", {}))
    cells = _cells(errors, data.get("rows"))
    if cells:
        _placement(errors, cells, units)
    if errors:
        raise MeshError("\n".join(f"{source}: {e}" for e in errors))
    picture = Picture(str(name), mesh_id, cells, units, fabric, control)
    _population(errors, picture)
    if errors:
        raise MeshError("\n".join(f"{source}: {e}" for e in errors))
    return picture


def _unknown(errors: list[str], where: str, table: Mapping[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            errors.append(f"unknown key {where}{key}; remove it or use one of {', '.join(sorted(known))}")


def _value(errors: list[str], name: str, value: Any, rule: tuple[Any, ...]) -> Any:
    kind, default, *limits = rule
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        errors.append(f"{name} = {value!r}: {kind.__name__} is needed, for example {default!r}")
        return default
    if isinstance(limits[0], tuple):
        if value not in limits[0]:
            choice = " or ".join(repr(v) for v in limits[0])
            errors.append(f"{name} = {value!r}: {choice} is needed")
            return default
    elif not limits[0] <= value <= limits[1]:
        errors.append(f"{name} = {value}: {limits[0]} to {limits[1]} is allowed")
        return default
    return value


def _section(
    errors: list[str], data: Mapping[str, Any], name: str, rules: Mapping[str, tuple[Any, ...]]
) -> dict[str, Any]:
    table = data.get(name, {})
    if not isinstance(table, dict):
        errors.append(f"{name} = {table!r}: a table is needed")
        table = {}
    _unknown(errors, f"{name}.", table, set(rules))
    return {k: _value(errors, f"{name}.{k}", table.get(k, rule[1]), rule) for k, rule in rules.items()}


def _units(errors: list[str], tables: Any) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    if not isinstance(tables, dict):
        errors.append(f"unit = {tables!r}: a table per token is needed")
        return units
    for token, table in tables.items():
        where = f"unit.{token}"
        if not _TOKEN.match(token):
            errors.append(f"{where}: a token is a letter followed by letters, digits or _; rename it")
        if not isinstance(table, dict):
            errors.append(f"{where} = {table!r}: a table with at least `kind` is needed")
            continue
        _unknown(errors, f"{where}.", table, _UNIT_KEYS)
        kind = _value(errors, f"{where}.kind", table.get("kind"), (str, "cluster", KINDS))
        module = table.get("module")
        if kind == "custom" and not (isinstance(module, str) and _TOKEN.match(module)):
            errors.append(f'{where}.module = {module!r}: kind "custom" needs the name of its module')
        if kind != "custom" and module is not None:
            errors.append(f'{where}.module = {module!r}: only kind "custom" names a module; remove it')
        params = table.get("params", {})
        if not isinstance(params, dict) or not all(
            _TOKEN.match(k) and isinstance(v, (int, str)) for k, v in params.items()
        ):
            errors.append(f"{where}.params = {params!r}: a table of numbers and strings is needed")
            params = {}
        clock = table.get("clock", MESH_CLOCK)
        _clock(errors, where, kind, clock)
        adapter = _adapter(errors, where, kind, table.get("adapter", 0))
        plain = {k: int(v) if isinstance(v, bool) else v for k, v in params.items()}
        units[token] = Unit(kind, module, plain, str(clock), adapter)
    return units


def _clock(errors: list[str], where: str, kind: str, clock: Any) -> None:
    if not (isinstance(clock, str) and _TOKEN.match(clock)):
        errors.append(
            f'{where}.clock = {clock!r}: "{MESH_CLOCK}" or the name of a domain is needed (a letter, '
            "then letters, digits or _)"
        )
    elif clock != MESH_CLOCK and kind not in CLOCKED_KINDS:
        errors.append(
            f"{where}.clock = {clock!r}: only {', '.join(CLOCKED_KINDS)} take a domain of their own; "
            f'memory and orchestrator run on the mesh clock; write "{MESH_CLOCK}"'
        )


def _adapter(errors: list[str], where: str, kind: str, lines: Any) -> int:
    """Lines of the unit's L2 adapter, 0 for none."""
    if not isinstance(lines, int) or isinstance(lines, bool) or lines < 0:
        errors.append(f"{where}.adapter = {lines!r}: a number of lines is needed")
    elif lines and kind not in ADAPTED_KINDS:
        errors.append(f"{where}.adapter = {lines}: only {', '.join(ADAPTED_KINDS)} take one, not {kind}")
    elif lines and (lines < 512 or lines & (lines - 1)):
        errors.append(f"{where}.adapter = {lines}: a power of two >= 512 is needed, or 0 for none")
    else:
        return lines
    return 0


def _cells(errors: list[str], rows: Any) -> tuple[tuple[str, ...], ...]:
    if not (isinstance(rows, list) and all(isinstance(r, str) for r in rows)):
        errors.append(f"rows = {rows!r}: a list of strings is needed, the north row first")
        return ()
    cells = tuple(tuple(r.split("#", 1)[0].split()) for r in rows)
    before = len(errors)
    if len(cells) < 3:
        errors.append(f"rows: {len(cells)} rows; at least 3 are needed (one router row and both edges)")
    elif len(cells) > GRID_MAX + 2:
        errors.append(f"row {GRID_MAX + 2}: {len(cells)} rows; at most {GRID_MAX} router rows and both edges")
    width = len(cells[0]) if cells else 0
    if cells and width < 3:
        errors.append(f"row 0: {width} columns; at least 3 are needed (one router column and both edges)")
    elif width > GRID_MAX + 2:
        errors.append(
            f"row 0, column {GRID_MAX + 2}: {width} columns; at most {GRID_MAX} router columns and both edges"
        )
    for y, row in enumerate(cells):
        if len(row) != width:
            at = min(len(row), width)
            errors.append(f"row {y}, column {at}: {len(row)} columns, but row 0 has {width}; make them equal")
    return cells if len(errors) == before else ()


def _placement(errors: list[str], cells: tuple[tuple[str, ...], ...], units: Mapping[str, Unit]) -> None:
    last_x, last_y = len(cells[0]) - 1, len(cells) - 1
    for y, row in enumerate(cells):
        for x, token in enumerate(row):
            where = f"row {y}, column {x}: token {token!r}"
            if x in (0, last_x) and y in (0, last_y):
                if token != ".":
                    errors.append(f'{where} in a corner; only "." is allowed there, no router reaches it')
            elif token in (".", "-"):
                continue
            elif not _TOKEN.match(token):
                errors.append(f"{where} is no token; a letter followed by letters, digits or _ is needed")
            elif token not in units:
                known = ", ".join(sorted(units)) or "none"
                errors.append(f"{where} is not declared; add unit.{token}.kind (declared: {known})")


def _population(errors: list[str], picture: Picture) -> None:
    def at(kind: str) -> list[tuple[int, int, str]]:
        return [p for p in picture.placed() if picture.units[p[2]].kind == kind]

    def where(p: tuple[int, int, str]) -> str:
        return f"row {p[1]}, column {p[0]}: {p[2]!r}"

    memory = at("memory")
    if not memory:
        errors.append('rows: no token of kind "memory"; place 1 to 4')
    for extra in memory[MEMORY_PORTS_MAX:]:
        number = memory.index(extra)
        errors.append(f"{where(extra)} is memory port {number}; at most {MEMORY_PORTS_MAX} are allowed")
    taken: dict[tuple[int, int], tuple[int, int, str]] = {}
    for port in memory:
        router = picture.router_of(port[0], port[1])
        if router in taken:
            errors.append(f"{where(port)} and {where(taken[router])} share router {router}; move one")
        taken.setdefault(router, port)
        if picture.units[port[2]].params != picture.units[memory[0][2]].params:
            errors.append(f"{where(port)}: params differ from {memory[0][2]!r}; one agent serves all")
    controllers = at("orchestrator")
    if picture.control["attach"] == "hub":
        for c in controllers:
            errors.append(
                f'{where(c)} of kind "orchestrator", but control.attach = "hub" shares memory port 0; '
                'remove it or write "token"'
            )
    elif not controllers:
        errors.append(
            'rows: control.attach = "token" needs one token of kind "orchestrator"; place it or write "hub"'
        )
    for c in controllers[1:]:
        errors.append(f"{where(c)} is a second orchestrator; exactly one is allowed")
    if not any(at(kind) for kind in ("cluster", "vector", "custom", "external")):
        errors.append("rows: no compute unit and no external endpoint; place at least one")

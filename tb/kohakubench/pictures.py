# SPDX-License-Identifier: Apache-2.0
"""Mesh pictures for tests of the generator (docs/spec/fabric.md 4)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

Description = dict[str, Any]

UNITS: Description = {
    "mem": {"kind": "memory"},
    "agt": {"kind": "orchestrator"},
    "vc": {"kind": "vector"},
    "mg": {"kind": "cluster"},
    "x": {"kind": "external"},
    "c": {"kind": "custom", "module": "traffic_node"},
}


def picture(rows: list[str], *, attach: str = "hub", slots: int = 16, **more: Any) -> Description:
    """A parsed description with all tokens declared."""
    units = copy.deepcopy(UNITS)
    units["mem"]["params"] = {"WR_SLOTS": slots}
    return {"format": 1, "name": "m", "rows": rows, "control": {"attach": attach}, "unit": units, **more}


def grid(nx: int, ny: int, cells: dict[tuple[int, int], str], fill: str = ".") -> list[str]:
    """Rows of an nx by ny mesh with ``cells`` {(x, y): token}; locals hold ``fill``."""
    return [
        " ".join(cells.get((x, y), fill if 1 <= x <= nx and 1 <= y <= ny else ".") for x in range(nx + 2))
        for y in range(ny + 2)
    ]


CROSSINGS: Description = {
    **UNITS,
    "mem": {"kind": "memory", "params": {"WR_SLOTS": 16}},
    "vc": {"kind": "vector", "clock": "fast"},
    "mg": {"kind": "cluster", "clock": "Slow_2"},
    "x": {"kind": "external", "clock": "fast"},
    "c": {"kind": "custom", "module": "traffic_node", "clock": "third"},
    "m": {"kind": "custom", "module": "traffic_node"},
}
ADAPTERS: Description = {
    **UNITS,
    "mem": {"kind": "memory", "params": {"HOST": 0, "MOVER": 0, "STAGE": 0}},
    "vc": {"kind": "vector", "clock": "fast", "adapter": 512},
    "mg": {"kind": "cluster", "adapter": 8192},
}
FOUR_PORTS = {(0, 1): "mem", (0, 14): "mem", (15, 1): "mem", (15, 14): "mem"}
VALID: dict[str, Description] = {
    "1x1_hub": picture(grid(1, 1, {(0, 1): "mem", (1, 1): "mg"})),
    "1x1_token_full": picture(
        grid(1, 1, {(0, 1): "mem", (1, 1): "mg", (2, 1): "agt", (1, 0): "vc", (1, 2): "x"}), attach="token"
    ),
    "2x1_external": picture(grid(2, 1, {(0, 1): "mem", (1, 0): "vc", (1, 1): "x", (2, 1): "mg"})),
    "1x4_two_ports": picture(grid(1, 4, {(0, 1): "mem", (0, 4): "mem", (1, 2): "mg", (1, 3): "vc"})),
    "4x1_memory_local": picture(grid(4, 1, {(2, 1): "mem", (1, 1): "mg", (4, 0): "c", (5, 1): "x"})),
    "2x2_comment_dash": picture([". mg vc . # north", "mem agt - x", "- mg c -", ". - - ."], attach="token"),
    "3x2_block": picture(grid(3, 2, {(0, 2): "mem", (3, 0): "mg"}), fabric={"router_mem": "block", "router_fifo": 4}),
    "3x3_three_ports": picture(
        grid(3, 3, {(0, 1): "mem", (4, 2): "mem", (2, 4): "mem", (1, 0): "agt"}, "mg"), attach="token"
    ),
    "2x2_no_engine": picture(
        grid(2, 2, {(0, 1): "mem", (1, 1): "x", (2, 2): "x"}),
        control={"attach": "hub", "engine": False, "stage_flits": 64, "ncmd": 16, "poll_ivl": 3},
    ),
    "2x2_crossings": picture(
        grid(2, 2, {(0, 1): "mem", (1, 0): "vc", (1, 1): "mg", (2, 1): "x", (3, 2): "c", (2, 2): "m"}), unit=CROSSINGS
    ),
    "1x1_crossings_token": picture(
        grid(1, 1, {(0, 1): "mem", (1, 1): "agt", (2, 1): "x", (1, 2): "x"}), attach="token", unit=CROSSINGS
    ),
    "2x1_adapters": picture(grid(2, 1, {(0, 1): "mem", (1, 0): "vc", (1, 1): "mg", (2, 1): "mg"}), unit=ADAPTERS),
    "14x1": picture(grid(14, 1, {(0, 1): "mem"}, "mg"), slots=64),
    "1x14_mesh_3": picture(grid(1, 14, {(1, 15): "mem", (1, 7): "vc"}), mesh_id=3),
    "14x14_four_ports": picture(grid(14, 14, {**FOUR_PORTS, **{(x, 15): "vc" for x in range(1, 15)}}, "mg"), slots=128),
}


def write(folder: Path, data: Description, name: str = "m.toml") -> Path:
    """The description as a TOML file."""

    def value(v: object) -> str:
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, list):
            return "[" + ", ".join(value(i) for i in v) + "]"
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{k} = {value(i)}" for k, i in v.items()) + " }"
        return json.dumps(v)

    path = folder / name
    path.write_text("\n".join(f"{k} = {value(v)}" for k, v in data.items()) + "\n", encoding="utf-8")
    return path

# SPDX-License-Identifier: Apache-2.0
"""Machine description: the `<name>.machine.json` a mesh generator writes (docs/spec/fabric.md 4.2).

The build parameters a model needs beyond that file (memory size, cluster parameters) have the defaults of the
unit specifications and may stand in the file under `params`, one table per unit type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kohakutpu.isa import generated as g

LAYER = "L0"

Node = tuple[int, int]
"""Coordinate (x, y)."""

CLUSTER = "MG"
VECTOR = "VC"


@dataclass(frozen=True)
class ClusterParams:
    """Elaboration parameters of a matmul cluster that results depend on (docs/spec/cluster.md 1.2)."""

    tiles: int = 512
    ga: int = 512
    gb: int = 512
    acc_mw: int = g.MG_ACC_MW
    rowmajor: bool = False

    def __post_init__(self) -> None:
        for name, value, low, high in (
            ("tiles", self.tiles, 16, 4096),
            ("ga", self.ga, 32, 512),
            ("gb", self.gb, 32, 512),
        ):
            if not low <= value <= high or value & (value - 1):
                raise ValueError(f"cluster {name} = {value}: a power of two in {low}..{high} is needed")


@dataclass(frozen=True)
class VectorParams:
    """Elaboration parameters of a vector core that results depend on (docs/spec/vector.md 1.2)."""

    mx_store: bool = False


@dataclass(frozen=True)
class MachineDescription:
    """One mesh. Coordinates are (x, y); `units` maps a type to its coordinates in scan order.

    Raises ValueError for an endpoint at a corner, at a router it cannot reach, or twice at one coordinate.
    """

    name: str
    nx: int
    ny: int
    units: Mapping[str, tuple[Node, ...]]
    mem_ports: tuple[Node, ...]
    orch: Node
    external: tuple[Node, ...] = ()
    mesh_id: int = 0
    stage_flits: int = g.STAGE_FLITS
    ncmd: int = g.NCMD
    poll_ivl: int = g.POLL_IVL
    inst_depth: Mapping[str, int] = field(default_factory=dict)
    max_inflight: Mapping[str, int] = field(default_factory=dict)
    ackq: Mapping[str, int] = field(default_factory=dict)
    credit_max: int = g.INST_DEPTH
    cu_version: int = g.CU_VERSION
    stage_bytes: int = g.MEM_STAGE_BYTES
    dram_bytes: int = 1 << g.MEM_DRAM_BYTES_LOG2
    wr_slots: int = g.MEM_WR_SLOTS
    adapter_lines: Mapping[str, int] = field(default_factory=dict)
    mover: bool = True
    features: tuple[str, ...] = ()
    engine_base: int = g.HOST_ENGINE_BASE
    ctrl_base: int = g.HOST_CTRL_BASE
    cluster: ClusterParams = field(default_factory=ClusterParams)
    vector: VectorParams = field(default_factory=VectorParams)

    def __post_init__(self) -> None:
        seen: set[Node] = set()
        places = [*self.mem_ports, *self.external, *(p for group in self.units.values() for p in group)]
        if self.orch not in self.mem_ports:
            places.append(self.orch)
        for x, y in places:
            inside_x, inside_y = 1 <= x <= self.nx, 1 <= y <= self.ny
            if not (0 <= x <= self.nx + 1 and 0 <= y <= self.ny + 1 and (inside_x or inside_y)):
                raise ValueError(
                    f"machine {self.name}: no endpoint can sit at ({x},{y}) of a {self.nx}x{self.ny} mesh"
                )
            if (x, y) in seen:
                raise ValueError(f"machine {self.name}: two endpoints at ({x},{y})")
            seen.add((x, y))

    @property
    def hub(self) -> bool:
        """True if the orchestrator shares the coordinate of memory port 0."""
        return self.orch in self.mem_ports

    def port_of(self, node: Node) -> Node:
        """Memory port a unit at `node` is bound to: the nearest one, ties to the lower number."""

        def clamp(p: Node) -> Node:
            return min(max(p[0], 1), self.nx), min(max(p[1], 1), self.ny)

        cx, cy = clamp(node)
        distances = [abs(cx - px) + abs(cy - py) for px, py in map(clamp, self.mem_ports)]
        return self.mem_ports[distances.index(min(distances))]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MachineDescription:
        """Build from the parsed JSON; keys this model does not use are ignored."""
        known = {f.name for f in fields(cls)}
        own_tables = ("cluster", "vector")
        values = {key: value for key, value in data.items() if key in known and key not in own_tables}
        values["units"] = {kind: _nodes(places) for kind, places in data["units"].items()}
        for name in ("mem_ports", "external"):
            values[name] = _nodes(data.get(name, ()))
        values["orch"] = tuple(data["orch"])
        values["features"] = tuple(data.get("features", ()))
        params = dict(data.get("params", {}).get(CLUSTER, {}))
        own = {f.name for f in fields(ClusterParams)}
        lower = {key.lower(): value for key, value in params.items()}
        cluster = {key: value for key, value in lower.items() if key in own}
        cluster.setdefault("rowmajor", "drain_rowmajor" in values["features"])
        cluster["rowmajor"] = bool(cluster["rowmajor"])
        vector = data.get("params", {}).get(VECTOR, {})
        mx_store = vector.get("MX_STORE", "vec_mx_store" in values["features"])
        return cls(cluster=ClusterParams(**cluster), vector=VectorParams(bool(mx_store)), **values)

    @classmethod
    def load(cls, path: str | Path) -> MachineDescription:
        """Read `<name>.machine.json`."""
        return cls.from_dict(json.loads(Path(path).read_text()))


def _nodes(places: Any) -> tuple[Node, ...]:
    return tuple((int(x), int(y)) for x, y in places)

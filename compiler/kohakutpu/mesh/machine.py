# SPDX-License-Identifier: Apache-2.0
"""Values derived from a picture (docs/spec/fabric.md 4.2) and the description file made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kohakutpu.isa import generated as g
from kohakutpu.mesh.picture import MESH_CLOCK, MeshError, Picture

LAYER = "L0"

Node = tuple[int, int]

TYPES = {"cluster": "MG", "vector": "VC"}
_COMPUTE = ("cluster", "vector", "custom")
# Parameters the generator sets itself, per kind.
_OWN = {
    "cluster": {"CU_X", "CU_Y", "MEM_X", "MEM_Y", "CU_VERSION"},
    "vector": {"CU_X", "CU_Y", "MEM_X", "MEM_Y", "CU_VERSION"},
    "custom": {"POS_X", "POS_Y", "MEM_X", "MEM_Y"},
    "memory": {"PORTS", "MESH_ID", *(f"PORT{n}_{axis}" for n in range(4) for axis in "XY")},
    "orchestrator": {"ORC_X", "ORC_Y", "STAGE_FLITS", "CREDIT_MAX", "NODE_MAP", "GRID_X_HI", "GRID_Y_HI", "INTERLINK"},
    "external": set(),
}


_SHELL = {"INST_DEPTH": g.INST_DEPTH, "MAX_INFLIGHT": g.MAX_INFLIGHT, "ACKQ_DEPTH": g.ACKQ_DEPTH}


@dataclass(frozen=True)
class Endpoint:
    """A placed token. ``index`` counts per kind, ``nth`` per token, both in scan order."""

    token: str
    kind: str
    x: int
    y: int
    index: int
    nth: int
    module: str | None
    params: Mapping[str, int | str]
    mem_port: int
    clock: str = MESH_CLOCK
    adapter: int = 0

    @property
    def crosses(self) -> bool:
        """True if a crossing stands between router and endpoint (docs/spec/fabric.md 9)."""
        return self.clock != MESH_CLOCK

    @property
    def clk(self) -> str:
        """Clock signal of the top."""
        return f"clk_{self.clock}" if self.crosses else "clk"

    @property
    def rst_n(self) -> str:
        """Reset signal of the endpoint's clock domain."""
        return f"rst_n_{self.clock}" if self.crosses else "rst_n"

    @property
    def xy(self) -> Node:
        """Coordinate."""
        return self.x, self.y

    def published(self, name: str) -> int:
        """INST_DEPTH, MAX_INFLIGHT or ACKQ_DEPTH; a custom unit without one has the shell's default."""
        return int(self.params.get(name, _SHELL[name]))

    @property
    def instance(self) -> str:
        """Name of its instance in the top."""
        return f"u_{self.token}_{self.x}_{self.y}"


@dataclass(frozen=True)
class Machine:
    """One mesh with everything decided."""

    picture: Picture
    endpoints: tuple[Endpoint, ...]

    @property
    def name(self) -> str:
        """Machine and top module."""
        return self.picture.name

    @property
    def nx(self) -> int:
        """Router columns."""
        return self.picture.nx

    @property
    def ny(self) -> int:
        """Router rows."""
        return self.picture.ny

    def of(self, *kinds: str) -> list[Endpoint]:
        """Endpoints of these kinds in scan order."""
        return [e for e in self.endpoints if e.kind in kinds]

    @property
    def domains(self) -> dict[str, list[Endpoint]]:
        """Endpoints of each clock domain besides the mesh's own, in scan order."""
        found: dict[str, list[Endpoint]] = {}
        for e in self.endpoints:
            if e.crosses:
                found.setdefault(e.clock, []).append(e)
        return found

    @property
    def mem_ports(self) -> list[Node]:
        """Memory ports by number."""
        return [e.xy for e in self.of("memory")]

    @property
    def hub(self) -> bool:
        """True if the orchestrator shares memory port 0."""
        return str(self.picture.control["attach"]) == "hub"

    @property
    def orch(self) -> Node:
        """Coordinate of the orchestrator."""
        return self.mem_ports[0] if self.hub else self.of("orchestrator")[0].xy

    @property
    def credit_max(self) -> int:
        """Smallest instruction FIFO of all units; the shell's default if there is none."""
        return min((e.published("INST_DEPTH") for e in self.of(*_COMPUTE)), default=g.INST_DEPTH)

    @property
    def node_map(self) -> int:
        """Bit {y, x} is set where something can be dispatched to."""
        return sum(1 << (e.y << 4 | e.x) for e in self.of(*_COMPUTE, "external"))

    @property
    def memory_params(self) -> Mapping[str, int | str]:
        """Parameters of the memory agent."""
        return self.of("memory")[0].params

    def description(self) -> dict[str, Any]:
        """Content of ``<name>.machine.json``."""
        control = self.picture.control
        kinds = {TYPES.get(v[0].kind, v[0].token): v for v in _types(self)}
        memory = self.memory_params
        return {
            "name": self.name,
            "mesh_id": self.picture.mesh_id,
            "nx": self.nx,
            "ny": self.ny,
            "units": {kind: [list(e.xy) for e in group] for kind, group in kinds.items()},
            "clocks": {d: [list(e.xy) for e in group] for d, group in self.domains.items()},
            "external": [list(e.xy) for e in self.of("external")],
            "mem_ports": [list(xy) for xy in self.mem_ports],
            "orch": list(self.orch),
            "attach": control["attach"],
            "engine": control["engine"],
            "stage_flits": control["stage_flits"],
            "ncmd": control["ncmd"],
            "poll_ivl": control["poll_ivl"],
            "inst_depth": {k: min(e.published("INST_DEPTH") for e in v) for k, v in kinds.items()},
            "max_inflight": {k: min(e.published("MAX_INFLIGHT") for e in v) for k, v in kinds.items()},
            "ackq": {k: min(e.published("ACKQ_DEPTH") for e in v) for k, v in kinds.items()},
            "credit_max": self.credit_max,
            "cu_version": g.CU_VERSION,
            "adapter_lines": {k: v[0].adapter for k, v in kinds.items()},
            "stage_bytes": self.stage_bytes,
            "mover": self.mover,
            "dram_bytes": 1 << int(memory["DRAM_BYTES_LOG2"]),
            "wr_slots": memory["WR_SLOTS"],
            "features": self.features(),
            "engine_base": g.HOST_ENGINE_BASE,
            "ctrl_base": g.HOST_CTRL_BASE + self.picture.mesh_id * g.HOST_CTRL_STRIDE,
            "params": {k: dict(v[0].params) for k, v in kinds.items()},
        }

    @property
    def window(self) -> bool:
        """True if the top has the host's memory window."""
        return bool(self.memory_params["HOST"])

    @property
    def mover(self) -> bool:
        """True if the agent has the memory mover."""
        return bool(self.memory_params["MOVER"])

    @property
    def stage_bytes(self) -> int:
        """Size of the L2 staging store, 0 without one."""
        memory = self.memory_params
        return g.MEM_STAGE_ENTRY_BYTES * int(memory["STAGE_ENTRIES"]) if memory["STAGE"] else 0

    def features(self) -> list[str]:
        """Machine features of docs/spec/README.md 6 that every unit concerned provides."""
        clusters, cores = self.of("cluster"), self.of("vector")

        def everywhere(units: list[Endpoint], name: str) -> bool:
            return bool(units) and all(e.params.get(name, 0) for e in units)

        have = {
            "emit_fuse": bool(clusters),
            "vshuf_pred": bool(cores),
            "stage_l2": bool(self.memory_params["STAGE"]),
            "drain_rowmajor": everywhere(clusters, "ROWMAJOR"),
            "vec_mx_store": everywhere(cores, "MX_STORE"),
            "xform_granule": bool(self.memory_params.get("XFORM_GRANULE", 0)) and self.mover,
            "adapter_l2": any(e.adapter for e in self.of(*_COMPUTE)),
        }
        return [name for name, there in have.items() if there]


def derive(picture: Picture) -> Machine:
    """Number the endpoints, bind them to memory ports and complete their parameters.

    Raises:
        MeshError: a parameter the generator owns, units of one type that differ, too few write slots.
    """
    errors: list[str] = []
    placed = picture.placed()
    ports = [(x, y) for x, y, t in placed if picture.units[t].kind == "memory"]
    routers = [picture.router_of(*p) for p in ports]
    per_kind: dict[str, int] = {}
    per_token: dict[str, int] = {}
    endpoints: list[Endpoint] = []
    for x, y, token in placed:
        unit = picture.units[token]
        cx, cy = picture.router_of(x, y)
        distances = [abs(cx - px) + abs(cy - py) for px, py in routers]
        for name in sorted(set(unit.params) & _OWN[unit.kind]):
            errors.append(
                f"row {y}, column {x}: unit.{token}.params.{name} is derived from the picture; remove it"
            )
        endpoints.append(
            Endpoint(
                token,
                unit.kind,
                x,
                y,
                index=per_kind.setdefault(unit.kind, 0),
                nth=per_token.setdefault(token, 0),
                module=unit.module,
                params={**_defaults(unit.kind, unit.params), **unit.params},
                mem_port=distances.index(min(distances)),
                clock=unit.clock,
                adapter=unit.adapter,
            )
        )
        per_kind[unit.kind] += 1
        per_token[token] += 1
    machine = Machine(picture, tuple(endpoints))
    _write_slots(errors, machine)
    for group in _types(machine):
        for e in group[1:]:
            if e.adapter != group[0].adapter:
                errors.append(
                    f"row {e.y}, column {e.x}: adapter = {e.adapter} of {e.token!r} differs from "
                    f"{group[0].adapter} of {group[0].token!r}; the description holds one number per type; "
                    "make them equal"
                )
    for kind in ("cluster", "vector"):
        group = machine.of(kind)
        for e in group[1:]:
            if e.params != group[0].params:
                errors.append(
                    f"row {e.y}, column {e.x}: params of {e.token!r} differ from those of "
                    f"{group[0].token!r}; the description holds one set per kind; make them equal"
                )
    if errors:
        raise MeshError("\n".join(f"{picture.name}: {e}" for e in errors))
    return machine


def _types(machine: Machine) -> list[list[Endpoint]]:
    """The compute units of each type that the description names."""
    found: dict[str, list[Endpoint]] = {}
    for e in machine.of(*_COMPUTE):
        found.setdefault(TYPES.get(e.kind, e.token), []).append(e)
    return list(found.values())


def _defaults(kind: str, given: Mapping[str, int | str]) -> dict[str, int | str]:
    """What the description publishes is passed to the unit explicitly, so the two cannot differ."""
    if kind == "cluster":
        tiles = int(given.get("TILES", 512))
        return {
            "TILES": tiles,
            "GA": 512,
            "GB": 512,
            "ACC_MW": g.MG_ACC_MW,
            "INST_DEPTH": g.INST_DEPTH,
            "MAX_INFLIGHT": g.MAX_INFLIGHT,
            "ACKQ_DEPTH": max(16, tiles // 4),
            "ROWMAJOR": 0,
        }
    if kind == "vector":
        return {"INST_DEPTH": g.INST_DEPTH, "ACKQ_DEPTH": g.ACKQ_DEPTH_VECTOR}
    if kind == "memory":
        return {
            "WR_SLOTS": g.MEM_WR_SLOTS,
            "DRAM_BYTES_LOG2": g.MEM_DRAM_BYTES_LOG2,
            "STAGE": 1,
            "STAGE_ENTRIES": g.MEM_STAGE_ENTRIES,
            "HOST": 1,
            "MOVER": 1,
        }
    return {}


def _write_slots(errors: list[str], machine: Machine) -> None:
    for number, port in enumerate(machine.of("memory")):
        bound = sum(e.mem_port == number for e in machine.of(*_COMPUTE, "external")) + (number == 0)
        slots = int(port.params["WR_SLOTS"])
        if slots < 2 * bound:
            errors.append(
                f"row {port.y}, column {port.x}: memory port {number} serves {bound} endpoints "
                f"(mailbox included) with WR_SLOTS = {slots}; at least {2 * bound} are needed; "
                f"write unit.{port.token}.params.WR_SLOTS = {2 * bound}"
            )

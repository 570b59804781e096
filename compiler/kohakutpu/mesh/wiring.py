# SPDX-License-Identifier: Apache-2.0
"""Links of a machine: who drives which wire bundle and who listens (docs/spec/fabric.md 4.1).

A bundle is ``<name>_valid``, ``<name>_data``, ``<name>_busy``. ``f_<x>_<y>_<p>`` leaves router (x, y) by port
p; ``t_<x>_<y>_<p>`` enters it from an endpoint or terminator. Between routers there are only ``f`` bundles.
At an endpoint with an L2 adapter these two end at the adapter, and ``af``, ``at`` are on its endpoint face. At
an endpoint of another clock domain they end at a crossing, and ``xf``, ``xt`` are the far side's.
"""

from __future__ import annotations

from dataclasses import dataclass

from kohakutpu.mesh.machine import Endpoint, Machine

LAYER = "L0"

PORTS = "neswl"
_STEP = {"n": (0, -1), "e": (1, 0), "s": (0, 1), "w": (-1, 0)}
_OPPOSITE = {"n": "s", "e": "w", "s": "n", "w": "e"}


@dataclass(frozen=True)
class Port:
    """One router port and what hangs on it: a neighbour, an endpoint, or nothing (a terminator)."""

    x: int
    y: int
    side: str
    neighbour: bool
    endpoint: Endpoint | None

    @property
    def out(self) -> str:
        """Bundle that leaves the router here."""
        return f"f_{self.x}_{self.y}_{self.side}"

    @property
    def into(self) -> str:
        """Bundle that enters the router here."""
        if self.neighbour:
            dx, dy = _STEP[self.side]
            return f"f_{self.x + dx}_{self.y + dy}_{_OPPOSITE[self.side]}"
        return f"t_{self.x}_{self.y}_{self.side}"

    @property
    def crosses(self) -> bool:
        """True if the endpoint here has a clock of its own."""
        return self.endpoint is not None and self.endpoint.crosses

    @property
    def adapter(self) -> int:
        """Lines of the L2 adapter between router and endpoint, 0 without one."""
        return self.endpoint.adapter if self.endpoint else 0

    @property
    def near_out(self) -> str:
        """Bundle towards the endpoint on the mesh clock: the adapter's, the router's own without one."""
        return f"a{self.out}" if self.adapter else self.out

    @property
    def near_into(self) -> str:
        """Bundle from the endpoint on the mesh clock: the adapter's, the one into the router without one."""
        return f"a{self.into}" if self.adapter else self.into

    @property
    def to_endpoint(self) -> str:
        """Bundle that enters the endpoint."""
        return f"x{self.out}" if self.crosses else self.near_out

    @property
    def from_endpoint(self) -> str:
        """Bundle that leaves the endpoint."""
        return f"x{self.into}" if self.crosses else self.near_into

    @property
    def terminated(self) -> bool:
        """True if a terminator closes this port."""
        return not self.neighbour and self.endpoint is None


def routers(machine: Machine) -> list[tuple[int, int]]:
    """Coordinates of all routers in scan order."""
    return [(x, y) for y in range(1, machine.ny + 1) for x in range(1, machine.nx + 1)]


def ports(machine: Machine) -> list[Port]:
    """All router ports, router by router."""
    at = {e.xy: e for e in machine.endpoints}
    found = []
    for x, y in routers(machine):
        for side in PORTS:
            dx, dy = _STEP.get(side, (0, 0))
            ox, oy = x + dx, y + dy
            neighbour = side != "l" and 1 <= ox <= machine.nx and 1 <= oy <= machine.ny
            found.append(Port(x, y, side, neighbour, None if neighbour else at.get((ox, oy))))
    return found


def port_of(machine: Machine) -> dict[tuple[int, int], Port]:
    """Router port of every endpoint, by the endpoint's coordinate."""
    return {p.endpoint.xy: p for p in ports(machine) if p.endpoint}

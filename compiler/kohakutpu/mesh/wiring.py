# SPDX-License-Identifier: Apache-2.0
"""Links of a machine: who drives which wire bundle and who listens (docs/spec/fabric.md 4.1).

A bundle is ``<name>_valid``, ``<name>_data``, ``<name>_busy``. ``f_<x>_<y>_<p>`` leaves router (x, y) by port
p; ``t_<x>_<y>_<p>`` enters it from an endpoint or terminator. Between routers there are only ``f`` bundles.
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

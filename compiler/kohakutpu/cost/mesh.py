# SPDX-License-Identifier: Apache-2.0
"""Mesh-level mode of the cost model (docs/spec/compiler.md 14.2): messages of a band on the links of the mesh.

Every unit runs its instructions in order (:mod:`kohakutpu.cost.activity`), asks the nearest memory port for words and
sends its results there or to another unit; messages take links and ports one after another. The answer is what keeps
a band: a unit, a link, a port, or the time messages are under way. It is not cycle accurate; tag ``model``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from kohakutpu.cost import activity as act
from kohakutpu.cost.network import Network, Node, link_text
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, UnitProgram

LAYER = "L2"

LATENCY = 40
"""Cycles from a request at a memory port to its first word, where the caller names none."""

_SHARE = 0.75
"""What is busy for less than this share of a band does not limit it; the time words and results are under way does."""


@dataclass(frozen=True)
class MeshBand:
    """Cycles of one band on the mesh.

    Args:
        number: position in the schedule, as in the analytic model.
        cycles: from the first payload sent to the last acknowledgement.
        busy: cycles each unit, link and memory port is kept, by name.
    """

    number: int
    engine: str
    cycles: int
    busy: Mapping[str, int]

    @property
    def busiest(self) -> tuple[str, float]:
        """What is kept longest, and for which share of the band."""
        name = max(self.busy, key=lambda n: self.busy[n])
        return name, self.busy[name] / max(1, self.cycles)

    @property
    def limiter(self) -> str:
        """The busiest unit, link or port, or ``latency`` if none is busy most of the time."""
        name, share = self.busiest
        return name if share >= _SHARE else "latency"


@dataclass(frozen=True)
class MeshCost:
    """Cycles of a kernel on the mesh, a band at a time."""

    machine: str
    latency: int
    bands: tuple[MeshBand, ...]
    tag: str = field(default="model", init=False)

    @property
    def cycles(self) -> int:
        """Sum of the bands."""
        return sum(b.cycles for b in self.bands)

    def text(self) -> str:
        """Printed form, one line a band."""
        head = f"{self.tag} {self.cycles:,} cycles on the mesh, machine {self.machine}, memory latency {self.latency}"
        lines = [head]
        for b in self.bands:
            name, share = b.busiest
            lines.append(
                f"  {b.engine}{b.number}: {b.cycles:,} cycles, limited by {b.limiter}; {name} is busy {share:.0%}"
            )
        return "\n".join(lines)


def cost(
    programs: Sequence[Sequence[UnitProgram]],
    moves: Sequence[Sequence[Move]],
    machine: MachineSpec,
    latency: int = LATENCY,
) -> MeshCost:
    """Simulate every band of a schedule on the mesh.

    Args:
        programs: unit programs of every band.
        moves: mover passes before every band, and behind the last one; empty if there are none. The mover sits at the
            memory, its words take no link.
        latency: cycles from a request at a memory port to its first word.

    Raises:
        ValueError: a latency below 0.
    """
    if latency < 0:
        raise ValueError(f"memory latency {latency} cycles; it is at least 0")
    out = []
    for number in range(max(len(programs), len(moves))):
        passes = moves[number] if number < len(moves) else ()
        if passes:
            cycles = sum(m.cycles for m in passes)
            out.append(MeshBand(number, "MV", cycles, {"MV0": cycles}))
        if number < len(programs):
            out.append(_Band(programs[number], machine, latency).run(number))
    return MeshCost(machine.name, latency, tuple(out))


@dataclass
class _Unit:
    """One unit at run: when what it started ends, and how much of that is still under way."""

    name: str
    node: Node
    port: int
    started: int = 0
    swept: int = 0
    halves: dict[tuple[str, int], int] = field(default_factory=dict)
    fetching: int = 0
    fetched: int = 0
    writing: int = 0
    written: int = 0
    busy: int = 0


class _Band:
    """The event loop of one band: whatever waits goes on when its time comes."""

    def __init__(self, programs: Sequence[UnitProgram], machine: MachineSpec, latency: int) -> None:
        mesh = machine.meshes[0]
        self.nodes = {f"{kind}{i}": node for kind, placed in mesh.units.items() for i, node in enumerate(placed)}
        self.ports = mesh.mem_ports
        self.orch = mesh.orch or mesh.mem_ports[0]
        every = (*self.nodes.values(), *self.ports, self.orch)
        grid = mesh.grid or (max(x for x, _ in every), max(y for _, y in every))
        self.network = Network((max(1, grid[0]), max(1, grid[1])))
        self.programs, self.machine, self.latency = programs, machine, latency
        self.read_free, self.write_free = [0] * len(self.ports), [0] * len(self.ports)
        self.served: Counter[str] = Counter()
        self.waiting: list[tuple[int, int, Iterator[int]]] = []
        self.numbers = count()
        self.sent = 0

    def run(self, number: int) -> MeshBand:
        """All units to their ends."""
        units = []
        for program in self.programs:
            name = f"{program.engine}{program.unit}"
            units.append(_Unit(name, self.nodes[name], self._nearest(self.nodes[name])))
            self._at(0, self._unit(units[-1], program))
        end = 0
        while self.waiting:
            now, _, process = heappop(self.waiting)
            following = next(process, None)
            if following is not None:
                self._at(max(now, following), process)
            end = max(end, now)
        busy = {u.name: u.busy for u in units} | dict(self.served)
        busy |= {f"link {link_text(link)}": flits for link, flits in self.network.taken.items()}
        return MeshBand(number, self.programs[0].engine, end, busy)

    def _at(self, time: int, process: Iterator[int]) -> None:
        heappush(self.waiting, (time, next(self.numbers), process))

    def _nearest(self, node: Node) -> int:
        """The memory port of a unit (docs/spec/fabric.md 4.2)."""
        x, y = self.network.router(node)
        places = [self.network.router(p) for p in self.ports]
        return min(range(len(places)), key=lambda i: (abs(x - places[i][0]) + abs(y - places[i][1]), i))

    # ------------------------------------------------------------------ units

    def _unit(self, u: _Unit, program: UnitProgram) -> Iterator[int]:
        """Times at which the unit goes on."""
        now = 0
        for action in act.actions(program, self.machine):
            match action:
                case act.Payload():
                    now = max(now, self._payload(u))
                case act.Read():
                    yield now
                    u.fetching += 1
                    self._at(now, self._read(u, action.words, now))
                    now += 1
                case act.Write():
                    yield now
                    u.writing += 1
                    self._at(now, self._write(u, action.words, action.to, now))
                    now += 1
                case act.Work(cycles, beats):
                    u.busy += beats
                    now += cycles
                case act.Sweep():
                    now = self._sweep(u, action, now)
                case act.Arrived():
                    while u.fetching:
                        now = max(now + 1, u.fetched)
                        yield now
                    now = max(now, u.fetched)
                case act.Wait():
                    now = max(now, u.swept)
                    yield now
                    while u.fetching or u.writing:
                        now = max(now + 1, u.fetched, u.written)
                        yield now
                    now = max(now, u.fetched, u.written)
                case act.Free(half):
                    now = max(now, u.halves.get(half, 0))
        yield now

    def _payload(self, u: _Unit) -> int:
        """When the next payload arrives: one a cycle leaves the orchestrator, ahead of the units."""
        self.sent += 1
        return self.network.send(self.orch, u.node, 1, self.sent - 1)

    def _sweep(self, u: _Unit, sweep: act.Sweep, now: int) -> int:
        now = max(now, u.started)
        u.started = max(now, u.swept)
        u.swept = u.started + sweep.cycles
        u.busy += sweep.cycles
        u.halves |= dict.fromkeys(sweep.reads, u.swept)
        if sweep.words:
            u.writing += 1
            first = u.swept - sweep.emitting
            self._at(first, self._write(u, sweep.words, sweep.to, first, sweep.emitting))
        return now

    # ------------------------------------------------------------------ words

    def _read(self, u: _Unit, words: int, now: int) -> Iterator[int]:
        """Ask for words; the port serves bursts of all units in turn, each leaves when its first word is there."""
        now = self.network.send(u.node, self.ports[u.port], 1, now)
        for first in range(0, words, self.machine.wburst):
            n = min(self.machine.wburst, words - first)
            yield now
            now = max(now, self.read_free[u.port])
            self.read_free[u.port] = now + n
            self.served[f"port {u.port} read"] += n
            self._at(now + self.latency, self._response(u, n, now + self.latency, last=first + n == words))
            now += n

    def _response(self, u: _Unit, words: int, now: int, *, last: bool) -> Iterator[int]:
        u.fetched = max(u.fetched, self.network.send(self.ports[u.port], u.node, words, now))
        u.fetching -= last
        yield u.fetched

    def _write(self, u: _Unit, words: int, to: str, now: int, over: int = 0) -> Iterator[int]:
        """Send bursts, a descriptor flit before each; they are acknowledged by the memory or the unit.

        Args:
            over: cycles from now in which the words become ready, one after another.
        """
        target, begin = self.nodes[to] if to else self.ports[u.port], now
        for first in range(0, words, self.machine.wburst):
            n = min(self.machine.wburst, words - first)
            now = max(now, begin + over * (first + n) // words)
            yield now
            arrived = self.network.send(u.node, target, n + 1, now)
            now = self.network.accepted(u.node)
            if not to:
                arrived = max(arrived, self.write_free[u.port] + n)
                self.write_free[u.port] = arrived
                self.served[f"port {u.port} write"] += n
            self._at(arrived, self._acknowledged(u, target, arrived, last=first + n == words))

    def _acknowledged(self, u: _Unit, source: Node, now: int, *, last: bool) -> Iterator[int]:
        u.written = max(u.written, self.network.send(source, u.node, 1, now))
        u.writing -= last
        yield u.written

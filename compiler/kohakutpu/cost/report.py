# SPDX-License-Identifier: Apache-2.0
"""Modelled cycles of a schedule, a band at a time (docs/spec/compiler.md 14.2); every figure carries the tag ``model``.

A band costs its busiest unit under the schedule's own dealing, a kernel the sum of its bands. What the mover does
before a band or behind the last one is a band of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kohakutpu.cost import price
from kohakutpu.cost.barrier import Interval, Traffic, handed_on
from kohakutpu.cost.profile import Profile, Spent, of_role
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, UnitProgram
from kohakutpu.schedule.ir import Schedule
from kohakutpu.walks import Walk

LAYER = "L2"

MOVER = "MV"
LIMITERS = ("mac", "fill", "drain", "lanes", "payload", "mover", "memory")


@dataclass(frozen=True)
class BandCost:
    """Cycles of one band.

    Args:
        number: position in the schedule; what the mover does before a band has the band's number, and behind the last
            one the number of bands.
        engine: unit type, ``MV`` for the mover.
        units: what each unit with work spends.
        available: units of this type in the machine.
        barrier: cycles of the bytes it leaves for later bands, both ways.
        memory: cycles its words take through all memory ports at once; a bound, not part of the sum.
    """

    number: int
    text: str
    engine: str
    role: str
    instances: int
    units: Mapping[int, Spent]
    available: int
    barrier: int = 0
    memory: int = 0

    @property
    def busiest(self) -> Spent:
        """The unit with the most cycles."""
        return max(self.units.values(), key=lambda s: s.high)

    @property
    def high(self) -> int:
        """Cycles with everything charged."""
        return self.busiest.high + self.barrier

    @property
    def low(self) -> int:
        """Cycles without the fills a sweep hides."""
        return max(s.low for s in self.units.values()) + self.barrier

    @property
    def occupancy(self) -> float:
        """I / (cdiv(I, U) * U) of 5.3."""
        return self.instances / (cdiv(self.instances, self.available) * self.available)

    @property
    def payloads(self) -> int:
        """Instructions of all units; moves are no payloads."""
        return 0 if self.engine == MOVER else sum(s.payloads for s in self.units.values())

    @property
    def words(self) -> int:
        """Memory words read and written."""
        return sum(s.words for s in self.units.values())

    @property
    def limiter(self) -> str:
        """What takes longest: the ports if all units together keep them longer than the busiest runs, else a part.

        The barrier counts as ``memory``.
        """
        s = self.busiest
        if self.memory > s.low:
            return "memory"
        parts = (s.mac, s.fill, s.drain, s.lanes, s.control, s.moved, max(self.barrier, s.walk))
        spent = dict(zip(LIMITERS, parts, strict=True))
        return max(spent, key=lambda name: spent[name])


@dataclass(frozen=True)
class KernelCost:
    """Modelled cycles of a kernel: the bracket [low, high] and the bands it is made of."""

    profile: str
    machine: str
    bands: tuple[BandCost, ...]
    word_bytes: int = 32
    tag: str = field(default="model", init=False)

    @property
    def high(self) -> int:
        """Everything charged."""
        return sum(b.high for b in self.bands)

    @property
    def low(self) -> int:
        """Without the fills a sweep hides."""
        return sum(b.low for b in self.bands)

    @property
    def computing(self) -> int:
        """Cycles, everything charged, of the bands that compute: no relayout and nothing the mover does.

        The published figures of flash attention "without conversions" are these under profile "ref"
        (docs/spec/kernels.md 0 and 5.4).
        """
        return sum(b.high for b in self.bands if b.engine != MOVER and b.role != "relayout")

    @property
    def payloads(self) -> int:
        """Instructions of all units."""
        return sum(b.payloads for b in self.bands)

    @property
    def mag_bytes(self) -> int:
        """Bytes that cross the memory ports, both ways."""
        return self.word_bytes * sum(b.words for b in self.bands)

    def engine(self, kind: str) -> tuple[BandCost, ...]:
        """The bands of one unit type."""
        return tuple(b for b in self.bands if b.engine == kind)

    def text(self) -> str:
        """Printed form, one line a band."""
        lines = [
            f"{self.tag} {self.low:,}..{self.high:,} cycles, profile {self.profile}, machine {self.machine}, "
            f"{self.payloads:,} payloads, {self.mag_bytes:,} bytes at the memory ports"
        ]
        for b in self.bands:
            lines.append(
                f"  {b.engine}{b.number} {b.role}: {b.low:,}..{b.high:,} cycles, {b.instances} instances on "
                f"{len(b.units)} of {b.available} units, occupancy {b.occupancy:.2f}, limited by {b.limiter}"
            )
        return "\n".join(lines)


def cost(
    schedule: Schedule,
    programs: Sequence[Sequence[UnitProgram]],
    moves: Sequence[Sequence[Move]],
    machine: MachineSpec,
    profile: Profile,
) -> KernelCost:
    """Cycles of every band of a schedule and of the moves before it.

    Args:
        programs: unit programs of every band.
        moves: mover passes before every band, and behind the last one; empty if there are none.
    """
    made = list(_bands(schedule, programs, moves, machine, profile))
    ports = max(1, len(machine.meshes[0].mem_ports))
    handed = handed_on([traffic for _, traffic in made])
    out = []
    for (band, _), left in zip(made, handed, strict=True):
        way = cdiv(left, machine.word_bytes * ports) if profile.barrier else 0
        out.append(replace(band, barrier=2 * way, memory=cdiv(band.words, ports)))
    return KernelCost(profile.name, machine.name, tuple(out), machine.word_bytes)


def _bands(
    schedule: Schedule,
    programs: Sequence[Sequence[UnitProgram]],
    moves: Sequence[Sequence[Move]],
    machine: MachineSpec,
    profile: Profile,
) -> Iterator[tuple[BandCost, Traffic]]:
    for number, (band, dealt, units) in enumerate(zip(schedule.bands, schedule.dealt, programs, strict=True)):
        before = moves[number] if moves else ()
        if before:
            yield _moved(schedule, number, before, machine)
        prices = of_role(profile, band.role)
        yield (
            BandCost(
                number=number,
                text=band.text(),
                engine=band.engine,
                role=band.role,
                instances=len(dealt),
                units={u.unit: price.program(u, machine, prices) for u in units},
                available=len(machine.units(band.engine)),
            ),
            Traffic(_places(schedule, band.reads), _places(schedule, band.writes)),
        )
    for number, behind in enumerate(moves[len(programs) :], len(programs)):
        if behind:
            yield _moved(schedule, number, behind, machine)


def _moved(
    schedule: Schedule, number: int, moves: Sequence[Move], machine: MachineSpec
) -> tuple[BandCost, Traffic]:
    why = [c.text() for c in schedule.conversions if c.band == number]
    band = BandCost(
        number=number,
        text="; ".join(why) or f"{len(moves)} moves before band {number}",
        engine=MOVER,
        role="quantise" if any(m.op == "quantise" for m in moves) else "relayout",
        instances=1,
        units={0: price.moves(moves)},
        available=1,
    )
    reads = tuple(_span(m.source, machine.word_bytes) for m in moves if m.source is not None)
    writes = tuple(
        _span(m.target, machine.mx_entry_bytes if m.op == "quantise" else machine.word_bytes) for m in moves
    )
    return band, Traffic(reads, writes)


def _places(schedule: Schedule, names: Sequence[str]) -> tuple[Interval, ...]:
    """Byte ranges of buffers; a tile that is sent from unit to unit has none."""
    found = (schedule.buffers[n] for n in names if n in schedule.buffers)
    return tuple((b.address, b.address + b.nbytes) for b in found)


def _span(walk: Walk, element: int) -> Interval:
    """From the first byte of a walk to behind its last."""
    reach = [(d.count - 1) * d.stride for d in walk.dims]
    return walk.base + sum(r for r in reach if r < 0), walk.base + sum(r for r in reach if r > 0) + element

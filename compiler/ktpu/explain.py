# SPDX-License-Identifier: Apache-2.0
"""Every decision of the compiler about one call, level by level: the text of ``ktpu explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kohakutpu.cost import KernelCost, MeshCost
from kohakutpu.isa import address
from kohakutpu.program import UnitProgram
from kohakutpu.program.moves import text as move_text
from kohakutpu.schedule.ir import Band, Buffer, Schedule
from kohakutpu.schedule.lifetimes import Life, Need, Step, lifetimes
from kohakutpu.schedule.placement import steps_of
from ktpu.compiling import Compiled
from ktpu.costing import cost, mesh_cost
from ktpu.counters import counters
from ktpu.explain_tiles import Choice, choice
from ktpu.moving import step_text

HEAD, TAIL = 10, 4
"""Instructions of a unit program that are shown when not all are."""
ROUNDS = 6
"""Rounds that are shown when not all are."""


@dataclass(frozen=True)
class Table:
    """Rows of text under headers."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Section:
    """One part of the explanation: lines, then tables."""

    title: str
    lines: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Placement:
    """A buffer with its tier and the steps in which its bytes are needed."""

    buffer: Buffer
    tier: str
    life: Life


@dataclass(frozen=True)
class Explanation:
    """A compiled call with what the printed and the drawn form need.

    Args:
        steps: names of what runs, in order: conversions and bands.
        tiles: per product band number, how its tile was chosen.
        mesh: cycles on the links of the mesh, if asked for.
    """

    name: str
    compiled: Compiled
    cost: KernelCost
    trace: str
    placements: tuple[Placement, ...]
    steps: tuple[str, ...]
    tiles: dict[int, Choice] = field(default_factory=dict)
    mesh: MeshCost | None = None


def gather(
    compiled: Compiled, *, name: str = "", trace: str = "", profile: str = "default", latency: int | None = None
) -> Explanation:
    """Everything there is to say about a compiled call.

    Args:
        trace: printed form of the kernel's trace.
        latency: cycles of a memory request, to simulate the mesh too.

    Raises:
        ValueError: an unknown cost profile, or a latency below 0.
    """
    steps = run_steps(compiled.schedule)
    lives = buffer_lives(compiled.schedule, steps)
    placements = [Placement(b, tier(b.address), lives[b.name]) for b in compiled.schedule.buffers.values()]
    named = all(op.attr("gm") for op in compiled.call.trace.graph.ops if op.kind == "contract")
    tiles = {
        number: choice(band, compiled.machine, named=named)
        for number, band in enumerate(compiled.schedule.bands)
        if isinstance(band, Band)
    }
    return Explanation(
        name or compiled.call.trace.kernel,
        compiled,
        cost(compiled, profile),
        trace,
        tuple(placements),
        tuple(s.name for s in steps),
        tiles,
        None if latency is None else mesh_cost(compiled, latency),
    )


def run_steps(schedule: Schedule) -> list[Step]:
    """What runs, in order, with the placed buffers each step touches."""
    return steps_of(schedule.bands, schedule.conversions, schedule.buffers)


def buffer_lives(schedule: Schedule, steps: Sequence[Step]) -> dict[str, Life]:
    """First and last step of every buffer."""
    return lifetimes([Need(b.name, b.nbytes, b.role) for b in schedule.buffers.values()], steps)


def tier(at: int) -> str:
    """The memory tier of an address."""
    f = address.decode(at)
    return ("l2" if f["aperture_index"] == 0 else "near") if f["aperture"] else "dram"


# -------------------------------------------------------------------- sections


def sections(e: Explanation, *, full: bool = False) -> list[Section]:
    """The explanation level by level.

    Args:
        full: every instruction and round instead of the first and last.
    """
    trace = e.compiled.call.trace
    return [
        _call(e),
        Section("L4 trace", tuple(e.trace.splitlines())) if e.trace else Section("L4 trace", (_traced(e),)),
        Section("L3 graph", tuple(trace.graph.text().splitlines())),
        Section("L2 schedule", tuple(_schedule(e))),
        *(_tile(e, number) for number in e.tiles),
        _memory(e),
        Section("L1 unit programs", tuple(_programs(e, full=full))),
        Section("L0 rounds", tuple(_rounds(e, full=full))),
        _cost(e),
        Section("Notes", tuple(notes(e)) or ("none",)),
        _counters(e),
    ]


def _call(e: Explanation) -> Section:
    trace = e.compiled.call.trace
    lines = [f"{e.name} on {e.compiled.machine.name}: {e.compiled.summary()}"]
    lines += [f"operand {n}: {'x'.join(map(str, v.shape))}" for n, v in e.compiled.call.operands.items()]
    knobs = {k: v for k, v in trace.knobs.items() if v is not None}
    lines.append("knobs: " + (", ".join(f"{k}={v}" for k, v in knobs.items()) or "none named"))
    return Section("L5 call", tuple(lines))


def _traced(e: Explanation) -> str:
    extents = ", ".join(f"{k}={v}" for k, v in e.compiled.call.trace.extents.items())
    return f"{e.compiled.call.trace.kernel} at {extents}"


def _schedule(e: Explanation) -> Iterator[str]:
    schedule = e.compiled.schedule
    for number, band in enumerate(schedule.bands):
        yield from _moved(e, number)
        yield f"{band.engine}{number}: {band.text()}"
        if isinstance(band, Band):
            yield f"  residency: {_residency(band)}"
            yield f"  fusion: {_fusion(band)}"
        units: dict[int, int] = {}
        for _, unit in schedule.dealt[number]:
            units[unit] = units.get(unit, 0) + 1
        yield "  dealt: " + ", ".join(f"{band.engine}{u} {count}" for u, count in sorted(units.items()))
    yield from _moved(e, len(schedule.bands))
    yield from (f"relaxed: {r}" for r in schedule.relaxed)


def _moved(e: Explanation, number: int) -> Iterator[str]:
    """What the mover does before band ``number``, or behind the last one."""
    for c in (c for c in e.compiled.schedule.conversions if c.band == number):
        yield f"conversion: {c.text()}"
    yield from (f"  mover: {move_text(m)}" for m in (e.compiled.moves[number] if e.compiled.moves else ()))


def _residency(band: Band) -> str:
    kept = f"{', '.join(band.resident)} stays in L1 across the row tiles" if band.resident else "nothing stays in L1"
    return kept + (f"; fills of {', '.join(band.double_buffered)} alternate halves" if band.double_buffered else "")


def _fusion(band: Band) -> str:
    if band.kept:
        return "tiles stay in the tile stores until their partials are added"
    if band.delivery is not None:
        cores = ", ".join(f"VC{u}" for u in dict.fromkeys(band.delivery.cores))
        return f"tiles go to {cores}, {band.delivery.span} L1 words each; they never reach memory"
    return "results go to memory" + (", handed out with the last sweep" if band.emit_fuse else ", by separate drains")


def _tile(e: Explanation, number: int) -> Section:
    c = e.tiles[number]
    rows = [(*map(str, (t.tiling.gm, t.tiling.gn, t.tiling.nk)), t.shown_key, t.reason) for t in c.candidates]
    return Section(
        f"Tile of band MG{number}", (c.head,), (Table(("gm", "gn", "nk", "key", "decision"), tuple(rows)),)
    )


def _memory(e: Explanation) -> Section:
    rows = []
    for p in e.placements:
        b = p.buffer
        rows.append(
            (
                b.name,
                b.role,
                b.layout,
                "x".join(map(str, b.shape)),
                f"{b.nbytes:,}",
                p.tier,
                f"{b.address:#x}",
                f"{p.life.first}..{p.life.last}",
            )
        )
    steps = tuple(f"step {i}: {s}" for i, s in enumerate(e.steps))
    headers = ("buffer", "role", "byte order", "shape", "bytes", "tier", "address", "steps")
    return Section("Memory", steps, (Table(headers, tuple(rows)),))


def _programs(e: Explanation, *, full: bool) -> Iterator[str]:
    for number, band in enumerate(e.compiled.programs):
        for u in band:
            yield from (f"band {number} {line}" if i == 0 else line for i, line in enumerate(_abbreviated(u, full)))


def _abbreviated(u: UnitProgram, full: bool) -> list[str]:
    lines = u.text().splitlines()
    if full or len(lines) <= HEAD + TAIL + 1:
        return lines
    return [*lines[: HEAD + 1], f"  ... {len(lines) - HEAD - TAIL - 1} lines, shown with --full", *lines[-TAIL:]]


def _rounds(e: Explanation, *, full: bool) -> Iterator[str]:
    rounds = list(e.compiled.artifact.rounds())
    shown = rounds if full or len(rounds) <= ROUNDS + 1 else rounds[:ROUNDS]
    for r in shown:
        yield f"round {r.index}: {len(r.payloads)} payloads, at most {e.compiled.artifact.cycles(r.index):,} cycles"
        yield "  " + "; ".join(map(step_text, r.steps))
    if len(shown) < len(rounds):
        yield f"... {len(rounds) - len(shown)} further rounds, shown with --full"


COST_HEADERS = (
    "band", "role", "instances", "units", "occupancy", "cycles", "mac", "fill", "drain", "lanes", "control", "move",
    "barrier", "limiter",
)  # fmt: skip


def cost_rows(c: KernelCost) -> list[tuple[str, ...]]:
    """One row a band under :data:`COST_HEADERS`; the split is the busiest unit's."""
    rows = []
    for b in c.bands:
        s = b.busiest
        split = (s.mac, s.fill, s.drain, s.lanes, s.control, s.moved + s.walk, b.barrier)
        rows.append(
            (
                f"{b.engine}{b.number}",
                b.role,
                f"{b.instances:,}",
                f"{len(b.units)}/{b.available}",
                f"{b.occupancy:.2f}",
                span(b.low, b.high),
                *(f"{part:,}" for part in split),
                b.limiter,
            )
        )
    return rows


def span(low: int, high: int) -> str:
    """A bracket of cycles."""
    return f"{high:,}" if low == high else f"{low:,}..{high:,}"


def _cost(e: Explanation) -> Section:
    head = e.cost.text().splitlines()[0]
    tables = [Table(COST_HEADERS, tuple(cost_rows(e.cost)))]
    if e.mesh is None:
        return Section("Cost", (head,), tuple(tables))
    tables.append(Table(MESH_HEADERS, tuple(mesh_rows(e.mesh))))
    return Section("Cost", (head, e.mesh.text().splitlines()[0]), tuple(tables))


MESH_HEADERS = ("band", "cycles on the mesh", "limiter", "busiest", "busy")


def mesh_rows(c: MeshCost) -> list[tuple[str, ...]]:
    """One row a band under :data:`MESH_HEADERS`."""
    rows: list[tuple[str, ...]] = []
    for b in c.bands:
        name, share = b.busiest
        rows.append((f"{b.engine}{b.number}", f"{b.cycles:,}", b.limiter, name, f"{share:.0%}"))
    return rows


def notes(e: Explanation) -> list[str]:
    """RangeNotes and relaxations."""
    return [*e.compiled.schedule.notes, *(f"relaxed: {r}" for r in e.compiled.relaxed)]


def _counters(e: Explanation) -> Section:
    found = counters(e.compiled)
    rows = tuple((name, f"{value:,}" + " (model)" * (name == "mag_bytes")) for name, value in found.items())
    return Section("Counters", (), (Table(("counter", "value"), rows),))

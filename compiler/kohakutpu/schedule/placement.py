# SPDX-License-Identifier: Apache-2.0
"""Addresses of a schedule's buffers: lifetimes, tiers, ADJACENT groups (docs/spec/compiler.md 8).

Steps are the bands with every part of a conversion as a step of its own before them, in the order they run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kohakutpu.errors import CompileError
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.arena import Arena, ArenaFullError
from kohakutpu.schedule.ir import AnyBand, Buffer, Schedule
from kohakutpu.schedule.lifetimes import TEMP, Group, Guard, Life, Placed, Step, lifetimes, pack
from kohakutpu.schedule.lifetimes import Need as Item
from kohakutpu.schedule.planner import HOST_ROLES, Need
from kohakutpu.schedule.requantise import Conversion
from kohakutpu.schedule.tiers import DRAM, L2, arena, global_addr

LAYER = "L2"

_SHOWN = 8
_AGAIN = 2
"""How often an operand is read at least that is worth a place in the staging store."""


@dataclass(frozen=True)
class Placement:
    """Placed buffers in order of first use.

    Args:
        lives: buffers that share bytes never live in the same step.
        staging_full: proposals for the staging store that went to DRAM.
    """

    buffers: dict[str, Buffer]
    lives: dict[str, Life]
    staging_full: int = 0


def steps_of(bands: Sequence[AnyBand], conversions: Sequence[Conversion], held: Container[str]) -> list[Step]:
    """What reads and writes buffers, in order; values that no buffer holds are left out."""
    before: dict[int, list[Step]] = {}
    for c in conversions:
        for read, written in c.steps():
            before.setdefault(c.band, []).append(Step(c.text(), (read,), (written,), conversion=True))
    out: list[Step] = []
    for number in range(len(bands) + 1):
        out += before.get(number, [])
        if number < len(bands):
            band = bands[number]
            reads, writes = (tuple(n for n in names if n in held) for names in (band.reads, band.writes))
            out.append(Step(f"{band.engine}{number}", reads, writes))
    return out


def guard(schedule: Schedule) -> None:
    """Follow what runs at the addresses the buffers have: every read finds what was written last.

    Raises:
        CompileError: bytes are read after something else was written over them.
    """
    guarded = Guard({n: Placed(n, b.address, b.nbytes, schedule.lives[n]) for n, b in schedule.buffers.items()})
    for step in steps_of(schedule.bands, schedule.conversions, schedule.buffers):
        guarded.step(step.reads, step.writes)


def place(
    needs: Mapping[str, Need],
    steps: Sequence[Step],
    machine: MachineSpec,
    *,
    adjacent: Sequence[tuple[str, ...]] = (),
    reuse: bool = True,
    fills: Mapping[str, int] | None = None,
) -> Placement:
    """Give every buffer a tier and an address.

    Args:
        adjacent: groups of buffers that lie one after another.
        reuse: buffers that are never alive together may share bytes.
        fills: bytes that products read from the buffers of their operands; None proposes no operand.

    Raises:
        CompileError: a tier that does not hold what its author put there, a memory that is full, a malformed group.
    """
    groups = [Group(members) for members in adjacent]
    items = {n: Item(n, need.nbytes, need.value.role if reuse else "out") for n, need in needs.items()}
    lives = lifetimes(list(items.values()), steps)
    staged = [n for n, need in needs.items() if need.value.tier == L2]
    _check_groups(groups, needs)
    store = _staged(staged, items, lives, steps, machine, groups)
    full = 0
    if machine.stage_bytes:
        offered = _proposals(needs, steps, groups) + _read_again(needs, fills or {}, groups)
        accepted, store = _accepted(staged, offered, items, lives, steps, machine, groups, store)
        full = len(offered) - len(accepted)
        staged += accepted
    inside = set(staged)
    rest = [n for n in needs if n not in inside]
    try:
        placed = {DRAM: _packed(rest, items, steps, arena(DRAM, machine), groups), L2: store}
    except ArenaFullError as err:
        raise ArenaFullError(f"{err}; {_crowd(rest, lives, items)}; work in smaller batches") from err
    at = {
        name: global_addr(p.base, 0, tier, machine, max(p.nbytes, 1))
        for tier, members in placed.items()
        for name, p in members.items()
    }
    return Placement({n: _buffer(n, needs[n], at[n]) for n in needs}, lives, full)


def _buffer(name: str, need: Need, address: int) -> Buffer:
    return Buffer(name, need.value.role, need.order.key, address, need.nbytes, need.value.shape, need.source)


def _staged(
    names: Sequence[str],
    items: Mapping[str, Item],
    lives: Mapping[str, Life],
    steps: Sequence[Step],
    machine: MachineSpec,
    groups: Sequence[Group],
) -> dict[str, Placed]:
    """What authors put into the staging store.

    Raises:
        CompileError: it does not fit, or there is none.
    """
    if not names:
        return {}
    try:
        store = arena(L2, machine)
    except CompileError as err:
        raise CompileError(f"{names[0]}: {err}") from err
    try:
        return _packed(names, items, steps, store, groups)
    except CompileError as err:
        raise CompileError(f"{err}; tier l2: {_crowd(names, lives, items)}; place one of them in dram") from err


def _accepted(
    staged: Sequence[str],
    offered: Sequence[str],
    items: Mapping[str, Item],
    lives: Mapping[str, Life],
    steps: Sequence[Step],
    machine: MachineSpec,
    groups: Sequence[Group],
    store: dict[str, Placed],
) -> tuple[list[str], dict[str, Placed]]:
    """The proposals the staging store takes in order, each beside those before it, and the places in it.

    They are tried in runs, twice as many at a time while all fit and half as many when not; one alone is left out.
    What is more than the store together with whatever lives beside it is left out without being tried.
    """
    room = arena(L2, machine)
    load = np.zeros(len(steps) + 1, dtype=np.int64)

    def book(name: str, sign: int) -> None:
        load[lives[name].first : lives[name].last + 1] += sign * up(max(items[name].nbytes, 1), room.align)

    def crowded(name: str) -> bool:
        size = up(max(items[name].nbytes, 1), room.align)
        return int(load[lives[name].first : lives[name].last + 1].max()) + size > room.size

    for name in staged:
        book(name, 1)
    taken: list[str] = []
    at, size = 0, 1
    while at < len(offered):
        batch: list[str] = []
        end = at
        while end < len(offered) and len(batch) < size:
            if not crowded(offered[end]):
                batch.append(offered[end])
                book(offered[end], 1)
            end += 1
        try:
            store = _packed([*staged, *taken, *batch], items, steps, arena(L2, machine), groups) if batch else store
        except CompileError:
            for name in batch:
                book(name, -1)
            if len(batch) == 1:
                at = end
            size = max(1, len(batch) // 2)
            continue
        taken += batch
        at, size = end, 2 * size
    return taken, store


def _packed(
    names: Sequence[str], items: Mapping[str, Item], steps: Sequence[Step], store: Arena, groups: Sequence[Group]
) -> dict[str, Placed]:
    """The buffers of one tier."""
    mine = set(names)
    touched = [
        Step(s.name, tuple(n for n in s.reads if n in mine), tuple(n for n in s.writes if n in mine)) for s in steps
    ]
    here = [g for g in groups if g.members[0] in mine]
    return pack([items[n] for n in items if n in mine], touched, store, here)


def _check_groups(groups: Sequence[Group], needs: Mapping[str, Need]) -> None:
    for group in groups:
        missing = [n for n in group.members if n not in needs]
        if missing:
            raise CompileError(f"ADJACENT {group.members}: {missing[0]} has no buffer of its own")
        tiers = {needs[n].value.tier or DRAM for n in group.members}
        if len(tiers) > 1:
            raise CompileError(f"ADJACENT {group.members} in tiers {', '.join(sorted(tiers))}; name one for all")


def _crowd(names: Sequence[str], lives: Mapping[str, Life], items: Mapping[str, Item]) -> str:
    """The fullest step, with the size of everything that lives there, the largest first."""
    together = max(
        ([n for n in names if lives[n].meets(Life(lives[one].first, lives[one].first))] for one in names),
        key=lambda group: sum(items[n].nbytes for n in group),
    )
    sizes = [f"{n} {items[n].nbytes}" for n in sorted(together, key=lambda n: -items[n].nbytes)]
    more = f" and {len(sizes) - _SHOWN} more" if len(sizes) > _SHOWN else ""
    total = sum(items[n].nbytes for n in together)
    return f"{total} bytes are to live at once: {', '.join(sizes[:_SHOWN])}{more}"


def _proposals(needs: Mapping[str, Need], steps: Sequence[Step], groups: Sequence[Group]) -> list[str]:
    """Temps for the staging store (8.3): what conversions make, what they read, then what several bands read."""
    tied = {n for g in groups for n in g.members}
    free = [n for n, need in needs.items() if need.value.role == TEMP and not need.value.tier and n not in tied]
    read = Counter(n for s in steps for n in set(s.reads))
    made = {w for s in steps for w in s.writes if s.conversion}
    return [
        *(n for n in free if n in made),
        *(n for n in free if n not in made and needs[n].converted),
        *sorted((n for n in free if n not in made and not needs[n].converted and read[n] > 1), key=lambda n: -read[n]),
    ]


def _read_again(needs: Mapping[str, Need], fills: Mapping[str, int], groups: Sequence[Group]) -> list[str]:
    """Operands for the staging store (8.3): those products read at least twice over, the most read per byte first."""
    tied = {n for g in groups for n in g.members}
    free = [n for n, need in needs.items() if need.value.role in HOST_ROLES and not need.value.tier and n not in tied]
    times = {n: fills.get(n, 0) / max(needs[n].nbytes, 1) for n in free}
    return sorted((n for n in free if times[n] >= _AGAIN), key=lambda n: -times[n])

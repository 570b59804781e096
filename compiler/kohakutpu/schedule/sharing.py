# SPDX-License-Identifier: Apache-2.0
"""One tiling for every group of products, so that a shared operand is packed once (docs/spec/compiler.md 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.blocks import Limits, limits
from kohakutpu.schedule.ir import Contraction
from kohakutpu.schedule.tiles import Tiling, check, choose

LAYER = "L2"

Key = tuple[str, str]
"""Operand and side."""


@dataclass
class Group:
    """Products of one pass: the same grid, one tiling.

    Args:
        fixed: the tiling is its author's, or agrees with an author's.
    """

    members: list[Contraction]
    limits: Limits
    tiling: Tiling
    fixed: bool

    @property
    def operands(self) -> list[Key]:
        """What the members read, in order."""
        return list(dict.fromkeys(k for c in self.members for k in ((c.a.name, "a"), (c.b.name, "b"))))

    def order(self, side: str) -> tuple[int, int]:
        """(groups, blocks) of the entries of a side."""
        return (self.tiling.gm if side == "a" else self.tiling.gn), self.tiling.nk

    def with_order(self, side: str, order: tuple[int, int]) -> Tiling:
        """The tiling with another order of one side."""
        g, nk = order
        return Tiling(g, self.tiling.gn, nk) if side == "a" else Tiling(self.tiling.gm, g, nk)


def tilings(
    groups: Sequence[Sequence[Contraction]],
    machine: MachineSpec,
    clusters: int | None,
    read_back: Collection[str] = (),
) -> dict[str, Tiling]:
    """The tiling of every product, by the name of its result.

    Members of a group share one, so at most one is named there. A product without a named tiling adopts the order
    an operand already has for an author's tiling if it can; the rest take the smallest order of all that read the
    operand.

    Args:
        clusters: clusters usable, None to leave occupancy out of the choice.
        read_back: results that become rows again.

    Raises:
        CompileError: a named tiling that breaks a limit, or no legal one.
    """
    made = [_group(list(members), machine, clusters, read_back) for members in groups]
    readers: dict[Key, list[Group]] = {}
    for group in made:
        for key in group.operands:
            readers.setdefault(key, []).append(group)
    _adopt(made, readers, machine)
    _shrink(made, readers, machine)
    return {c.c.name: g.tiling for g in made for c in g.members}


def _group(
    members: list[Contraction],
    machine: MachineSpec,
    clusters: int | None,
    read_back: Collection[str],
) -> Group:
    named = {c.tiling for c in members if c.tiling}
    names = ", ".join(c.c.name for c in members)
    needs = [limits(c, words=4 if c.c.name in read_back else 1) for c in members]
    both = reduce(Limits.join, needs)
    if named:
        tiling = check(named.pop(), machine)
        fault = both.faults(tiling)
        if fault:
            raise CompileError(f"{names}: {fault}")
        return Group(members, both, tiling, True)
    c = max(members, key=lambda c: c.extents[2])
    try:
        tiling = choose(*c.extents, machine, clusters, c.batch, both.legal)
    except CompileError as err:
        raise CompileError(f"{names}: {both.faults(Tiling(1, 1, 1)) or err}") from err
    return Group(members, both, tiling, False)


def _adopt(groups: list[Group], readers: dict[Key, list[Group]], machine: MachineSpec) -> None:
    """Free groups take the order of an author's tiling, one operand after another."""
    changed = True
    while changed:
        changed = False
        for group in (g for g in groups if not g.fixed):
            for key in group.operands:
                for order in dict.fromkeys(g.order(key[1]) for g in readers[key] if g.fixed):
                    tiling = group.with_order(key[1], order)
                    if _fits(group, tiling, machine):
                        group.tiling = tiling
                        group.fixed = changed = True
                        break
                if group.fixed:
                    break


def _shrink(groups: list[Group], readers: dict[Key, list[Group]], machine: MachineSpec) -> None:
    """Free groups take the smallest order of the free readers of each operand, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for group in (g for g in groups if not g.fixed):
            for key in group.operands:
                orders = [g.order(key[1]) for g in readers[key] if not g.fixed]
                tiling = group.with_order(key[1], (min(g for g, _ in orders), min(nk for _, nk in orders)))
                if tiling != group.tiling and _fits(group, tiling, machine):
                    group.tiling = tiling
                    changed = True


def _fits(group: Group, tiling: Tiling, machine: MachineSpec) -> bool:
    try:
        check(tiling, machine)
    except CompileError:
        return False
    return group.limits.legal(tiling)

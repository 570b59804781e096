# SPDX-License-Identifier: Apache-2.0
"""One tiling for every group of products, so that a shared operand is packed once (docs/spec/compiler.md 5.3, 5.6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
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
    drained: Collection[str] = (),
) -> dict[str, Tiling]:
    """The tiling of every product, by the name of its result.

    Members of a group share one, so at most one is named there. A product without a named tiling adopts the order
    an operand already has for an author's tiling if it can; the rest take the smallest order of all that read the
    operand.

    Args:
        clusters: clusters usable, None to leave occupancy out of the choice.
        read_back: results that become rows again.
        drained: results that clusters drain as rows.

    Raises:
        CompileError: a named tiling that breaks a limit, or no legal one.
    """
    made = [_group(list(members), machine, clusters, read_back, drained) for members in groups]
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
    drained: Collection[str],
) -> Group:
    named = {c.tiling for c in members if c.tiling}
    names = ", ".join(c.c.name for c in members)
    needs = [
        limits(c, words=4 if {c.c.name} & {*read_back, *drained} else 1, whole=c.c.name in drained) for c in members
    ]
    both = reduce(Limits.join, needs)
    if named:
        tiling = check(named.pop(), machine)
        fault = both.faults(tiling)
        if fault:
            raise CompileError(f"{names}: {fault}")
        return Group(members, both, tiling, True)
    c = max(members, key=lambda c: c.extents[2])
    # blocks that leave no gn of whole words still have tiles that the vector cores bring into rows
    for some in dict.fromkeys((both, replace(both, words=1, width=0))):
        try:
            tiling = choose(*c.extents, machine, clusters, c.batch * c.split, some.legal)
            return Group(members, some, tiling, False)
        except CompileError as err:
            refused = err
    raise CompileError(f"{names}: {both.faults(Tiling(1, 1, 1)) or refused}") from refused


def _adopt(groups: list[Group], readers: dict[Key, list[Group]], machine: MachineSpec) -> None:
    """Free groups take the order of an author's tiling, one operand after another."""
    changed = any(g.fixed for g in groups)
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
    least = {
        key: (min(o[0] for o in orders), min(o[1] for o in orders))
        for key, some in readers.items()
        if (orders := [g.order(key[1]) for g in some if not g.fixed])
    }
    changed = True
    while changed:
        changed = False
        for group in (g for g in groups if not g.fixed):
            for key in group.operands:
                tiling = group.with_order(key[1], least[key])
                if tiling != group.tiling and _fits(group, tiling, machine):
                    group.tiling = tiling
                    changed = True
                    for k in group.operands:  # orders only become smaller
                        rows, nk = group.order(k[1])
                        least[k] = min(least[k][0], rows), min(least[k][1], nk)


def _fits(group: Group, tiling: Tiling, machine: MachineSpec) -> bool:
    try:
        check(tiling, machine)
    except CompileError:
        return False
    return group.limits.legal(tiling)

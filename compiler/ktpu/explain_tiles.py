# SPDX-License-Identifier: Apache-2.0
"""Why a product has the tile it has (docs/spec/compiler.md 5.3)."""

from __future__ import annotations

from dataclasses import dataclass

from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.ir import Band
from kohakutpu.schedule.tiles import Candidate, Tiling, candidates

REJECTED = 5
"""Legal candidates below the best that are shown."""
BEYOND = 3
"""Tiles above the limit that are shown, the smallest first."""

_SIZES = tuple(1 << i for i in range(8))


@dataclass(frozen=True)
class Considered:
    """A tiling with its key, None if a limit forbids it, and what became of it."""

    tiling: Tiling
    key: tuple[int, int, int, int] | None
    reason: str

    @property
    def shown_key(self) -> str:
        """The key as printed."""
        return "-" if self.key is None else str(self.key)


@dataclass(frozen=True)
class Choice:
    """How the tile of a band was chosen: a line, and what was considered, the one taken first."""

    head: str
    candidates: tuple[Considered, ...]


def choice(band: Band, machine: MachineSpec, *, named: bool) -> Choice:
    """The decision for a product band.

    Args:
        named: its author named gm, gn and nk.
    """
    m, n, k = band.extents
    m //= band.batch
    clusters = len(machine.units(band.engine))
    legal = sorted(candidates(m, n, k, machine, clusters, band.batch), key=lambda c: c.key, reverse=True)
    keys = {c.tiling: c.key for c in legal}
    taken = band.tiling
    largest = not legal or keys.get(taken) == legal[0].key
    who = "chosen: the largest key" if largest else "chosen: the largest key its operands and readers allow"
    who = "named by the caller, the chooser was not asked" if named else who
    out = [Considered(taken, keys.get(taken), who)]
    others = [c for c in legal if c.tiling != taken]
    out += [Considered(c.tiling, c.key, _why_not(c, keys.get(taken))) for c in others[:REJECTED]]
    out += _beyond(taken, machine)
    head = f"{m}x{n}x{k}, {clusters} clusters, {len(legal)} legal tilings; key = (4096*score, nk, -|gm-gn|, -gm)"
    return Choice(head, tuple(out))


def _why_not(c: Candidate, taken: tuple[int, int, int, int] | None) -> str:
    if taken is None:
        return "legal"
    if c.key > taken:
        return "larger key, but not what was asked for or what its operands allow"
    names = ("score", "nk", "squareness", "gm")
    where = next(name for name, a, b in zip(names, c.key, taken, strict=True) if a != b)
    return f"lower key: {where}"


def _beyond(taken: Tiling, machine: MachineSpec) -> list[Considered]:
    """The nearest tilings that a limit forbids: the next longer chunk, and the smallest tiles above the limit."""
    bank = min(machine.bank_entries)
    out = []
    longer = Tiling(taken.gm, taken.gn, 2 * taken.nk)
    entries = max(longer.gm, longer.gn) * longer.nk
    if entries > bank:
        out.append(Considered(longer, None, f"limit: {entries} entries of a chunk exceed a bank of {bank}"))
    larger = [(gm * gn, abs(gm - gn), gm, gn) for gm in _SIZES for gn in _SIZES if gm * gn > machine.tiles]
    for size, _, gm, gn in sorted(larger)[:BEYOND]:
        reason = f"limit: gm*gn = {size} exceeds {machine.tiles} resident sub-tiles"
        out.append(Considered(Tiling(gm, gn, 1), None, reason))
    return out

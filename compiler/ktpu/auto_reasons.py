# SPDX-License-Identifier: Apache-2.0
"""Why an automatic program takes longer than a kernel written by hand (docs/spec/compiler.md 13.4).

The two schedules are compared band by band. Bands that both have are paired; what is left on either side, and pairs
that cost different cycles, are attributed to a reason of a closed list. What no reason takes stays unexplained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from kohakutpu.cost import BandCost, KernelCost
from kohakutpu.ints import up
from kohakutpu.schedule.ir import Band, Schedule, VectorBand
from ktpu.compiling import Compiled

EPILOGUE = "epilogue not folded"
FORM = "form needs rewrite"
REDUCTION = "reduction splits band"
REUSE = "no cross-band reuse"
CONVERSION = "conversion not removed"
OCCUPANCY = "occupancy"
REASONS = (EPILOGUE, FORM, REDUCTION, REUSE, CONVERSION, OCCUPANCY)
"""The closed list; FORM is followed by the name of a rewrite."""

TOLERATED = 1.05
"""A ratio up to this needs no reason."""
LIMIT = 2.0
"""A ratio above this is a defect whatever its reason."""


@dataclass(frozen=True)
class Reason:
    """A reason and the cycles it accounts for."""

    text: str
    cycles: int


@dataclass(frozen=True)
class Comparison:
    """Modelled cycles of both, everything charged, and what accounts for the difference."""

    auto: int
    hand: int
    reasons: tuple[Reason, ...] = ()

    @property
    def ratio(self) -> float:
        """Automatic over hand-written."""
        return self.auto / self.hand

    @property
    def unexplained(self) -> int:
        """Cycles above the tolerated ratio that no reason accounts for."""
        return max(0, round(self.auto - sum(r.cycles for r in self.reasons) - TOLERATED * self.hand))

    @property
    def accepted(self) -> bool:
        """True if the ratio is within its limit and explained."""
        return self.ratio <= LIMIT and not self.unexplained


@dataclass(frozen=True)
class _Item:
    """A band with its cost.

    Args:
        kind: "cluster", "vector" or "conversion".
        key: what it computes, without buffer names and tiling.
        useful: share of the elements the units work on that are no padding.
        fused: tiles go from the cluster to the core that works on them.
    """

    kind: str
    key: str
    cost: BandCost
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    useful: float = 1.0
    folds: bool = False
    after_fold: bool = False
    fused: bool = False


def compare(
    auto: Sequence[tuple[Compiled, KernelCost]], hand: tuple[Compiled, KernelCost], pending: Sequence[str] = ()
) -> Comparison:
    """Compare the calls of an automatic program with a kernel.

    Args:
        pending: rewrites that a form of the expression kept from being applied, or that were left out.
    """
    ours = [i for number, (c, priced) in enumerate(auto) for i in _items(c.schedule, priced, number)]
    theirs = list(_items(hand[0].schedule, hand[1], 0))
    result = Comparison(sum(c.high for _, c in auto), hand[1].high)
    if result.ratio <= TOLERATED:
        return result
    found = Counter[str]()
    paired, extra, missing = _pair(ours, theirs)
    for kind in ("conversion", "vector", "cluster"):
        cycles = _cycles(i for i in extra if i.kind == kind) - _cycles(i for i in missing if i.kind == kind)
        reason = _why([i for i in extra if i.kind == kind], missing, ours, pending)
        if cycles > 0 and reason:
            found[reason] += cycles
    for a, b in paired:
        more = a.cost.high - b.cost.high
        if more > 0 and a.kind == "conversion":
            found[CONVERSION] += more
        elif more > 0 and b.fused and not a.fused:
            found[EPILOGUE] += more
        elif more > 0 and (a.useful < b.useful or _busy(a) < _busy(b)):
            found[OCCUPANCY] += more
    listed = tuple(Reason(text, cycles) for text, cycles in found.most_common())
    return Comparison(result.auto, result.hand, listed)


def _busy(item: _Item) -> float:
    """Units a band keeps busy: the work of all of them in the time of the busiest."""
    spent = [s.high for s in item.cost.units.values()]
    return sum(spent) / max(1, *spent)


def _cycles(items: Iterable[_Item]) -> int:
    return sum(i.cost.high for i in items)


def _why(extra: list[_Item], missing: list[_Item], ours: list[_Item], pending: Sequence[str]) -> str:
    """The reason of bands of one kind that the kernel written by hand does not have, "" if there is none."""
    if not extra:
        return ""
    if extra[0].kind == "conversion":
        return CONVERSION
    if pending:
        return f"{FORM} {pending[0]}"
    if extra[0].kind == "vector":
        if any(i.fused for i in missing) and any(_reads_product(i, ours) for i in extra):
            return EPILOGUE
        if any(i.folds or i.after_fold for i in extra):
            return REDUCTION
        others = [i for i in missing if i.kind == "vector"]
        return REUSE if _loads(extra) > _loads(others) else ""
    shared = Counter(n for i in ours if i.kind == "cluster" for n in set(i.reads))
    return REUSE if any(shared[n] > 1 for i in extra for n in i.reads) else ""


def _loads(items: list[_Item]) -> int:
    """Buffers that passes load from memory."""
    return sum(len(i.reads) for i in items)


def _reads_product(item: _Item, ours: list[_Item]) -> bool:
    """True if a pass reads from memory what a product left there."""
    left = {n for i in ours if i.kind == "cluster" for n in i.writes}
    return any(n in left for n in item.reads)


def _pair(ours: list[_Item], theirs: list[_Item]) -> tuple[list[tuple[_Item, _Item]], list[_Item], list[_Item]]:
    """(bands both have, those only we have, those only they have)."""
    waiting = list(theirs)
    paired, extra = [], []
    for item in ours:
        other = next((w for w in waiting if (w.kind, w.key) == (item.kind, item.key)), None)
        if other is None:
            extra.append(item)
        else:
            waiting.remove(other)
            paired.append((item, other))
    return paired, extra, waiting


def _items(schedule: Schedule, priced: KernelCost, number: int) -> list[_Item]:
    out: list[_Item] = []
    folded: set[str] = set()
    for band in priced.bands:
        if band.engine == "MV" or band.role in ("relayout", "quantise"):
            out.append(_Item("conversion", band.role, band))
            continue
        made = schedule.bands[band.number]
        reads, writes = (tuple(f"{number}.{_bare(n)}" for n in names) for names in (made.reads, made.writes))
        if isinstance(made, VectorBand):
            out.append(_vector(made, band, reads, writes, bool(folded & set(reads))))
            folded |= set(writes) if made.chain.folds else set()
        elif isinstance(made, Band):
            out.append(_cluster(made, band, reads, writes))
        else:
            out.append(_Item("cluster", made.role, band, reads, writes))
    return out


def _vector(
    made: VectorBand, band: BandCost, reads: tuple[str, ...], writes: tuple[str, ...], after_fold: bool
) -> _Item:
    worked = len(made.offsets) * made.steps * made.vl
    return _Item(
        "vector",
        f"{made.chain.text()} {'x'.join(map(str, made.extents))}",
        band,
        reads,
        writes,
        useful=prod(made.extents) / worked,
        folds=made.chain.folds,
        after_fold=after_fold,
        fused=bool(made.nodes),
    )


def _cluster(made: Band, band: BandCost, reads: tuple[str, ...], writes: tuple[str, ...]) -> _Item:
    key = f"{'x'.join(map(str, made.extents))} {len(made.products)} batch {made.batch} join {made.join}"
    tile, (rows, columns, _) = made.tiling, made.grid
    worked = 4 * tile.gm * rows * 4 * tile.gn * columns * up(made.extents[2], 32 * tile.nk)
    useful = prod(made.extents) / worked
    return _Item("cluster", key, band, reads, writes, useful=useful, fused=made.delivery is not None)


def _bare(name: str) -> str:
    """A buffer without the order it is held in."""
    return name.partition(":")[0]

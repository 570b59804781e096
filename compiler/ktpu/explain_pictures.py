# SPDX-License-Identifier: Apache-2.0
"""Where the rectangles of an explanation's pictures are, in pixels; the page's template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, isqrt, sqrt

from kohakutpu.cost import BandCost
from kohakutpu.schedule.ir import Band
from ktpu.explain import Explanation, Placement

COLOURS = 12
"""Colours of units; unit n of a type has colour n modulo this."""
WIDTH = 1080
"""Drawing width of a page."""
LIMIT = 20_000
"""Instances of a band that are drawn; a rectangle each."""

_CELL = (4.0, 26.0)
_MAP_LABEL, _TIME_LABEL, _ROW, _AXIS = 120, 64, 24, 22
_LETTER = 6.6
"""Width of a letter of the labels."""


@dataclass(frozen=True)
class Cell:
    """A rectangle with a colour number, a tooltip and, if there is room, a label."""

    x: float
    y: float
    w: float
    h: float
    colour: int
    tip: str
    label: str = ""


@dataclass(frozen=True)
class Label:
    """A text at a point."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Picture:
    """Rectangles and labels of one drawing; ``barriers`` are drawn hatched, ``lines`` are (x1, y1, x2, y2)."""

    title: str
    width: float
    height: float
    cells: tuple[Cell, ...]
    labels: tuple[Label, ...] = ()
    barriers: tuple[Cell, ...] = ()
    lines: tuple[tuple[float, float, float, float], ...] = ()
    caption: str = ""


# -------------------------------------------------------------------- grids


def grids(e: Explanation) -> list[Picture]:
    """One picture a band: its instances, coloured by the unit that runs them."""
    schedule = e.compiled.schedule
    out = []
    for number, (band, dealt) in enumerate(zip(schedule.bands, schedule.dealt, strict=True)):
        title = f"{band.engine}{number} {band.role}: {len(dealt):,} instances"
        if len(dealt) > LIMIT:
            out.append(Picture(title, WIDTH, 0, (), caption=f"more than {LIMIT:,} instances are not drawn"))
            continue
        if isinstance(band, Band):
            # column bands run from left to right; partial ko of a split stands beside the others
            rows, columns, split = band.grid
            places = [(key[0], key[1] * split + (key[2] if len(key) > 2 else 0)) for key, _ in dealt]
            across, down = columns * split, rows
            caption = f"{rows} row tiles by {columns} column tiles" + (f", {split} partials each" * (split > 1))
        else:
            across = min(len(dealt), max(32, isqrt(len(dealt) * 4)))
            down = ceil(len(dealt) / across)
            places = [divmod(i, across) for i in range(len(dealt))]
            caption = f"{'tiles' if band.engine == 'MG' else 'RUNs'} in order, row by row"
        out.append(_grid(title, caption, (across, down), places, [(k, u) for k, u in dealt], band.engine))
    return out


def _grid(
    title: str,
    caption: str,
    size: tuple[int, int],
    places: Sequence[tuple[int, int]],
    dealt: Sequence[tuple[tuple[int, ...], int]],
    engine: str,
) -> Picture:
    across, down = size
    low, high = _CELL
    step = max(low, min(high, WIDTH / across))
    gap = 1.0 if step > 6 else 0.5
    cells = tuple(
        Cell(column * step, row * step, step - gap, step - gap, unit % COLOURS, f"{key} on {engine}{unit}")
        for (row, column), (key, unit) in zip(places, dealt, strict=True)
    )
    return Picture(title, across * step, down * step, cells, caption=caption)


# -------------------------------------------------------------------- memory


def memory_maps(e: Explanation) -> list[Picture]:
    """One picture a tier: a rectangle a buffer, address downward, steps to the right.

    The address axis is not to scale: a stretch between two edges of buffers is as high as the root of its bytes.
    """
    out = []
    for name in ("dram", "l2", "near"):
        placed = [p for p in e.placements if p.tier == name]
        if placed:
            out.append(_map(name, placed, len(e.steps), e.steps))
    return out


def _map(name: str, placed: Sequence[Placement], steps: int, names: Sequence[str]) -> Picture:
    edges = sorted({a for p in placed for a in (p.buffer.address, p.buffer.address + p.buffer.nbytes)})
    used = {
        (lo, hi): any(p.buffer.address <= lo and hi <= p.buffer.address + p.buffer.nbytes for p in placed)
        for lo, hi in pairwise(edges)
    }
    largest = max((sqrt(hi - lo) for (lo, hi), inside in used.items() if inside), default=1.0)
    at, tops = float(_AXIS), {}
    for lo, hi in pairwise(edges):
        tops[lo] = at
        at += 22 + 40 * sqrt(hi - lo) / largest if used[lo, hi] else 14
    tops[edges[-1]] = at
    step = (WIDTH - _MAP_LABEL) / steps
    cells = []
    for number, p in enumerate(placed):
        b = p.buffer
        top, bottom = tops[b.address], tops[b.address + b.nbytes]
        x, w = _MAP_LABEL + step * p.life.first, step * (p.life.last - p.life.first + 1) - 2
        text = f"{b.name}, {b.nbytes:,} bytes, {b.role}"
        cells.append(
            Cell(x, top, w, bottom - top - 1, number % COLOURS, f"{text}, {b.layout}, {b.address:#x}", _fit(text, w))
        )
    labels = [Label(0, y + 11, f"{a:#x}") for a, y in tops.items()]
    heads = [Label(_MAP_LABEL + step * i + 2, 14, _fit(_short(n), step)) for i, n in enumerate(names)]
    lines = tuple((_MAP_LABEL + step * i, float(_AXIS), _MAP_LABEL + step * i, at) for i in range(steps + 1))
    size = sum(p.buffer.nbytes for p in placed)
    return Picture(
        f"{name}: {len(placed)} buffers, {size:,} bytes", WIDTH, at + 14, tuple(cells), (*labels, *heads), lines=lines
    )


def _short(step: str) -> str:
    return step.split(" ", 1)[0]


def _fit(text: str, width: float) -> str:
    """As much of a text as fits, nothing if that is hardly a word."""
    room = int((width - 8) / _LETTER)
    if len(text) <= room:
        return text
    return text[: room - 1] + "…" if room > 3 else ""


# -------------------------------------------------------------------- time


def timeline(e: Explanation) -> Picture:
    """A row a unit; a band's rectangle is as long as the unit's cycles in it, everything charged."""
    bands = e.cost.bands
    rows = sorted({(b.engine, u) for b in bands for u in b.units})
    order = {key: i for i, key in enumerate(rows)}
    total = max(1, e.cost.high)
    scale = (WIDTH - _TIME_LABEL) / total
    cells: list[Cell] = []
    barriers: list[Cell] = []
    lines = []
    bottom = _AXIS + _ROW * len(rows)
    start = 0
    for number, band in enumerate(bands):
        cells += [_bar(band, unit, number, _TIME_LABEL + scale * start, scale, order) for unit in band.units]
        if band.barrier:
            x = _TIME_LABEL + scale * (start + band.busiest.high)
            tip = f"barrier after {band.engine}{band.number}: {band.barrier:,} cycles"
            barriers.append(Cell(x, _AXIS, scale * band.barrier, bottom - _AXIS, 0, tip))
        start += band.high
        lines.append((_TIME_LABEL + scale * start, float(_AXIS), _TIME_LABEL + scale * start, float(bottom)))
    labels = [Label(0, _AXIS + _ROW * i + 16, f"{kind}{unit}") for (kind, unit), i in order.items()]
    labels += [
        Label(min(_TIME_LABEL + scale * t, WIDTH - _LETTER * len(f"{t:,}")), 14, f"{t:,}") for t in _ticks(total)
    ]
    return Picture(
        f"{e.cost.tag}: {e.cost.high:,} cycles, everything charged",
        WIDTH,
        bottom + 4,
        tuple(cells),
        tuple(labels),
        tuple(barriers),
        tuple(lines),
    )


def _bar(
    band: BandCost, unit: int, number: int, x: float, scale: float, order: dict[tuple[str, int], int]
) -> Cell:
    spent = band.units[unit]
    w = max(0.5, scale * spent.high)
    text = f"{band.engine}{band.number} {band.role} {spent.high:,}"
    tip = f"{text} cycles on {band.engine}{unit}, {spent.payloads:,} instructions"
    return Cell(x, _AXIS + _ROW * order[band.engine, unit] + 2, w, _ROW - 4, number % COLOURS, tip, _fit(text, w))


def _ticks(total: int) -> list[int]:
    """Some round numbers of cycles from 0 on."""
    raw = total / 6
    power = 10 ** (len(str(int(raw))) - 1) if raw >= 1 else 1
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return list(range(0, total, step))


def legend(e: Explanation) -> list[tuple[int, str]]:
    """(colour, units) of the grids."""
    names: dict[int, list[str]] = {}
    schedule = e.compiled.schedule
    for band, dealt in zip(schedule.bands, schedule.dealt, strict=True):
        for unit in sorted({u for _, u in dealt}):
            listed = names.setdefault(unit % COLOURS, [])
            if f"{band.engine}{unit}" not in listed:
                listed.append(f"{band.engine}{unit}")
    return [(colour, ", ".join(units)) for colour, units in sorted(names.items())]

# SPDX-License-Identifier: Apache-2.0
"""Bytes one band leaves in memory for another: the barrier term of docs/spec/compiler.md 14.2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LAYER = "leaf"

Interval = tuple[int, int]


@dataclass(frozen=True)
class Traffic:
    """Byte ranges [first, end) a band reads and writes."""

    reads: tuple[Interval, ...]
    writes: tuple[Interval, ...]


def handed_on(bands: Sequence[Traffic]) -> list[int]:
    """Per band, the bytes it writes that a later band reads, each byte once.

    A byte that another band writes again before it is read is that band's.
    """
    out = []
    for number, band in enumerate(bands):
        live = joined(band.writes)
        read = 0
        for later in bands[number + 1 :]:
            taken, live = split(live, later.reads)
            read += size(taken)
            _, live = split(live, later.writes)
        out.append(read)
    return out


def size(ranges: Iterable[Interval]) -> int:
    """Bytes in disjoint ranges."""
    return sum(end - first for first, end in ranges)


def joined(ranges: Iterable[Interval]) -> list[Interval]:
    """The same bytes as disjoint ascending ranges."""
    out: list[Interval] = []
    for first, end in sorted(r for r in ranges if r[0] < r[1]):
        if out and first <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], end))
        else:
            out.append((first, end))
    return out


def split(ranges: Iterable[Interval], other: Iterable[Interval]) -> tuple[list[Interval], list[Interval]]:
    """(bytes that ``other`` holds too, the rest) of disjoint ranges."""
    cuts = joined(other)
    inside: list[Interval] = []
    outside: list[Interval] = []
    for begin, end in ranges:
        at = begin
        for lo, hi in cuts:
            lo_in, hi_in = max(lo, at), min(hi, end)
            if lo_in >= hi_in:
                continue
            if at < lo_in:
                outside.append((at, lo_in))
            inside.append((lo_in, hi_in))
            at = hi_in
        if at < end:
            outside.append((at, end))
    return inside, outside

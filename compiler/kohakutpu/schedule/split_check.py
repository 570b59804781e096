# SPDX-License-Identifier: Apache-2.0
"""Partial sums that clusters keep are each added once, in order, and leave once (docs/spec/compiler.md 5.2, 5.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohakutpu.errors import CoverageError
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.ir import AnyBand, Band

LAYER = "L2"

Tile = tuple[int, int]


@dataclass
class _Stores:
    """What the tile stores hold while bands run, and what has left them, by tile.

    ``held[u]`` is the tile of cluster u and the partials in it, in the order they were added.
    """

    held: dict[int, tuple[Tile, list[int]]] = field(default_factory=dict)
    left: dict[Tile, list[list[int]]] = field(default_factory=dict)

    def sweep(self, key: tuple[int, int, int], cluster: int) -> None:
        """A cluster opens its tile store."""
        if cluster in self.held:
            tile, parts = self.held[cluster]
            raise CoverageError(f"NOREDUCE: partials {parts} of tile {tile} are overwritten in cluster {cluster}")
        self.held[cluster] = (key[:2], [key[2]])

    def drain(self, key: tuple[int, int, int], cluster: int, owner: int | None) -> None:
        """A tile leaves its cluster, towards the cluster ``owner`` or for good."""
        tile, parts = self.held.pop(cluster, (None, []))
        if tile != key[:2]:
            raise CoverageError(f"NOREDUCE: cluster {cluster} is to send tile {key[:2]} and holds {tile}")
        if owner is None:
            self.left.setdefault(key[:2], []).append(parts)
            return
        if owner not in self.held or self.held[owner][0] != tile:
            raise CoverageError(f"NOREDUCE: partials {parts} of tile {tile} are sent to cluster {owner} without it")
        self.held[owner][1].extend(parts)


def check_sums(
    shape: tuple[int, int], bands: Sequence[AnyBand], clusters: int, split: int, *, apart: bool = False
) -> None:
    """Require every partial of every tile once and in order of the K ranges: in one sum, or apart.

    Args:
        shape: (M, N) of the product.
        bands: sweeps that keep their tiles and the drains behind them.
        clusters: clusters the sweeps are dealt to.
        apart: every partial leaves by itself, for a core that adds them.

    Raises:
        CoverageError: OVERSHOOT, GAP, OVERLAP, SPLIT or NOREDUCE with the first element or tile.
    """
    sweeps = [b for b in bands if isinstance(b, Band)]
    check_cover(shape, [r for b in sweeps for r in b.rects()], split, 1)
    stores = _Stores()
    for band in bands:
        if isinstance(band, Band):
            for key, cluster in deal(band.kept, range(clusters)).items():
                stores.sweep(key, cluster)
        elif isinstance(band, DrainBand):
            receivers = [int(unit[2:]) for unit in band.to] if band.adds else [None] * len(band.keys)
            for key, cluster, owner in zip(band.keys, band.nodes, receivers, strict=True):
                stores.drain(key, cluster, owner)
    for cluster, (tile, parts) in stores.held.items():
        raise CoverageError(f"NOREDUCE: partials {parts} of tile {tile} stay in cluster {cluster}")
    want = [[ko] for ko in range(split)] if apart else [list(range(split))]
    for tile, drained in stores.left.items():
        if drained != want:
            raise CoverageError(f"NOREDUCE: tile {tile} leaves as sums of partials {drained}; expected {want}")

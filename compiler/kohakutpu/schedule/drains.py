# SPDX-License-Identifier: Apache-2.0
"""Tiles that clusters keep leave their tile stores: to a cluster that adds them, a core, or memory (5.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kohakutpu.program import acknowledgements

LAYER = "L2"


@dataclass(frozen=True)
class DrainBand:
    """One DRAIN a cluster of a tile it kept.

    Args:
        subtiles: of every tile.
        keys: (mo, no, ko) of the tiles, in order.
        nodes: the cluster that keeps each.
        reads: the partials that leave.
        writes: the buffer they go to; none if units receive them.
        to: the unit each tile goes to, such as "MG0" or "VC1"; empty for memory.
        slot: tiles of a core in front of this one.
        span: L1 words between two tiles of a core.
        route: how the partials are added.
    """

    subtiles: int
    keys: tuple[tuple[int, int, int], ...]
    nodes: tuple[int, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...] = ()
    to: tuple[str, ...] = ()
    slot: int = 0
    span: int = 0
    route: str = "peer"
    engine: str = "MG"
    role: str = "reduce"

    @property
    def adds(self) -> bool:
        """True if clusters receive the tiles and add them in accumulator width."""
        return bool(self.to) and self.to[0].startswith("MG")

    @property
    def receipts(self) -> dict[tuple[str, int], int]:
        """Burst acknowledgements of each receiver, which the next band waits for."""
        count = acknowledgements(self.subtiles, wide=self.adds)
        return {(unit[:2], int(unit[2:])): count for unit in self.to}

    def instances(self) -> Iterator[tuple[int, ...]]:
        """(mo, no, ko) in order."""
        yield from self.keys

    def text(self) -> str:
        """One printed line."""
        where = "memory"
        if self.to:
            place = "tile store" if self.adds else f"slot {self.slot} of {self.span} words"
            pairs = zip(self.nodes, self.to, strict=True)
            where = f"{','.join(f'MG{n}>{unit}' for n, unit in pairs)} {place}, {self._acks()} acks"
        return (
            f"band MG {'send' if self.to else 'drain'} tiles={len(self.keys)} subtiles={self.subtiles} "
            f"reads={','.join(self.reads)} writes={','.join(self.writes) or '-'} to={where} role={self.role} "
            f"route={self.route}"
        )

    def _acks(self) -> int:
        return next(iter(self.receipts.values()))

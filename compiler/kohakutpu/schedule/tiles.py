# SPDX-License-Identifier: Apache-2.0
"""Tile choice of a matrix product (docs/spec/compiler.md 5.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec

LAYER = "L2"

_POWERS = tuple(1 << i for i in range(8))


@dataclass(frozen=True)
class Tiling:
    """gm x gn sub-tiles an instance, nk K blocks a chunk."""

    gm: int
    gn: int
    nk: int


@dataclass(frozen=True)
class Candidate:
    """A legal tiling with its key; the largest key wins."""

    tiling: Tiling
    key: tuple[int, int, int, int]


def candidates(
    m: int, n: int, k: int, machine: MachineSpec, clusters: int | None = None, batch: int = 1
) -> Iterator[Candidate]:
    """Every legal power-of-two tiling of C[m, n] = A[m, k] B[n, k]^T with its key.

    Args:
        clusters: clusters usable; None leaves the occupancy factor out.
        batch: products of this shape in one band, partial ones counted.
    """
    yield from _all(m, n, k, machine.tiles, machine.bank_entries, clusters, batch)


def _all(
    m: int, n: int, k: int, tiles: int, banks: tuple[int, int], clusters: int | None, batch: int
) -> Iterator[Candidate]:
    bank_a, bank_b = banks
    for gm in _POWERS:
        for gn in _POWERS:
            if gm * gn > tiles:
                continue
            work = m * n * k
            instances = batch * cdiv(m, 4 * gm) * cdiv(n, 4 * gn)
            busy = 1.0 if clusters is None else instances / (cdiv(instances, clusters) * clusters)
            for nk in _POWERS:
                if gm * nk > bank_a or gn * nk > bank_b:
                    continue
                padded = up(m, 4 * gm) * up(n, 4 * gn) * up(k, 32 * nk)
                score = 2 * gm * gn / (gm + gn) * (work / padded) * busy
                yield Candidate(Tiling(gm, gn, nk), (round(4096 * score), nk, -abs(gm - gn), -gm))


@lru_cache(maxsize=1024)
def _ranked(
    m: int, n: int, k: int, tiles: int, banks: tuple[int, int], clusters: int | None, batch: int
) -> tuple[Tiling, ...]:
    """All tilings, the largest key first."""
    found = sorted(_all(m, n, k, tiles, banks, clusters, batch), key=lambda c: c.key, reverse=True)
    return tuple(c.tiling for c in found)


def choose(
    m: int,
    n: int,
    k: int,
    machine: MachineSpec,
    clusters: int | None = None,
    batch: int = 1,
    legal: Callable[[Tiling], bool] = lambda _: True,
) -> Tiling:
    """The tiling with the largest key.

    Args:
        batch: products of this shape in one band, partial ones counted.
        legal: what else the tiling has to fulfil.

    Raises:
        CompileError: an extent or a number of clusters below 1, or nothing that is legal.
    """
    if clusters is not None and clusters < 1:
        raise CompileError(f"matmul on {clusters} clusters; at least 1 is needed")
    for name, extent in (("M", m), ("N", n), ("K", k)):
        if extent < 1:
            raise CompileError(f"matmul extent {name} = {extent}; extents must be at least 1")
    ranked = _ranked(m, n, k, machine.tiles, machine.bank_entries, clusters, batch)
    found = next((tiling for tiling in ranked if legal(tiling)), None)
    if found is None:
        raise CompileError(f"no tiling of {m}x{n}x{k} divides its blocks; give them rows of 4 and columns of 32")
    return found


def check(tiling: Tiling, machine: MachineSpec) -> Tiling:
    """Refuse a tiling named by the caller that the cluster cannot run.

    Raises:
        CompileError: naming the product, its limit and the fix.
    """
    gm, gn, nk = tiling.gm, tiling.gn, tiling.nk
    bank_a, bank_b = machine.bank_entries
    for name, value in (("gm", gm), ("gn", gn), ("nk", nk)):
        if value < 1:
            raise CompileError(f"tiling {name} = {value}; it must be at least 1")
    if gm * gn > machine.tiles:
        raise CompileError(
            f"gm*gn = {gm * gn} exceeds the {machine.tiles} resident sub-tiles; reduce gm or gn"
        )
    if gm * nk > bank_a or gn * nk > bank_b:
        raise CompileError(
            f"gm*nk = {gm * nk}, gn*nk = {gn * nk} exceed a bank of {bank_a}/{bank_b} entries; reduce nk"
        )
    if machine.k_per_issue == 2 and nk > 1 and nk % 2:
        raise CompileError(f"nk = {nk} is odd on a double-pumped cluster; use 1 or an even nk")
    return tiling

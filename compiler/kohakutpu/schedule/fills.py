# SPDX-License-Identifier: Apache-2.0
"""How often products read their operands from memory (docs/spec/compiler.md 8.3, 9.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.ir import AnyBand, Band, Product

LAYER = "L2"

Dealt = Sequence[tuple[tuple[int, ...], int]]


def fill_bytes(bands: Sequence[AnyBand], dealt: Sequence[Dealt], machine: MachineSpec) -> Counter[str]:
    """Bytes that clusters fill from the buffer of each operand, over all bands.

    A lower bound: what a program that is cut into several passes loads again is not counted.

    Args:
        dealt: (instance, unit) of every band, in the order of the unit.
    """
    out: Counter[str] = Counter()
    for band, places in zip(bands, dealt, strict=True):
        if isinstance(band, Band):
            for name, entries in _entries(band, places, machine).items():
                out[name] += machine.mx_entry_bytes * entries
    return out


def _entries(band: Band, places: Dealt, machine: MachineSpec) -> Counter[str]:
    """Entries of one band by operand."""
    t, chunks = band.tiling, band.chunks
    # the chunks of an operand alternate between the banks, so few of them outlive the instance they were filled for
    kept = machine.banks // chunks
    resident = len(band.products) == 1 and band.products[0].b in band.resident
    sides: dict[tuple[int, str], list[object]] = {}
    out: Counter[str] = Counter()
    for key, unit in places:
        for product in band.products:
            a, b = _read(band, product, key)
            for side, read, size, room in (("a", a, t.gm, kept), ("b", b, t.gn, max(kept, int(resident)))):
                held = sides.setdefault((unit, side), [])
                if read in held:
                    held.remove(read)
                else:
                    out[product.a if side == "a" else product.b] += size * t.nk * chunks
                held.append(read)
                del held[: max(0, len(held) - room)]
    return out


def _read(band: Band, product: Product, key: tuple[int, ...]) -> tuple[object, object]:
    """What an instance reads of A and of B; equal values are equal entries."""
    mo, no, *ko = key
    block = mo // band.block_rows if product.batched_b else 0
    return (product.a, product.a_window, mo, *ko), (product.b, product.b_window, block, no, *ko)

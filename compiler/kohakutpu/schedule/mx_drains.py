# SPDX-License-Identifier: Apache-2.0
"""Results of passes that products read, quantised by the drain of their pass (docs/spec/compiler.md 6.1, 7.1).

Only with ``vec_mx_store``. The value then has no FP16 buffer unless another pass reads it, or it is an output; what
does not fit keeps its quantise move, and the schedule notes why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.ir import Contraction, Elementwise, Operand, Rearrange, VectorBand
from kohakutpu.schedule.lanes_entries import entry_band
from kohakutpu.schedule.layout import MxEntry
from kohakutpu.schedule.planner import Planner, Reading
from kohakutpu.schedule.tiles import Tiling

LAYER = "L2"

FEATURE = "vec_mx_store"

Drained = tuple[Elementwise, tuple[MxEntry | None, ...], VectorBand]
"""A pass, the entries each of its results is drained to (None: rows), and its band."""


def readings(
    requests: Sequence[Contraction | Elementwise | Rearrange], tilings: Mapping[str, Tiling], machine: MachineSpec
) -> dict[str, Reading]:
    """How products read the results of passes, by value.

    Args:
        tilings: of every product, by the name of its result.
    """
    if FEATURE not in machine.features:
        return {}
    passes = [r for r in requests if isinstance(r, Elementwise)]
    made = {result.name: result for e in passes for result in e.results if not result.of}
    read = {o.name for r in requests if not isinstance(r, Contraction) for o in r.operands}
    orders: dict[str, list[MxEntry]] = {}
    for c in requests:
        if isinstance(c, Contraction):
            t = tilings[c.c.name]
            for o, order in ((c.a, MxEntry(t.gm, t.nk, "a")), (c.b, MxEntry(t.gn, t.nk, "b"))):
                orders.setdefault(o.name, []).append(order)
    return {
        name: Reading(tuple(dict.fromkeys(orders[name])), name in read or value.role != "temp")
        for name, value in made.items()
        if name in orders
    }


def drained_entries(planner: Planner, e: Elementwise, parents: Mapping[str, tuple[int, int]]) -> Drained | None:
    """The pass over rows ``e`` with the results that products read drained as entries.

    Args:
        parents: shapes of the buffers that results are parts of.

    Returns:
        None if no product reads a result, or if the pass does not fit; the planner then knows the reason.
    """
    wanted = {r.name: planner.readings[r.name] for r in e.results if r.name in planner.readings}
    if not wanted:
        return None
    made, orders = _with_entries(e, wanted)
    try:
        band = entry_band(made, orders, planner.machine, planner.options.cores, planner.options.lanes, parents)
    except CoverageError:
        raise
    except CompileError as err:
        planner.undrained |= dict.fromkeys(wanted, str(err))
        return None
    return made, orders, band


def _with_entries(
    e: Elementwise, wanted: Mapping[str, Reading]
) -> tuple[Elementwise, tuple[MxEntry | None, ...]]:
    """The pass with a result for every order; a value only products read is one of them under its own name."""
    results, nodes = list(e.results), list(e.chain.results)
    orders: list[MxEntry | None] = [None] * len(results)
    for place, (value, node) in enumerate(zip(e.results, e.chain.results, strict=True)):
        reading = wanted.get(value.name)
        if reading is None:
            continue
        rest = list(reading.orders)
        if not reading.kept:
            orders[place] = rest.pop(0)
        for order in rest:
            results.append(Operand(f"{value.name}:{order.key}", "temp", value.shape))
            nodes.append(node)
            orders.append(order)
    chain = replace(e.chain, results=tuple(nodes))
    return replace(e, chain=chain, results=tuple(results)), tuple(orders)

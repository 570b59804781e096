# SPDX-License-Identifier: Apache-2.0
"""Encoded programs and operand bytes to an artifact (docs/spec/compiler.md 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kohakuabi import Artifact, Await, Barrier, Image, Output, Step, first_conflict
from kohakutpu.dispatch.moves import MoverPass, move_rounds
from kohakutpu.dispatch.rounds import Program, plan_rounds, round_steps
from kohakutpu.dispatch.work import Arrivals, UnitWork
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec, Node

LAYER = "L0"


def _node(engine: str, unit: int, machine: MachineSpec) -> Node:
    nodes = machine.units(engine)
    if not 0 <= unit < len(nodes):
        raise CompileError(f"unit {engine}{unit}: machine {machine.name} has {len(nodes)} of this type")
    return nodes[unit]


def _programs(work: UnitWork, machine: MachineSpec) -> list[Program]:
    x, y = _node(work.engine, work.unit, machine)
    for number, p in enumerate(work.programs):
        if not p.payloads:
            raise CompileError(
                f"unit {work.engine}{work.unit}: program {number} is empty; it cannot be dispatched"
            )
        if p.engine not in ("", work.engine):
            raise CompileError(
                f"unit {work.engine}{work.unit}: program {number} was encoded for a unit of type {p.engine}; "
                "the same bits mean something else there"
            )
    return [Program(x, y, p.payloads, p.cycles) for p in work.programs]


def link(
    machine: MachineSpec,
    bands: Sequence[Sequence[UnitWork]],
    images: Sequence[Image],
    outputs: Sequence[Output],
    meta: Mapping[str, Any] | None = None,
    arrivals: Sequence[Arrivals] = (),
    moves: Sequence[Sequence[MoverPass]] = (),
    *,
    reorder: int = 0,
) -> Artifact:
    """Plan rounds and assemble the artifact; bands run one after another.

    Args:
        arrivals: per band, the burst acknowledgements of each receiver that its first round waits for.
        moves: per band, the mover passes before it; one more list goes behind the last band.
        reorder: how many of the bands only reorder bytes; they are no dispatches (docs/spec/kernels.md 0).

    Raises:
        CompileError: a unit the machine does not have, an empty program, conflicting images, a program for
            another type of unit, or more acknowledgements than a receiver queues.
    """
    conflict = first_conflict(images)
    if conflict:
        a, b, at = conflict
        raise CompileError(f"images {a.name} and {b.name} put different bytes at {at:#x}; place them apart")
    steps: list[Step] = []
    payloads: list[int] = []
    cycles: list[int] = []
    acknowledging: list[Node] = []
    for number, band in enumerate(bands):
        head = _head(arrivals[number], bands[number - 1] if number else (), machine) if arrivals else []
        acknowledging += [(a.x, a.y) for a in head if (a.x, a.y) not in acknowledging]
        for passes, cost in move_rounds(moves[number], machine) if moves else []:
            steps += [*passes, Barrier()]
            cycles.append(cost)
        for group in plan_rounds([_programs(u, machine) for u in band], machine, head):
            steps += [*round_steps(group, machine.credit, head), Barrier()]
            head = []
            payloads += [w for p in group for w in p.payloads]
            cycles.append(sum(p.cycles for p in group))
    for passes, cost in move_rounds(moves[len(bands)], machine) if len(moves) > len(bands) else []:
        steps += [*passes, Barrier()]
        cycles.append(cost)
    info = dict(meta or {})
    info["counters"] = {
        **info.get("counters", {}),
        "payloads": len(payloads),
        "rounds": len(cycles),
        "dispatches": len(bands) - reorder,
        "image_bytes": sum(len(i.data) for i in images),
    }
    info["modelled_cycles"] = cycles
    kicked = sorted({u.engine for band in bands for u in band})
    info["units"] = {kind: [list(node) for node in machine.units(kind)] for kind in kicked}
    if acknowledging:
        info["acknowledging"] = [list(node) for node in acknowledging]
    artifact = Artifact(
        machine=machine.name,
        machine_hash=machine.digest(),
        payloads=tuple(payloads),
        images=tuple(images),
        steps=tuple(steps),
        outputs=tuple(outputs),
        limits={"stage_flits": machine.stage_flits, "ncmd": machine.ncmd, "credit_max": machine.credit},
        meta=info,
    )
    artifact.check(machine.digest())
    return artifact


def _head(arrivals: Arrivals, senders: Sequence[UnitWork], machine: MachineSpec) -> list[Await]:
    """One await a receiver (docs/spec/fabric.md 8.1, items 3 and 4)."""
    out = []
    busy = {_node(u.engine, u.unit, machine) for u in senders}
    for (engine, unit), count in arrivals.items():
        node = _node(engine, unit, machine)
        queue = machine.ackq.get(engine, 0)
        if count > queue:
            raise CompileError(
                f"unit {engine}{unit} receives {count} bursts before anyone waits; it queues {queue} acknowledgements"
            )
        if node in busy:
            raise CompileError(
                f"unit {engine}{unit} receives bursts in a round that kicks it; its signals could not be told apart"
            )
        out.append(Await(*node, count))
    return out

# SPDX-License-Identifier: Apache-2.0
"""A schedule whose buffers get other addresses (docs/spec/compiler.md 7.4, address resolution).

A schedule names buffers; only its table of buffers holds addresses. The planner places that table in an arena of its
own. Here the table is divided into blocks, which keep their inner distances, and the runtime says where each goes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.fills import fill_bytes
from kohakutpu.schedule.ir import Buffer, Schedule
from kohakutpu.schedule.planner import HOST_ROLES
from kohakutpu.schedule.tiers import DRAM, L2, global_addr


@dataclass(frozen=True)
class Block:
    """Buffers that move together: names with their byte offsets from the first one.

    Args:
        tier: where the planner wanted it.
        results: members that outlive the call.
    """

    tier: str
    nbytes: int
    offsets: Mapping[str, int]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Places:
    """What has to be placed: operands on their own, everything else in blocks.

    Args:
        staged: operands the planner wanted in the staging store, and how often products read them.
    """

    operands: tuple[Buffer, ...]
    blocks: tuple[Block, ...]
    staged: Mapping[str, float] = field(default_factory=dict)


def places(schedule: Schedule, machine: MachineSpec, adjacent: Sequence[Sequence[str]] = ()) -> Places:
    """Divide the buffers of ``schedule``.

    Args:
        adjacent: groups that have to keep their order and distance.

    Raises:
        CompileError: a group with an operand of the call in it.
    """
    operands = tuple(b for b in schedule.buffers.values() if b.role in HOST_ROLES)
    bound = {b.name for b in operands}
    for group in adjacent:
        if bound & set(group):
            raise CompileError(f"adjacent({', '.join(group)}): {sorted(bound & set(group))} are operands of the call")
    rest = [b for b in schedule.buffers.values() if b.name not in bound]
    return Places(operands, tuple(_blocks(rest, machine, adjacent)), _staged(schedule, operands, machine))


def _staged(schedule: Schedule, operands: Sequence[Buffer], machine: MachineSpec) -> dict[str, float]:
    fills = fill_bytes(schedule.bands, schedule.dealt, machine)
    return {b.name: fills[b.name] / b.nbytes for b in operands if _tier(b.address, machine) == L2}


def _tier(at: int, machine: MachineSpec) -> str:
    return L2 if machine.stage_bytes and at >= global_addr(0, 0, L2, machine) else DRAM


def _blocks(buffers: list[Buffer], machine: MachineSpec, adjacent: Sequence[Sequence[str]]) -> list[Block]:
    """Buffers that share bytes belong together, so does everything from the first to the last of a group."""
    if not buffers:
        return []
    of = {b.name: b for b in buffers}
    held = [[of[n] for n in group if n in of] for group in adjacent]
    ranges = sorted(
        [(b.address, b.address + b.nbytes) for b in buffers]
        + [(min(b.address for b in g), max(b.address + b.nbytes for b in g)) for g in held if g]
    )
    merged: list[list[int]] = []
    for first, end in ranges:
        if merged and first < merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    blocks = []
    for first, end in merged:
        inside = [b for b in buffers if first <= b.address < end]
        blocks.append(
            Block(
                _tier(first, machine),
                end - first,
                {b.name: b.address - first for b in inside},
                tuple(b.name for b in inside if b.role == "out"),
            )
        )
    return blocks


def bind(schedule: Schedule, addresses: Mapping[str, int]) -> Schedule:
    """``schedule`` with every buffer at its address of ``addresses``."""
    return replace(schedule, buffers={n: replace(b, address=addresses[n]) for n, b in schedule.buffers.items()})


def adopt(schedule: Schedule, layout: str, shape: tuple[int, int]) -> Schedule:
    """``schedule`` of a pass over whole images, its operands and results being images of another byte order.

    An elementwise pass adopts the order of what it reads (docs/spec/compiler.md 7.1): it never looks at positions.
    """
    ports = (*HOST_ROLES, "out")
    buffers = {
        n: replace(b, layout=layout, shape=shape) if b.role in ports else b for n, b in schedule.buffers.items()
    }
    return replace(schedule, buffers=buffers)

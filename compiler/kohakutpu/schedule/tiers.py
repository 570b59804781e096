# SPDX-License-Identifier: Apache-2.0
"""Tiers of memory: global addresses, and the arenas of DRAM and the staging store (docs/spec/compiler.md 8.3)."""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.places import MESHES, TIERS, place
from kohakutpu.schedule.arena import Arena

LAYER = "L2"

DRAM, L2, NEAR = TIERS
L2_ALIGN = 256


def global_addr(base: int, mesh: int, tier: str, machine: MachineSpec, nbytes: int = 1, lines: int = 0) -> int:
    """Address of byte ``base`` of a tier of ``mesh``; ``nbytes`` from there have to exist.

    Args:
        lines: size of the adapter for tier ``near``.

    Raises:
        CompileError: an unknown tier or mesh, a tier the machine does not have, a base that does not fit.
    """
    if tier not in TIERS:
        raise CompileError(f"tier {tier!r} is unknown; known: {', '.join(TIERS)}")
    if not 0 <= mesh < min(MESHES, len(machine.meshes)):
        raise CompileError(f"mesh {mesh}: machine {machine.name} has {len(machine.meshes)}")
    if tier == L2 and not machine.stage_bytes:
        raise CompileError(f"tier l2: machine {machine.name} has no staging store; place the buffer in dram")
    if tier == NEAR and not ("adapter_l2" in machine.features and lines):
        raise CompileError(
            f"tier near: the endpoint has no adapter on machine {machine.name}; place the buffer in dram"
        )
    size = {DRAM: machine.dram_bytes, L2: machine.stage_bytes, NEAR: 32 * lines}[tier]
    if base < 0 or base + nbytes > size:
        raise CompileError(f"{nbytes} bytes at {base:#x} leave tier {tier} of {size} bytes on machine {machine.name}")
    return place(base, mesh, tier)


def arena(tier: str, machine: MachineSpec) -> Arena:
    """An empty arena of one mesh: DRAM or the staging store.

    Raises:
        CompileError: a tier buffers are not placed in, or that the machine does not have.
    """
    global_addr(0, 0, tier, machine)
    if tier == L2:
        return Arena(0, machine.stage_bytes, L2_ALIGN)
    return Arena(machine.arena_base, machine.dram_bytes - machine.arena_base, machine.arena_align)

# SPDX-License-Identifier: Apache-2.0
"""Tiers of memory: global addresses and placement in DRAM or the staging store (docs/spec/compiler.md 8.3)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.places import MESHES, TIERS, place
from kohakutpu.schedule.arena import Arena, Span

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


@dataclass
class Tiers:
    """Arenas of one mesh. ``staging_full`` counts proposals for the staging store that went to DRAM."""

    machine: MachineSpec
    mesh: int = 0
    staging_full: int = 0
    _arenas: dict[str, Arena] = field(default_factory=dict)
    _live: dict[int, tuple[str, str, Span]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        m = self.machine
        self._arenas[DRAM] = Arena(m.arena_base, m.dram_bytes - m.arena_base, m.arena_align)
        if m.stage_bytes:
            self._arenas[L2] = Arena(0, m.stage_bytes, L2_ALIGN)

    def place(self, name: str, nbytes: int, tier: str = DRAM, *, proposed: bool = False) -> int:
        """Global address of a new buffer.

        Args:
            proposed: the tier is the compiler's idea; what does not fit goes to DRAM and is counted.

        Raises:
            CompileError: it does not fit where its author wants it; names the sizes of all that lives there.
        """
        if proposed and tier == L2 and not self._fits(nbytes):
            self.staging_full += 1
            tier = DRAM
        global_addr(0, self.mesh, tier, self.machine)
        try:
            span = self._arenas[tier].alloc(nbytes, name)
        except CompileError as err:
            live = ", ".join(f"{n} {s.nbytes}" for n, t, s in self._live.values() if t == tier) or "nothing"
            raise CompileError(f"{err}; in tier {tier} live: {live}") from err
        address = global_addr(span.base, self.mesh, tier, self.machine, nbytes)
        self._live[address] = (name, tier, span)
        return address

    def release(self, address: int) -> None:
        """Free a buffer by its address.

        Raises:
            CompileError: nothing lives there.
        """
        if address not in self._live:
            raise CompileError(f"nothing was placed at {address:#x}")
        _, tier, span = self._live.pop(address)
        self._arenas[tier].free(span)

    def _fits(self, nbytes: int) -> bool:
        arena = self._arenas.get(L2)
        need = -(-max(nbytes, 1) // L2_ALIGN) * L2_ALIGN
        return arena is not None and arena.stats()["largest_free"] >= need

    def stats(self) -> dict[str, dict[str, float]]:
        """Arena statistics by tier."""
        return {tier: arena.stats() for tier, arena in self._arenas.items()}

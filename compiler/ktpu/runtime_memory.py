# SPDX-License-Identifier: Apache-2.0
"""Memory of an open device: one arena a tier, spans that are freed with their owner (docs/spec/compiler.md 8.1)."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from kohakudriver import Transport
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.arena import Arena, Span
from kohakutpu.schedule.tiers import DRAM, L2, L2_ALIGN, global_addr

LARGEST_SHOWN = 5

_MEMORIES: weakref.WeakKeyDictionary[Transport, list[weakref.ref[DeviceMemory]]] = weakref.WeakKeyDictionary()


class MemoryFullError(CompileError):
    """No free span is large enough."""


class Storage:
    """Placed bytes; they are free again when nothing refers to the object any more."""

    def __init__(self, address: int, nbytes: int, what: str, tier: str, epoch: int) -> None:
        self.address = address
        self.nbytes = nbytes
        self.what = what
        self.tier = tier
        self.epoch = epoch


class DeviceMemory:
    """Arenas of mesh 0 of a device.

    Args:
        transport: the machine; two memories of one machine that are alive together must not overlap.
        machine: what it is.
        span: (first byte, bytes) of DRAM to use; None for all there is behind the machine's ``arena_base``.

    Raises:
        CompileError: a span outside the memory, or one that overlaps the span of another open device.
    """

    def __init__(self, transport: Transport, machine: MachineSpec, span: tuple[int, int] | None = None) -> None:
        there = min(machine.dram_bytes, int(getattr(transport, "memory_bytes", machine.dram_bytes)))
        base, size = span or (machine.arena_base, there - machine.arena_base)
        if base % machine.arena_align or base < 0 or size < 1 or base + size > there:
            raise CompileError(
                f"{size} bytes from {base:#x}: machine {machine.name} has {there} bytes, a span starts at a multiple "
                f"of {machine.arena_align}"
            )
        self.machine = machine
        self.base, self.size = base, size
        self._transport = weakref.ref(transport)
        self._claim(transport)
        self._arenas = {DRAM: Arena(base, size, machine.arena_align)}
        if machine.stage_bytes and span is None:
            self._arenas[L2] = Arena(0, machine.stage_bytes, L2_ALIGN)
        self._live: weakref.WeakSet[Storage] = weakref.WeakSet()

    def _others(self, transport: Transport) -> list[DeviceMemory]:
        alive = (r() for r in _MEMORIES.get(transport, []))
        return [m for m in alive if m is not None and m is not self]

    def shared(self) -> bool:
        """True if another open device uses the machine."""
        transport = self._transport()
        return transport is not None and bool(self._others(transport))

    def close(self) -> None:
        """Give the machine up to another device."""
        transport = self._transport()
        if transport is not None:
            _MEMORIES[transport] = [weakref.ref(m) for m in self._others(transport)]

    def _claim(self, transport: Transport) -> None:
        others = self._others(transport)
        for other in others:
            if self.base < other.base + other.size and other.base < self.base + self.size:
                raise CompileError(
                    f"{self.size} bytes from {self.base:#x} overlap the {other.size} bytes from {other.base:#x} of "
                    "another open device on this machine; use one device, or give each a span of its own"
                )
        _MEMORIES[transport] = [weakref.ref(m) for m in (*others, self)]

    @property
    def epoch(self) -> int:
        """Counts resets; what was placed in an older epoch is gone."""
        return self._arenas[DRAM].epoch

    def alloc(self, nbytes: int, what: str, tier: str = DRAM) -> Storage:
        """Place ``nbytes``; ``what`` names them in messages.

        Raises:
            MemoryFullError: no free span is large enough; names the largest arrays that are alive.
        """
        arena = self._arenas[tier]
        try:
            span = arena.alloc(nbytes, what)
        except CompileError as err:
            raise MemoryFullError(f"{err}; {self._largest(tier)}") from err
        storage = Storage(global_addr(span.base, 0, tier, self.machine), nbytes, what, tier, span.epoch)
        weakref.finalize(storage, _release, arena, span).atexit = False
        self._live.add(storage)
        return storage

    def staged(self, nbytes: int, what: str) -> Storage | None:
        """Place bytes in the staging store; None without one, or if they do not fit there."""
        arena = self._arenas.get(L2)
        if arena is None or arena.stats()["largest_free"] < nbytes:
            return None
        return self.alloc(nbytes, what, L2)

    def staging(self, nbytes: int = 1) -> bool:
        """True if there is a staging store of ``nbytes``, whatever stands in it."""
        return L2 in self._arenas and nbytes <= self.machine.stage_bytes

    def live(self) -> list[Storage]:
        """What is placed, in order of address."""
        return sorted((s for s in self._live if s.epoch == self.epoch), key=lambda s: s.address)

    def overlapping(self, spans: Iterable[tuple[int, int]]) -> Storage | None:
        """A live storage on the machine, of whichever device, that shares a byte with an (address, bytes) span."""
        wanted, transport = list(spans), self._transport()
        others = [] if transport is None else self._others(transport)
        for s in (s for memory in (self, *others) for s in memory.live()):
            if any(s.address < first + n and first < s.address + s.nbytes for first, n in wanted):
                return s
        return None

    def _largest(self, tier: str) -> str:
        there = sorted((s for s in self.live() if s.tier == tier), key=lambda s: -s.nbytes)
        shown = ", ".join(f"{s.what} {s.nbytes}" for s in there[:LARGEST_SHOWN]) or "nothing"
        return (
            f"the largest alive are: {shown} (bytes); delete arrays that are not needed, unpin weights, or work in "
            "smaller batches"
        )

    def trim(self) -> None:
        """Give back what is free above the last array of every tier."""
        for arena in self._arenas.values():
            arena.trim()

    def reset(self) -> None:
        """Forget everything; a new epoch begins."""
        for arena in self._arenas.values():
            arena.reset()

    def stats(self) -> dict[str, dict[str, float]]:
        """Arena statistics by tier."""
        return {tier: arena.stats() for tier, arena in self._arenas.items()}


def _release(arena: Arena, span: Span) -> None:
    if span.epoch == arena.epoch:
        arena.free(span)

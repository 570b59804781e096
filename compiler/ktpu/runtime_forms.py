# SPDX-License-Identifier: Apache-2.0
"""Arrays in the byte orders their readers want, and the memory they take (docs/spec/compiler.md 7.4 and 8.1)."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from kohakudriver import Device
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import from_key
from kohakutpu.schedule.layout import Flat, MxEntry
from kohakutpu.schedule.tiers import L2
from ktpu.counters import COMPILED
from ktpu.prelude import Step
from ktpu.runtime_arrays import Contents, Form
from ktpu.runtime_bind import Block
from ktpu.runtime_memory import DeviceMemory, MemoryFullError, Storage
from ktpu.runtime_orders import Rewrite, Scratch

Placed = TypeVar("Placed")

COUNTERS = ("calls", "compiled", "linked", "uploads", "downloads", "packed", "evicted", "saturated", *COMPILED)


@dataclass
class Run:
    """What one call has made so far; it counts only when the program has run."""

    steps: list[Step] = field(default_factory=list)
    forms: dict[tuple[int, str], tuple[Contents, Form]] = field(default_factory=dict)
    held: list[Storage] = field(default_factory=list)
    quantised: int = 0
    relayouts: int = 0


class Forms:
    """Forms of the arrays of a device.

    Args:
        device: where they are read and written.
        machine: what it is.
        memory: where they are placed.
    """

    def __init__(self, device: Device, machine: MachineSpec, memory: DeviceMemory) -> None:
        self.device = device
        self.machine = machine
        self.memory = memory
        self.counters = dict.fromkeys(COUNTERS, 0)
        self.arrays: weakref.WeakSet[Contents] = weakref.WeakSet()
        self.running = False

    def form(self, run: Run, contents: Contents, layout: str, nbytes: int) -> Form:
        """The array in ``layout`` with ``nbytes`` defined, held until the call ends."""
        form = self._made(run, contents, layout, nbytes)
        run.held.append(form.storage)
        return form

    def _made(self, run: Run, contents: Contents, layout: str, nbytes: int) -> Form:
        """What is there already, else packed and sent by the host, else made by moves of the call."""
        have = contents.forms.get(layout)
        if have is not None and have.nbytes >= nbytes:
            return have
        pending = run.forms.get((id(contents), layout))
        if pending is not None and pending[1].nbytes >= nbytes:
            return pending[1]
        order = from_key(layout)
        size = max(up(nbytes, self.machine.word_bytes), up(order.nbytes(contents.shape), self.machine.word_bytes))
        if contents.host is not None:
            data = order.pack(contents.host).ljust(size, b"\0")
            form = Form(self._alloc(size, contents), size)
            self._write(form.address, data)
            contents.forms[layout] = form
            self.counters["packed"] += isinstance(order, MxEntry)
            return form
        source = from_key(contents.source)
        rewrite = Rewrite(contents.name, contents.shape, self.machine, self._scratch_of(run), contents.clean)
        room = max(size, up(contents.shape[0], 4) * 2 * contents.shape[1]) if isinstance(order, Flat) else size
        form = Form(self._alloc(room, contents), room)
        run.steps += rewrite.to(source, contents.forms[contents.source].address, order, form.address, size)
        run.quantised += isinstance(order, MxEntry)
        run.relayouts += not isinstance(order, MxEntry)
        run.forms[id(contents), layout] = contents, form
        return form

    def _scratch_of(self, run: Run) -> Scratch:
        def scratch(nbytes: int, what: str) -> int:
            storage = self._staged(nbytes, what)
            run.held.append(storage)
            return storage.address

        return scratch

    def commit(self, run: Run) -> None:
        """The program has run: what it made is there for the next reader."""
        for (_, layout), (contents, form) in run.forms.items():
            contents.forms[layout] = form
        self.counters["quantised"] += run.quantised
        self.counters["relayouts_device"] += run.relayouts

    # ------------------------------------------------------------------ memory

    def span(self, run: Run, block: Block, kernel: str) -> Storage:
        """Room for a block of a plan; of temps until the call ends."""
        what = " and ".join(block.results) or "temps"
        if block.tier == L2 and not block.results:
            storage = self._staged(block.nbytes, f"{kernel}.{what}")
        else:
            storage = self._room(block.nbytes, f"{kernel}.{what}")
        if not block.results:
            run.held.append(storage)
        return storage

    def _staged(self, nbytes: int, what: str) -> Storage:
        """Place bytes in the staging store if they fit there, else in DRAM."""
        storage, spilled = self._retried(lambda: self.memory.scratch(nbytes, what))
        self.counters["staging_full"] += spilled
        return storage

    def _alloc(self, nbytes: int, contents: Contents) -> Storage:
        return self._room(nbytes, f"{contents.name} {contents.shape}")

    def _room(self, nbytes: int, what: str) -> Storage:
        return self._retried(lambda: self.memory.alloc(nbytes, what))

    def _retried(self, place: Callable[[], Placed]) -> Placed:
        """Place bytes; if there is no room, first forget forms that can be made again."""
        try:
            return place()
        except MemoryFullError:
            if not self.evict():
                raise
            return place()

    def evict(self) -> int:
        """Forget every form that can be made again, but those of pinned arrays; how many."""
        gone = sum(c.drop() for c in self.arrays if not c.pinned)
        self.counters["evicted"] += gone
        return gone

    def _write(self, at: int, data: bytes) -> None:
        self.device.write(at, data)
        self.counters["uploads"] += 1
        self.counters["bytes_sent"] += len(data)

    def read(self, at: int, nbytes: int) -> bytes:
        """Bytes of the device, counted; inside a call they are a round trip."""
        self.counters["downloads"] += 1
        self.counters["fetched"] += nbytes
        self.counters["relayouts"] += self.running
        return self.device.read(at, nbytes)

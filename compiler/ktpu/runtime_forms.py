# SPDX-License-Identifier: Apache-2.0
"""Arrays in the byte orders their readers want, and the memory they take (docs/spec/compiler.md 7.4 and 8.1)."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from kohakudriver import Device
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import from_key
from kohakutpu.schedule.layout import ByteOrder, Flat, MxEntry
from kohakutpu.schedule.tiers import L2
from ktpu.counters import COMPILED
from ktpu.prelude import Step
from ktpu.runtime_arrays import Contents, Form
from ktpu.runtime_bind import Block
from ktpu.runtime_memory import DeviceMemory, MemoryFullError, Storage
from ktpu.runtime_orders import Rewrite, Scratch

_PAYS = 4
"""How often a form is read at least that is worth a copy, which reads and writes it once."""

COUNTERS = ("calls", "compiled", "linked", "uploads", "downloads", "packed", "evicted", "saturated", *COMPILED)


@dataclass
class Run:
    """What one call has made so far; it counts only when the program has run."""

    steps: list[Step] = field(default_factory=list)
    forms: dict[tuple[int, str], tuple[Contents, Form]] = field(default_factory=dict)
    held: list[Storage] = field(default_factory=list)
    reserved: dict[tuple[int, str], Storage] = field(default_factory=dict)
    staged: dict[tuple[int, str], tuple[Contents, Form]] = field(default_factory=dict)
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
        form = self._staged_form(run, contents, layout, nbytes) or self._made(run, contents, layout, nbytes)
        run.held.append(form.storage)
        return form

    def _made(self, run: Run, contents: Contents, layout: str, nbytes: int) -> Form:
        """What is there already, else packed and sent by the host, else made by moves of the call."""
        have = self._home(run, contents, layout, nbytes)
        if have is not None:
            return have
        order = from_key(layout)
        size, room = self._sizes(contents, order, nbytes)
        if contents.host is not None:
            data = order.pack(contents.host).ljust(size, b"\0")
            form = Form(self._alloc(size, contents), size)
            self._write(form.address, data)
            contents.forms[layout] = form
            self.counters["packed"] += isinstance(order, MxEntry)
            return form
        form = Form(self._alloc(room, contents), room)
        self._rewrite(run, contents, order, form.address, size)
        run.forms[id(contents), layout] = contents, form
        return form

    @staticmethod
    def _home(run: Run, contents: Contents, layout: str, nbytes: int) -> Form | None:
        """The form in DRAM, or the one the call makes there."""
        pending = run.forms.get((id(contents), layout))
        for form in (contents.forms.get(layout), pending and pending[1]):
            if form is not None and form.nbytes >= nbytes:
                return form
        return None

    def _sizes(self, contents: Contents, order: ByteOrder, nbytes: int) -> tuple[int, int]:
        """(bytes to define, bytes to place) of a form."""
        word, (rows, cols) = self.machine.word_bytes, contents.shape
        size = max(up(nbytes, word), up(order.nbytes(contents.shape), word))
        # rows are made four at a time
        return size, max(size, up(rows, 4) * 2 * cols) if isinstance(order, Flat) else size

    def _rewrite(self, run: Run, contents: Contents, order: ByteOrder, to: int, size: int) -> None:
        """Moves from the order the values are in."""
        rewrite = Rewrite(contents.name, contents.shape, self.machine, self._scratch_of(run), contents.clean)
        source = from_key(contents.source)
        run.steps += rewrite.to(source, contents.forms[contents.source].address, order, to, size)
        run.quantised += isinstance(order, MxEntry)
        run.relayouts += not isinstance(order, MxEntry)

    # ------------------------------------------------------------------ staging store

    def stage(self, run: Run, contents: Contents, layout: str, nbytes: int, times: float) -> None:
        """Take room in the staging store for a form that products read ``times`` over; the form itself comes later.

        Without room it stays in DRAM, which is counted. One that is in DRAM, or comes from the host, is copied; where
        that moves more words than it saves, it stays in DRAM too.
        """
        key, (size, room) = (id(contents), layout), self._sizes(contents, from_key(layout), nbytes)
        have, reserved = contents.staged.get(layout), run.reserved.get(key)
        if have is not None and have.nbytes >= size:
            run.staged[key] = contents, have
            return
        if not self.memory.staging() or (reserved is not None and reserved.nbytes >= size):
            return
        if times < _PAYS and not self._direct(run, contents, layout, nbytes):
            return
        what = f"{contents.name} {contents.shape}"
        storage = self._cleared(room, lambda: self.memory.staged(room, what))
        if storage is None:
            self.counters["staging_full"] += 1
            return
        run.reserved[key] = storage

    def _direct(self, run: Run, contents: Contents, layout: str, nbytes: int) -> bool:
        """True if moves make the form where it is wanted; a pinned array has all its forms in DRAM."""
        made = self._home(run, contents, layout, nbytes) is not None
        return not made and contents.host is None and not contents.pinned

    def _staged_form(self, run: Run, contents: Contents, layout: str, nbytes: int) -> Form | None:
        """The form in the staging store, made there or copied if there is room for it."""
        key = id(contents), layout
        pending = run.staged.get(key)
        for form in (contents.staged.get(layout), pending and pending[1]):
            if form is not None and form.nbytes >= nbytes:
                return form
        storage = run.reserved.get(key)
        if storage is None:
            return None
        order = from_key(layout)
        form, size = Form(storage, storage.nbytes), self._sizes(contents, order, nbytes)[0]
        if self._direct(run, contents, layout, nbytes):
            self._rewrite(run, contents, order, form.address, size)
        else:
            home = self._made(run, contents, layout, nbytes)
            run.held.append(home.storage)
            copy = Rewrite(contents.name, contents.shape, self.machine, self._scratch_of(run))
            run.steps += copy.to(order, home.address, order, form.address, size)
        run.staged[key] = contents, form
        return form

    def _cleared(self, nbytes: int, place: Callable[[], Storage | None]) -> Storage | None:
        """Place bytes in the staging store; if there is no room, first forget what stands there between calls."""
        storage = place()
        if storage is None and self.memory.staging(nbytes) and self.unstage():
            storage = place()
        return storage

    def unstage(self) -> int:
        """Drop what stands in the staging store between calls; how many forms."""
        return sum(c.unstage() for c in self.arrays)

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
        for (_, layout), (contents, form) in run.staged.items():
            contents.staged[layout] = form
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
        storage = self._cleared(nbytes, lambda: self.memory.staged(nbytes, what))
        if storage is None:
            storage = self._room(nbytes, what)
            self.counters["staging_full"] += self.memory.staging()
        return storage

    def _alloc(self, nbytes: int, contents: Contents) -> Storage:
        return self._room(nbytes, f"{contents.name} {contents.shape}")

    def _room(self, nbytes: int, what: str) -> Storage:
        """Place bytes in DRAM; if there is no room, first forget forms that can be made again."""
        try:
            return self.memory.alloc(nbytes, what)
        except MemoryFullError:
            if not self.evict():
                raise
            return self.memory.alloc(nbytes, what)


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

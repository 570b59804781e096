# SPDX-License-Identifier: Apache-2.0
"""Calls on arrays that stay on a device (docs/spec/compiler.md 7.4, 8.1 and 13.1).

A call is planned once for its kernel, extents and options. Before every run each operand is brought into the byte
order the plan reads it in: packed by the host if its values are still there, else rewritten on the device in the
same program, and kept for the next reader. Nothing goes to the host and back inside a call.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kohakuabi import Artifact
from kohakuabi import Move as MoveStep
from kohakudriver import Device, DriverError
from kohakutpu.errors import CompileError
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import Schedule, from_key
from kohakutpu.schedule.layout import F16, Flat
from kohakutpu.schedule.tiers import L2
from kohakutpu.tensor import Call, DeviceArray, KernelCall, Tensor, to_half
from kohakutpu.tensor.operand import ANY_RANK, Array, Operand, matrix
from ktpu.compiling import finished, planned, scheduled
from ktpu.counters import measured
from ktpu.prelude import Step, alone
from ktpu.runtime_arrays import Contents, Form
from ktpu.runtime_bind import Block, Places, adopt, bind, places
from ktpu.runtime_forms import Forms, Run
from ktpu.runtime_graph import clean_results, flat_order, padded
from ktpu.runtime_memory import DeviceMemory, Storage

LINKED_MAX = 16
"""Linked programs kept a plan; another set of addresses needs another one."""


@dataclass
class Plan:
    """A call compiled for its extents: a schedule without final addresses, and the programs linked from it."""

    schedule: Schedule
    places: Places
    layout: str
    clean: Mapping[str, bool]
    linked: OrderedDict[tuple[object, ...], Artifact] = field(default_factory=OrderedDict)


class Runtime:
    """Arrays and calls of one open device.

    Args:
        device: what runs programs.
        machine: what they are compiled for.
        span: (first byte, bytes) of DRAM to use, see :class:`~ktpu.runtime_memory.DeviceMemory`.

    Raises:
        CompileError: a span that another open device of the same machine uses.
    """

    def __init__(
        self, device: Device, machine: MachineSpec, label: str = "", span: tuple[int, int] | None = None
    ) -> None:
        self.device = device
        self.machine = machine
        self.label = label or device.name
        self.memory = DeviceMemory(device.transport, machine, span)
        self.forms = Forms(device, machine, self.memory)
        self.counters = self.forms.counters
        self.current: Artifact | None = None
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._tables: dict[tuple[str, tuple[int, ...], str], Contents] = {}
        self._made = 0

    def __str__(self) -> str:
        return self.label

    # ------------------------------------------------------------------ arrays

    def tensor(self, array: Array, name: str = "") -> Tensor:
        """An array of this device with the values of ``array``, uploaded when a call first reads it.

        Raises:
            CompileError: no real numbers, no axis, or values FP16 cannot hold.
        """
        if isinstance(array, DeviceArray):
            raise CompileError(f"{array} lives on a device already; use it, or its numpy() for another device")
        half = to_half(name or "array", array, ANY_RANK)
        assert isinstance(half, np.ndarray)
        if half.size == 0:
            raise CompileError(f"{name or 'array'} is {half.shape}; every extent must be at least 1")
        values = half.reshape(matrix(half.shape)).copy()
        values.setflags(write=False)
        return Tensor(self, self._host(values, name), half.shape)

    def _host(self, values: F16, name: str = "") -> Contents:
        shape = (values.shape[0], values.shape[1])
        return self._new(Contents(name or self._name("array"), shape, self.memory.epoch, values))

    def _new(self, contents: Contents) -> Contents:
        self.forms.arrays.add(contents)
        return contents

    def _name(self, stem: str) -> str:
        self._made += 1
        return f"{stem}#{self._made}"

    def fetch(self, contents: object) -> F16:
        """The values of a matrix.

        Raises:
            CompileError: it was made before the device was reset.
        """
        c = self._checked(contents)
        if c.host is not None:
            return c.host.copy()
        form, order = c.forms[c.source], from_key(c.source)
        size = order.nbytes(c.shape)
        raw = self.forms.read(form.address, up(size, self.machine.word_bytes))
        return order.unpack(raw[:size], c.shape)

    def reshaped(self, contents: object, rows: int, columns: int) -> Contents:
        """The same values as a matrix of other extents: shared bytes, brought into rows first if they are in tiles.

        Raises:
            CompileError: the device cannot bring them into rows.
        """
        c = self._checked(contents)
        if c.host is not None:
            return self._host(c.host.reshape(rows, columns), c.name)
        run = Run()
        form = self.forms.form(run, c, Flat().key, Flat().nbytes(c.shape))
        if run.steps:
            self._execute(alone(run.steps, self.machine))
            self.forms.commit(run)
        return self._new(Contents(c.name, (rows, columns), c.epoch, None, Flat().key, {Flat().key: form}))

    def keep(self, contents: object, pinned: bool) -> None:
        """Keep the forms of a matrix when room is needed, or not."""
        self._checked(contents).pinned = pinned

    def _checked(self, contents: object) -> Contents:
        assert isinstance(contents, Contents), "a tensor holds the contents its device made"
        contents.check(self.memory.epoch)
        return contents

    # ------------------------------------------------------------------ calls

    def execute(self, call: Call, **options: int | str | bool | None) -> dict[str, Tensor]:
        """Run ``call`` and leave its results on the device.

        Args:
            options: of :func:`ktpu.compile`.

        Raises:
            CompileError: what the compiler refuses, operands of another device or an older epoch, a full memory.
            DriverError: a run that ended in a fault; the message shows the faulting instruction.
        """
        operands = {name: self._operand(call, name, value) for name, value in call.operands.items()}
        plan = self._plan(call, operands, options)
        self.counters["calls"] += 1
        run = Run()
        self.forms.running = True
        try:
            # between calls the staging store holds only what it can forget, and the plan fits it: its temps and
            # operands come before any scratch
            staged = [b for b in plan.places.blocks if b.tier == L2]
            spans = [(block, self.forms.span(run, block, call.trace.kernel)) for block in staged]
            for b in plan.places.operands:
                if b.name in plan.places.staged:
                    contents = operands[b.source or b.name]
                    self.forms.stage(run, contents, b.layout, b.nbytes, plan.places.staged[b.name])
            addresses = {
                b.name: self.forms.form(run, operands[b.source or b.name], b.layout, b.nbytes).address
                for b in plan.places.operands
            }
            rest = [b for b in plan.places.blocks if b.tier != L2]
            spans += [(block, self.forms.span(run, block, call.trace.kernel)) for block in rest]
            for block, storage in spans:
                addresses |= {name: storage.address + offset for name, offset in block.offsets.items()}
            self._execute(self._linked(plan, call, addresses, run.steps, options))
        finally:
            self.forms.running = False
        self.forms.commit(run)
        self._count(plan.schedule)
        return self._results(plan, call, spans)

    def _results(self, plan: Plan, call: Call, spans: list[tuple[Block, Storage]]) -> dict[str, Tensor]:
        shapes = call.shapes if isinstance(call, KernelCall) else {}
        out = {}
        for block, storage in spans:
            for name in block.results:
                b = plan.schedule.buffers[name]
                form = Form(storage, b.nbytes, block.offsets[name])
                clean = plan.clean.get(name, False)
                what = self._name(f"{call.trace.kernel}.{name}")
                contents = Contents(what, b.shape, self.memory.epoch, None, b.layout, {b.layout: form}, clean)
                out[name] = Tensor(self, self._new(contents), shapes.get(name, b.shape))
        return {name: out[name] for name in plan.schedule.buffers if name in out}

    def _operand(self, call: Call, name: str, value: Operand) -> Contents:
        if isinstance(value, DeviceArray):
            if value.device is not self:
                raise CompileError(
                    f"{call.trace.kernel}: operand {name} {value.shape} lives on device {value.device}, the call runs "
                    f"on {self}; make it there with ktpu.tensor(x.numpy(), device)"
                )
            return self._checked(value.contents)
        if call.trace.graph.values[name].role == "in":
            return self._host(value, self._name(f"{call.trace.kernel}.{name}"))
        key = (name, value.shape, hashlib.sha256(value.tobytes()).hexdigest())
        if key not in self._tables:
            self._tables[key] = self._host(value, self._name(f"{call.trace.kernel}.{name}"))
        return self._tables[key]

    def _plan(self, call: Call, operands: Mapping[str, Contents], options: Mapping[str, object]) -> Plan:
        graph = call.trace.graph
        sources = [operands[v.name].source for v in graph.values.values() if v.name in operands]
        layout = flat_order(graph, sources)
        clean = tuple(sorted((n, c.clean or c.host is not None) for n, c in operands.items()))
        key = (
            call.trace.kernel,
            repr((list(graph.values.values()), graph.ops, graph.adjacent)),
            repr(sorted(options.items())),
            layout,
            clean,
        )
        if key not in self._plans:
            self._plans[key] = self._planned(call, layout, dict(clean), options)
            self.counters["compiled"] += 1
        return self._plans[key]

    def _planned(self, call: Call, layout: str, clean: Mapping[str, bool], options: Mapping[str, object]) -> Plan:
        trace = padded(call.trace, layout)
        schedule = scheduled(trace, self.machine, **options)
        if layout:
            (shape,) = {v.shape for v in call.trace.graph.values.values() if v.role == "out"}
            schedule = adopt(schedule, layout, shape)
        groups = call.trace.graph.adjacent
        return Plan(schedule, places(schedule, self.machine, groups), layout, clean_results(call.trace.graph, clean))

    def _linked(
        self,
        plan: Plan,
        call: Call,
        addresses: Mapping[str, int],
        steps: list[Step],
        options: Mapping[str, object],
    ) -> Artifact:
        key = (tuple(addresses.items()), tuple(steps))
        if key in plan.linked:
            plan.linked.move_to_end(key)
            return plan.linked[key]
        knobs = {"emit_fuse": options.get("emit_fuse", True), "fuse": options.get("fuse", "auto")}
        bound = bind(plan.schedule, addresses)
        artifact = finished(call, self.machine, bound, (), knobs=knobs, before=steps).artifact
        self.counters["linked"] += 1
        plan.linked[key] = artifact
        while len(plan.linked) > LINKED_MAX:
            plan.linked.popitem(last=False)
        return artifact

    def _execute(self, artifact: Artifact) -> None:
        self.current = artifact
        if self.memory.shared():
            self.device.resync()
        try:
            result = self.device.run(artifact)
        finally:
            self.current = None
        counted = artifact.meta["counters"]
        for name in ("dispatches", "rounds", "payloads"):
            self.counters[name] += int(counted[name])
        seen = measured(result, self.machine.word_bytes)
        self.counters["mag_bytes"] += seen["mag_bytes"]
        self.counters["saturated"] = seen["saturated"]
        self.counters["moves"] += sum(isinstance(s, MoveStep) for s in artifact.steps)
        if result.failed:
            raise DriverError("\n".join(result.problems()))

    def _count(self, schedule: Schedule) -> None:
        """Conversions inside the program, as the plan made them."""
        for name, count in planned(schedule).items():
            self.counters[name] += count

    def owner_of(self, artifact: Artifact) -> Storage | None:
        """A live array some of whose bytes a program of absolute addresses writes: images, temps, results."""
        spans = [(i.address, len(i.data)) for i in artifact.images]
        spans += [(o.address, o.nbytes) for o in artifact.outputs]
        spans += [(int(at), int(nbytes)) for at, nbytes in artifact.meta.get("temps", ())]
        # what stands in the staging store between calls gives way: the program may write more than it states
        self.forms.unstage()
        return self.memory.overlapping(spans)

    # ------------------------------------------------------------------ control

    def sync(self) -> None:
        """Return when everything asked for is done. A call returns when its program has ended, so nothing is left."""

    def empty_cache(self) -> None:
        """Drop linked programs, tables and forms of arrays that are not pinned; never the values of a live array."""
        self.forms.evict()
        self.forms.unstage()
        self._tables.clear()
        for plan in self._plans.values():
            plan.linked.clear()
        self.memory.trim()

    def reset(self) -> None:
        """Begin a new epoch: every array made so far refuses to be read."""
        self.memory.reset()
        self._tables.clear()
        for plan in self._plans.values():
            plan.linked.clear()

    def stats(self) -> dict[str, object]:
        """Counters of docs/spec/compiler.md 14.2 since the device was opened, arrays alive, and arena statistics.

        ``packed`` counts operands quantised by the host, ``quantised`` those the memory mover quantised.
        """
        alive = sum(c.epoch == self.memory.epoch for c in self.forms.arrays)
        return {**self.counters, "arrays": alive, "epoch": self.memory.epoch, "memory": self.memory.stats()}

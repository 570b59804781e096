# SPDX-License-Identifier: Apache-2.0
"""Runs a compiled kernel: on the device if a kernel of it matches, else on the host (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tinygrad.device import Program, TinyELF

from kohakutpu.errors import CompileError
from kohakutpu.tensor import Tensor, call
from ktpu_tinygrad import host, substitution
from ktpu_tinygrad.buffers import Storage
from ktpu_tinygrad.listing import parse
from ktpu_tinygrad.matching import match
from ktpu_tinygrad.nest import NoMatchError, read
from ktpu_tinygrad.operands import Match

if TYPE_CHECKING:
    from ktpu_tinygrad.device import KTPUDevice


@dataclass(frozen=True)
class Ran:
    """One kernel that ran.

    Args:
        kernel: tinygrad's name of it.
        where: "device" or "host".
        steps: the kernels of the device, in order; none on the host.
        shape: extents of the last one's result.
        reason: why it ran on the host, "" on the device.
    """

    kernel: str
    where: str
    steps: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        what = f"{' + '.join(self.steps)} {list(self.shape)}" if self.steps else self.reason
        return f"{self.where:<6} {self.kernel:<20} {what}"


class KtpuProgram(Program["KTPUDevice"]):
    """A kernel of tinygrad on a device."""

    def __init__(self, dev: KTPUDevice, obj: TinyELF) -> None:
        self.device = dev
        self.listing = parse(obj.lib.decode())
        self.slots = sorted(int(n.value or 0) for n in self.listing.lines if n.op == "param")
        self._found: Match | str = ""
        self._looked = -1

    def matched(self) -> Match | str:
        """The kernel of the device, or the reason why there is none."""
        if self._looked != substitution.generation():
            self._looked = substitution.generation()
            try:
                nest = read(self.listing)
                self._found = substitution.find(nest) or match(nest)
            except NoMatchError as e:
                self._found = str(e)
        return self._found

    def __call__(self, *bufs: Storage, vals: tuple[int, ...] = (), wait: bool = False, **_launch: Any) -> float | None:
        """Run on buffers in the order of the parameters; seconds it took.

        Raises:
            HostError: a kernel neither the device nor the host can run.
            kohakudriver.DriverError: a run on the device that ended in a fault.
        """
        begin = time.perf_counter()
        buffers = dict(zip(self.slots, bufs, strict=True))
        found = self.matched()
        reason = found if isinstance(found, str) else self._on_device(found, buffers)
        if reason:
            self._on_host(buffers, vals)
            self.device.ran(Ran(self.listing.name, "host", reason=reason))
        return time.perf_counter() - begin

    def _on_device(self, found: Match, buffers: dict[int, Storage]) -> str:
        """Run; the reason if it could not. Operands the device cannot reorder are sent again from the host."""
        result = self._result_slot()
        for fresh in (False, True):
            try:
                tensor = self._called(found, buffers, fresh)
            except CompileError as e:
                reason = str(e).splitlines()[0]
                continue
            buffers[result].put(tensor, found.column)
            steps = (*(one.what for one in found.before), found.what)
            self.device.ran(Ran(self.listing.name, "device", steps, found.shape))
            return ""
        return reason

    def _called(self, found: Match, buffers: dict[int, Storage], fresh: bool) -> Tensor:
        """The result of the last kernel; those ahead of it leave theirs for it on the device."""
        ahead: list[Tensor] = []
        for one in (*found.before, found):
            arrays = [
                ahead[-1 - o.slot].reshape(o.shape)
                if o.slot < 0
                else buffers[o.slot].array(o, self.device.arrays, fresh=fresh)
                for o in one.operands
            ]
            made = call(one.kernel(), *arrays, extents=None, **dict(one.knobs))
            (tensor,) = self.device.arrays.execute(made).values()
            ahead.append(tensor.reshape(one.shape))
        return ahead[-1]

    def _result_slot(self) -> int:
        store = next(n for n in self.listing.lines if n.op == "store" and self._parameter(n.args[0]) is not None)
        slot = self._parameter(store.args[0])
        assert slot is not None
        return slot

    def _parameter(self, index: int) -> int | None:
        storage = self.listing.lines[self.listing.lines[index].args[0]]
        return int(storage.value or 0) if storage.op == "param" else None

    def _on_host(self, buffers: dict[int, Storage], numbers: tuple[int, ...]) -> None:
        stored = {self._parameter(n.args[0]) for n in self.listing.lines if n.op == "store"}
        views = {slot: b.write() if slot in stored else b.read() for slot, b in buffers.items()}
        host.run(self.listing, views, numbers)

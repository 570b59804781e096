# SPDX-License-Identifier: Apache-2.0
"""The device tinygrad finds under the name KTPU (docs/spec/compiler.md 13.2).

tinygrad looks a device up as the class ``KTPUDevice`` of the module ``tinygrad.runtime.ops_ktpu``. This module is
entered in ``sys.modules`` under that name, so no file of tinygrad is written and no object of it replaced.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tinygrad.device import Allocator, BufferSpec, Compiled, Device
from tinygrad.helpers import BEAM, NOOPT, Context

import ktpu
from kohakutpu.errors import CompileError
from ktpu.devices import DEFAULT_MACHINE
from ktpu_tinygrad.buffers import Storage
from ktpu_tinygrad.program import KtpuProgram, Ran
from ktpu_tinygrad.renderer import KtpuRenderer

MODULE = "tinygrad.runtime.ops_ktpu"
NAME = "KTPU"
TARGET = "KTPU_TARGET"
"""Environment variable with the target of a device nothing else was said about."""

_targets: dict[str, str] = {}


class KtpuAllocator(Allocator["KTPUDevice"]):
    """Buffers of the host with copies on the device."""

    def _alloc(self, size: int, options: BufferSpec) -> Storage:
        return Storage.new(size)

    def _copyin(self, dest: Storage, src: memoryview) -> None:
        dest.write()[:] = src

    def _copyout(self, dest: memoryview, src: Storage) -> None:
        dest[:] = src.read()

    def _offset(self, buf: Storage, size: int, offset: int) -> Storage:
        return buf.part(offset, size)


class KTPUDevice(Compiled):
    """A machine behind tinygrad's interface.

    Opening one sets NOOPT to 1 and BEAM to 0: unrolled and reordered loops are for machines with registers and threads
    and match no kernel of this one.

    Args:
        device: "KTPU", or "KTPU:1" and so on for further ones, each with a target and a memory of its own.

    Raises:
        ktpu.TargetError: a target that does not open.
    """

    def __init__(self, device: str) -> None:
        self.target = _whole(_targets.get(device) or os.environ.get(TARGET) or "model")
        self.arrays = ktpu.open(self.target)
        self.schedule: list[Ran] = []
        NOOPT.value, BEAM.value = 1, 0
        super().__init__(device, KtpuAllocator(self, supports_copy_from_disk=False), [KtpuRenderer], KtpuProgram)

    def ran(self, one: Ran) -> None:
        """Enter a kernel in the schedule."""
        self.schedule.append(one)

    def stats(self) -> dict[str, Any]:
        """Since the device was opened or the schedule cleared: kernels of tinygrad by the place they ran at.

        ``device_kernels`` counts the kernels of the device by name, of which one of tinygrad may take several;
        ``host_kernels`` counts those of tinygrad that ran on the host; ``counters`` are the device's own.
        """
        on_device = Counter(name for r in self.schedule for name in r.steps)
        on_host = Counter(r.kernel for r in self.schedule if r.where == "host")
        return {
            "device_ops": sum(r.where == "device" for r in self.schedule),
            "host_ops": on_host.total(),
            "device_kernels": dict(on_device),
            "host_kernels": dict(on_host),
            "counters": self.arrays.stats(),
        }

    def finalize(self) -> None:
        """Close the machine; tinygrad calls it when the process ends."""
        self.arrays.close()


def register() -> None:
    """Make tinygrad find the device; importing the package does it."""
    sys.modules.setdefault(MODULE, sys.modules[__name__])


def open(target: str = "", index: int = 0) -> KTPUDevice:
    """The device KTPU, or KTPU:``index``, on a target of :func:`ktpu.open`.

    Args:
        target: such as "model:mm_store" or "rtl:mm_mesh"; "" for the one it has, KTPU_TARGET or "model".

    Raises:
        CompileError: the device is open on another target.
        ktpu.TargetError: a target that does not open.
    """
    register()
    name = NAME if index == 0 else f"{NAME}:{index}"
    if target:
        _targets.setdefault(name, target)
    device = Device[name]
    assert isinstance(device, KTPUDevice), f"{name} is a {type(device)}"
    if target and device.target != _whole(target):
        raise CompileError(
            f"{name} is open on {device.target}, not on {target}; open(target, index={index + 1}) is another device"
        )
    return device


def _whole(target: str) -> str:
    """A target with its machine, which "model" leaves out."""
    return target if ":" in target else f"{target}:{DEFAULT_MACHINE}"


@contextmanager
def use(target: str = "") -> Iterator[KTPUDevice]:
    """Inside, tensors live on the device KTPU and are half precision unless they say otherwise.

    A further device is named by each tensor, ``Tensor(x, device="KTPU:1")``; tinygrad has no default of that form.

    Raises:
        CompileError, ktpu.TargetError: as :func:`open`.
    """
    device = open(target)
    with Context(DEV=NAME, DEFAULT_FLOAT="half"):  # type: ignore[no-untyped-call]
        yield device

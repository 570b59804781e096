# SPDX-License-Identifier: Apache-2.0
"""Opening a device: ``model:<machine>`` or ``rtl:<machine>`` (docs/spec/compiler.md 13.1)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import Any

from kohakuabi import Artifact
from kohakudriver import Device, DriverError, Transport
from kohakutpu import mesh
from kohakutpu.errors import CompileError
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.tensor import Call, Tensor, call
from kohakutpu.tensor.operand import Array
from ktpu.disassembly import explain
from ktpu.runtime import Runtime

DEFAULT_MACHINE = "mm_store"
"""The machine whose mover rewrites every byte order, so that no chain of calls is refused for it."""


class TargetError(ValueError):
    """A target that does not open; nothing is substituted."""


def machines() -> list[str]:
    """Names of the machines this repository has pictures of."""
    return mesh.names()


def description(machine: str) -> dict[str, Any]:
    """Content of ``<machine>.machine.json``, generated from its picture.

    Args:
        machine: a name of :func:`machines`, or the path of a picture file that ends in ``.toml``.

    Raises:
        TargetError: no such machine, or a picture that is refused; the message says why.
    """
    try:
        picture = mesh.find(machine)
        text: dict[str, Any] = json.loads(_described(picture, picture.stat().st_mtime_ns))
        return text
    except mesh.MeshError as err:
        raise TargetError(str(err)) from err


@lru_cache(maxsize=8)
def _described(picture: Path, _written: int) -> str:
    return json.dumps(mesh.load(picture).description())


def machine(name: str) -> MachineSpec:
    """The MachineSpec to compile for a machine: a name of :func:`machines`, or the path of a picture file."""
    return MachineSpec.from_description(description(name))


def split_target(target: str) -> tuple[str, str]:
    """("model" or "rtl", machine name or picture file); "model" alone is the model of :data:`DEFAULT_MACHINE`.

    Raises:
        TargetError: anything else.
    """
    kind, _, name = target.partition(":")
    if target == "model":
        name = DEFAULT_MACHINE
    if kind not in ("model", "rtl") or not name:
        raise TargetError(
            f"target {target!r}; use model:<machine> or rtl:<machine>, machines: {', '.join(machines())}, or a "
            "picture file, model:path/to/machine.toml"
        )
    return kind, name


class TensorDevice(Device):
    """A device that also holds arrays and runs calls on them (docs/spec/compiler.md 13.1).

    Args:
        target: what it was opened as.
        transport: the machine.
        span: (first byte, bytes) of DRAM for arrays; None for all of it.

    Raises:
        kohakutpu.errors.CompileError: a span that another open device of the same machine uses.
    """

    def __init__(self, target: str, transport: Transport, span: tuple[int, int] | None = None) -> None:
        spec = MachineSpec.from_description(transport.description)
        super().__init__(transport, spec.digest(), explain)
        self.target = target
        self.runtime = Runtime(self, spec, target, span)

    def __enter__(self) -> TensorDevice:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __str__(self) -> str:
        return self.target

    @property
    def machine(self) -> MachineSpec:
        """What to compile for."""
        return self.runtime.machine

    def tensor(self, array: Array, name: str = "") -> Tensor:
        """An array of this device, see :func:`ktpu.tensor`."""
        return self.runtime.tensor(array, name)

    def execute(self, call: Call, **options: int | str | bool | None) -> dict[str, Tensor]:
        """Run a call and leave its results on the device, by name; options are those of :func:`ktpu.compile`.

        Raises:
            kohakutpu.errors.CompileError: what the compiler refuses, operands of another device or from before a
                reset, a full memory.
            kohakudriver.DriverError: a run that ended in a fault.
        """
        return self.runtime.execute(call, **options)

    def call(
        self, kernel: Kernel, *arrays: Array, extents: Mapping[str, int] | None = None, **knobs: Knob
    ) -> tuple[Tensor, ...]:
        """Run a kernel of the language on ``arrays``, one per In port: its results in the order of the Out ports.

        Args:
            extents: named extents that no operand's shape determines.
            knobs: knobs of the kernel.
        """
        return tuple(self.runtime.execute(call(kernel, *arrays, extents=extents, **knobs)).values())

    def sync(self) -> None:
        """Return when everything asked for is done."""
        self.runtime.sync()

    def empty_cache(self) -> None:
        """Free what can be made again: operand forms of arrays that are not pinned, tables, linked programs."""
        self.runtime.empty_cache()

    def stats(self) -> dict[str, object]:
        """Counters since the device was opened and statistics of its memory (docs/spec/compiler.md 14.2, 8.1)."""
        return self.runtime.stats()

    def reset(self) -> None:
        """Reset the machine and begin a new epoch: arrays made before refuse to be read."""
        super().reset()
        self.runtime.reset()

    def close(self) -> None:
        """Release the machine."""
        self.runtime.memory.close()
        super().close()

    def load(self, artifact: Artifact) -> None:
        """Check an artifact and write its images into memory.

        Raises:
            kohakudriver.DriverError: it was compiled for another machine, or for places where live arrays are.
            kohakuabi.ArtifactError: it is unfit to run.
        """
        owner = None if artifact is self.runtime.current else self.runtime.owner_of(artifact)
        if owner is not None:
            raise DriverError(
                f"the program writes where {owner.what} lives ({owner.nbytes} bytes at {owner.address:#x}); run its "
                "call with ktpu.run(call, device), or delete the arrays first"
            )
        if self.runtime.memory.shared():
            self.resync()
        super().load(artifact)


def open(target: str = "model", **options: Any) -> TensorDevice:
    """Open a device.

    Args:
        target: ``model:<machine>`` or ``rtl:<machine>``, the machine a name of :func:`machines` or the path of a
            picture file, ``rtl:path/to/machine.toml``; ``model`` is the model of :data:`DEFAULT_MACHINE`.
        options: ``span`` for the bytes of DRAM that arrays may use, (first byte, bytes); for RTL also ``waves``,
            ``checked``, ``dram`` and ``seed``, see :class:`kohakubench.session.RtlSession`.

    Raises:
        TargetError: an unknown target, or an option the target does not have.
    """
    kind, name = split_target(target)
    text = description(name)
    span = options.pop("span", None)
    if kind == "model":
        if options:
            raise TargetError(f"{target}: the model has one option, span, got {', '.join(sorted(options))}")
        from kohakutpu.model.transport import ModelTransport

        return TensorDevice(f"model:{name}", ModelTransport(text), span)
    from kohakubench.session import RtlSession

    known = [n for n in signature(RtlSession).parameters if n != "machine"]
    stray = sorted(set(options) - set(known))
    if stray:
        raise TargetError(f"{target}: no option {', '.join(stray)}; there are: {', '.join([*known, 'span'])}")
    return TensorDevice(target, RtlSession(name, **options), span)


def tensor(array: Array, device: TensorDevice, name: str = "") -> Tensor:
    """An array of float16 on ``device``; the values are sent when a call first reads them.

    Args:
        array: real numbers of any rank from 1, rounded to FP16.
        name: for messages.

    Raises:
        kohakutpu.errors.CompileError: no device, no real numbers, or values FP16 cannot hold.
    """
    if not isinstance(device, TensorDevice):
        raise CompileError(f"a tensor lives on a device, such as ktpu.open(\"model\"); got {device!r:.60}")
    return device.tensor(array, name)

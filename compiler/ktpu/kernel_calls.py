# SPDX-License-Identifier: Apache-2.0
"""``kernel.plan``, ``kernel.footprint`` and calls of kernels (docs/spec/compiler.md 11).

A kernel knows neither machines nor devices; :class:`KernelCalls` is what it asks instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from kohakutpu.errors import CompileError
from kohakutpu.kernels import Trace
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import Schedule
from kohakutpu.tensor import DeviceArray, Tensor, call, traced
from kohakutpu.tensor.operand import Array
from ktpu import devices, planning
from ktpu.compiling import OPTIONS, CompileOption

MACHINE = "machine"


@dataclass(frozen=True)
class _Named:
    knobs: dict[str, Knob]
    extents: dict[str, int]
    options: dict[str, CompileOption]
    machine: object


def _sorted(kernel: Kernel, named: Mapping[str, object]) -> _Named:
    """What a call names, by kind; a knob hides an extent, an extent an option of the same name.

    Raises:
        CompileError: a name that is none of them.
    """
    out = _Named({}, {}, {}, named.get(MACHINE))
    for name, value in named.items():
        if name in kernel.defaults:
            out.knobs[name] = cast(Knob, value)
        elif name in kernel.extents:
            out.extents[name] = cast(int, value)
        elif name in OPTIONS:
            out.options[name] = cast(CompileOption, value)
        elif name != MACHINE:
            raise CompileError(
                f"{kernel.name} has no {name}; knobs: {', '.join(kernel.defaults) or 'none'}; extents: "
                f"{', '.join(sorted(kernel.extents)) or 'none'}; options: {', '.join(OPTIONS)}"
            )
    return out


class KernelCalls:
    """Plans, sizes and runs calls of kernels."""

    def plan(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> Schedule:
        """The schedule of a call."""
        trace, machine, options = self._traced(kernel, args, named)
        return planning.plan(trace, machine, **options)

    def footprint(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> planning.Footprint:
        """The memory of a call."""
        trace, machine, options = self._traced(kernel, args, named)
        return planning.footprint(trace, machine, **options)

    def run(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> Tensor | tuple[Tensor, ...]:
        """Run on the device of the operands.

        Raises:
            CompileError: no operand on a device, or operands on two; what the compiler refuses.
            kohakudriver.DriverError: a run that ended in a fault.
        """
        tensor = next((a for a in args if isinstance(a, Tensor)), None)
        if tensor is None:
            raise CompileError(
                f"{kernel.name}: no operand lives on a device; make one with ktpu.tensor(array, device), or run "
                "ktpu.call(kernel, ...) with ktpu.run"
            )
        one = _sorted(kernel, named)
        if one.machine is not None:
            raise CompileError(f"{kernel.name}: a call runs on the device of its operands, {tensor.device}; no machine")
        made = call(kernel, *cast(Sequence[Array], args), extents=one.extents or None, **one.knobs)
        results = tuple(tensor.device.execute(made, **one.options).values())
        return results[0] if len(results) == 1 else results

    def _traced(
        self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Trace, MachineSpec, dict[str, CompileOption]]:
        one = _sorted(kernel, named)
        shapes = [_shape(name, a) for name, a in zip(kernel.operands, args, strict=False)]
        trace = traced(kernel, shapes + [()] * (len(args) - len(shapes)), extents=one.extents or None, knobs=one.knobs)
        return trace, _machine(kernel, args, one.machine), one.options


def _shape(name: str, argument: object) -> tuple[int, ...]:
    shape = getattr(argument, "shape", argument)
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
        raise CompileError(f"{name}: an array or a shape such as (64, 128) is needed, got {argument!r:.60}")
    return shape


def _machine(kernel: Kernel, args: Sequence[object], named: object) -> MachineSpec:
    """The machine a call names, else the one its arrays live on, else the default one."""
    if isinstance(named, MachineSpec):
        return named
    if isinstance(named, str):
        return devices.machine(named)
    if named is not None:
        raise CompileError(f'{kernel.name}: machine = {named!r:.60}; give a name or ktpu.machine("mm_mesh")')
    for a in args:
        if isinstance(a, DeviceArray):
            found: MachineSpec = a.device.machine  # type: ignore[attr-defined]
            return found
    return devices.machine(devices.DEFAULT_MACHINE)


Kernel.frontend = KernelCalls()

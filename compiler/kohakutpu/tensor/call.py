# SPDX-License-Identifier: Apache-2.0
"""Calling a kernel of the kernel language on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kohakutpu.errors import CompileError
from kohakutpu.kernels import Trace
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.kernels.language.lower import lower
from kohakutpu.tensor.operand import ANY_RANK, Array, Call, DeviceArray, Operand, to_half

LAYER = "L5"


@dataclass(frozen=True)
class KernelCall(Call):
    """A call with the shapes its results have, batch axes included."""

    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def call(
    kernel: Kernel, *arrays: Array, extents: Mapping[str, int] | None = None, **knobs: Knob
) -> KernelCall:
    """Trace ``kernel`` for these operands.

    Args:
        arrays: one per In port, in order; real numbers, rounded to FP16, or arrays of a device.
        extents: named extents that no operand's shape determines.
        knobs: knobs of the kernel.

    Raises:
        CompileError: a wrong number of operands, values FP16 cannot hold, or what the kernel refuses.
    """
    names = _operands(kernel, len(arrays))
    values = {n: to_half(n, a, ANY_RANK) for n, a in zip(names, arrays, strict=True)}
    bound = kernel.trace(**knobs).extents({n: v.shape for n, v in values.items()}, extents)
    trace = lower(bound)
    operands: dict[str, Operand] = {n: v.reshape(trace.graph.values[n].shape) for n, v in values.items()}
    for buffer in bound.trace.buffers:
        if buffer.data is not None:
            operands[buffer.name] = to_half(buffer.name, buffer.data, ANY_RANK).reshape(
                trace.graph.values[buffer.name].shape
            )
    results = {b.name: bound.shapes[b.name] for b in bound.trace.buffers if b.role == "out"}
    return KernelCall(trace, {n: _whole(v) for n, v in operands.items()}, results)


def traced(
    kernel: Kernel,
    shapes: Sequence[tuple[int, ...]],
    *,
    extents: Mapping[str, int] | None = None,
    knobs: Mapping[str, Knob],
) -> Trace:
    """Trace ``kernel`` for operands of these shapes, one per In port.

    Raises:
        CompileError: a wrong number of operands, or what the kernel refuses.
    """
    names = _operands(kernel, len(shapes))
    return lower(kernel.trace(**knobs).extents(dict(zip(names, shapes, strict=True)), extents))


def _operands(kernel: object, given: int) -> tuple[str, ...]:
    if not isinstance(kernel, Kernel):
        raise CompileError(f"{kernel!r} is no kernel; decorate it with ktpu.language.kernel")
    names = kernel.operands
    if given != len(names):
        raise CompileError(f"{kernel.name} takes {len(names)} operands ({', '.join(names)}), got {given}")
    return names


def _whole(operand: Operand) -> Operand:
    return operand if isinstance(operand, DeviceArray) else np.ascontiguousarray(operand)

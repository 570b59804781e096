# SPDX-License-Identifier: Apache-2.0
"""Compile, run and read back in one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohakudriver import Device, DriverError
from kohakutpu.tensor import Call, KernelCall
from ktpu.compiling import compile, read_output
from ktpu.devices import machine


def run(call: Call, device: Device, **options: int | str | bool) -> dict[str, npt.NDArray[np.float16]]:
    """Run ``call`` on ``device``.

    Args:
        options: of :func:`ktpu.compile`.

    Returns:
        float16 results by name, with the batch axes of the operands if a kernel of the language was called.

    Raises:
        kohakutpu.errors.CompileError: what the compiler refuses.
        kohakudriver.DriverError: a run that ended in a fault; the message shows the faulting instruction.
    """
    program = compile(call, machine(device.name), **options)  # type: ignore[arg-type]
    result = device.run(program.artifact)
    if result.failed:
        raise DriverError("\n".join(result.problems()))
    shapes = call.shapes if isinstance(call, KernelCall) else {}
    out = {}
    for o in program.artifact.outputs:
        values = read_output(o, device.read(o.address, o.nbytes))
        out[o.name] = values.reshape(shapes.get(o.name, values.shape))
    return out

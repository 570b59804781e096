# SPDX-License-Identifier: Apache-2.0
"""Compile, run and read back in one call."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohakudriver import Device
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.tensor import Call
from ktpu.compiling import expect
from ktpu.devices import TensorDevice
from ktpu.runtime import Runtime


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
    expect("a device", device, Device, 'ktpu.open("model")')
    expect("a call", call, Call, "ktpu.matmul(a, b)")
    if isinstance(device, TensorDevice):
        runtime = device.runtime
    else:
        runtime = Runtime(device, MachineSpec.from_description(device.transport.description))
    return {name: result.numpy() for name, result in runtime.execute(call, **options).items()}

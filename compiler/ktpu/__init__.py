# SPDX-License-Identifier: Apache-2.0
"""KohakuTPU from Python: compile a product, open a device, run it, compare.

>>> import ktpu
>>> program = ktpu.compile(ktpu.matmul(a, b), ktpu.machine("mm_mesh"))
>>> device = ktpu.open("rtl:mm_mesh")
>>> device.run(program.artifact)
"""

from kohakutpu.tensor import linear, matmul
from ktpu.compiling import Compiled, compile, read_output
from ktpu.devices import TargetError, machine, machines, open

__all__ = [
    "Compiled",
    "TargetError",
    "compile",
    "linear",
    "machine",
    "machines",
    "matmul",
    "open",
    "read_output",
]

# SPDX-License-Identifier: Apache-2.0
"""KohakuTPU from Python: compile a product, open a device, run it, compare.

>>> import ktpu
>>> program = ktpu.compile(ktpu.matmul(a, b), ktpu.machine("mm_mesh"))
>>> device = ktpu.open("rtl:mm_mesh")
>>> device.run(program.artifact)
"""

from kohakutpu.tensor import (
    add,
    call,
    elementwise,
    exp,
    geglu,
    gelu,
    layernorm,
    linear,
    linear_add,
    linear_bias,
    linear_silu,
    matmul,
    mul,
    relu,
    rmsnorm,
    silu,
    softmax,
)
from ktpu.compiling import Compiled, compile, read_output
from ktpu.devices import TargetError, machine, machines, open
from ktpu.running import run

__all__ = [
    "Compiled",
    "TargetError",
    "add",
    "call",
    "compile",
    "elementwise",
    "exp",
    "geglu",
    "gelu",
    "layernorm",
    "linear",
    "linear_add",
    "linear_bias",
    "linear_silu",
    "machine",
    "machines",
    "matmul",
    "mul",
    "open",
    "read_output",
    "relu",
    "rmsnorm",
    "run",
    "silu",
    "softmax",
]

# SPDX-License-Identifier: Apache-2.0
"""KohakuTPU from Python: compile a product, open a device, run it, compare.

>>> import ktpu
>>> program = ktpu.compile(ktpu.matmul(a, b), ktpu.machine("mm_mesh"))
>>> device = ktpu.open("rtl:mm_mesh")
>>> device.run(program.artifact)

or leave arrays on the device and let their operators do it:

>>> device = ktpu.open("model")
>>> x, w = ktpu.tensor(a, device), ktpu.tensor(b, device)
>>> (x @ w).relu().numpy()
"""

from kohakutpu.tensor import (
    Tensor,
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
    matmul_batched,
    mul,
    relu,
    rmsnorm,
    sigmoid,
    silu,
    softmax,
)
from ktpu.automatic import Automatic, auto
from ktpu.compiling import Compiled, compile, read_output
from ktpu.costing import cost, mesh_cost
from ktpu.devices import TargetError, TensorDevice, machine, machines, open, tensor
from ktpu.kernel_calls import KernelCalls
from ktpu.planning import Footprint, footprint, plan
from ktpu.running import run

__all__ = [
    "Automatic",
    "Compiled",
    "Footprint",
    "KernelCalls",
    "TargetError",
    "Tensor",
    "TensorDevice",
    "add",
    "auto",
    "call",
    "compile",
    "cost",
    "elementwise",
    "exp",
    "footprint",
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
    "matmul_batched",
    "mesh_cost",
    "mul",
    "open",
    "plan",
    "read_output",
    "relu",
    "rmsnorm",
    "run",
    "sigmoid",
    "silu",
    "softmax",
    "tensor",
]

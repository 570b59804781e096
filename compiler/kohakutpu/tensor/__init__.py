# SPDX-License-Identifier: Apache-2.0
"""L5: what to compute, on arrays."""

from kohakutpu.tensor.array import Runner, Tensor
from kohakutpu.tensor.call import KernelCall, call, traced
from kohakutpu.tensor.operand import Call, DeviceArray, to_half
from kohakutpu.tensor.ops import (
    add,
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

LAYER = "L5"

__all__ = [
    "Call",
    "DeviceArray",
    "KernelCall",
    "Runner",
    "Tensor",
    "add",
    "call",
    "elementwise",
    "exp",
    "geglu",
    "gelu",
    "layernorm",
    "linear",
    "linear_add",
    "linear_bias",
    "linear_silu",
    "matmul",
    "matmul_batched",
    "mul",
    "relu",
    "rmsnorm",
    "sigmoid",
    "silu",
    "softmax",
    "to_half",
    "traced",
]

# SPDX-License-Identifier: Apache-2.0
"""L5: what to compute, on arrays."""

from kohakutpu.tensor.call import KernelCall, call
from kohakutpu.tensor.ops import (
    Call,
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
    mul,
    relu,
    rmsnorm,
    silu,
    softmax,
)

LAYER = "L5"

__all__ = [
    "Call",
    "KernelCall",
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
    "mul",
    "relu",
    "rmsnorm",
    "silu",
    "softmax",
]

# SPDX-License-Identifier: Apache-2.0
"""The kernel library, written in the kernel language (docs/spec/kernels.md).

A name is a kernel, or a function that returns the kernel of a row width, a group size, a number of heads or keys:
``ktpu.call(linear_silu, x, w)``, ``ktpu.call(layernorm_wide(640), x, w, b)``.
"""

from kohakutpu.kernels.library.attention import flash_attention
from kohakutpu.kernels.library.chain import chain
from kohakutpu.kernels.library.contractions import (
    linear,
    linear_add,
    linear_add_gelu,
    linear_add_relu,
    linear_add_silu,
    linear_bias,
    linear_bias_gelu,
    linear_bias_silu,
    linear_gate_add,
    linear_gelu,
    linear_relu,
    linear_scale,
    linear_silu,
    matmul,
    matmul_batched,
    mlp,
)
from kohakutpu.kernels.library.elements import exp, gelu, gelu_sigmoid, relu, residual, sigmoid, silu
from kohakutpu.kernels.library.gating import (
    gated,
    geglu,
    geglu_bias,
    geglu_chunked,
    geglu_fused,
    swiglu,
    swiglu_bias,
    swiglu_fused,
)
from kohakutpu.kernels.library.heads import attn_out, project_heads
from kohakutpu.kernels.library.helpers import heads_of, part_for, split, stack_groups
from kohakutpu.kernels.library.rows import group_norm, layernorm, rmsnorm, softmax, softmax_keys, softmax_masked
from kohakutpu.kernels.library.wide import (
    group_norm_silu_wide,
    group_norm_wide,
    layernorm_wide,
    rmsnorm_wide,
    softmax_keys_wide,
    softmax_wide,
)

LAYER = "L4"

__all__ = [
    "attn_out",
    "chain",
    "exp",
    "flash_attention",
    "gated",
    "geglu",
    "geglu_bias",
    "geglu_chunked",
    "geglu_fused",
    "gelu",
    "gelu_sigmoid",
    "group_norm",
    "group_norm_silu_wide",
    "group_norm_wide",
    "heads_of",
    "layernorm",
    "layernorm_wide",
    "linear",
    "linear_add",
    "linear_add_gelu",
    "linear_add_relu",
    "linear_add_silu",
    "linear_bias",
    "linear_bias_gelu",
    "linear_bias_silu",
    "linear_gate_add",
    "linear_gelu",
    "linear_relu",
    "linear_scale",
    "linear_silu",
    "matmul",
    "matmul_batched",
    "mlp",
    "part_for",
    "project_heads",
    "relu",
    "residual",
    "rmsnorm",
    "rmsnorm_wide",
    "sigmoid",
    "silu",
    "softmax",
    "softmax_keys",
    "softmax_keys_wide",
    "softmax_masked",
    "softmax_wide",
    "split",
    "stack_groups",
    "swiglu",
    "swiglu_bias",
    "swiglu_fused",
]

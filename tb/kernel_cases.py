# SPDX-License-Identifier: Apache-2.0
"""Cases of the kernel library: operands, references, error classes and counters (docs/spec/kernels.md 3, 10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attention_cases import ATTENTION, flash_operands
from kernel_reference import (
    ACTS,
    CLASSES,
    F16,
    F64,
    Bounds,
    Case,
    Draw,
    Operands,
    attention,
    broken,
    gelu_erf,
    gelu_tanh,
    grade,
    normalised,
    softmax,
    softmax_keys,
    timesteps,
)
from kohakutpu.kernels import library as lib

__all__ = ["ACTS", "CASES", "CLASSES", "Bounds", "Case", "Draw", "Operands", "attention", "broken", "flash_operands"]
__all__ += ["gelu_erf", "gelu_tanh", "grade", "group_case", "normalised"]


def _xw(m: int, k: int, n: int, **more: Callable[[Draw], F16]) -> Callable[[Draw], Operands]:
    return lambda d: {"x": d.act(m, k), "w": d.weight(n, k), **{name: make(d) for name, make in more.items()}}


def _linear(name: str, act: str = "", side: str = "", shape: tuple[int, int, int] = (64, 128, 64), **more: Any) -> Case:
    m, k, n = shape
    sides: dict[str, Callable[[Draw], F16]] = {}
    if side == "bias":
        sides["b"] = lambda d: d.shift(n)
    if side == "add":
        sides["b"] = lambda d: d.act(m, n)

    def want(v: Mapping[str, F64]) -> F64:
        return ACTS[act](v["x"] @ v["w"].T + (v["b"] if side else 0.0))

    row = {"bias": 2, "add": 3}.get(side, 4)
    suffix = "" if shape == (64, 128, 64) else f"_{m}x{k}x{n}"
    return Case(name + suffix, row, lambda: getattr(lib, name), _xw(m, k, n, **sides), want, "M", **more)


def _matmul(m: int, k: int, n: int, **more: Any) -> Case:
    return Case(
        f"matmul_{m}x{k}x{n}",
        1,
        lambda: lib.matmul,
        lambda d: {"a": d.act(m, k), "b": d.weight(n, k)},
        lambda v: v["a"] @ v["b"].T,
        "M",
        dispatches=1,
        **more,
    )


PRODUCTS = (
    _matmul(64, 256, 64, rtl=True),
    _matmul(77, 2048, 1280, slow=True),
    _matmul(256, 1280, 1280, slow=True),
    Case(
        "matmul_batched",
        1,
        lambda: lib.matmul_batched,
        lambda d: {"a": d.act(3, 20, 64), "b": d.weight(3, 36, 64)},
        lambda v: v["a"] @ v["b"].swapaxes(1, 2),
        "M",
        rtl=True,
    ),
    _linear("linear_silu", "silu", rtl=True),
    _linear("linear_gelu", "gelu", rtl=True),
    _linear("linear_relu", "relu", rtl=True),
    _linear("linear_bias", side="bias", rtl=True),
    _linear("linear_bias", side="bias", shape=(1024, 64, 1280), slow=True),
    _linear("linear_bias", side="bias", shape=(24, 64, 36), knobs={"gm": 2, "gn": 3, "nk": 1}, rtl=True),
    _linear("linear_bias", side="bias", shape=(16, 32, 44), knobs={"gm": 2, "gn": 5, "nk": 1}),
    _linear("linear_bias_silu", "silu", "bias", rtl=True),
    _linear("linear_bias_gelu", "gelu", "bias", rtl=True),
    _linear("linear_add", side="add", rtl=True),
    _linear("linear_add", side="add", shape=(256, 1280, 1280), slow=True),
    _linear("linear_add_relu", "relu", "add", rtl=True),
    _linear("linear_add_silu", "silu", "add", rtl=True),
    _linear("linear_add_gelu", "gelu", "add", rtl=True),
    Case(
        "linear_scale",
        4,
        lambda: lib.linear_scale,
        _xw(64, 128, 64),
        lambda v: 0.125 * (v["x"] @ v["w"].T),
        "M",
        knobs={"scale": 0.125},
        rtl=True,
    ),
    Case(
        "linear_scale_bias_add_silu",
        4,
        lambda: lib.linear("silu", scaled=True, bias=True, add=True),
        _xw(64, 128, 64, b=lambda d: d.shift(64), r=lambda d: d.act(64, 64)),
        lambda v: ACTS["silu"](0.125 * (v["x"] @ v["w"].T) + v["b"] + v["r"]),
        "M",
        knobs={"scale": 0.125},
        rtl=True,
    ),
    Case(
        "linear_gate_add",
        3,
        lambda: lib.linear_gate_add,
        _xw(64, 128, 64, g=lambda d: d.act(64, 64), r=lambda d: d.act(64, 64)),
        lambda v: v["r"] + v["g"] * (v["x"] @ v["w"].T),
        "M",
        rtl=True,
    ),
    Case(
        "mlp_64x128x256x64",
        28,
        lambda: lib.mlp("silu"),
        lambda d: {"x": d.act(64, 128), "up": d.weight(256, 128), "down": d.weight(64, 256)},
        lambda v: ACTS["silu"](v["x"] @ v["up"].T) @ v["down"].T,
        "M2",
        rtl=True,
    ),
    Case(
        "timestep_mlp",
        28,
        lambda: lib.mlp("silu"),
        lambda d: {"x": timesteps(32), "up": d.weight(1280, 320), "down": d.weight(1280, 1280)},
        lambda v: ACTS["silu"](v["x"] @ v["up"].T) @ v["down"].T,
        "M2",
        slow=True,
    ),
)


def _gate(name: str, act: str, *, bias: bool = False, **more: Any) -> Case:
    def operands(d: Draw) -> Operands:
        out = {"x": d.act(64, 128), "wg": d.weight(64, 128), "wu": d.weight(64, 128)}
        return out | ({"bg": d.shift(64), "bu": d.shift(64)} if bias else {})

    def want(v: Mapping[str, F64]) -> F64:
        return ACTS[act](v["x"] @ v["wg"].T + v.get("bg", 0.0)) * (v["x"] @ v["wu"].T + v.get("bu", 0.0))

    suffix = "_sigmoid" if more.get("knobs") else ""
    return Case(name + suffix, 16, lambda: getattr(lib, name), operands, want, "M", rtl=True, **more)


GATES = (
    _gate("geglu", "gelu"),
    _gate("geglu", "gelu_sigmoid", knobs={"form": "sigmoid"}),
    _gate("geglu_fused", "gelu"),
    _gate("geglu_bias", "gelu", bias=True),
    _gate("swiglu", "silu"),
    _gate("swiglu_fused", "silu"),
    _gate("swiglu_bias", "silu", bias=True),
    Case(
        "gated_relu_bias",
        16,
        lambda: lib.gated("relu", bias=True),
        lambda d: {n: d.act(64, 128) if n == "x" else d.weight(64, 128) for n in ("x", "wg", "wu")}
        | {"bg": d.shift(64), "bu": d.shift(64)},
        lambda v: ACTS["relu"](v["x"] @ v["wg"].T + v["bg"]) * (v["x"] @ v["wu"].T + v["bu"]),
        "M",
        rtl=True,
    ),
    Case(
        "geglu_chunked",
        16,
        lambda: lib.geglu_chunked,
        lambda d: {"x": d.act(64, 128), "w": d.weight(128, 128), "b": d.shift(128)},
        lambda v: (v["x"] @ v["w"][:64].T + v["b"][:64]) * gelu_tanh(v["x"] @ v["w"][64:].T + v["b"][64:]),
        "M",
        rtl=True,
    ),
)


def _project(heads: int, rows: int = 16, width: int = 64, **more: Any) -> Case:
    """q, k and v of all heads: heads_of moves nothing, the batch is on the weight."""
    return Case(
        f"project_heads_{heads}x{width}",
        20,
        lambda: lib.project_heads,
        lambda d: {"x": d.act(rows, 64), "w": lib.heads_of(d.weight(heads * width, 64), heads)},
        lambda v: np.einsum("lc,hdc->hld", v["x"], v["w"]),
        "M",
        **more,
    )


def _attn_out(heads: int, width: int, rows: int = 32, out: int = 64, **more: Any) -> Case:
    def want(v: Mapping[str, F64]) -> F64:
        joined = v["o"].reshape(heads, rows, width).transpose(1, 0, 2).reshape(rows, heads * width)
        return v["r"] + joined @ v["w"].T + v["b"]

    return Case(
        f"attn_out_{heads}x{width}",
        20,
        lambda: lib.attn_out(heads),
        lambda d: {
            "o": d.act(heads * rows, width),
            "w": d.weight(out, heads * width),
            "r": d.act(rows, out),
            "b": d.shift(out),
        },
        want,
        "M",
        knobs={"gm": 4, "gn": 4, "nk": 2},
        **more,
    )


HEADS = (
    _project(4, rtl=True),
    _project(10),
    _project(20, slow=True),
    _attn_out(4, 128, rtl=True),
    Case(
        "v_transposed_4x64",
        22,
        lambda: lib.matmul,
        lambda d: {"a": lib.heads_of(d.weight(4 * 64, 64), 4), "b": d.act(16, 64)},
        lambda v: v["a"] @ v["b"].T,
        "M",
        dispatches=1,
        rtl=True,
    ),
    _attn_out(10, 64),
    _attn_out(20, 64, slow=True),
    _attn_out(1, 512, rtl=True),
    _attn_out(3, 192),
)


def _element(name: str, want: str = "") -> Case:
    act = want or name
    return Case(name, 15, lambda: getattr(lib, name), lambda d: {"x": d.act(7, 600)}, lambda v: ACTS[act](v["x"]), "V",
                dispatches=1, rtl=True)  # fmt: skip


ELEMENTS = (
    _element("silu"),
    _element("gelu"),
    _element("gelu_sigmoid"),
    _element("sigmoid"),
    _element("relu"),
    _element("exp"),
    Case(
        "chain_3",
        15,
        lambda: lib.chain(
            (("x", False), ("g", True)), (("mul", ("x", "g")), ("fma", ("_", 0.5, "x")), ("silu", ("_",)))
        ),
        lambda d: {"x": d.act(24, 64), "g": d.gain(64)},
        lambda v: ACTS["silu"](0.5 * v["x"] * v["g"] + v["x"]),
        "V",
        dispatches=1,
        rtl=True,
    ),
    Case(
        "residual",
        19,
        lambda: lib.residual,
        lambda d: {"x": d.act(5, 8, 40), "r": d.act(5, 8, 40)},
        lambda v: v["x"] + v["r"],
        "V",
        dispatches=1,
        rtl=True,
    ),
)


def _softmax(rows: int, cols: int, **more: Any) -> Case:
    one = cols <= 128
    return Case(
        f"softmax_{rows}x{cols}",
        9 if one else 11,
        lambda: lib.softmax(cols) if one else lib.softmax_wide(cols),
        lambda d: {"x": d.act(rows, cols)},
        lambda v: softmax(v["x"]),
        "V" if one else "W",
        **more,
    )


def _keys(keys: int, cols: int, shift: float, rows: int = 8, **more: Any) -> Case:
    def operands(d: Draw) -> Operands:
        x = (d.act(rows, cols).astype(np.float64) + shift).astype(np.float16)
        x[:, keys:] = 0.0
        return {"x": x}

    one = cols <= 128
    return Case(
        f"softmax_keys_{keys}_of_{cols}_shift_{shift:g}",
        12,
        lambda: lib.softmax_keys(keys, cols) if one else lib.softmax_keys_wide(keys, cols),
        operands,
        lambda v: softmax_keys(v["x"], keys),
        "W",
        **more,
    )


def _norm(what: str, rows: int, cols: int, **more: Any) -> Case:
    name = what if cols <= 128 else f"{what}_wide"

    def want(v: Mapping[str, F64]) -> F64:
        if what == "rmsnorm":
            return v["x"] / np.sqrt((v["x"] ** 2).mean(axis=-1, keepdims=True) + 1e-5) * v["w"]
        return normalised(v["x"], 1e-5) * v["w"] + v["b"]

    def operands(d: Draw) -> Operands:
        out = {"x": d.act(rows, cols), "w": d.gain(cols)}
        return out if what == "rmsnorm" else out | {"b": d.shift(cols)}

    bound = "V" if cols <= 128 else "W"
    row = 9 if cols <= 128 else 10
    return Case(f"{name}_{rows}x{cols}", row, lambda: getattr(lib, name)(cols), operands, want, bound, **more)


ROWS = (
    *(_softmax(8, cols, dispatches=1) for cols in range(16, 129, 16)),
    _softmax(64, 128, dispatches=1, rtl=True),
    _softmax(4, 256),
    _softmax(4, 640, rtl=True),
    _softmax(4, 768),
    _softmax(4, 1024),
    _softmax(4, 1280),
    _softmax(2, 4096),
    _softmax(2, 16384, slow=True),
    *(
        _keys(k, 128, s, dispatches=1, rtl=(k, s) == (77, -100.0))
        for k in (1, 15, 16, 76, 77, 127, 128)
        for s in (0.0, -10.0, -100.0, 50.0)
    ),
    Case(
        "softmax_masked_9x48",
        12,
        lambda: lib.softmax_masked(48),
        lambda d: {"x": d.act(9, 48), "mask": (np.arange(48) % 3 != 1).astype(np.float16)},
        lambda v: softmax(np.where(v["mask"] != 0, v["x"], -np.inf)),
        "W",
        dispatches=1,
        rtl=True,
    ),
    _keys(77, 256, -100.0, rtl=True),
    _keys(300, 640, -100.0),
    _norm("layernorm", 64, 128, dispatches=1, rtl=True),
    _norm("layernorm", 9, 48, dispatches=1, rtl=True),
    _norm("rmsnorm", 64, 128, dispatches=1, rtl=True),
    _norm("layernorm", 16, 320),
    _norm("layernorm", 16, 640, rtl=True),
    _norm("layernorm", 16, 768),
    _norm("layernorm", 16, 1024),
    _norm("layernorm", 16, 1280),
    _norm("rmsnorm", 16, 640, rtl=True),
)

GROUPS = (20_480, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520)
"""Group sizes of the denoiser, section 1.2."""
DECODER_GROUPS = (262_144, 1_048_576, 2_097_152, 4_194_304, 8_388_608)
"""Group sizes of the image decoder."""
SPREADS = {(0.0, 1.0): "W", (8.0, 1.0): "W8", (64.0, 1.0): "W64", (0.0, 8.0): "W", (0.0, 20.0): "W"}
"""Error class of every mean and standard deviation of section 10."""


def group_case(
    group: int, mean: float = 0.0, sigma: float = 1.0, eps: float = 1e-5, *, silu: bool = False, **more: Any
) -> Case:
    """Two groups of ``group`` elements."""
    name = "group_norm" if group <= 128 else "group_norm_silu_wide" if silu else "group_norm_wide"

    def want(v: Mapping[str, F64]) -> F64:
        h = normalised(v["x"], eps) * v["w"] + v["b"]
        return ACTS["silu" if silu else ""](h)

    bound = "V" if group <= 128 else SPREADS[mean, sigma]
    return Case(
        f"{name}_{group}_mean_{mean:g}_sigma_{sigma:g}_eps_{eps:g}",
        13 if group <= 128 else 14,
        lambda: getattr(lib, name)(group),
        lambda d: {"x": d.act(2, group, mean=mean, sigma=sigma), "w": d.gain(2, group), "b": d.shift(2, group)},
        want,
        bound,
        knobs={"eps": eps},
        **more,
    )


_FEW_GROUP_NORMS = (
    group_case(128, rtl=True),
    group_case(80, rtl=True),
    group_case(384, 0.0, 20.0, silu=True, rtl=True),
    group_case(20_480, rtl=True),
    group_case(20_480, silu=True),
    group_case(20_480, 8.0),
    group_case(20_480, 64.0),
    group_case(20_480, 0.0, 8.0),
    group_case(20_480, 0.0, 20.0),
    group_case(40_960, eps=1e-6),
)
_ALL_GROUP_NORMS = (
    group_case(g, m, s, eps, slow=True) for g in (*GROUPS, *DECODER_GROUPS) for eps in (1e-5, 1e-6) for m, s in SPREADS
)
GROUP_NORMS = (
    *_FEW_GROUP_NORMS,
    *(c for c in _ALL_GROUP_NORMS if c.name not in {few.name for few in _FEW_GROUP_NORMS}),
)


CASES = (*PRODUCTS, *GATES, *HEADS, *ELEMENTS, *ROWS, *GROUP_NORMS, *ATTENTION)

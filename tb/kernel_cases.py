# SPDX-License-Identifier: Apache-2.0
"""Cases of the kernel library: operands, float64 references and error classes as data (docs/spec/kernels.md 0, 3, 10).

A reference is written from the formula in the page, in float64 from the FP16 operands, without the kernel's algorithm.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import Kernel
from kohakutpu.model.numerics import ErrorMetrics, error_metrics

F16 = npt.NDArray[np.float16]
F64 = npt.NDArray[np.float64]
Operands = dict[str, F16]


# ------------------------------------------------------------------------------------------------------------ grading
@dataclass(frozen=True)
class Bounds:
    """Upper limits of a class of section 0."""

    p50: float
    p99: float
    max: float
    over_1_percent: float = 0.0
    over_10_percent: float = 0.0
    saturated: int = 0


CLASSES: dict[str, Bounds] = {
    "X": Bounds(0.0, 0.0, 0.0),
    "V": Bounds(1e-4, 5e-4, 1.5e-3),
    "W": Bounds(1e-4, 1e-3, 2e-3),
    "W8": Bounds(1.5e-3, 2e-3, 3e-3),
    "W64": Bounds(1e-2, 1e-2, 1.5e-2, over_1_percent=0.01),  # a mean 64 sigma off: section 3, row 14 bounds p99 only
    "M": Bounds(4e-3, 1.5e-2, 3e-2, over_1_percent=0.06),
    "M2": Bounds(6e-3, 2e-2, 4e-2, over_1_percent=0.15),
    "A": Bounds(5e-3, 2e-2, 6e-2, over_1_percent=0.15),
}


def grade(got: npt.ArrayLike, want: npt.ArrayLike) -> ErrorMetrics:
    """Error of a result against float64, in parts of the largest magnitude of ``want``; saturated elements counted."""
    values = np.asarray(got)
    return error_metrics(values, want, int(np.count_nonzero(np.abs(values.astype(np.float64)) >= 65504.0)))


def broken(metrics: ErrorMetrics, name: str) -> list[str]:
    """Limits of class ``name`` that ``metrics`` exceeds, as text; empty if it is inside."""
    limits = CLASSES[name]
    found = [
        f"{key} {value:.3g} > {limit:.3g}"
        for key in ("p50", "p99", "max", "over_1_percent", "over_10_percent", "saturated")
        if not (value := getattr(metrics, key)) <= (limit := getattr(limits, key))
    ]
    return found + ([f"{metrics.non_finite} not finite"] if metrics.non_finite else [])


# ----------------------------------------------------------------------------------------------------------- operands
def generator(name: str) -> np.random.Generator:
    """PCG64 seed 3, a stream of its own for every case."""
    return np.random.Generator(np.random.PCG64([3, zlib.crc32(name.encode())]))


class Draw:
    """Draws operands of the distributions of section 0, rounded to FP16."""

    def __init__(self, name: str) -> None:
        self.rng = generator(name)

    def act(self, *shape: int, mean: float = 0.0, sigma: float = 1.0) -> F16:
        """Activations."""
        return (self.rng.standard_normal(shape) * sigma + mean).astype(np.float16)

    def weight(self, *shape: int) -> F16:
        """Weights, N(0, 0.1^2)."""
        return self.act(*shape, sigma=0.1)

    def gain(self, *shape: int) -> F16:
        """Gains, N(1, 0.2^2)."""
        return self.act(*shape, mean=1.0, sigma=0.2)

    def shift(self, *shape: int) -> F16:
        """Shifts, N(0, 0.2^2)."""
        return self.act(*shape, sigma=0.2)


# --------------------------------------------------------------------------------------------------------- references
def sigmoid(v: F64) -> F64:
    """1 / (1 + exp(-v))."""
    return np.exp(-np.logaddexp(0.0, -v))


def gelu_tanh(v: F64) -> F64:
    """0.5 v (1 + tanh(sqrt(2/pi)(v + 0.044715 v^3)))."""
    return 0.5 * v * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (v + 0.044715 * v**3)))


def gelu_erf(v: F64) -> F64:
    """0.5 v (1 + erf(v / sqrt 2))."""
    return 0.5 * v * (1.0 + np.vectorize(math.erf)(v / math.sqrt(2.0)))


ACTS: dict[str, Callable[[F64], F64]] = {
    "": lambda v: v,
    "silu": lambda v: v * sigmoid(v),
    "gelu": gelu_tanh,
    "gelu_sigmoid": lambda v: v * sigmoid(1.702 * v),
    "relu": lambda v: np.maximum(v, 0.0),
    "sigmoid": sigmoid,
    "exp": np.exp,
}


def softmax(v: F64) -> F64:
    """Along the last axis."""
    e = np.exp(v - v.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_keys(v: F64, keys: int) -> F64:
    """Of the first ``keys`` columns, zero behind them."""
    return np.concatenate([softmax(v[..., :keys]), np.zeros((*v.shape[:-1], v.shape[-1] - keys))], axis=-1)


def normalised(v: F64, eps: float) -> F64:
    """Zero mean and unit variance along the last axis."""
    return (v - v.mean(axis=-1, keepdims=True)) / np.sqrt(v.var(axis=-1, keepdims=True) + eps)


def attention(q: F64, k: F64, v: F64, *, keys: int | None = None, causal: bool = False) -> F64:
    """softmax2(q k^T) v for q[..., Lq, Dk] scaled by log2(e)/sqrt(Dk), k[..., Lkv, Dk] and v[..., Dv, Lkv]."""
    s = q @ np.swapaxes(k, -1, -2)
    if keys is not None:
        s[..., keys:] = -np.inf
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:])) != 0, s, -np.inf)
    return softmax(s * math.log(2.0)) @ np.swapaxes(v, -1, -2)


# -------------------------------------------------------------------------------------------------------------- cases
@dataclass(frozen=True)
class Case:
    """A kernel on operands, and what is expected of it.

    Args:
        kernel: made when asked for.
        operands: drawn in the order of the ports.
        want: the result in float64, from the operands in float64.
        bound: the error class.
        knobs: of the kernel.
        dispatches: compute bands; None where the tiling decides.
        slow: an acceptance shape for the nightly run.
        rtl: small enough for the RTL.
        row: of section 3.
    """

    name: str
    row: int
    kernel: Callable[[], Kernel]
    operands: Callable[[Draw], Operands]
    want: Callable[[Mapping[str, F64]], F64]
    bound: str
    knobs: dict[str, Any] = field(default_factory=dict)
    dispatches: int | None = None
    slow: bool = False
    rtl: bool = False

    def draw(self) -> Operands:
        """The operands, the same every time."""
        return self.operands(Draw(self.name))

    def reference(self, operands: Operands) -> F64:
        """The expected result in float64."""
        return self.want({n: v.astype(np.float64) for n, v in operands.items()})


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


def sinusoids(t: float, count: int = 160) -> F16:
    """The timestep embedding of section 1.4: cosines, then sines."""
    f = np.exp(-math.log(10000.0) * np.arange(count) / count)
    return np.concatenate([np.cos(t * f), np.sin(t * f)]).astype(np.float16)


def timesteps(steps: int) -> F16:
    """Embeddings of a sampler of ``steps`` steps; a single one is too small a sample of its error class."""
    return np.stack([sinusoids(1000.0 * i / steps) for i in range(steps)])


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
    group: int, mean: float = 0.0, sigma: float = 1.0, eps: float = 1e-5, *, silu: bool = False, rtl: bool = False
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
        slow=group > 40_960,
        rtl=rtl,
    )


GROUP_NORMS = (
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
    *(
        group_case(g, m, s, eps)
        for g in (*GROUPS[2:], *DECODER_GROUPS)
        for eps in (1e-5, 1e-6)
        for m, s in SPREADS
    ),
)


def flash_operands(
    d: Draw, heads: int, lq: int, lkv: int, dk: int, dv: int, *, keys: int | None = None, logits: float = 1.0
) -> Operands:
    """q scaled by log2(e)/sqrt(dk) times ``logits``, k, and v transposed; k and v zero behind ``keys``."""
    q = d.rng.standard_normal((heads, lq, dk)) * (math.log2(math.e) / math.sqrt(dk) * logits)
    k, v = d.act(heads, lkv, dk), d.act(heads, dv, lkv)
    if keys is not None:
        k[:, keys:], v[:, :, keys:] = 0.0, 0.0
    return {"q": q.astype(np.float16), "k": k, "v": v}


LOGITS = {"_one_hot": 40.0, "_equal": 0.0}
"""What the scores of a tagged case are scaled by."""


def _flash(
    heads: int,
    lq: int,
    lkv: int,
    dk: int = 64,
    dv: int = 64,
    block: int = 64,
    *,
    tag: str = "",
    dispatches: int | None = None,
    slow: bool = False,
    rtl: bool = False,
    **knobs: Any,
) -> Case:
    keys, causal = knobs.get("keys"), bool(knobs.get("causal"))
    shown = "".join(f"_{k}_{v}" for k, v in knobs.items())
    return Case(
        f"flash_{heads}x{lq}x{lkv}_{dk}_{dv}_{block}{shown}{tag}",
        17 if keys is None else 18,
        lambda: lib.flash_attention,
        lambda d: flash_operands(d, heads, lq, lkv, dk, dv, keys=keys, logits=LOGITS.get(tag, 1.0)),
        lambda v: attention(v["q"], v["k"], v["v"], keys=keys, causal=causal),
        "A",
        {"block": block, **knobs},
        dispatches,
        slow,
        rtl,
    )


ATTENTION = (
    _flash(1, 64, 64, dispatches=6, rtl=True),
    _flash(1, 32, 64, dispatches=6, rtl=True),
    _flash(1, 64, 128, dispatches=10, rtl=True),
    _flash(1, 64, 96, 64, 64, 32, keys=77, rtl=True),
    _flash(1, 64, 64, 64, 64, 32, qblock=32, causal=True, rtl=True),
    _flash(1, 64, 64, groups=2, rtl=True),
    _flash(1, 32, 128, 64, 128, rtl=True),
    _flash(4, 64, 64, dispatches=6, rtl=True),
    _flash(4, 64, 128, rtl=True),
    _flash(4, 128, 128, dispatches=10),
    _flash(4, 256, 256, dispatches=18, slow=True),
    _flash(4, 128, 256),
    _flash(2, 128, 128, 64, 64, 32),
    _flash(1, 128, 256, 64, 256, 128),
    _flash(1, 128, 256, 64, 256, 128, qblock=64),
    _flash(2, 128, 128, qblock=64),
    _flash(2, 128, 128, qblock=64, causal=True, dispatches=12),
    _flash(2, 128, 128, keys=77, dispatches=16),
    _flash(1, 64, 256, keys=77, dispatches=8, rtl=True),
    _flash(1, 64, 128, keys=64, dispatches=6),
    _flash(2, 256, 128, groups=2),
    _flash(2, 64, 128, tag="_one_hot"),
    _flash(2, 64, 128, tag="_equal"),
    _flash(1, 128, 128, 512, 512, 128),
    _flash(1, 1024, 1024, 512, 512, 128, slow=True),
)

CASES = (*PRODUCTS, *GATES, *HEADS, *ELEMENTS, *ROWS, *GROUP_NORMS, *ATTENTION)

# SPDX-License-Identifier: Apache-2.0
"""Products and products with an epilogue (docs/spec/kernels.md 4).

Knobs of every kernel here: ``gm``, ``gn``, ``nk``, the sub-tiles of an instance and the K blocks of a chunk; all three,
or none to leave them to the compiler.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import In, Kernel, Out, dims, kernel, temp, units
from kohakutpu.kernels.library.functions import function
from kohakutpu.kernels.library.helpers import OPEN, named, product, with_ports

LAYER = "L4"

M, N, K, F = dims("M, N, K, F")


def _matmul(name: str, b: In, doc: str) -> Kernel:
    def body(a: Any, b: Any, c: Any, gm: Any, gn: Any, nk: Any) -> None:
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            c[i, j] <<= product(a, b, i, j, (gm, gn, nk))

    return with_ports(name, {"a": In(..., M, K), "b": b, "c": Out(..., M, N)}, OPEN, body, doc)


matmul = _matmul("matmul", In(N, K), "c[..., M, N] = a[..., M, K] b[N, K]^T; every block of the batch reads the one b.")
matmul_batched = _matmul(
    "matmul_batched", In(..., N, K), "c[..., M, N] = a[..., M, K] b[..., N, K]^T, block by block."
)


@lru_cache
def linear(activation: str = "", *, scaled: bool = False, bias: bool = False, add: bool = False) -> Kernel:
    """y[..., M, N] = act(scale * (x[..., M, K] w[N, K]^T) + bias + addend), each part optional.

    Ports x, w, then b[N] with ``bias``, one value a column, then the addend of the shape of y with ``add``: b, or r
    behind a bias. With ``scaled`` a knob ``scale``.

    Raises:
        TraceError: no part at all, which is :data:`matmul`; an unknown activation; a trace without ``scale``.
    """
    f = function(activation)
    parts = ("scale" * scaled, "bias" * bias, "add" * add, activation)
    if not any(parts):
        raise TraceError("linear: no activation, bias, addend or scale; that is matmul")
    addend = "r" if bias else "b"
    ports = {"x": In(..., M, K), "w": In(N, K)}
    ports |= {"b": In(N)} if bias else {}
    ports |= {addend: In(..., M, N)} if add else {}

    def body(x: Any, w: Any, y: Any, gm: Any, gn: Any, nk: Any, scale: Any = None, **more: Any) -> None:
        if scaled and scale is None:
            raise TraceError("no scale; name the factor, scale=0.125")
        for i, j in units(x.tiles(gm), w.tiles(gn)):
            v: Any = product(x, w, i, j, (gm, gn, nk))
            v = v * scale if scaled else v
            v = v + more["b"][j] if bias else v
            v = v + more[addend][i, j] if add else v
            y[i, j] <<= f(v)

    terms = ("scale * " * scaled + "(x[..., M, K] w[N, K]^T)", "b[N]" * bias, f"{addend}[..., M, N]" * add)
    doc = f"y[..., M, N] = {activation}({' + '.join(t for t in terms if t)})."
    name = "_".join(("linear", *(p for p in parts if p)))
    knobs = {**({"scale": None} if scaled else {}), **OPEN}
    return with_ports(name, {**ports, "y": Out(..., M, N)}, knobs, body, doc)


linear_silu = linear("silu")
linear_gelu = linear("gelu")
linear_relu = linear("relu")
linear_scale = linear(scaled=True)
linear_bias = linear(bias=True)
linear_bias_silu = linear("silu", bias=True)
linear_bias_gelu = linear("gelu", bias=True)
linear_add = linear(add=True)
linear_add_relu = linear("relu", add=True)
linear_add_silu = linear("silu", add=True)
linear_add_gelu = linear("gelu", add=True)


@kernel
def linear_gate_add(
    x: Any = In(..., M, K),
    w: Any = In(N, K),
    g: Any = In(..., M, N),
    r: Any = In(..., M, N),
    y: Any = Out(..., M, N),
    *,
    gm: Any = None,
    gn: Any = None,
    nk: Any = None,
) -> None:
    """y[..., M, N] = r + g * (x w^T), ``g`` and ``r`` of the full shape."""
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        y[i, j] <<= r[i, j] + g[i, j] * product(x, w, i, j, (gm, gn, nk))


@lru_cache
def mlp(act: str = "silu") -> Kernel:
    """y[..., M, N] = act(x[..., M, K] up[F, K]^T) down[N, F]^T; the hidden rows go to memory once.

    Raises:
        TraceError: an unknown activation.
    """
    f = function(act)

    def body(
        x: Any = In(..., M, K),
        up: Any = In(F, K),
        down: Any = In(N, F),
        y: Any = Out(..., M, N),
        *,
        gm: Any = None,
        gn: Any = None,
        nk: Any = None,
    ) -> None:
        hidden = temp(M, F)
        for i, j in units(x.tiles(gm), up.tiles(gn)):
            hidden[i, j] <<= f(product(x, up, i, j, (gm, gn, nk)))
        for i, j in units(hidden.tiles(gm), down.tiles(gn)):
            y[i, j] <<= product(hidden, down, i, j, (gm, gn, nk))

    return named(f"mlp_{act}" if act else "mlp", body, mlp.__doc__ or "")

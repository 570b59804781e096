# SPDX-License-Identifier: Apache-2.0
"""Gated products (docs/spec/kernels.md 4 and 5.3): the activation is on the first weight.

The two-product form stores both products; the ``fused`` form hands both tiles to one epilogue. A network whose fused
projection puts the gate second passes ``wg = W[F:]`` and ``wu = W[:F]``, or uses :func:`geglu_chunked`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kohakutpu.kernels.language import In, Kernel, Out, dims, kernel, temp, units
from kohakutpu.kernels.library.functions import Function, function, gelu_form, silu
from kohakutpu.kernels.library.helpers import OPEN, PART, product, with_ports

LAYER = "L4"

M, N, K, both = dims("M, N, K, both")
F = both // 2


def _gated(name: str, act: Function | None = None, *, fused: bool = False, bias: bool = False) -> Kernel:
    """One gated product; without ``act`` the GELU that a knob ``form`` names."""
    one_pass = fused or bias
    ports = {"x": In(..., M, K), "wg": In(N, K), "wu": In(N, K)}
    ports |= {"bg": In(N), "bu": In(N)} if bias else {}
    knobs: dict[str, object] = {} if act else {"form": "erf_tanh"}
    knobs |= {} if one_pass else {"part": PART}

    def body(x: Any, wg: Any, wu: Any, y: Any, gm: Any, gn: Any, nk: Any, **more: Any) -> None:
        f, tiling = act or gelu_form(more["form"]), (gm, gn, nk)
        if one_pass:
            for i, j in units(x.tiles(gm), wg.tiles(gn)):
                gate: Any = product(x, wg, i, j, tiling)
                up: Any = product(x, wu, i, j, tiling)
                if bias:
                    gate, up = gate + more["bg"][j], up + more["bu"][j]
                y[i, j] <<= f(gate) * up
            return
        g, u = temp(M, N), temp(M, N)
        for i, j in units(x.tiles(gm), wg.tiles(gn)):
            g[i, j] <<= product(x, wg, i, j, tiling)
            u[i, j] <<= product(x, wu, i, j, tiling)
        for e in units(g.parts(more["part"])):
            y[e] <<= f(g[e]) * u[e]

    terms = ("x wg^T + bg", "x wu^T + bu") if bias else ("x wg^T", "x wu^T")
    doc = f"y[..., M, N] = act({terms[0]}) * ({terms[1]}), wg and wu [N, K]; knobs {', '.join((*knobs, *OPEN))}."
    return with_ports(name, {**ports, "y": Out(..., M, N)}, {**knobs, **OPEN}, body, doc)


@lru_cache
def gated(activation: str, *, bias: bool = False) -> Kernel:
    """The fused form with any activation of a product kernel, with a bias for each product if asked for.

    Raises:
        TraceError: an unknown activation.
    """
    return _gated(f"gated_{activation}" + "_bias" * bias, function(activation), fused=True, bias=bias)


geglu = _gated("geglu")
swiglu = _gated("swiglu", silu)
geglu_fused = _gated("geglu_fused", fused=True)
swiglu_fused = _gated("swiglu_fused", silu, fused=True)
geglu_bias = _gated("geglu_bias", bias=True)
swiglu_bias = _gated("swiglu_bias", silu, bias=True)


@kernel
def geglu_chunked(
    x: Any = In(..., M, K),
    w: Any = In(both, K),
    b: Any = In(both),
    y: Any = Out(..., M, F),
    *,
    form: Any = "erf_tanh",
    gm: Any = None,
    gn: Any = None,
    nk: Any = None,
) -> None:
    """y[..., M, F] = (x w[:F]^T + b[:F]) * gelu(x w[F:]^T + b[F:]): both halves of one weight, the gate second."""
    act, knobs, gate = gelu_form(form), (gm, gn, nk), w.rows_from(F)
    bias, shift = b.rows_from(0), b.rows_from(F)
    for i, j in units(x.tiles(gm), gate.tiles(gn)):
        h, g = product(x, w, i, j, knobs), product(x, gate, i, j, knobs)
        y[i, j] <<= act(g + shift[j]) * (h + bias[j])

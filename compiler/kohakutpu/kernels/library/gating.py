# SPDX-License-Identifier: Apache-2.0
"""Gated products (docs/spec/kernels.md 4 and 5.3): the activation is on the first weight.

The two-product form stores both products; the ``fused`` form hands both tiles to one epilogue. A network whose fused
projection puts the gate second passes ``wg = W[F:]`` and ``wu = W[:F]``, or uses :func:`geglu_chunked`.
"""

from __future__ import annotations

from typing import Any

from kohakutpu.kernels.language import In, Kernel, Out, dims, kernel, temp, units
from kohakutpu.kernels.library.functions import Function, gelu_form, silu
from kohakutpu.kernels.library.helpers import PART, named, product

LAYER = "L4"

M, N, K, both = dims("M, N, K, both")
F = both // 2


def _swish(_form: str) -> Function:
    return silu


def _gated(name: str, pick: Any, *, fused: bool) -> Kernel:
    def body(
        x: Any = In(..., M, K),
        wg: Any = In(N, K),
        wu: Any = In(N, K),
        y: Any = Out(..., M, N),
        *,
        form: Any = "erf_tanh",
        part: Any = PART,
        gm: Any = None,
        gn: Any = None,
        nk: Any = None,
    ) -> None:
        act, knobs = pick(form), (gm, gn, nk)
        if fused:
            for i, j in units(x.tiles(gm), wg.tiles(gn)):
                gate, up = product(x, wg, i, j, knobs), product(x, wu, i, j, knobs)
                y[i, j] <<= act(gate) * up
            return
        g, u = temp(M, N), temp(M, N)
        for i, j in units(x.tiles(gm), wg.tiles(gn)):
            g[i, j] <<= product(x, wg, i, j, knobs)
            u[i, j] <<= product(x, wu, i, j, knobs)
        for e in units(g.parts(part)):
            y[e] <<= act(g[e]) * u[e]

    return named(name, body, "y[..., M, N] = act(x wg^T) * (x wu^T), wg and wu [N, K]; knobs form, gm, gn, nk.")


def _gated_bias(name: str, pick: Any) -> Kernel:
    def body(
        x: Any = In(..., M, K),
        wg: Any = In(N, K),
        wu: Any = In(N, K),
        bg: Any = In(N),
        bu: Any = In(N),
        y: Any = Out(..., M, N),
        *,
        form: Any = "erf_tanh",
        gm: Any = None,
        gn: Any = None,
        nk: Any = None,
    ) -> None:
        act, knobs = pick(form), (gm, gn, nk)
        for i, j in units(x.tiles(gm), wg.tiles(gn)):
            gate, up = product(x, wg, i, j, knobs), product(x, wu, i, j, knobs)
            y[i, j] <<= act(gate + bg[j]) * (up + bu[j])

    return named(name, body, "y[..., M, N] = act(x wg^T + bg) * (x wu^T + bu), bg and bu one value a column.")


@lru_cache
def gated(activation: str, *, bias: bool = False) -> Kernel:
    """The fused form with any activation of :data:`~kohakutpu.kernels.library.functions.FUNCTIONS`.

    Raises:
        TraceError: an unknown activation.
    """
    act = function(activation)
    name = f"{GATES.get(activation, f'gated_{activation}')}"
    if bias:
        return _gated_bias(f"{name}_bias", lambda _form: act)
    return _gated(f"{name}_fused", lambda _form: act, fused=True)


geglu = _gated("geglu", gelu_form, fused=False)
swiglu = _gated("swiglu", _swish, fused=False)
geglu_fused = _gated("geglu_fused", gelu_form, fused=True)
swiglu_fused = _gated("swiglu_fused", _swish, fused=True)
geglu_bias = _gated_bias("geglu_bias", gelu_form)
swiglu_bias = _gated_bias("swiglu_bias", _swish)


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

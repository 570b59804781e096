# SPDX-License-Identifier: Apache-2.0
"""Cases of attention: heads, blocks, masks, large and equal scores (docs/spec/kernels.md 5.4, 10)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernel_reference import Case, Draw, Operands, attention
from kohakutpu.kernels import library as lib


def flash_operands(
    d: Draw, heads: int, lq: int, lkv: int, dk: int, dv: int, *, keys: int | None = None, logits: float = 1.0
) -> Operands:
    """q scaled by log2(e)/sqrt(dk) times ``logits``, k, and v transposed; k and v zero behind ``keys``.

    With logits above 1 a query points along one key, whose score is then far above all others.
    """
    q = d.rng.standard_normal((heads, lq, dk))
    k, v = d.act(heads, lkv, dk), d.act(heads, dv, lkv)
    if logits > 1:
        q = k[:, d.rng.integers(lkv, size=lq)].astype(np.float64)
    q *= math.log2(math.e) / math.sqrt(dk) * logits
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
    _flash(1, 128, 128, qblock=64, causal=True, keys=64, dispatches=9),
    _flash(2, 128, 128, keys=77, dispatches=16),
    _flash(1, 64, 256, keys=77, dispatches=8, rtl=True),
    _flash(1, 64, 128, keys=64, dispatches=6),
    _flash(1, 64, 64, keys=40, dispatches=4),
    _flash(1, 64, 64, qblock=64, causal=True, dispatches=4),
    _flash(2, 256, 128, groups=2),
    _flash(2, 64, 128, tag="_one_hot"),
    _flash(2, 64, 128, tag="_equal"),
    _flash(1, 128, 128, 512, 512, 128),
    _flash(1, 1024, 1024, 512, 512, 128, slow=True),
)

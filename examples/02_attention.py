# SPDX-License-Identifier: Apache-2.0
"""Multi-head attention written with the kernel library, on the model and on another device.

    ktpu run examples/02_attention.py --on rtl:mm_store

Projections into heads, attention over key blocks, and the projection back with bias and residual: no head is
moved, no score matrix is stored, and model and device have to agree bit for bit.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
import numpy.typing as npt

import ktpu
from kohakudriver import Device
from ktpu.library import attn_out, flash_attention, heads_of, matmul, project_heads

HEADS, WIDTH, TOKENS, BLOCK = 2, 32, 32, 32
CHANNELS = HEADS * WIDTH
F16 = npt.NDArray[np.float16]
F64 = npt.NDArray[np.float64]


def weights(rng: np.random.Generator) -> dict[str, F64]:
    """q, k, v and out projections [CHANNELS][CHANNELS] and the bias of the last."""
    made = {n: rng.standard_normal((CHANNELS, CHANNELS)) / math.sqrt(CHANNELS) for n in ("q", "k", "v", "out")}
    # softmax is taken with exp2, and the scale of the scores is part of the q projection
    made["q"] *= math.log2(math.e) / math.sqrt(WIDTH)
    return {**made, "bias": rng.standard_normal(CHANNELS) / 8}


def attend(x: F64, w: dict[str, F64], device: Device) -> F16:
    """x + out(attention(x)) on ``device``, one kernel after another."""
    q = ktpu.run(ktpu.call(project_heads, x, heads_of(w["q"], HEADS)), device)["y"]
    k = ktpu.run(ktpu.call(project_heads, x, heads_of(w["k"], HEADS)), device)["y"]
    # the operands the other way round give v transposed, [heads][WIDTH][TOKENS]
    v = ktpu.run(ktpu.call(matmul, heads_of(w["v"], HEADS), x), device)["c"]
    call = ktpu.call(flash_attention, q, k, v, block=BLOCK)
    print(ktpu.compile(call, ktpu.machine(device.name)).summary())
    o = ktpu.run(call, device)["o"].reshape(HEADS * TOKENS, WIDTH)
    return ktpu.run(ktpu.call(attn_out(HEADS), o, w["out"], x, w["bias"]), device)["y"]


def exact(x: F64, w: dict[str, F64]) -> F64:
    """The same in float64."""
    q, k, v = ((x @ w[n].T).reshape(TOKENS, HEADS, WIDTH).transpose(1, 0, 2) for n in ("q", "k", "v"))
    p = np.exp2(q @ k.transpose(0, 2, 1))
    o = p / p.sum(axis=-1, keepdims=True) @ v
    joined: F64 = x + o.transpose(1, 0, 2).reshape(TOKENS, CHANNELS) @ w["out"].T + w["bias"]
    return joined


def main() -> int:
    """Run on each device, print the error against float64; 1 if model and device differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", default="model:mm_store", help="model:<machine> or rtl:<machine>")
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((TOKENS, CHANNELS)), weights(rng)
    want, results = exact(x, w), {}
    for target in dict.fromkeys([f"model:{args.on.partition(':')[2]}", args.on]):
        device = ktpu.open(target)
        y = results[target] = attend(x, w, device)
        device.close()
        error = np.abs(y.astype(np.float64) - want) / np.abs(want).max()
        print(f"{target:<20} result {y.shape}, error p99 {np.percentile(error, 99):.1e}, max {error.max():.1e}")
    if len(results) == 1:
        return 0
    bits = [y.view(np.uint16) for y in results.values()]
    differing = int(np.count_nonzero(bits[0] != bits[-1]))
    print(f"model against {args.on}: {differing} of {bits[0].size} values differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""Write a fused kernel in the kernel language, run it on the model and on another device, compare.

    ktpu run examples/03_fused_kernel.py --on rtl:mm_mesh

A linear layer with bias whose SiLU is computed on the vector core while the tile is still inside the
machine: the matrix product never reaches memory. Model and device have to agree bit for bit.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np

import ktpu
from ktpu.language import In, Out, dims, exp2, kernel, loop, recip, tile, units

M, N, K = dims("M, N, K")
LOG2E = 1.4426950408889634


@kernel
def linear_bias_silu(  # type: ignore[no-untyped-def]
    x=In(..., M, K), w=In(N, K), b=In(N), y=Out(..., M, N), *, gm=None, gn=None, nk=None
):
    """y = silu(x w^T + b)."""
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            acc += x[i, k] @ w[j, k]
        v = acc + b[j]
        y[i, j] <<= v * recip(exp2(-v * LOG2E) + 1)


def main() -> int:
    """Run on each device, print the error against float64; 1 if model and device differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", default="model:mm_mesh", help="model:<machine> or rtl:<machine>")
    args = parser.parse_args()
    machine = args.on.partition(":")[2]

    rng = np.random.default_rng(0)
    x, w, b = rng.standard_normal((2, 16, 96)), rng.standard_normal((32, 96)) / 8, rng.standard_normal(32)
    call = ktpu.call(linear_bias_silu, x, w, b)
    print(ktpu.compile(call, ktpu.machine(machine)).summary())

    v = x @ w.T + b
    exact = v / (1 + np.exp(-v))
    results = {}
    for target in dict.fromkeys([f"model:{machine}", args.on]):
        device = ktpu.open(target)
        y = results[target] = ktpu.run(call, device)["y"]
        device.close()
        error = np.abs(y.astype(np.float64) - exact) / np.abs(exact).max()
        print(f"{target:<20} result {y.shape}, error p99 {np.percentile(error, 99):.1e}, max {error.max():.1e}")
    if len(results) == 1:
        return 0
    bits = [y.view(np.uint16) for y in results.values()]
    differing = int(np.count_nonzero(bits[0] != bits[-1]))
    print(f"model against {args.on}: {differing} of {bits[0].size} values differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

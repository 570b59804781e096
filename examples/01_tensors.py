# SPDX-License-Identifier: Apache-2.0
"""Arrays that stay on the device: one block of a network, the same program on the model and on RTL.

    python examples/01_tensors.py                 # the reference model
    python examples/01_tensors.py rtl:mm_store    # the RTL, and whether every bit agrees
"""

from __future__ import annotations

import sys

import numpy as np

import ktpu


def block(device: ktpu.TensorDevice) -> np.ndarray:
    """softmax((norm(x) W1 + b)_gelu W2 + x) for a batch of two; only the last line reads anything back."""
    rng = np.random.default_rng(0)
    x = ktpu.tensor(rng.standard_normal((2, 16, 64)), device)
    w1 = ktpu.tensor(rng.standard_normal((96, 64)) / 8, device)
    w2 = ktpu.tensor(rng.standard_normal((64, 96)) / 10, device)
    gain, bias = rng.uniform(0.5, 1.5, 64), rng.standard_normal(96)

    h = x.rmsnorm(gain)
    h = h.linear(w1, bias, activation="gelu")
    y = h.linear(w2, add=x)
    return y.softmax().numpy()


def main() -> int:
    """Run on the model and on the device named on the command line; 1 if they differ."""
    target = sys.argv[-1] if len(sys.argv) > 1 else "model"
    model = "model:" + target.partition(":")[2] if ":" in target else "model"
    results = []
    for name in dict.fromkeys([model, target]):
        with ktpu.open(name) as device:
            results.append(block(device))
            used = device.stats()
        print(
            f"{name}: {used['calls']} kernels, {used['uploads']} uploads, {used['downloads']} read back, "
            f"{used['relayouts_device']} reordered and {used['quantised']} quantised on the device"
        )
    differing = sum(int(np.count_nonzero(r.view(np.uint16) != results[0].view(np.uint16))) for r in results)
    if len(results) > 1:
        print(f"{differing} of {results[0].size} values differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

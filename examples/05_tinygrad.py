# SPDX-License-Identifier: Apache-2.0
"""A network written for tinygrad: what of it runs on the accelerator, and what stays on the host.

    python examples/05_tinygrad.py                 # the reference model
    python examples/05_tinygrad.py rtl:mm_store    # the RTL, and whether every bit agrees

The program below is plain tinygrad. Importing ktpu_tinygrad adds a device to it, named KTPU.
"""

from __future__ import annotations

import sys

import numpy as np
from tinygrad import Tensor

import ktpu_tinygrad


class Block:
    """A feed-forward block with a residual, and the classifier behind it."""

    def __init__(self, device: str) -> None:
        rng = np.random.default_rng(0)

        def weight(rows: int, columns: int) -> Tensor:
            values = rng.standard_normal((rows, columns)) / np.sqrt(columns)
            return Tensor(values.astype(np.float16), device=device)

        self.up, self.down, self.head = weight(96, 64), weight(64, 96), weight(16, 64)
        self.bias = Tensor(rng.standard_normal(96).astype(np.float16), device=device)

    def __call__(self, x: Tensor) -> Tensor:
        h = (x @ self.up.T + self.bias).silu()
        h = h @ self.down.T + x
        h = h.layernorm()
        return (h @ self.head.T).softmax()


def classify(target: str, index: int) -> np.ndarray:
    """Probabilities of 32 rows on one target; prints where every kernel ran."""
    device = ktpu_tinygrad.open(target, index)
    rows = np.random.default_rng(1).standard_normal((32, 64)).astype(np.float16)
    with ktpu_tinygrad.use():
        probabilities = Block(device.device)(Tensor(rows, device=device.device)).numpy()
        # one line that no kernel of the machine computes: the columns are read in reverse
        Tensor(rows, device=device.device).flip(1).contiguous().realize()
    used = device.stats()
    print(f"{target}: {used['device_ops']} kernels on the device, {used['host_ops']} on the host")
    print(*(f"  {one}" for one in device.schedule), sep="\n")
    return probabilities


def main() -> int:
    """Run on the model and on the target named on the command line; 1 if they differ."""
    target = sys.argv[-1] if len(sys.argv) > 1 else "model:mm_store"
    model = "model:" + target.partition(":")[2]
    results = [classify(name, index) for index, name in enumerate(dict.fromkeys([model, target]))]
    if len(results) == 1:
        return 0
    differing = int(np.count_nonzero(results[0].view(np.uint16) != results[1].view(np.uint16)))
    print(f"{model} against {target}: {differing} of {results[0].size} values differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())

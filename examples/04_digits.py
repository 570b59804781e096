# SPDX-License-Identifier: Apache-2.0
"""Classify real handwritten digits: the linear layers run on the accelerator.

    ktpu run examples/04_digits.py --on rtl:mm_mesh

A 64-64-10 network is trained here in numpy on half of the 1,797 8x8 digits that ship with
scikit-learn. The other half is classified three times: in float64, on the reference model, and
on the device named by --on. Model and RTL have to agree bit for bit.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

import ktpu

F64 = npt.NDArray[np.float64]


def train(x: F64, y: npt.NDArray[np.int64], hidden: int = 64, epochs: int = 60, seed: int = 0) -> list[F64]:
    """[w1, b1, w2, b2] of a two-layer network, by mini-batch gradient descent with momentum."""
    rng = np.random.default_rng(seed)
    w = [rng.normal(0, np.sqrt(2 / 64), (hidden, 64)), np.zeros(hidden), rng.normal(0, 0.1, (10, hidden)), np.zeros(10)]
    speed = [np.zeros_like(p) for p in w]
    target = np.eye(10)[y]
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for part in np.array_split(order, len(x) // 32):
            h = np.maximum(x[part] @ w[0].T + w[1], 0)
            z = h @ w[2].T + w[3]
            p = np.exp(z - z.max(axis=1, keepdims=True))
            dz = (p / p.sum(axis=1, keepdims=True) - target[part]) / len(part)
            dh = (dz @ w[2]) * (h > 0)
            grads = (dh.T @ x[part], dh.sum(0), dz.T @ h, dz.sum(0))
            for i, grad in enumerate(grads):
                speed[i] = 0.9 * speed[i] - 0.1 * grad
                w[i] = w[i] + speed[i]
    return w


class Linear:
    """x @ weight.T on a device; keeps the result bits for comparison."""

    def __init__(self, device: ktpu.TensorDevice) -> None:
        self.device = device
        self.bits: list[npt.NDArray[np.uint16]] = []
        self.cycles = 0

    def __call__(self, x: F64, weight: F64) -> F64:
        program = ktpu.compile(ktpu.linear(x, weight), self.device.machine)
        result = self.device.run(program.artifact)
        if result.failed:
            raise SystemExit("\n".join(result.problems()))
        (out,) = program.artifact.outputs
        values = ktpu.read_output(out, self.device.read(out.address, out.nbytes))
        self.bits.append(values.view(np.uint16))
        return values.astype(np.float64)


def classify(x: F64, w: list[F64], linear: object) -> npt.NDArray[np.int64]:
    """Predicted digit of every image."""
    h = np.maximum(linear(x, w[0]) + w[1], 0)  # type: ignore[operator]
    return np.argmax(linear(h, w[2]) + w[3], axis=1)  # type: ignore[operator]


def main() -> int:
    """Train, classify on each device, print the table; 1 if model and device differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", default="model:mm_mesh", help="model:<machine> or rtl:<machine>")
    parser.add_argument("--images", type=int, default=898, help="test images to classify (1..898)")
    args = parser.parse_args()

    digits = load_digits()
    x, y = digits.data / 16.0, digits.target
    w = train(x[::2], y[::2])
    test_x, test_y = x[1::2][: args.images], y[1::2][: args.images]
    machine = args.on.partition(":")[2]

    print(f"{len(test_x)} test images, network 64-64-10, machine {machine}")
    exact = classify(test_x, w, lambda a, b: a @ b.T)
    print(f"float64                  accuracy {np.mean(exact == test_y):7.2%}")
    results: dict[str, list[npt.NDArray[np.uint16]]] = {}
    for target in dict.fromkeys([f"model:{machine}", args.on]):
        device = ktpu.open(target)
        started = time.perf_counter()
        linear = Linear(device)
        answer = classify(test_x, w, linear)
        seconds = time.perf_counter() - started
        device.close()
        results[target] = linear.bits
        print(f"{target:<24} accuracy {np.mean(answer == test_y):7.2%}   ({seconds:.1f} s)")
    if len(results) == 2:
        a, b = results.values()
        differing = sum(int(np.count_nonzero(p != q)) for p, q in zip(a, b, strict=True))
        total = sum(p.size for p in a)
        print(f"model against {args.on}: {differing} of {total:,} result values differ")
        return int(differing > 0)
    return 0


if __name__ == "__main__":
    sys.exit(main())

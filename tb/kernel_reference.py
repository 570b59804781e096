# SPDX-License-Identifier: Apache-2.0
"""Error classes, operands and float64 references of the kernel library (docs/spec/kernels.md 0).

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


def sinusoids(t: float, count: int = 160) -> F16:
    """The timestep embedding of section 1.4: cosines, then sines."""
    f = np.exp(-math.log(10000.0) * np.arange(count) / count)
    return np.concatenate([np.cos(t * f), np.sin(t * f)]).astype(np.float16)


def timesteps(steps: int) -> F16:
    """Embeddings of a sampler of ``steps`` steps; a single one is too small a sample of its error class."""
    return np.stack([sinusoids(1000.0 * i / steps) for i in range(steps)])


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

# SPDX-License-Identifier: Apache-2.0
"""Error metrics of one tensor against a reference (docs/spec/numerics.md section 12)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LAYER = "leaf"


@dataclass(frozen=True)
class ErrorMetrics:
    """Peak-relative error d = |y - r| / max|r| over one tensor."""

    p50: float
    p99: float
    max: float
    over_1_percent: float
    """Fraction of elements with d > 0.01."""
    over_10_percent: float
    non_finite: int
    """Number of elements of y that are Inf or NaN."""
    saturated: int
    """Number of FP16_SAT events, as counted by the caller."""
    rel_l2: float = 0.0
    """Norm of y - r relative to the norm of r."""
    max_abs: float = 0.0
    """Largest |y - r|."""


def error_metrics(y: npt.ArrayLike, reference: npt.ArrayLike, saturated: int = 0) -> ErrorMetrics:
    """Metrics of section 12, computed in float64.

    y, reference: arrays of one shape, not empty; the reference must be finite. peak = 0 gives zeros
    when y is 0 everywhere and infinity otherwise; a non-finite y makes `max` infinite.
    Raises ValueError on a shape mismatch, an empty tensor or a non-finite reference.
    """
    got = np.asarray(y, dtype=np.float64)
    ref = np.asarray(reference, dtype=np.float64)
    if got.shape != ref.shape or got.size == 0:
        raise ValueError(f"error_metrics: shapes {got.shape} and {ref.shape} must agree and hold elements")
    if not np.isfinite(ref).all():
        raise ValueError("error_metrics: the reference holds a non-finite element")
    d, diff = _relative(got, ref)
    norm, off = float(np.linalg.norm(ref)), float(np.linalg.norm(diff))
    if norm == 0.0:
        norm = 1.0 if off == 0.0 else 0.0
    return ErrorMetrics(
        p50=float(np.median(d)),
        p99=_percentile(d, 0.99),
        max=float(d.max()),
        over_1_percent=float(np.mean(d > 0.01)),
        over_10_percent=float(np.mean(d > 0.10)),
        non_finite=int(np.count_nonzero(~np.isfinite(got))),
        saturated=saturated,
        rel_l2=off / norm if norm else float("inf"),
        max_abs=float(diff.max()),
    )


def relative_errors(y: npt.ArrayLike, reference: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """d of section 12, element by element: |y - r| / max|r|, infinite where y is not finite."""
    return _relative(np.asarray(y, dtype=np.float64), np.asarray(reference, dtype=np.float64))[0]


def _relative(
    got: npt.NDArray[np.float64], ref: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(d, |y - r|)."""
    finite = np.isfinite(got)
    peak = float(np.abs(ref).max())
    diff = np.where(finite, np.abs(np.where(finite, got, 0.0) - ref), np.inf)
    d = np.full(got.shape, np.inf if diff.any() else 0.0) if peak == 0.0 else diff / peak
    return d, diff


def _percentile(d: npt.NDArray[np.float64], fraction: float) -> float:
    """Linear interpolation between order statistics that stays defined next to infinities."""
    s = np.sort(d, axis=None)
    position = fraction * (s.size - 1)
    low = int(np.floor(position))
    weight = position - low
    if weight == 0.0:
        return float(s[low])
    return float(s[low] * (1.0 - weight) + s[low + 1] * weight)

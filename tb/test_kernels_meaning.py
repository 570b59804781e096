# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library against its float64 reference, statement by statement (docs/spec/kernels.md 3 to 5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernel_cases as kc
from kernel_meaning import meaning
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import In, Kernel, Out, dims, kernel, table, temp, units
from kohakutpu.kernels.library.fold import SubRows, fold_max, fold_mean

pytestmark = pytest.mark.unit

ROUNDED = {"X": 0.0, "V": 5e-4, "W": 1e-3, "M": 7e-4, "M2": 7e-4, "A": 2e-3}
"""Largest error of exact arithmetic with FP16 stores, by class."""

FAST = [c for c in kc.CASES if not c.slow]
SLOW = [c for c in kc.CASES if c.slow and c.bound not in ("M", "M2", "A")]


def meant(case: kc.Case) -> tuple[np.ndarray, np.ndarray]:
    """What the body says, and the reference."""
    operands = case.draw()
    bound = case.kernel().trace(**case.knobs).extents({n: v.shape for n, v in operands.items()})
    (got,) = meaning(bound, operands).values()
    want = case.reference(operands)
    return got.reshape(want.shape), want


@pytest.mark.parametrize("case", FAST, ids=lambda c: c.name)
def test_body_means_its_formula(case: kc.Case) -> None:
    """With exact arithmetic only the FP16 stores are left of the error."""
    metrics = kc.grade(*meant(case))
    assert not kc.broken(metrics, case.bound)
    if case.bound in ROUNDED:
        assert metrics.max <= ROUNDED[case.bound]


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW, ids=lambda c: c.name)
def test_body_means_its_formula_at_every_size(case: kc.Case) -> None:
    """All fourteen group sizes at every mean, deviation and eps, and the longest rows."""
    assert not kc.broken(kc.grade(*meant(case)), case.bound)


def test_every_row_of_the_table_has_a_case() -> None:
    """The operator rows this library answers for, and names that are unique."""
    assert {1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 28} <= {c.row for c in kc.CASES}
    names = [c.name for c in kc.CASES]
    assert len(set(names)) == len(names)
    assert {c.bound for c in kc.CASES} == set(kc.CLASSES) - {"X"}


def test_every_kernel_has_a_case() -> None:
    """No kernel of the package is left out, and each says what it computes."""
    known = {c.kernel().name.removesuffix("_silu") for c in kc.CASES} | {c.kernel().name for c in kc.CASES}
    for name in lib.__all__:
        made = getattr(lib, name)
        assert made.__doc__, name
        if name in ("chain", "gated"):  # families whose members have names of their own
            assert any(c.name.startswith(name) for c in kc.CASES), name
        elif name not in ("heads_of", "part_for", "split", "stack_groups"):
            assert name in known, name


# --------------------------------------------------------------------------------------------------------------- folds
FOLDS = [*range(1, 21), 160, 320, 480, 640, 960, 1280, 1920, 2560, 3840]
WIDTH = 16


def folded(rows: int) -> Kernel:
    """The mean and the maximum of ``rows`` sub-rows, group by group, as the fold leaves them."""

    def body(x: Any = In(...), low: Any = Out(...), top: Any = Out(...)) -> None:
        v = x.as_rows(WIDTH)
        shape = SubRows(x.length // WIDTH, WIDTH, rows)
        mean, best = fold_mean(v, shape).per_group(rows), fold_max(v, shape).per_group(rows)
        for e in units(v.parts(shape.part)):
            low.as_rows(WIDTH)[e] <<= mean[e] + 0.0
            top.as_rows(WIDTH)[e] <<= best[e] + 0.0

    body.__name__ = "folded"
    return kernel(body)


@pytest.mark.parametrize("rows", FOLDS)
def test_fold_reaches_every_group_and_no_further(rows: int) -> None:
    """Any count: the maximum bit for bit, the mean within FP16, and the result length v.rows - rows + 1."""
    x = kc.Draw(f"fold{rows}").act(3 * rows, WIDTH, sigma=20.0)
    trace = folded(rows).trace()
    bound = trace.extents({"x": x.shape})
    got = meaning(bound, {"x": x})
    groups = x.astype(np.float64).reshape(3, rows, WIDTH)
    mean, best = (got[n].reshape(3, rows, WIDTH) for n in ("low", "top"))
    assert np.array_equal(best, np.broadcast_to(groups.max(axis=1, keepdims=True), groups.shape))
    assert np.abs(mean - groups.mean(axis=1, keepdims=True)).max() <= 2e-3 * np.abs(groups).max()
    temps = [bound.shapes[b.name][0] for b in trace.buffers if b.role == "temp"]
    assert min(temps, default=2 * rows + 1) == 2 * rows + 1


# ----------------------------------------------------------------------------------------------------- heads and reads
@pytest.mark.parametrize("heads", [4, 10, 20])
def test_heads_are_a_wide_projection_read_another_way(heads: int) -> None:
    """Bit for bit, and the weight is a view."""
    d = kc.Draw(f"heads{heads}")
    x, w = d.act(12, 64), d.weight(heads * 64, 64)
    cut = lib.heads_of(w, heads)
    assert np.shares_memory(cut, w)
    narrow = meaning(lib.project_heads.trace().extents({"x": x.shape, "w": cut.shape}), {"x": x, "w": cut})["y"]
    wide = meaning(lib.matmul.trace().extents({"a": x.shape, "b": w.shape}), {"a": x, "b": w})["c"]
    assert np.array_equal(narrow, wide.reshape(12, heads, 64).transpose(1, 0, 2))
    turned = meaning(lib.matmul.trace().extents({"a": cut.shape, "b": x.shape}), {"a": cut, "b": x})["c"]
    assert np.array_equal(turned, narrow.transpose(0, 2, 1))


@pytest.mark.parametrize("elements", [2048, 65_536])
def test_a_table_is_read_for_any_length(elements: int) -> None:
    """512 elements against more than one instance."""
    row = np.arange(512.0) / 512.0

    @kernel
    def scaled(x: Any = In(...), y: Any = Out(...), *, part: Any = 2048) -> None:
        t = table(row).repeated()
        for e in units(x.parts(part)):
            y[e] <<= x[e] * t[e]

    x = kc.Draw("table").act(elements // 512, 512)
    got = meaning(scaled.trace().extents({"x": x.shape}), {"x": x})["y"]
    assert np.array_equal(got, (x.astype(np.float64) * row).astype(np.float16))


def test_reshaped_rows_are_the_same_bytes() -> None:
    N, M = dims("N, M")

    @kernel
    def halves(x: Any = In(M, N), y: Any = Out(M, N)) -> None:
        t = temp(M, N)
        t <<= x * 1.0
        y <<= t.as_rows(16) * 1.0

    x = kc.Draw("reshape").act(6, 32)
    assert np.array_equal(meaning(halves.trace().extents({"x": x.shape}), {"x": x})["y"], x)

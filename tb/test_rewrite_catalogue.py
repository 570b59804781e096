# SPDX-License-Identifier: Apache-2.0
"""Every entry of the rewrite catalogue: what it matches, what it leaves, and how equal (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import rewrite_cases as rc
from kohakutpu.rewrite import BY_NAME, CATALOGUE, Equality, Expr, inputs, interpret, normal, ops, rewrite, walk
from kohakutpu.rewrite.planes import folded_weight

pytestmark = pytest.mark.unit

PAGE = Path(__file__).resolve().parents[1] / "docs/spec/compiler.md"
ROUNDING = 2.0**-11
"""Relative error of a value rounded to FP16."""


def drawn(e: Expr, integers: bool, seed: int = 3) -> dict[str, npt.NDArray[np.float64]]:
    """Values of the inputs."""
    rng = np.random.default_rng(seed)
    return {
        i.name: rng.integers(-4, 5, i.extents).astype(np.float64) if integers else rng.standard_normal(i.extents)
        for i in inputs(e)
    }


def test_catalogue_is_the_table_of_the_page() -> None:
    """One entry a row, in its order, with its equality."""
    section = PAGE.read_text(encoding="utf-8").split("### 13.3")[1].split("### 13.4")[0]
    rows = [line.split("|")[2].strip() for line in section.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(CATALOGUE) == len(BY_NAME) == 12
    for stated, entry in zip(rows, CATALOGUE, strict=True):
        assert stated.startswith(entry.equality.value), (stated, entry.name)
        assert stated == entry.equality.value or entry.equality is not Equality.EXACT
        assert entry.__doc__


@pytest.mark.parametrize("case", rc.POSITIVE, ids=lambda c: f"{c.entry}-{c.label}")
def test_match(case: rc.Positive) -> None:
    """The entry alone rewrites the expression, and the float64 interpreter finds both equal."""
    e = case.make()
    done = rewrite(e, [BY_NAME[case.entry]])
    assert [a.rewrite for a in done.applied] == [case.entry]
    assert done.result.shape == e.shape
    values = drawn(e, case.integers)
    want, got = interpret(e, values), interpret(done.result, values)
    assert np.isfinite(want).all()
    assert want.std() > 0
    if case.integers:
        assert np.array_equal(got, want)
    else:
        assert np.abs(got - want).max() <= 1e-12 * np.abs(want).max()


@pytest.mark.parametrize("case", rc.NEGATIVE, ids=lambda c: f"{c.entry}-{c.label}")
def test_near_miss(case: rc.Negative) -> None:
    """The entry leaves it as it is and names the precondition, if it looks like the pattern at all."""
    e = case.make()
    done = rewrite(e, [BY_NAME[case.entry]])
    assert done.result is normal(e)
    assert not done.applied
    reasons = [r.reason for r in done.refused]
    if case.reason:
        assert any(case.reason in r for r in reasons), reasons
    else:
        assert not reasons


def test_every_entry_has_both() -> None:
    """One match and one near miss for each entry."""
    assert {c.entry for c in rc.POSITIVE} == {c.entry for c in rc.NEGATIVE} == set(BY_NAME)


# ------------------------------------------------------------------------------------------------ what each one is for


def test_no_score_matrix_is_left() -> None:
    """No node of the online form has queries by keys elements."""
    done = rewrite(rc.attention(lq=16, lkv=128), CATALOGUE)
    assert not [e for e in walk(done.result) if e.shape and e.shape[-2:] == (16, 128)]


def test_softmax_of_scores_beyond_exp() -> None:
    """Scores of thousands: the recurrence keeps the shift of the original."""
    e = rc.attention(1000.0)
    values = drawn(e, False)
    done = rewrite(e, CATALOGUE)
    assert np.allclose(interpret(done.result, values), interpret(e, values), rtol=0, atol=1e-9)


def test_shift_keeps_a_large_sum_finite() -> None:
    """log(sum(exp(x))) at 800 overflows even float64; the shifted form is right."""
    e = ops.log(ops.row_sum(ops.exp(rc.array("x", 2, 16))))
    x = np.full((2, 16), 800.0)
    assert not np.isfinite(interpret(e, {"x": x})).all()
    done = rewrite(e, [BY_NAME[rc.LSE]])
    assert np.allclose(interpret(done.result, {"x": x}), 800.0 + np.log(16.0))


def test_identity_variance_loses_what_two_passes_keep() -> None:
    """In FP32 at a mean of 4096 the identity is wrong in the first digit, the replacement to rounding."""
    x = (np.random.default_rng(3).standard_normal((4, 64)) + 4096.0).astype(np.float32)
    want = x.astype(np.float64).var(axis=-1, keepdims=True)
    identity = (x * x).mean(axis=-1, keepdims=True) - x.mean(axis=-1, keepdims=True) ** 2
    assert (np.abs(identity - want) / want).max() > 0.1
    e = ops.row_mean(rc.array("x", 4, 64) * rc.array("x", 4, 64)) - (
        ops.row_mean(rc.array("x", 4, 64)) * ops.row_mean(rc.array("x", 4, 64))
    )
    assert np.allclose(interpret(rewrite(e, CATALOGUE).result, {"x": x}), want, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_folded_weights_differ_by_their_rounding_alone(seed: int) -> None:
    """FP16 weights: the error of every pixel is at most the rounding of the folded weights times what they meet."""
    e = rc.POSITIVE[[c.entry for c in rc.POSITIVE].index(rc.UPSAMPLE)].make()
    values = drawn(e, False, seed)
    values["w"] = values["w"].astype(np.float16).astype(np.float64)
    got, want = interpret(rewrite(e, CATALOGUE).result, values), interpret(e, values)
    size = interpret(e, {name: np.abs(v) for name, v in values.items()})
    assert (np.abs(got - want) <= ROUNDING * size).all()
    assert (got != want).any()


def test_each_class_of_folded_weights() -> None:
    """Sums of the taps, and the two corners the kernel page names (docs/spec/kernels.md 6)."""
    w = np.random.default_rng(3).standard_normal((2, 3, 3, 4))
    for iy, ix in np.ndindex(2, 2):
        folded = interpret(folded_weight(rc.array("w", 2, 3, 3, 4), iy, ix), {"w": w})
        assert folded.shape == (2, 2, 2, 4)
        assert np.allclose(folded.sum(axis=(1, 2)), w.sum(axis=(1, 2)))
        if (iy, ix) == (0, 0):
            assert np.array_equal(folded[:, 0, 0], w[:, 0, 0])
        if (iy, ix) == (1, 1):
            assert np.array_equal(folded[:, 1, 1], w[:, 2, 2])


def test_a_tap_off_by_one_is_seen() -> None:
    """Exchanged classes: every sum of taps is right, the result is not."""
    e = rc.POSITIVE[[c.entry for c in rc.POSITIVE].index(rc.UPSAMPLE)].make()
    values = drawn(e, True)
    good = interpret(rewrite(e, CATALOGUE).result, values)
    turned = {**values, "w": values["w"][:, ::-1]}
    assert not np.array_equal(interpret(rewrite(e, CATALOGUE).result, turned), good)


def test_residue_planes_compute_no_pixel_twice() -> None:
    """The product has one row for every pixel that is kept, a stride squared fewer than the dense convolution."""
    done = rewrite(rc.strided(2, 8, 8), [BY_NAME[rc.STRIDE]])
    (product,) = [e for e in walk(done.result) if e.op == "contract"]
    assert product.shape == (16, 7)
    assert not [e for e in walk(done.result) if e.op == "conv2d"]


def test_whole_attention_from_one_input() -> None:
    """Projections, heads, attention and the way back: four entries, and no transpose is left."""
    x, heads, d = rc.array("x", 64, 128), 2, 64
    wq, wk, wv, wo = (rc.array(n, 128, 128) for n in ("wq", "wk", "wv", "wo"))
    q, k, v = (ops.transpose(ops.reshape(x @ w, 64, heads, d), 1, 0, 2) for w in (wq, wk, wv))
    o = ops.softmax((q @ k) * 0.125) @ ops.transpose(v)
    e = ops.reshape(ops.transpose(o, 1, 0, 2), 64, 128) @ wo + x
    done = rewrite(e, CATALOGUE)
    names = {a.rewrite for a in done.applied}
    assert names == {rc.SOFTMAX, rc.SPLIT, rc.JOIN, rc.EXP2}
    assert not [n for n in walk(done.result) if n.op == "transpose"]
    values = drawn(e, False)
    assert np.allclose(interpret(done.result, values), interpret(e, values), rtol=0, atol=1e-10)

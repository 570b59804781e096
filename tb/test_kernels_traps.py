# SPDX-License-Identifier: Apache-2.0
"""Faults a kernel may have, put in on purpose: the grading catches each (docs/spec/kernels.md 7.3 and 9)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

import kernel_cases as kc
from kernel_meaning import meaning
from kohakutpu.errors import TraceError
from kohakutpu.graph import interpret
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    dims,
    exp2,
    kernel,
    loop,
    row_max,
    row_sum,
    rsqrt,
    table,
    temp,
    tile,
    units,
    where,
)
from kohakutpu.kernels.language.lower import lower
from kohakutpu.kernels.library.functions import LOG2E

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")


def case(name: str) -> kc.Case:
    (found,) = [c for c in kc.CASES if c.name == name]
    return found


def result(k: Kernel, operands: kc.Operands, **knobs: Any) -> np.ndarray:
    """What the body says."""
    (got,) = meaning(k.trace(**knobs).extents({n: v.shape for n, v in operands.items()}), operands).values()
    return got


def test_swapped_gate_weights() -> None:
    """The activation is on the first weight; the other order is nothing like it."""
    good = case("geglu")
    operands = good.draw()
    want = good.reference(operands)
    swapped = operands | {"wg": operands["wu"], "wu": operands["wg"]}
    assert not kc.broken(kc.grade(result(lib.geglu, operands), want), "M")
    metrics = kc.grade(result(lib.geglu, swapped), want)
    assert kc.broken(metrics, "M")
    assert metrics.over_1_percent > 0.4
    assert metrics.over_10_percent > 0.05


def test_halves_of_a_chunked_weight_exchanged() -> None:
    good = case("geglu_chunked")
    operands = good.draw()
    swapped = operands | {"w": np.roll(operands["w"], 64, axis=0)}
    assert kc.broken(kc.grade(result(lib.geglu_chunked, swapped, **good.knobs), good.reference(operands)), "M")


def test_form_of_gelu_against_the_other_reference() -> None:
    """Both forms pass against their own formula only; the distance to erf is what the page says."""
    x = np.linspace(-6.0, 6.0, 4096).astype(np.float16)[None]
    v = x.astype(np.float64)
    tanh, quick = result(lib.gelu, {"x": x}), result(lib.gelu_sigmoid, {"x": x})
    assert not kc.broken(kc.grade(tanh, kc.gelu_tanh(v)), "V")
    assert not kc.broken(kc.grade(quick, kc.ACTS["gelu_sigmoid"](v)), "V")
    assert kc.broken(kc.grade(quick, kc.gelu_tanh(v)), "V")
    assert kc.broken(kc.grade(tanh, kc.ACTS["gelu_sigmoid"](v)), "V")
    peak = 3.0  # of the activations section 3 grades with
    assert np.abs(kc.gelu_tanh(v) - kc.gelu_erf(v)).max() / peak < 5e-4
    assert 4e-3 < np.abs(kc.ACTS["gelu_sigmoid"](v) - kc.gelu_erf(v)).max() / peak < 8e-3


def late_mask(keys: int, cols: int) -> Kernel:
    """The fault: padded keys enter the maximum and are zeroed afterwards."""

    def body(x: Any = In(..., M, cols), y: Any = Out(..., M, cols)) -> None:
        mask = table((np.arange(cols) < keys).astype(np.float64)).repeated()
        for e in units(x.parts(cols)):
            ex = where(mask[e], exp2((x[e] - row_max(x[e])) * LOG2E), 0.0)
            y[e] <<= ex / row_sum(ex)

    body.__name__ = "late_mask"
    return kernel(body)


def registers(k: Kernel, operands: kc.Operands) -> np.ndarray:
    """What the body says with the range and digits of a register of the vector core."""
    bound = k.trace().extents({n: v.shape for n, v in operands.items()})
    graph = lower(bound).graph
    tables = {b.name: np.asarray(b.data) for b in bound.trace.buffers if b.data is not None}
    arrays = {n: np.reshape(v, graph.values[n].shape) for n, v in {**operands, **tables}.items()}
    (got,) = interpret(graph, arrays).values()
    return got


def test_padded_keys_above_every_score() -> None:
    """Zero padding over scores near -100: masked late, every weight vanishes and a row divides nothing by nothing."""
    good = case("softmax_keys_77_of_128_shift_-100")
    operands = good.draw()
    want = good.reference(operands)
    got = registers(good.kernel(), operands)
    assert not kc.broken(kc.grade(got, want), "W")
    assert not got[:, 77:].any()
    assert np.abs(got.sum(axis=1) - 1.0).max() < 1e-3
    assert kc.broken(kc.grade(registers(late_mask(77, 128), operands), want), "W")
    near = case("softmax_keys_77_of_128_shift_0")  # where the fault hides
    hidden = kc.grade(registers(late_mask(77, 128), near.draw()), near.reference(near.draw()))
    assert not kc.broken(hidden, "W")


def test_padded_keys_above_every_score_in_attention() -> None:
    """The running maximum is stored: a padded key that enters it leaves the weights of a block at zero."""
    d = kc.Draw("late mask in attention")
    operands = kc.flash_operands(d, 1, 64, 64, 64, 64, keys=20)
    operands["q"] = np.full_like(operands["q"], 0.125)
    operands["k"][:, :20] = np.float16(-4.0) + operands["k"][:, :20]
    want = kc.attention(*(operands[n].astype(np.float64) for n in "qkv"), keys=20)
    assert not kc.broken(kc.grade(result(lib.flash_attention, operands, keys=20), want), "A")
    unmasked = result(lib.flash_attention, operands)
    assert kc.broken(kc.grade(unmasked, want), "A")


def test_loops_nested_around_one_accumulator() -> None:
    """Refused; and a sweep that starts again loses all but its last turn, which the grading sees."""

    @kernel
    def nested(
        a: Any = In(M, K), b: Any = In(N, K), c: Any = Out(M, N), *, gm: Any = 2, gn: Any = 2, nk: Any = 1
    ) -> None:
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            for h in loop(2):
                for k in loop(a.chunks32(nk) // 2):
                    acc += a[i, h * 2 + k] @ b[j, h * 2 + k]
            c[i, j] <<= acc

    with pytest.raises(TraceError, match="one loop over the product of the counts"):
        nested.trace()
    good = case("attn_out_4x128")
    operands = good.draw()
    want = good.reference(operands)
    last = operands["r"] + operands["o"][-32:].astype(np.float64) @ operands["w"][:, -128:].T + operands["b"]
    assert kc.broken(kc.grade(last.astype(np.float16), want), "M")


@pytest.mark.parametrize("gn", [3, 5, 6, 7, 12, 20])
def test_channel_words_read_from_the_wrong_column(gn: int) -> None:
    """A bias whose tile width neither divides nor is a multiple of 8 sub-tiles, read at a phase that restarts."""
    gm, rows, columns = 8, 32, 8 * gn
    d = kc.Draw(f"bias{gn}")
    operands = {"x": d.act(rows, 64), "w": d.weight(columns, 64), "b": d.act(columns)}
    want = operands["x"].astype(np.float64) @ operands["w"].astype(np.float64).T + operands["b"]
    assert not kc.broken(kc.grade(result(lib.linear_bias, operands, gm=gm, gn=gn, nk=1), want), "M")
    # tile word t needs channel word t mod gn; a chunk of 8 words that always starts at channel word 0 gives another
    row, column = np.arange(rows)[:, None], np.arange(columns)[None]
    word = row // 4 * gn + column // 4 % gn
    misread = operands["b"][column // (4 * gn) * 4 * gn + word % 8 % gn * 4 + column % 4]
    assert kc.broken(kc.grade(want - operands["b"] + misread, want), "M")


# ------------------------------------------------------------------------------------------ defects of section 9
def summed_then_divided(group: int) -> Kernel:
    """The fault: second moments are summed over the sub-rows and divided at the end."""
    rows = group // 128

    def body(x: Any = In(...), y: Any = Out(...)) -> None:
        v, out, squares = x.as_rows(128), y.as_rows(128), temp(x.length // 128, 128)
        for e in units(v.parts(group)):
            squares[e] <<= row_sum(v[e] * (1.0 / 128) * v[e])
        have, n = x.length // 128, rows
        while n > 1:
            n, have = n // 2, have - n // 2
            total = temp(have, 128)
            for e in units(total.parts(128)):
                total[e] <<= squares[e] + squares.rows_from(n)[e]
            squares = total
        square = squares.per_group(rows)
        for e in units(v.parts(group)):
            out[e] <<= v[e] * rsqrt(square[e] * (1.0 / rows) + 1e-5)

    body.__name__ = "summed_then_divided"
    return kernel(body)


def test_second_moment_of_large_groups() -> None:
    """Sigma 20: the mean-preserving fold is in class, a sum divided at the end saturates."""
    group = 32_768
    d = kc.Draw("second moment")
    one, zero = np.ones((2, group), np.float16), np.zeros((2, group), np.float16)
    operands = {"x": d.act(2, group, sigma=20.0), "w": one, "b": zero}
    want = kc.normalised(operands["x"].astype(np.float64), 1e-5)
    assert not kc.broken(kc.grade(result(lib.group_norm_wide(group), operands), want), "W")
    metrics = kc.grade(result(summed_then_divided(group), {"x": operands["x"]}), want)
    assert kc.broken(metrics, "W")
    assert metrics.over_10_percent > 0.05
    small = operands["x"] / np.float16(20.0)  # at sigma 1 the fault hides
    hidden = kc.grade(result(summed_then_divided(group), {"x": small}), kc.normalised(small.astype(np.float64), 1e-5))
    assert hidden.max < 1e-2


def test_second_moment_about_zero_loses_the_variance() -> None:
    """At a mean 64 sigma off, mean square minus squared mean is not the variance in 16 bits."""
    x = kc.Draw("identity").act(1, 20_480, mean=64.0)
    square = np.float16((x.astype(np.float64) ** 2).mean())
    mean = np.float16(x.astype(np.float64).mean())
    variance = float(square) - float(mean) ** 2
    assert abs(variance - 1.0) > 0.2


def test_classes_are_ordered_and_reject() -> None:
    """Grading notices one wrong element, a saturated one and one that is not finite."""
    want = np.linspace(-1.0, 1.0, 1000)
    assert not kc.broken(kc.grade(want, want), "X")
    for value, name in ((1.5, "A"), (65504.0, "A"), (math.nan, "A")):
        got = want.copy()
        got[17] = value
        assert kc.broken(kc.grade(got, want), name)
    ordered = [kc.CLASSES[n] for n in ("X", "V", "W", "W8", "M", "M2", "A")]
    assert all(a.max <= b.max and a.p99 <= b.p99 for a, b in itertools.pairwise(ordered))

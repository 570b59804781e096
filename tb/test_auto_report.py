# SPDX-License-Identifier: Apache-2.0
"""Ratios of automatic programs to kernels written by hand, and their reasons (docs/spec/compiler.md 13.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakutpu.cost import KernelCost
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import In, Out, kernel, row_sum, rsqrt, units
from kohakutpu.rewrite import Expr, ops, without
from ktpu import auto_reasons as ar
from ktpu.auto_report import ACCEPTANCE, Workload, base_2_attention, measured, table
from ktpu.cli import app
from ktpu.compiling import Compiled

pytestmark = pytest.mark.unit

MACHINE = "mm_mesh"


def _machine(name: str = MACHINE) -> Any:
    return ktpu.machine(name)


def _named(name: str) -> Workload:
    return next(w for w in ACCEPTANCE if w.name == name)


@pytest.mark.parametrize("profile", ["default", "ref"])
@pytest.mark.parametrize("workload", ACCEPTANCE, ids=lambda w: w.name)
def test_acceptance_set(workload: Workload, profile: str) -> None:
    """At most twice the cycles of the kernel, explained above 1.05, nothing on the host."""
    line = measured(workload, _machine(), profile)
    assert line.accepted, (line.result, line.steps)
    assert all(any(r.text.startswith(known) for known in ar.REASONS) for r in line.result.reasons)


def test_acceptance_set_is_that_of_the_page() -> None:
    """Every workload of kernels.md 7.4 but the convolution."""
    names = {w.name.replace("linear_add_gelu", "add").split(",")[0] for w in ACCEPTANCE}
    assert len(names) == 13
    assert not [w for w in ACCEPTANCE if "conv" in w.name]


# ----------------------------------------------------------------------------- reasons, on programs made worse


def _costs(call: Any, machine: Any, **options: Any) -> tuple[Compiled, KernelCost]:
    compiled = ktpu.compile(call, machine, **options)
    return compiled, ktpu.cost(compiled)


def _zeros(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    return [np.zeros(s, np.float16) for s in shapes]


def test_epilogue_not_folded() -> None:
    """A product whose activation reads its tile from memory."""
    w = _named("linear_silu 64x128x64")
    spent = ktpu.auto(w.expression, *w.shapes.values()).cost(_machine(), fuse="never")
    hand = _costs(ktpu.call(w.kernel, *_zeros(*w.shapes.values())), _machine())
    found = ar.compare(list(zip(spent.compiled, spent.calls, strict=True)), hand)
    assert found.ratio > ar.TOLERATED
    assert [r.text for r in found.reasons] == [ar.EPILOGUE]
    assert not found.unexplained


def test_form_needs_rewrite() -> None:
    """Attention over 1024 keys with a score matrix, because the softmax was not rewritten."""
    shapes = {"q": (1, 64, 64), "k": (1, 1024, 64), "v": (1, 64, 1024)}
    w = Workload("attention", base_2_attention, shapes, lib.flash_attention, {"block": 64})
    program = ktpu.auto(w.expression, *shapes.values(), catalogue=without("streamed softmax"))
    line = measured(w, _machine(), program=program)
    assert line.result.ratio > ar.TOLERATED
    assert [r.text for r in line.result.reasons] == [f"{ar.FORM} streamed softmax"]
    assert line.accepted
    assert measured(w, _machine()).result.ratio == 1.0


@kernel
def _norm_residual(
    x: Any = In(64, 128), w: Any = In(128), b: Any = In(128), r: Any = In(64, 128), y: Any = Out(64, 128)
) -> None:
    """A layernorm and a residual in one pass."""
    for e in units(x.parts(8192)):
        d = x[e] - row_sum(x[e]) * (1.0 / 128)
        square = row_sum(d * (1.0 / 128) * d)
        y[e] <<= d * rsqrt(square + 1e-5) * w.repeated()[e] + b.repeated()[e] + r[e]


def _norm_and_residual(x: Expr, w: Expr, b: Expr, r: Expr) -> Expr:
    return ops.layernorm(x, w, b) + r


def test_reduction_splits_band() -> None:
    """Four operands are one too many for a chain, so the sum is a pass of its own behind the reduction."""
    shapes = {"x": (64, 128), "w": (128,), "b": (128,), "r": (64, 128)}
    w = Workload("norm and residual", _norm_and_residual, shapes, _norm_residual)
    line = measured(w, _machine())
    assert line.result.ratio > ar.TOLERATED
    assert [r.text for r in line.result.reasons] == [ar.REDUCTION]
    assert line.accepted


@kernel
def _four(a: Any = In(64, 128), b: Any = In(64, 128), c: Any = In(64, 128), d: Any = In(64, 128),
          y: Any = Out(64, 128)) -> None:  # fmt: skip
    """Four operands in one pass."""
    y <<= a * b + c * d


def test_no_cross_band_reuse() -> None:
    """Four operands without a reduction: a value goes through memory between two passes."""
    shapes = dict.fromkeys("abcd", (64, 128))
    w = Workload("four operands", lambda a, b, c, d: a * b + c * d, shapes, _four)
    line = measured(w, _machine())
    assert line.result.ratio > ar.TOLERATED
    assert [r.text for r in line.result.reasons] == [ar.REUSE]
    assert line.accepted


def test_conversion_not_removed() -> None:
    """The same two products, their tiles brought into rows by the cores instead of the mover."""
    w, machine = _named("mlp 64x128x256x64"), _machine("mm_store")
    program = ktpu.auto(w.expression, *w.shapes.values())
    spent = program.cost(machine, convert="cores")
    hand = _costs(ktpu.call(w.kernel, *_zeros(*w.shapes.values())), machine, convert="mover")
    found = ar.compare(list(zip(spent.compiled, spent.calls, strict=True)), hand)
    assert found.ratio > ar.TOLERATED
    assert [r.text for r in found.reasons] == [ar.CONVERSION]
    assert found.accepted == (found.ratio <= ar.LIMIT)
    assert not found.unexplained


def test_occupancy() -> None:
    """The same product on one of several clusters."""
    machine = _machine("mm_quad")
    w = _named("matmul 64x256x64")
    spent = ktpu.auto(w.expression, *w.shapes.values()).cost(machine, clusters=1)
    hand = _costs(ktpu.call(w.kernel, *_zeros(*w.shapes.values())), machine)
    found = ar.compare(list(zip(spent.compiled, spent.calls, strict=True)), hand)
    assert found.ratio > ar.LIMIT
    assert [r.text for r in found.reasons] == [ar.OCCUPANCY]
    assert not found.unexplained
    assert not found.accepted


def test_padding_is_occupancy() -> None:
    """A tile chosen too large for 24x36 computes padding a smaller one does not."""
    shapes = {"x": (24, 64), "w": (36, 64), "b": (36,)}
    w = Workload("bias", lambda x, w, b: x @ w + b, shapes, lib.linear_bias, {"gm": 2, "gn": 3, "nk": 1})
    line = measured(w, _machine("mm_store"))
    assert line.result.ratio > ar.TOLERATED
    assert {r.text for r in line.result.reasons} == {ar.OCCUPANCY}


def test_an_unexplained_gap_is_no_success() -> None:
    """The same product in tiles so small that fills dominate: none of the reasons, so it is not accepted."""
    w, machine = _named("matmul 64x256x64"), _machine()
    operands = _zeros(*w.shapes.values())
    bad = _costs(ktpu.call(w.kernel, *operands, gm=4, gn=4, nk=1), machine)
    found = ar.compare([bad], _costs(ktpu.call(w.kernel, *operands), machine))
    assert found.ratio > ar.TOLERATED
    assert not found.reasons
    assert found.unexplained > 0
    assert not found.accepted
    line = replace(measured(w, machine), result=found)
    assert "UNEXPLAINED" in table([line])


def test_a_ratio_beyond_two_is_refused_whatever_its_reason() -> None:
    assert not ar.Comparison(201, 100, (ar.Reason(ar.REUSE, 101),)).accepted
    assert ar.Comparison(199, 100, (ar.Reason(ar.REUSE, 99),)).accepted
    assert not ar.Comparison(199, 100, (ar.Reason(ar.REUSE, 90),)).accepted
    assert ar.Comparison(105, 100).accepted


def test_what_the_host_computes_is_no_success() -> None:
    """A step of the host has no cycles, so a program with one is not accepted however cheap the rest is."""
    w = Workload("product", lambda a, b: ops.transpose(a @ b), {"a": (64, 64), "b": (64, 64)}, lib.matmul)
    program = ktpu.auto(w.expression, *w.shapes.values(), catalogue=without("transposed product"))
    line = measured(w, _machine(), program=program)
    assert line.host == 1
    assert not line.accepted
    assert "HOST STEPS 1" in table([line])
    assert measured(w, _machine()).accepted


def test_command() -> None:
    """``ktpu auto-report`` prints the table and refuses an unknown machine."""
    done = CliRunner().invoke(app, ["auto-report", "--only", "softmax"])
    assert done.exit_code == 0, done.output
    assert "| softmax 64x128 |" in done.output
    assert "tag model" in " ".join(done.output.split())
    assert CliRunner().invoke(app, ["auto-report", "--machine", "none"]).exit_code == 2

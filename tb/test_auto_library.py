# SPDX-License-Identifier: Apache-2.0
"""The automatic program of every kernel of the library: its class on the model, and its cost beside the kernel's.

docs/spec/kernels.md 10, "automatic path against each hand kernel: ratio and reason".
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import pytest

import auto_cases as ac
import kernel_cases as kc
import ktpu
from ktpu.auto_report import measured

pytestmark = pytest.mark.unit

MACHINE = "mm_store"
CHEAP = 20_000
"""Elements of the operands of a case that runs every time."""

CASES = ac.cases()


def _first_of_each() -> set[str]:
    """The smallest case of every kernel."""
    size: dict[str, tuple[int, str]] = {}
    for c in CASES:
        elements = sum(prod(s) for s in c.workload().shapes.values())
        kernel = c.case.kernel().name
        size[kernel] = min(size.get(kernel, (elements, c.case.name)), (elements, c.case.name))
    return {name for elements, name in size.values() if elements <= 4 * CHEAP}


FIRST = _first_of_each()


def _params() -> list[object]:
    slow = pytest.mark.slow
    return [pytest.param(c, id=c.case.name, marks=() if c.case.name in FIRST else slow) for c in CASES]


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu.TensorDevice]:
    with ktpu.open(f"model:{MACHINE}") as opened:
        yield opened


def test_every_kernel_has_an_expression() -> None:
    """No kernel of the library is left out, and a case runs every time for all but the widest groups."""
    everything = {c.kernel().name for c in kc.CASES}
    assert ac.covered(CASES) == everything
    always = {c.case.kernel().name for c in CASES if c.case.name in FIRST}
    assert everything - always == {"group_norm_wide"}


@pytest.mark.parametrize("case", _params())
def test_class_on_the_model(case: ac.AutoCase, device: ktpu.TensorDevice) -> None:
    """The automatic result is within the class of the kernel, and nothing was left to the host."""
    operands = case.operands()
    program = ktpu.auto(case.expression, *operands.values())
    got = program.run(device).numpy()
    want = case.case.reference({n: operands[n] for n in operands if n not in case.more})
    assert program.host_steps == 0, program.text()
    assert kc.broken(kc.grade(got.reshape(want.shape), want), case.case.bound) == []


@pytest.mark.parametrize("case", _params())
def test_ratio_has_a_reason(case: ac.AutoCase) -> None:
    """At most twice the cycles of the kernel, and a reason for what is above 1.05 times them."""
    line = measured(case.workload(), ktpu.machine(MACHINE))
    assert line.accepted, f"{line.result} {line.steps}"
    assert line.result.ratio <= 1.05 or line.result.reasons


def test_same_bits_where_the_kernel_is_the_same(device: ktpu.TensorDevice) -> None:
    """A product with a residual and an activation, generated and written by hand, gives one result."""
    (case,) = (c for c in CASES if c.case.name == "linear_add_gelu")
    operands = case.operands()
    got = ktpu.auto(case.expression, *operands.values()).run(device).numpy()
    want = ktpu.run(ktpu.call(case.case.kernel(), *operands.values()), device)["y"]
    assert np.array_equal(got.view(np.uint16), want.view(np.uint16))

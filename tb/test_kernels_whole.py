# SPDX-License-Identifier: Apache-2.0
"""Group norms of every size in the machine's arithmetic on whole arrays (docs/spec/kernels.md 3, row 14)."""

from __future__ import annotations

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from ktpu.numerics_reference import machine

pytestmark = pytest.mark.unit

FEW = 40_960
"""Elements of the largest group of the normal run."""
_ALL = [c for c in kc.GROUP_NORMS if c.name.startswith("group_norm_wide")]
SIZES = {c.name: int(c.name.split("_")[3]) for c in _ALL}
SHORT = [c for c in _ALL if SIZES[c.name] <= FEW]
LONG = [c for c in _ALL if SIZES[c.name] > FEW]


def check(case: kc.Case) -> np.ndarray:
    """In class and nothing saturated; the FP16 codes of the result."""
    operands = case.draw()
    call = ktpu.call(case.kernel(), *operands.values(), **case.knobs)
    bits, saturated = machine(call.trace.graph, call.values)
    ((name, codes),) = bits.items()
    got = codes.reshape(call.shapes[name])
    metrics = kc.grade(got.view(np.float16), case.reference(operands))
    print(f"{case.name}: p50 {metrics.p50:.2e} p99 {metrics.p99:.2e} max {metrics.max:.2e}")
    assert saturated == []
    assert not kc.broken(metrics, case.bound)
    return got


def test_every_size_is_there() -> None:
    """All fourteen, each with ten combinations of eps, mean and deviation."""
    assert set(SIZES.values()) == {*kc.GROUPS, *kc.DECODER_GROUPS}
    assert len(set(SIZES.values())) == 14
    assert len(_ALL) == 140


def test_whole_arrays_give_the_bits_of_the_device() -> None:
    """What the rest of this file relies on."""
    case = next(c for c in SHORT if SIZES[c.name] == 20_480)
    operands = case.draw()
    with ktpu.open("model:mm_store") as device:
        (want,) = ktpu.run(ktpu.call(case.kernel(), *operands.values(), **case.knobs), device).values()
    assert np.array_equal(check(case).reshape(-1), np.asarray(want).reshape(-1).view(np.uint16))


@pytest.mark.parametrize("case", SHORT, ids=lambda c: c.name)
def test_class(case: kc.Case) -> None:
    """Every eps, mean and deviation."""
    check(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG, ids=lambda c: c.name)
def test_class_of_the_long_groups(case: kc.Case) -> None:
    """Up to 8,388,608 elements, two groups of each."""
    check(case)

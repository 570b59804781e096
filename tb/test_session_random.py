# SPDX-License-Identifier: Apache-2.0
"""Random kernels on the RTL of a machine with staging store, adapter and granule transpose, beside the model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import ktpu
import ktpu.numerics_cases  # registers the cases of the library
from kohakudriver import Device
from ktpu import devices
from ktpu.numerics import CASES, RTL, measure
from ktpu.replay import replay
from random_kernels import KINDS, build, check_results, kernel, read_back

pytestmark = [pytest.mark.system, pytest.mark.slow]

MACHINE = "mm_store"
FIRST, COUNT = 50_000, 40


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Device, Device]]:
    """Model and RTL."""
    rtl = ktpu.open(f"rtl:{MACHINE}", dram={"lat_min": 5, "lat_max": 40})
    yield ktpu.open(f"model:{MACHINE}"), rtl
    rtl.close()


def test_random_kernels_on_rtl(pair: tuple[Device, Device]) -> None:
    """Forty kernels in one session: memory, signals and counters as on the model, bits as computed."""
    model, rtl = pair
    on = devices.description(MACHINE), ktpu.machine(MACHINE)
    ran: list[str] = []
    seed = FIRST
    while len(ran) < COUNT:
        k = kernel(seed, on)
        compiled = build(k)
        seed += 1
        if isinstance(compiled, str):
            continue
        report = replay(compiled.artifact, model, rtl)
        found = "\n".join(f.text() for f in report.findings())
        assert report.agree, f"kernel {k.seed}, {k.options}\n{k.call.trace.graph.text()}\n{found}"
        assert report.problems == [], (k.seed, report.problems)
        got = read_back(rtl, compiled)
        check_results(k, got)
        ran.append(k.kind)
    assert set(ran) == set(KINDS)


@pytest.mark.parametrize("name", ["matmul 64x256x64", "linear_bias_silu 64x128x64", "softmax 64x64", "rmsnorm 64x128"])
def test_numerics_report_on_rtl(pair: tuple[Device, Device], name: str) -> None:
    """The report's rows of the RTL are those of the model: no element differs."""
    report = measure(CASES[name], ktpu.machine(MACHINE), *pair)
    assert list(report.problems()) == []
    (tensor,) = report.tensors
    assert tensor.differing == 0
    assert {r.reference for r in tensor.rows if r.source == RTL} == {"fp64", "mx"}

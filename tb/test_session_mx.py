# SPDX-License-Identifier: Apache-2.0
"""Results drained as MXFP7 entries on the model and on the RTL of ``mm_mx`` (docs/spec/vector.md 15)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kernel_cases as kc
import ktpu
from both_devices import Pair, agree, opened
from drained_rows import attention, folded
from kohakubench.plans import artifact_of
from kohakutpu.schedule import plan

pytestmark = [pytest.mark.system, pytest.mark.slow]

MACHINE = "mm_mx"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Model and RTL."""
    yield from opened(MACHINE)


@pytest.mark.parametrize(("name", "cols"), [("softmax", 32), ("softmax", 96), ("relu", 160)])
def test_pass_between_products(name: str, cols: int, pair: Pair) -> None:
    """Rows of one, three and five entries, the last in parts of rows."""
    requests, values, buffers = folded(name, (32, cols))
    schedule = plan(requests, ktpu.machine(MACHINE), buffers=buffers)
    assert " out=mx:a" in schedule.text()
    assert schedule.conversions == ()
    agree(artifact_of(schedule, values, pair[0].description), pair)


@pytest.mark.parametrize(("keys", "block"), [(64, 64), (128, 64), (32, 32), (64, 32)])
def test_attention(keys: int, block: int, pair: Pair) -> None:
    """One and two key blocks without a conversion; the result is that of a machine that quantises by moves."""
    call = attention(1, 64, keys, block=block)
    compiled = ktpu.compile(call, ktpu.machine(MACHINE))
    counters = compiled.artifact.meta["counters"]
    assert [counters[n] for n in ("relayouts_device", "quantised", "moves", "relayouts")] == [0, 0, 0, 0]
    (got,) = agree(compiled.artifact, pair)
    moved = ktpu.open("model:mm_rows")
    other = ktpu.compile(call, ktpu.machine("mm_rows")).artifact
    assert not moved.run(other).failed
    (want,) = other.outputs
    assert got == moved.read(want.address, want.nbytes)
    moved.close()


def test_hidden_layer(pair: Pair) -> None:
    """mlp: nothing between its three bands."""
    case = next(c for c in kc.CASES if c.name.startswith("mlp_64x128x256x64"))
    compiled = ktpu.compile(ktpu.call(case.kernel(), *case.draw().values(), **case.knobs), ktpu.machine(MACHINE))
    assert compiled.artifact.meta["counters"]["moves"] == 0
    agree(compiled.artifact, pair)

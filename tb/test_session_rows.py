# SPDX-License-Identifier: Apache-2.0
"""Products drained as rows on the model and on the RTL of ``mm_rows`` (docs/spec/cluster.md 5.6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import ktpu
from both_devices import Pair, agree, opened
from drained_rows import Case, attention, folded, joined
from kohakubench.plans import artifact_of
from kohakutpu.schedule import plan

pytestmark = [pytest.mark.system, pytest.mark.slow]

MACHINE = "mm_rows"


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Model and RTL."""
    yield from opened(MACHINE)


@pytest.mark.parametrize("made", [folded, joined])
def test_product_and_softmax(made: Callable[..., Case], pair: Pair) -> None:
    """Tiles of a product as rows for a softmax and the next product; two products side by side in one buffer."""
    requests, values, buffers = made("softmax", (36, 96))
    schedule = plan(requests, ktpu.machine(MACHINE), buffers=buffers)
    assert " out=rows" in schedule.text()
    agree(artifact_of(schedule, values, pair[0].description), pair)


@pytest.mark.parametrize(("heads", "keys", "block"), [(4, 64, 64), (1, 64, 32)])
def test_attention(heads: int, keys: int, block: int, pair: Pair) -> None:
    """No granule conversion; a quantise move for every key block."""
    compiled = ktpu.compile(attention(heads, 64, keys, block=block), ktpu.machine(MACHINE))
    counters = compiled.artifact.meta["counters"]
    assert (counters["relayouts_device"], counters["quantised"]) == (0, keys // block)
    agree(compiled.artifact, pair)

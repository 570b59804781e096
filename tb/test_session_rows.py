# SPDX-License-Identifier: Apache-2.0
"""Products drained as rows on the model and on the RTL of ``mm_rows`` (docs/spec/cluster.md 5.6)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import pytest

import ktpu
from drained_rows import Case, attention, folded, joined
from kohakuabi import Artifact
from kohakubench.plans import artifact_of
from kohakudriver import Device
from kohakudriver.generated import ADDRESS_MAP
from kohakutpu.schedule import plan

pytestmark = [pytest.mark.system, pytest.mark.slow]

MACHINE = "mm_rows"
DRAM_BYTES = 1 << 20
"""What is compared; every buffer of these programs lies below."""

Pair = tuple[Device, Device]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Model and RTL."""
    model = ktpu.open(f"model:{MACHINE}")
    rtl = ktpu.open(f"rtl:{MACHINE}", dram={"lat_min": 5, "lat_max": 50})
    yield model, rtl
    model.close()
    rtl.close()


def agree(artifact: Artifact, pair: Pair) -> None:
    """Run on both; every byte of DRAM and staging store agrees."""
    assert all(o.address + o.nbytes <= DRAM_BYTES for o in artifact.outputs)
    states = []
    for device in pair:
        result = device.run(artifact)
        assert not result.failed, result.problems()
        state = hashlib.sha256(device.read(0, DRAM_BYTES))
        state.update(device.read(ADDRESS_MAP["staging"][0], int(device.description["stage_bytes"])))
        states.append((state.hexdigest(), [device.read(o.address, o.nbytes) for o in artifact.outputs]))
    assert states[0] == states[1]
    assert all(any(raw) for raw in states[0][1])


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

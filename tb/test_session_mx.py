# SPDX-License-Identifier: Apache-2.0
"""Results drained as MXFP7 entries on the model and on the RTL of ``mm_mx`` (docs/spec/vector.md 15)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

import kernel_cases as kc
import ktpu
from drained_rows import attention, folded
from kohakuabi import Artifact
from kohakubench.plans import artifact_of
from kohakudriver import Device
from kohakudriver.generated import ADDRESS_MAP
from kohakutpu.schedule import plan

pytestmark = [pytest.mark.system, pytest.mark.slow]

MACHINE = "mm_mx"
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


def agree(artifact: Artifact, pair: Pair) -> list[bytes]:
    """Run on both; every byte of DRAM and staging store agrees.

    Returns:
        the outputs.
    """
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
    return states[0][1]


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

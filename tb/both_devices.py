# SPDX-License-Identifier: Apache-2.0
"""One program on the model and on the RTL of a machine: every byte agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import ktpu
from kohakuabi import Artifact
from kohakudriver import Device
from kohakudriver.generated import ADDRESS_MAP

DRAM_BYTES = 1 << 20
"""What is compared; every buffer of these programs lies below."""

Pair = tuple[Device, Device]


def opened(machine: str) -> Iterator[Pair]:
    """Model and RTL, closed behind the user."""
    model = ktpu.open(f"model:{machine}")
    rtl = ktpu.open(f"rtl:{machine}", dram={"lat_min": 5, "lat_max": 50})
    yield model, rtl
    model.close()
    rtl.close()


def agree(artifact: Artifact, pair: Pair) -> list[bytes]:
    """Run on both; every byte of DRAM and staging store agrees, and no output is all zero.

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

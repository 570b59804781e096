# SPDX-License-Identifier: Apache-2.0
"""The same Python program on the model and on RTL: results and the whole memory agree (docs/spec/compiler.md 13.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest

import ktpu
from kohakudriver.generated import ADDRESS_MAP

pytestmark = [pytest.mark.system, pytest.mark.slow]

STAGING = ADDRESS_MAP["staging"][0]
Pair = tuple[ktpu.TensorDevice, ktpu.TensorDevice]


@pytest.fixture(scope="module", params=["mm_store", "mm_mesh"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Model and RTL of a machine whose mover turns tiles into rows, and of one whose vector core does."""
    latency = {"lat_min": 5, "lat_max": 50}
    with ktpu.open(f"rtl:{request.param}", dram=latency) as rtl, ktpu.open(f"model:{request.param}") as model:
        yield model, rtl


def digest(dev: ktpu.TensorDevice, nbytes: int) -> str:
    """Hash of the first ``nbytes`` of DRAM and of the whole staging store."""
    state = hashlib.sha256(dev.read(0, nbytes))
    state.update(dev.read(STAGING, int(dev.description["stage_bytes"])))
    return state.hexdigest()


def network(dev: ktpu.TensorDevice, steps: int = 2) -> list[np.ndarray]:
    """A hidden layer with bias and ReLU, a residual product and a softmax; arrays come and go, weights stay."""
    rng = np.random.default_rng(5)
    w = ktpu.tensor(rng.standard_normal((48, 64)) / 8, dev, name="w").pin()
    v = ktpu.tensor(rng.standard_normal((48, 48)) / 7, dev, name="v")
    b = ktpu.tensor(rng.standard_normal(48), dev, name="b")
    out = []
    for _ in range(steps):
        x = ktpu.tensor(rng.standard_normal((2, 10, 64)), dev)
        hidden = x.linear(w, b, activation="relu")
        scores = hidden.linear(v, add=hidden)
        out.append((scores * 0.5).softmax().numpy())
    out.append(hidden.reshape(40, 24).numpy())
    return out


def test_one_program_on_both(pair: Pair) -> None:
    """Every result, every counter and every byte of DRAM and staging store."""
    model, rtl = pair
    bits = [np.concatenate([o.ravel() for o in network(dev)]).view(np.uint16) for dev in pair]
    assert (bits[0] == bits[1]).all()
    assert bits[0].any()
    assert model.stats() | {"memory": 0} == rtl.stats() | {"memory": 0}
    stats = rtl.stats()
    assert stats["relayouts"] == 0
    assert stats["quantised"] == 2
    assert stats["compiled"] == 4
    nbytes = int(rtl.transport.memory_bytes)  # type: ignore[attr-defined]
    assert digest(model, nbytes) == digest(rtl, nbytes)


def test_memory_outlives_a_call(pair: Pair) -> None:
    """What one call left on the RTL is what the next one reads, also after others came between."""
    rng = np.random.default_rng(8)
    first, second = rng.standard_normal((2, 16, 32))
    got = []
    for dev in pair:
        kept = ktpu.tensor(first, dev) @ ktpu.tensor(second, dev)
        network(dev, 1)
        got.append((kept @ ktpu.tensor(np.eye(16), dev)).numpy())
    assert (got[0].view(np.uint16) == got[1].view(np.uint16)).all()

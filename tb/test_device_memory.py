# SPDX-License-Identifier: Apache-2.0
"""Room for scratches and temps beside live arrays of a device (docs/spec/compiler.md 8.1, 13.1)."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ktpu
from kohakudriver import DriverError
from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.model.transport import ModelTransport
from kohakutpu.schedule import from_key
from ktpu.devices import description

pytestmark = pytest.mark.unit


def values(seed: int, *shape: int) -> np.ndarray:
    """Normal values in FP16."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def test_scratch_takes_the_room_of_forms_that_can_be_made_again() -> None:
    """A computed left operand is brought into rows in a scratch, for which packed weights have to go."""
    with ktpu.open("model:mm_mesh", span=(0, 48 << 10)) as dev:
        x, w, *others = (ktpu.tensor(values(seed, 64, 64), dev) for seed in range(8))
        y = x @ w
        for other in others:
            other @ w
        before = dev.stats()["evicted"]
        z = y @ w
        assert dev.stats()["evicted"] > before  # type: ignore[operator]
        y_values, z_values = y.numpy(), z.numpy()
    with ktpu.open("model:mm_mesh") as roomy:
        want = ktpu.tensor(y_values, roomy) @ ktpu.tensor(values(1, 64, 64), roomy)
        assert np.array_equal(z_values.view(np.uint16), want.numpy().view(np.uint16))


def test_the_image_of_a_weight_is_the_movers() -> None:
    """Packed by the host or quantised on the device: the same entries, made once and read by every later call."""
    with ktpu.open("model:mm_store") as dev:
        # magnitudes from subnormal to the largest, so that blocks of every scale are among them
        w = values(0, 96, 96) * np.float16(2) ** np.random.default_rng(1).integers(-12, 12, (96, 96))
        x, host = ktpu.tensor(values(2, 32, 96), dev), ktpu.tensor(w, dev)
        computed = host * -1 * -1
        results = [(x @ weight).numpy() for weight in (host, computed)]
        made = {name: dev.stats()[name] for name in ("packed", "quantised")}
        assert made == {"packed": 2, "quantised": 1}
        images = []
        for array in (host, computed):
            (key,) = (k for k in array.contents.forms if k.startswith("mx:"))
            form = array.contents.forms[key]
            images.append((key, dev.read(form.address, from_key(key).nbytes(w.shape))))
        assert images[0] == images[1]
        for weight in (host, computed, host):
            assert np.array_equal((x @ weight).numpy().view(np.uint16), results[0].view(np.uint16))
        assert {name: dev.stats()[name] for name in made} == made


def test_a_program_of_fixed_places_spares_what_lies_where_its_temps_are() -> None:
    """Temps too large for the staging store, and an array behind the results."""
    dev = ktpu.open("model:mm_store")
    call = ktpu.call(library.mlp(), np.ones((512, 32)), np.ones((2304, 32)), np.ones((32, 2304)))
    program = ktpu.compile(call, dev.machine).artifact
    below = dev.runtime.memory.alloc(max(o.address + o.nbytes for o in program.outputs), "below")
    y = ktpu.tensor(values(0, 16, 32), dev).relu()
    del below
    with pytest.raises(DriverError, match=r"the program writes where relu\.y lives"):
        dev.load(program)
    del y
    gc.collect()
    dev.load(program)


def test_a_program_on_a_shared_machine() -> None:
    """It spares the arrays of both devices, and runs on either after the other has sent signals."""
    low = ktpu.TensorDevice("low", ModelTransport(description("mm_store")), (0, 1 << 20))
    high = ktpu.TensorDevice("high", low.transport, (1 << 20, 1 << 20))
    x = values(0, 16, 32)
    program = ktpu.compile(ktpu.matmul(x, x), low.machine).artifact
    mine = low.tensor(x) @ low.tensor(x)
    with pytest.raises(DriverError, match=r"the program writes where matmul\.c lives"):
        high.run(program)
    del mine
    gc.collect()
    assert not high.run(program).failed
    assert not low.run(program).failed


def test_a_call_that_does_not_end_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused halfway for want of room, or stopped by the machine: what it had placed is free again."""
    with ktpu.open("model:mm_mesh", span=(0, 40 << 10)) as dev:
        x, w, big = (ktpu.tensor(values(i, n, 64), dev) for i, n in enumerate((64, 64, 256)))
        y = x @ w

        def used() -> int:
            dev.empty_cache()
            return int(dev.stats()["memory"]["dram"]["used"])  # type: ignore[index]

        before = used()
        with pytest.raises(CompileError, match="do not fit"):
            big @ w
        gc.collect()
        assert used() == before

        def stopped(*_: object, **_options: object) -> None:
            raise DriverError("stopped")

        monkeypatch.setattr(dev, "run", stopped)
        with pytest.raises(DriverError, match="stopped"):
            y @ w
        monkeypatch.undo()
        gc.collect()
        assert used() == before
        assert np.isfinite((y @ w).numpy()).all()

# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library on the RTL beside the model: no bit differs (docs/spec/kernels.md 0 and 10).

Two machines: ``mm_store``, whose mover turns tiles into rows, and ``mm_mesh``, whose vector core does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from kohakudriver.generated import ADDRESS_MAP
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import In, Kernel, Out, fma, kernel, table, units
from ktpu.replay import GUARD_BYTES, replay

MACHINES = ("mm_store", "mm_mesh")
on_both = pytest.mark.parametrize("machine", MACHINES)
STAGING = ADDRESS_MAP["staging"][0]

CASES = {c.name: c for c in kc.CASES if c.rtl}
FAST = {
    "mm_store": {
        "matmul_64x256x64", "v_transposed_4x64", "linear_bias_24x64x36", "linear_bias_silu", "geglu",
        "mlp_64x128x256x64", "attn_out_4x128", "silu", "residual", "softmax_masked_9x48",
        "softmax_keys_77_of_128_shift_-100", "layernorm_9x48", "flash_1x32x64_64_64_64",
        "group_norm_silu_wide_384_mean_0_sigma_20_eps_1e-05",
    },
    "mm_mesh": {"matmul_64x256x64", "mlp_64x128x256x64", "flash_1x32x64_64_64_64"},
}  # fmt: skip
"""Cases of the normal run by machine: one of each way through it. The others are nightly."""

MAKERS = {"linear", "gated", "chain", "mlp"}
"""Functions of the library that return kernels under other names."""


@dataclass(frozen=True)
class Pair:
    """A machine twice, and whether its mover turns tiles into rows."""

    model: ktpu.TensorDevice
    rtl: ktpu.TensorDevice
    granule: bool


Pairs = Callable[[str], Pair]


@pytest.fixture(scope="module")
def pairs() -> Iterator[Pairs]:
    """Model and RTL of a machine, opened once: memory holds what earlier kernels left."""
    with ExitStack() as stack:

        @cache
        def opened(name: str) -> Pair:
            rtl = stack.enter_context(ktpu.open(f"rtl:{name}", dram={"lat_min": 5, "lat_max": 40}))
            return Pair(stack.enter_context(ktpu.open(f"model:{name}")), rtl, name == "mm_store")

        yield opened


def digest(device: ktpu.TensorDevice, nbytes: int) -> str:
    """Hash of the first ``nbytes`` of DRAM and of the whole staging store."""
    state = hashlib.sha256(device.read(0, nbytes))
    state.update(device.read(STAGING, int(device.description["stage_bytes"])))
    return state.hexdigest()


def written(compiled: ktpu.Compiled, nbytes: int) -> tuple[int, list[tuple[int, int]]]:
    """(bytes of DRAM up to behind the last buffer, buffers in the staging store) with a guard of 4096 bytes."""
    buffers = compiled.schedule.buffers.values()
    dram = max(b.address + b.nbytes for b in buffers if b.address < STAGING) + GUARD_BYTES
    staged = [(b.address, -(-b.nbytes // 32) * 32) for b in buffers if b.address >= STAGING]
    return min(-(-dram // 32) * 32, nbytes), staged


def same(pair: Pair, compiled: ktpu.Compiled) -> np.ndarray:
    """The one result, once every round left the same memory, signals and counters on both.

    Memory is that of operands, temps and results, with what lies between and behind them.
    """
    whole, staged = written(compiled, int(pair.rtl.transport.memory_bytes))  # type: ignore[attr-defined]
    report = replay(compiled.artifact, pair.model, pair.rtl, whole=whole, more=staged)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    assert report.problems == []
    (o,) = compiled.artifact.outputs
    raw = [d.read(o.address, o.nbytes) for d in (pair.model, pair.rtl)]
    assert raw[0] == raw[1]
    assert any(raw[1])
    return ktpu.read_output(o, raw[1])


def runs() -> list[object]:
    """(machine, case), nightly unless in :data:`FAST`."""
    return [
        pytest.param(m, c, id=f"{m}-{n}", marks=() if n in FAST[m] else pytest.mark.slow)
        for m in MACHINES
        for n, c in CASES.items()
    ]


@pytest.mark.system
@pytest.mark.parametrize(("machine", "case"), runs())
def test_kernel(machine: str, case: kc.Case, pairs: Pairs) -> None:
    """Round by round every word, signal and counter; then the error class, and no reordering by the host."""
    pair, operands = pairs(machine), case.draw()
    call = ktpu.call(case.kernel(), *operands.values(), **case.knobs)
    compiled = ktpu.compile(call, ktpu.machine(machine))
    (shape,) = call.shapes.values()
    values = same(pair, compiled).reshape(shape)
    assert not kc.broken(kc.grade(values, case.reference(operands)), case.bound)
    bands = [b.role for b in compiled.schedule.bands]
    assert compiled.artifact.meta["counters"].get("relayouts", 0) == 0
    assert not (pair.granule and "relayout" in bands)
    if case.dispatches is not None:
        assert len(bands) - bands.count("relayout") == case.dispatches


@pytest.mark.system
@pytest.mark.slow
@on_both
def test_broadcast_of_a_table(machine: str, pairs: Pairs) -> None:
    """A table of 512 elements read by 2,048, in more than one instance."""
    pair, row = pairs(machine), np.arange(512.0) / 512.0

    @kernel
    def copied(x=In(...), y=Out(...), *, part=1024):  # type: ignore[no-untyped-def]
        t = table(row).repeated()
        for e in units(x.parts(part)):
            y[e] <<= fma(x[e], 0.0, t[e])

    x = kc.Draw("table on the RTL").act(4, 512)
    compiled = ktpu.compile(ktpu.call(copied, x), ktpu.machine(machine))
    assert np.array_equal(same(pair, compiled).ravel(), np.broadcast_to(row, x.shape).ravel())


def layer(device: ktpu.TensorDevice) -> np.ndarray:
    """x + out(attention(x)) of two heads of 32, every array on the device from the first kernel to the last."""
    d = kc.Draw("layer on the RTL")
    x, r = ktpu.tensor(d.act(32, 64), device), ktpu.tensor(d.act(32, 64), device)
    wq, wk, wv = (lib.heads_of(d.weight(64, 64), 2) for _ in range(3))
    (q,), (k,) = (device.call(lib.project_heads, x, w) for w in (wq, wk))
    (v,) = device.call(lib.matmul, wv, x)
    (o,) = device.call(lib.flash_attention, q, k, v, block=32)
    (y,) = device.call(lib.attn_out(2), o.reshape(64, 32), d.weight(64, 64), r, d.shift(64), gm=4, gn=4, nk=1)
    return y.numpy()


@pytest.mark.system
@pytest.mark.slow
@on_both
def test_layer_of_kernels(machine: str, pairs: Pairs) -> None:
    """Kernels that read one another's results through ``device.call``: values, counters and all memory agree."""
    pair = pairs(machine)
    values = [layer(d) for d in (pair.model, pair.rtl)]
    assert np.array_equal(values[0].view(np.uint16), values[1].view(np.uint16))
    stats = [d.stats() | {"memory": 0} for d in (pair.model, pair.rtl)]
    assert stats[0] == stats[1]
    assert stats[1]["calls"] == 5
    assert stats[1]["relayouts"] == 0
    for d in (pair.model, pair.rtl):
        d.empty_cache()
    nbytes = int(pair.rtl.transport.memory_bytes)  # type: ignore[attr-defined]
    assert digest(pair.model, nbytes) == digest(pair.rtl, nbytes)


@pytest.mark.system
@pytest.mark.slow
@on_both
def test_run_is_the_replayed_program(machine: str, pairs: Pairs) -> None:
    """``ktpu.run`` on the RTL gives the bits of the compiled program on the model."""
    pair, case = pairs(machine), CASES["linear_bias_silu"]
    call = ktpu.call(case.kernel(), *case.draw().values())
    got, want = (ktpu.run(call, d)["y"] for d in (pair.rtl, pair.model))
    compiled = ktpu.compile(call, ktpu.machine(machine))
    assert np.array_equal(got.view(np.uint16), want.view(np.uint16))
    assert np.array_equal(got.view(np.uint16), same(pair, compiled).view(np.uint16))


@pytest.mark.unit
def test_every_kernel_of_the_library_is_a_case() -> None:
    """By name; a kernel added to the library needs a shape for the RTL, and each fast name is a case."""
    made = {c.kernel().name for c in CASES.values()}
    names = {n for n in lib.__all__ if isinstance(getattr(lib, n), Kernel) or hasattr(getattr(lib, n), "cache_info")}
    assert names - MAKERS <= made
    assert {"gated_relu_bias", "elementwise_3", "mlp_silu", "linear_scale_bias_add_silu"} <= made
    assert set(CASES) >= set.union(*FAST.values())

# SPDX-License-Identifier: Apache-2.0
"""Kernels of the library compiled and run on the functional model: class and counters (docs/spec/kernels.md 3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from kohakudriver import Device
from kohakutpu.kernels import library as lib
from ktpu import Compiled
from ktpu.language import In, Out, fma, kernel, table, units

pytestmark = pytest.mark.unit

MACHINE = "mm_store"

LONG = {
    "softmax_4x768", "softmax_4x1024", "softmax_4x1280", "softmax_2x4096", "softmax_keys_300_of_640_shift_-100",
    "layernorm_wide_16x320", "layernorm_wide_16x768", "layernorm_wide_16x1024", "layernorm_wide_16x1280",
}  # fmt: skip
"""Cases the statement-by-statement tests run at once and the model in the nightly run."""


def quick(case: kc.Case) -> bool:
    """Short on the model."""
    if case.slow or case.name in LONG:
        return False
    if case.row == 14:
        return False
    if case.name.startswith("softmax_keys") and not case.name.startswith("softmax_keys_77"):
        return False
    return case.row not in (17, 18) or case.name in ("flash_1x64x64_64_64_64", "flash_1x64x256_64_64_64_keys_77")


QUICK = [c for c in kc.CASES if quick(c)]
LARGEST = 163_840
"""Elements of the largest group the model runs."""


def runs(case: kc.Case) -> bool:
    """Large groups at the extremes only, and the largest not at all; the statement-by-statement tests have them."""
    if case.row != 14 or not case.slow:
        return True
    group = int(case.name.removeprefix("group_norm_wide_").split("_")[0])
    return group <= LARGEST and case.name.endswith(("mean_0_sigma_1_eps_1e-05", "mean_0_sigma_20_eps_1e-06"))


NIGHTLY = [c for c in kc.CASES if not quick(c) and runs(c)]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    opened = ktpu.open(f"model:{MACHINE}")
    yield opened
    opened.close()


def run(kernel: Any, operands: kc.Operands, device: Device, **knobs: Any) -> tuple[Compiled, np.ndarray]:
    """Compile, run, and the one result in the shape of the call."""
    call = ktpu.call(kernel, *operands.values(), **knobs)
    compiled = ktpu.compile(call, ktpu.machine(MACHINE))
    result = device.run(compiled.artifact)
    assert not result.failed, result.problems()
    (o,) = compiled.artifact.outputs
    values = ktpu.read_output(o, device.read(o.address, o.nbytes))
    return compiled, values.reshape(call.shapes[o.name])


def check(case: kc.Case, device: Device) -> None:
    """In class, nothing saturated, nothing through the host, and as many bands as the table says."""
    operands = case.draw()
    compiled, got = run(case.kernel(), operands, device, **case.knobs)
    metrics = kc.grade(got, case.reference(operands))
    print(f"{case.name}: p50 {metrics.p50:.2e} p99 {metrics.p99:.2e} max {metrics.max:.2e}")
    assert not kc.broken(metrics, case.bound)
    counters = compiled.artifact.meta["counters"]
    assert counters.get("relayouts", 0) == 0
    if case.dispatches is not None:
        assert counters["dispatches"] == case.dispatches


@pytest.mark.parametrize("case", QUICK, ids=lambda c: c.name)
def test_class_and_counters(case: kc.Case, device: Device) -> None:
    """The cases short enough for every run."""
    check(case, device)


@pytest.mark.slow
@pytest.mark.parametrize("case", NIGHTLY, ids=lambda c: c.name)
def test_class_and_counters_of_the_long_shapes(case: kc.Case, device: Device) -> None:
    """The rest of the acceptance shapes."""
    check(case, device)


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 1.0), (8.0, 1.0), (0.0, 20.0)])
def test_group_norm_of_many_sub_rows(mean: float, sigma: float, device: Device) -> None:
    """21 sub-rows a group, an odd count."""
    check(kc.group_case(21 * 128, mean, sigma), device)


@pytest.mark.parametrize("keys", [1, 77])
def test_masked_columns_are_exactly_zero(keys: int, device: Device) -> None:
    """And a row sums to 1 within 1e-3, far below zero as well."""
    case = next(c for c in kc.CASES if c.name.startswith(f"softmax_keys_{keys}_of_128"))
    x = case.draw()["x"]
    x[:, :keys] -= np.float16(100.0)
    _, got = run(case.kernel(), {"x": x}, device)
    assert not got[:, keys:].any()
    assert np.abs(got.astype(np.float64).sum(axis=1) - 1.0).max() < 1e-3


def test_tiles_do_not_change_a_bit(device: Device) -> None:
    """Blocks run along K only, so the tiling of the result is free at one nk."""
    d = kc.Draw("tiles")
    operands = {"a": d.act(64, 256), "b": d.weight(64, 256)}
    results = {
        run(lib.matmul, operands, device, gm=gm, gn=gn, nk=2)[1].tobytes()
        for gm, gn in ((2, 1), (4, 4), (8, 8), (16, 16))
    }
    assert len(results) == 1


def test_heads_bit_for_bit(device: Device) -> None:
    """Projected into heads, or wide and permuted; V transposed by exchanging the operands."""
    d = kc.Draw("heads on the model")
    x, w = d.act(12, 64), d.weight(4 * 64, 64)
    cut = lib.heads_of(w, 4)
    _, narrow = run(lib.project_heads, {"x": x, "w": cut}, device)
    _, wide = run(lib.matmul, {"a": x, "b": w}, device)
    assert np.array_equal(narrow, wide.reshape(12, 4, 64).transpose(1, 0, 2))
    _, turned = run(lib.matmul, {"a": cut, "b": x}, device)
    assert np.array_equal(turned, narrow.transpose(0, 2, 1))


@pytest.mark.parametrize("elements", [2048, 65_536])
def test_a_table_is_read_for_any_length(elements: int, device: Device) -> None:
    """512 elements against more than one instance, bit for bit, in one pass."""
    row = np.arange(512.0) / 512.0

    @kernel
    def copied(x: Any = In(...), y: Any = Out(...), *, part: Any = 2048) -> None:
        t = table(row).repeated()
        for e in units(x.parts(part)):
            y[e] <<= fma(x[e], 0.0, t[e])

    x = kc.Draw("table on the model").act(elements // 512, 512)
    compiled, got = run(copied, {"x": x}, device)
    assert np.array_equal(got, np.broadcast_to(row, x.shape))
    assert compiled.artifact.meta["counters"]["dispatches"] == 1


def test_attention_quantises_the_weights_of_a_block_once() -> None:
    """One conversion a key block, and none of them by the host."""
    for blocks in (1, 2, 4):
        name = f"flash_4x{64 * blocks}x{64 * blocks}_64_64_64"
        case = next(c for c in kc.CASES if c.name == name)
        compiled = ktpu.compile(ktpu.call(case.kernel(), *case.draw().values(), **case.knobs), ktpu.machine(MACHINE))
        counters = compiled.artifact.meta["counters"]
        assert counters["quantised"] == blocks
        assert (counters["relayouts_device"], counters["relayouts"]) == (2 * blocks, 0)
        assert counters["dispatches"] == 4 * blocks + 2


SAME = {
    "matmul": (lambda v: ktpu.matmul(v["a"], v["b"]), lib.matmul, {"a": (64, 256), "b": (64, 256)}),
    "linear_silu": (lambda v: ktpu.linear_silu(v["x"], v["w"]), lib.linear_silu, {"x": (64, 128), "w": (64, 128)}),
    "linear_bias": (
        lambda v: ktpu.linear_bias(v["x"], v["w"], v["b"]),
        lib.linear_bias,
        {"x": (64, 128), "w": (64, 128), "b": (64,)},
    ),
    "linear_add": (
        lambda v: ktpu.linear_add(v["x"], v["w"], v["b"]),
        lib.linear_add,
        {"x": (64, 128), "w": (64, 128), "b": (64, 64)},
    ),
    "geglu": (
        lambda v: ktpu.geglu(v["x"], v["wg"], v["wu"]),
        lib.geglu_fused,
        {"x": (64, 128), "wg": (64, 128), "wu": (64, 128)},
    ),
    "softmax": (lambda v: ktpu.softmax(v["x"]), lib.softmax(128), {"x": (64, 128)}),
    "layernorm": (
        lambda v: ktpu.layernorm(v["x"], v["w"], v["b"]),
        lib.layernorm(128),
        {"x": (64, 128), "w": (128,), "b": (128,)},
    ),
    "rmsnorm": (lambda v: ktpu.rmsnorm(v["x"], v["w"]), lib.rmsnorm(128), {"x": (64, 128), "w": (128,)}),
}


@pytest.mark.parametrize("name", SAME)
def test_whole_array_operator_is_the_kernel_of_the_library(name: str) -> None:
    """An operator of ktpu emits the instructions of the kernel of its name, word for word."""
    whole, kernel, shapes = SAME[name]
    d = kc.Draw(name)
    operands = {n: d.act(*s) for n, s in shapes.items()}
    machine = ktpu.machine(MACHINE)
    one = ktpu.compile(whole(operands), machine).artifact
    other = ktpu.compile(ktpu.call(kernel, *operands.values()), machine).artifact
    assert one.payloads == other.payloads
    assert one.steps == other.steps

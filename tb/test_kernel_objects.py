# SPDX-License-Identifier: Apache-2.0
"""Kernels as objects: trace, plan, footprint, call, and what identifies a compiled call (compiler.md 8.2, 11)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ktpu
from kohakutpu.errors import CompileError, TraceError
from kohakutpu.kernels.language.kernel import Kernel as LanguageKernel
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.lifetimes import Placed, conflicts
from kohakutpu.schedule.requantise import ToRows
from ktpu.language import In, Out, dims, kernel, table, temp, units
from ktpu.library import flash_attention, linear_silu, matmul, mlp, project_heads, residual, silu
from ktpu.planning import Footprint

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")
ATTENTION = (4, 128, 64), (4, 128, 64), (4, 64, 128)


@pytest.fixture
def dev() -> Iterator[ktpu.TensorDevice]:
    """A model of the default machine."""
    with ktpu.open("model") as device:
        yield device


def values(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


@kernel
def both(x=In(M, N), low=Out(M, N), high=Out(M, N), *, by=1.0):
    """Two results."""
    low <<= x - by
    high <<= x + by


@kernel
def shifted(x=In(M, N), y=Out(M, N), *, first=0.0):
    """x plus a row of constants known when the kernel is traced."""
    row = table(np.arange(32.0) + first).repeated()
    y <<= x + row


# -- calls --


def test_a_call_runs_on_the_device_of_its_operands(dev: ktpu.TensorDevice) -> None:
    """The same bits as ktpu.call and ktpu.run; one result alone, several in the order of the ports."""
    x, w = values(1, 32, 64), values(2, 32, 64)
    tx, tw = ktpu.tensor(x, dev), ktpu.tensor(w, dev)
    (want,) = ktpu.run(ktpu.call(linear_silu, x, w), dev).values()
    got = linear_silu(tx, tw)
    assert isinstance(got, ktpu.Tensor)
    assert np.array_equal(got.numpy(), want)
    assert np.array_equal(linear_silu(tx, w, gm=4, gn=8, nk=2, fuse="never").numpy(), want)
    low, high = both(tx, by=2.0)
    assert np.array_equal(high.numpy() - low.numpy() > 3.9, np.ones((32, 64), bool))
    batch = ktpu.tensor(x.reshape(2, 16, 64), dev)
    assert matmul(batch, tw).shape == (2, 16, 32)


REFUSED: dict[str, tuple[Callable[[ktpu.Tensor, ktpu.Tensor], object], str]] = {
    "no device": (lambda x, _: silu(np.zeros((4, 16))), "silu: no operand lives on a device; make one"),
    "two devices": (residual, "operand r .* lives on device model:mm_store, the call runs on"),
    "unknown name": (lambda x, _: silu(x, speed=1), r"silu has no speed; knobs: part; extents: none; options"),
    "a machine": (lambda x, _: silu(x, machine="mm_mesh"), "a call runs on the device of its operands"),
    "operands": (lambda x, _: residual(x), r"residual takes 2 operands \(x, r\), got 1"),
    "shapes": (lambda x, _: residual.plan((4, 16)), r"residual takes 2 operands \(x, r\), got 1"),
    "no shape": (lambda x, _: silu.plan(16), r"x: an array or a shape such as \(64, 128\) is needed, got 16"),
    "no machine": (lambda x, _: silu.plan((4, 16), machine=3), r"silu: machine = 3; give a name or ktpu.machine"),
    "option of a call": (lambda x, _: silu(x, fuse="maybe"), "fuse = 'maybe'; it is one of auto, require, never"),
    "option": (lambda x, _: silu.footprint((4, 16), convert="host"), "convert = 'host'; it is one of auto, mover"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(dev: ktpu.TensorDevice, name: str) -> None:
    """What a call cannot mean is answered with what it may say."""
    use, message = REFUSED[name]
    with ktpu.open("model") as other:
        x, o = ktpu.tensor(values(1, 4, 16), dev), ktpu.tensor(values(2, 4, 16), other)
        with pytest.raises(CompileError, match=message):
            use(x, o)


def test_a_kernel_alone_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package that compiles, a kernel can be traced and nothing else."""
    monkeypatch.setattr(LanguageKernel, "frontend", None)
    assert silu.trace(part=256).kernel == "silu"
    for use in (silu.plan, silu.footprint, silu):
        with pytest.raises(TraceError, match=r"silu: .* needs a compiler; import ktpu"):
            use((4, 16))


# -- plans --


def test_a_plan_is_what_compile_makes(dev: ktpu.TensorDevice) -> None:
    """From shapes, host arrays or device arrays: the printed schedule of the call; the machine is that of the array."""
    x, w = values(1, 32, 64), values(2, 32, 64)
    want = ktpu.compile(ktpu.linear_silu(x, w, gm=4, gn=8, nk=2), ktpu.machine("mm_mesh"), fuse="never")
    knobs = {"gm": 4, "gn": 8, "nk": 2, "fuse": "never"}
    for args in (((32, 64), (32, 64)), (x, w)):
        assert linear_silu.plan(*args, machine="mm_mesh", **knobs).text() == want.schedule.text()
    on_device = linear_silu.plan(ktpu.tensor(x, dev), w, **knobs)
    assert on_device.machine == "mm_store"
    assert ktpu.plan(want.call, ktpu.machine("mm_mesh"), fuse="never").text() == want.schedule.text()


def test_extents_that_no_operand_states() -> None:
    """A named extent is given by its name, next to the knobs."""

    @kernel
    def padded(x=In(M, N - 4), y=Out(M, N - 4)):
        y <<= x * 2.0

    with pytest.raises(CompileError, match="extent N appears only inside"):
        padded.plan((4, 16))
    assert padded.plan((4, 16), N=20).buffers["y"].shape == (4, 16)


# -- footprints --


@pytest.mark.parametrize("machine", ["mm_mesh", "mm_store"])
@pytest.mark.parametrize("reuse", [True, False])
def test_a_footprint_is_the_memory_of_the_call(machine: str, reuse: bool) -> None:
    """Every buffer once with the bytes of the schedule; what is alive together is apart; the peak is the last byte."""
    found = flash_attention.footprint(*ATTENTION, machine=machine, reuse_temps=reuse)
    schedule = flash_attention.plan(*ATTENTION, machine=machine, reuse_temps=reuse)
    assert isinstance(found, Footprint)
    assert {b.name: (b.role, b.nbytes) for b in found.buffers} == {
        b.name: (b.role, b.nbytes) for b in schedule.buffers.values()
    }
    assert {b.role for b in found.buffers} == {"in", "temp", "out"}
    for tier in found.peak:
        here = [Placed(b.name, b.offset, b.nbytes, b.life) for b in found.buffers if b.tier == tier]
        assert conflicts(here) == []
        bottom = ktpu.machine(machine).arena_base if tier == "dram" else 0
        assert found.peak[tier] == max(p.end for p in here) - bottom
    assert set(found.peak) == {"dram", "l2"}


def test_reuse_lowers_the_peak_and_no_bit() -> None:
    """Temps that are never alive together share bytes, or not."""
    peaks = [sum(mlp("silu").footprint((64, 128), (256, 128), (64, 256), reuse_temps=r).peak.values()) for r in (1, 0)]
    assert peaks[0] < peaks[1]
    text = mlp("silu").footprint((64, 128), (256, 128), (64, 256)).text()
    assert "in x: dram at 0x0, " in text
    assert text.splitlines()[-1].startswith("  peak ")


def test_a_peak_beyond_the_memory_names_the_buffers() -> None:
    """The largest first, with what would fit."""
    small = ktpu.machine("mm_mesh").with_(dram_bytes=1 << 20)
    with pytest.raises(CompileError, match=r"c: 2097152 bytes do not fit.*live at once: c 2097152, .*smaller"):
        matmul.footprint((1024, 64), (1024, 64), machine=small)
    assert matmul.footprint((256, 64), (256, 64), machine=small).peak["dram"] <= 1 << 20


# -- identity --


def compiled(dev: ktpu.TensorDevice) -> int:
    return int(str(dev.stats()["compiled"]))


def test_options_and_constants_identify_a_compiled_call(dev: ktpu.TensorDevice) -> None:
    """Another option, knob, constant or table is another program; the same ones are the same."""
    x = ktpu.tensor(values(1, 8, 32), dev)
    shifted(x)
    before = compiled(dev)
    exact = x.numpy().astype(float) + np.arange(32)
    assert np.allclose(shifted(x).numpy(), exact, rtol=1e-3)
    assert compiled(dev) == before
    for count, options in enumerate(
        ({"reuse_temps": False}, {"fuse": "never"}, {"convert": "cores"}, {"interleave": 1}, {"group": 2}), start=1
    ):
        shifted(x, **options)
        assert compiled(dev) == before + count
    assert np.allclose(shifted(x, first=5.0).numpy(), exact + 5, rtol=1e-3)
    for by in (1.0, 3.0):
        assert np.allclose(both(x, by=by)[0].numpy(), x.numpy().astype(float) - by, rtol=1e-2, atol=1e-2)


def test_a_family_is_one_kernel_an_argument() -> None:
    """Kernels a function makes are traced once each; the same argument is the same kernel."""
    assert mlp("silu") is mlp("silu")
    before = project_heads.traces
    for rows in (16, 32, 48):
        project_heads.plan((rows, 64), (4, 64, 64))
    assert project_heads.traces <= before + 1


def test_trim_gives_the_top_back(dev: ktpu.TensorDevice) -> None:
    """After a large temporary array is gone, an emptied cache lowers the peak to the end of what is alive."""

    def memory() -> dict[str, float]:
        return dev.stats()["memory"]["dram"]  # type: ignore[index, no-any-return]

    kept = silu(ktpu.tensor(values(1, 8, 32), dev))
    low = memory()["peak"]
    silu(ktpu.tensor(values(2, 512, 256), dev))
    assert memory()["peak"] >= low + 512 * 256 * 2
    dev.empty_cache()
    after = memory()
    assert after["peak"] <= low
    assert after["peak"] >= after["used"] >= kept.nbytes
    arena = Arena(4096, 1 << 20)
    spans = [arena.alloc(n) for n in (2048, 4096, 8192)]
    arena.free(spans[2])
    assert (arena.trim(), arena.peak, arena.trim()) == (8192, 6144, 0)
    arena.free(spans[0])
    assert (arena.trim(), arena.peak) == (0, 6144)


# -- counters --

CALLS = {
    "product": lambda: ktpu.call(matmul, values(1, 32, 64), values(2, 32, 64)),
    "chained": lambda: ktpu.call(mlp("silu"), values(1, 32, 64), values(2, 64, 64), values(3, 32, 64)),
    "attention": lambda: ktpu.call(flash_attention, *(values(i, *s) for i, s in enumerate(ATTENTION))),
}


@pytest.mark.parametrize("machine", ["mm_mesh", "mm_store"])
@pytest.mark.parametrize("name", CALLS)
def test_counters_of_artifact_and_compiler_agree(machine: str, name: str) -> None:
    """One number a name, wherever it is asked for; conversions are entries or reorderings, never both."""
    from ktpu.counters import counters

    program = ktpu.compile(CALLS[name](), ktpu.machine(machine))
    kept, found = program.artifact.meta["counters"], counters(program)
    shared = set(kept) & set(found)
    assert shared >= {"quantised", "relayouts", "relayouts_device", "moves", "dispatches", "staging_full", "relaxed"}
    assert {n: kept[n] for n in shared} == {n: found[n] for n in shared}
    entries = sum(b.layout.startswith("mx:") and b.role == "temp" for b in program.schedule.buffers.values())
    assert kept["quantised"] == entries
    bands = sum(b.role == "relayout" for b in program.schedule.bands)
    rows = sum(isinstance(c, ToRows) for c in program.schedule.conversions)
    assert kept["relayouts_device"] == rows + bands
    assert (rows > 0) == (name == "attention" and machine == "mm_store")


@pytest.mark.parametrize("machine", [pytest.param("mm_mesh", marks=pytest.mark.slow), "mm_store"])
def test_counters_of_a_device_add_up(machine: str) -> None:
    """A device counts what its calls' artifacts state."""
    from ktpu.counters import counters

    call = CALLS["attention"]()
    want = counters(ktpu.compile(call, ktpu.machine(machine)))
    with ktpu.open(f"model:{machine}") as dev:
        ktpu.run(call, dev)
        ktpu.run(call, dev)
        stats = dev.stats()
    for name in ("dispatches", "quantised", "relayouts_device", "relayouts", "relaxed"):
        assert stats[name] == 2 * want[name], name


def test_an_unused_temp_is_refused() -> None:
    """A temp nobody writes has no place in a footprint."""

    @kernel
    def odd(x=In(M, N), y=Out(M, N)):
        hidden = temp(M, N)
        for e in units(x.parts(512)):
            y[e] <<= hidden[e] + x[e]

    with pytest.raises(CompileError, match="t0 is read before all of it is written"):
        odd.footprint((4, 16))

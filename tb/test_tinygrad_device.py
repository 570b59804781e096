# SPDX-License-Identifier: Apache-2.0
"""The device as tinygrad sees it: what is declared, how it is found, its buffers, its schedule
(docs/spec/compiler.md 13.2)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

import tinygrad
from tinygrad import Device, Tensor, dtypes
from tinygrad.codegen.opt import KernelOptError
from tinygrad.codegen.opt.tc import TensorCore
from tinygrad.device import CompileError as TinygradError
from tinygrad.helpers import BEAM, DEV, NOOPT, Context

import ktpu
import ktpu_tinygrad
from kohakutpu.errors import CompileError
from ktpu_tinygrad.buffers import Storage
from ktpu_tinygrad.listing import Line, Listing, parse
from ktpu_tinygrad.operands import FULL, Operand
from ktpu_tinygrad.renderer import KtpuCompiler, KtpuRenderer

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The default model."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


# ---------------------------------------------------------------------- declarations


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("has_local", False),
        ("has_shared", False),
        ("has_threads", False),
        ("supports_float4", False),
        ("global_max", None),
        ("local_max", None),
        ("shared_max", 0),
        ("tensor_cores", []),
    ],
)
def test_flag(flag: str, value: object, device: ktpu_tinygrad.KTPUDevice) -> None:
    """Declared on the class and on the renderer the device gives to the lowering."""
    assert getattr(KtpuRenderer, flag) == value
    assert getattr(device.renderer, flag) == value
    assert hasattr(tinygrad.renderer.Renderer, flag), "tinygrad no longer reads it"


def test_search_and_optimiser_are_off(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Opening the device sets BEAM to 0 and NOOPT to 1."""
    assert (BEAM.value, NOOPT.value) == (0, 1)


def test_buffers_are_half(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Inside ``use`` a tensor of floats is half precision and lives on the device."""
    x = Tensor([1.0, 2.0])
    assert (x.dtype, x.device) == (dtypes.half, "KTPU")
    assert Tensor.rand(4).dtype == dtypes.half


def test_tensor_core_cannot_be_declared(monkeypatch: pytest.MonkeyPatch, device: ktpu_tinygrad.KTPUDevice) -> None:
    """A core of the cluster's shape can be written down, and tinygrad then cannot lower a product without threads.

    If this version of tinygrad ever could, the list would have to hold the core.
    """
    core = TensorCore(
        dims=(4, 4, 32),
        threads=1,
        elements_per_thread=(128, 128, 16),
        dtype_in=dtypes.half,
        dtype_out=dtypes.half,
        opts=("u0", "u0", "u1", "u1"),
        swizzle=(
            ((), ("u2", "u3", "r0", "r1"), ("u0", "u1", "r2", "r3", "r4")),
            ((), ("u0", "u1", "r0", "r1"), ("u2", "u3", "r2", "r3", "r4")),
        ),
    )
    monkeypatch.setattr(KtpuRenderer, "tensor_cores", [core])
    x, w = (Tensor(np.ones((n, 32), np.float16)) for n in (16, 32))
    with Context(NOOPT=0), pytest.raises(KernelOptError, match="locals needed"):
        x.dot(w.T, dtype=dtypes.half).realize()


def test_optimised_nest_runs_on_the_host(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A nest tinygrad unrolled is right, and the schedule says why it is not on the device."""
    x, w = (np.random.default_rng(n).standard_normal((n, 32)).astype(np.float16) for n in (16, 24))
    with Context(NOOPT=0):
        got = (Tensor(x) @ Tensor(w).T).numpy()
    assert device.schedule[-1].where == "host"
    assert "NOOPT" in device.schedule[-1].reason
    np.testing.assert_allclose(got, x.astype(np.float64) @ w.astype(np.float64).T, rtol=2**-8, atol=2**-8)


# ---------------------------------------------------------------------- registration


def test_no_file_of_tinygrad_is_written_or_replaced(device: ktpu_tinygrad.KTPUDevice) -> None:
    """tinygrad's own look-up finds the class in ``sys.modules``; its runtime folder has no such module."""
    assert Device.get_class("KTPU") is ktpu_tinygrad.KTPUDevice
    assert not (Path(tinygrad.__file__).parent / "runtime" / "ops_ktpu.py").exists()
    assert type(Device) is tinygrad.device._Device
    assert "get_class" not in vars(Device)


def test_found_by_name_in_a_new_process() -> None:
    """``DEV=KTPU`` and an import are enough; KTPU_TARGET names the target."""
    code = (
        "import ktpu_tinygrad, tinygrad; "
        "y = (tinygrad.Tensor([[1.0, 2.0]], dtype='half') * 3).numpy(); "
        "d = tinygrad.Device['KTPU']; print(y.tolist(), d.target, d.stats()['device_ops'])"
    )
    path = ":".join(str(ROOT / p) for p in ("compiler", "driver"))
    env = {"PYTHONPATH": path, "DEV": "KTPU", "KTPU_TARGET": "model:mm_mesh", "PARALLEL": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[[3.0, 6.0]] model:mm_mesh 1", done.stderr


def test_target_of_an_open_device_is_fixed(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Another target needs another number."""
    assert ktpu_tinygrad.open() is device
    assert ktpu_tinygrad.open("model") is ktpu_tinygrad.open("model:mm_store") is device
    with pytest.raises(CompileError, match=r"KTPU is open on .*, not on model:mm_mesh; open\(.*index=1\)"):
        ktpu_tinygrad.open("model:mm_mesh")


def test_two_devices(device: ktpu_tinygrad.KTPUDevice) -> None:
    """KTPU:1 has a target and a schedule of its own; a copy goes through the host."""
    x = np.arange(32, dtype=np.float16).reshape(2, 16)
    other = ktpu_tinygrad.open("model:mm_mesh", index=1)
    y = Tensor(x, device="KTPU:1") + 1
    assert y.device == "KTPU:1"
    y.realize()
    begin = len(device.schedule)
    z = y.to("KTPU") * 2
    np.testing.assert_array_equal(z.numpy(), (x + 1) * 2)
    assert (len(other.schedule), len(device.schedule) - begin) == (1, 1)


def test_unknown_target() -> None:
    """A target that does not open is an error, and is not remembered as open."""
    with pytest.raises(ktpu.TargetError):
        ktpu_tinygrad.open("model:nowhere", index=7)


def test_use_gives_back_what_it_set() -> None:
    """DEV is what it was, also after an error."""
    before = str(DEV)
    with pytest.raises(RuntimeError), ktpu_tinygrad.use():
        raise RuntimeError
    assert str(DEV) == before


# ---------------------------------------------------------------------- schedule


def test_schedule_and_counts(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Every kernel is a line with its place; counts and names are those of the lines."""
    device.schedule.clear()
    before = device.stats()["counters"]["calls"]
    x = Tensor(np.ones((16, 32), np.float16))
    (x.sin() + 1).realize()
    (x @ x.T).relu().realize()
    x.softmax().realize()
    assert [r.where for r in device.schedule] == ["host", "device", "device", "device", "device"]
    shown = [str(r).split() for r in device.schedule]
    assert shown[0][:2] == ["host", "E_512"]
    assert shown[1] == ["device", "r_16_16_32", "linear_relu", "[16,", "16]"]
    stats = device.stats()
    assert (stats["device_ops"], stats["host_ops"]) == (4, 1)
    assert stats["host_kernels"] == {"E_512": 1}
    assert stats["device_kernels"] == {"linear_relu": 1, "fold": 2, "chain": 1}
    assert stats["counters"]["calls"] - before == 4


def test_values_stay_on_the_device(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A chain of kernels reads nothing back and sends each input once."""
    x, w = (Tensor(np.full((n, 32), 0.5, np.float16)).realize() for n in (16, 48))
    before = device.arrays.stats()
    h = (x @ w.T).relu().realize()
    s = h.softmax().realize()
    (s * h).realize()
    after = device.arrays.stats()
    assert after["downloads"] == before["downloads"]
    assert after["uploads"] - before["uploads"] == 2


def test_what_fp16_cannot_hold_goes_to_the_host(device: ktpu_tinygrad.KTPUDevice) -> None:
    """An infinite operand cannot be sent; the host computes with it and the reason is in the schedule."""
    x = Tensor(np.array([[np.inf, 1.0]], np.float16))
    assert (x + 1).numpy().tolist() == [[np.inf, 2.0]]
    assert device.schedule[-1].where == "host"
    assert "scale it first" in device.schedule[-1].reason


# ---------------------------------------------------------------------- listings


def test_listing_and_its_text() -> None:
    """The text is read back as it was, and a line that reads a later one is refused."""
    listing = Listing("k", (Line("const", "float", value=0.5), Line("sin", "float", (0,))), "UNROLL(0, 4)")
    assert parse(listing.text()) == listing
    assert KtpuCompiler().compile(listing.text()) == listing.text().encode()
    later = Listing("k", (Line("sin", "float", (1,)), Line("const", "float", value=0.5)))
    with pytest.raises(TinygradError, match="does not come before it"):
        KtpuCompiler().compile(later.text())


def test_compiler_keeps_nothing_on_disk() -> None:
    """No entry of a cache in the home directory."""
    assert KtpuCompiler().cachekey is None


# ---------------------------------------------------------------------- buffers


@pytest.fixture(scope="module")
def arrays() -> Iterator[ktpu.TensorDevice]:
    """A machine without tinygrad."""
    with ktpu.open("model") as opened:
        yield opened


def filled(values: np.ndarray) -> Storage:
    """A buffer with these values."""
    storage = Storage.new(values.nbytes)
    storage.write()[:] = values.astype(np.float16).tobytes()
    return storage


def halves(storage: Storage) -> list[float]:
    """The values of a buffer, as tinygrad copies them out."""
    return [float(v) for v in np.frombuffer(bytes(storage.read()), np.float16)]


def test_array_of_a_buffer_is_made_once(arrays: ktpu.TensorDevice) -> None:
    """The same operand again is the same array; after a write it is another one."""
    storage = filled(np.arange(32, dtype=np.float16))
    operand = Operand(0, FULL, (2, 16))
    first = storage.array(operand, arrays)
    assert storage.array(operand, arrays) is first
    storage.write()[:2] = np.float16(9).tobytes()
    assert storage.array(operand, arrays).numpy()[0, 0] == 9
    assert first.numpy()[0, 0] == 0


def test_result_is_read_through_parts(arrays: ktpu.TensorDevice) -> None:
    """A result replaces the bytes it covers and no other; a part of the buffer sees it."""
    storage = filled(np.zeros(64, np.float16))
    middle = storage.part(32, 64)
    middle.put(arrays.tensor(np.full((2, 16), 3.0)), column=False)
    assert halves(storage) == [0.0] * 16 + [3.0] * 32 + [0.0] * 16


def test_write_over_half_of_a_result(arrays: ktpu.TensorDevice) -> None:
    """The other half is brought to the host before the array is dropped."""
    storage = filled(np.zeros(32, np.float16))
    storage.put(arrays.tensor(np.full((2, 16), 3.0)), column=False)
    storage.part(0, 32).put(arrays.tensor(np.full((1, 16), 5.0)), column=False)
    assert halves(storage) == [5.0] * 16 + [3.0] * 16
    storage.put(arrays.tensor(np.full((2, 16), 7.0)), column=False)
    storage.part(32, 32).write()[:2] = np.float16(1).tobytes()
    assert halves(storage) == [7.0] * 16 + [1.0] + [7.0] * 15


def test_column_of_a_result(arrays: ktpu.TensorDevice) -> None:
    """A fold leaves its value in every element of a row; the buffer holds one of each row."""
    storage = filled(np.zeros(2, np.float16))
    storage.put(arrays.tensor(np.repeat([[4.0], [6.0]], 16, axis=1)), column=True)
    assert halves(storage) == [4.0, 6.0]

# SPDX-License-Identifier: Apache-2.0
"""Arrays that stay on a device, on the reference model (docs/spec/compiler.md 7.4, 8.1, 13.1)."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest

import ktpu
from kohakudriver import Device, DriverError
from kohakudriver.generated import ADDRESS_MAP
from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.model.transport import ModelTransport
from kohakutpu.schedule.ir import Buffer, Schedule
from kohakutpu.tensor import Call
from ktpu.devices import description
from ktpu.language import In, Out, dims, kernel
from ktpu.runtime_bind import places

pytestmark = pytest.mark.unit

MACHINE = "mm_store"
M, N = dims("M, N")
F16 = npt.NDArray[np.float16]


@pytest.fixture
def dev() -> Iterator[ktpu.TensorDevice]:
    """A model of the default machine."""
    with ktpu.open("model") as device:
        yield device


@pytest.fixture(params=["mm_store", "mm_mesh"])
def each(request: pytest.FixtureRequest) -> Iterator[ktpu.TensorDevice]:
    """Models that turn tiles into rows in their mover, and on their vector core."""
    with ktpu.open(f"model:{request.param}") as device:
        yield device


def values(seed: int, *shape: int, scale: float = 1.0) -> F16:
    """Normal values in FP16."""
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float16)


def alone(call: Call, machine: str = MACHINE) -> F16:
    """The result of a call on values of the host: compiled, run and read back without anything that stays."""
    program = ktpu.compile(call, ktpu.machine(machine))
    device = Device(ModelTransport(description(machine)))
    assert not device.run(program.artifact).failed
    (out,) = program.artifact.outputs
    return ktpu.read_output(out, device.read(out.address, out.nbytes))


def same(got: F16, want: F16) -> bool:
    """Equal bit for bit."""
    return got.shape == want.shape and bool((got.view(np.uint16) == want.view(np.uint16)).all())


class Counting(ModelTransport):
    """Counts what the host reads and writes."""

    def __init__(self) -> None:
        super().__init__(description(MACHINE))
        self.reads = self.writes = 0

    def mem_write(self, address: int, data: bytes) -> None:
        self.writes += 1
        super().mem_write(address, data)

    def mem_read(self, address: int, n: int) -> bytes:
        self.reads += 1
        return super().mem_read(address, n)


# -- operators --

OPERATORS: dict[str, tuple[Callable[..., ktpu.Tensor], Callable[..., Call], Callable[..., npt.NDArray[np.float64]]]] = {
    "matmul": (lambda x, y: x @ y, ktpu.matmul, lambda x, y: x @ y.T),
    "add": (lambda x, y: x + y, ktpu.add, lambda x, y: x + y),
    "sub": (lambda x, y: x - y, lambda x, y: ktpu.elementwise({"a": x, "b": y}, [("sub", ("a", "b"))]), np.subtract),
    "mul": (lambda x, y: x * y, ktpu.mul, lambda x, y: x * y),
    "relu": (lambda x, y: x.relu(), lambda x, y: ktpu.relu(x), lambda x, y: np.maximum(x, 0)),
    "silu": (lambda x, y: x.silu(), lambda x, y: ktpu.silu(x), lambda x, y: x / (1 + np.exp(-x))),
    "sigmoid": (lambda x, y: x.sigmoid(), lambda x, y: ktpu.sigmoid(x), lambda x, y: 1 / (1 + np.exp(-x))),
    "exp": (lambda x, y: x.exp(), lambda x, y: ktpu.exp(x), lambda x, y: np.exp(x)),
    "softmax": (
        lambda x, y: x.softmax(),
        lambda x, y: ktpu.softmax(x),
        lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    ),
    "linear": (
        lambda x, y: x.linear(y, y[:, 0], activation="silu"),
        lambda x, y: ktpu.linear(x, y, bias=y[:, 0], activation="silu"),
        lambda x, y: (v := x @ y.T + y[:, 0]) / (1 + np.exp(-v)),
    ),
}
PEAK_ERROR = 0.03
"""Of the largest value; MXFP7 keeps seven bits of an operand."""


@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_is_its_kernel(dev: ktpu.TensorDevice, name: str) -> None:
    """Fluent and kernel form give the same bits, near to numpy."""
    fluent, call, exact = OPERATORS[name]
    x, y = values(1, 32, 32), values(2, 32, 32)
    got = fluent(ktpu.tensor(x, dev), ktpu.tensor(y, dev) if name == "matmul" else y).numpy()
    assert same(got, alone(call(x, y)))
    (run,) = ktpu.run(call(x, y), dev).values()
    assert same(got, run)
    want = exact(x.astype(float), y.astype(float))
    assert np.abs(got - want).max() < PEAK_ERROR * np.abs(want).max()


def test_numbers_rows_and_the_left_side(dev: ktpu.TensorDevice) -> None:
    """Numbers and arrays of the host on either side, and one row that every row reads."""
    x, row = values(3, 5, 32), values(4, 32)
    t = ktpu.tensor(x, dev)
    exact = x.astype(float)
    for got, want in [
        (2 * t - 1, 2 * exact - 1),
        (3 - t, 3 - exact),
        (t / 4, exact / 4),
        (1 / (t * t + 1), 1 / (exact**2 + 1)),
        (-t, -exact),
        (t + row, exact + row),
        (row - t, row - exact),
        (np.float64(2) * t, 2 * exact),
        (x @ t, exact @ exact.T),
    ]:
        assert np.abs(got.numpy() - want).max() <= PEAK_ERROR * np.abs(want).max()
        assert got.shape == want.shape


def test_any_rank(dev: ktpu.TensorDevice) -> None:
    """Leading axes are rows; a result has the axes of its operand."""
    x, w = values(5, 2, 3, 4, 32), values(6, 16, 32)
    y = ktpu.tensor(x, dev) @ ktpu.tensor(w, dev)
    assert (y.shape, y.ndim, y.nbytes) == ((2, 3, 4, 16), 4, 768)
    assert y.dtype == np.float16
    assert same(y.numpy().reshape(24, 16), alone(ktpu.matmul(x.reshape(24, 32), w)))
    flat = ktpu.tensor(values(7, 40), dev)
    assert same(flat.relu().numpy(), np.maximum(values(7, 40), 0))


def test_rows_wider_than_one_reduction(dev: ktpu.TensorDevice) -> None:
    """Softmax and norms of wide rows go to the kernels that fold parts of a row; the array is in tiles."""
    x, w = values(1, 4, 32), values(2, 160, 32, scale=0.3)
    y = ktpu.tensor(x, dev) @ ktpu.tensor(w, dev)
    v = y.numpy().astype(float)
    gain, shift = values(3, 160), values(4, 160)
    d = (v - v.mean(1, keepdims=True)) / np.sqrt(v.var(1, keepdims=True) + 1e-5)
    for got, want in [
        (y.softmax(), np.exp(v - v.max(1, keepdims=True)) / np.exp(v - v.max(1, keepdims=True)).sum(1, keepdims=True)),
        (y.layernorm(gain, shift), d * gain + shift),
        (y.rmsnorm(gain), v / np.sqrt((v**2).mean(1, keepdims=True) + 1e-5) * gain),
    ]:
        assert np.abs(got.numpy() - want).max() < 0.01 * np.abs(want).max()
    assert same(y.reshape(2, 2, 160).softmax().numpy().reshape(4, 160), alone(ktpu.softmax(y.numpy())).reshape(4, 160))


def test_batched_products(dev: ktpu.TensorDevice) -> None:
    """Block by block with a right operand of three axes, also where an operand was computed on the device."""
    x, w = values(1, 3, 16, 32), values(2, 3, 16, 32)
    a, b = ktpu.tensor(x, dev).relu(), ktpu.tensor(w, dev)
    got = a @ b
    want = np.stack([alone(ktpu.matmul(np.maximum(x[i], 0), w[i])) for i in range(3)])
    assert same(got.numpy(), want)
    with pytest.raises(CompileError, match="batch"):
        a @ b.reshape(1, 48, 32)


def test_reshape(dev: ktpu.TensorDevice) -> None:
    """Extents that keep the last axis share everything; others bring tiles into rows on the device."""
    x, w = values(8, 8, 64), values(9, 32, 64)
    y = ktpu.tensor(x, dev) @ ktpu.tensor(w, dev)
    want = y.numpy()
    before = dev.stats()
    assert same(y.reshape(2, 4, 32).numpy(), want.reshape(2, 4, 32))
    assert dev.stats()["moves"] == before["moves"]
    assert same(y.reshape(4, -1).numpy(), want.reshape(4, 64))
    assert same(y.reshape((16, 16)).relu().numpy(), np.maximum(want.reshape(16, 16), 0))
    assert dev.stats()["relayouts_device"] == 1
    with pytest.raises(CompileError, match=r"reshape of \(8, 32\) to \(7, 32\): 256 elements stay 256"):
        y.reshape(7, 32)


# -- byte orders on the device --

CHAINS = [
    *((32, 32, 64), (33, 48, 64), (7, 16, 40), (64, 128, 96)),
    *((5, 20, 32), (100, 36, 70), (1, 64, 32), (130, 80, 33)),
]


@pytest.mark.parametrize(("m", "n", "k"), CHAINS)
def test_a_product_of_a_product(each: ktpu.TensorDevice, m: int, n: int, k: int) -> None:
    """Tiles, then a pass over tiles, become operands on the device: the bits the host's packing gives."""
    x, w, v = values(m, m, k), values(n, n, k, scale=0.2), values(k, 24, n, scale=0.2)
    hidden = ktpu.tensor(x, each) @ ktpu.tensor(w, each)
    again = hidden.sigmoid()  # its padding is 0.5, which an operand must not hold
    first, second = (hidden @ ktpu.tensor(v, each)), (again @ ktpu.tensor(v, each))
    assert each.stats()["relayouts"] == 0
    assert each.stats()["quantised"] == 2
    assert same(hidden.numpy(), alone(ktpu.matmul(x, w)))
    assert same(again.numpy(), alone(ktpu.sigmoid(hidden.numpy())))
    assert same(first.numpy(), alone(ktpu.matmul(hidden.numpy(), v)))
    assert same(second.numpy(), alone(ktpu.matmul(again.numpy(), v)))


@pytest.mark.parametrize(("m", "n"), [(32, 32), (5, 48), (33, 64), (8, 16)])
def test_rows_become_operands(each: ktpu.TensorDevice, m: int, n: int) -> None:
    """Rows of a softmax as left and right operand of products, padded where the tiling asks for it."""
    x, w = values(m, m, n), values(n, 40, n)
    share = ktpu.tensor(x, each).softmax()
    host = share.numpy()
    assert same(host, alone(ktpu.softmax(x)))
    assert same((share @ ktpu.tensor(w, each)).numpy(), alone(ktpu.matmul(host, w)))
    assert same((ktpu.tensor(w, each) @ share).numpy(), alone(ktpu.matmul(w, host)))


@pytest.mark.parametrize(("m", "n"), [(32, 32), (20, 64), (33, 48), (6, 16)])
def test_side_operands_of_an_epilogue(each: ktpu.TensorDevice, m: int, n: int) -> None:
    """Bias and residual computed on the device: rows to tiles, tiles to tiles, a row to one value a column."""
    x, w = values(m, m, 64), values(n, n, 64, scale=0.2)
    tx, tw = ktpu.tensor(x, each), ktpu.tensor(w, each)
    rows, tiles = ktpu.tensor(values(1, m, n), each).softmax(), tx @ ktpu.tensor(values(2, n, 64), each)
    bias = ktpu.tensor(values(3, 1, n), each).softmax()
    product_bias = ktpu.tensor(values(4, 1, 64), each) @ tw
    for add, b in [(rows, bias), (tiles, product_bias.reshape(n))]:
        got = tx.linear(tw, b, add=add, activation="relu").numpy()
        want = ktpu.linear(x, w, bias=b.numpy(), add=add.numpy(), activation="relu")
        assert same(got, alone(want))
    assert each.stats()["relayouts"] == 0


@kernel
def nearly_zero(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
    """At 0 it is 0 by the formula, not by the machine's reciprocal."""
    y <<= 1 / (x + 11) * 11 - 1


def test_tiles_that_are_not_clean(each: ktpu.TensorDevice) -> None:
    """Columns that end inside a sub-tile whose padding is not zero are refused as an operand, not read."""
    x = ktpu.tensor(values(1, 8, 32), each)
    y = (x @ ktpu.tensor(values(2, 18, 32), each)).exp()
    with pytest.raises(CompileError, match="what stands behind its 18 columns is not zero"):
        y @ ktpu.tensor(values(3, 8, 18), each)
    assert np.isfinite(y.numpy()).all()
    (near,) = each.call(nearly_zero, x @ ktpu.tensor(values(2, 18, 32), each))
    with pytest.raises(CompileError, match="what stands behind its 18 columns is not zero"):
        near @ ktpu.tensor(values(3, 8, 18), each)


def test_a_machine_that_cannot_turn_tiles() -> None:
    """Without vector core and transpose a second product is refused with the way out; what is possible works."""
    with ktpu.open("model:mesh_duo") as dev:
        x, w = values(1, 16, 32), values(2, 32, 32)
        y = ktpu.tensor(x, dev) @ ktpu.tensor(w, dev)
        assert same(y.numpy(), alone(ktpu.matmul(x, w), "mesh_duo"))
        with pytest.raises(CompileError, match=r"matmul.c#\d+ \(16, 32\) from tile.*machine mesh_duo has neither"):
            y @ ktpu.tensor(w, dev)


def test_nothing_goes_to_the_host_inside_a_network() -> None:
    """Four calls in a row: the host writes each operand once and reads the result once."""
    transport = Counting()
    dev = ktpu.TensorDevice("model:counted", transport)
    x, w, v = (ktpu.tensor(values(i, 32, 32), dev) for i in range(3))
    y = ((x @ w).relu() @ v).softmax()
    assert (transport.reads, transport.writes) == (0, 3)
    y.numpy()
    assert (transport.reads, transport.writes) == (1, 3)


# -- caches --


def test_a_second_call_compiles_nothing(dev: ktpu.TensorDevice) -> None:
    """Same kernel, extents and options: no plan; same places too: no link."""
    w = ktpu.tensor(values(1, 32, 64), dev)
    for seed in range(4):
        x = ktpu.tensor(values(seed, 16, 64), dev)
        y = x @ w
        del y
    stats = dev.stats()
    assert (stats["calls"], stats["compiled"], stats["linked"]) == (4, 1, 1)
    _ = ktpu.tensor(values(9, 20, 64), dev) @ w
    assert dev.stats()["compiled"] == 2


def test_a_weight_is_quantised_once(dev: ktpu.TensorDevice) -> None:
    """By the host if it came from there, by the mover if it was computed."""
    x = ktpu.tensor(values(0, 32, 64), dev)
    w = ktpu.tensor(values(1, 32, 64), dev)
    _ = x @ w, x @ w
    assert (dev.stats()["packed"], dev.stats()["quantised"]) == (2, 0)
    made = w * 2
    _ = x @ made, x @ made
    assert (dev.stats()["packed"], dev.stats()["quantised"]) == (2, 1)


def test_constants_do_not_collide(dev: ktpu.TensorDevice) -> None:
    """A number of a chain is part of what a plan is kept under."""
    x = ktpu.tensor(values(0, 4, 16), dev)
    assert same((x * 2).numpy(), 2 * x.numpy())
    assert same((x * 4).numpy(), 4 * x.numpy())


# -- memory --


def used(dev: ktpu.TensorDevice) -> float:
    memory = dev.stats()["memory"]
    assert isinstance(memory, dict)
    return float(memory["dram"]["used"])


def test_memory_is_freed_with_its_array(dev: ktpu.TensorDevice) -> None:
    """Nothing stays when the arrays are gone; an array keeps what it shares."""
    x = ktpu.tensor(values(0, 64, 64), dev)
    y = (x @ x).reshape(32, 128)
    del x
    kept = y.numpy()
    assert used(dev) > 0
    _ = ktpu.tensor(values(1, 64, 64), dev).relu()
    assert same(y.numpy(), kept)
    del y, _
    gc.collect()
    assert used(dev) == 0
    assert dev.stats()["arrays"] == 0


def test_empty_cache_keeps_values(dev: ktpu.TensorDevice) -> None:
    """Operand forms go unless the array is pinned; values stay."""
    x, w = ktpu.tensor(values(0, 32, 64), dev), ktpu.tensor(values(1, 32, 64), dev).pin()
    y = x @ w
    want = y.numpy()
    z = y @ y
    before = used(dev)
    dev.empty_cache()
    assert used(dev) < before
    assert same(y.numpy(), want)
    packed = dev.stats()["packed"]
    assert same((x @ w).numpy(), want)
    assert dev.stats()["packed"] == packed + 1  # type: ignore[operator]
    dev.sync()
    before = used(dev)
    w.unpin()
    dev.empty_cache()
    assert used(dev) < before - w.nbytes // 2
    assert z.shape == (32, 32)


@pytest.mark.filterwarnings("error")
def test_a_reset_begins_an_epoch(dev: ktpu.TensorDevice) -> None:
    """Arrays made before refuse to be read; their end frees nothing of the new epoch."""
    old = [ktpu.tensor(values(0, 32, 32), dev, name="x")]
    old.append(old[0] @ old[0])
    dev.reset()
    uses: list[Callable[[ktpu.Tensor], object]] = [ktpu.Tensor.numpy, ktpu.Tensor.relu, lambda t: t.reshape(64, 16)]
    for number, use in itertools.product((0, 1), uses):
        with pytest.raises(CompileError, match="made before the device was reset"):
            use(old[number])
    fresh = ktpu.tensor(values(1, 32, 32), dev).relu()
    want = fresh.numpy()
    old.clear()
    assert same((fresh * 1).numpy(), want)
    assert same(fresh.numpy(), want)


def test_a_full_memory_says_what_fills_it() -> None:
    """Forms that can be made again go first; then the message names the largest arrays and the fix."""
    with ktpu.open("model", span=(0, 40 << 10)) as dev:
        x, ys = ktpu.tensor(values(9, 32, 128), dev), [ktpu.tensor(values(seed, 48, 128), dev) for seed in range(5)]
        x @ x
        big = ktpu.tensor(values(0, 64, 128), dev, name="big").relu()
        for y in ys:  # the left operand is cached, at the lowest place, until a right one finds no room
            assert same((x @ y).numpy(), alone(ktpu.matmul(x.numpy(), y.numpy())))
        assert dev.stats()["evicted"] > 0  # type: ignore[operator]
        with pytest.raises(CompileError, match=r"relu.y 16384.*delete arrays") as full:
            ktpu.tensor(values(1, 256, 128), dev, name="huge").relu()
        assert "huge (256, 128): 65536 bytes do not fit" in str(full.value)
        assert big.shape == (64, 128)


def test_spans_of_two_devices_must_not_overlap(dev: ktpu.TensorDevice) -> None:
    """A second device on the same machine needs bytes of its own."""
    with pytest.raises(CompileError, match="overlap"):
        ktpu.TensorDevice("second", dev.transport)
    dev.close()
    assert ktpu.TensorDevice("second", dev.transport).runtime.memory.shared() is False
    low = ktpu.TensorDevice("low", ModelTransport(description(MACHINE)), (0, 1 << 20))
    high = ktpu.TensorDevice("high", low.transport, (1 << 20, 1 << 20))
    x = values(0, 16, 32)
    a, b = low.tensor(x).relu(), high.tensor(-x).relu()
    assert same(a.numpy(), np.maximum(x, 0))
    assert same(b.numpy(), np.maximum(-x, 0))


def test_a_program_of_fixed_places_spares_live_arrays(dev: ktpu.TensorDevice) -> None:
    """An artifact that would overwrite an array is refused, and runs when the array is gone."""
    x = values(0, 16, 32)
    program = ktpu.compile(ktpu.matmul(x, x), ktpu.machine(MACHINE))
    y = ktpu.tensor(x, dev).relu()
    with pytest.raises(DriverError, match=r"the program writes where relu\.y lives"):
        dev.run(program.artifact)
    assert same(y.numpy(), np.maximum(x, 0))
    del y
    gc.collect()
    assert not dev.run(program.artifact).failed


def test_blocks_keep_what_shares_bytes_and_what_is_adjacent() -> None:
    """Operands move alone; overlapping buffers and groups move as one, with their distances; nothing else does."""
    spec = ktpu.machine(MACHINE)
    store = ADDRESS_MAP["staging"][0]
    table = [
        *(("x", "in", 0, 2048), ("y", "out", 2048, 2048), ("t", "temp", 4096, 8192), ("u", "temp", 6144, 2048)),
        *(("p", "out", 12288, 2048), ("q", "out", 14336, 4096), ("s", "temp", store + 256, 512)),
    ]
    buffers = {n: Buffer(n, role, "flat", at, size, (1, size // 2)) for n, role, at, size in table}
    schedule = Schedule(MACHINE, buffers, (), (), 1)
    found = places(schedule, spec, [("p", "q")])
    assert [b.name for b in found.operands] == ["x"]
    assert [(dict(b.offsets), b.nbytes, b.tier, b.results) for b in found.blocks] == [
        ({"y": 0}, 2048, "dram", ("y",)),
        ({"t": 0, "u": 2048}, 8192, "dram", ()),
        ({"p": 0, "q": 2048}, 6144, "dram", ("p", "q")),
        ({"s": 0}, 512, "l2", ()),
    ]
    with pytest.raises(CompileError, match=r"adjacent\(x, y\): \['x'\] are operands"):
        places(schedule, spec, [("x", "y")])


# -- kernels of the language --


def test_a_kernel_of_the_language_on_device_arrays(dev: ktpu.TensorDevice) -> None:
    """Called on arrays of the device it gives the operator's bits, with the axes of its ports."""
    x, w = values(0, 2, 16, 64), values(1, 32, 64)
    tx, tw = ktpu.tensor(x, dev), ktpu.tensor(w, dev)
    (y,) = dev.call(library.matmul, tx, tw)
    assert y.shape == (2, 16, 32)
    assert same(y.numpy(), (tx @ tw).numpy())
    (z,) = dev.call(library.matmul, y, ktpu.tensor(values(2, 8, 32), dev))
    assert same(z.numpy().reshape(32, 8), alone(ktpu.matmul(y.numpy().reshape(32, 32), values(2, 8, 32))))
    assert same(ktpu.run(ktpu.call(library.matmul, tx, w), dev)["c"], y.numpy())


def test_attention_on_device_arrays(dev: ktpu.TensorDevice) -> None:
    """A kernel of several products: operands computed, sent and conversions inside of it, all counted."""
    q, k, v = (values(i, 2, 64, 64) for i in range(3))
    computed = ktpu.tensor(q, dev) * 0.5
    (o,) = dev.call(library.flash_attention, computed, ktpu.tensor(k, dev), ktpu.tensor(v, dev))
    call = ktpu.call(library.flash_attention, computed.numpy(), k, v)
    assert same(o.numpy().reshape(128, 64), alone(call).reshape(128, 64))
    inside = ktpu.compile(call, ktpu.machine(MACHINE)).artifact.meta["counters"]["quantised"]
    stats = dev.stats()
    assert (stats["quantised"], stats["packed"], stats["relayouts"]) == (1 + inside, 2, 0)


# -- refusals --


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda d, x: x @ ktpu.tensor(values(0, 4, 16), d), "both contract their last axis, so K must agree"),
        (lambda d, x: x + ktpu.tensor(values(0, 4, 32), d), r"add of \(8, 32\) and \(4, 32\); both have one shape"),
        (lambda d, x: x.linear(values(0, 2, 4, 32)), "weight has 3 axes"),
        (lambda d, x: x / 0, "division by the number 0"),
        (lambda d, x: x * float("inf"), "inf is no number"),
        (lambda d, x: ktpu.tensor([1e6, 1.0], d), "holds 1 values beyond 65504"),
        (lambda d, x: ktpu.tensor(np.array([1j]), d), "is complex128; an operand holds real numbers"),
        (lambda d, x: ktpu.tensor(np.float16(1), d), "has 0 axes"),
        (lambda d, x: ktpu.tensor(np.zeros((0, 4)), d), "every extent must be at least 1"),
        (lambda d, x: ktpu.tensor(x, d), "lives on a device already"),
        (lambda d, x: ktpu.tensor([1.0], str(d)), "a tensor lives on a device"),  # type: ignore[arg-type]
        (lambda d, x: x @ ktpu.tensor(values(0, 4, 32), ktpu.open("model")), "lives on device model:mm_store, the"),
        (lambda d, x: ktpu.compile(ktpu.relu(x), ktpu.machine(MACHINE)), "operand x lives on device model:mm_store"),
    ],
)
def test_refusals(dev: ktpu.TensorDevice, use: Callable[..., object], message: str) -> None:
    """In the terms of who made the mistake."""
    with pytest.raises(CompileError, match=message):
        use(dev, ktpu.tensor(values(1, 8, 32), dev))

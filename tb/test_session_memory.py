# SPDX-License-Identifier: Apache-2.0
"""Memory window, staging store and mover of a whole machine on RTL, beside the model (docs/spec/memory.md 9 to 13)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ktpu
from kohakuabi import Artifact, Await, Barrier, Image, Kick, Move, Output, Seed, Step
from kohakubench.programs import reference
from kohakudriver import Device, DriverError
from kohakudriver.registers import address
from kohakutpu.isa import cluster, mover
from kohakutpu.isa.address import staging
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.moves import encode
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import Flat, MxEntry, Tile
from kohakutpu.walks import Dim, Walk, contiguous
from ktpu.replay import replay

pytestmark = pytest.mark.system

NODE = (2, 1)
SIDE, DEPTH = 32, 64
X_AT, W_AT, OUT_AT = 0x1_0000, 0x2_0000, 0x8_0000
A_AT, B_AT, COPY_AT, NOISE_AT = staging(0), staging(0x1000), staging(0x4000), staging(0x1F_F000)


@pytest.fixture(scope="module")
def rtl() -> Iterator[Device]:
    device = ktpu.open("rtl:mm_mesh", dram={"lat_min": 5, "lat_max": 50})
    yield device
    device.close()


@pytest.fixture(scope="module")
def machine() -> MachineSpec:
    return ktpu.machine("mm_mesh")


def matrices() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    x, w = rng.standard_normal((SIDE, DEPTH)), rng.standard_normal((SIDE, DEPTH)) / 8
    return x.astype(np.float16), w.astype(np.float16)


def program(machine: MachineSpec) -> Artifact:
    """Rows in DRAM to entries in the staging store, a product from there, its result through every other mode."""
    x, w = matrices()
    a = conversion(Placed(Flat(), X_AT, x.shape), Placed(MxEntry(8, 2, "a"), A_AT, x.shape), machine)
    b = conversion(Placed(Flat(), W_AT, w.shape), Placed(MxEntry(8, 2, "b"), B_AT, w.shape), machine)
    product = (
        cluster.encode("FILL", n=16, addr=A_AT),
        cluster.encode("FILL", n=16, addr=B_AT, sel=1),
        cluster.encode("GEMM", gm=8, gn=8, nk=2),
        cluster.encode("DRAIN", n=64, addr=OUT_AT),
    )
    turned = Walk(OUT_AT, (Dim(8, 32), Dim(8, 256)))
    bounded = Walk(COPY_AT + 4096, (Dim(10, 320, 1, 1), Dim(10, 32, 2, 1)), ((-1, 8), (-1, 8)))
    after = (
        mover.copy(turned, contiguous(COPY_AT, 64)),
        mover.copy(Walk(OUT_AT, (Dim(10, 256), Dim(10, 32))), bounded),
        mover.generate(contiguous(NOISE_AT, 64), 0x0123_4567_89AB_CDEF),
        mover.fill(contiguous(NOISE_AT + 2048, 33), 0xDEAD_BEEF),
        mover.gather(OUT_AT, X_AT, 8, contiguous(NOISE_AT + 3168, 16), pitch=0, words=2),
    )
    steps: tuple[Step, ...] = (
        *(Move(encode(m)) for m in (*a, *b)),
        Seed(machine.credit),
        Kick(*NODE, 0, 4),
        Await(*NODE, 4),
        Barrier(),
        *(Move(m) for m in after[:3]),
        Barrier(),
        *(Move(m) for m in after[3:]),
        Barrier(),
    )
    shape = (SIDE, SIDE)
    tile = Tile(1, 1, 8, 8)
    outputs = (
        Output("y", OUT_AT, 2048, tile.key, shape),
        Output("entries", A_AT, 8192, "flat", (1, 4096)),
        Output("copies", COPY_AT, 8192, "flat", (1, 4096)),
        Output("noise", NOISE_AT, 3680, "flat", (1, 1840)),
    )
    images = (Image(X_AT, x.tobytes(), "x"), Image(W_AT, w.tobytes(), "w"))
    limits = {"stage_flits": machine.stage_flits, "ncmd": machine.ncmd, "credit_max": machine.credit}
    return Artifact("mm_mesh", machine.digest(), product, images, steps, outputs, limits)


def test_moves_and_staging_equal_the_model(rtl: Device, machine: MachineSpec) -> None:
    """Memory of both tiers, traffic, signals and the mover's status after every round; the product is right too."""
    art = program(machine)
    report = replay(art, ktpu.open("model:mm_mesh"), rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    assert len(report.rounds) == 3
    assert report.problems == []
    x, w = matrices()
    y = ktpu.read_output(art.outputs[0], rtl.read(OUT_AT, 2048))
    assert (y.view(np.uint16) == reference(x, w)).all()


def test_a_faulting_move_is_reported_alike(rtl: Device, machine: MachineSpec) -> None:
    """A copy over the end of the staging store: the same fault, record and bytes, and the machine goes on."""
    end = staging((2 << 20) - 128)
    bad = mover.copy(contiguous(X_AT, 8), contiguous(end, 8))
    limits = {"stage_flits": 128, "ncmd": 128, "credit_max": 32}
    outputs = (Output("top", end, 128, "flat", (1, 64)),)
    image = Image(X_AT, bytes(range(256)), "x")
    art = Artifact("mm_mesh", machine.digest(), (), (image,), (Move(bad), Barrier()), outputs, limits)
    report = replay(art, ktpu.open("model:mm_mesh"), rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    assert any("AUX_STAT: mover fault F_RANGE" in p for p in report.problems)
    assert rtl.read(end, 128) == bytes(range(128))
    good = replay(program(machine), ktpu.open("model:mm_mesh"), rtl)
    assert good.agree


def test_upload_and_readback(rtl: Device) -> None:
    """Bytes and strobes through the window in both tiers, counted as the model does; refusals name themselves."""
    rng = np.random.default_rng(3)
    model = ktpu.open("model:mm_mesh")
    names = [address("MEM_DRAMCNT"), address("MEM_STGCNT")]
    before = [device.transport.read64(names) for device in (model, rtl)]
    for at in (0x20_0FE0, staging(0xFC0)):
        data = rng.integers(0, 256, 4096 + 96, dtype=np.uint8).tobytes()
        kept = rng.integers(0, 2, len(data), dtype=np.uint8).tobytes()
        for device in (model, rtl):
            device.upload(at, data)
            device.upload(at, bytes(reversed(data)), kept)
        assert rtl.readback(at, len(data)) == model.readback(at, len(data))
    after = [device.transport.read64(names) for device in (model, rtl)]
    counted = [[y - x for x, y in zip(a, b, strict=True)] for a, b in zip(before, after, strict=True)]
    assert counted[0] == counted[1]
    for at in (staging(2 << 20), 1 << 38, staging(0, 1)):
        for device in (model, rtl):
            with pytest.raises(DriverError, match="DECERR"):
                device.readback(at, 64)
            with pytest.raises(DriverError, match="DECERR"):
                device.upload(at, bytes(32))
    window = rtl.transport
    assert window.window_read(3 << 40, 32) == (bytes(32), 3)  # type: ignore[attr-defined]
    assert window.window_write(3 << 40, bytes(32)) == 3  # type: ignore[attr-defined]


def test_a_program_through_the_window_alone(rtl: Device, machine: MachineSpec) -> None:
    """No back door: images and results cross the machine's own port."""
    rng = np.random.default_rng(11)
    a, b = rng.standard_normal((40, 64)), rng.standard_normal((24, 64)) / 8
    compiled = ktpu.compile(ktpu.matmul(a, b), machine)
    rtl.window = True
    try:
        assert not rtl.run(compiled.artifact).failed
        (out,) = compiled.artifact.outputs
        bits = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    finally:
        rtl.window = False
    assert (bits == reference(a, b)).all()

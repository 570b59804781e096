# SPDX-License-Identifier: Apache-2.0
"""Driver: host memory window, staging store, L2 adapters, moves of a round (docs/spec/memory.md 9 to 12)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ktpu
from kohakuabi import Artifact, ArtifactError, Barrier, Image, Kick, Move, Output, Round, Seed
from kohakuabi.commands import MOVER_CTRL, MOVER_END, MOVER_GO, MOVER_LATCHED, MOVER_SEQUENCE
from kohakuabi.steps import Await
from kohakubench import machine_top
from kohakubench.programs import description, operands, result, spec
from kohakudriver import Device, DriverError
from kohakudriver import generated as g
from kohakudriver.memory import HostWindow
from kohakudriver.registers import address
from kohakutpu.isa import address as place
from kohakutpu.isa import cluster, generated, mover, registers
from kohakutpu.mesh import axi, find, load
from kohakutpu.mesh.verilog import top_ports
from kohakutpu.model.transport import ModelTransport
from kohakutpu.walks import contiguous

pytestmark = pytest.mark.unit

STAGE = place.staging(0)
STAGE_BYTES = 2 << 20
NODE = (2, 1)


def device(**changed: Any) -> Device:
    return Device(ModelTransport(description(1, stage_bytes=STAGE_BYTES, **changed)))


def counts(dev: Device, name: str) -> tuple[int, int]:
    """(read, written) words."""
    (value,) = dev.transport.read64([address(name)])
    return value & 0xFFFF_FFFF, value >> 32


@pytest.mark.parametrize("at", [0, 0x1000 - 32, STAGE, STAGE + STAGE_BYTES - 3 * 4096])
def test_upload_and_readback(at: int) -> None:
    """Any length, cut at pages, in both tiers; the machine counts it, the back door sees it."""
    dev = device()
    data = bytes((i * 37 + i // 251) & 255 for i in range(3 * 4096 - 64))
    dev.upload(at, data)
    assert dev.read(at, len(data)) == data
    assert dev.readback(at, len(data)) == data
    words = len(data) // 32
    mine, other = ("MEM_STGCNT", "MEM_DRAMCNT") if at >= STAGE else ("MEM_DRAMCNT", "MEM_STGCNT")
    assert counts(dev, mine) == (words, words)
    assert counts(dev, other) == (0, 0)


def test_strobes() -> None:
    dev = device()
    dev.write(STAGE, bytes([1]) * 8192)
    keep = bytes([1, 0, 0, 1] * 2048)
    dev.upload(STAGE, bytes([9]) * 8192, keep)
    assert dev.readback(STAGE, 8192) == bytes([9, 1, 1, 9] * 2048)
    with pytest.raises(DriverError, match="upload of 64 bytes at 0x0 with 32 strobes"):
        dev.upload(0, bytes(64), bytes(32))


def test_refused_accesses_name_what_was_refused() -> None:
    dev = device()
    for at, message in (
        (STAGE + STAGE_BYTES, "of 32 bytes at 0x8000200000 was answered with DECERR"),
        (1 << 38, "of 32 bytes at 0x4000000000 was answered with DECERR"),
        (STAGE | 1 << 36, "at 0x9000000000 was answered with DECERR"),
        (16, "of 32 bytes at 0x10: whole words of 32 bytes only"),
        ((1 << 40) - 32 + 32, "leaves the 40-bit address space"),
    ):
        with pytest.raises(DriverError, match=f"upload .*{re.escape(message)}"):
            dev.upload(at, bytes(32))
        with pytest.raises(DriverError, match=f"readback .*{re.escape(message)}"):
            dev.readback(at, 32)
    # the page that would be refused does not stop what came before it
    with pytest.raises(DriverError, match="of 4096 bytes at 0x8000200000"):
        dev.upload(STAGE + STAGE_BYTES - 4096, bytes([7]) * 8192)
    assert dev.read(STAGE + STAGE_BYTES - 4096, 4096) == bytes([7]) * 4096


def test_window_of_another_mesh() -> None:
    """The prefix of the host address and the mesh of the inner address both count."""
    window = HostWindow(ModelTransport(description(1, mesh_id=2)))
    window.write(place.dram(64, 2), bytes([5]) * 32)
    assert window.read(place.dram(64, 2), 32) == bytes([5]) * 32
    with pytest.raises(DriverError, match="DECERR"):
        window.read(place.dram(64, 0), 32)


def test_program_without_a_back_door() -> None:
    """Images and results through the window: the same result, and the machine has counted them."""
    compiled = ktpu.compile(ktpu.matmul(*operands(48, 32, 64)), spec(description(1)))
    plain = Device(ModelTransport(description(1)))
    through = Device(ModelTransport(description(1)), window=True)
    results = []
    for dev in (plain, through):
        before = counts(dev, "MEM_DRAMCNT")
        assert not dev.run(compiled.artifact).failed
        results.append(result(dev, compiled))
        after = counts(dev, "MEM_DRAMCNT")
        traffic = (after[0] - before[0], after[1] - before[1])
        if dev is plain:
            machine = traffic
    assert (results[0] == results[1]).all()
    loaded = sum(len(i.data) for i in compiled.artifact.images) // 32
    assert traffic == (machine[0] + compiled.artifact.outputs[0].nbytes // 32, machine[1] + loaded)


@pytest.mark.parametrize(("key", "what"), [("stage_bytes", "staging store"), ("dram_bytes", "DRAM")])
def test_memory_sizes_are_checked(key: str, what: str) -> None:
    """A machine whose memory is not the described one is refused before anything runs on it."""
    transport = ModelTransport(description(1, stage_bytes=STAGE_BYTES))
    have = transport.description[key]
    transport.description = {**transport.description, key: 2 * have}
    with pytest.raises(DriverError, match=f"bytes of .*{what} read as {have}, its description says {2 * have}"):
        Device(transport)


class NoWindow:
    """A transport that has no memory window."""

    def __init__(self, inner: ModelTransport) -> None:
        for name in ("description", "write64", "read64", "mem_write", "mem_read", "wait_done", "signals", "reset"):
            setattr(self, name, getattr(inner, name))


def test_transport_without_a_window() -> None:
    dev = Device(NoWindow(ModelTransport(description(1))))  # type: ignore[arg-type]
    with pytest.raises(DriverError, match="machine hand1 has no memory window on this transport; use write and read"):
        dev.upload(0, bytes(32))


def test_bench_top_of_a_machine_with_a_window(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A top that has the window's ports gets a player on all of them; one that has none gets none."""
    bare = machine_top.write_top("mm_mesh", tmp_path, checked=False).read_text()
    known = top_ports
    extra = [(f"s_axi_mem_{s.name}", s.width, s.forward) for s in axi.signals(40, 256, full=False)]
    ports = {name for name, _, _ in known(load(find("mm_mesh")))}
    monkeypatch.setattr(
        machine_top, "top_ports", lambda m: [p for p in known(m) if not p[0].startswith("s_axi_mem")] + extra
    )
    text = machine_top.write_top("mm_mesh", tmp_path, checked=False).read_text()
    assert ("u_window" in bare) == ("s_axi_mem_awvalid" in ports)
    (player,) = re.findall(r"window_player u_window \((.*)\);", text)
    for name, width, _ in extra:
        wire = name.replace("s_axi_mem_", "window_")
        assert f".{name}({wire})" in text
        assert f".{name.replace('s_axi_mem', 'm_axi')}({wire})" in player
        assert f"wire {f'[{width - 1}:0] ' if width > 1 else ''}{wire};" in text


# ------------------------------------------------------------------ adapters


def test_adapters_are_placed_by_loading() -> None:
    """A program whose operands stand in the near window runs after every reset."""
    dev = device(adapter_lines={"MG": 1024})
    near = place.adapter(0)
    art = Artifact(
        "hand1",
        "",
        (
            cluster.encode("FILL", n=2, addr=STAGE),
            cluster.encode("GEMM", gm=1, gn=1),
            cluster.encode("DRAIN", n=1, addr=near + 64),
            cluster.encode("FILL", n=1, addr=near, sel=1),
        ),
        (Image(STAGE, bytes(range(256)), "a"),),
        (Seed(32), Kick(*NODE, 0, 4), Await(*NODE, 4), Barrier()),
        limits={"stage_flits": 128, "ncmd": 128, "credit_max": 32},
    )
    for _ in range(2):
        done = dev.run(art)
        assert not done.failed, done.problems()
        assert dev.control_read(NODE, g.AdapterIndex.BASE) == near
        assert dev.control_read(NODE, g.AdapterIndex.COUNT) == 5 << 32
        dev.reset()
        assert dev.control_read(NODE, g.AdapterIndex.ENABLE) == 0
    # without its window the same program reads nowhere
    assert dev.run(art, load=False).failed


def test_adapter_that_is_not_what_is_described() -> None:
    dev = device(adapter_lines={"MG": 1024})
    dev.description = {**dev.description, "adapter_lines": {"MG": 2048}}
    with pytest.raises(DriverError, match=r"unit \(2, 1\): its adapter reads as kind 2 with 1024 lines, .* says 2048"):
        dev.place_adapters()
    with pytest.raises(DriverError, match="refused the write of 0x1 to control register 0xe0"):
        dev.control_write(NODE, g.AdapterIndex.CAPS, 1)


# ------------------------------------------------------------------ moves of a round


def test_moves_between_kicks() -> None:
    """Fill what a move brought, drain, move the result on: one round, in order."""
    dev = device()
    ramp = bytes(range(256)) * 2
    dev.write(0x1000, ramp)
    to_stage = mover.copy(contiguous(0x1000, 16), contiguous(STAGE, 16))
    onwards = mover.copy(contiguous(0x4000, 1), contiguous(STAGE + 0x1000, 1))
    payloads = (
        cluster.encode("FILL", n=2, addr=STAGE),
        cluster.encode("FILL", n=2, addr=STAGE + 256, sel=1),
        cluster.encode("GEMM", gm=1, gn=1, nk=2),
        cluster.encode("DRAIN", n=1, addr=0x4000),
    )
    steps = (Move(to_stage), Seed(32), Kick(*NODE, 0, 4), Await(*NODE, 4), Move(onwards), Move(onwards))
    done = dev.run_round(Round(0, steps, payloads))
    assert not done.failed, done.problems()
    assert dev.read(STAGE, 512) == ramp
    assert any(dev.read(0x4000, 32))
    assert dev.read(STAGE + 0x1000, 32) == dev.read(0x4000, 32)
    assert (done.dram_words, done.stage_words) == ((16 + 2, 1), (16, 16 + 2))
    assert done.aux_stat is not None
    assert done.aux_stat >> 40 == 3


@pytest.mark.parametrize(
    ("writes", "message"),
    [
        ((), "move 1 is started by writes []"),
        (((0x10, 0),), "move 1 is started by writes []"),
        (((0x00, 1 << 16), (0x10, 0)), "move 1 is started by writes [0]"),
        (((0x00, 1 << 16), (0x00, 1 << 16)), "move 1 is started by writes [0, 1]"),
        (((0x80, 4), (0x00, 1 << 16)), "move 1 writes 0x4 to offset 0x80"),
        (((0x14, 4), (0x00, 1 << 16)), "move 1 writes 0x4 to offset 0x14"),
        (((0x38, 1 << 64), (0x00, 1 << 16)), "move 1 writes 0x10000000000000000 to offset 0x38"),
    ],
)
def test_moves_that_are_none(writes: tuple[tuple[int, int], ...], message: str) -> None:
    limits = {"stage_flits": 128, "ncmd": 128, "credit_max": 32}
    good = Move(mover.fill(contiguous(0, 1), 0))
    Artifact("hand1", "", (), (), (good, good, Barrier()), limits=limits).check()
    with pytest.raises(ArtifactError, match=re.escape(message)):
        Artifact("hand1", "", (), (), (good, Move(writes), Barrier()), limits=limits).check()


def test_constants_of_the_move_check() -> None:
    assert (MOVER_CTRL, MOVER_END) == (generated.MoverOffset.CTRL, generated.MEM_MOVER_WINDOW)
    assert registers.encode("MV_CTRL", go=1) == MOVER_GO
    names = {o.name for o in generated.MoverOffset if int(o) in MOVER_SEQUENCE | MOVER_LATCHED}
    assert {o.name for o in generated.MoverOffset} - names == {"CTRL", "CLEAR"}


def test_a_program_of_moves_alone() -> None:
    """Images in, moves, results out of the staging store; the same program again gives the same."""
    moves = (
        Move(mover.transform(contiguous(0, 16), contiguous(STAGE, 2, 128), mover.QUANTISE, 1)),
        Move(mover.generate(contiguous(STAGE + 0x100, 4), 11)),
    )
    art = Artifact(
        "hand1",
        "",
        (),
        (Image(0, bytes(range(256)) * 2, "x"),),
        (*moves, Barrier()),
        (Output("y", STAGE, 256, "flat", (1, 128)),),
        limits={"stage_flits": 128, "ncmd": 128, "credit_max": 32},
    )
    assert Artifact.from_bytes(art.to_bytes()) == art
    seen = []
    for _ in range(2):
        dev = device()
        assert not dev.run(Artifact.from_json(art.to_json())).failed
        seen.append(dev.readback(STAGE, 0x180))
    assert seen[0] == seen[1]
    assert any(seen[0][:256])
    assert any(seen[0][256:])

# SPDX-License-Identifier: Apache-2.0
"""Memory agent, host windows and machine description of the model (docs/spec/memory.md, fabric.md 4)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kohakubench.model_rig import A_AT, DRAM_BYTES, EXT, MEM, ORCH, OUT, P, Q, Rig, description
from kohakutpu.isa import cluster as isa
from kohakutpu.isa import message
from kohakutpu.isa.generated import MemFault as M
from kohakutpu.model.description import ClusterParams, MachineDescription
from kohakutpu.model.engine import Resp
from kohakutpu.model.machine import Machine
from kohakutpu.model.memory import PAGE, Image, classify

pytestmark = pytest.mark.unit

GIB4 = 1 << 32
STAGE = 1 << 39
WINDOW = 1 << 40


@pytest.mark.parametrize(
    ("addr", "n", "want"),
    [
        (0, 32, M.M_NONE),
        (GIB4 - 32, 32, M.M_NONE),
        (GIB4 - 32, 33, M.M_RANGE),
        (GIB4, 32, M.M_RANGE),
        ((1 << 36) - 32, 1 << 20, M.M_RANGE),
        (1 << 38 | 1 << 36 | 1, 32, M.M_RSVD),
        (1 << 36 | 1, 32, M.M_MESH),
        (STAGE | 3 << 36, 32, M.M_MESH),
        (STAGE | 1 << 32 | 1, 32, M.M_APER),
        (STAGE | 1, 32, M.M_ALIGN),
        (31, GIB4, M.M_ALIGN),
        (STAGE | (2 << 20) - 32, 32, M.M_NONE),
        (STAGE | (2 << 20) - 32, 64, M.M_RANGE),
        (STAGE | 0xFFFF_FFE0, 64, M.M_RANGE),
    ],
)
def test_classify(addr: int, n: int, want: M) -> None:
    fault, tier, offset = classify(addr, n, mesh=0, dram_bytes=GIB4, stage_bytes=2 << 20)
    assert fault == want
    if not want:
        assert (tier, offset) == (("stage", addr - STAGE) if addr & STAGE else ("dram", addr))


def test_classify_of_another_mesh_and_of_the_host() -> None:
    sizes = {"dram_bytes": GIB4, "stage_bytes": 0}
    assert classify(2 << 36 | 64, 32, mesh=2, **sizes) == (M.M_NONE, "dram", 64)
    assert classify(64, 32, mesh=2, **sizes)[0] == M.M_MESH
    assert classify(STAGE | 2 << 36, 32, mesh=2, **sizes)[0] == M.M_APER
    assert classify(2 << 36 | 65, 32, mesh=2, aligned=False, **sizes)[0] == M.M_NONE


def test_image_pages() -> None:
    image, other = Image(1 << 40), Image(1 << 40)
    data = np.arange(PAGE + 77, dtype=np.uint64).astype(np.uint8)
    image.write(3 * PAGE - 40, data)
    assert np.array_equal(image.read(3 * PAGE - 40, len(data)), data)
    assert image.read(3 * PAGE - 41, 2).tolist() == [0, 0]
    assert image.first_difference(other) == 3 * PAGE - 39
    other.write(3 * PAGE - 40, data)
    assert image.first_difference(other) is None
    assert image.first_difference(Image(8)) == 3 * PAGE - 39
    with pytest.raises(IndexError, match="outside"):
        image.read((1 << 40) - 1, 2)


# ------------------------------------------------------------------ flits of an external endpoint


def send(rig: Rig, name: str, **fields: int) -> None:
    rig.m.deliver(message.encode(name, dst=MEM, src=EXT, **fields))


def word(n: int) -> int:
    return int.from_bytes(bytes([n]) * 32, "little")


def answers(rig: Rig) -> list[tuple[int, int, int, int]]:
    """(txn, last, rsvd, payload) of the flits received since the last call."""
    out = [(f.txn, f.last, f.rsvd, f.payload) for f in rig.ext.flits]
    rig.ext.flits.clear()
    return out


def filled() -> Rig:
    rig = Rig()
    rig.m.write_mem(A_AT, b"".join(bytes([n]) * 32 for n in range(256)))
    return rig


@pytest.mark.parametrize("n", [1, 2, 8, 256])
def test_plain_read(n: int) -> None:
    rig = filled()
    send(rig, "MEM_RD_REQ", txn=0xA5, addr=A_AT, len=n - 1, count=7, n_peer=3, peer0=0x12, entry_words=2)
    assert answers(rig) == [(0xA5, int(i == n - 1), 0, word(i)) for i in range(n)]
    assert rig.m.agent.counts["dram"] == [n, 0]


@pytest.mark.parametrize(("raw", "ew"), [(1, 1), (2, 2), (3, 3), (4, 4), (0, 4), (5, 4), (255, 4)])
@pytest.mark.parametrize(("count", "c"), [(0, 1), (1, 1), (3, 3)])
def test_streaming_read(raw: int, ew: int, count: int, c: int) -> None:
    rig = filled()
    send(rig, "MEM_RD_REQ", txn=9, addr=A_AT, len=77, flags=0xFF, count=count, entry_words=raw)
    want = [(9 + i, int(w == ew - 1), w, word(i * ew + w)) for i in range(c) for w in range(ew)]
    assert answers(rig) == want


def test_multicast_order_and_single_memory_read() -> None:
    rig = filled()
    peers = {"peer0": 0x01, "peer1": EXT[1] << 4 | EXT[0], "n_peer": 2}
    send(rig, "MEM_RD_REQ", txn=1, addr=A_AT, flags=0x40, count=2, entry_words=2, **peers)
    per_entry = [[(1 + i, w, w, word(2 * i + w)) for w in range(2)] for i in range(2)]
    assert answers(rig) == [f for entry in per_entry for f in entry * 3]
    assert rig.m.agent.counts["dram"] == [4, 0]


def test_faulting_reads_answer_in_full() -> None:
    rig = filled()
    send(rig, "MEM_RD_REQ", txn=254, addr=A_AT, flags=0x40, count=3, entry_words=1)
    assert answers(rig) == [(t, 1, 4, 0) for t in (254, 255, 0)]
    send(rig, "MEM_RD_REQ", txn=254, addr=A_AT, flags=0x40, count=2, entry_words=1)
    assert [a[2] for a in answers(rig)] == [0, 0]
    send(rig, "MEM_RD_REQ", txn=255, addr=1, rsvd=4, flags=0x40, count=9, n_peer=1, peer0=P[1] << 4 | P[0])
    assert len(answers(rig)) == 36
    send(rig, "MEM_RD_REQ", addr=DRAM_BYTES - 32, len=1)
    assert answers(rig) == [(0, 0, 4, 0), (0, 1, 4, 0)]
    assert [f.code for f in rig.m.agent.faults] == [M.M_TAG, M.M_REMOTE, M.M_RANGE]
    assert rig.m.shells[P].sticky == 1 << 3 | 1 << 10
    reg = rig.m.register_address("MEM_FAULT")
    assert rig.m.host_read(reg)[0] == A_AT << 24 | 254 << 16 | (EXT[1] << 4 | EXT[0]) << 8 | M.M_TAG
    rig.m.host_write(reg, 0)
    assert rig.m.host_read(reg)[0] == 0
    assert rig.m.host_read(rig.m.register_address("MEM_DROP"))[0] == 3


def burst(
    rig: Rig, addr: int, n: int, *, txn: int = 3, last: int | None = None, rsvd: int = 0, src: int = 0
) -> None:
    """Descriptor and n data flits; `last` is the index of the flit marked last, the final one by default."""
    where = {"dst": MEM, "src": EXT if src == 0 else Q}
    rig.m.deliver(message.encode("MEM_WR_REQ", **where, txn=txn, rsvd=rsvd, addr=addr, len=n - 1))
    for i in range(n):
        mark = int(i == (n - 1 if last is None else last))
        rig.m.deliver(message.encode("MEM_WR_DATA", **where, txn=0x99, last=mark) | word(i + 1 & 255))


@pytest.mark.parametrize("n", range(1, 9))
def test_write_burst(n: int) -> None:
    rig = Rig()
    burst(rig, OUT, n)
    assert answers(rig) == [(3, 1, 0, 0)]
    assert rig.m.read_mem(OUT, 32 * 8) == b"".join(bytes([i + 1]) * 32 for i in range(n)).ljust(256, b"\0")
    assert rig.m.agent.counts["dram"] == [0, n]


@pytest.mark.parametrize(
    ("addr", "n", "rsvd", "code"),
    [
        (OUT, 9, 0, M.M_LEN),
        (OUT, 256, 0, M.M_LEN),
        (OUT, 2, 4, M.M_REMOTE),
        (OUT + 1, 256, 4, M.M_REMOTE),
        (OUT + 1, 9, 0, M.M_ALIGN),
        (DRAM_BYTES - 32, 2, 0, M.M_RANGE),
    ],
)
def test_refused_writes_swallow_their_data(addr: int, n: int, rsvd: int, code: M) -> None:
    rig = Rig()
    burst(rig, addr, n, rsvd=rsvd)
    assert answers(rig) == [(3, 1, 0, code << 4 | 1)]
    assert not rig.m.agent.dram.pages
    burst(rig, OUT, 1)
    assert answers(rig) == [(3, 1, 0, 0)]
    assert (rig.m.agent.orphans, rig.m.agent.fault_count) == (0, 1)


def test_framing_errors() -> None:
    rig = Rig()
    burst(rig, OUT, 4, last=1)
    assert answers(rig) == [(3, 1, 0, M.M_FRAME << 4 | 1)]
    assert (rig.m.agent.orphans, rig.m.agent.faults[-1].code) == (2, M.M_ORPHAN)
    burst(rig, OUT, 2, last=5)
    assert answers(rig) == [(3, 1, 0, M.M_FRAME << 4 | 1)]
    send(rig, "MEM_WR_REQ", txn=0x11, addr=OUT, len=7)
    send(rig, "MEM_WR_DATA", last=0)
    # another source is not disturbed, then the first one starts anew
    burst(rig, OUT + 256, 2, src=1)
    burst(rig, OUT, 1, txn=0x22)
    assert answers(rig) == [(0x11, 1, 0, M.M_FRAME << 4 | 1), (0x22, 1, 0, 0)]
    assert rig.m.read_mem(OUT, 64) == bytes([1]) * 32 + bytes(32)
    assert rig.m.read_mem(OUT + 256, 64) == bytes([1]) * 32 + bytes([2]) * 32
    assert rig.m.agent.fault_count == 3


# ------------------------------------------------------------------ host


def test_host_memory_window() -> None:
    rig = Rig()
    assert rig.m.mem_window_write(WINDOW + OUT + 3, b"abcdef") == Resp.OKAY
    assert rig.m.mem_window_write(WINDOW + OUT, b"XXXXXXXX", bytes([1, 0, 0, 0, 1, 0, 0, 0])) == Resp.OKAY
    assert rig.m.mem_window_read(WINDOW + OUT, 10) == (b"X\0\0aXcdef\0", Resp.OKAY)
    assert rig.m.agent.counts["dram"] == [1, 2]
    assert rig.m.mem_window_write(WINDOW + STAGE, bytes(64)) == Resp.OKAY
    assert rig.m.agent.counts["stage"] == [0, 2]
    for addr, code in (
        (1 << 38, M.M_RSVD),
        (1 << 36, M.M_MESH),
        (STAGE | 1 << 33, M.M_APER),
        (DRAM_BYTES - 31, M.M_RANGE),
    ):
        assert rig.m.mem_window_read(WINDOW + addr, 32) == (bytes(32), Resp.DECERR)
        event = rig.m.agent.faults[-1]
        assert (event.code, event.cls, event.node, event.txn) == (code, 1, (0, 0), 0)
    rig.m.agent.fail_bus(OUT, 1)
    assert rig.m.mem_window_write(WINDOW + OUT, b"1") == Resp.SLVERR
    assert rig.m.mem_window_write(2 * WINDOW + OUT, b"1") == Resp.DECERR
    assert rig.m.mem_window_read(OUT, 1)[1] == Resp.DECERR
    with pytest.raises(ValueError, match="M_RANGE"):
        rig.m.write_mem(DRAM_BYTES, b"1")
    with pytest.raises(ValueError, match="M_MESH"):
        rig.m.read_mem(1 << 37, 1)
    caps, _ = rig.m.host_read(rig.m.register_address("MEM_CAPS"))
    assert caps == 1 << 56 | 16 << 48 | 8 << 44 | 1 << 40 | 26 << 32 | 2 << 20


def test_another_mesh_id() -> None:
    rig = Rig(mesh_id=2)
    rig.m.write_mem(2 << 36 | A_AT, bytes([7]) * 128)
    rig.ok("FILL", addr=2 << 36 | A_AT)
    assert rig.fault(isa.encode("FILL", addr=A_AT)) == 0x4D470110
    assert rig.m.mem_window_read(3 * WINDOW + (2 << 36 | A_AT), 2) == (b"\7\7", Resp.OKAY)
    assert rig.m.mem_window_read(3 * WINDOW + A_AT, 2)[1] == Resp.DECERR
    assert rig.m.host_read(0x1002_0028)[1] == Resp.OKAY
    assert rig.m.host_read(0x1000_0028)[1] == Resp.DECERR


# ------------------------------------------------------------------ machine description, hub


def test_hub_takes_signals_and_mail_at_the_memory_port() -> None:
    rig = Rig(orch=MEM)
    mail = message.encode("CU_DATA_DESC", dst=MEM, src=EXT, txn=1)
    rig.m.deliver(mail)
    assert list(rig.m.orch.rx) == [mail]
    rig.m.deliver(message.encode("CU_SIGNAL", dst=MEM, src=EXT, code=3, arg=0))
    assert rig.m.orch.signal_count(EXT) == 1
    assert rig.m.agent.control_drops == 0
    result = rig.m.dispatch(P, 0, [isa.encode("GEMM")])
    assert result.signal_count == 1
    assert rig.m.shells[P].completions[0].code == 1


def test_token_mode_drops_and_reports_control_flits_at_a_memory_port() -> None:
    rig = Rig()
    rig.m.deliver(message.encode("CU_DATA_DESC", dst=MEM, src=EXT))
    rig.m.deliver(message.encode("CU_SIGNAL", dst=MEM, src=EXT))
    assert rig.m.agent.control_drops == 2
    assert rig.m.orch.err_stat == 1 << 9
    assert rig.m.host_read(rig.m.register_address("MEM_DROP"))[0] == 2 << 32


def test_description_from_the_published_machines(tmp_path: Path) -> None:
    table = json.loads((Path(__file__).resolve().parents[1] / "spec" / "fabric.json").read_text())["machines"]
    for name, data in table.items():
        path = tmp_path / f"{name}.machine.json"
        path.write_text(json.dumps({"name": name, **data, "params": {"MG": {"TILES": 1024, "ROWMAJOR": 1}}}))
        spec = MachineDescription.load(path)
        assert (spec.name, spec.hub) == (name, data["attach"] == "hub")
        assert spec.cluster == ClusterParams(tiles=1024, rowmajor=True)
        machine = Machine(spec)
        assert set(machine.clusters) == {(2, 1)}
        assert set(machine.vectors) == {(1, 0)}
        assert ((1, 1) in machine.externals) == spec.hub
        assert machine.dispatch((2, 1), 0, [isa.encode("GEMM", gm=32, gn=32)]).completions[0].code == 1


def test_description_refuses_impossible_places() -> None:
    for places in (((0, 0),), ((3, 3),), ((2, 1), (2, 1)), ((0, 1),)):
        with pytest.raises(ValueError, match="rig"):
            description(units={"MG": places})
    with pytest.raises(ValueError, match="power of two"):
        ClusterParams(tiles=500)


def test_routes_and_ports() -> None:
    spec = description(mem_ports=((0, 1), (3, 2)), nx=2, ny=2, units={"MG": ((2, 1),)}, external=((2, 2),))
    machine = Machine(spec)
    assert machine.exit_of((0, 0)) == (0, 1)
    assert machine.exit_of((15, 15)) == (3, 2)
    assert machine.exit_of((9, 0)) == (3, 1)
    assert machine.exit_of((1, 0)) == (1, 0)
    assert machine.exit_of((2, 9)) == (2, 3)
    assert machine.exit_of((1, 2)) == (1, 2)
    assert spec.port_of((2, 1)) == (0, 1)  # a tie goes to the lower number
    assert spec.port_of((2, 2)) == (3, 2)
    assert spec.port_of(ORCH) == (0, 1)

# SPDX-License-Identifier: Apache-2.0
"""Staging store of the model, its requesters, and every memory fault code of each (docs/spec/memory.md 7, 9, 10)."""

from __future__ import annotations

import numpy as np
import pytest

from kohakubench.model_rig import DRAM_BYTES, EXT, MEM, OUT, P, Q, Rig
from kohakutpu.isa import address, message, mover
from kohakutpu.isa import cluster as isa
from kohakutpu.isa.generated import MemFault as M
from kohakutpu.isa.generated import RequesterClass as R
from kohakutpu.model.engine import Resp
from kohakutpu.model.memory import classify, classify_words
from kohakutpu.walks import contiguous

pytestmark = pytest.mark.unit

STAGE = address.staging(0)
STAGE_BYTES = 2 << 20
WINDOW = 1 << 40
DECODE = (M.M_RSVD, M.M_MESH, M.M_APER, M.M_RANGE)


def poison(rig: Rig) -> None:
    """DRAM under the offsets of the staging store, so that a wrong tier shows."""
    for offset in (0, STAGE_BYTES - 4096, 0x1000, OUT):
        rig.m.write_mem(offset, b"\xee" * 4096)


def read(rig: Rig, addr: int, n: int) -> list[tuple[int, int]]:
    """(rsvd, payload) of a plain read by the external endpoint."""
    rig.ext.flits.clear()
    rig.m.deliver(message.encode("MEM_RD_REQ", dst=MEM, src=EXT, txn=1, addr=addr, len=n - 1))
    return [(f.rsvd, f.payload) for f in rig.ext.flits]


def write(rig: Rig, addr: int, words: list[int], txn: int = 2) -> int:
    """Fault code of the acknowledgement of a write by the external endpoint."""
    rig.ext.flits.clear()
    rig.m.deliver(message.encode("MEM_WR_REQ", dst=MEM, src=EXT, txn=txn, addr=addr, len=len(words) - 1))
    for i, word in enumerate(words):
        rig.m.deliver(message.encode("MEM_WR_DATA", dst=MEM, src=EXT, last=int(i == len(words) - 1)) | word)
    (ack,) = rig.ext.flits
    assert ack.payload & 1 == int(ack.payload > 0)
    return ack.payload >> 4


# ------------------------------------------------------------------ the store


@pytest.mark.parametrize("offset", [0, 32, STAGE_BYTES - 64, STAGE_BYTES - 32, 0x1_2340])
def test_words_of_the_store(offset: int) -> None:
    rig = Rig()
    poison(rig)
    assert read(rig, STAGE + offset, 1) == [(0, 0)]
    assert write(rig, STAGE + offset, [offset + 1]) == M.M_NONE
    assert read(rig, STAGE + offset, 1) == [(0, offset + 1)]
    assert rig.m.agent.counts == {"dram": [0, 0], "stage": [2, 1]}


def test_all_words() -> None:
    """65,536 words written by the mover, read by the host, every one its own."""
    rig = Rig()
    for offset, value in mover.generate(contiguous(STAGE, 65536), 3):
        rig.m.host_write(rig.m.register_address("AUX_CFG", offset // 8), value)
    raw = b"".join(rig.m.mem_window_read(WINDOW + STAGE + at, 8192)[0] for at in range(0, STAGE_BYTES, 8192))
    assert len(np.unique(np.frombuffer(raw, dtype="<u8").reshape(-1, 4), axis=0)) == 65536
    assert rig.m.host_read(rig.m.register_address("MEM_STGCNT"))[0] == 65536 << 32 | 65536
    assert rig.m.host_read(rig.m.register_address("MEM_DRAMCNT"))[0] == 0


def test_burst_over_the_top_writes_nothing() -> None:
    rig = Rig()
    top = STAGE + STAGE_BYTES
    assert write(rig, top - 64, [1, 2, 3]) == M.M_RANGE
    assert write(rig, top, [1]) == M.M_RANGE
    assert read(rig, top - 32, 2) == [(4, 0), (4, 0)]
    assert not rig.m.agent.stage.pages
    assert write(rig, top - 64, [1, 2]) == M.M_NONE
    assert rig.m.mem_window_write(WINDOW + top - 32, bytes(64)) == Resp.DECERR


def test_build_without_a_store() -> None:
    rig = Rig(stage_bytes=0)
    assert write(rig, STAGE, [1]) == M.M_APER
    assert read(rig, STAGE, 1) == [(4, 0)]
    assert rig.m.mem_window_read(WINDOW + STAGE, 32) == (bytes(32), Resp.DECERR)
    assert rig.fault(isa.encode("FILL", addr=STAGE)) == 0x4D470110
    assert {e.code for e in rig.m.agent.faults} == {M.M_APER}
    assert rig.m.host_read(rig.m.register_address("MEM_CAPS"))[0] & 0xFFFF_FFFF == 0


def test_host_strobes_reach_the_store() -> None:
    rig = Rig()
    rig.m.mem_window_write(WINDOW + STAGE, bytes(range(1, 33)))
    for mask in (0, 1, 0x8000_0000, 0xAAAA_AAAA, 0xFFFF_FFFF):
        before, _ = rig.m.mem_window_read(WINDOW + STAGE, 32)
        strobe = bytes(mask >> n & 1 for n in range(32))
        new = bytes(b ^ 0x80 for b in before)
        assert rig.m.mem_window_write(WINDOW + STAGE, new, strobe) == Resp.OKAY
        want = bytes(n if s else b for b, n, s in zip(before, new, strobe, strict=True))
        assert rig.m.mem_window_read(WINDOW + STAGE, 32)[0] == want


def test_tile_handed_over_between_units() -> None:
    """One cluster drains to the store, another fills from it: the same operands as through DRAM."""
    rig, plain = Rig(), Rig()
    poison(rig)
    for r, at in ((rig, STAGE + 0x1000), (plain, 0x20_0000)):
        r.operands(4, 4, 4)
        r.fill_all(4, 4, 4)
        r.ok("GEMM", gm=4, gn=4, nk=4)
        r.ok("DRAIN", n=16, addr=at)
        # the result's bytes as operand entries: any bits are a legal entry
        r.ok("FILL", node=Q, addr=at, n=4)
    a, b = rig.m.clusters[Q].l1[0], plain.m.clusters[Q].l1[0]
    assert np.array_equal(a.q[:4], b.q[:4])
    assert np.array_equal(a.scale[:4], b.scale[:4])
    assert a.q[:4].any()
    assert rig.m.agent.counts["stage"] == [16, 16]
    assert plain.m.agent.counts["stage"] == [0, 0]


def test_fill_from_the_store_equals_fill_from_memory() -> None:
    """Quantised by the mover into the store, then a whole product from there."""
    rig, plain = Rig(), Rig()
    for r in (rig, plain):
        r.operands(2, 2, 2)
    for base, n in ((0x1_0000, 4), (0x8_0000, 4)):
        for offset, value in mover.copy(contiguous(base, 4 * n), contiguous(STAGE + base, 4 * n)):
            rig.m.host_write(rig.m.register_address("AUX_CFG", offset // 8), value)
    for r, top in ((rig, STAGE), (plain, 0)):
        r.ok("FILL", addr=top + 0x1_0000, n=4)
        r.ok("FILL", addr=top + 0x8_0000, n=4, sel=1)
        r.ok("GEMM", gm=2, gn=2, nk=2)
        r.ok("DRAIN", n=4, addr=OUT)
    assert rig.m.read_mem(OUT, 128) == plain.m.read_mem(OUT, 128)
    assert any(rig.m.read_mem(OUT, 128))


def test_memory_survives_in_order_alternation() -> None:
    """One requester alternating between the tiers: 40 writes, acknowledged in order, all there."""
    rig = Rig()
    for n in range(40):
        assert write(rig, (STAGE if n % 2 else 0) + 0x4000 + 32 * n, [n + 1], txn=n) == M.M_NONE
    for n in range(40):
        assert read(rig, (STAGE if n % 2 else 0) + 0x4000 + 32 * n, 1) == [(0, n + 1)]


# ------------------------------------------------------------------ one classify for all


def test_classify_of_many_addresses() -> None:
    """The vector form is the scalar one at every address."""
    rng = np.random.default_rng(5)
    edges = [0, DRAM_BYTES, STAGE, STAGE + STAGE_BYTES, 1 << 36, 1 << 38, STAGE | 1 << 32, (1 << 40) - 32]
    near = np.array([e + 32 * d for e in edges for d in range(-5, 5)])
    wild = rng.integers(0, 1 << 35, 3000) * 32
    for mesh, stage in ((0, STAGE_BYTES), (2, STAGE_BYTES), (0, 0)):
        for n in (32, 128):
            at = np.concatenate([near, wild])
            codes, staged, offsets = classify_words(at, n, mesh=mesh, dram_bytes=DRAM_BYTES, stage_bytes=stage)
            for a, code, s, o in zip(at.tolist(), codes.tolist(), staged.tolist(), offsets.tolist(), strict=True):
                if not 0 <= a < 1 << 40:
                    assert code == M.M_RANGE
                    continue
                want, tier, offset = classify(a, n, mesh=mesh, dram_bytes=DRAM_BYTES, stage_bytes=stage)
                assert code == want, hex(a)
                if not want:
                    assert (s, o) == (tier == "stage", offset)


BAD = {
    M.M_RSVD: 1 << 38,
    M.M_MESH: STAGE | 1 << 36,
    M.M_APER: STAGE | 5 << 32,
    M.M_RANGE: STAGE + STAGE_BYTES,
    M.M_ALIGN: 0x4004,
    M.M_BUS: 0x6000,
}


@pytest.mark.parametrize("code", BAD)
@pytest.mark.parametrize(
    "who", ["flit read", "flit write", "unit read", "unit write", "host read", "host write", "mover"]
)
def test_every_address_fault_of_every_requester(who: str, code: M) -> None:
    """Completion, MEM_FAULT (class, node, txn, address), MEM_DROP; the first fault stays, clearing works."""
    rig = Rig()
    rig.m.agent.fail_bus(0x6000, 32)
    at = BAD[code]
    if code == M.M_ALIGN and who in ("host read", "host write", "mover"):
        _alignment(rig, who)
        return
    source, txn, cls = EXT, 1, R.PORT
    match who:
        case "flit read":
            assert read(rig, at, 1) == [(4, 0)]
        case "flit write":
            assert write(rig, at, [5], txn=2) == code
            txn = 2
        case "unit read":
            assert rig.fault(isa.encode("FILL", addr=at, eoff=9)) == 0x4D470110
            source, txn = P, 9
        case "unit write":
            rig.ok("GEMM", gm=1, gn=1)
            assert rig.fault(isa.encode("DRAIN", n=1, addr=at)) >> 8 & 0xFF == code
            source, txn = P, 0
        case "host read" | "host write":
            response = Resp.DECERR if code in DECODE else Resp.SLVERR
            if who == "host read":
                assert rig.m.mem_window_read(WINDOW + at, 32) == (bytes(32), response)
            else:
                assert rig.m.mem_window_write(WINDOW + at, bytes([1]) * 32) == response
            source, txn, cls = (0, 0), 0, R.HOST
        case _:
            for offset, value in mover.fill(contiguous(at, 1), 1):
                rig.m.host_write(rig.m.register_address("AUX_CFG", offset // 8), value)
            source, txn, cls = (0, 0), 0, R.MOVER
    if who == "unit write":
        txn = rig.m.agent.faults[0].txn
    fault = rig.m.register_address("MEM_FAULT")
    want = at << 24 | txn << 16 | (source[1] << 4 | source[0]) << 8 | cls << 4 | code
    assert rig.m.host_read(fault)[0] == want
    assert read(rig, BAD[M.M_APER], 1) == [(4, 0)]
    assert rig.m.host_read(fault)[0] == want
    assert rig.m.host_read(rig.m.register_address("MEM_DROP"))[0] == 2
    rig.m.host_write(fault, 0)
    rig.m.host_write(rig.m.register_address("MEM_DROP"), 0)
    assert rig.m.host_read(fault)[0] == 0
    assert rig.m.host_read(rig.m.register_address("MEM_DROP"))[0] == 0
    assert not any(rig.m.read_mem(0x6000, 32))


def _alignment(rig: Rig, who: str) -> None:
    """The host may address any byte; the mover has a code of its own and leaves MEM_FAULT alone."""
    if who == "mover":
        for offset, value in mover.fill(contiguous(0x4004, 1), 1):
            rig.m.host_write(rig.m.register_address("AUX_CFG", offset // 8), value)
        assert rig.m.mover.fault.name == "F_ALIGN"
    else:
        assert rig.m.mem_window_write(WINDOW + 0x4004, b"x") == Resp.OKAY
        assert rig.m.mem_window_read(WINDOW + 0x4004, 1) == (b"x", Resp.OKAY)
    assert rig.m.agent.faults == []


def test_host_bursts_that_are_not_supported() -> None:
    """FIXED, WRAP and narrow: SLVERR, M_HOSTX, memory untouched, whatever the address is."""
    rig = Rig()
    for burst, size in ((0, 5), (2, 5), (3, 5), (1, 4), (1, 0)):
        assert rig.m.mem_window_write(WINDOW + STAGE, bytes([1]) * 64, burst=burst, size=size) == Resp.SLVERR
        assert rig.m.mem_window_read(WINDOW + (1 << 38), 64, burst=burst, size=size) == (bytes(64), Resp.SLVERR)
    assert {(e.code, e.cls) for e in rig.m.agent.faults} == {(M.M_HOSTX, R.HOST)}
    assert not rig.m.agent.stage.pages


def test_counts_of_served_port_traffic() -> None:
    """AUX_STAT: a plain request counts once, a run once an entry, refused and badly framed ones not."""
    rig = Rig()
    stat = rig.m.register_address("AUX_STAT")
    read(rig, 0, 8)
    rig.m.deliver(message.encode("MEM_RD_REQ", dst=MEM, src=EXT, addr=0, flags=0x40, count=5, entry_words=2))
    read(rig, 1 << 38, 1)
    rig.ok("FILL", addr=0, n=7)
    write(rig, 0, [1, 2])
    write(rig, 4, [1, 2])
    rig.m.deliver(message.encode("MEM_WR_REQ", dst=MEM, src=EXT, addr=0, len=3))
    rig.m.deliver(message.encode("MEM_WR_DATA", dst=MEM, src=EXT, last=1))
    rig.ok("GEMM", gm=1, gn=1)
    rig.ok("DRAIN", n=1, addr=0)
    assert rig.m.host_read(stat)[0] == (1 + 5 + 7) << 24 | 2 << 8

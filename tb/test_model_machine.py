# SPDX-License-Identifier: Apache-2.0
"""Execution of cluster instructions on the machine model (docs/spec/cluster.md 2 to 7 and 9)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.model_rig import A_AT, DRAM_BYTES, EXT, MEM, ORCH, OUT, P, Q, Rig
from kohakutpu.isa import cluster as isa
from kohakutpu.isa.generated import MemFault
from kohakutpu.model import numerics as num
from kohakutpu.model.messages import DataBurst, WriteBurst, bursts

pytestmark = pytest.mark.unit

NODE = {"dnode": 1, "dst_x": EXT[0], "dst_y": EXT[1], "dflags": 1, "dack_x": ORCH[0], "dack_y": ORCH[1]}
WR_DROP = 0xFAB0_0002
F_MEM_RD = 0x4D47_0110


def word(op: str, **fields: int) -> int:
    return isa.encode(op, raw=True, **fields)


# ------------------------------------------------------------------ products


TILINGS = [(1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (1, 5), (3, 3), (4, 4), (16, 32), (255, 2)]


@pytest.mark.parametrize(("gm", "gn"), TILINGS)
@pytest.mark.parametrize("nk", [1, 2, 7])
def test_product_in_memory(gm: int, gn: int, nk: int) -> None:
    if max(gm, gn) * nk > 256:
        nk = 1
    rig = Rig()
    a, b = rig.operands(gm, gn, nk)
    rig.fill_all(gm, gn, nk)
    rig.ok("GEMM", gm=gm, gn=gn, nk=nk)
    rig.ok("DRAIN", addr=OUT, n=gm * gn)
    assert np.array_equal(rig.tile_codes(OUT, gm, gn), num.product(a, b)[1])
    # exactly gm*gn words were written
    assert not any(rig.m.read_mem(OUT - 64, 64))
    assert not any(rig.m.read_mem(OUT + 32 * gm * gn, 64))


def test_k_split_emit_and_tiling_give_the_same_bits() -> None:
    gm, gn, nk = 4, 8, 8
    images = []
    for chunk in (8, 4, 2, 1):
        rig = Rig()
        rig.operands(gm, gn, nk)
        rig.fill_all(gm, gn, nk)
        # entries are group-major, so a chunk of K needs its own fill into bank 1
        for kb in range(0, nk, chunk):
            for g in range(gm):
                rig.ok("FILL", addr=A_AT + 128 * (g * nk + kb), n=chunk, eoff=g * chunk, fbank=1)
            for g in range(gn):
                rig.ok("FILL", addr=0x8_0000 + 128 * (g * nk + kb), n=chunk, eoff=g * chunk, fbank=1, sel=1)
            final = {"emit": 1, "addr": OUT + 0x8000} if kb + chunk == nk else {}
            rig.ok("GEMM", gm=gm, gn=gn, nk=chunk, acc=int(kb > 0), abank=1, bbank=1, **final)
        rig.ok("DRAIN", n=gm * gn, fuse=1)
        rig.ok("DRAIN", addr=OUT, n=gm * gn)
        assert rig.m.read_mem(OUT, 32 * gm * gn) == rig.m.read_mem(OUT + 0x8000, 32 * gm * gn)
        images.append(rig.m.read_mem(OUT, 32 * gm * gn))
    assert len(set(images)) == 1
    assert any(images[0])
    # the same matrix in smaller tiles
    rig = Rig()
    rig.operands(gm, gn, nk)
    rig.fill_all(gm, gn, nk)
    whole = np.frombuffer(images[0], dtype=np.uint8).reshape(gm, gn, 32)
    for tm, tn in ((2, 2), (1, 8), (4, 1)):
        for g in range(0, gm, tm):
            for h in range(0, gn, tn):
                rig.ok("GEMM", gm=tm, gn=tn, nk=nk, aoff=g * nk, boff=h * nk)
                rig.ok("DRAIN", addr=OUT, n=tm * tn)
                part = np.frombuffer(rig.m.read_mem(OUT, 32 * tm * tn), dtype=np.uint8).reshape(tm, tn, 32)
                assert np.array_equal(part, whole[g : g + tm, h : h + tn])


def test_banks_are_independent_and_unfilled_entries_are_zero() -> None:
    rig = Rig()
    a, b = rig.operands(2, 2, 1)
    rig.ok("FILL", addr=A_AT, n=2, fbank=1, eoff=254)
    rig.ok("FILL", addr=0x8_0000, n=2, sel=1, eoff=254)
    rig.ok("GEMM", gm=2, gn=2, abank=1, aoff=254, bbank=0, boff=254)
    rig.ok("DRAIN", addr=OUT, n=4)
    assert np.array_equal(rig.tile_codes(OUT, 2, 2), num.product(a, b)[1])
    rig.ok("GEMM", gm=2, gn=2, abank=0, aoff=254, bbank=0, boff=254)
    rig.ok("DRAIN", addr=OUT, n=4)
    assert not any(rig.m.read_mem(OUT, 128))
    q, scale = num.operand_entries(a)
    want = num.pack_l1(q, scale, num.Layout.A).reshape(2, -1)
    assert rig.p.l1[0].entry(510) == int.from_bytes(want[0].tobytes(), "little")
    assert rig.p.l1[0].entry(0) == 0


def test_partial_drains_and_accumulation_between_them() -> None:
    rig = Rig()
    a, b = rig.operands(4, 4, 2)
    rig.fill_all(4, 4, 2)
    rig.ok("GEMM", gm=4, gn=4, nk=2)
    for n in (1, 7, 8, 9, 16, 3):
        at = OUT + 0x1000 * n
        rig.ok("DRAIN", addr=at, n=n)
        rig.ok("DRAIN", addr=at + 0x800, n=n)
        assert rig.m.read_mem(at, 32 * n) == rig.m.read_mem(at + 0x800, 32 * n)
        assert not any(rig.m.read_mem(at + 32 * n, 32))
    rig.ok("GEMM", gm=4, gn=4, nk=2, acc=1)
    rig.ok("DRAIN", addr=OUT, n=16)
    twice = num.TileStore(16)
    operands = num.operand_entries(a), num.operand_entries(b)
    twice.sweep(*operands, accumulate=False)
    twice.sweep(*operands, accumulate=True)
    assert rig.m.read_mem(OUT, 512) == twice.emit(16).tobytes()
    # a smaller opening keeps the other sub-tiles and the opened count
    rig.ok("GEMM", gm=1, gn=2)
    rig.ok("DRAIN", addr=OUT + 0x8000, n=16)
    assert rig.m.read_mem(OUT + 0x8000 + 64, 448) == rig.m.read_mem(OUT + 64, 448)
    assert rig.m.read_mem(OUT + 0x8000, 64) != rig.m.read_mem(OUT, 64)


def test_emit_with_open_and_one_block_hands_out() -> None:
    rig = Rig()
    a, b = rig.operands(2, 3, 1)
    rig.fill_all(2, 3, 1)
    rig.ok("GEMM", gm=2, gn=3, emit=1, addr=OUT)
    assert np.array_equal(rig.tile_codes(OUT, 2, 3), num.product(a, b)[1])
    assert rig.ok("DRAIN", n=6, fuse=1, addr=1).code == 0
    assert rig.ok("DRAIN", n=2, fuse=1).code == 0
    # the size is remembered until the next emitting GEMM or explicit DRAIN
    rig.ok("GEMM", gm=4, gn=4)
    assert rig.ok("DRAIN", n=6, fuse=1).code == 0
    assert rig.fault(word("DRAIN", n=7, fuse=1)) & 0xFF == 0x0A
    assert rig.fault(word("DRAIN", n=17, addr=OUT)) & 0xFF == 0x08
    assert rig.ok("DRAIN", n=6, fuse=1).code == 0
    rig.ok("DRAIN", n=1, addr=OUT)
    assert rig.fault(word("DRAIN", n=1, fuse=1)) & 0xFF == 0x0A


# ------------------------------------------------------------------ drains to nodes, bursts


@pytest.mark.parametrize("n", [1, 7, 8, 9, 64, 100])
def test_node_drain_equals_memory_drain(n: int) -> None:
    rig = Rig()
    rig.operands(10, 10, 1)
    rig.fill_all(10, 10, 1)
    rig.ok("GEMM", gm=10, gn=10)
    rig.ok("DRAIN", addr=OUT, n=n)
    writes = len(rig.sent(WriteBurst))
    rig.ok("DRAIN", n=n, **NODE, addr=5 * 32)
    assert rig.ext.buffers[0][5 : 5 + n].tobytes() == rig.m.read_mem(OUT, 32 * n)
    assert not rig.ext.buffers[0][5 + n :].any()
    sent = rig.sent(DataBurst)
    count = bursts("emit", n)
    assert len(sent) == writes == len(rig.ext.acks) == count
    assert rig.m.orch.signal_count(EXT) == count
    assert rig.ext.acks == [0] * count
    assert [b.offset for b in sent] == [5 + 8 * i for i in range(count)]
    assert [len(b.words) for b in sent] == [8] * (count - 1) + [n - 8 * (count - 1)]


def test_emitting_gemm_to_a_node() -> None:
    rig = Rig()
    rig.operands(3, 3, 2)
    rig.fill_all(3, 3, 2)
    rig.ok("GEMM", gm=3, gn=3, nk=2, emit=1, **NODE)
    rig.ok("DRAIN", addr=OUT, n=9)
    assert rig.ext.buffers[0][:9].tobytes() == rig.m.read_mem(OUT, 288)
    assert len(rig.ext.acks) == 2


def test_descriptor_and_data_flits_of_a_local_send() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=3, gn=3)
    rig.p.tiles.codes[:9] = np.arange(144).reshape(9, 16) + 0x0FC000
    rig.ok("DRAIN", n=9, **NODE, dbuf=2, addr=4 * 32)
    sent = rig.sent(DataBurst)
    assert len(sent) == bursts("send", 9) == 3
    flits = [list(b.flits()) for b in sent]
    assert [len(f) for f in flits] == [9, 9, 3]
    head = EXT[0] << 28 | EXT[1] << 24 | P[0] << 20 | P[1] << 16 | 8 << 12 | 2 << 4
    for i, burst in enumerate(flits):
        assert burst[0] >> 256 == head
        target = ORCH[1] << 212 | ORCH[0] << 208
        fields = 2 << 248 | (4 + 8 * i) << 232 | (len(burst) - 2) << 224 | 1 << 216 | target
        assert burst[0] & (1 << 256) - 1 == fields
        assert [f >> 256 for f in burst[1:-1]] == [head] * (len(burst) - 2)
        assert burst[-1] >> 256 == head | 8
    body = b"".join((f & (1 << 256) - 1).to_bytes(32, "little") for burst in flits for f in burst[1:])
    assert body == num.send_granules(rig.p.tiles.codes[:9]).tobytes()
    assert rig.ext.buffers[2][4:22].tobytes() == body


def test_remote_form_marks_every_flit_and_is_dropped_without_an_interlink() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=3, gn=3)
    remote = {**NODE, "dst_x": MEM[0], "dst_y": MEM[1], "dmesh": 2, "dfin": 0x12}
    rig.ok("DRAIN", n=9, **remote)
    for burst in rig.sent(DataBurst):
        for flit in burst.flits():
            assert flit >> 260 & 0xFF == 0x12
            assert flit >> 256 & 7 == 4 | 2
    assert {f.code for f in rig.m.agent.faults} == {MemFault.M_REMOTE}
    assert rig.m.host_read(rig.m.register_address("MEM_DROP"))[0] & 0xFFFF > 0
    # dmesh counts only with dfin
    rig.ok("DRAIN", n=1, **{**NODE, "dmesh": 3})
    assert next(rig.sent(DataBurst)[-1].flits()) >> 256 & 7 == 0


@pytest.mark.parametrize(
    ("form", "n", "gn", "pitch", "want"),
    [
        ("emit", 1, 0, 0, 1),
        ("emit", 512, 0, 0, 64),
        ("send", 4, 0, 0, 1),
        ("send", 9, 0, 0, 3),
        ("rowmajor", 32, 8, 2, 4),
        ("rowmajor", 32, 8, 3, 16),
        ("rowmajor", 64, 64, 17, 8),
    ],
)
def test_bursts_function(form: str, n: int, gn: int, pitch: int, want: int) -> None:
    assert bursts(form, n, gn, pitch) == want
    with pytest.raises(ValueError, match="form"):
        bursts("other", 1)


@pytest.mark.parametrize("gn", [4, 8, 12, 32, 64])
@pytest.mark.parametrize("extra", [0, 1, 5])
def test_rowmajor_drain(gn: int, extra: int) -> None:
    rig = Rig(cluster={"rowmajor": True})
    gm, pitch = 3, gn // 4 + extra
    rig.operands(gm, gn, 1)
    rig.fill_all(gm, gn, 1)
    rig.ok("GEMM", gm=gm, gn=gn)
    rig.ok("DRAIN", addr=OUT, n=gm * gn)
    tile = rig.tile_codes(OUT, gm, gn)
    before = len(rig.sent(WriteBurst))
    at = OUT + 0x10000
    rig.ok("DRAIN", addr=at, n=gm * gn, gn=gn, rowmajor=1, pitch=pitch)
    for row in range(4 * gm):
        got = np.frombuffer(rig.m.read_mem(at + 32 * pitch * row, 32 * pitch), dtype="<u2")
        assert np.array_equal(got[: 4 * gn], tile[row])
        assert not got[4 * gn :].any()
    count = bursts("rowmajor", gm * gn, gn, pitch)
    assert len(rig.sent(WriteBurst)) - before == count
    if 4 * gm * pitch <= 512:
        rig.ok("DRAIN", n=gm * gn, gn=gn, rowmajor=1, pitch=pitch, **NODE)
        assert len(rig.ext.acks) == count
        assert rig.ext.buffers[0][: 4 * gm * pitch].tobytes() == rig.m.read_mem(at, 32 * 4 * gm * pitch)


# ------------------------------------------------------------------ write errors and their owner

BAD = {"addr": OUT + 4}


def test_refused_write_faults_the_drain_and_nothing_else() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=4, gn=4)
    assert rig.fault(word("DRAIN", n=16, **BAD)) == WR_DROP | MemFault.M_ALIGN << 8
    rig.ok("DRAIN", n=16, addr=OUT)
    shell = rig.m.shells[P]
    assert shell.sticky == 1 << 2
    # header of the first error acknowledgement: MEM_WR_ACK from the port, tag 0x02, last
    assert shell.first_hdr == P[0] << 28 | P[1] << 24 | MEM[0] << 20 | MEM[1] << 16 | 3 << 12 | 2 << 4 | 8


def test_range_error_in_the_middle_writes_the_rest() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=4, gn=6)
    rig.p.tiles.codes[:24] = 0x0FC000
    base = DRAM_BYTES - 32 * 16
    assert rig.fault(word("DRAIN", n=24, addr=base)) == WR_DROP | MemFault.M_RANGE << 8
    assert rig.m.read_mem(base, 512) == b"\x00\x3c" * 256
    (event,) = rig.m.agent.faults
    assert (event.code, event.node, event.txn, event.addr) == (MemFault.M_RANGE, P, 2, DRAM_BYTES)


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_refused_write_of_a_batch_faults_its_owner(failing: int) -> None:
    """First, middle or last burst refused; FILLs and GEMMs retire in between."""
    rig = Rig()
    rig.m.agent.fail_bus(OUT + 256 * failing, 32)
    rig.ok("GEMM", gm=4, gn=6, emit=1, addr=OUT)
    rig.ok("FILL", addr=A_AT, n=4)
    rig.ok("GEMM", gm=2, gn=2, acc=1)
    assert rig.fault(word("DRAIN", n=1, fuse=1)) == WR_DROP | MemFault.M_BUS << 8
    rig.ok("DRAIN", n=1, fuse=1)


def test_owner_is_the_next_cover_in_program_order() -> None:
    def batch(rig: Rig) -> None:
        rig.ok("GEMM", gm=2, gn=2, emit=1, **BAD)

    # an explicit DRAIN owns the batch too; the code is that of the first failed write
    rig = Rig()
    batch(rig)
    assert rig.fault(word("DRAIN", n=4, addr=3 << 36)) == WR_DROP | MemFault.M_ALIGN << 8
    # a DRAIN that fails decode is no owner, the next cover is
    rig = Rig()
    batch(rig)
    assert rig.fault(word("DRAIN", n=5, fuse=1)) == 0x4D47_030A
    assert rig.fault(word("DRAIN", n=4, fuse=1)) == WR_DROP | MemFault.M_ALIGN << 8
    # any instruction with last = 1 is
    rig = Rig()
    batch(rig)
    assert rig.fault(word("FILL", addr=A_AT), last=1) == WR_DROP | MemFault.M_ALIGN << 8
    # its own fault keeps its own argument and consumes the failure
    rig = Rig()
    batch(rig)
    assert rig.fault(word("DRAIN", n=5, fuse=1), last=1) == 0x4D47_030A
    rig.ok("DRAIN", n=4, fuse=1)
    # the emitting GEMM itself with last = 1
    rig = Rig()
    assert rig.fault(word("GEMM", gm=2, gn=2, emit=1, **BAD), last=1) == WR_DROP | MemFault.M_ALIGN << 8
    # two batches before one cover
    rig = Rig()
    rig.ok("GEMM", gm=2, gn=2, emit=1, addr=1 << 38)
    rig.ok("GEMM", gm=2, gn=2, emit=1, **BAD)
    assert rig.fault(word("DRAIN", n=4, fuse=1)) == WR_DROP | MemFault.M_RSVD << 8
    # a good batch faults nobody
    rig = Rig()
    rig.ok("GEMM", gm=2, gn=2, emit=1, addr=OUT)
    assert rig.inst(word("DRAIN", n=4, fuse=1), last=1, txn=9).arg == 9


@pytest.mark.parametrize(
    ("addr", "code"),
    [
        (OUT + 1, MemFault.M_ALIGN),
        (1 << 38 | 1, MemFault.M_RSVD),
        (1 << 36, MemFault.M_MESH),
        (1 << 39 | 1 << 36, MemFault.M_MESH),
        (1 << 39 | 1 << 32, MemFault.M_APER),
        (1 << 39 | (2 << 20), MemFault.M_RANGE),
        (DRAM_BYTES, MemFault.M_RANGE),
    ],
)
def test_each_memory_code_reaches_reads_and_writes(addr: int, code: MemFault) -> None:
    rig = Rig()
    rig.ok("GEMM")
    assert rig.fault(word("DRAIN", addr=addr)) == WR_DROP | code << 8
    assert rig.fault(word("FILL", addr=addr)) == F_MEM_RD
    assert [f.code for f in rig.m.agent.faults] == [code, code]


# ------------------------------------------------------------------ read errors


def test_failed_fill_delivers_zeros_and_faults() -> None:
    rig = Rig()
    rig.operands(4, 1, 1)
    rig.ok("FILL", addr=A_AT, n=4)
    assert rig.fault(word("FILL", addr=DRAM_BYTES - 128, n=2, eoff=1)) == F_MEM_RD
    assert rig.p.l1[0].entry(0) != 0
    assert rig.p.l1[0].entry(1) == rig.p.l1[0].entry(2) == 0
    assert rig.p.l1[0].entry(3) != 0
    assert rig.m.shells[P].sticky == 1 << 3
    assert rig.m.shells[P].first_hdr & 0xFFFF == 2 << 12 | 1 << 4 | 4
    rig.ok("FILL", addr=A_AT, n=4)


def test_bus_error_on_one_word_zeroes_only_that_word() -> None:
    rig = Rig()
    a, _ = rig.operands(2, 1, 1)
    rig.m.agent.fail_bus(A_AT + 128 + 64, 32)
    assert rig.fault(word("FILL", addr=A_AT, n=2), last=1) == F_MEM_RD
    q, scale = num.operand_entries(a)
    want = q[1, 0].copy()
    want[:, 16:24] = 0
    assert np.array_equal(rig.p.l1[0].q[1], want)
    assert np.array_equal(rig.p.l1[0].scale[:2], scale[:, 0])
    assert rig.m.shells[P].first_hdr & 0xFFF == 1 << 4 | 4 | 2
    assert rig.m.agent.fault_count == 1


# ------------------------------------------------------------------ results, counters, saturation


def test_success_results_count_good_instructions_only() -> None:
    rig = Rig()
    assert rig.ok("FILL", addr=A_AT).arg == 1
    assert rig.ok("GEMM").arg == 2
    rig.fault(word("DRAIN", n=2))
    rig.fault(word("FILL", addr=1))
    assert rig.ok("DRAIN", addr=OUT).arg == 3
    rig.fault(word("DRAIN", **BAD))  # a refused write is the shell's fault, the instruction itself was fine
    rig.p.count = 65534
    assert rig.ok("GEMM").arg == 65535
    assert rig.ok("GEMM").arg == 0
    done = rig.inst(word("GEMM"), last=1, txn=0x5A)
    assert (done.code, done.arg, done.txn) == (1, 0x5A, 0x5A)
    assert rig.m.shells[P].retired == 9


def saturating_tile(rig: Rig) -> None:
    rig.ok("GEMM", gm=1, gn=2)
    rig.p.tiles.codes[:2] = 0x13BFF0
    rig.p.tiles.codes[1, 3] = 0x13BFF8


def test_fp16_clamp_is_sticky_and_changes_nothing() -> None:
    rig = Rig()
    saturating_tile(rig)
    rig.ok("DRAIN", addr=OUT, n=1)
    assert rig.m.shells[P].sticky == 0
    rig.ok("DRAIN", n=2, **NODE, dbuf=2)
    assert rig.m.shells[P].sticky == 0
    rig.ok("DRAIN", addr=OUT, n=2)
    assert rig.m.shells[P].sticky == 1 << 8 + 3
    assert rig.m.read_mem(OUT, 64) == b"\xff\x7b" * 32
    assert rig.p.tiles.events.fp16_sat == 1


def test_anchor_outside_its_range_is_counted() -> None:
    rig = Rig()
    rig.operands(1, 1, 1)
    rig.fill_all(1, 1, 1)
    rig.ok("GEMM", anchor=255)
    assert rig.p.tiles.events.acc_range == 16
    assert not rig.p.tiles.codes[0].any()
    rig.ok("GEMM", anchor=40)
    assert rig.p.tiles.events.acc_range == 16


def test_staging_store_serves_fill_and_drain() -> None:
    rig = Rig()
    a, b = rig.operands(2, 2, 1)
    stage = 0x80_0000_0000
    rig.m.write_mem(stage + 0x40, rig.m.read_mem(A_AT, 256))
    rig.ok("FILL", addr=stage + 0x40, n=2)
    rig.ok("FILL", addr=0x8_0000, n=2, sel=1)
    rig.ok("GEMM", gm=2, gn=2)
    top = stage + (2 << 20) - 128
    rig.ok("DRAIN", addr=top, n=4)
    assert rig.m.read_mem(top, 128) == num.emit_words(rig.p.tiles.codes[:4]).tobytes()
    assert np.array_equal(rig.tile_codes(top, 2, 2), num.product(a, b)[1])
    assert rig.m.agent.counts == {"stage": [8, 4], "dram": [8, 0]}


def test_without_a_staging_store_the_aperture_faults() -> None:
    rig = Rig(stage_bytes=0)
    assert rig.fault(word("FILL", addr=1 << 39)) == F_MEM_RD
    assert rig.m.agent.faults[0].code == MemFault.M_APER


def random_program(rng: np.random.Generator, n: int) -> list[Any]:
    """Legal and illegal instructions mixed."""
    out = []
    for _ in range(n):
        gm, gn, nk = (int(x) for x in rng.integers(1, 6, 3))
        pick = rng.integers(0, 6)
        if pick == 0:
            out.append(("FILL", {"addr": A_AT + 32 * int(rng.integers(0, 64)), "n": gm * nk, "sel": gn % 2}))
        elif pick in (1, 2):
            out.append(("GEMM", {"gm": gm, "gn": gn, "nk": nk, "acc": int(pick == 2)}))
        elif pick == 3:
            out.append(("GEMM", {"gm": gm, "gn": gn, "emit": 1, "addr": OUT + 32 * int(rng.integers(0, 99))}))
        else:
            fuse = int(rng.integers(0, 2))
            fields = {"n": gm * gn, "fuse": fuse}
            out.append(("DRAIN", fields if fuse else {**fields, "addr": OUT + 0x4000 + 32 * gm}))
    return out


def test_two_clusters_and_two_runs_agree() -> None:
    """The same instruction stream gives the same signals and images on both clusters and again."""
    program = random_program(np.random.default_rng(5), 300)
    seen = []
    for node in (P, Q, P):
        rig = Rig()
        rig.operands(5, 5, 5)
        done = [rig.inst(word(op, **fields), node=node) for op, fields in program]
        seen.append((done, rig.m.read_mem(OUT, 0x8000), rig.m.shells[node].retired))
    assert seen[0] == seen[1] == seen[2]
    codes = {c.code for c in seen[0][0]}
    assert codes == {0, 4}

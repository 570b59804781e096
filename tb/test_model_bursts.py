# SPDX-License-Identifier: Apache-2.0
"""CU_DATA into the cluster model: operands, accumulator, rejects, acks (docs/spec/cluster.md 8)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.model_rig import A_AT, B_AT, EXT, MEM, ORCH, OUT, P, Q, Rig, codes_to_granules
from kohakutpu.isa import cluster as isa
from kohakutpu.isa import message
from kohakutpu.model import numerics as num
from kohakutpu.model.messages import DataBurst

pytestmark = pytest.mark.unit

ONE = 0x0FC000
REJECT = 1 << 31
PEER = {
    "dnode": 1,
    "dst_x": Q[0],
    "dst_y": Q[1],
    "dbuf": 2,
    "dflags": 1,
    "dack_x": ORCH[0],
    "dack_y": ORCH[1],
}


def asyncs(rig: Rig) -> int:
    """Code of the next retirement, 0 if it is clean; GEMM acc on an opened tile changes nothing here."""
    done = rig.inst(isa.encode("FILL", addr=A_AT, n=1, eoff=255))
    if done.code == 0:
        return 0
    assert done.code == 4
    assert done.arg >> 8 == 0x4D4701
    return done.arg & 0xFF


def unit_err(rig: Rig) -> int:
    return rig.m.shells[P].sticky >> 8


def words_of(rig: Rig, at: int, entries: int) -> np.ndarray:
    return np.frombuffer(rig.m.read_mem(at, 128 * entries), dtype=np.uint8).reshape(-1, 32)


# ------------------------------------------------------------------ operand buffers


@pytest.mark.parametrize("size", [1, 3, 4, 8, 255, 256])
def test_operands_as_bursts_equal_fills(size: int) -> None:
    gm, gn, nk = 4, 4, 16
    rig, other = Rig(), Rig()
    for r in (rig, other):
        r.operands(gm, gn, nk)
    other.fill_all(gm, gn, nk)
    for buf, at in ((0, A_AT), (1, B_AT)):
        words = words_of(rig, at, 64)
        for first in range(0, len(words), size):
            # upper bank: entries 256.. of the one range both banks form
            rig.burst(words[first : first + size], buf, 4 * 256 + first)
    assert set(rig.m.shells[P].acks) == {0, 1}
    assert asyncs(rig) == unit_err(rig) == 0
    rig.ok("GEMM", gm=gm, gn=gn, nk=nk, abank=1, bbank=1)
    other.ok("GEMM", gm=gm, gn=gn, nk=nk)
    for r in (rig, other):
        r.ok("DRAIN", addr=OUT, n=16)
    assert rig.m.read_mem(OUT, 512) == other.m.read_mem(OUT, 512)
    assert any(rig.m.read_mem(OUT, 512))


def test_split_entry_is_not_committed() -> None:
    rig = Rig()
    rig.operands(8, 1, 1)
    words = words_of(rig, A_AT, 8)
    rig.burst(words[:2], 0, 0)
    rig.burst(words[2:4], 0, 2)
    assert asyncs(rig) == 0
    assert rig.p.l1[0].entry(0) != 0
    # an entry left open and another begun
    rig.burst(words[4:6], 0, 4)
    rig.burst(words[8:12], 0, 8)
    assert asyncs(rig) == 0x89
    assert rig.p.l1[0].entry(1) == 0
    assert rig.p.l1[0].entry(2) != 0
    assert unit_err(rig) == 1 << 6
    # the rest of the discarded entry has no beginning
    rig.burst(words[6:8], 0, 6)
    assert rig.p.l1[0].entry(1) == 0
    assert asyncs(rig) == 0x89
    # a burst that starts in the middle, goes on with whole entries and ends in the middle
    rig.burst(words[13:26], 0, 13)
    assert rig.p.l1[0].entry(3) == 0
    assert rig.p.l1[0].entry(4) != 0
    assert rig.p.l1[0].entry(6) == 0
    assert asyncs(rig) == 0x89
    rig.burst(words[26:28], 0, 26)
    assert rig.p.l1[0].entry(6) != 0
    assert asyncs(rig) == 0
    # a single first word of another entry also ends the open one, and begins its own
    rig.burst(words[4:6], 0, 4)
    rig.burst(words[8:9], 0, 80)
    assert asyncs(rig) == 0x89
    rig.burst(words[9:12], 0, 81)
    assert rig.p.l1[0].entry(20) != 0
    assert asyncs(rig) == 0
    # the two sides share the register: words of B between words of A
    rig.burst(words[28:30], 0, 28)
    rig.burst(words[:4], 1, 0)
    assert asyncs(rig) == 0x89
    assert rig.p.l1[1].entry(0) != 0
    assert all(a >> 31 == 0 for a in rig.m.shells[P].acks)


def test_fill_and_burst_interleave() -> None:
    rig = Rig()
    rig.operands(4, 1, 1)
    words = words_of(rig, A_AT, 4)
    rig.burst(words[:2], 0, 0)
    rig.ok("FILL", addr=A_AT, n=4, eoff=16)
    rig.burst(words[2:4], 0, 2)
    assert rig.p.l1[0].entry(0) == rig.p.l1[0].entry(16) != 0
    assert asyncs(rig) == 0


# ------------------------------------------------------------------ accumulator buffer


@pytest.mark.parametrize(("gm", "gn"), [(2, 2), (3, 3), (16, 32)])
def test_send_replayed_into_the_same_cluster_doubles(gm: int, gn: int) -> None:
    rig = Rig()
    rig.operands(gm, gn, 2)
    rig.fill_all(gm, gn, 2)
    rig.ok("GEMM", gm=gm, gn=gn, nk=2)
    before = rig.p.tiles.codes[: gm * gn].copy()
    rig.ok("DRAIN", n=gm * gn, **{**PEER, "dst_x": EXT[0], "dst_y": EXT[1]})
    assert np.array_equal(rig.p.tiles.codes[: gm * gn], before)
    captured = rig.ext.buffers[2][: 2 * gm * gn]
    for first in range(0, len(captured), 8):
        rig.burst(captured[first : first + 8], 2, first)
    after = rig.p.tiles.codes[: gm * gn]
    assert np.array_equal(after, num.acc_add(before, before))
    # doubling is exact: one more in the exponent, zeros stay
    assert np.array_equal(after, np.where(before == 0, 0, before + (1 << 14)))
    assert set(rig.m.shells[P].acks) == {2}


def test_zero_tile_plus_one_gives_3c00() -> None:
    rig = Rig()
    rig.ok("GEMM")
    rig.burst(codes_to_granules(ONE), 2, 0)
    rig.ok("DRAIN", addr=OUT)
    assert rig.m.read_mem(OUT, 32) == b"\x00\x3c" * 16


def test_k_split_across_two_clusters() -> None:
    rig = Rig()
    a, b = rig.operands(4, 4, 4)
    entries_a, entries_b = num.operand_entries(a), num.operand_entries(b)
    for node, kb in ((P, 0), (Q, 2)):
        for g in range(4):
            rig.ok("FILL", node=node, addr=A_AT + 128 * (4 * g + kb), n=2, eoff=2 * g)
            rig.ok("FILL", node=node, addr=B_AT + 128 * (4 * g + kb), n=2, eoff=2 * g, sel=1)
        rig.ok("GEMM", node=node, gm=4, gn=4, nk=2)
    rig.ok("DRAIN", n=16, **PEER)
    assert rig.m.orch.signal_count(Q) == 9 + 4
    rig.ok("DRAIN", node=Q, addr=OUT, n=16)
    parts = []
    for kb in (0, 2):
        s = slice(kb, kb + 2)
        store = num.TileStore(16)
        store.sweep(
            (entries_a[0][:, s], entries_a[1][:, s]),
            (entries_b[0][:, s], entries_b[1][:, s]),
            accumulate=False,
        )
        parts.append(store.codes)
    want = num.to_fp16(num.acc_add(parts[1], parts[0]))
    assert rig.m.read_mem(OUT, 512) == want.astype("<u2").tobytes()


def test_peer_granules_ignore_padding_and_zero_codes() -> None:
    rig = Rig()
    rig.ok("GEMM")
    granules = codes_to_granules(ONE)
    granules[1, 12:] = 0xA5
    rig.burst(granules, 2, 0)
    rig.burst(codes_to_granules(0x203FFF), 2, 0)  # exponent 0: zero whatever the rest says
    raw = np.zeros((2, 32), dtype=np.uint8)
    raw[0, :2] = [0x34, 0x12]
    rig.burst(raw, 2, 0)
    assert (rig.p.tiles.codes[0] == ONE).all()


# ------------------------------------------------------------------ rejects


@pytest.mark.parametrize(
    ("buf", "offset", "n", "reason", "code"),
    [
        (3, 0, 1, 1, 0x81),
        (255, 0, 256, 1, 0x81),
        (0, 2047, 2, 2, 0x82),
        (1, 65535, 256, 2, 0x82),
        (2, 1023, 2, 2, 0x82),
        (2, 1, 2, 3, 0x83),
        (2, 0, 1, 3, 0x83),
        (2, 8, 2, 6, 0x86),
        (2, 0, 10, 6, 0x86),
    ],
)
def test_reject_reasons(buf: int, offset: int, n: int, reason: int, code: int) -> None:
    rig = Rig()
    rig.ok("GEMM", gm=2, gn=2)
    before = [s.q.copy() for s in rig.p.l1], rig.p.tiles.codes.copy()
    data = np.full((n, 32), 0x11, dtype=np.uint8)
    rig.burst(data, buf, offset, flags=1)
    assert rig.m.shells[P].acks == [REJECT | reason << 24 | buf]
    assert unit_err(rig) == 2
    for store, old in zip(rig.p.l1, before[0], strict=True):
        assert np.array_equal(store.q, old)
    assert np.array_equal(rig.p.tiles.codes, before[1])
    # reported once, by the next retirement without a fault of its own
    assert rig.fault(isa.encode("DRAIN", n=5)) == 0x4D470308
    assert asyncs(rig) == code
    assert asyncs(rig) == 0
    # a good burst follows at once
    rig.burst(codes_to_granules(ONE, 4), 2, 0)
    assert rig.m.shells[P].acks[-1] == 2
    assert asyncs(rig) == 0
    assert rig.m.orch.err_stat & 1 << 8


def test_last_legal_bursts() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=16, gn=32)
    words = np.zeros((8, 32), dtype=np.uint8)
    for buf, top in ((0, 2048), (1, 2048), (2, 1024)):
        rig.burst(words, buf, top - 8)
    assert rig.m.shells[P].acks == [0, 1, 2]
    assert asyncs(rig) == 0


def test_first_async_code_is_kept_and_follows_own_faults() -> None:
    rig = Rig()
    word = np.zeros((1, 32), dtype=np.uint8)
    rig.burst(word, 9, 0)
    rig.burst(word, 2, 0)
    assert rig.inst(isa.encode("GEMM"), last=1).arg == 0x4D470281
    assert rig.m.shells[P].completions[-1].code == 4
    assert asyncs(rig) == 0
    # the reporting instruction executed normally and counts
    assert rig.p.opened == 1
    assert rig.p.count == 2


def test_burst_without_signal_flag_is_not_acknowledged() -> None:
    rig = Rig()
    rig.burst(np.zeros((4, 32), dtype=np.uint8), 0, 0, flags=0)
    rig.burst(np.zeros((4, 32), dtype=np.uint8), 7, 0, flags=0xFE)
    assert rig.m.shells[P].acks == []
    assert asyncs(rig) == 0x81


def test_acknowledgement_target() -> None:
    rig = Rig()
    words = np.zeros((4, 32), dtype=np.uint8)
    rig.burst(words, 0, 0, ack=(0, 0), txn=0x44)
    (flit,) = rig.ext.flits
    assert (flit.dst, flit.src, flit.type, flit.txn, flit.last) == (EXT, P, 6, 0x44, 1)
    assert flit.payload >> 216 == 3 << 32
    for single in DataBurst(P, EXT, 0x55, 0, 0, 0, 1, (0, 0), words).flits():
        rig.m.deliver(single)
    assert (rig.ext.flits[-1].dst, rig.ext.flits[-1].txn) == (EXT, 0x55)
    rig.burst(words, 0, 0, ack=Q)  # a third node: a cluster discards it silently
    assert rig.m.shells[Q].sticky == 0
    rig.burst(words, 0, 0, ack=ORCH)
    assert rig.m.orch.signal_count(P) == 1
    rig.burst(words, 0, 0, ack=(0, 0), src=ORCH)
    assert rig.m.orch.signal_count(P) == 2


def flits_of(words: np.ndarray, buf: int, offset: int, src: tuple[int, int], **how: Any) -> list[int]:
    burst = DataBurst(P, src, how.get("txn", 1), 0, buf, offset, how.get("flags", 1), ORCH, words)
    return list(burst.flits())


def test_single_flits_equal_the_whole_burst() -> None:
    rig, other = Rig(), Rig()
    for r in (rig, other):
        r.operands(8, 1, 1)
        r.ok("GEMM", gm=2, gn=2)
    words = words_of(rig, A_AT, 8)
    granules = codes_to_granules(ONE, 4)
    for buf, data, offset in ((0, words, 4), (0, words[:5], 64), (1, words[5:], 69), (2, granules, 0)):
        rig.burst(data, buf, offset)
        for flit in flits_of(data, buf, offset, EXT):
            other.m.deliver(flit)
    for one, two in zip(rig.p.l1, other.p.l1, strict=True):
        assert np.array_equal(one.q, two.q)
        assert np.array_equal(one.scale, two.scale)
    assert np.array_equal(rig.p.tiles.codes, other.p.tiles.codes)
    assert rig.m.shells[P].acks == other.m.shells[P].acks
    assert asyncs(rig) == asyncs(other)


def test_second_and_third_sender() -> None:
    rig = Rig()
    rig.operands(4, 1, 1)
    words = words_of(rig, A_AT, 4)
    one = flits_of(words[:4], 0, 0, EXT)
    two = flits_of(words[:8], 0, 16, Q)
    three = flits_of(words[:2], 0, 32, MEM)
    for flit in [one[0], two[0], one[1], two[1], three[0], two[2], *one[2:4]]:
        rig.m.deliver(flit)
    assert unit_err(rig) == 1
    assert rig.m.shells[P].acks == []
    rig.m.deliver(one[4])
    assert rig.m.shells[P].acks == [0]
    assert rig.p.l1[0].entry(0) != 0
    # a new burst while the tracker still discards the second one
    rig.burst(words[4:8], 0, 4)
    assert rig.m.shells[P].acks == [0, 0]
    for flit in two[3:]:
        rig.m.deliver(flit)
    assert rig.m.shells[P].acks == [0, 0, REJECT | 4 << 24]
    assert rig.p.l1[0].entry(4) == 0
    assert rig.p.l1[0].entry(1) != 0
    assert unit_err(rig) == 3
    assert asyncs(rig) == 0x84
    rig.burst(words[:4], 0, 32)
    assert rig.p.l1[0].entry(8) != 0


@pytest.mark.parametrize("early", [True, False])
def test_last_against_the_count(early: bool) -> None:
    rig = Rig()
    rig.operands(2, 1, 1)
    flits = flits_of(words_of(rig, A_AT, 2), 0, 0, EXT)
    marked = 5 if early else 8  # data flits are 1..8
    flits[8] &= ~(1 << 259)
    if early:
        flits[marked] |= 1 << 259
        flits[8] |= 1 << 259
    for flit in flits:
        rig.m.deliver(flit)
    assert rig.m.shells[P].acks == [REJECT | 5 << 24]
    assert asyncs(rig) == 0x85
    assert rig.p.l1[0].entry(0) != 0
    assert (rig.p.l1[0].entry(1) == 0) == early
    rig.burst(words_of(rig, A_AT, 2), 0, 0)
    assert rig.m.shells[P].acks[-1] == 0


# ------------------------------------------------------------------ responses nobody asked for


def test_unsolicited_read_response() -> None:
    """A multicast copy of another requester's read."""
    rig = Rig()
    rig.m.write_mem(A_AT, bytes(range(64)))
    peer = P[1] << 4 | P[0]
    rig.m.deliver(
        message.encode(
            "MEM_RD_REQ",
            dst=MEM,
            src=EXT,
            txn=3,
            addr=A_AT,
            flags=0x40,
            count=1,
            entry_words=2,
            n_peer=1,
            peer0=peer,
        )
    )
    assert len(rig.ext.flits) == 2
    assert rig.p.l1[0].entry(3) == 0
    assert unit_err(rig) == 1 << 2
    assert asyncs(rig) == 0x88
    assert asyncs(rig) == 0


def test_self_and_cyclic_destinations() -> None:
    rig = Rig()
    rig.ok("GEMM", gm=2, gn=2)
    rig.ok("GEMM", gm=2, gn=2, node=Q)
    rig.p.tiles.codes[:4] = ONE
    rig.ok("DRAIN", n=4, **PEER)
    rig.ok("DRAIN", n=4, node=Q, **{**PEER, "dst_x": P[0]})
    assert (rig.p.tiles.codes[:4] == ONE + (1 << 14)).all()
    # beyond the edge: the route clamps, the unit that gets the flits does not take them
    rig.ok("DRAIN", n=4, **{**PEER, "dst_x": 9})
    assert rig.m.shells[Q].sticky & 1
    rig.ok("DRAIN", n=4, **{**PEER, "dst_x": 2, "dst_y": 5})
    assert rig.m.orch.err_stat & 1 << 9

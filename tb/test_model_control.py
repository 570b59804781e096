# SPDX-License-Identifier: Apache-2.0
"""Orchestrator, engine and rounds of the machine model (docs/spec/fabric.md 5.5, 6, 7 and 8)."""

from __future__ import annotations

import pytest

from kohakuabi.steps import Await, Kick, Seed
from kohakubench.model_rig import A_AT, B_AT, EXT, MEM, ORCH, OUT, P, Q, Rig
from kohakutpu.isa import cluster as isa
from kohakutpu.isa import message, registers
from kohakutpu.isa.generated import EngineError
from kohakutpu.model.engine import Resp
from kohakutpu.model.memory import Image
from kohakutpu.model.numerics import product

pytestmark = pytest.mark.unit

BASE = 0x1000_0000
NODE = {"dnode": 1, "dst_x": EXT[0], "dst_y": EXT[1], "dflags": 1, "dack_x": ORCH[0], "dack_y": ORCH[1]}


def reg(name: str, index: int = 0) -> int:
    return registers.host_address(name, index)


def wr(rig: Rig, name: str, value: int, index: int = 0, strobe: int = 0xFF) -> Resp:
    return rig.m.host_write(reg(name, index), value, strobe)


def rd(rig: Rig, name: str, index: int = 0) -> int:
    value, resp = rig.m.host_read(reg(name, index))
    assert resp == Resp.OKAY
    return value


def program() -> list[int]:
    """FILL both sides, multiply, drain: four instructions."""
    return [
        isa.encode("FILL", addr=A_AT, n=4),
        isa.encode("FILL", addr=B_AT, n=4, sel=1),
        isa.encode("GEMM", gm=4, gn=4),
        isa.encode("DRAIN", addr=OUT, n=16),
    ]


def kick(rig: Rig, node: tuple[int, int], base: int, n: int) -> None:
    dst = node[1] << 4 | node[0]
    for name, value in (
        ("PROG_DST", dst),
        ("PROG_BASE", base),
        ("PROG_LEN", n),
        ("PROG_KICK", 1),
    ):
        assert wr(rig, name, value) == Resp.OKAY


# ------------------------------------------------------------------ dispatch and credit


def test_dispatch_returns_the_completions() -> None:
    rig = Rig()
    rig.operands(4, 4, 1)
    result = rig.m.dispatch(P, 3, program(), txn=0x42)
    got = [(c.code, c.arg, c.txn) for c in result.completions]
    assert got == [(0, 1, 66), (0, 2, 66), (0, 3, 66), (1, 66, 66)]
    assert (result.signal_count, result.retired, result.cu_err, result.data_received) == (4, 4, 0, ())
    assert rd(rig, "NODE_STATUS", P[1] << 4 | P[0]) == 1 << 56 | 66 << 24 | 4 << 8 | 1
    assert rd(rig, "PROG_STAT") == 31 << 17
    assert rd(rig, "SIG_DONE") == 4
    with pytest.raises(ValueError, match="ERR_STAT"):
        rig.m.dispatch((2, 2), 0, program())


@pytest.mark.parametrize("credit", [1, 2, 3, 4])
def test_credit_equal_to_the_programs_completes_and_one_less_stops(credit: int) -> None:
    rig = Rig()
    rig.operands(4, 4, 1)
    wr(rig, "PROG_CRED", credit)
    for n in range(4):
        rig.m.stage(4 * n, program())
        if n < credit:
            kick(rig, P, 4 * n, 4)
            assert rd(rig, "PROG_STAT") == (credit - n - 1) << 17
            continue
        kick(rig, P, 4 * n, 4)
        assert rd(rig, "PROG_STAT") == 0 << 17 | 4 << 1 | 1
        assert rd(rig, "STATUS") & 1
        kick(rig, P, 0, 4)
        assert rd(rig, "ERR_STAT") == 1
        # a running dispatch holds the mailbox, keeps its target, and recovers by a new seed
        wr(rig, "TX_KICK", 1)
        assert rd(rig, "ERR_STAT") == 1 | 1 << 5
        wr(rig, "PROG_DST", 0xFF)
        wr(rig, "PROG_CRED", 32)
        assert rd(rig, "PROG_STAT") == 31 << 17
        assert rig.m.shells[P].retired == 4 * n + 4
        break


def test_abort_keeps_what_is_left() -> None:
    rig = Rig()
    rig.m.stage(0, program())
    kick(rig, P, 0, 4)
    assert rd(rig, "PROG_STAT") == 4 << 1 | 1
    wr(rig, "PROG_ABORT", 0)
    assert rd(rig, "PROG_STAT") == 4 << 1
    wr(rig, "PROG_CRED", 4)
    assert rig.m.shells[P].retired == 0


def test_credit_returns_stop_at_the_ceiling_and_batches_return_none() -> None:
    rig = Rig()
    wr(rig, "PROG_CRED", 33)
    assert rd(rig, "PROG_CRED") == 32
    assert rd(rig, "ERR_STAT") == 1 << 3
    wr(rig, "PROG_CRED", 0xFF05, strobe=1)
    assert rd(rig, "PROG_CRED") == 5
    wr(rig, "PROG_CRED", 9, strobe=4)
    assert rd(rig, "PROG_CRED") == 5
    rig.ok("GEMM")  # an instruction that used no credit
    assert rd(rig, "PROG_CRED") == 5
    rig.m.stage(0, [isa.encode("DRAIN", n=2)])
    kick(rig, P, 0, 1)
    assert rd(rig, "PROG_CRED") == 5  # a FAULT returns it
    rig.m.stage(0, [isa.encode("GEMM")])
    kick(rig, P, 0, 1)
    assert rd(rig, "PROG_CRED") == 4


@pytest.mark.parametrize(
    ("node", "base", "n", "bit"),
    [(P, 0, 0, 1), (P, 127, 2, 2), (P, 128, 1, 2), ((2, 0), 0, 1, 4), (MEM, 0, 1, 4), (ORCH, 0, 1, 4)],
)
def test_refused_kicks(node: tuple[int, int], base: int, n: int, bit: int) -> None:
    rig = Rig()
    wr(rig, "PROG_CRED", 4)
    kick(rig, node, base, n)
    assert rd(rig, "ERR_STAT") == 1 << bit
    assert rd(rig, "PROG_STAT") == 4 << 17
    wr(rig, "ERR_STAT", 1 << bit)
    assert rd(rig, "ERR_STAT") == 0
    rig.m.stage(127, [isa.encode("GEMM")])
    kick(rig, P, 127, 1)
    assert rd(rig, "ERR_STAT") == 0


def test_staged_header_is_rewritten_and_other_types_cost_credit() -> None:
    rig = Rig()
    flit = message.encode("CU_DATA_DESC", dst=(15, 15), src=(9, 9), txn=0x77, buf_id=9) | 0
    for w, value in enumerate(message.to_words(flit)):
        wr(rig, "STAGE", value | (0xFFFF << 40 if w == 4 else 0), index=5 * 6 + w)
    wr(rig, "PROG_CRED", 2)
    kick(rig, P, 6, 1)
    assert rd(rig, "PROG_CRED") == 1
    assert rig.p._rx.open
    assert rd(rig, "STAGE") == 0


# ------------------------------------------------------------------ mirror, errors, registers


def test_error_info_holds_the_first_event() -> None:
    rig = Rig()
    arg = rig.fault(isa.encode("DRAIN", n=1), node=Q)
    rig.fault(isa.encode("GEMM", acc=1))
    assert rd(rig, "ERR_STAT") == 1 << 7
    assert rd(rig, "ERR_INFO") == 2 << 48 | arg << 16 | 4 << 8 | Q[1] << 4 | Q[0]
    wr(rig, "ERR_STAT", 1 << 7)
    assert rd(rig, "ERR_INFO") == 0
    assert rd(rig, "STATUS") == 4
    wr(rig, "SIG_DONE", 0)
    assert rd(rig, "SIG_DONE") == 0


def test_unmapped_offsets_and_strobes() -> None:
    rig = Rig()
    for offset in (0x158, 0x130, 0x228, 0x278, 0x900, 0x1800, 0x1FF8, 0x2000 + 40 * 128, 0xFFF8):
        assert rig.m.host_write(BASE + offset, 1) == Resp.SLVERR, hex(offset)
        assert rig.m.host_read(BASE + offset) == (0, Resp.SLVERR)
        assert rd(rig, "ERR_STAT") == 1 << 10
        wr(rig, "ERR_STAT", 0xFFFF)
    for offset in (0x0, 0x80, 0xF8, 0x120, 0x1A0, 0x8F8, 0x17F8, 0x2000 + 40 * 128 - 8, 0x220):
        assert rig.m.host_read(BASE + offset)[1] == Resp.OKAY, hex(offset)
    assert rig.m.host_write(0x2000_0000, 0) == Resp.DECERR
    assert rig.m.host_read(BASE + 0x1_0000) == (0, Resp.DECERR)
    wr(rig, "CTRL", 0x1122334455667788)
    wr(rig, "CTRL", 0, strobe=0b0000_0110)
    assert rd(rig, "CTRL") == 0x1122334455000088
    wr(rig, "PROG_KICK", 0, strobe=0)
    assert rd(rig, "ERR_STAT") == 0
    wr(rig, "PROG_KICK", 0, strobe=0x80)
    assert rd(rig, "ERR_STAT") == 1 << 1
    wr(rig, "AUX_CFG", 1)
    assert rd(rig, "ERR_STAT") == 1 << 1
    # 0x80 and up is the interlink's part of the window, and there is none
    wr(rig, "AUX_CFG", 1, 16)
    assert rd(rig, "ERR_STAT") == 1 << 1 | 1 << 11
    bare = Rig(mover=False)
    wr(bare, "AUX_CFG", 1)
    assert (rd(bare, "ERR_STAT"), rd(bare, "AUX_STAT")) == (1 << 11, 0)
    assert rd(rig, "CAPS2") == registers.encode(
        "CAPS2", magic=0x4F52, revision=1, stage_flits=128, orc_y=1, orc_x=1, grid_y_hi=1, grid_x_hi=2
    )
    assert rd(rig, "CAPS") == 2 << 32 | 1 << 24 | 4 << 16 | 288


def mailbox(rig: Rig, flit: int) -> None:
    for w, value in enumerate(message.to_words(flit)):
        wr(rig, "TX_FLIT", value, w)
    wr(rig, "TX_KICK", 1)


def received(rig: Rig) -> int:
    return message.from_words([rd(rig, "RX_FLIT", w) for w in range(5)])


def control(rig: Rig, index: int, op: int = 0, node: tuple[int, int] = P) -> message.Message:
    mailbox(rig, message.encode("CU_CTRL_REQ", dst=node, src=ORCH, txn=0x19, op=op, index=index, value=5))
    reply = message.decode(received(rig))
    wr(rig, "RX_POP", 0)
    assert rd(rig, "RX_STATUS") == 1 << 16
    assert (reply.header["txn"], reply.fields["index"]) == (0x19, index)
    return reply


def test_discovery_through_the_mailbox() -> None:
    rig = Rig(cluster={"rowmajor": True})
    caps = registers.decode("CU_CAPS", control(rig, 0).fields["value"])
    assert caps == {
        "cu_type": 0x4D47,
        "cu_version": 5,
        "n_buffers": 3,
        "inst_depth": 32,
        "max_inflight": 1,
        "features": 1,
    }
    rig.fault(isa.encode("FILL", addr=1))
    rig.ok("GEMM")
    assert control(rig, 1).fields["value"] == 1 << 62 | 32 << 32
    assert control(rig, 2).fields["value"] == 2 << 32
    err = control(rig, 4).fields["value"]
    assert err & 0xFFFF == 1 << 3
    assert err >> 16 == rig.m.shells[P].first_hdr
    refused = control(rig, 2, op=1)
    assert (refused.fields["op"], refused.fields["value"]) == (3, 2 << 32)
    cleared = control(rig, 4, op=1)
    assert (cleared.fields["op"], cleared.fields["value"]) == (2, err)
    for index in (3, 4, 5, 0xDF, 0xE0, 0xFF):
        assert control(rig, index).fields == {"op": 2, "index": index, "value": 0}
    assert control(rig, 0, op=7).fields["op"] == 2


def test_misrouted_and_foreign_flits() -> None:
    rig = Rig()
    mailbox(rig, message.encode("CU_INST", dst=(7, 1), src=ORCH, txn=4) | isa.encode("GEMM"))
    (done,) = rig.m.shells[Q].completions
    assert (done.code, done.arg, done.txn) == (4, 0xFAB0_0001, 4)
    assert rig.m.shells[Q].sticky == 1
    assert rig.m.shells[Q].first_hdr == 7 << 28 | 1 << 24 | 1 << 20 | 1 << 16 | 5 << 12 | 4 << 4
    for kind, bit in ((0x0, 1), (0xB, 1), (0x3, 5), (0x6, None)):
        rig = Rig()
        mailbox(rig, P[0] << 284 | P[1] << 280 | 1 << 276 | 1 << 272 | kind << 268)
        assert rig.m.shells[P].sticky == (0 if bit is None else 1 << bit)
    mailbox(rig, message.encode("CU_DATA_DESC", dst=(2, 2), src=ORCH))
    assert rd(rig, "ERR_STAT") == 1 << 9


def test_mailbox_overflow() -> None:
    rig = Rig()
    for n in range(18):
        mailbox(rig, message.encode("CU_DATA_DESC", dst=ORCH, src=ORCH, txn=n))
    assert rd(rig, "RX_STATUS") == 1 << 17
    assert rd(rig, "ERR_STAT") == 1 << 6
    assert rd(rig, "MEM_DROP") >> 32 == 2
    wr(rig, "RX_STATUS", 1 << 17)
    assert rd(rig, "RX_STATUS") == 0
    for n in range(16):
        assert message.decode(received(rig)).header["txn"] == n
        wr(rig, "RX_POP", 0)
    wr(rig, "RX_POP", 0)
    assert rd(rig, "RX_STATUS") == 1 << 16
    assert received(rig) == 0


def test_signal_count_wraps() -> None:
    rig = Rig()
    rig.m.orch.status[P[1] << 4 | P[0]] = 0xFFFF << 8 | 1
    rig.m.orch.sig_done = 0xFFFF
    rig.ok("GEMM")
    assert rd(rig, "NODE_STATUS", P[1] << 4 | P[0]) & 0xFFFFFF == 1
    assert rd(rig, "SIG_DONE") == 0


# ------------------------------------------------------------------ engine


def commands(rig: Rig, *rows: tuple[int, int, int, int], at: int = 0) -> None:
    for n, row in enumerate(rows):
        for field, value in enumerate(row):
            assert wr(rig, "CMD", value, 4 * (at + n) + field) == Resp.OKAY


def go(rig: Rig) -> tuple[int, int]:
    wr(rig, "ENG_CTRL", 1)
    return rd(rig, "ENG_CTRL"), rd(rig, "ENG_PC")


CTRL = BASE


def test_engine_ends() -> None:
    rig = Rig()
    commands(rig, (1, CTRL, 77, 0), (2, CTRL, 0x0D, 0x0F), (3, 0, 0xAB, 0))
    assert go(rig) == (2, 2)
    assert (rd(rig, "ENG_CODE"), rd(rig, "CTRL"), rd(rig, "ENG_POLLS")) == (0xAB, 77, 1)
    for row, code in (
        ((9, CTRL, 0, 0), EngineError.BAD_OP),
        ((0, CTRL, 0, 0), EngineError.BAD_OP),
        ((1, CTRL + 0x158, 0, 0), EngineError.WR_RESP),
        ((1, 0x1000, 0, 0), EngineError.WR_RESP),
        ((2, CTRL + 0x1FF8, 0, 0), EngineError.RD_RESP),
        ((2, CTRL, 78, 0xFF), EngineError.POLL_LIMIT),
    ):
        commands(rig, row, at=1)
        assert go(rig) == (code << 4 | 6, 1), row
        assert rd(rig, "ENG_ERR_ADDR") == row[1]
        assert rd(rig, "ENG_CODE") == 0xAB
    commands(rig, *[(1, CTRL, n, 0) for n in range(128)])
    assert go(rig) == (EngineError.NO_DONE << 4 | 6, 127)
    assert rd(rig, "CTRL") == 127
    commands(rig, (3, 0, 5, 0), at=127)
    assert go(rig) == (2, 127)
    assert rig.m.host_read(0x48)[1] == rig.m.host_write(0x48, 0) == Resp.SLVERR
    assert rd(rig, "CMD") == 0
    assert rd(rig, "ENG_CAPS") == 0x4345 << 48 | 31 << 16 | 128


def round_steps(credit: int, programs: int) -> list[Seed | Kick | Await]:
    steps: list[Seed | Kick | Await] = [Seed(credit)]
    steps += [Kick(*(P if n % 2 == 0 else Q), 4 * n, 4) for n in range(programs)]
    steps.append(Await(*P, 4 * -(-programs // 2)))
    if programs > 1:
        steps.append(Await(*Q, 4 * (programs // 2)))
    return steps


def test_round_of_two_clusters() -> None:
    rig = Rig()
    a, b = rig.operands(4, 4, 1)
    payloads = program() * 4
    result = rig.m.run_round(round_steps(8, 4), payloads, code=9)
    assert not result.failed
    assert (result.engine_err, result.engine_code) == (EngineError.NONE, 9)
    assert (result.run, result.left, result.credit) == (False, 0, 4)
    assert result.sig_done == 16
    assert {n: r.signal_count for n, r in result.nodes.items()} == {P: 8, Q: 8, EXT: 0}
    assert [c.code for c in result.nodes[Q].completions] == [0, 0, 0, 1] * 2
    assert [c.txn for c in result.nodes[Q].completions] == [1] * 4 + [3] * 4
    # 2 programs x (8 entries x 4 words read, 16 words written) on each cluster
    assert result.counters == {"dram": (128, 64), "stage": (0, 0)}
    assert result.mem_faults == frozenset()
    again = rig.m.run_round(round_steps(8, 4), payloads)
    assert (again.sig_done, again.nodes[P].signal_count, again.nodes[P].retired) == (16, 16, 16)
    assert rig.tile_codes(OUT, 4, 4).tolist() == product(a, b)[1].tolist()


def test_round_with_credit_one_short_ends_at_the_poll() -> None:
    rig = Rig()
    rig.operands(4, 4, 1)
    result = rig.m.run_round(round_steps(3, 4), program() * 4)
    assert result.failed
    assert result.engine_err == EngineError.POLL_LIMIT
    assert (result.run, result.left, result.credit) == (True, 4, 0)
    wr(rig, "PROG_ABORT", 1)
    assert not rig.m.run_round(round_steps(4, 4), program() * 4).failed


@pytest.mark.parametrize("position", range(4))
def test_a_fault_on_any_position_ends_the_round_by_its_counts(position: int) -> None:
    rig = Rig()
    rig.operands(4, 4, 1)
    bad = program()
    bad[position] = isa.encode("GEMM", gm=200, gn=200)
    result = rig.m.run_round(round_steps(4, 1), bad)
    assert result.engine_err == EngineError.NONE
    assert result.failed
    assert result.err_stat == 1 << 7
    assert result.nodes[P].completions[position].arg == 0x4D470207
    assert result.nodes[P].signal_count == 4
    # a FAULT on the final instruction returns its credit, a batch completion does not; without the GEMM the
    # DRAIN faults as well
    assert result.credit == (4 if position >= 2 else 3)


def test_round_awaits_bursts_before_a_kick() -> None:
    rig = Rig()
    rig.operands(4, 4, 1)
    sender = [*program()[:3], isa.encode("DRAIN", n=9, **NODE)]
    first = rig.m.run_round([Seed(4), Kick(*P, 0, 4), Await(*P, 4)], sender)
    assert first.nodes[EXT].data_received == (0, 0)
    second = rig.m.run_round([Seed(4), Await(*EXT, 0), Kick(*P, 0, 4), Await(*P, 4)], sender)
    assert not second.failed
    lost = rig.m.run_round([Seed(4), Await(*EXT, 1)], [])
    assert (lost.engine_err, lost.err_stat) == (EngineError.POLL_LIMIT, 0)


def test_memory_faults_of_a_round_form_a_set() -> None:
    rig = Rig()
    bad = [isa.encode("GEMM"), isa.encode("DRAIN", addr=1), isa.encode("DRAIN", addr=1 << 38)]
    result = rig.m.run_round([Seed(4), Kick(*P, 0, 3), Await(*P, 3)], bad)
    assert {(f.code, f.addr) for f in result.mem_faults} == {(1, 1), (2, 1 << 38)}
    assert rd(rig, "MEM_FAULT") in {f.register() for f in result.mem_faults}
    assert result.mem_drop == (2, 0, 0)
    assert result.err_info >> 48 == 2
    with pytest.raises(ValueError, match="commands"):
        rig.m.run_round([Await(*P, 1)] * 128, [])


def test_engine_and_host_execute_the_same_list() -> None:
    """The same commands, once by GO and once one by one, leave the same state."""
    images: list[Image] = []
    states = []
    for by_engine in (True, False):
        rig = Rig()
        rig.operands(4, 4, 1)
        rig.m.stage(0, program())
        dst = P[1] << 4 | P[0]
        rows = [
            (1, reg("PROG_CRED"), 4, 0),
            (2, reg("PROG_STAT"), 0, 1),
            (1, reg("PROG_DST"), dst, 0),
            (1, reg("PROG_BASE"), 0, 0),
            (1, reg("PROG_LEN"), 4, 0),
            (1, reg("PROG_KICK"), 1, 0),
            (2, reg("NODE_STATUS", dst), 4 << 8 | 1, 0xFFFF01),
            (3, 0, 1, 0),
        ]
        if by_engine:
            commands(rig, *rows)
            assert go(rig) == (2, 7)
        else:
            for op, addr, data, mask in rows:
                if op == 1:
                    assert rig.m.host_write(addr, data) == Resp.OKAY
                if op == 2:
                    assert rig.m.host_read(addr)[0] & mask == data
        images.append(rig.m.agent.dram)
        mirror = [rd(rig, "NODE_STATUS", n) for n in range(256)]
        states.append([*mirror, rd(rig, "PROG_STAT"), rd(rig, "SIG_DONE")])
    assert states[0] == states[1]
    assert images[0].first_difference(images[1]) is None

# SPDX-License-Identifier: Apache-2.0
"""Receive framing of unit-to-unit bursts, docs/spec/fabric.md 1.7 and 5.8.

Every test ends in a replay of all its cycles on ``kohakubench.burst_model``; what a test
states itself is what the page promises in words.
"""

import itertools
import random
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, ValueChange, with_timeout

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.burst_model import (
    LAST_MISMATCH,
    NOT_READY,
    ODD_START,
    RANGE,
    SECOND_SENDER,
    UNKNOWN_BUF,
    burst,
    replay,
)
from kohakubench.shell_model import DATA_RECEIVED, flit, signal
from kohakubench.shell_stage import same_flits, start_clock

_DUT = "rtl/control/cud_rx.v"
BENCH = Bench(
    name="cud_rx",
    top="tb_cud_rx",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/control/cud_rx.v",
        "rtl/control/cud_rx_sva.sv",
        "tb/hdl/flit_player.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/tb_cud_rx.v",
    ],
    variants={"deep": {"ACKQ_DEPTH": 128}},
    mutations={
        "compare_16_bit": (
            "tb/hdl/tb_cud_rx.v",
            "(desc_end >= capacity)",
            "(desc_end[15:0] >= capacity[15:0] - 16'd1)",
        ),
        "no_tracker": (_DUT, "else if (taken && is_trk_desc) trk_open_q <= 1'b1;", ""),
        "tracker_ends_with_burst": (
            _DUT,
            "(taken && final_trk) trk_open_q <= 1'b0;",
            "(taken && (final_trk || final_data)) trk_open_q <= 1'b0;",
        ),
        "last_ignored": (_DUT, "is_data && in_last != final_data", "is_data && in_last && !final_data"),
        "framed_by_last": (_DUT, "is_data && left_q == 8'd0", "is_data && (left_q == 8'd0 || in_last)"),
        "ack_to_source": (
            _DUT,
            "(in_named != 8'd0) ? in_named : in_src",
            "(in_named[7:4] != 4'd0) ? in_named : in_src",
        ),
        "reject_not_acknowledged": (
            _DUT,
            "(final_data && sig_q)",
            "(final_data && sig_q && cause != `KT_REJ_RANGE)",
        ),
        "full_queue_loses_signal": (
            _DUT,
            "wants_ack && !ackq_ready",
            "final_trk && wants_ack && !ackq_ready",
        ),
        "full_queue_stops_data": (_DUT, "wants_ack && !ackq_ready", "is_data && !ackq_ready"),
        "later_cause_wins": (_DUT, "rejected_q ? reason_q :", "rejected_q && !mismatch ? reason_q :"),
        "third_sender_silent": (_DUT, "taken && is_third", "1'b0"),
        "abort_late": (_DUT, "is_data && !rejected_q && !abort", "is_data && !rejected_q"),
    },
    timeout_cycles=500_000,
)

A, B, C, ORCH = (1, 2), (4, 2), (0, 3), (1, 1)
_numbers = itertools.count(1)


def rule(buf, offset, length, ready):
    """The unit's answer (docs/spec/cluster.md 8.2 with the bench's capacities)."""
    if buf > 2:
        return UNKNOWN_BUF
    if offset + length >= (512, 65536, 64)[buf]:
        return RANGE
    if buf == 2 and (offset % 2 or length % 2 == 0):
        return ODD_START
    return NOT_READY if buf == 2 and not ready else 0


class Stage:
    """Plays flits into the receiver and replays its log."""

    def __init__(self, dut):
        self.dut = dut
        self.own = (int(dut.POS_X.value), int(dut.POS_Y.value))
        self.depth = int(dut.ACKQ_DEPTH.value)

    def set(self, **levels):
        for name, value in levels.items():
            getattr(self.dut, name).value = value

    async def begin(self, **levels):
        self.number = next(_numbers)
        start_clock(self.dut.clk)
        idle = dict.fromkeys(
            (
                "log_flush",
                "play",
                "play_count",
                "wr_mode",
                "wr_level",
                "sig_mode",
                "sig_level",
                "abort_mode",
                "abort_level",
                "not_ready",
            ),
            0,
        )
        self.set(**{**idle, "seed": seed() * 40503 % 2**32 + 1, "log_id": self.number, **levels})
        await clocks.reset(self.dut)
        return self

    async def play(self, flits, *, wait=True):
        pairs = [f if isinstance(f, tuple) else (0, f) for f in flits]
        Path("stim.hex").write_text("".join(f"{gap << 288 | word:076x}\n" for gap, word in pairs))
        await FallingEdge(self.dut.clk)
        self.set(play=1, play_count=len(pairs))
        await FallingEdge(self.dut.clk)
        self.set(play=0)
        if wait and not int(self.dut.play_done.value):
            await RisingEdge(self.dut.play_done)

    async def until(self, name, value, limit=100_000):
        handle = getattr(self.dut, name)
        while int(handle.value) != value:
            await with_timeout(ValueChange(handle), limit * clocks.PERIOD_NS, "ns")
        await FallingEdge(self.dut.clk)

    async def finish(self):
        """Let the signals drain, then compare everything."""
        self.set(sig_mode=0)
        await clocks.cycles(self.depth + 20)
        await FallingEdge(self.dut.clk)
        self.set(log_flush=1)
        await FallingEdge(self.dut.clk)
        self.set(log_flush=0)
        r = replay(Path(f"events_{self.number}.log"), self.own, rule, self.depth)
        checks.equal("cycles compared", r.cycles > 0, True, n=max(1, r.cycles))
        checks.equal("signals left in the queue", len(r.receiver.signals), 0)
        return r

    def answer(self, to, *, txn=0, buf=0, reason=0):
        """The DATA_RECEIVED that the page promises."""
        return signal(to, self.own, txn, DATA_RECEIVED, (reason != 0) << 31 | reason << 24 | buf)


def words(n, tag=1):
    """``n`` payloads that all differ."""
    return [tag << 240 | k * 0x0101010101 << 8 | k for k in range(n)]


@cocotb.test()
async def lengths_and_ranges(dut):
    """len 0, 1, 7, 255; offset + len one below, at and far above the capacity; 16 bits never wrap."""
    s = await Stage(dut).begin()
    flits, answers, stored = [], [], 0
    for buf, cap in ((0, 512), (1, 65536)):
        for n in (1, 2, 8, 256):
            for offset in (0, cap - n - 1, cap - n, cap - n + 1, cap - 1, 65535):
                if offset > 65535:
                    continue
                reason = RANGE if offset + n - 1 >= cap else 0
                txn = len(answers) % 256
                flits += burst(s.own, A, words(n), buf=buf, offset=offset, txn=txn)
                answers.append(s.answer(A, txn=txn, buf=buf, reason=reason))
                stored += 0 if reason else n
    await s.play(flits)
    r = await s.finish()
    same_flits("signals", r.signals, answers)
    checks.equal("granules", len(r.stores), stored)
    checks.equal("rejected", r.rejected, sum(a >> 247 & 1 for a in answers))


@cocotb.test()
async def buffers(dut):
    """Unknown buffers, the reserved 3, half a sub-tile, a buffer that is not ready; then a good burst."""
    s = await Stage(dut).begin()
    for ready in (1, 0):
        s.set(not_ready=1 - ready)
        flits, answers = [], []
        for buf, offset, n in (
            (3, 0, 4),
            (4, 0, 1),
            (255, 9, 2),
            (2, 1, 2),
            (2, 0, 3),
            (2, 62, 2),
            (2, 63, 2),
            (2, 0, 2),
            (0, 5, 3),
        ):
            flits += burst(s.own, A, words(n), buf=buf, offset=offset, ack=ORCH, txn=offset)
            answers.append(s.answer(ORCH, txn=offset, buf=buf, reason=rule(buf, offset, n - 1, ready)))
        await s.play(flits)
        await clocks.cycles(3)
        if ready:
            first = answers
    r = await s.finish()
    same_flits("signals", r.signals, first + answers)
    checks.equal("reasons seen", sorted({a >> 240 & 127 for a in r.signals}), [0, 1, 2, 3, 6])


@cocotb.test()
async def wrong_last(dut):
    """`last` early at every position and absent at the end: ended by the count, reason 5, next burst good."""
    s = await Stage(dut).begin()
    flits, answers, stored = [], [], 0
    for n in (1, 2, 5, 9):
        for wrong in range(n):
            for want in (1, 0):
                flits += burst(s.own, A, words(n), offset=3, txn=wrong, want=want, wrong=wrong)
                answers += [s.answer(A, txn=wrong, reason=LAST_MISMATCH)] * want
                stored += wrong + 1
        flits += burst(s.own, B, words(n, 2), offset=40, txn=99)
        answers.append(s.answer(B, txn=99))
        stored += n
    await s.play(flits)
    r = await s.finish()
    same_flits("signals", r.signals, answers)
    checks.equal("granules", len(r.stores), stored)


@cocotb.test()
async def targets(dut):
    """ack 0 answers the source; an explicit target, also one with x = 0 or y = 0, gets the signal."""
    s = await Stage(dut).begin()
    flits, answers = [], []
    for k, ack in enumerate(((0, 0), ORCH, (0, 1), (1, 0), (14, 15), (0, 15))):
        for want in (0, 1):
            flits += burst(s.own, A, words(2), ack=ack, txn=k, want=want)
            answers += [s.answer(ack if ack != (0, 0) else A, txn=k)] * want
    await s.play(flits)
    r = await s.finish()
    same_flits("signals", r.signals, answers)


@cocotb.test()
async def foreign_flits(dut):
    """Flits of every other type between each pair of flits of a burst."""
    s = await Stage(dut).begin()
    flits = []
    for k, word in enumerate(burst(s.own, A, words(40), offset=100)):
        flits += [flit(s.own, (A, B)[k % 2], kind, k % 256, k & 1, 0, word & 0xFFFF) for kind in range(16) if kind != 8]
        flits.append(word)
    await s.play(flits)
    r = await s.finish()
    same_flits("signals", r.signals, [s.answer(A)])
    checks.equal("granules", [x[1] for x in r.stores], list(range(100, 140)))


@cocotb.test()
async def second_sender(dut):
    """A second burst that begins in every phase of the first, and ends before, with or after it."""
    s = await Stage(dut).begin()
    flits, answers = [], []
    for n, m in ((4, 1), (4, 3), (2, 8), (1, 2)):
        for start in range(n):
            for stride in (1, 2, 9):
                one = burst(s.own, A, words(n), offset=start, txn=1, ack=ORCH)
                two = burst(s.own, B, words(m, 7), offset=200, txn=2, want=(start + stride) % 2)
                merged = one[: start + 1]
                rest = one[start + 1 :]
                while two or rest:
                    merged, two = merged + two[:1], two[1:]
                    merged, rest = merged + rest[:stride], rest[stride:]
                flits += merged
                # whoever ends first answers first
                ends = {(1, 2): len(merged) - 1 - merged[::-1].index(one[-1])}
                last_two = max(k for k, w in enumerate(merged) if w >> 272 & 0xFF == B[0] << 4 | B[1])
                pair = [(ends[(1, 2)], s.answer(ORCH, txn=1))]
                if (start + stride) % 2:
                    pair.append((last_two, s.answer(B, txn=2, reason=SECOND_SENDER)))
                answers += [a for _, a in sorted(pair)]
    await s.play(flits)
    r = await s.finish()
    same_flits("signals", r.signals, answers)
    checks.true("the second sender stores nothing", all(x[2] >> 240 == 1 for x in r.stores))


@cocotb.test()
async def third_sender(dut):
    """A third burst inside two others is discarded and flagged; both others end as they should."""
    s = await Stage(dut).begin()
    flits, answers, third = [], [], 0
    for phase in range(5):
        one = burst(s.own, A, words(8), txn=1)
        two = burst(s.own, B, words(6, 2), txn=2)
        three = burst(s.own, C, words(2, 3), txn=3)
        third += len(three)
        k = 1 + phase // 2
        flits += [*one[:k], two[0], three[0], one[k], three[1], two[1], three[2]]
        one, two = one[k + 1 :], two[2:]
        flits += one + two if phase % 2 else two + one
        pair = [s.answer(A, txn=1), s.answer(B, txn=2, reason=SECOND_SENDER)]
        answers += pair if phase % 2 else pair[::-1]
        flits += burst(s.own, C, words(3, 4), txn=4)
        answers.append(s.answer(C, txn=4))
    await s.play(flits)
    r = await s.finish()
    checks.equal("discarded", r.third, third)
    same_flits("signals", r.signals, answers)


@cocotb.test()
async def queue_full(dut):
    """ACKQ_DEPTH signals wait, data still flows, one more burst end holds, then all drains."""
    for second_ends_first in (False, True):
        s = await Stage(dut).begin(sig_mode=1)
        n = s.depth
        await s.play([w for k in range(n) for w in burst(s.own, A, words(1), offset=k % 512, txn=k % 256)])
        await s.play(burst(s.own, B, words(100), want=0, txn=5))
        await clocks.cycles(5)
        checks.equal("stored", int(dut.stored.value), n + 100)
        # six data flits of the open burst and one of the second pass, then either end holds
        one, two = burst(s.own, A, words(7), txn=7), burst(s.own, B, words(2, 2), txn=8)
        ends = [two[2], one[7]] if second_ends_first else [one[7], two[2]]
        await s.play([*one[:3], *two[:2], *one[3:7], *ends], wait=False)
        await clocks.cycles(50)
        checks.equal("held", (int(dut.taken.value), int(dut.play_done.value)), (2 * n + 101 + 9, 0))
        s.set(sig_mode=0)
        await s.until("signals", n + 2)
        r = await s.finish()
        same_flits("signals", r.signals[:n], [s.answer(A, txn=k % 256) for k in range(n)])
        last = [s.answer(A, txn=7), s.answer(B, txn=8, reason=SECOND_SENDER)]
        same_flits("last two", r.signals[n:], last[::-1] if second_ends_first else last)
        checks.true("holding seen", r.held > 20, f"{r.held} cycles")


@cocotb.test()
async def abort_burst(dut):
    """abort rejects the open burst from that cycle on, in every phase; none open: ignored."""
    for at in range(12):
        s = await Stage(dut).begin()
        flits = burst(s.own, A, words(6), txn=at)
        # one flit every other cycle, so that abort meets a flit or a gap
        await s.play([(k % 2, w) for k, w in enumerate(flits)], wait=False)
        await clocks.cycles(at + 1)
        s.set(abort_mode=1)
        await clocks.cycles(1)
        s.set(abort_mode=0)
        await clocks.cycles(40)
        await s.play(burst(s.own, A, words(2), txn=200))
        r = await s.finish()
        checks.equal("second burst", r.signals[1], s.answer(A, txn=200))
        checks.true("first burst", r.signals[0] in (s.answer(A, txn=at), s.answer(A, txn=at, reason=NOT_READY)))
    # a unit that has stopped taking granules is released by its own abort
    s = await Stage(dut).begin(wr_mode=1)
    await s.play(burst(s.own, A, words(9), txn=3), wait=False)
    await clocks.cycles(30)
    checks.equal("held by the unit", int(dut.taken.value), 1)
    s.set(abort_mode=1)
    await clocks.cycles(1)
    s.set(abort_mode=0)
    await s.until("signals", 1)
    r = await s.finish()
    same_flits("signals", r.signals, [s.answer(A, txn=3, reason=NOT_READY)])
    checks.equal("stored", len(r.stores), 0)


def _merge(rng, streams):
    """Interleave flit streams at random, each in its own order."""
    out = []
    streams = [list(x) for x in streams if x]
    while streams:
        pick = rng.choice(streams)
        run = rng.choice((1, 1, 2, 5))
        out += [(rng.choice((0, 0, 0, 2)), w) for w in pick[:run]]
        del pick[:run]
        streams = [x for x in streams if x]
    return out


@cocotb.test()
async def random_bursts(dut):
    """Random bursts of one to four senders, random stalls, aborts, wrong `last`, bad descriptors."""
    rng = random.Random(seed())
    for _ in range(scale(10, 300)):
        s = await Stage(dut).begin(
            wr_mode=rng.choice((0, 2, 3)),
            wr_level=rng.choice((20, 100, 200)),
            sig_mode=rng.choice((0, 2, 3)),
            sig_level=rng.choice((20, 128, 240)),
            abort_mode=rng.choice((0, 0, 2)),
            abort_level=2,
        )
        streams = []
        for src in (A, B, C, ORCH)[: rng.choice((1, 1, 2, 3, 4))]:
            stream = []
            for _ in range(rng.randint(1, 25)):
                n = rng.choice((1, 2, 3, 8, rng.randint(1, 40), 256))
                stream += burst(
                    s.own,
                    src,
                    [rng.getrandbits(256) for _ in range(n)],
                    buf=rng.choice((0, 0, 1, 2, 3, 9)),
                    offset=rng.choice((0, 2, rng.randrange(520), 65535 - n, 65536 - n)),
                    want=rng.randrange(2),
                    ack=rng.choice(((0, 0), ORCH)),
                    txn=rng.randrange(256),
                    wrong=rng.randrange(n) if rng.random() < 0.1 else None,
                )
            streams.append(stream)
        await s.play(_merge(rng, streams))
        await s.finish()

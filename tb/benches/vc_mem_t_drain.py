# SPDX-License-Identifier: Apache-2.0
"""VDRAIN: write bursts cut greedily, peer bursts, their checks (docs/spec/vector.md 7.9, 9.1, 9.4)."""

from __future__ import annotations

import cocotb

from benches.vc_mem_rig import HOLD, Rig
from kohakubench import checks, clocks, scale, seed
from kohakubench.vc_mem_ref import F_ENC, F_L1RANGE, F_LEN, F_PEER, VDRAIN


@cocotb.test()
async def greedy_bursts(dut):
    """Walks of one to four dimensions: bursts end after 8 words and at every jump; memory byte exact."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=50)
    cases: list[list[tuple[int, int]]] = [
        [(32, n)] for n in (1, 7, 8, 9, 15, 16, 17, 255, 256)
    ]  # fmt: skip
    cases += [
        [(32, 4), (128, 8)],  # contiguous across rows: bursts of 8
        [(32, 3), (96, 6)], [(32, 8), (512, 8)], [(32, 5), (1024, 9)], [(64, 20)], [(-32, 20)], [(32, 2), (-64, 9)],
        [(32, 2), (64, 2), (128, 2), (256, 2)], [(32, 2), (128, 3), (4096, 5), (65536, 7)], [(0, 9)], [(32, 12),
        (0, 3)],
        [(32, 0), (32, 24)], [(96, 2), (32, 3), (192, 4)], [(32, 7), (224, 2), (448, 3), (1344, 2)],
        [(32, 4), (16384 + 128, 5)], [(32, 3), (65536 + 96, 4)], [(32, 2), (131072 - 64, 3), (-131072, 2)],
    ]  # fmt: skip
    for _ in range(scale(40, 800)):
        dims = [(32 * int(rig.rng.choice([1, 1, 1, 2, 4, -1, 0])), int(rig.rng.integers(1, 6))) for _ in range(4)]
        cases.append(dims[: int(rig.rng.integers(1, 5))])
    for dims in cases:
        rig.desc(0, 0x80000 + 32 * int(rig.rng.integers(0, 999)), *dims)
        n = rig.ref.desc[0].total
        if n <= 256:
            rig.vdrain(0, int(rig.rng.integers(0, 513 - n)))
    await rig.run()


@cocotb.test()
async def words_of_the_moment(dut):
    """The words are read before any later instruction changes them, however long the link is blocked."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=200, cfg_lat=0)
    rig.desc(0, 0x80000, (32, 24))
    rig.desc(1, 0, (1, 8))
    rig.desc(2, 0, (1, 24))
    for k in range(scale(12, 100)):
        rig.vdrain(0, 0)
        rig.vst(k % 16, 1)
        rig.vst(k % 13, 1, 16)
        rig.peer(2, 0, (3, 1))
        rig.vst(k % 11, 1, 3)
        rig.vfill(0, 12)
    rig.vhalt()
    await rig.run()


@cocotb.test()
async def peer_fields(dut):
    """Every field of a peer burst, local and remote, n = 1, 2, 256, to another core and to itself."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=30)
    for n in (1, 2, 256):
        for dst in ((2, 1), (1, 0), (0, 1), (15, 15)):
            rig.desc(0, int(rig.rng.integers(0, 65536 - n)), (1, n))
            rig.peer(0, 512 - n, dst)
    for bit in range(40):
        rig.desc(0, 1 << bit | 0x00120000, (1, 1))
        rig.peer(0, bit, (2, 1), bit % 16, bit & 1)
    for fin in (1, 0x10, 0x80, 0xFF, 0x21):
        for mesh in range(4):
            rig.desc(0, fin << 26 | mesh << 24 | 0x310000 | 40, (1, 3))
            rig.peer(0, 100, (0, 1), 0, 1)
    for buf in range(16):
        rig.desc(0, 65536 - 4, (1, 4))
        rig.peer(0, 7, (2, 1), buf, buf & 1)
    rig.desc(0, 9, (-7, 1), (5, 0), (1, 1), (131071, 1))  # strides of unused dimensions are not looked at
    rig.peer(0, 3, (2, 1))
    checks.true("no fault", not any(rig.ref.codes))
    await rig.run()


@cocotb.test()
async def refusals(dut):
    """F_ENC, F_LEN, F_PEER, F_L1RANGE of VDRAIN in the order of the checks; no flit leaves."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    memory = 0x1E << 27
    expect: list[tuple[int, int]] = []
    rig.desc(0, 0x8000, (32, 2))
    for word in (1 << 26, 1 << 25, 1 << 17, 8 << 17, 1 << 13, 8 << 13, 1 << 9, 15 << 9, 1 << 26 | 1 << 9):
        expect.append((rig.raw(VDRAIN, memory | word), F_ENC))
    rig.desc(1, 7, (1, 2))
    expect.append((rig.peer(1, 0, (2, 1), mx=1), F_ENC))
    rig.desc(2, 0x8010, (48, 300))
    expect.append((rig.raw(VDRAIN, memory | 2 << 21 | 1 << 25 | 511), F_ENC))
    expect.append((rig.peer(2, 511, (0, 0)), F_LEN))
    for base, dims, dst, code in (
        (0, [(1, 4)], (0, 0), F_PEER), (0, [(1, 4), (1, 2)], (2, 1), F_PEER), (0, [(1, 4), (0, 1), (0, 2)], (2, 1),
        F_PEER),
        (0, [(1, 4), (0, 1), (0, 1), (1, 3)], (2, 1), F_PEER), (0, [(2, 4)], (2, 1), F_PEER), (0, [(0, 2)], (2, 1),
        F_PEER),
        (0, [(32, 2)], (2, 1), F_PEER), (0, [(-1, 2)], (2, 1), F_PEER), (0, [(2, 1)], (2, 1), 0),
        (65535, [(1, 1)], (2, 1), 0), (65535, [(1, 2)], (2, 1), F_PEER), (65280, [(1, 256)], (2, 1), 0),
        (65281, [(1, 256)], (2, 1), F_PEER), (1 << 26, [(1, 1)], (0, 1), F_PEER), (1 << 33, [(1, 1)], (0, 1), F_PEER),
        (1 << 26 | 1 << 16, [(1, 1)], (0, 1), 0), (1 << 26 | 1 << 23, [(1, 1)], (0, 1), 0), (3 << 24, [(1, 1)],
        (0, 1), 0),
        (63 << 34, [(1, 1)], (2, 1), 0), (0, [(1, 257)], (2, 1), F_LEN), (0, [(1, 4)], (0, 1), 0), (0, [(1, 4)],
        (1, 0), 0),
    ):  # fmt: skip
        rig.desc(3, base, *dims)
        expect.append((rig.peer(3, 0, dst), code))
    for n, l1, code in ((256, 256, 0), (256, 257, F_L1RANGE), (1, 511, 0), (2, 511, F_L1RANGE)):
        rig.desc(3, 5, (1, n))
        expect.append((rig.peer(3, l1, (2, 1)), code))
    rig.desc(3, 65535, (1, 2))
    expect.append((rig.peer(3, 511, (2, 1)), F_PEER))
    for k, code in expect:
        checks.equal(f"code of command {k}", rig.ref.codes[k], code)
    await rig.run()


@cocotb.test()
async def halt_waits(dut):
    """VHALT after VDRAIN and VFILL answers only when every flit has left and every word has come."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_lat=150)
    rig.desc(0, 0x80000, (32, 5))
    rig.vfill(0, 0)
    halt = rig.vhalt()
    rig.setting(HOLD, 1)
    rig.pause(50)
    rig.setting(HOLD, 0)
    rig.vdrain(0, 100)
    rig.vhalt()
    t = await rig.run()
    checks.true("VHALT waits for the words", t.cycles(halt) > 100, f"{t.cycles(halt)} cycles")
    last = max(c for c, f in t.out if f >> 268 & 15 == 4)
    checks.true("VDRAIN answers with its last flit", t.answers[2][0] >= last)


@cocotb.test()
async def send_order(dut):
    """DATA_RECEIVED and read requests go before waiting peer data, at any flit; not inside a write burst."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.desc(0, 0x1000, (64, 40))
    rig.desc(1, 0, (1, 256))
    rig.desc(2, 0x80000, (32, 64))
    rig.vfill(0, 0)
    rig.peer(1, 200, (2, 1))
    rig.burst(500, rig.words(1), after=1, delay=60)
    rig.vdrain(2, 200)
    for k in range(4):
        rig.burst(500, rig.words(1), after=2, delay=0 if k else 10)
    t = await rig.run()
    kinds = [f >> 268 & 15 for _, f in t.out]
    peer = [i for i, k in enumerate(kinds) if k == 8]
    requests = [i for i, k in enumerate(kinds) if k == 0]
    signals = [i for i, k in enumerate(kinds) if k == 6]
    checks.true("requests before most peer data", requests[-1] < peer[8], f"{requests[-1]} and {peer[8]}")
    checks.true("signal between peer flits", peer[0] < signals[0] < peer[-10], f"{signals[0]} in {peer[0]}..{peer[-1]}")
    bursts = [i for i, k in enumerate(kinds) if k == 1]
    checks.true("signals between write bursts", any(bursts[0] < s < bursts[-1] for s in signals[1:]))

# SPDX-License-Identifier: Apache-2.0
"""The DRAM model itself: data, order per ID, latency, error window, checks, backdoor."""

import random

import cocotb
from cocotb.triggers import FallingEdge, ReadOnly

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.dram import DRAM_PUBLIC, Dram

WORDS = 4096
BENCH = Bench(
    name="axi_dram",
    top="tb_axi_dram",
    sources=["tb/hdl/axi_dram_model.v", "tb/hdl/tb_axi_dram.v"],
    params={"WORDS": WORDS},
    variants={"single": {"SINGLE": 1}},
    public=DRAM_PUBLIC,
    mutations={
        "strobe": ("tb/hdl/axi_dram_model.v", "if (beat[256+j]) merged", "if (beat[256]) merged"),
        "early_b": (
            "tb/hdl/axi_dram_model.v",
            "if (wq_id[j] == wq_id[i]) ok",
            "if (wq_id[j] != wq_id[i]) ok",
        ),
        "id_order": ("tb/hdl/axi_dram_model.v", "if (rq_id[j] == rq_id[i]) ok = 1'b0;", ""),
        "latency": ("tb/hdl/axi_dram_model.v", "due = now + {16'd0, cfg_lat_min};", "due = now + 1;"),
        "window": ("tb/hdl/axi_dram_model.v", "(addr < cfg_err_hi)", "(addr <= cfg_err_hi)"),
    },
    wall_s=120,
)
FULL = (1 << 32) - 1


class Master:
    """Drives all five channels from queues, one coroutine, on falling edges."""

    def __init__(self, dut):
        self.dut = dut
        self.aw, self.w, self.ar = [], [], []
        self.b, self.r = [], []
        self.ready_pct = 100
        self.rng = random.Random(seed())
        for name in ("awvalid", "wvalid", "arvalid", "bready", "rready"):
            getattr(dut, f"axi_{name}").value = 0

    def _offer(self, channel, queue, fields):
        valid = getattr(self.dut, f"axi_{channel}valid")
        if queue:
            for name, value in zip(fields, queue[0], strict=True):
                getattr(self.dut, f"axi_{channel}{name}").value = value
        valid.value = int(bool(queue))

    async def run(self):
        d = self.dut
        address = ("id", "addr", "len", "size", "burst")
        while True:
            await FallingEdge(d.clk)
            self._offer("aw", self.aw, address)
            self._offer("ar", self.ar, address)
            self._offer("w", self.w, ("data", "strb", "last"))
            d.axi_bready.value = int(self.rng.randrange(100) < self.ready_pct)
            d.axi_rready.value = int(self.rng.randrange(100) < self.ready_pct)
            await ReadOnly()
            for channel, queue in (("aw", self.aw), ("ar", self.ar), ("w", self.w)):
                if queue and int(getattr(d, f"axi_{channel}ready").value):
                    queue.pop(0)
            if int(d.axi_bvalid.value) and int(d.axi_bready.value):
                self.b.append((int(d.axi_bid.value), int(d.axi_bresp.value), clocks.now()))
            if int(d.axi_rvalid.value) and int(d.axi_rready.value):
                beat = (d.axi_rid, d.axi_rdata, d.axi_rresp, d.axi_rlast)
                self.r.append((*(int(s.value) for s in beat), clocks.now()))

    def write(self, id_, addr, beats, strb=FULL):
        self.aw.append((id_, addr, len(beats) - 1, 5, 1))
        self.w += [(b, strb, int(i == len(beats) - 1)) for i, b in enumerate(beats)]

    def read(self, id_, addr, n):
        self.ar.append((id_, addr, n - 1, 5, 1))

    async def until(self, condition, limit=20000):
        for _ in range(limit):
            if condition():
                return
            await clocks.cycles(1)
        raise AssertionError("the model stopped answering")


async def start(dut, **controls):
    clocks.start(dut.clk)
    m = Master(dut)
    await clocks.reset(dut)
    dram = Dram(dut.u_dram, words=WORDS)
    dram.configure(ideal=0, fatal=1, reorder=0, interleave=0, err_rd=0, err_wr=0, lat_min=4, lat_max=40)
    dram.configure(**{f"{c}_pct": 100 for c in ("ar", "aw", "w", "r", "b")})
    dram.configure(**controls)
    cocotb.start_soon(m.run())
    return m, dram


def word(data, addr):
    return int.from_bytes(data[addr : addr + 32], "little")


@cocotb.test()
async def backdoor(dut):
    """Images and single words go in and out without a clock; ranges are checked."""
    _, dram = await start(dut)
    image = random.Random(seed()).randbytes(96 * 32)
    await dram.load(64, image)
    checks.equal("image", await dram.read(64, len(image)), image, n=96)
    checks.equal("word before", await dram.read(32, 32), bytes(32))
    checks.equal("word after", await dram.read(64 + len(image), 32), bytes(32))
    checks.equal("peek", await dram.peek(128), word(image, 64))
    await dram.poke((WORDS - 1) * 32, 1 << 255 | 5)
    checks.equal("poke", await dram.read((WORDS - 1) * 32, 32), (1 << 255 | 5).to_bytes(32, "little"))
    for addr, n in ((1, 32), (0, 33), (WORDS * 32, 32)):
        try:
            await dram.read(addr, n)
        except ValueError:
            checks.true("refused", True)
        else:
            checks.true("refused", False, f"{addr:#x}+{n} was accepted")


@cocotb.test()
async def random_traffic(dut):
    """Random bursts of four IDs under random latency, order and readiness: bytes and order per ID."""
    rng = random.Random(seed())
    m, dram = await start(
        dut,
        lat_min=1,
        lat_max=60,
        reorder=1,
        interleave=1,
        ar_pct=60,
        aw_pct=60,
        w_pct=70,
        r_pct=70,
        b_pct=50,
    )
    m.ready_pct = 60
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    swapped = interleaved = False
    for _ in range(scale(3, 20)):
        reads, writes = [], []
        for i in range(24):
            id_, n = rng.randrange(4), rng.choice((1, 2, 8, 16, 40))
            # Reads below, writes above; writes of one round are disjoint between IDs.
            a = (rng.randrange(16) * 128 + rng.randrange(129 - n)) * 32
            reads.append((id_, a, n))
            a = ((16 + 4 * id_ + rng.randrange(4)) * 128 + rng.randrange(129 - n)) * 32
            data = rng.randbytes(32 * n)
            strb = FULL if i % 3 else rng.getrandbits(32)
            writes.append((id_, a, data, strb))
        m.r.clear(), m.b.clear()
        for (rid, ra, n), (wid, wa, data, strb) in zip(reads, writes, strict=True):
            m.read(rid, ra, n)
            m.write(wid, wa, [word(data, 32 * k) for k in range(len(data) // 32)], strb)
            for k in range(len(data)):
                if strb >> (k % 32) & 1:
                    image[wa + k] = data[k]
        total = sum(n for _, _, n in reads)
        await m.until(lambda t=total: len(m.r) == t and len(m.b) == 24)
        for id_ in range(4):
            exp = [(word(image, a + 32 * k), 0, int(k == n - 1)) for i, a, n in reads if i == id_ for k in range(n)]
            checks.equal(f"R of ID {id_}", [b[1:4] for b in m.r if b[0] == id_], exp, n=len(exp))
            checks.equal(f"B of ID {id_}", [b[1] for b in m.b if b[0] == id_], [0] * sum(w[0] == id_ for w in writes))
        swapped |= [b[0] for b in m.b] != [w[0] for w in writes]
        interleaved |= any(not m.r[i][3] and m.r[i][0] != m.r[i + 1][0] for i in range(len(m.r) - 1))
        checks.equal("image", await dram.read(0, WORDS * 32), bytes(image), n=WORDS)
    if not int(dut.SINGLE.value):
        checks.true("reorder happens", swapped)
        checks.true("interleaving happens", interleaved)
        checks.true("outstanding", dram.count("rd_out_max") >= 8 and dram.count("wr_out_max") >= 8)
    else:
        checks.equal("outstanding", (dram.count("rd_out_max"), dram.count("wr_out_max")), (1, 1))


@cocotb.test()
async def ideal_latency(dut):
    """Ideal mode: first beat exactly LAT cycles after AR, one beat a cycle, bursts back to back."""
    m, _dram = await start(dut, ideal=1, lat_min=40)
    m.read(0, 0, 16)
    await m.until(lambda: not m.ar)
    taken = clocks.now()
    await m.until(lambda: len(m.r) == 16)
    checks.true("latency", 40 <= m.r[0][4] - taken <= 42, f"{m.r[0][4] - taken} cycles")
    checks.equal("one a cycle", m.r[15][4] - m.r[0][4], 15)
    if not int(dut.SINGLE.value):
        m.r.clear()
        for k in range(4):
            m.read(0, 512 * k, 16)
        await m.until(lambda: len(m.r) == 64)
        checks.equal("back to back", m.r[63][4] - m.r[0][4], 63)


@cocotb.test()
async def error_window(dut):
    """Only words inside the window fail; a burst outside the array answers DECERR."""
    m, dram = await start(dut, err_rd=1, err_wr=1, err_resp=2, err_lo=0x400, err_hi=0x440)
    image = bytes(range(256)) * 16
    await dram.load(0, image)
    m.read(1, 0x3C0, 6)
    m.write(2, 0x440, [7])
    m.write(2, 0x420, [8])
    await m.until(lambda: len(m.r) == 6 and len(m.b) == 2)
    checks.equal("R responses", [b[2] for b in m.r], [0, 0, 2, 2, 0, 0], n=6)
    checks.true("failed words are poison", m.r[2][1] != word(image, 0x400))
    checks.equal("B responses", [b[1] for b in m.b], [0, 2], n=2)
    checks.equal("written", await dram.peek(0x440), 7)
    checks.equal("not written", await dram.peek(0x420), word(image, 0x420))
    m.r.clear(), m.b.clear()
    m.read(3, WORDS * 32, 2)
    m.write(3, WORDS * 32, [9])
    await m.until(lambda: len(m.r) == 2 and len(m.b) == 1)
    checks.equal("DECERR", [m.r[0][2], m.r[1][2], m.b[0][1]], [3, 3, 3], n=3)
    checks.equal("counted", dram.count("oor_count"), 3)


@cocotb.test()
async def illegal_bursts(dut):
    """Each AXI rule raises its own code."""
    m, dram = await start(dut, fatal=0)
    cases = [((0, 0, 0, 5, 0), 1), ((0, 0, 0, 4, 1), 2), ((0, 0xFE0, 1, 5, 1), 3), ((0, 0x10, 0, 5, 1), 4)]
    for seen, (burst, code) in enumerate(cases, 1):
        beats = len(m.r) + burst[2] + 1
        m.ar.append(burst)
        await m.until(lambda n=beats: len(m.r) == n)
        checks.equal("code", (dram.count("err_count"), dram.count("err_code")), (seen, code))
    m.aw.append((0, 0, 1, 5, 1))
    m.w += [(1, FULL, 1), (2, FULL, 1)]
    await m.until(lambda: len(m.b) == 1)
    checks.equal("early WLAST", (dram.count("err_count"), dram.count("err_code")), (5, 5))
    m.read(0, 0xFE0, 1)
    m.read(0, 0x0, 128)
    m.write(0, 0xF00, [1] * 8)
    await m.until(lambda: len(m.b) == 2 and len(m.r) == 134)
    checks.equal("legal bursts raise nothing", dram.count("err_count"), 5)

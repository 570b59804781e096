# SPDX-License-Identifier: Apache-2.0
"""The player of the host's memory window against the DRAM model: bytes, strobes, responses, bad slaves."""

import random

import cocotb

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.dram import DRAM_PUBLIC, Dram
from kohakubench.window import WINDOW_PUBLIC, Burst, Window, WindowError, write_burst

WORDS = 4096
BENCH = Bench(
    name="window_player",
    top="tb_window_player",
    sources=["tb/hdl/axi_dram_model.v", "tb/hdl/window_player.v", "tb/hdl/tb_window_player.v"],
    params={"WORDS": WORDS},
    public=[*DRAM_PUBLIC, *WINDOW_PUBLIC],
    mutations={
        "strobe": (
            "tb/hdl/window_player.v",
            "{m_axi_wstrb, m_axi_wdata} <= ops[at];",
            "{m_axi_wstrb, m_axi_wdata} <= {32'hFFFFFFFF, ops[at][255:0]};",
        ),
        "response": ("tb/hdl/window_player.v", "{m_axi_rresp, m_axi_rdata}", "{2'd0, m_axi_rdata}"),
        "write_response": ("tb/hdl/window_player.v", "{m_axi_bresp, 256'd0}", "{2'd0, 256'd0}"),
        "last_beat": ("tb/hdl/window_player.v", "m_axi_wlast  <= left == 8'd0;", "m_axi_wlast  <= left == 8'd1;"),
        "slave_id": ("tb/hdl/tb_window_player.v", ".m_axi_bid     (bid),", ".m_axi_bid     (bid ^ 4'd1),"),
        "slave_last": ("tb/hdl/tb_window_player.v", ".m_axi_rlast   (rlast),", ".m_axi_rlast   (rlast && rdata[0]),"),
    },
    wall_s=120,
)


async def start(dut, **controls):
    clocks.start(dut.clk)
    await clocks.reset(dut)
    dram = Dram(dut.u_dram, words=WORDS)
    dram.configure(ideal=0, fatal=1, reorder=0, interleave=0, err_rd=0, err_wr=0, lat_min=2, lat_max=30)
    dram.configure(**{f"{c}_pct": 60 for c in ("ar", "aw", "w", "r", "b")})
    dram.configure(**controls)
    await dram.reseed(seed())
    return Window(dut.u_window), dram


@cocotb.test()
async def random_bursts(dut):
    """Bursts of 1 to 128 words with random strobes in batches; the memory and every word read are exact."""
    rng = random.Random(seed())
    window, dram = await start(dut)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    compared = 0
    for _ in range(scale(4, 40)):
        bursts, expected = [], []
        for _ in range(25):
            n = rng.choice((1, 1, 2, 8, 40, 128))
            page = rng.randrange(WORDS // 128)
            at = 32 * (128 * page + rng.randrange(129 - n))
            if rng.random() < 0.5:
                data = rng.randbytes(32 * n)
                strobe = None if rng.random() < 0.3 else bytes(rng.choice((0, 1)) for _ in data)
                bursts.append(write_burst(at, data, strobe))
                expected.append(None)
                for i, byte in enumerate(data):
                    if strobe is None or strobe[i]:
                        image[at + i] = byte
            else:
                bursts.append(Burst(at, n=n))
                expected.append([int.from_bytes(image[at + 32 * i : at + 32 * i + 32], "little") for i in range(n)])
        for answer, want in zip(await window.play(bursts), expected, strict=True):
            checks.equal("responses", set(answer.responses), {0})
            if want is not None:
                checks.equal("words", list(answer.words), want, n=len(want))
                compared += len(want)
    checks.equal("memory", await dram.read(0, WORDS * 32), bytes(image), n=WORDS)
    checks.true("something was read", compared > 100)


@cocotb.test()
async def responses(dut):
    """Error answers of the slave reach the caller: of each beat of a read, of a whole write."""
    window, dram = await start(dut, err_rd=1, err_wr=1, err_resp=2, err_lo=64, err_hi=96)
    reads, low, hit = await window.play([Burst(0, n=8), write_burst(0, bytes(64)), write_burst(64, bytes(32))])
    checks.equal("beats", reads.responses, (0, 0, 2, 0, 0, 0, 0, 0), n=8)
    checks.equal("worst", reads.response, 2)
    checks.equal("write beside", low.responses, (0,))
    checks.equal("write into it", hit.responses, (2,))
    checks.equal("bytes and response", (await window.read(32, 32), (await window.read(64, 32))[1]), ((bytes(32), 0), 2))
    checks.equal(
        "convenience", (await window.write(256, bytes([7]) * 32), await dram.read(256, 32)), (0, bytes([7]) * 32)
    )


@cocotb.test()
async def broken_slaves_are_noticed(dut):
    """The flag a wrong ID or a misplaced RLAST raises ends the batch in an error."""
    window, _ = await start(dut)
    await window.read(0, 64)
    dut.u_window.broken.value = 1
    try:
        await window.read(0, 64)
    except WindowError as err:
        checks.true("told", "another ID" in str(err))
    else:
        checks.true("told", False, "a broken answer was accepted")

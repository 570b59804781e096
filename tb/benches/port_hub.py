# SPDX-License-Identifier: Apache-2.0
"""Hub of the shared memory port: classes, order, priority, back-pressure (docs/spec/fabric.md 10.1)."""

import random

import cocotb
from cocotb.triggers import FallingEdge

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.orch_model import header

_HUB = "rtl/control/port_hub.v"

BENCH = Bench(
    name="port_hub",
    top="tb_port_hub",
    sources=[
        "rtl/common/*.v",
        "rtl/control/port_hub.v",
        "rtl/control/port_hub_sva.sv",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/ctl_flit_*.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/tb_port_hub.v",
    ],
    timeout_cycles=2_000_000,
    wall_s=300,
    mutations={
        "marked_data_to_orchestrator": (
            _HUB,
            "to_none   = (head_type == `KT_TYPE_CU_DATA) && head_mark;",
            "to_none   = 1'b0 && head_mark;",
        ),
        "marked_requests_dropped": (
            _HUB,
            "to_none   = (head_type == `KT_TYPE_CU_DATA) && head_mark;",
            "to_none   = head_mark;",
        ),
        "write_data_to_orchestrator": (
            _HUB,
            "(head_type == `KT_TYPE_MEM_WR_DATA);",
            "(head_type == `KT_TYPE_MEM_WR_ACK);",
        ),
        "offer_replaced": (_HUB, "take_eng && eng_valid && noc_out_busy;", "1'b0;"),
        "engine_first": (_HUB, "take_eng = hold_eng_q || !orc_valid;", "take_eng = hold_eng_q || eng_valid;"),
        "engine_flit_lost": (_HUB, ".out_ready(!noc_out_busy && take_eng),", ".out_ready(!noc_out_busy),"),
        "orchestrator_blocks_engine": (
            _HUB,
            "head_ready    = to_engine ? !eng_out_busy :",
            "head_ready    = to_engine ? !eng_out_busy && !orc_out_busy :",
        ),
    },
)

LINKS = ("mesh", "eng", "orc")
ENGINE_TYPES = (0, 1, 4)


class Hub:
    """Drives the three links and keeps what each sink must see."""

    def __init__(self, dut):
        self.dut = dut
        self.seen = dict.fromkeys(LINKS, 0)

    async def push(self, link, flit):
        """Queue a flit at the source of ``link``."""
        d = self.dut
        getattr(d, f"{link}_flit").value = flit
        getattr(d, f"{link}_push").value = int(getattr(d, f"{link}_push").value) ^ 1
        await FallingEdge(d.clk)

    async def taken(self, link):
        """Flits that arrived at the sink of ``link`` since the last call."""
        d = self.dut
        count = int(getattr(d, f"{link}_count").value)
        out = []
        for n in range(self.seen[link], count):
            getattr(d, f"{link}_sel").value = n & 1023
            await FallingEdge(d.clk)
            out.append(int(getattr(d, f"{link}_data").value))
        self.seen[link] = count
        return out

    async def quiet(self):
        """Let everything drain."""
        for link in LINKS:
            while not int(getattr(self.dut, f"{link}_idle").value):
                await clocks.cycles(20)
        await clocks.cycles(100)
        await FallingEdge(self.dut.clk)


async def begin(dut):
    """Reset with free links."""
    clocks.start(dut.clk)
    for link in LINKS:
        for name in ("push", "feed_hold", "mode", "level", "sel"):
            getattr(dut, f"{link}_{name}").value = 0
    await clocks.reset(dut)
    await clocks.cycles(3)
    await FallingEdge(dut.clk)
    return Hub(dut), random.Random(seed())


def expected(flits):
    """(engine, orchestrator, lost) for flits that arrive from the mesh."""
    to = {"eng": [], "orc": [], "lost": 0}
    for flit in flits:
        kind, marked = flit >> 268 & 15, flit >> 258 & 1
        if kind == 8 and marked:
            to["lost"] += 1
        else:
            to["eng" if kind in ENGINE_TYPES else "orc"].append(flit)
    return to


def flit(rng, kind, rsvd=0):
    """Random flit of one type; any coordinate, since flits that alias onto the port are served."""
    word = header(rng.getrandbits(8), rng.getrandbits(8), kind, rng.getrandbits(8), rsvd=rsvd)
    return word << 256 | rng.getrandbits(256)


@cocotb.test()
async def every_type_and_rsvd(dut):
    """All 16 types with all 8 rsvd values, alone: consumer, bits, lost and remote pulses."""
    hub, rng = await begin(dut)
    for kind in range(16):
        for rsvd in range(8):
            lost, remote = int(dut.lost_count.value), int(dut.remote_count.value)
            one = flit(rng, kind, rsvd)
            await hub.push("mesh", one)
            await clocks.cycles(6)
            await FallingEdge(dut.clk)
            want = expected([one])
            checks.equal(f"engine, type {kind} rsvd {rsvd}", await hub.taken("eng"), want["eng"])
            checks.equal(f"orchestrator, type {kind} rsvd {rsvd}", await hub.taken("orc"), want["orc"])
            checks.equal("lost", int(dut.lost_count.value) - lost, want["lost"])
            checks.equal("remote", int(dut.remote_count.value) - remote, want["lost"])


@cocotb.test()
async def random_traffic(dut):
    """All links at once with random back-pressure: no loss, no duplicate, order per consumer."""
    hub, rng = await begin(dut)
    sent = {"mesh": [], "eng": [], "orc": []}
    for round_ in range(scale(6, 60)):
        for link in LINKS:
            getattr(dut, f"{link}_mode").value = rng.choice((0, 2, 3))
            getattr(dut, f"{link}_level").value = rng.choice((10, 60, 128, 230))
        dut.orc_mode.value = 0 if round_ % 2 else 2
        now = {link: [] for link in LINKS}
        for _ in range(120):
            for link in LINKS:
                if rng.random() < 0.7:
                    kind = rng.choice((2, 3) if link == "eng" else range(16))
                    one = flit(rng, kind, rng.choice((0, 0, 4, 5)))
                    now[link].append(one)
                    await hub.push(link, one)
        await hub.quiet()
        want = expected(now["mesh"])
        checks.equal("engine", await hub.taken("eng"), want["eng"], n=len(want["eng"]))
        checks.equal("orchestrator", await hub.taken("orc"), want["orc"], n=len(want["orc"]))
        out = await hub.taken("mesh")
        pool = set(now["eng"])
        checks.equal("engine order", [f for f in out if f in pool], now["eng"], n=len(pool))
        checks.equal("orchestrator order", [f for f in out if f not in pool], now["orc"], n=len(now["orc"]))
        for link in LINKS:
            sent[link] += now[link]
    total = expected(sent["mesh"])
    checks.equal("lost", int(dut.lost_count.value), total["lost"])
    checks.equal("remote", int(dut.remote_count.value), total["lost"])


async def load(hub, rng, link, n, kind):
    """Hold the source of ``link``, queue ``n`` flits."""
    getattr(hub.dut, f"{link}_feed_hold").value = 1
    flits = [flit(rng, kind) for _ in range(n)]
    for one in flits:
        await hub.push(link, one)
    return flits


@cocotb.test()
async def orchestrator_first(dut):
    """Outbound: the orchestrator's flits leave in a row, the engine holds its flit and goes on after them."""
    hub, rng = await begin(dut)
    eng = await load(hub, rng, "eng", 40, 2)
    orc = await load(hub, rng, "orc", 25, 5)
    dut.eng_feed_hold.value = 0
    await clocks.cycles(10)
    await FallingEdge(dut.clk)
    dut.orc_feed_hold.value = 0
    await hub.quiet()
    out = await hub.taken("mesh")
    first = out.index(orc[0])
    checks.equal("orchestrator in a row", out[first : first + 25], orc, n=25)
    checks.equal("engine around it", out[:first] + out[first + 25 :], eng, n=40)
    checks.true("the engine had begun", 5 <= first <= 15, str(first))


@cocotb.test()
async def refused_offer_stays(dut):
    """An engine flit offered to a busy mesh stays offered when an orchestrator flit arrives (L1, L2)."""
    hub, rng = await begin(dut)
    dut.mesh_mode.value = 1
    one, two = flit(rng, 2), flit(rng, 5)
    await hub.push("eng", one)
    await clocks.cycles(5)
    await FallingEdge(dut.clk)
    await hub.push("orc", two)
    await clocks.cycles(5)
    await FallingEdge(dut.clk)
    dut.mesh_mode.value = 0
    await hub.quiet()
    checks.equal("order", await hub.taken("mesh"), [one, two])


@cocotb.test()
async def full_rate(dut):
    """One flit per cycle in each direction."""
    hub, rng = await begin(dut)
    await load(hub, rng, "mesh", 200, 0)
    await load(hub, rng, "eng", 200, 2)
    dut.mesh_feed_hold.value = 0
    dut.eng_feed_hold.value = 0
    await clocks.cycles(206)
    await FallingEdge(dut.clk)
    checks.equal("inbound in 206 cycles", int(dut.eng_count.value), 200)
    checks.equal("outbound in 206 cycles", int(dut.mesh_count.value), 200)


@cocotb.test()
async def blocked_engine(dut):
    """A full memory engine stops the port after the flits that the skid holds, and loses none of them."""
    hub, rng = await begin(dut)
    dut.eng_mode.value = 1
    flits = [flit(rng, k) for k in (0, 6, 1, 8)]
    for one in flits:
        await hub.push("mesh", one)
    await clocks.cycles(50)
    await FallingEdge(dut.clk)
    checks.equal("nothing passes", (int(dut.eng_count.value), int(dut.orc_count.value)), (0, 0))
    checks.equal("the source waits", int(dut.mesh_idle.value), 0)
    # The orchestrator's refusal (only during its clear) never holds a memory flit at the head.
    dut.orc_mode.value = 1
    dut.eng_mode.value = 0
    await clocks.cycles(20)
    await FallingEdge(dut.clk)
    checks.equal("first memory flit", await hub.taken("eng"), flits[:1])
    dut.orc_mode.value = 0
    await hub.quiet()
    checks.equal("memory flits", await hub.taken("eng"), flits[2:3])
    checks.equal("orchestrator flits", await hub.taken("orc"), [flits[1], flits[3]])

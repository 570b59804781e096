# SPDX-License-Identifier: Apache-2.0
"""One router: latency, throughput, fairness, back-pressure, impossible turns."""

import cocotb

from benches.traffic import Node, drain, fresh
from kohakubench import Bench, checks, clocks, scale, seed

_IN = "rtl/noc/router_input.v"
_OUT = "rtl/noc/router_output.v"
_FIFO = "rtl/common/fifo_sync.v"

BENCH = Bench(
    name="router",
    top="tb_router",
    sources=[
        "rtl/common/*.v",
        "rtl/noc/router*.v",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/traffic_core.v",
        "tb/hdl/traffic_node.v",
        "tb/hdl/tb_router.v",
    ],
    params={"FIFO_DEPTH": 32},
    variants={
        "inner": {"POS_X": 2, "POS_Y": 2, "GRID_X_HI": 3, "GRID_Y_HI": 3, "FIFO_DEPTH": 4},
        "border": {"POS_X": 3, "POS_Y": 1, "GRID_X_HI": 3, "GRID_Y_HI": 2, "FIFO_DEPTH": 8},
    },
    mutations={
        "fixed_priority": (_OUT, "first_q <= {grant[3:0], grant[4]};", "first_q <= 5'b00001;"),
        "pointer_runs_free": (
            _OUT,
            "if (grant != 5'b00000) first_q <= {grant[3:0], grant[4]};",
            "first_q <= {first_q[3:0], first_q[4]};",
        ),
        "output_repeats": (_OUT, "valid_q <= winner != 5'b00000", "valid_q <= valid_q || winner != 5'b00000"),
        "holding_overwritten": (
            _IN,
            "(req_q == 5'b00000) || taken",
            "(req_q == 5'b00000) || taken || in_busy",
        ),
        "fifo_overflows": (_FIFO, "ready_q <= level_d != FULL;", "ready_q <= 1'b1;"),
        "fifo_stale_head": (
            _FIFO,
            "load_bypass = push && only_new",
            "load_bypass = push && level_q == {(AW+1){1'b0}}",
        ),
        "route_swaps_axes": (
            "rtl/noc/router_route.v",
            "else if (dst_y < PY) route = TO_N;",
            "else if (dst_y < PY) route = TO_S;",
        ),
        "slow_output": (_OUT, "load   = !valid_q || !out_busy", "load   = !valid_q"),
    },
    timeout_cycles=5_000_000,
    wall_s=600,
)

PORTS = "neswl"


def parameters(dut):
    """Position and grid of the router under test."""
    return tuple(int(getattr(dut, n).value) for n in ("POS_X", "POS_Y", "GRID_X_HI", "GRID_Y_HI"))


def nodes_of(dut):
    """The five traffic nodes by port letter."""
    x, y, _, _ = parameters(dut)
    at = {"n": (x, y - 1), "e": (x + 1, y), "s": (x, y + 1), "w": (x - 1, y), "l": (x, y)}
    return {p: Node(getattr(dut, f"u_{p}"), at[p]) for p in PORTS}


def legal_outputs(dut, port):
    """Outputs that a flit coming in by ``port`` may ask for (docs/spec/fabric.md 3.3)."""
    x, y, nx, ny = parameters(dut)
    router = {"n": y > 1, "e": x < nx, "s": y < ny, "w": x > 1, "l": False}
    banned = {port} if router[port] else set()
    if port in "ns" and router[port]:
        banned |= {p for p in "ew" if router[p]}
    return [p for p in PORTS if p not in banned]


def send_everywhere(dut, nodes, limit, rate=256):
    """Every node sends ``limit`` flits to everything it may reach."""
    for p, node in nodes.items():
        node.send([nodes[q].xy for q in legal_outputs(dut, p)], limit, rate)


@cocotb.test()
async def reset_state(dut):
    """Nothing moves in reset or after it until something is sent."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    await fresh(dut, list(nodes.values()), seed())
    await clocks.cycles(400)
    for p, node in nodes.items():
        checks.equal(f"received at {p}", node.get("received"), 0)
    checks.equal("route errors", int(dut.route_errs.value), 0)


@cocotb.test()
async def latency_is_three(dut):
    """One flit at a time over every legal turn leaves exactly three cycles after it came."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    for p in PORTS:
        for q in legal_outputs(dut, p):
            await fresh(dut, list(nodes.values()), seed())
            nodes[p].send([nodes[q].xy], 1)
            await drain(list(nodes.values()), 1, 50)
            checks.equal(f"latency {p} to {q}", nodes[q].get("lat_max"), 3)
            checks.equal(f"shortest {p} to {q}", nodes[q].get("lat_min"), 3)


@cocotb.test()
async def one_flit_a_cycle(dut):
    """1,000 flits pass every output in 1,000 cycles, alone and with all outputs at once."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    everyone = list(nodes.values())
    for q in PORTS:
        p = next(p for p in reversed(PORTS) if q in legal_outputs(dut, p))
        await fresh(dut, everyone, seed())
        nodes[p].send([nodes[q].xy], 1000)
        await drain(everyone, 1000, 1500)
        span = nodes[q].get("last_in") - nodes[q].get("first_in") + 1
        checks.equal(f"cycles for 1000 flits {p} to {q}", span, 1000)
    pairs = {"n": "s", "s": "n", "e": "w", "w": "e", "l": "l"}
    await fresh(dut, everyone, seed())
    for p, q in pairs.items():
        nodes[p].send([nodes[q].xy], 1000)
    await drain(everyone, 5000, 1500)
    for q in PORTS:
        span = nodes[q].get("last_in") - nodes[q].get("first_in") + 1
        checks.equal(f"cycles for 1000 flits into {q}, all at once", span, 1000)


@cocotb.test()
async def fair_within_five_grants(dut):
    """All inputs to one output: each wins within 5 grants, whatever the busy pattern."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    everyone = list(nodes.values())
    for q in PORTS:
        senders = [p for p in PORTS if q in legal_outputs(dut, p)]
        for period in (0, 2, 3, 5, 7):
            await fresh(dut, everyone, seed(), period=period)
            for p in senders:
                nodes[p].send([nodes[q].xy], 100_000)
            await clocks.cycles(1200 * max(1, period))
            name = f"output {q}, period {period}"
            checks.true(name, nodes[q].get("received") > 1000, "the output stands still")
            checks.true(name, nodes[q].get("max_gap") <= 5, f"waited {nodes[q].get('max_gap')} grants")
            checks.equal(f"{name}: bad flits", nodes[q].get("bad"), 0)
            # every sender was served at all: five equal shares
            checks.true(name, min(nodes[p].get("sent") for p in senders) > 150, "an input starves")


@cocotb.test()
async def random_traffic(dut):
    """All to all under random busy from 0 to 95 %: no loss, duplicate or reorder."""
    clocks.start(dut.clk, limit=100_000_000)
    nodes = nodes_of(dut)
    everyone = list(nodes.values())
    full = drained = 0
    for busy in (0, 26, 77, 128, 192, 230, 243):
        for rate in (256, 100):
            await fresh(dut, everyone, seed() + busy + rate, busy=busy)
            limit = scale(1500, 15_000)
            send_everywhere(dut, nodes, limit, rate)
            await drain(everyone, 5 * limit, limit * 60 + 5000)
            full |= int(dut.hit_full.value)
            drained |= int(dut.hit_drained.value)
    checks.equal("inputs whose FIFO was full", full, 0b11111)
    checks.equal("inputs that drained after it", drained, 0b11111)
    checks.equal("route errors", int(dut.route_errs.value), 0)


@cocotb.test()
async def periodic_busy(dut):
    """All to all with sinks ready once in 2, 3, 5 or 7 cycles."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    everyone = list(nodes.values())
    for period in (2, 3, 5, 7):
        await fresh(dut, everyone, seed(), period=period)
        limit = scale(1000, 10_000)
        send_everywhere(dut, nodes, limit)
        await drain(everyone, 5 * limit, limit * 60 + 5000)


@cocotb.test()
async def impossible_turn(dut):
    """A turn no neighbour can ask for is dropped, pulses route_err and harms nothing."""
    clocks.start(dut.clk)
    nodes = nodes_of(dut)
    everyone = list(nodes.values())
    turns = [(p, q) for p in PORTS for q in PORTS if q not in legal_outputs(dut, p)]
    checks.equal("impossible turns", len(turns), {(1, 1): 0, (2, 2): 8, (3, 1): 3}[parameters(dut)[:2]])
    for p, q in turns:
        await fresh(dut, everyone, seed())
        nodes[p].send([nodes[q].xy], 3)
        await drain(everyone, 3, 100, lost=3)
        checks.equal(f"route errors {p} to {q}", int(dut.route_errs.value), 3)
        # the sequence towards q starts at 3 now, so the later flits go elsewhere
        after = {o: [d for d in legal_outputs(dut, o) if d != q] for o in PORTS}
        for o, dsts in after.items():
            nodes[o].send([nodes[d].xy for d in dsts], nodes[o].get("sent") + 100)
        await drain(everyone, 503, 3000, lost=3)
        checks.equal(f"route errors after {p} to {q}", int(dut.route_errs.value), 3)

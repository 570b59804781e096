# SPDX-License-Identifier: Apache-2.0
"""Traffic over a generated mesh with units in two clock domains of their own (docs/spec/fabric.md 4.2, 9)."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer

from benches.mesh_tests import Mesh, mesh_bench
from benches.traffic import drain
from kohakubench import checks, clocks, scale, seed

_AFIFO = "rtl/noc/link_afifo.v"
_TOP = "sim_build/mesh_traffic/mesh_traffic_cross/traffic_cross.v"

BENCH = mesh_bench(
    "mesh_traffic_cross",
    "tb/machines/traffic_cross.toml",
    mutations={
        "crossing_overflows": (_AFIFO, "assign in_busy = !wr_live_q || full;", "assign in_busy = !wr_live_q;"),
        "reset_of_writer_ignored": (
            _AFIFO,
            "if (rd_far_req || rd_far_ack) begin",
            "if (1'b0) begin",
        ),
        "too_shallow_for_a_flit_a_cycle": (_AFIFO, "parameter DEPTH = 16,", "parameter DEPTH = 4,"),
        "unit_on_the_mesh_clock": (
            _TOP,
            "u_mg_2_1 (\n        .clk           (clk_slow)",
            "u_mg_2_1 (\n        .clk           (clk)",
        ),
        "domain_never_reset": (
            _TOP,
            "u_reset_fast (\n        .clk (clk_fast),\n        .d   (rst_n)",
            "u_reset_fast (\n        .clk (clk_fast),\n        .d   (1'b1)",
        ),
        "crossing_reads_on_the_wrong_clock": (
            _TOP,
            ".rd_clk    (clk_fast),\n        .rd_rst_n  (rst_n_fast),\n        .out_valid (xf_1_1_n_valid)",
            ".rd_clk    (clk_slow),\n        .rd_rst_n  (rst_n_fast),\n        .out_valid (xf_1_1_n_valid)",
        ),
    },
)

# periods of the domains "fast" and "slow", ps; the mesh runs at 10 ns
RATIOS = {
    "2.5 and 0.4 times the mesh": (4000, 25000),
    "equal": (10000, 10000),
    "four times and a quarter": (2500, 40000),
    "7:5 and 5:7": (14000, 7142),
    "drifting": (10006, 9994),
}
MESH_PS = 1000 * clocks.PERIOD_NS


class Domains:
    """The two clocks besides the mesh's own."""

    def __init__(self, dut, periods):
        self.dut = dut
        self.slowest = max(MESH_PS, *periods) / MESH_PS
        self.running = [
            Clock(clk, ps, unit="ps", impl="gpi") for clk, ps in zip((dut.clk_fast, dut.clk_slow), periods, strict=True)
        ]
        for clock in self.running:
            clock.start()

    def stop(self):
        """Both stand still, so that other periods can follow."""
        for clock in self.running:
            clock.stop()

    def cycles(self, n):
        """``n`` cycles of the slowest clock in cycles of the mesh."""
        return int(n * self.slowest) + 1

    async def fresh(self, nodes, start, **sink):
        """Reset everywhere for 16 cycles of the slowest clock; the crossings are open when it returns."""
        self.dut.rst_n.value = 0
        await clocks.cycles(self.cycles(4))
        for i, node in enumerate(nodes):
            node.setup(start * 0x9E3779B1 + i, **sink)
        await clocks.cycles(self.cycles(16))
        await FallingEdge(self.dut.clk)
        self.dut.rst_n.value = 1
        await clocks.cycles(self.cycles(16))


def _quiet(dut, mesh, what):
    checks.equal(f"{what}: violations on all links", int(dut.link_errors.value), 0)
    checks.equal(f"{what}: flits lost in the mesh", int(mesh.lost.value), 0)


@cocotb.test()
async def all_to_all(dut):
    """Everyone to everyone at every ratio, sinks busy at random and periodically: in order, once, unharmed."""
    clocks.start(dut.clk, limit=1_000_000_000)
    mesh = Mesh(dut)
    everyone = [n.xy for n in mesh.nodes]
    cases = [{"busy": b} for b in (0, 128, 230)] + [{"period": p} for p in (3, 7)]
    each = scale(200_000, 1_000_000) // (len(RATIOS) * len(cases) * len(mesh.nodes)) + 1
    for name, periods in RATIOS.items():
        domains = Domains(dut, periods)
        for case in cases:
            await domains.fresh(mesh.nodes, seed() + sum(case.values()), **case)
            for node in mesh.nodes:
                node.send(everyone, each)
            await drain(mesh.nodes, each * len(mesh.nodes), domains.cycles(200 * each + 20_000))
        _quiet(dut, mesh, name)
        domains.stop()


@cocotb.test()
async def flit_a_cycle(dut):
    """A crossing sustains one flit per cycle of the slower of its two clocks, in both directions."""
    clocks.start(dut.clk)
    mesh = Mesh(dut)
    at = {n.xy: n for n in mesh.nodes}
    fast, slow, near = at[0, 2], at[3, 1], at[1, 2]
    flits = scale(400, 4000)
    for name, periods in RATIOS.items():
        domains = Domains(dut, periods)
        period = {fast: periods[0], slow: periods[1], near: MESH_PS}
        for a, b in ((near, slow), (slow, near), (near, fast), (fast, near)):
            await domains.fresh(mesh.nodes, seed())
            a.send([b.xy], flits)
            await drain(mesh.nodes, flits, domains.cycles(flits + 1000))
            took = (b.get("last_in") - b.get("first_in")) * period[b]
            least = (flits - 1) * max(period[a], period[b])
            edge = 2 * max(period[a], period[b])
            what = f"{name}: time of {flits} flits {a.xy} to {b.xy}"
            checks.true(what, abs(took - least) <= edge, f"{took} ps, expected {least} within {edge}")
        _quiet(dut, mesh, name)
        domains.stop()


@cocotb.test()
async def reset_in_flight(dut):
    """A reset with every buffer full leaves nothing of the old traffic behind."""
    clocks.start(dut.clk)
    mesh = Mesh(dut)
    everyone = [n.xy for n in mesh.nodes]
    rng = random.Random(seed())
    for name, periods in RATIOS.items():
        domains = Domains(dut, periods)
        for _ in range(scale(4, 40)):
            await domains.fresh(mesh.nodes, rng.getrandbits(16), busy=250)
            for node in mesh.nodes:
                node.send(everyone, 1_000_000)
            await clocks.cycles(domains.cycles(rng.randrange(50, 400)))
            await Timer(rng.randrange(0, 10_000, 2), unit="ps")
            await domains.fresh(mesh.nodes, rng.getrandbits(16), busy=64)
            checks.equal(f"{name}: received before anything was sent", sum(n.get("received") for n in mesh.nodes), 0)
            for node in mesh.nodes:
                node.send(everyone, 30)
            await drain(mesh.nodes, 30 * len(mesh.nodes), domains.cycles(20_000))
        _quiet(dut, mesh, name)
        domains.stop()


@cocotb.test()
async def strays_are_counted_once(dut):
    """A flit from any domain to an empty place is one loss, seen by the mesh's own clock."""
    clocks.start(dut.clk)
    mesh = Mesh(dut)
    for name, periods in RATIOS.items():
        domains = Domains(dut, periods)
        for sender in mesh.nodes:
            await domains.fresh(mesh.nodes, seed())
            sender.send([(3, 2)], 3)
            await drain(mesh.nodes, 3, domains.cycles(1000), lost=3)
            checks.equal(f"{name}: mesh_lost after three flits of {sender.xy}", int(mesh.lost.value), 3)
        domains.stop()

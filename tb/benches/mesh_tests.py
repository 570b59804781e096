# SPDX-License-Identifier: Apache-2.0
"""Traffic tests over a generated mesh whose endpoints are all traffic nodes.

The top is what the mesh generator writes, so its wiring is tested too: every flit names its destination, and
a node that gets another node's flit reports it. Units, memory agent and orchestrator are the stand-ins of
``tb/hdl/stand_in``.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import cocotb

from benches.traffic import Node, drain, fresh
from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.bench import ROOT
from kohakutpu.mesh import generate, load

PICTURE_OF: dict[str, Path] = {}


def mesh_bench(name: str, picture: str, mutations: dict[str, tuple[str, str, str]] | None = None) -> Bench:
    """Bench over the mesh of ``picture`` (path from the repository's root); generates its top.

    The files are renamed into place, so benches that start at the same time never see half a file.
    """
    out = ROOT / "sim_build" / "mesh_traffic" / name
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as scratch:
        top = generate(ROOT / picture, scratch).name
        for made in Path(scratch).iterdir():
            made.replace(out / made.name)
    PICTURE_OF[f"{top}_checked"] = ROOT / picture
    where = out.relative_to(ROOT).as_posix()
    return Bench(
        name=name,
        top=f"{top}_checked",
        sources=[
            "rtl/common/*.v",
            "rtl/noc/*.v",
            "rtl/noc/link_checker_sva.sv",
            "tb/hdl/traffic_core.v",
            "tb/hdl/traffic_node.v",
            "tb/hdl/stand_in/*.v",
            f"{where}/{top}.v",
            f"{where}/{top}_checked.sv",
        ],
        mutations=mutations or {},
        timeout_cycles=20_000_000,
        wall_s=900,
    )


class Mesh:
    """Endpoints of the mesh under test and the route between them, from the page alone."""

    def __init__(self, dut):
        machine = load(PICTURE_OF[dut._name])
        self.nx, self.ny = machine.nx, machine.ny
        self.orch = machine.orch
        self.taken = {e.xy for e in machine.endpoints}
        inner = dut.u_dut
        agent = getattr(inner, machine.of("memory")[0].instance)
        self.nodes: list[Node] = []
        for e in machine.endpoints:
            if e.kind == "memory":
                handle = agent.g_port[e.index].u_node
            elif e.kind == "custom":
                handle = getattr(inner, e.instance)
            else:
                handle = getattr(inner, e.instance).u_node
            self.nodes.append(Node(handle, e.xy))
        self.lost = getattr(inner, machine.of("orchestrator")[0].instance).mesh_lost

    def router(self, xy):
        """Router an endpoint or a destination clamps to."""
        return min(max(xy[0], 1), self.nx), min(max(xy[1], 1), self.ny)

    def hops(self, src, dst):
        """Routers on the way."""
        a, b = self.router(src), self.router(dst)
        return abs(a[0] - b[0]) + abs(a[1] - b[1]) + 1

    def landing(self, dst):
        """Where a flit to ``dst`` ends: the endpoint coordinate, clamped as docs/spec/fabric.md 3.2 says."""
        x, y = min(dst[0], self.nx + 1), min(dst[1], self.ny + 1)
        if x in (0, self.nx + 1) and y in (0, self.ny + 1):
            y = min(max(y, 1), self.ny)
        return x, y


@cocotb.test()
async def latency_three_per_hop(dut):
    """A lone flit needs exactly three cycles a router, for every pair of endpoints."""
    clocks.start(dut.clk)
    mesh = Mesh(dut)
    rng = random.Random(seed())
    pairs = [(a, b) for a in mesh.nodes for b in mesh.nodes]
    for a, b in rng.sample(pairs, min(len(pairs), scale(60, 400))):
        await fresh(dut, mesh.nodes, seed())
        a.send([b.xy], 1)
        await drain(mesh.nodes, 1, 100)
        checks.equal(f"latency {a.xy} to {b.xy}", b.get("lat_max"), 3 * mesh.hops(a.xy, b.xy))


@cocotb.test()
async def all_to_all(dut):
    """Everyone to everyone under random and periodic back-pressure; every flit in order, once, unharmed."""
    clocks.start(dut.clk, limit=1_000_000_000)
    mesh = Mesh(dut)
    everyone = [n.xy for n in mesh.nodes]
    flits = scale(200_000, 1_000_000)
    cases = [{"busy": b} for b in (0, 51, 128, 192, 230, 243)] + [{"period": p} for p in (2, 3, 5, 7)]
    each = flits // (len(cases) * len(mesh.nodes)) + 1
    for case in cases:
        await fresh(dut, mesh.nodes, seed() + sum(case.values()), **case)
        for node in mesh.nodes:
            node.send(everyone, each)
        await drain(mesh.nodes, each * len(mesh.nodes), 200 * each + 20_000)
    checks.equal("violations on all links", int(dut.link_errors.value), 0)
    checks.equal("flits lost in the mesh", int(mesh.lost.value), 0)


@cocotb.test()
async def strays(dut):
    """Flits to empty coordinates vanish at a terminator, are counted, and block nothing."""
    clocks.start(dut.clk)
    mesh = Mesh(dut)
    everywhere = [(x, y) for x in range(16) for y in range(16)]
    empty = [xy for xy in everywhere if mesh.landing(xy) not in mesh.taken]
    rng = random.Random(seed())
    for dst in rng.sample(empty, min(len(empty), scale(12, 200))):
        await fresh(dut, mesh.nodes, seed())
        sender = rng.choice(mesh.nodes)
        sender.send([dst], 2, rate=20)
        await drain(mesh.nodes, 2, 1000, lost=2)
        checks.equal(f"mesh_lost after two flits {sender.xy} to {dst}", int(mesh.lost.value), 2)
        for node in mesh.nodes:
            node.send([n.xy for n in mesh.nodes], node.get("sent") + 20)
        total = 2 + 20 * len(mesh.nodes)
        await drain(mesh.nodes, total, 5000, lost=2)

# SPDX-License-Identifier: Apache-2.0
"""The mesh-level mode of the cost model (docs/spec/compiler.md 14.2): routes, links, limiters, recorded cycles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakubench.programs import description, spec
from kohakutpu import cost as model
from kohakutpu.cost.activity import word_cycles
from kohakutpu.cost.network import Network, link_text
from kohakutpu.kernels import library
from kohakutpu.program import Fill, Gemm, Pass, UnitProgram
from kohakutpu.program.vector_words import Alu, Bar, Loop, Seti, Setvl, Vbcast, Vcvt, Vld, Vred, Vst
from kohakutpu.tensor import Call
from ktpu.cli import app

pytestmark = pytest.mark.unit

RECORDED = Path(__file__).parents[1] / "benchmarks" / "results" / "gemm_cycles.json"


def half(*shape: int) -> Any:
    """Normal values in FP16."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


def product(n: int, gm: int, gn: int, nk: int) -> Call:
    """A cube product."""
    return ktpu.matmul(half(n, n), half(n, n), gm=gm, gn=gn, nk=nk)


def compiled(call: Call, machine: str = "mm_quad") -> ktpu.Compiled:
    """For a machine of the product."""
    return ktpu.compile(call, ktpu.machine(machine))


# ------------------------------------------------------------------ network


def test_routes() -> None:
    """Along the row, then along the column; endpoints at the edge through the router beside them."""
    net = Network((3, 2))
    assert [link_text(k) for k in net.route((0, 1), (3, 3))] == [
        "[0,1]->(1,1)", "(1,1)->(2,1)", "(2,1)->(3,1)", "(3,1)->(3,2)", "(3,2)->[3,3]",
    ]  # fmt: skip
    assert [link_text(k) for k in net.route((2, 2), (2, 2))] == ["[2,2]->(2,2)", "(2,2)->[2,2]"]
    assert [link_text(k) for k in net.route((4, 2), (1, 0))] == [
        "[4,2]->(3,2)", "(3,2)->(2,2)", "(2,2)->(1,2)", "(1,2)->(1,1)", "(1,1)->[1,0]",
    ]  # fmt: skip


def test_messages_take_turns() -> None:
    """Three cycles a router and one a flit; a second message waits for the link, another way is free."""
    net = Network((2, 1))
    first = net.send((0, 1), (3, 1), 8, at=10)
    assert first == 10 + 2 * 3 + 8
    assert net.send((0, 1), (3, 1), 4, at=10) == first + 4
    assert net.send((3, 1), (0, 1), 1, at=10) == 10 + 2 * 3 + 1
    assert net.send((1, 0), (3, 1), 1, at=10) == first + 4 + 1
    assert net.accepted((0, 1)) == 10 + 8 + 4


# ------------------------------------------------------------------ bands


@pytest.mark.parametrize("n", [64, 128, 256])
def test_cubes_beside_recorded_cycles(n: int) -> None:
    """Within a quarter of what the RTL took, above 4,000 cycles within 4 % and with the same best tiling."""
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    text = json.loads(RECORDED.read_text(encoding="utf-8"))
    for row in text["rows"]:
        if row["memory"] == "ideal" and row["n"] == n:
            made = compiled(product(n, *row["tiling"]), "mm_mesh")
            found[tuple(row["tiling"])] = (row["cycles"], ktpu.mesh_cost(made, text["latency"]).cycles)
    assert len(found) >= 3
    for tiling, (took, modelled) in found.items():
        assert (0.96 if n > 64 else 0.75) < modelled / took < 1.02, tiling
    if n > 64:
        assert min(found, key=lambda t: found[t][0]) == min(found, key=lambda t: found[t][1])


def test_small_tiles_are_limited_by_the_way_to_the_memory() -> None:
    """Four clusters behind one port: with little reuse the links beside it are full, with more the clusters are."""
    narrow, wide = (ktpu.mesh_cost(compiled(product(128, g, g, 2))).bands[0] for g in (2, 8))
    assert narrow.limiter in ("port 0 read", "link [0,1]->(1,1)", "link (1,1)->(2,1)")
    assert narrow.busiest[1] > 0.85
    assert wide.busy["port 0 read"] < narrow.busy["port 0 read"] / 2
    assert wide.cycles < narrow.cycles / 2


def test_every_word_is_served() -> None:
    """The port serves exactly the words of the analytic model, the links carry them with their descriptors."""
    for call in (product(128, 4, 4, 2), ktpu.call(library.layernorm(128), half(64, 128), half(128), half(128))):
        made = compiled(call)
        analytic = [b for b in ktpu.cost(made).bands if b.engine != "MV"]
        bands = [b for b in ktpu.mesh_cost(made).bands if b.engine != "MV"]
        for a, b in zip(analytic, bands, strict=True):
            read, written = b.busy.get("port 0 read", 0), b.busy.get("port 0 write", 0)
            assert read + written == a.words
            # one acknowledgement a burst
            assert read < b.busy["link [0,1]->(1,1)"] <= read + written


def test_units_are_as_busy_as_the_analytic_model_says() -> None:
    """Sweeps and lane beats are the same in both; a band never ends before its busiest unit."""
    made = compiled(ktpu.call(library.mlp(), half(64, 64), half(128, 64), half(64, 128)))
    analytic = {b.number: b for b in ktpu.cost(made).bands if b.engine != "MV"}
    for b in ktpu.mesh_cost(made).bands:
        if b.engine == "MV":
            continue
        for unit, spent in analytic[b.number].units.items():
            assert spent.mac + spent.lanes <= b.busy[f"{b.engine}{unit}"] <= spent.mac + spent.lanes + spent.control
        assert b.cycles > max(b.busy.values()) - 1


def test_words_of_a_kernel_take_the_goals_of_the_page() -> None:
    """Column Goal of vector specification 16.2 at VL = 128."""
    add, after = Alu("VADD", 2, "v0", "v1"), Alu("VMUL", 3, "v2", "S1")
    assert [word_cycles(w, 8, add) for w in (Alu("VMUL", 3, "v4", "S1"), after)] == [9, 25]
    moves = (Vld(1, 0), Vld(1, 0, dtype="FP32"), Vst(1, 0), Vcvt(2, 1), Vbcast("S1", "v2"))
    assert [word_cycles(w, 8, None) for w in moves] == [12, 20, 12, 12, 4]
    assert [word_cycles(Vred(kind, 1), 8, None) for kind in ("SUM", "MAX", "DOT", "ANY")] == [153, 153, 161, 22]
    assert [word_cycles(w, 8, None) for w in (Seti("S1"), Setvl(1), Loop(1, 4), Bar())] == [2, 2, 2, 1]
    assert word_cycles(Vst(2, 0), 8, add) == word_cycles(Vst(3, 0), 8, add) + 14
    assert word_cycles(Alu("VADD", 5, "v0", "v1", where="T", pr=1), 8, Alu("VCMPLT", 0, "v1", "v2", pr=1)) == 25


def test_a_tile_goes_straight_to_the_core() -> None:
    """A fused epilogue: the product's words take the links to the core and no port."""
    made = compiled(ktpu.call(library.linear_silu, half(32, 64), half(32, 64)), "mm_store")
    sent, stored = ktpu.mesh_cost(made).bands
    assert "port 0 write" not in sent.busy
    (core,) = ktpu.machine("mm_store").units("VC")
    assert sent.busy[f"link (1,1)->[{core[0]},{core[1]}]"] >= 32 * 32 // 16
    assert stored.busy["port 0 write"] == 32 * 32 // 16


def test_a_fill_waits_for_the_sweep_that_reads_its_half() -> None:
    """Into the other half of L1 it runs beside the sweep, into the same one behind it."""
    machine, took = ktpu.machine("mm_mesh"), []
    for bank in (1, 0):
        work = (Fill("a", 0, 0, 64, 0), Fill("b", 0, 0, 64, 0), Gemm(16, 16, 4, 0), Fill("a", bank, 0, 64, 0))
        took.append(model.mesh_cost([[UnitProgram("MG", 0, (Pass(work),))]], [], machine).cycles)
    beside, behind = took
    sweep, fill = 16 * 16 * 4 * 4 * 4 * 32 // 512, 4 * 64
    assert behind - beside > fill
    assert beside < 2 * fill + sweep + 2 * 60


def test_latency_is_what_limits_a_chain_of_fills() -> None:
    """A single tile waits for its operands: each further cycle of latency costs one a fill that nothing hides."""
    made = compiled(product(32, 8, 8, 1), "mm_mesh")
    fast, slow = (ktpu.mesh_cost(made, latency) for latency in (0, 100))
    assert fast.cycles + 2 * 100 <= slow.cycles <= fast.cycles + 3 * 100
    assert slow.bands[0].limiter == "latency"


def test_ports_share_the_units() -> None:
    """Two memory ports at the two sides of the mesh serve the units beside them."""
    text = description(4, mem_ports=[[0, 1], [5, 1]])
    made = ktpu.compile(product(128, 4, 4, 2), spec(text))
    one = ktpu.mesh_cost(ktpu.compile(product(128, 4, 4, 2), spec(description(4)))).bands[0]
    two = ktpu.mesh_cost(made).bands[0]
    assert two.busy["port 0 read"] + two.busy["port 1 read"] == one.busy["port 0 read"]
    assert two.busy["port 1 read"] > 0
    assert two.cycles < one.cycles


def test_moves_are_bands_and_text_names_all() -> None:
    """The mover takes no link; a peer is sent to directly."""
    made = compiled(ktpu.call(library.mlp(), half(64, 64), half(64, 64), half(64, 64)), "mm_store")
    found = ktpu.mesh_cost(made)
    assert any(b.engine == "MV" and set(b.busy) == {"MV0"} for b in found.bands)
    lines = found.text().splitlines()
    assert lines[0].startswith("model ")
    assert len(lines) == 1 + len(found.bands)
    assert all("limited by" in line for line in lines[1:])
    with pytest.raises(ValueError, match="memory latency -1 cycles; it is at least 0"):
        ktpu.mesh_cost(made, -1)


def test_command() -> None:
    """`ktpu explain --mesh` adds one line and one table."""
    args = ["explain", "matmul", "--shape", "M=64,N=64,K=64", "--machine", "mm_quad"]
    plain, mesh = (CliRunner().invoke(app, [*args, *more]) for more in ([], ["--mesh", "40"]))
    assert plain.exit_code == mesh.exit_code == 0
    assert "cycles on the mesh" not in plain.output
    assert "cycles on the mesh, machine mm_quad, memory latency 40" in mesh.output

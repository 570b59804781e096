# SPDX-License-Identifier: Apache-2.0
"""Mesh generator (docs/spec/fabric.md 4): valid pictures lint clean, derived values, JSON and top agree."""

import json
import os
import re
import subprocess
import tomllib

import pytest

from kohakubench import tools
from kohakubench.bench import ROOT
from kohakubench.build import INCLUDE
from kohakubench.pictures import VALID, grid, picture, write
from kohakutpu.mesh import generate, load
from kohakutpu.mesh.machine import derive
from kohakutpu.mesh.picture import parse
from kohakutpu.mesh.wiring import ports

pytestmark = pytest.mark.unit

MACHINES = ROOT / "spec" / "machines"


def lint(out, top, *folders):
    """What Verilator says about the generated ``top``; empty when clean."""
    ver = tools.verilator()
    command = [str(ver.program), "--lint-only", "-Wall", "-Wno-UNUSEDPARAM", f"-I{INCLUDE}"]
    for folder in ("rtl/common", "rtl/noc", *folders, "tb/hdl/stand_in", "tb/hdl"):
        command += ["-y", str(ROOT / folder)]
    command += ["--top-module", top, str(ROOT / "rtl/noc/link_checker_sva.sv")]
    command += [str(p) for p in sorted(out.glob("*v"))]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **ver.env}, check=False, timeout=300
    )
    return done.stderr.strip()


SLOW_LINT = {"14x14_four_ports"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW_LINT else n for n in VALID]
)
def test_valid_picture_lints_clean(name, tmp_path):
    """Top and checked top of a valid picture have no warning; the units are stand-ins with the real ports."""
    out = tmp_path / "out"
    generate(write(tmp_path, VALID[name]), out)
    folder = tmp_path / "real"  # hub and adapter are the real ones; the rest of their folders would hide the stand-ins
    folder.mkdir()
    for path in [ROOT / "rtl/control/port_hub.v", *(ROOT / "rtl/memory").glob("mag_ad*.v")]:
        (folder / path.name).write_text(path.read_text())
    small = load(tmp_path / "m.toml").nx <= 4  # a thousand checkers cost minutes and show nothing new
    assert lint(out, "m_checked" if small else "m", folder) == ""


@pytest.mark.parametrize("machine", sorted(p.stem for p in MACHINES.glob("*.toml")))
def test_product_machine_lints_clean_with_its_units(machine, tmp_path):
    """The committed pictures fit the real modules; a unit that is not built yet is a stand-in."""
    generate(MACHINES / f"{machine}.toml", tmp_path)
    folders = [f"rtl/{f}" for f in ("control", "memory", "matmul", "vector") if (ROOT / "rtl" / f).is_dir()]
    assert lint(tmp_path, f"{machine}_checked", *folders) == ""


def test_lint_sees_a_broken_top(tmp_path):
    """The lint above can fail: one link with two drivers."""
    generate(write(tmp_path, VALID["1x1_hub"]), tmp_path)
    top = tmp_path / "m.v"
    top.write_text(top.read_text().replace("endmodule", "    assign f_1_1_l_valid = 1'b0;\nendmodule"))
    assert lint(tmp_path, "m") != ""


@pytest.mark.parametrize(
    ("cells", "unit_at", "port"),
    [
        ({(0, 1): "mem", (4, 1): "mem"}, (2, 1), 0),  # distance 1 both: tie, lower number
        ({(0, 1): "mem", (4, 1): "mem"}, (3, 1), 1),
        ({(0, 1): "mem", (4, 1): "mem"}, (2, 0), 0),  # the unit is clamped to router (2, 1)
        ({(0, 1): "mem", (4, 1): "mem"}, (2, 4), 0),
        ({(0, 3): "mem", (4, 1): "mem"}, (1, 1), 0),  # scan order makes (4, 1) port 0; 2 and 2
        ({(0, 3): "mem", (4, 1): "mem"}, (1, 2), 1),
        ({(2, 0): "mem", (2, 4): "mem"}, (2, 2), 0),
        ({(2, 0): "mem", (2, 4): "mem"}, (0, 3), 1),
    ],
)
def test_nearest_port(cells, unit_at, port):
    """Distance between clamped points; ties go to the lower port number."""
    machine = derive(parse(picture(grid(3, 3, {**cells, unit_at: "mg"})), "m"))
    (found,) = machine.of("cluster")
    assert found.mem_port == port


def with_core(name, folder):
    """Picture ``name`` with a vector core where the bench stands in for it."""
    text = (MACHINES / f"{name}.toml").read_text()
    path = folder / f"{name}.toml"
    path.write_text(text.replace('unit.vc.kind  = "external"', 'unit.vc.kind  = "vector"'))
    return path


def test_mm_mesh_is_the_machine_of_the_page(tmp_path):
    """Numbers of docs/spec/fabric.md 4.3, with the vector core in its place."""
    machine = generate(with_core("mm_mesh", tmp_path), tmp_path)
    text = json.loads((tmp_path / "mm_mesh.machine.json").read_text())
    assert (text["nx"], text["ny"], text["mem_ports"], text["orch"]) == (2, 1, [[0, 1]], [1, 1])
    assert text["units"] == {"VC": [[1, 0]], "MG": [[2, 1]]}
    assert (text["stage_flits"], text["ncmd"], text["credit_max"], text["cu_version"]) == (128, 128, 32, 5)
    assert (text["ackq"], text["inst_depth"]) == ({"VC": 64, "MG": 128}, {"VC": 32, "MG": 32})
    assert (text["engine_base"], text["ctrl_base"]) == (0, 0x1000_0000)
    assert machine.node_map == 1 << 0x01 | 1 << 0x12
    table = {(p.x, p.y, p.side): p for p in ports(machine)}
    hangs = {k: p.endpoint.token for k, p in table.items() if p.endpoint}
    assert hangs == {(1, 1, "n"): "vc", (1, 1, "w"): "mem", (1, 1, "l"): "agt", (2, 1, "l"): "mg"}
    assert [k for k, p in table.items() if p.terminated] == [
        (1, 1, "s"),
        (2, 1, "n"),
        (2, 1, "e"),
        (2, 1, "s"),
    ]
    assert table[1, 1, "e"].into == table[2, 1, "w"].out
    assert table[2, 1, "w"].into == table[1, 1, "e"].out


def test_mm_mesh_ext_shares_the_memory_port(tmp_path):
    """Same picture; the bench is the controller, the orchestrator sits at the memory port."""
    machine = generate(with_core("mm_mesh_ext", tmp_path), tmp_path)
    assert (machine.orch, [e.xy for e in machine.of("external")]) == ((0, 1), [(1, 1)])
    assert machine.node_map == 1 << 0x01 | 1 << 0x12 | 1 << 0x11
    one, other = (tomllib.loads((MACHINES / f"{n}.toml").read_text()) for n in ("mm_mesh", "mm_mesh_ext"))
    assert one["rows"] == other["rows"]


def _instances(text):
    """{instance: (module, parameters, pins)} of a generated top."""
    found = {}
    for m in re.finditer(r"^    (\w+) (?:#\((.*?)\) )?(\w+) \(\n(.*?)\n    \);$", text, re.M | re.S):
        params = dict(re.findall(r"\.(\w+)\(([^)]*)\)", m[2] or ""))
        found[m[3]] = (m[1], params, dict(re.findall(r"\.(\w+) +\(([^)]*)\)", m[4])))
    return found


@pytest.mark.parametrize("name", VALID)
def test_json_agrees_with_the_top(name, tmp_path):
    """What the description says is what the instances of the top are built with."""
    generate(write(tmp_path, VALID[name]), tmp_path)
    text = json.loads((tmp_path / "m.machine.json").read_text())
    built = _instances((tmp_path / "m.v").read_text())
    routers = {n: p for n, (module, p, _) in built.items() if module == "router"}
    assert set(routers) == {f"r_{x}_{y}" for x in range(1, text["nx"] + 1) for y in range(1, text["ny"] + 1)}
    assert all(
        (p["GRID_X_HI"], p["GRID_Y_HI"]) == (str(text["nx"]), str(text["ny"])) for p in routers.values()
    )
    node_map = 0
    for kind, module in (("MG", "mg_cluster"), ("VC", "vc_core")):
        placed = [p for m, p, _ in built.values() if m == module]
        assert [[int(p["CU_X"]), int(p["CU_Y"])] for p in placed] == text["units"].get(kind, [])
        for p in placed:
            assert [int(p["MEM_X"]), int(p["MEM_Y"])] in text["mem_ports"]
            assert int(p["INST_DEPTH"]) == text["inst_depth"][kind]
            assert int(p["ACKQ_DEPTH"]) == text["ackq"][kind]
            assert int(p["CU_VERSION"]) == text["cu_version"]
    for x, y in [xy for group in text["units"].values() for xy in group] + text["external"]:
        node_map |= 1 << (y << 4 | x)
    (agent,) = (p for m, p, _ in built.values() if m == "mag")
    where = [[int(agent[f"PORT{n}_X"]), int(agent[f"PORT{n}_Y"])] for n in range(int(agent["PORTS"]))]
    assert where == text["mem_ports"]
    assert (int(agent["WR_SLOTS"]), 1 << int(agent["DRAM_BYTES_LOG2"])) == (
        text["wr_slots"],
        text["dram_bytes"],
    )
    stage = 128 * int(agent["STAGE_ENTRIES"]) if int(agent["STAGE"]) else 0
    assert (int(agent["MESH_ID"]), text["stage_bytes"]) == (text["mesh_id"], stage)
    lines = {int(p["DEPTH"]) for m, p, _ in built.values() if m == "mag_adapter"}
    assert lines == {n for n in text["adapter_lines"].values() if n}
    assert ("adapter_l2" in text["features"], "stage_l2" in text["features"]) == (bool(lines), bool(stage))
    (orch,) = (p for m, p, _ in built.values() if m == "orch")
    assert [int(orch["ORC_X"]), int(orch["ORC_Y"])] == text["orch"]
    assert int(orch["NODE_MAP"].split("h")[1], 16) == node_map
    assert (int(orch["STAGE_FLITS"]), int(orch["CREDIT_MAX"])) == (text["stage_flits"], text["credit_max"])
    engines = [p for m, p, _ in built.values() if m == "ctl_engine"]
    assert len(engines) == int(text["engine"])
    for p in engines:
        assert (int(p["NCMD"]), int(p["CTRL_BASE"])) == (text["ncmd"], text["ctrl_base"])


@pytest.mark.parametrize("name", VALID)
def test_every_link_has_one_driver_and_one_listener(name, tmp_path):
    """Each bundle's valid is driven once and read once, its busy the other way round, and each is checked."""
    generate(write(tmp_path, VALID[name]), tmp_path)
    text = (tmp_path / "m.v").read_text()
    checked = (tmp_path / "m_checked.sv").read_text()
    bundles = re.findall(r"wire +(\w+)_valid, \1_busy;", text)
    assert len(set(bundles)) == len(bundles)
    drives = re.findall(r"\.\w*(?:out|orc_out|eng_out)_valid +\(\{?([^)}]*)\}?\)", text)
    drivers = [n.strip() for group in drives for n in group.split(",")]
    drivers += re.findall(r"assign (\w+_valid) = \w+_in_valid;", text)
    reads = re.findall(r"\.\w*in_valid +\(\{?([^)}]*)\}?\)", text)
    readers = [n.strip() for group in reads for n in group.split(",")]
    readers += re.findall(r"assign \w+_out_valid = (\w+_valid);", text)
    for b in bundles:
        assert drivers.count(f"{b}_valid") == 1, b
        assert readers.count(f"{b}_valid") == 1, b
        assert checked.count(f" chk_{b} (") == 1, b
    assert checked.count("link_checker #(") == len(bundles)


@pytest.mark.parametrize("name", [n for n in VALID if "crossings" in n])
def test_crossings(name, tmp_path):
    """Both directions of an endpoint with a clock of its own go through a crossing; nothing else knows that clock."""
    generate(write(tmp_path, VALID[name]), tmp_path)
    text = (tmp_path / "m.v").read_text()
    description = json.loads((tmp_path / "m.machine.json").read_text())
    machine = load(tmp_path / "m.toml")
    built = _instances(text)
    at = {p.endpoint.xy: p for p in ports(machine) if p.endpoint}
    wanted = {}
    for y, row in enumerate(VALID[name]["rows"]):
        for x, token in enumerate(row.split()):
            domain = VALID[name]["unit"].get(token, {}).get("clock")
            if domain:
                wanted.setdefault(domain, []).append([x, y])
    assert description["clocks"] == wanted
    inputs = re.findall(r"^    input  wire (clk\w*|rst\w*),$", text, re.M)
    assert sorted(inputs) == sorted(["clk", "rst_n", *(f"clk_{d}" for d in wanted)])
    expected = {}
    for domain, places in wanted.items():
        own = (f"clk_{domain}", f"rst_n_{domain}")
        expected[f"u_reset_{domain}"] = ("sync_2ff", {"clk": own[0], "d": "rst_n", "q": own[1]})
        for x, y in places:
            mesh, far = at[x, y], f"{at[x, y].x}_{at[x, y].y}_{at[x, y].side}"
            for side, wr, rd, near, to in (
                ("in", ("clk", "rst_n"), own, mesh.out, f"xf_{far}"),
                ("out", own, ("clk", "rst_n"), f"xt_{far}", mesh.into),
            ):
                pins = {"wr_clk": wr[0], "wr_rst_n": wr[1], "rd_clk": rd[0], "rd_rst_n": rd[1]}
                pins |= {f"in_{w}": f"{near}_{w}" for w in ("valid", "data", "busy")}
                pins |= {f"out_{w}": f"{to}_{w}" for w in ("valid", "data", "busy")}
                expected[f"u_cross_{side}_{x}_{y}"] = ("link_afifo", pins)
            unit_pins = built.get(mesh.endpoint.instance, (None, {}, {}))[2]
            if mesh.endpoint.kind != "external":
                assert (unit_pins["clk"], unit_pins["rst_n"]) == own
                assert (unit_pins["noc_in_data"], unit_pins["noc_out_data"]) == (f"xf_{far}_data", f"xt_{far}_data")
                expected[mesh.endpoint.instance] = (built[mesh.endpoint.instance][0], unit_pins)
    assert {k: v[::2] for k, v in built.items() if k in expected} == expected
    for instance, (_, _, pins) in built.items():
        if instance not in expected:
            assert pins["clk"] == "clk", instance
            assert pins["rst_n"] == "rst_n", instance
    checked = (tmp_path / "m_checked.sv").read_text()
    for domain, places in wanted.items():
        assert checked.count(f"(.clk(clk_{domain}), .rst_n(u_dut.rst_n_{domain}),") == 2 * len(places)


def test_one_clock_without_domains(tmp_path):
    """A picture without domains has neither crossing nor second clock."""
    generate(write(tmp_path, VALID["2x1_external"]), tmp_path)
    text = (tmp_path / "m.v").read_text()
    assert not re.search(r"link_afifo|sync_2ff|clk_|rst_n_", text)
    assert json.loads((tmp_path / "m.machine.json").read_text())["clocks"] == {}


def test_every_loss_reaches_the_orchestrator(tmp_path):
    """Terminators, routers, hub and memory agent all feed mesh_lost."""
    generate(write(tmp_path, VALID["2x1_external"]), tmp_path)
    text = (tmp_path / "m.v").read_text()
    (joined,) = re.findall(r"assign mesh_lost = \|\{(.*?)\};", text, re.S)
    names = {n.strip() for n in joined.split(",")}
    pulses = set(re.findall(r"\.(?:lost|route_err) +\((\w+)\)", text))
    assert names == pulses
    assert {"mag_lost", "hub_lost", "route_err_1_1", "lost_2_1_n"} <= names
    assert _instances(text)["u_orch"][2]["mesh_lost_in"] == "mesh_lost"

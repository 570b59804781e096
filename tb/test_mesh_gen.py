# SPDX-License-Identifier: Apache-2.0
"""Mesh generator (docs/spec/fabric.md 4): valid pictures, every check, derived values, JSON and top agree."""

import copy
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kohakubench import tools
from kohakubench.bench import ROOT
from kohakubench.build import INCLUDE
from kohakutpu.mesh import MeshError, generate, load
from kohakutpu.mesh.machine import derive
from kohakutpu.mesh.picture import parse
from kohakutpu.mesh.wiring import ports

pytestmark = pytest.mark.unit

MACHINES = ROOT / "spec" / "machines"
UNITS = {
    "mem": {"kind": "memory"},
    "agt": {"kind": "orchestrator"},
    "vc": {"kind": "vector"},
    "mg": {"kind": "cluster"},
    "x": {"kind": "external"},
    "c": {"kind": "custom", "module": "traffic_node"},
}


def picture(rows, *, attach="hub", slots=16, **more):
    """A parsed description with all tokens declared."""
    units = copy.deepcopy(UNITS)
    units["mem"]["params"] = {"WR_SLOTS": slots}
    return {"format": 1, "name": "m", "rows": rows, "control": {"attach": attach}, "unit": units, **more}


def grid(nx, ny, cells, fill="."):
    """Rows of an nx by ny mesh with ``cells`` {(x, y): token}; locals hold ``fill``."""
    return [
        " ".join(cells.get((x, y), fill if 1 <= x <= nx and 1 <= y <= ny else ".") for x in range(nx + 2))
        for y in range(ny + 2)
    ]


CROSSINGS = {
    **UNITS,
    "mem": {"kind": "memory", "params": {"WR_SLOTS": 16}},
    "vc": {"kind": "vector", "clock": "fast"},
    "mg": {"kind": "cluster", "clock": "Slow_2"},
    "x": {"kind": "external", "clock": "fast"},
    "c": {"kind": "custom", "module": "traffic_node", "clock": "third"},
    "m": {"kind": "custom", "module": "traffic_node"},
}
ADAPTERS = {
    **UNITS,
    "mem": {"kind": "memory", "params": {"HOST": 0, "MOVER": 0, "STAGE": 0}},
    "vc": {"kind": "vector", "clock": "fast", "adapter": 512},
    "mg": {"kind": "cluster", "adapter": 8192},
}
FOUR_PORTS = {(0, 1): "mem", (0, 14): "mem", (15, 1): "mem", (15, 14): "mem"}
VALID = {
    "1x1_hub": picture(grid(1, 1, {(0, 1): "mem", (1, 1): "mg"})),
    "1x1_token_full": picture(
        grid(1, 1, {(0, 1): "mem", (1, 1): "mg", (2, 1): "agt", (1, 0): "vc", (1, 2): "x"}), attach="token"
    ),
    "2x1_external": picture(grid(2, 1, {(0, 1): "mem", (1, 0): "vc", (1, 1): "x", (2, 1): "mg"})),
    "1x4_two_ports": picture(grid(1, 4, {(0, 1): "mem", (0, 4): "mem", (1, 2): "mg", (1, 3): "vc"})),
    "4x1_memory_local": picture(grid(4, 1, {(2, 1): "mem", (1, 1): "mg", (4, 0): "c", (5, 1): "x"})),
    "2x2_comment_dash": picture([". mg vc . # north", "mem agt - x", "- mg c -", ". - - ."], attach="token"),
    "3x2_block": picture(
        grid(3, 2, {(0, 2): "mem", (3, 0): "mg"}), fabric={"router_mem": "block", "router_fifo": 4}
    ),
    "3x3_three_ports": picture(
        grid(3, 3, {(0, 1): "mem", (4, 2): "mem", (2, 4): "mem", (1, 0): "agt"}, "mg"), attach="token"
    ),
    "2x2_no_engine": picture(
        grid(2, 2, {(0, 1): "mem", (1, 1): "x", (2, 2): "x"}),
        control={"attach": "hub", "engine": False, "stage_flits": 64, "ncmd": 16, "poll_ivl": 3},
    ),
    "2x2_crossings": picture(
        grid(2, 2, {(0, 1): "mem", (1, 0): "vc", (1, 1): "mg", (2, 1): "x", (3, 2): "c", (2, 2): "m"}), unit=CROSSINGS
    ),
    "1x1_crossings_token": picture(
        grid(1, 1, {(0, 1): "mem", (1, 1): "agt", (2, 1): "x", (1, 2): "x"}), attach="token", unit=CROSSINGS
    ),
    "2x1_adapters": picture(grid(2, 1, {(0, 1): "mem", (1, 0): "vc", (1, 1): "mg", (2, 1): "mg"}), unit=ADAPTERS),
    "14x1": picture(grid(14, 1, {(0, 1): "mem"}, "mg"), slots=64),
    "1x14_mesh_3": picture(grid(1, 14, {(1, 15): "mem", (1, 7): "vc"}), mesh_id=3),
    "14x14_four_ports": picture(
        grid(14, 14, {**FOUR_PORTS, **{(x, 15): "vc" for x in range(1, 15)}}, "mg"), slots=128
    ),
}


def write(tmp_path, data, name="m.toml"):
    """The description as a TOML file."""

    def value(v):
        if isinstance(v, bool):
            return str(v).lower()
        if isinstance(v, list):
            return "[" + ", ".join(value(i) for i in v) + "]"
        if isinstance(v, dict):
            return "{ " + ", ".join(f"{k} = {value(i)}" for k, i in v.items()) + " }"
        return json.dumps(v)

    path = tmp_path / name
    path.write_text("\n".join(f"{k} = {value(v)}" for k, v in data.items()) + "\n", encoding="utf-8")
    return path


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


SMALL = {(0, 1): "mem", (1, 1): "mg"}


def change(base=None, **keys):
    """A valid description with top-level keys replaced (None removes)."""
    data = base or picture(grid(2, 2, SMALL))
    data = {**data, **keys}
    return {k: v for k, v in data.items() if v is not None}


def unit(**tables):
    """Unit tables with some replaced."""
    return {**UNITS, **tables}


MG = {"kind": "cluster"}
BROKEN = {
    "format_missing": (change(format=None), r"format = None"),
    "format_2": (change(format=2), r"format = 2: .*format 1"),
    "name_missing": (change(name=None), r"name = None"),
    "name_illegal": (change(name="2x"), r"name = '2x'"),
    "rows_missing": (change(rows=None), r"rows = None"),
    "rows_not_strings": (change(rows=[1, 2, 3]), r"rows = \[1, 2, 3\]"),
    "mesh_id_4": (change(mesh_id=4), r"mesh_id = 4: 0 to 3"),
    "mesh_id_text": (change(mesh_id="0"), r"mesh_id = '0': int"),
    "two_rows": (change(rows=[". . .", "mem mg ."]), r"rows: 2 rows; at least 3"),
    "two_columns": (change(rows=[". .", "mem mg", ". ."]), r"row 0: 2 columns; at least 3"),
    "unequal_rows": (
        change(rows=[". . . .", "mem mg .", ". . . ."]),
        r"row 1, column 3: 3 columns, but row 0 has 4",
    ),
    "corner_unit": (change(rows=["mg . .", "mem mg .", ". . ."]), r"row 0, column 0: token 'mg' in a corner"),
    "corner_dash": (change(rows=[". . -", "mem mg .", ". . ."]), r"row 0, column 2: token '-' in a corner"),
    "15_columns": (change(rows=grid(15, 1, SMALL)), r"row 0, column 16: 17 columns; at most 14"),
    "15_rows": (change(rows=grid(1, 15, SMALL)), r"row 16: 17 rows; at most 14"),
    "undeclared_token": (
        change(rows=grid(2, 2, {**SMALL, (2, 1): "gpu"})),
        r"row 1, column 2: token 'gpu' is not declared",
    ),
    "illegal_token": (
        change(rows=grid(2, 2, {**SMALL, (2, 1): "m-g"})),
        r"row 1, column 2: token 'm-g' is no",
    ),
    "no_memory": (change(rows=grid(2, 2, {(1, 1): "mg"})), r"no token of kind \"memory\""),
    "five_memory": (
        change(rows=grid(5, 2, {(1, 2): "mg", **{(x, 0): "mem" for x in range(1, 6)}})),
        r"row 0, column 5: 'mem' is memory port 4; at most 4",
    ),
    "memory_shares_router": (
        change(rows=grid(2, 2, {**SMALL, (1, 0): "mem"})),
        r"row 1, column 0: 'mem' and row 0, column 1: 'mem' share router \(1, 1\)",
    ),
    "memory_params_differ": (
        change(
            rows=grid(2, 2, {**SMALL, (3, 2): "m2"}),
            unit=unit(m2={"kind": "memory", "params": {"WR_SLOTS": 32}}),
        ),
        r"row 2, column 3: 'm2': params differ from 'mem'",
    ),
    "few_write_slots": (
        change(picture(grid(2, 2, {**SMALL, (2, 2): "x", (2, 1): "vc"}), slots=7)),
        r"row 1, column 0: memory port 0 serves 4 endpoints .* with WR_SLOTS = 7; at least 8",
    ),
    "token_without_orchestrator": (
        change(control={"attach": "token"}),
        r"control.attach = \"token\" needs one token",
    ),
    "two_orchestrators": (
        change(rows=grid(2, 2, {**SMALL, (2, 1): "agt", (2, 2): "agt"}), control={"attach": "token"}),
        r"row 2, column 2: 'agt' is a second orchestrator",
    ),
    "hub_with_orchestrator": (
        change(rows=grid(2, 2, {**SMALL, (2, 1): "agt"})),
        r"row 1, column 2: 'agt' of kind \"orchestrator\", but control.attach = \"hub\"",
    ),
    "nothing_to_do": (change(rows=grid(2, 2, {(0, 1): "mem"})), r"no compute unit and no external endpoint"),
    "unknown_key": (change(colour=1), r"unknown key colour"),
    "unknown_fabric_key": (change(fabric={"fifo": 8}), r"unknown key fabric.fifo"),
    "unknown_control_key": (change(control={"hub": 1}), r"unknown key control.hub"),
    "unknown_unit_key": (change(unit=unit(mg={**MG, "size": 1})), r"unknown key unit.mg.size"),
    "fifo_not_power": (change(fabric={"router_fifo": 12}), r"fabric.router_fifo = 12: a power of two"),
    "fifo_small": (change(fabric={"router_fifo": 2}), r"fabric.router_fifo = 2: 4 to"),
    "router_mem": (change(fabric={"router_mem": "lut"}), r"fabric.router_mem = 'lut': 'dist' or 'block'"),
    "stage_flits": (change(control={"stage_flits": 129}), r"control.stage_flits = 129: 1 to 128"),
    "ncmd": (change(control={"ncmd": 129}), r"control.ncmd = 129"),
    "poll_ivl": (change(control={"poll_ivl": -1}), r"control.poll_ivl = -1"),
    "attach": (change(control={"attach": "port"}), r"control.attach = 'port': 'hub' or 'token'"),
    "engine": (change(control={"engine": 1}), r"control.engine = 1: bool"),
    "section_no_table": (change(fabric=3), r"fabric = 3: a table"),
    "unit_no_table": (change(unit=unit(vc=3)), r"unit.vc = 3: a table"),
    "token_name": (change(unit=unit(**{"2b": MG})), r"unit.2b: a token is a letter"),
    "kind": (change(unit=unit(mg={"kind": "gpu"})), r"unit.mg.kind = 'gpu'"),
    "custom_without_module": (change(unit=unit(c={"kind": "custom"})), r"unit.c.module = None"),
    "module_without_custom": (
        change(unit=unit(mg={**MG, "module": "x"})),
        r"unit.mg.module = 'x': only kind",
    ),
    "params": (change(unit=unit(mg={**MG, "params": {"A": 1.5}})), r"unit.mg.params = "),
    "own_param": (
        change(unit=unit(mg={**MG, "params": {"CU_X": 1}})),
        r"row 1, column 1: unit.mg.params.CU_X is derived",
    ),
    "params_differ": (
        change(rows=grid(2, 2, {**SMALL, (2, 2): "m2"}), unit=unit(m2={**MG, "params": {"TILES": 64}})),
        r"row 2, column 2: params of 'm2' differ from those of 'mg'",
    ),
    "clock_no_name": (change(unit=unit(mg={**MG, "clock": "2x"})), r"unit.mg.clock = '2x': \"mesh\" or the name"),
    "clock_no_string": (change(unit=unit(mg={**MG, "clock": 2})), r"unit.mg.clock = 2: \"mesh\" or the name"),
    "clock_memory": (
        change(unit=unit(mem={"kind": "memory", "clock": "fast"})),
        r"unit.mem.clock = 'fast': only cluster, vector, custom, external .* write \"mesh\"",
    ),
    "clock_orchestrator": (
        change(unit=unit(agt={"kind": "orchestrator", "clock": "fast"})),
        r"unit.agt.clock = 'fast': only",
    ),
    "adapter_kind": (
        change(unit=unit(mem={"kind": "memory", "adapter": 512})),
        r"unit.mem.adapter = 512: only",
    ),
    "adapter_lines": (change(unit=unit(mg={**MG, "adapter": 600})), r"unit.mg.adapter = 600: a power of two"),
    "adapter_negative": (change(unit=unit(mg={**MG, "adapter": -1})), r"unit.mg.adapter = -1"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_check_provoked(name, tmp_path):
    """Every rule of 4.2, broken alone: exactly one message, naming place and value; nothing is written."""
    data, message = BROKEN[name]
    out = tmp_path / "out"
    with pytest.raises(MeshError, match=message) as caught:
        generate(write(tmp_path, data), out)
    assert len(str(caught.value).splitlines()) == 1, str(caught.value)
    assert not out.exists()


def test_the_unbroken_base_is_accepted():
    """What the cases above start from breaks no rule."""
    derive(parse(change(), "base"))


def test_all_violations_in_one_run(tmp_path):
    """Two independent violations are two lines."""
    with pytest.raises(MeshError) as caught:
        load(write(tmp_path, change(mesh_id=9, rows=["mg . .", "mem mg .", ". . ."])))
    assert len(str(caught.value).splitlines()) == 2


def test_not_toml(tmp_path):
    """A file that is no TOML is named."""
    path = tmp_path / "bad.toml"
    path.write_text("rows = [")
    with pytest.raises(MeshError, match=r"bad.toml: not a TOML file"):
        load(path)


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


def test_command(tmp_path):
    """The command writes the three files and reports errors on stderr with status 1."""
    run = [sys.executable, "-m", "kohakutpu.mesh"]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "compiler")}
    out = tmp_path / "out"
    good = subprocess.run(
        [*run, str(MACHINES / "mm_mesh.toml"), "-o", str(out)],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert good.returncode == 0, good.stderr
    assert sorted(p.name for p in out.iterdir()) == [
        "mm_mesh.machine.json",
        "mm_mesh.v",
        "mm_mesh_checked.sv",
    ]
    bad = write(tmp_path, change(mesh_id=7))
    done = subprocess.run(
        [*run, str(bad), "-o", str(out)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "mesh_id = 7" in done.stderr
    assert Path(bad).exists()

# SPDX-License-Identifier: Apache-2.0
"""Mesh generator (docs/spec/fabric.md 4.2): every rule of a picture, broken alone, and the command."""

import os
import subprocess
import sys

import pytest

from kohakubench.bench import ROOT
from kohakubench.pictures import UNITS, grid, picture, write
from kohakutpu.mesh import MeshError, generate, load
from kohakutpu.mesh.machine import derive
from kohakutpu.mesh.picture import parse

pytestmark = pytest.mark.unit

MACHINES = ROOT / "spec" / "machines"
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
    done = subprocess.run([*run, str(bad), "-o", str(out)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mesh_id = 7" in done.stderr
    assert bad.exists()

# SPDX-License-Identifier: Apache-2.0
"""Generator: fresh files, complete and disjoint tables, agreement of the outputs with one another."""

from __future__ import annotations

import copy
import json
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohakutpu import gen
from kohakutpu.gen import check, tables
from kohakutpu.isa import generated as isa

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
SPEC = ROOT / "spec"


@pytest.fixture(scope="module")
def raw() -> dict[str, Any]:
    return {name: json.loads((SPEC / f"{name}.json").read_text()) for name in tables.FILES}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the tables with freshly generated files."""
    (tmp_path / "spec").mkdir()
    for name in tables.FILES:
        shutil.copy(SPEC / f"{name}.json", tmp_path / "spec")
    assert gen.main(["--root", str(tmp_path)]) == 0
    return tmp_path


def macros() -> dict[str, str]:
    text = (ROOT / "rtl/include/ktpu_defs.vh").read_text()
    return dict(re.findall(r"^`define (KT_\w+) +(\S+)$", text, re.MULTILINE))


# --- staleness ----------------------------------------------------------------------------------------------


def test_generated_files_are_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert gen.main(["--check"]) == 0, capsys.readouterr().out


def test_output_is_deterministic() -> None:
    first = gen.outputs(ROOT)
    assert first == gen.outputs(ROOT)
    for name, text in first.items():
        assert "do not edit" in "\n".join(text.splitlines()[:2]), name
        assert gen.command.COMMAND in text.split("\n\n")[0], name
        assert text.endswith("\n")


@pytest.mark.parametrize("name", sorted(gen.outputs(ROOT)))
def test_check_names_a_changed_file(name: str, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkout / name
    text = path.read_text()
    at = max(i for i, char in enumerate(text) if char in "0123456789")
    path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    changed = path.read_text()
    capsys.readouterr()
    assert gen.main(["--check", "--root", str(checkout)]) == 1
    assert capsys.readouterr().out.splitlines() == [f"stale: {name} (run: python -m kohakutpu.gen)"]
    assert path.read_text() == changed, "--check must not write"
    assert gen.main(["--root", str(checkout)]) == 0
    assert path.read_text() == text


def test_check_names_a_missing_file(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "rtl/include/ktpu_defs.vh").unlink()
    capsys.readouterr()
    assert gen.main(["--check", "--root", str(checkout)]) == 1
    assert "stale: rtl/include/ktpu_defs.vh" in capsys.readouterr().out


def test_a_moved_field_makes_every_consumer_stale(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkout / "spec/cluster.json"
    doc = json.loads(path.read_text())
    fields = {item["name"]: item for item in doc["fields"] if item["group"] == "instruction"}
    fields["emit"]["msb"], fields["fuse"]["msb"] = fields["fuse"]["msb"], fields["emit"]["msb"]
    fields["emit"]["lsb"], fields["fuse"]["lsb"] = fields["fuse"]["lsb"], fields["emit"]["lsb"]
    path.write_text(json.dumps(doc))
    capsys.readouterr()
    assert gen.main(["--check", "--root", str(checkout)]) == 1
    stale = capsys.readouterr().out
    for name in (
        "rtl/include/ktpu_defs.vh",
        "compiler/kohakutpu/isa/generated.py",
        "docs/spec/tables/cluster.md",
    ):
        assert f"stale: {name}" in stale


# --- seeded violations --------------------------------------------------------------------------------------


def test_tables_are_sound(raw: dict[str, Any]) -> None:
    assert check.problems(tables.build(raw)) == []


def _field(raw: dict[str, Any], name: str, **where: str) -> dict[str, Any]:
    for item in raw["fabric"]["fields"]:
        if item["name"] == name and all(item.get(key) == value for key, value in where.items()):
            found: dict[str, Any] = item
            return found
    raise KeyError(name)


def _gap(raw: dict[str, Any]) -> None:
    _field(raw, "len", type="MEM_RD_REQ")["msb"] -= 1


def _overlap(raw: dict[str, Any]) -> None:
    _field(raw, "count", type="MEM_RD_REQ")["msb"] += 1


def _outside(raw: dict[str, Any]) -> None:
    _field(raw, "addr", type="MEM_WR_REQ")["msb"] = 256


def _missing_field(raw: dict[str, Any]) -> None:
    fields = raw["cluster"]["fields"]
    fields.remove(next(item for item in fields if item["name"] == "reserved_141"))


def _twice(raw: dict[str, Any]) -> None:
    raw["vector_isa"]["formats"]["CVT"]["fields"][1]["name"] = "vd"


def _same_code(raw: dict[str, Any]) -> None:
    raw["cluster"]["faults"][1]["code"] = 1


def _wide_code(raw: dict[str, Any]) -> None:
    raw["memory"]["faults"][12]["code"] = 16


def _register_overlap(raw: dict[str, Any]) -> None:
    window = raw["fabric"]["windows"]["orch"]["ranges"]
    next(item for item in window if item["name"] == "TX_FLIT")["hi"] = 0x147


def _register_moved(raw: dict[str, Any]) -> None:
    next(item for item in raw["fabric"]["registers"] if item["name"] == "TX_KICK")["offset"] = 0x158


def _register_unlisted(raw: dict[str, Any]) -> None:
    window = raw["fabric"]["windows"]["orch"]["ranges"]
    window.remove(next(item for item in window if item["name"] == "PROG_ABORT"))


def _range_without_register(raw: dict[str, Any]) -> None:
    raw["memory"]["mover"]["registers"].pop()


def _forward_gap(raw: dict[str, Any]) -> None:
    window = raw["fabric"]["windows"]["orch"]["ranges"]
    window.remove(next(item for item in window if item["lo"] == 0x858))


def _wrong_owner(raw: dict[str, Any]) -> None:
    window = raw["fabric"]["windows"]["orch"]["ranges"]
    next(item for item in window if item["name"] == "MEM_CAPS")["owner"] = "mover"


def _engine_overlap(raw: dict[str, Any]) -> None:
    next(r for r in raw["fabric"]["windows"]["engine"]["ranges"] if r["name"] == "CMD")["lo"] = 0x30


def _unknown_fault(raw: dict[str, Any]) -> None:
    raw["cluster"]["checks"][3]["fault"] = "F_PEER"


def _unchecked_fault(raw: dict[str, Any]) -> None:
    raw["cluster"]["checks"].pop()


def _wrong_reason(raw: dict[str, Any]) -> None:
    raw["cluster"]["rejects"][0]["reason"] = 2


def _unknown_format(raw: dict[str, Any]) -> None:
    raw["vector_isa"]["opcodes"][5]["format"] = "MUL"


def _unknown_enum(raw: dict[str, Any]) -> None:
    raw["vector_isa"]["formats"]["CVT"]["fields"][1]["enum"] = "type"


def _unit_type(raw: dict[str, Any]) -> None:
    raw["cluster"]["constants"]["CU_TYPE"] = 0x4D48


def _no_fields(raw: dict[str, Any]) -> None:
    fields = raw["fabric"]["fields"]
    raw["fabric"]["fields"] = [item for item in fields if item.get("register") != "RX_POP"]


def _transform_without_words(raw: dict[str, Any]) -> None:
    del raw["memory"]["mover"]["xform_words"]["GRANULE"]


def _adapter_outside(raw: dict[str, Any]) -> None:
    raw["memory"]["adapter"]["index_hi"] = 0xE3


def _adapter_depth(raw: dict[str, Any]) -> None:
    raw["memory"]["adapter"]["registers"][0]["reset"] += 1


VIOLATIONS: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (_gap, "MEM_RD_REQ: bits [215:215] belong to no field"),
    (_overlap, "MEM_RD_REQ.count: [200:192] overlaps the field above it"),
    (_outside, "MEM_WR_REQ.addr: [256:216] is outside 256 bits"),
    (_missing_field, "MG_INST: bits [141:141] belong to no field"),
    (_twice, "VC_CVT: field vd appears twice"),
    (_same_code, "mg_fault: F_FILL_N and F_OPCODE are both 1"),
    (_wide_code, "mem_fault: M_HOSTX = 16 does not fit 4 bits"),
    (_register_overlap, "window orch: range TX_KICK 0x0140..0x0147 overlaps the one before it"),
    (_register_moved, "window orch: register TX_KICK 0x0158..0x015F is not its range"),
    (_register_unlisted, "window orch: register PROG_ABORT has no range"),
    (_range_without_register, "window orch: range MV_GATHER has no register"),
    (_forward_gap, "window orch: block AUX_CFG is not covered by its clients at 0x0858"),
    (_wrong_owner, "window orch: register MEM_CAPS belongs to MAG, its range to mover"),
    (_engine_overlap, "window engine: range CMD 0x0030..0x1FFF overlaps the one before it"),
    (_unknown_fault, "cluster check peers: unknown fault or opcode"),
    (_unchecked_fault, "cluster fault F_NODE_OFF is raised by no decode check"),
    (_wrong_reason, "cluster reject 2: unknown reason or fault"),
    (_unknown_format, "vector opcode VMUL: unknown format or fault"),
    (_unknown_enum, "vector format CVT: unknown enumeration type"),
    (_unit_type, "unit type of the cluster: 19783 and 19784"),
    (_no_fields, "register RX_POP has no field list"),
    (_transform_without_words, "mover transforms: every occupant needs its words per entry, and only those"),
    (_adapter_outside, "adapter register STATUS: index 228 is outside the adapter's range"),
    (_adapter_depth, "adapter CAPS.depth: 8192 and 8193"),
]


@pytest.mark.parametrize(("seed", "text"), VIOLATIONS, ids=[seed.__name__[1:] for seed, _ in VIOLATIONS])
def test_seeded_violation_is_found(
    seed: Callable[[dict[str, Any]], None], text: str, raw: dict[str, Any]
) -> None:
    broken = copy.deepcopy(raw)
    seed(broken)
    assert text in check.problems(tables.build(broken))


def test_generator_refuses_broken_tables(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = checkout / "spec/memory.json"
    doc = json.loads(path.read_text())
    doc["mover"]["registers"][0]["fields"].pop()
    path.write_text(json.dumps(doc))
    before = (checkout / "rtl/include/ktpu_defs.vh").read_text()
    capsys.readouterr()
    assert gen.main(["--root", str(checkout)]) == 2
    assert "MV_CTRL: bits [2:0] belong to no field" in capsys.readouterr().err
    assert (checkout / "rtl/include/ktpu_defs.vh").read_text() == before


def test_one_macro_never_has_two_values(raw: dict[str, Any]) -> None:
    broken = copy.deepcopy(raw)
    broken["cluster"]["constants"]["INST_GM"] = 3
    with pytest.raises(tables.SpecError, match="KT_MG_INST_GM has two values"):
        gen.verilog.render(tables.build(broken), "note")


# --- the outputs say the same -------------------------------------------------------------------------------


def test_verilog_ranges_equal_python_tables() -> None:
    have = macros()
    for layout in tables.load(ROOT).layouts:
        python = {name: (msb, lsb) for name, msb, lsb, *_ in isa.LAYOUTS[layout.name][2]}
        for item in tables.visible(layout):
            msb, lsb = python[item.name]
            expected = f"{msb}:{lsb}" if msb > lsb else str(msb)
            assert have[f"{layout.macro}_{item.name.upper()}"] == expected
            assert have[f"{layout.macro}_{item.name.upper()}_W"] == str(msb - lsb + 1)


def test_names_the_contract_fixes() -> None:
    have = macros()
    expected = {
        "KT_FLIT_DST_X": "287:284",
        "KT_FLIT_LAST": "259",
        "KT_FLIT_TXN_W": "8",
        "KT_MEM_RD_REQ_ADDR": "255:216",
        "KT_CU_DATA_BUF_ID": "255:248",
        "KT_CU_CTRL_VALUE": "239:176",
        "KT_TYPE_MEM_RD_REQ": "4'h0",
        "KT_SIG_INST_COMPLETE": "8'h00",
        "KT_REJ_RANGE": "3'd2",
        "KT_FAB_MISROUTED": "8'd1",
        "KT_M_ALIGN": "4'd1",
        "KT_ENG_ERR_POLL_LIMIT": "4'd5",
        "KT_REG_NODE_STATUS": "16'h1000",
        "KT_MG_OP_FILL": "4'd1",
        "KT_MG_INST_EOFF": "140:133",
        "KT_MG_F_GEMM_A": "8'h05",
        "KT_MG_A_SPLIT": "8'h89",
        "KT_MV_F_WALK": "4'd10",
        "KT_MV_XFORM_QUANTISE_IN": "8",
        "KT_MV_HDR_RESET": "64'h0000100000000000",
        "KT_AD_CAPS_RESET": "64'h0002011200002000",
        "KT_IDX_AD_HI": "8'hE7",
        "KT_VC_F_ENV": "8'h12",
        "KT_NODE_STATUS_SIGNAL_COUNT": "23:8",
    }
    assert {name: have.get(name) for name in expected} == expected


def test_driver_tables_equal_compiler_tables() -> None:
    driver = SimpleNamespace(**runpy.run_path(str(ROOT / "driver/kohakudriver/generated.py")))
    for name, layout in driver.LAYOUTS.items():
        assert isa.LAYOUTS[name] == layout
    assert driver.REGISTERS == isa.REGISTERS
    assert driver.HOST_MAP == isa.HOST_MAP
    for name in ("AD_REGISTERS", "MV_XFORM_WORDS", "MV_CHECK_ORDER", "MEM_FAULT_ORDER"):
        assert getattr(driver, name) == getattr(isa, name)
    assert {n.removeprefix("AD_"): row[0] for n, row in isa.AD_REGISTERS.items()} == {
        i.name: int(i) for i in isa.AdapterIndex
    }
    for name in ("Signal", "MemFault", "MoverFault", "ClusterFault", "VectorFault", "EngineError"):
        assert {c.name: c.value for c in getattr(driver, name)} == {
            c.name: c.value for c in getattr(isa, name)
        }
    assert not [name for name in driver.LAYOUTS if name.startswith(("VC_", "MG_"))]


def test_windows_of_the_readme_equal_the_tables(raw: dict[str, Any]) -> None:
    """Every offset range printed in ``docs/spec/README.md`` section 5 is a range of the table."""
    text = (ROOT / "docs/spec/README.md").read_text()
    section = text[text.index("## 5. Register windows") : text.index("Engine window")]
    covered: set[int] = set()
    for line in section.splitlines():
        for cell in line.split("|"):
            if not cell.strip().startswith("0x"):
                continue
            for part in cell.split(","):
                numbers = [int(n, 16) for n in re.findall(r"0x([0-9A-F]{4})", part)]
                end = numbers[-1] if len(numbers) == 2 and numbers[-1] % 8 == 7 else numbers[-1] + 7
                covered |= set(range(numbers[0], end + 1))
    table: set[int] = set()
    for item in raw["fabric"]["windows"]["orch"]["ranges"]:
        table |= set(range(item["lo"], item["hi"] + 1))
    assert covered == table


@pytest.mark.skipif(shutil.which("iverilog") is None, reason="no iverilog")
def test_header_compiles(tmp_path: Path) -> None:
    """Every macro is usable: ranges select from a vector, values are expressions."""
    lines = ["`default_nettype none", '`include "ktpu_defs.vh"', "module probe(input wire [1023:0] v);"]
    for index, (name, value) in enumerate(macros().items()):
        body = f"|v[`{name}]" if ":" in value else f"(`{name} != 0)"
        lines.append(f"wire w{index} = {body};")
    lines += ["endmodule", "`default_nettype wire"]
    source = tmp_path / "probe.v"
    source.write_text("\n".join(lines))
    command = ["iverilog", "-g2005", "-t", "null", "-I", str(ROOT / "rtl/include"), str(source)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr[:2000]

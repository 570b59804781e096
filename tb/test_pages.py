# SPDX-License-Identifier: Apache-2.0
"""The tables printed on ``docs/spec/*.md`` say what ``spec/*.json`` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kohakutpu.gen import tables
from kohakutpu.isa import generated, registers

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs/spec"
SPEC = tables.load(ROOT)

Range = tuple[int, int]


def section(page: str, start: str, end: str) -> str:
    text = (PAGES / f"{page}.md").read_text()
    begin = text.index(start)
    return text[begin : text.index(end, begin + len(start))]


def cells(text: str) -> list[list[str]]:
    """Rows of every table in ``text``, cells stripped of blanks and backquotes."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in lines]


def bits(text: str) -> Range | None:
    match = re.fullmatch(r"(?:\*in\* )?\[(\d+)(?::(\d+))?\]", text)
    if match is None:
        return None
    msb = int(match[1])
    return msb, int(match[2] or msb)


def table(name: str) -> dict[str, Range]:
    """Visible fields of a container."""
    return {item.name: (item.msb, item.lsb) for item in tables.visible(SPEC.layout(name))}


def printed(text: str) -> dict[str, Range]:
    """Rows ``| [msb:lsb] | field | ...`` of ``text``."""
    found: dict[str, Range] = {}
    for row in cells(text):
        where = bits(row[0])
        if where is not None and re.fullmatch(r"[a-z]\w*", row[1]):
            found[row[1]] = where
    return found


@pytest.mark.parametrize(
    ("name", "start", "end", "unprinted"),
    [
        ("FLIT", "### 1.1 Geometry", "### 1.2", {"rsvd_flag", "rsvd_low"}),
        ("CU_DATA_DESC", "**`CU_DATA` descriptor**", "**`CU_CTRL`**", set()),
        ("CU_CTRL_REQ", "**`CU_CTRL`**", "### 1.4", set()),
        ("CU_CTRL_RSP", "**`CU_CTRL`**", "### 1.4", set()),
        ("ADDR40", "### 1.4 Addresses", "### 1.5", set()),
        ("IL_HEADER", "### 10.2 Crossing", "Registers (present", set()),
    ],
)
def test_fabric_containers(name: str, start: str, end: str, unprinted: set[str]) -> None:
    expected = {field: where for field, where in table(name).items() if field not in unprinted}
    assert printed(section("fabric", start, end)) == expected


def test_read_request() -> None:
    expected = table("MEM_RD_REQ")
    on_fabric = printed(section("fabric", "**`MEM_RD_REQ`**", "**`MEM_WR_REQ`**"))
    assert on_fabric == {n: w for n, w in expected.items() if not n.startswith("flag_") or n == "flag_stream"}
    on_memory = printed(section("memory", "MEM_RD_REQ / MEM_WR_REQ payload", "A MEM_WR_REQ uses"))
    assert set(on_memory) == {"addr", "len", "flags", "count", "n_peer", "entry_words"}
    for field, where in on_memory.items():
        assert expected[field] == where


def test_inline_message_fields() -> None:
    text = section("fabric", "**`MEM_WR_REQ`**, followed", "**`CU_DATA` descriptor**")
    for name, fields in {
        "MEM_WR_REQ": ("addr", "len"),
        "MEM_WR_ACK": ("drop", "fault_code"),
        "CU_SIGNAL": ("code", "arg"),
    }.items():
        assert set(table(name)) == set(fields)
        for field in fields:
            msb, lsb = table(name)[field]
            where = f"[{msb}]" if msb == lsb else f"[{msb}:{lsb}]"
            assert f"`{where}` `{field}`" in text


def test_types_and_signals() -> None:
    rows = cells(section("fabric", "### 1.2 Types", "### 1.3"))
    types = {row[0]: int(row[1], 16) for row in rows if re.fullmatch(r"0x\d", row[1])}
    assert types == {item.name: item.value for item in generated.MessageType if item.value < 9}
    rows = cells(section("fabric", "### 1.6 Signal codes", "### 1.7"))
    signals = {row[1]: int(row[0], 16) for row in rows if re.fullmatch(r"0x\w\w", row[0])}
    assert signals == {item.name: item.value for item in generated.Signal}


def test_registers_of_the_fabric_page() -> None:
    seen: set[str] = set()
    text = (PAGES / "fabric.md").read_text()
    for row in cells(text):
        match = re.match(r"0x([0-9A-F]{4})", row[0])
        if match is None or len(row) != 5 or row[1].startswith("IL_DBELL"):
            continue
        name = row[1]
        seen.add(name)
        assert registers.offset(name) == int(match[1], 16), name
        _register_fields(name, row[4])
    assert len(seen) >= 38
    rows = cells(section("fabric", "### 5.5 Discovery", "### 5.6"))
    for row in rows[2:]:
        name = row[1].split(" ")[0]
        assert generated.ControlIndex[name] == int(row[0])
        _register_fields(name, row[2])


def _register_fields(name: str, text: str) -> None:
    found = re.findall(r"\[(\d+)(?::(\d+))?\] (\w+):", text)
    got = {field: (int(msb), int(lsb or msb)) for msb, lsb, field in found}
    whole = {name.lower(): (63, 0)}
    assert (got or whole) == table(name), name


def test_cluster_instruction_page() -> None:
    """Positions and the applicability columns of section 2."""
    rows = cells(section("cluster", "## 2. Instruction payload", "| Example |"))
    parts = {"addr[33:0]": "addr_lo", "addr[39:34]": "addr_hi"}
    fields = table("MG_INST")
    seen: set[str] = set()
    for row in rows:
        where = bits(row[0])
        if where is None:
            continue
        name = parts.get(row[1], row[1])
        assert int(row[2]) == where[0] - where[1] + 1
        if name == "peers":
            assert where == (fields["peer2"][0], fields["peer0"][1])
            seen |= {"peer0", "peer1", "peer2"}
            name = "peer0"
        elif name == "reserved":
            continue
        else:
            assert fields[name] == where, name
        seen.add(name)
        if name == "op":
            assert row[3:6] == [str(op.value) for op in generated.ClusterOp]
            continue
        for op, mark in zip(("FILL", "GEMM", "DRAIN"), row[3:6], strict=True):
            use = generated.MG_USES[name].get(op)
            expected = "-" if use is None else "yes" if not use else "if emit" if use == "emit = 1" else "5.6"
            assert mark == expected, f"{name} on {op}"
    assert set(fields) - seen == {"rowmajor", "pitch"}


def test_cluster_faults_and_checks() -> None:
    text = section("cluster", "### 9.1 Results", "### 9.2")
    printed_codes = {name: int(code, 16) for code, name in re.findall(r"(0x\w\w) \| (\w+)", text)}
    assert printed_codes == {item.name: item.value for item in generated.ClusterFault}
    rows = cells(section("cluster", "### 2.1 Decode checks", "Memory addresses are not"))[2:]
    assert [row[2] for row in rows] == [fault for _, _, fault in generated.MG_CHECKS]
    assert [("*",) if row[0] == "any" else tuple(re.findall("FILL|GEMM|DRAIN", row[0])) for row in rows] == [
        ops for _, ops, _ in generated.MG_CHECKS
    ]
    rejects = cells(section("cluster", "### 8.2 Acceptance", "### 8.3"))[2:]
    expected = [[str(item["reason"]), item["fault"]] for item in SPEC.raw["cluster"]["rejects"]]
    assert [row[1:3] for row in rejects] == expected


def test_cluster_parameters() -> None:
    text = section("cluster", "### 1.2 Parameters", "### 1.3")
    first_cells = " ".join(row[0] for row in cells(text))
    names = set(re.findall(r"[A-Z][A-Z0-9_]+", first_cells))
    assert names == {item["name"] for item in SPEC.raw["cluster"]["parameters"]}


def test_cluster_table_of_the_compiler_page() -> None:
    parts = {"addr[33:0]": "addr_lo", "addr[39:34]": "addr_hi"}
    fields = table("MG_INST")
    seen: set[str] = set()
    for row in cells(section("compiler", "### 9.1 Cluster instructions", "Refusals"))[2:]:
        for where, text in zip(row[::2], row[1::2], strict=True):
            ranges = re.findall(r"\[(\d+)(?::(\d+))?\]", where)
            names = re.findall(r"addr\[[\d:]+\]|[a-z]\w*", text)[: len(ranges)]
            for (msb, lsb), name in zip(ranges, names, strict=True):
                field = parts.get(name, name)
                if field in fields:
                    assert fields[field] == (int(msb), int(lsb or msb)), field
                    seen.add(field)
    assert set(fields) - seen == {"peer0", "peer1", "peer2", "rowmajor", "pitch"}


def test_memory_and_mover_codes() -> None:
    rows = cells(section("memory", "## 7. Memory faults", "When several apply"))
    codes = {row[1]: int(row[0]) for row in rows if row[0].isdigit() and row[1].startswith("M_")}
    assert codes == {item.name: item.value for item in generated.MemFault if item.value}
    rows = cells(section("memory", "### 12.6 Faults", "At GO the checks"))
    codes = {row[1]: int(row[0]) for row in rows if row[0].isdigit() and row[1].startswith("F_")}
    unraised = (generated.MoverFault.F_NONE, generated.MoverFault.F_RSVD9)
    assert codes == {item.name: item.value for item in generated.MoverFault if item not in unraised}
    rows = cells(section("memory", "### 12.3 Modes", "Immediate pattern"))
    modes = {row[1]: int(row[0]) for row in rows if row[0].isdigit() and row[1].isupper()}
    assert modes == {item.name: item.value for item in generated.MoverMode}
    order = re.search(r"At GO the checks run in the order ([\d, ]+)\.", (PAGES / "memory.md").read_text())
    assert order is not None
    names = SPEC.raw["memory"]["mover"]["check_order"]
    assert [int(n) for n in order[1].split(",")] == [generated.MoverFault[name] for name in names]


def test_mover_and_adapter_registers() -> None:
    rows = cells(section("memory", "### 12.1 Command registers", "AXIS commits into"))[2:]
    assert {row[1]: int(row[0], 16) for row in rows} == {o.name: o.value for o in generated.MoverOffset}
    for row in rows:
        ranges = {bits(text) for text in re.findall(r"\[\d+(?::\d+)?\]", row[2])}
        have = set(table(f"MV_{row[1]}").values())
        if row[1] == "CTRL":  # the page prints the flags as one range
            have = have - {(15, 13), (11, 11)} | {(15, 8)}
        assert ranges == have, row[1]
    rows = cells(section("memory", "### 11.2 Control registers", "Up to four requests"))[2:]
    for row in rows[:5]:
        assert generated.AdapterIndex[row[1]] == int(row[0], 16)
        ranges = {bits(text) for text in re.findall(r"\[\d+(?::\d+)?\]", row[4])}
        assert ranges == set(table(f"AD_{row[1]}").values())
    rows = cells(section("memory", "### 12.5 Status", "A read of AUX_STAT"))[2:]
    assert {bits(row[0]) for row in rows} - {(3, 3)} == set(table("MV_STAT").values())


def test_vector_pages() -> None:
    formats = cells(section("vector", "## 5. Instruction word formats", "| Enumeration"))[2:]
    for row in formats:
        if "/" in row[0]:
            continue
        own = {
            name: (int(m), int(n or m)) for name, m, n in re.findall(r"(\w+) \[(\d+)(?::(\d+))?\]", row[1])
        }
        expected = {name: where for name, where in table(f"VC_{row[0]}").items() if name in own}
        assert own == expected, row[0]
        assert set(table(f"VC_{row[0]}")) == set(own) | {"op"}
    rows = cells(section("vector", "## 6. Opcodes", "## 7"))
    opcodes = {row[1]: (int(row[0], 16), row[2]) for row in rows if re.fullmatch(r"0x\w\w", row[0])}
    have = {op.name: (op.value, generated.VC_OPCODES[op.name][0]) for op in generated.VectorOp}
    assert opcodes == have
    rows = cells(section("vector", "### 11.1 Codes", "### 11.2"))[2:]
    assert {row[1]: int(row[0], 16) for row in rows} == {f.name: f.value for f in generated.VectorFault}


def test_pages_are_self_contained() -> None:
    """Published pages name only files of this repository."""
    for path in PAGES.glob("*.md"):
        text = path.read_text()
        assert "../" not in text, path.name
        for name in re.findall(r"`((?:spec|docs|rtl|tb|compiler)/[\w./]+\.(?:json|md|py|v|vh))`", text):
            assert (ROOT / name).exists(), f"{path.name} names {name}"

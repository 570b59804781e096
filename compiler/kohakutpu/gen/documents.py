# SPDX-License-Identifier: Apache-2.0
"""Documentation tables ``docs/spec/tables/*.md``."""

from __future__ import annotations

from typing import Any

from kohakutpu.gen.tables import CodeSet, Layout, Spec

LAYER = "L0"


def render(spec: Spec, note: str) -> dict[str, str]:
    """File name and text of every table page."""
    pages = {
        "flit": ["# Flit and messages", *_spaces(spec, "header", "message", "argument", "address")],
        "registers": ["# Registers", *_window_tables(spec), *_spaces(spec, "register", "control", "command")],
        "memory": [
            "# Memory mover, adapter and interlink",
            *_spaces(spec, "mover", "adapter", "interlink"),
            *_memory(spec),
        ],
        "cluster": ["# Matmul cluster", *_cluster(spec), *_spaces(spec, "cluster")],
        "vector": ["# Vector core", *_vector(spec), *_spaces(spec, "envelope", "vector")],
        "codes": ["# Codes", *(line for codes in spec.codes for line in _codes(codes))],
    }
    return {f"{name}.md": f"<!-- {note} -->\n" + "\n".join(lines) + "\n" for name, lines in pages.items()}


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|")


def _table(head: list[str], rows: list[list[object]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(item) for item in row) + " |" for row in rows]
    return [*lines, ""]


def _bits(msb: int, lsb: int) -> str:
    return f"[{msb}]" if msb == lsb else f"[{msb}:{lsb}]"


def _layout(layout: Layout) -> list[str]:
    rows: list[list[object]] = []
    for item in layout.fields:
        mark = " (part of the field above)" if item.overlay else ""
        rows.append([_bits(item.msb, item.lsb), f"`{item.name}`", item.width, item.meaning + mark])
    title = f"## `{layout.name}` ({layout.width} bits)"
    text = [layout.meaning, ""] if layout.meaning else []
    return ["", title, "", *text, *_table(["Bits", "Field", "Width", "Meaning"], rows)]


def _spaces(spec: Spec, *spaces: str) -> list[str]:
    return [line for layout in spec.layouts if layout.space in spaces for line in _layout(layout)]


def _codes(codes: CodeSet) -> list[str]:
    digits = (codes.width + 3) // 4 or 1
    rows: list[list[object]] = [[f"0x{c.value:0{digits}X}", f"`{c.name}`", c.meaning] for c in codes.codes]
    title = f"## {codes.name} (macro prefix `{codes.macro}`)"
    return ["", title, "", *_table(["Value", "Name", "Meaning"], rows)]


def _window_tables(spec: Spec) -> list[str]:
    lines: list[str] = []
    by_name = {reg.name: reg for reg in spec.registers}
    for name, window in spec.raw["fabric"]["windows"].items():
        rows: list[list[object]] = []
        for item in window["ranges"]:
            reg = by_name.get(item["name"])
            where = f"0x{item['lo']:04X}–0x{item['hi']:04X}"
            access = reg.access if reg else item["kind"]
            rows.append([where, f"`{item['name']}`", item["owner"], access, reg.meaning if reg else ""])
        head = ["Offset", "Register", "Owner", "Access", "Meaning"]
        lines += ["", f"## Window `{name}`", "", *_table(head, rows)]
    return lines


def _use(item: dict[str, Any], op: str) -> str:
    if op not in item["ops"]:
        return "-"
    condition = item.get("condition", {}).get(op, "")
    return f"if {condition}" if condition else "yes"


def _cluster(spec: Spec) -> list[str]:
    doc = spec.raw["cluster"]
    fields = [item for item in doc["fields"] if item["group"] == "instruction"]
    ops = [op["name"] for op in doc["opcodes"]]
    rows: list[list[object]] = [
        [_bits(f["msb"], f["lsb"]), f"`{f['name']}`", *(_use(f, op) for op in ops), f["meaning"]]
        for f in fields
    ]
    lines = ["", "## Instruction payload", "", *_table(["Bits", "Field", *ops, "Meaning"], rows)]
    rows = [[c["order"], c["name"], ", ".join(c["ops"]), c["condition"], c["fault"]] for c in doc["checks"]]
    lines += ["## Decode checks", "", *_table(["Order", "Check", "Opcodes", "Condition", "Fault"], rows)]
    rows = []
    for item in doc["parameters"]:
        default = "required" if item["default"] is None else item["default"]
        rows.append([f"`{item['name']}`", default, item["legal"], item["meaning"]])
    lines += ["## Parameters", "", *_table(["Name", "Default", "Legal", "Meaning"], rows)]
    rows = [[e["asm"], f"`{e['payload']}`"] for e in doc["examples"]]
    return [*lines, "## Example payloads", "", *_table(["Instruction", "Payload"], rows)]


def _memory(spec: Spec) -> list[str]:
    doc = spec.raw["memory"]
    mover, words = doc["mover"], doc["mover"]["xform_words"]
    rows: list[list[object]] = [
        [code, f"`{name}`", words[name]["in"], words[name]["out"]] for name, code in mover["xform"].items()
    ]
    head = ["XFORM_ID", "Occupant", "Source words", "Output words"]
    lines = ["", "## Transforms of the mover", "", *_table(head, rows)]
    rows = [
        [f"0x{r['index']:02X}", f"`{r['name']}`", r["access"], f"0x{r['reset']:016X}", r["meaning"]]
        for r in doc["adapter"]["registers"]
    ]
    head = ["Index", "Register", "Access", "Reset", "Meaning"]
    lines += ["## Registers of an adapter", "", *_table(head, rows)]
    lines += ["## Example moves", ""]
    for example in doc["mover_examples"]:
        rows = [[f"`MV_{name}`", f"`0x{value}`"] for name, value in example["writes"]]
        lines += [example["meaning"], "", *_table(["Register", "Value"], rows)]
    return lines


def _vector(spec: Spec) -> list[str]:
    doc = spec.raw["vector_isa"]
    rows: list[list[object]] = [
        [f"0x{o['code']:02X}", f"`{o['name']}`", o["format"], o["semantics"], ", ".join(o["faults"])]
        for o in doc["opcodes"]
    ]
    return ["", "## Opcodes", "", *_table(["Code", "Name", "Format", "Meaning", "Faults"], rows)]

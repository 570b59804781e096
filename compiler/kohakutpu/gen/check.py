# SPDX-License-Identifier: Apache-2.0
"""Consistency of the tables: complete containers, disjoint windows, unique codes, valid references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kohakutpu.gen import seeds
from kohakutpu.gen.tables import CodeSet, Layout, Register, Spec

LAYER = "L0"

_OWNER = {"orch": "orch", "memory": "MAG", "interlink_cfg": "interlink", "interlink_stat": "interlink"}
_FORWARDED_TO = {"mover", "interlink", "MAG"}


def problems(spec: Spec) -> list[str]:
    """Every contradiction found, one sentence each; empty when the tables are sound."""
    found: list[str] = []
    for layout in spec.layouts:
        found += _coverage(layout)
    for codes in spec.codes:
        found += _unique(codes)
    found += _registers(spec)
    for name, window in spec.raw["fabric"]["windows"].items():
        found += _window(name, window, spec.registers)
    found += _references(spec)
    found += _agreements(spec)
    found += seeds.problems(spec.raw["vector_isa"]["seed_tables"])
    return found


def _coverage(layout: Layout) -> Iterator[str]:
    """Fields without ``overlay`` cover the container exactly once; overlays lie inside."""
    names: set[str] = set()
    for item in layout.fields:
        if item.name in names:
            yield f"{layout.name}: field {item.name} appears twice"
        names.add(item.name)
        if not layout.width > item.msb >= item.lsb >= 0:
            yield f"{layout.name}.{item.name}: [{item.msb}:{item.lsb}] is outside {layout.width} bits"
    above = layout.width
    for item in sorted((f for f in layout.fields if not f.overlay), key=lambda f: -f.msb):
        if item.msb >= above:
            yield f"{layout.name}.{item.name}: [{item.msb}:{item.lsb}] overlaps the field above it"
        elif item.msb != above - 1:
            yield f"{layout.name}: bits [{above - 1}:{item.msb + 1}] belong to no field"
        above = min(above, item.lsb)
    if above:
        yield f"{layout.name}: bits [{above - 1}:0] belong to no field"


def _unique(codes: CodeSet) -> Iterator[str]:
    names: set[str] = set()
    values: dict[int, str] = {}
    for code in codes.codes:
        if code.name in names:
            yield f"{codes.name}: name {code.name} appears twice"
        names.add(code.name)
        if code.value in values:
            yield f"{codes.name}: {code.name} and {values[code.value]} are both {code.value}"
        values[code.value] = code.name
        if code.value < 0 or (codes.width and code.value >> codes.width):
            yield f"{codes.name}: {code.name} = {code.value} does not fit {codes.width} bits"


def _registers(spec: Spec) -> Iterator[str]:
    names: set[str] = set()
    layouts = {layout.name for layout in spec.layouts}
    for reg in spec.registers:
        if reg.name in names:
            yield f"register {reg.name} appears twice"
        names.add(reg.name)
        if reg.offset % 8 or reg.stride < 8:
            yield f"register {reg.name}: 0x{reg.offset:04X}, stride {reg.stride} is not 8-byte aligned"
        if reg.name not in layouts:
            yield f"register {reg.name} has no field list"
        if isinstance(reg.reset, int) and reg.reset >> 64:
            yield f"register {reg.name}: reset value does not fit 64 bits"


def _window(name: str, window: dict[str, Any], registers: list[Register]) -> Iterator[str]:
    """Ranges are disjoint and every register lies in the range of its owner, filling it."""
    ranges = sorted(window["ranges"], key=lambda r: int(r["lo"]))
    end = -1
    for item in ranges:
        label = f"window {name}: range {item['name']} 0x{item['lo']:04X}..0x{item['hi']:04X}"
        if item["lo"] <= end:
            yield f"{label} overlaps the one before it"
        if item["hi"] < item["lo"] or item["hi"] >= window["size"]:
            yield f"{label} is empty or outside the window"
        end = max(end, int(item["hi"]))
    mine = {"engine"} if name == "engine" else {"orch", "memory", "interlink_cfg", "interlink_stat", "mover"}
    filled: set[str] = set()
    for reg in registers:
        if reg.block not in mine:
            continue
        if reg.name in window["forwards"]:
            yield from _forwarded(name, reg, ranges)
            continue
        home = [r for r in ranges if r["name"] == reg.name and r["kind"] == "register"]
        owner = _OWNER.get(reg.block, reg.block)
        if not home:
            yield f"window {name}: register {reg.name} has no range"
        elif (home[0]["lo"], home[0]["hi"]) != (reg.offset, reg.last):
            yield f"window {name}: register {reg.name} 0x{reg.offset:04X}..0x{reg.last:04X} is not its range"
        elif home[0]["owner"] != owner and (reg.block != "orch" or home[0]["owner"] not in _FORWARDED_TO):
            yield f"window {name}: register {reg.name} belongs to {owner}, its range to {home[0]['owner']}"
        filled.add(reg.name)
    for item in ranges:
        if item["kind"] == "register" and item["name"] not in filled:
            yield f"window {name}: range {item['name']} has no register"


def _forwarded(name: str, reg: Register, ranges: list[dict[str, Any]]) -> Iterator[str]:
    """A forwarded block is exactly covered by ranges of its client."""
    at = reg.offset
    for item in ranges:
        if item["hi"] < reg.offset or item["lo"] > reg.last:
            continue
        if item["lo"] != at or item["hi"] > reg.last or item["owner"] not in _FORWARDED_TO:
            yield f"window {name}: block {reg.name} is not covered by its clients at 0x{at:04X}"
        at = item["hi"] + 1
    if at != reg.last + 1:
        yield f"window {name}: block {reg.name} is not covered by its clients at 0x{at:04X}"


def _references(spec: Spec) -> Iterator[str]:
    cluster, vector, memory = spec.raw["cluster"], spec.raw["vector_isa"], spec.raw["memory"]
    ops = {op["name"] for op in cluster["opcodes"]}
    faults = {fault["name"] for fault in cluster["faults"]}
    for check in cluster["checks"]:
        if check["fault"] not in faults or not set(check["ops"]) <= ops | {"*"}:
            yield f"cluster check {check['name']}: unknown fault or opcode"
    orders = [check["order"] for check in cluster["checks"]]
    if orders != sorted(set(orders)):
        yield "cluster checks are not in a strict order"
    unchecked = {f["name"] for f in cluster["faults"] if f["kind"] == "decode"}
    for name in sorted(unchecked - {check["fault"] for check in cluster["checks"]}):
        yield f"cluster fault {name} is raised by no decode check"
    reasons = {code.name: code.value for code in spec.code_set("cu_data_reject").codes}
    for reject in cluster["rejects"]:
        if reasons.get(reject["enum"]) != reject["reason"] or reject["fault"] not in faults:
            yield f"cluster reject {reject['reason']}: unknown reason or fault"
    for field in cluster["fields"]:
        if not set(field.get("ops", [])) <= ops:
            yield f"cluster field {field['name']}: unknown opcode"
    names = {fault["name"] for fault in vector["faults"]}
    used = {op["format"] for op in vector["opcodes"]}
    for op in vector["opcodes"]:
        if op["format"] not in vector["formats"] or not set(op["faults"]) <= names:
            yield f"vector opcode {op['name']}: unknown format or fault"
    for name in sorted(set(vector["formats"]) - used - {"IMM"}):
        yield f"vector format {name} is used by no opcode"
    if sorted(op["code"] for op in vector["opcodes"]) != list(range(32)):
        yield "vector opcodes do not cover 0..31"
    for fmt, body in vector["formats"].items():
        for field in body["fields"]:
            if field["kind"] == "enum" and field["enum"] not in vector["enums"]:
                yield f"vector format {fmt}: unknown enumeration {field['enum']}"
    known = {fault["name"] for fault in memory["faults"]}
    for name in sorted(set(memory["fault_order"]) - known):
        yield f"memory fault order: unknown fault {name}"
    moves = {fault["name"] for fault in memory["mover"]["faults"]}
    for name in sorted(set(memory["mover"]["check_order"]) - moves):
        yield f"mover check order: unknown fault {name}"
    if set(memory["mover"]["xform_words"]) != set(memory["mover"]["xform"]):
        yield "mover transforms: every occupant needs its words per entry, and only those"
    adapter = memory["adapter"]
    for item in adapter["registers"]:
        if not adapter["index_lo"] <= item["index"] <= adapter["index_hi"]:
            yield f"adapter register {item['name']}: index {item['index']} is outside the adapter's range"


def _agreements(spec: Spec) -> Iterator[str]:
    """Numbers that two pages state MUST be equal."""
    fabric, memory = spec.raw["fabric"]["constants"], spec.raw["memory"]["constants"]
    cluster, vector = spec.raw["cluster"]["constants"], spec.raw["vector_isa"]["unit"]
    caps = next(r["reset"] for r in spec.raw["memory"]["adapter"]["registers"] if r["name"] == "CAPS")
    pairs = [
        ("unit type of the cluster", fabric["CU_TYPE_CLUSTER"], cluster["CU_TYPE"]),
        ("unit type of the vector core", fabric["CU_TYPE_VECTOR"], vector["CU_TYPE"]),
        ("buffers of the cluster", fabric["N_BUFFERS_CLUSTER"], cluster["N_BUFFERS"]),
        ("buffers listed for the cluster", cluster["N_BUFFERS"], len(spec.raw["cluster"]["buffers"])),
        ("buffers of the vector core", fabric["N_BUFFERS_VECTOR"], vector["N_BUFFERS"]),
        ("ACKQ_DEPTH of the vector core", fabric["ACKQ_DEPTH_VECTOR"], vector["ACKQ_DEPTH_MIN"]),
        ("write burst", fabric["WBURST_MAX"], memory["WBURST"]),
        ("write burst of the cluster", fabric["WBURST_MAX"], cluster["WBURST"]),
        ("staging bytes", memory["STAGE_BYTES"], memory["STAGE_ENTRIES"] * memory["STAGE_ENTRY_BYTES"]),
        ("adapter window bits", 1 << memory["ADAPTER_L2_BITS"], 32 * memory["ADAPTER_DEPTH"]),
        ("adapter kind", memory["ADAPTER_KIND"], caps >> 48),
        ("adapter version", memory["ADAPTER_VERSION"], caps >> 40 & 0xFF),
        ("adapter CAPS.l2_bits", memory["ADAPTER_L2_BITS"], caps >> 32 & 0xFF),
        ("adapter CAPS.depth", memory["ADAPTER_DEPTH"], caps & 0xFFFF_FFFF),
        ("mover window", memory["MOVER_WINDOW"], spec.raw["memory"]["mover"]["size"]),
        ("entry bytes", cluster["ENTRY_BYTES"], cluster["ENTRY_WORDS"] * fabric["GRANULE_BYTES"]),
        ("command slots", spec.raw["fabric"]["constants"]["NCMD"] * 4, _count(spec, "CMD")),
        ("staging slots", fabric["STAGE_FLITS"] * fabric["FLIT_WORDS"], _count(spec, "STAGE")),
    ]
    for text, left, right in pairs:
        if left != right:
            yield f"{text}: {left} and {right}"


def _count(spec: Spec, name: str) -> int:
    return next(reg.count for reg in spec.registers if reg.name == name)

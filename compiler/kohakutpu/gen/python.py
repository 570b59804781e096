# SPDX-License-Identifier: Apache-2.0
"""Python tables ``kohakutpu/isa/generated.py`` and ``kohakudriver/generated.py``."""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.gen.tables import CodeSet, Constant, Layout, Register, Spec

LAYER = "L0"

ENUM_NAMES = {
    "type": "MessageType",
    "signal": "Signal",
    "router_port": "RouterPort",
    "engine_err": "EngineError",
    "cu_data_reject": "RejectReason",
    "fault_arg": "ShellFault",
    "interlink_kind": "InterlinkKind",
    "cu_ctrl_index": "ControlIndex",
    "mem_fault": "MemFault",
    "mem_class": "RequesterClass",
    "mover_mode": "MoverMode",
    "mover_xform": "MoverTransform",
    "mover_fault": "MoverFault",
    "mover_offset": "MoverOffset",
    "adapter_index": "AdapterIndex",
    "mg_op": "ClusterOp",
    "mg_fault": "ClusterFault",
    "mg_unit_err": "ClusterError",
    "mg_feature": "ClusterFeature",
    "vc_op": "VectorOp",
    "vc_env": "EnvelopeOp",
    "vc_lane_op": "LaneOp",
    "vc_src": "Source",
    "vc_mode": "LaneMode",
    "vc_dtype": "VectorDtype",
    "vc_pm": "PredicateMode",
    "vc_red": "Reduction",
    "vc_bcast": "BroadcastSource",
    "vc_seti": "ImmediateTarget",
    "vc_fault": "VectorFault",
    "vc_unit_err": "VectorError",
}

_DRIVER_ENUMS = (
    "type", "signal", "engine_err", "cu_data_reject", "fault_arg", "cu_ctrl_index", "adapter_index",
    "mem_fault", "mem_class", "mover_mode", "mover_xform", "mover_fault", "mg_fault", "mg_op", "vc_fault",
    "vc_env",
)  # fmt: skip
_DRIVER_SPACES = ("header", "register", "control", "command", "argument", "address", "mover", "adapter")
_DRIVER_MESSAGES = ("CU_SIGNAL", "CU_CTRL_REQ", "CU_CTRL_RSP")
_FAULT_SETS = ("fault_arg", "mem_fault", "mover_fault", "mg_fault", "vc_fault")

_PLAIN = {"fabric": "", "memory": "MEM_", "cluster": "MG_", "vector": "VC_"}


def _number(value: int) -> str:
    return str(value) if value < 1024 else f"0x{value:X}"


def _enum(codes: CodeSet) -> list[str]:
    lines = ["", "", f"class {ENUM_NAMES[codes.name]}(IntEnum):"]
    hexadecimal = codes.base == 16
    for code in codes.codes:
        value = f"0x{code.value:02X}" if hexadecimal else str(code.value)
        lines.append(f"    {code.name} = {value}")
    return lines


def _constants(items: Iterable[Constant]) -> list[str]:
    return [f"{_PLAIN[item.space]}{item.name} = {_number(item.value)}" for item in items]


def _meanings(spec: Spec) -> list[str]:
    lines = ["FAULT_MEANING: dict[str, dict[int, str]] = {"]
    for name in _FAULT_SETS:
        lines.append(f'    "{ENUM_NAMES[name]}": {{')
        for code in spec.code_set(name).codes:
            lines.append(f"        0x{code.value:02X}: {_text(code.meaning)},")
        lines.append("    },")
    return [*lines, "}"]


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _layout(layout: Layout) -> list[str]:
    lines = [f'    "{layout.name}": ("{layout.space}", {layout.width}, (']
    for item in layout.fields:
        kind = "r" if item.reserved else "o" if item.overlay else "i" if item.signed else "u"
        lines.append(
            f'        ("{item.name}", {item.msb}, {item.lsb}, "{kind}", {item.default}, "{item.enum}", '
            f"{_text(item.meaning)}),"
        )
    return [*lines, "    )),"]


def _layouts(layouts: Iterable[Layout]) -> list[str]:
    lines = [
        "# name, msb, lsb, kind (u unsigned, i signed, o overlay, r reserved), default, enumeration, meaning",
        "FieldRow = tuple[str, int, int, str, int, str, str]",
        "",
        "# container: space, bits, fields",
        "LAYOUTS: dict[str, tuple[str, int, tuple[FieldRow, ...]]] = {",
    ]
    for layout in layouts:
        lines += _layout(layout)
    return [*lines, "}"]


def _registers(registers: Iterable[Register]) -> list[str]:
    lines = [
        "# register: block, offset in its window, access, reset (None: not a constant), count, stride",
        "REGISTERS: dict[str, tuple[str, int, str, int | None, int, int]] = {",
    ]
    for reg in registers:
        reset = str(reg.reset) if isinstance(reg.reset, int) else "None"
        lines.append(
            f'    "{reg.name}": ("{reg.block}", 0x{reg.offset:04X}, "{reg.access}", {reset}, '
            f"{reg.count}, {reg.stride}),"
        )
    return [*lines, "}"]


def _windows(spec: Spec) -> list[str]:
    memory = spec.raw["memory"]
    lines = ["# window: base, size, distance between meshes (0: one only)"]
    for table, name in ((memory["host_map"], "HOST_MAP"), (memory["address_map"], "ADDRESS_MAP")):
        lines.append(f"{name}: dict[str, tuple[int, int, int]] = {{")
        for row in table:
            numbers = f"0x{row['base']:X}, 0x{row['size']:X}, 0x{row.get('per_mesh', 0):X}"
            lines.append(f'    "{row["name"]}": ({numbers}),')
        lines.append("}")
    return lines


def _cluster(spec: Spec) -> list[str]:
    """Which opcode uses a field, and under which condition."""
    lines = [
        "# field: opcode -> condition under which it is used (empty: always)",
        "MG_USES: dict[str, dict[str, str]] = {",
    ]
    for item in spec.raw["cluster"]["fields"]:
        if item["group"] != "instruction":
            continue
        condition = item.get("condition", {})
        uses = ", ".join(f'"{op}": "{condition.get(op, "")}"' for op in item["ops"])
        lines.append(f'    "{item["name"]}": {{{uses}}},')
    lines += [
        "}",
        "# order of the decode checks: name, opcodes, fault",
        "MG_CHECKS: tuple[tuple[str, tuple[str, ...], str], ...] = (",
    ]
    for check in spec.raw["cluster"]["checks"]:
        ops = ", ".join(f'"{op}"' for op in check["ops"])
        lines.append(f'    ("{check["name"]}", ({ops},), "{check["fault"]}"),')
    lines += [")"]
    return lines


def _memory(spec: Spec) -> list[str]:
    """Precedence of faults, shape of the transforms, registers of an adapter."""
    doc = spec.raw["memory"]
    mover = doc["mover"]
    words = mover["xform_words"]
    lines = [
        "# of several faults that apply to one request the first is reported",
        f"MEM_FAULT_ORDER: tuple[str, ...] = ({', '.join(_text(n) for n in doc['fault_order'])})",
        f"MV_CHECK_ORDER: tuple[str, ...] = ({', '.join(_text(n) for n in mover['check_order'])})",
        "# transform: source words, output words of an entry",
        "MV_XFORM_WORDS: dict[int, tuple[int, int]] = {",
    ]
    for name, code in mover["xform"].items():
        lines.append(f"    {code}: ({words[name]['in']}, {words[name]['out']}),")
    lines += ["}", "# adapter register: index, access, reset"]
    lines.append("AD_REGISTERS: dict[str, tuple[int, str, int]] = {")
    for reg in doc["adapter"]["registers"]:
        lines.append(f'    "AD_{reg["name"]}": (0x{reg["index"]:02X}, "{reg["access"]}", 0x{reg["reset"]:X}),')
    return [*lines, "}"]


def _vector(spec: Spec) -> list[str]:
    doc = spec.raw["vector_isa"]
    lines = [
        "# opcode: format, class, operands read, written, predicated",
        "VC_OPCODES: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...], bool]] = {",
    ]
    for op in doc["opcodes"]:
        reads = "".join(f"{_text(item)}, " for item in op["reads"])
        writes = "".join(f"{_text(item)}, " for item in op["writes"])
        head = f'"{op["name"]}": ("{op["format"]}", "{op["cls"]}"'
        lines.append(f"    {head}, ({reads}), ({writes}), {op['predicated']}),")
    return [*lines, "}"]


def _head(note: str, docstring: str) -> list[str]:
    return [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# {note}",
        "# ruff: noqa: E501",
        "# fmt: off",
        f'"""{docstring}"""',
        "",
        "from enum import IntEnum",
        "",
        'LAYER = "L0"',
        "",
    ]


def render_isa(spec: Spec, note: str) -> str:
    """Text of the compiler's encoding tables."""
    lines = _head(note, "Constants, code sets and field tables of every encoding.")
    lines += _constants(spec.constants)
    for codes in spec.codes:
        lines += _enum(codes)
    lines += ["", "", *_meanings(spec), ""]
    lines += [*_layouts(spec.layouts), "", *_registers(spec.registers), "", *_windows(spec)]
    lines += ["", *_memory(spec), "", *_cluster(spec), "", *_vector(spec)]
    return "\n".join(lines) + "\n"


def render_seeds(spec: Spec, note: str) -> str:
    """Text of the seed tables of the vector lane, in a module without imports."""
    rows = spec.raw["vector_isa"]["seed_tables"]["rows"]
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# {note}",
        "# fmt: off",
        '"""Seed tables of the vector lane (docs/spec/numerics.md 10.1): exp2, log2, inv 32 rows each, rsqrt 64."""',
        "",
        'LAYER = "leaf"',
        "",
        "# c0, c1, c2 with weights 2^-20, 2^-24, 2^-28",
        "SEED_ROWS: tuple[tuple[int, int, int], ...] = (",
        *(f"    ({c0}, {c1}, {c2})," for _, _, c0, c1, c2 in rows),
        ")",
    ]
    return "\n".join(lines) + "\n"


def render_driver(spec: Spec, note: str) -> str:
    """Text of the driver's tables: registers, addresses, signals and faults; no instruction set."""
    lines = _head(note, "Registers, addresses, signal and fault codes of the machine.")
    lines += _constants(item for item in spec.constants if item.space in ("fabric", "memory"))
    for name in _DRIVER_ENUMS:
        lines += _enum(spec.code_set(name))
    lines += ["", "", *_meanings(spec), ""]
    wanted = [item for item in spec.layouts if item.space in _DRIVER_SPACES or item.name in _DRIVER_MESSAGES]
    lines += [*_layouts(wanted), "", *_registers(spec.registers), "", *_windows(spec), "", *_memory(spec)]
    return "\n".join(lines) + "\n"

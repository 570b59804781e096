# SPDX-License-Identifier: Apache-2.0
"""The machine-readable specification (``spec/*.json``) as one set of plain tables.

Every output of the generator is written from a :class:`Spec`; nothing else reads the JSON files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LAYER = "L0"

FILES = ("fabric", "memory", "cluster", "vector_isa")


class SpecError(ValueError):
    """A table of the specification contradicts itself."""


@dataclass(frozen=True)
class Field:
    """One bit range inside a container; ``overlay`` names bits that another field already covers."""

    name: str
    msb: int
    lsb: int
    meaning: str
    signed: bool = False
    reserved: bool = False
    overlay: bool = False
    default: int = 0
    enum: str = ""

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.msb - self.lsb + 1


@dataclass(frozen=True)
class Layout:
    """All fields of one container.

    ``space`` groups layouts: header, message, register, control, command, address, argument,
    cluster, vector, envelope, mover, adapter, interlink.
    """

    name: str
    space: str
    width: int
    macro: str
    fields: tuple[Field, ...]
    meaning: str = ""


@dataclass(frozen=True)
class Code:
    """One named value of a code set."""

    name: str
    value: int
    meaning: str = ""


@dataclass(frozen=True)
class CodeSet:
    """A closed set of named values, for example the message types."""

    name: str
    macro: str
    width: int
    codes: tuple[Code, ...]
    base: int = 10


@dataclass(frozen=True)
class Constant:
    """A single number; ``width`` 0 means a plain integer."""

    space: str
    name: str
    macro: str
    value: int
    width: int = 0


@dataclass(frozen=True)
class Register:
    """One register or register array of a 64-bit window."""

    block: str
    name: str
    offset: int
    access: str
    reset: int | str | None
    count: int
    stride: int
    meaning: str

    @property
    def last(self) -> int:
        """Last byte offset of the register."""
        return self.offset + self.stride * (self.count - 1) + 7


@dataclass
class Spec:
    """Everything the generator knows."""

    raw: dict[str, Any]
    layouts: list[Layout] = field(default_factory=list)
    codes: list[CodeSet] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    registers: list[Register] = field(default_factory=list)

    def layout(self, name: str) -> Layout:
        """The layout called ``name``."""
        for item in self.layouts:
            if item.name == name:
                return item
        raise SpecError(f"no layout {name}")

    def code_set(self, name: str) -> CodeSet:
        """The code set called ``name``."""
        for item in self.codes:
            if item.name == name:
                return item
        raise SpecError(f"no code set {name}")


def load(root: Path) -> Spec:
    """Read ``root/spec/*.json`` and build the tables."""
    raw = {name: json.loads((root / "spec" / f"{name}.json").read_text()) for name in FILES}
    return build(raw)


def build(raw: dict[str, Any]) -> Spec:
    """Build the tables from the parsed JSON documents (keys :data:`FILES`)."""
    spec = Spec(raw)
    _fabric(spec, raw["fabric"])
    _memory(spec, raw["memory"])
    _cluster(spec, raw["cluster"])
    _vector(spec, raw["vector_isa"])
    return spec


def _field(item: dict[str, Any]) -> Field:
    kind = item.get("kind", "uint")
    return Field(
        name=str(item["name"]),
        msb=int(item["msb"]),
        lsb=int(item["lsb"]),
        meaning=str(item["meaning"]),
        signed=kind == "int",
        reserved=kind == "reserved",
        overlay=bool(item.get("overlay", False)),
        default=int(item.get("default", item.get("unused", 0))),
        enum=str(item.get("enum", "")),
    )


def _fields(items: list[dict[str, Any]]) -> tuple[Field, ...]:
    return tuple(_field(item) for item in items)


_Items = list[tuple[str, int, str]]


def _code_set(spec: Spec, name: str, macro: str, width: int, items: _Items, *, base: int = 10) -> None:
    spec.codes.append(CodeSet(name, macro, width, tuple(Code(*item) for item in items), base))


def _add_layout(spec: Spec, name: str, space: str, items: list[dict[str, Any]], **rest: Any) -> None:
    width = int(rest.get("width", 64))
    macro = str(rest.get("macro", f"KT_{name}"))
    spec.layouts.append(Layout(name, space, width, macro, _fields(items), str(rest.get("meaning", ""))))


def _plain(values: dict[str, int]) -> list[tuple[str, int, str]]:
    return [(name, value, "") for name, value in values.items()]


def _listed(items: list[dict[str, Any]]) -> list[tuple[str, int, str]]:
    return [(str(item["name"]), int(item["code"]), str(item.get("meaning", ""))) for item in items]


def _constants(spec: Spec, space: str, macro: str, values: dict[str, int], widths: dict[str, int]) -> None:
    for name, value in values.items():
        spec.constants.append(Constant(space, name, f"{macro}{name}", int(value), widths.get(name, 0)))


def _message_macro(name: str) -> str:
    return {
        "CU_DATA_DESC": "KT_CU_DATA",
        "CU_DATA_DATA": "KT_CU_DATA_FLIT",
        "ADDR40": "KT_ADDR",
        "FAULT_ARG_FRAMEWORK": "KT_FAB_ARG",
        "IL_HEADER": "KT_IL_HDR",
    }.get(name, f"KT_{name}")


_GROUP_SPACE = {
    "header": "header",
    "payload": "message",
    "address": "address",
    "payload_arg": "argument",
    "cu_ctrl": "control",
    "register": "register",
    "command": "command",
    "interlink": "interlink",
}

_FABRIC_ENUMS = {
    "router_port": "KT_PORT_",
    "engine_err": "KT_ENG_ERR_",
    "cu_data_reject": "KT_REJ_",
    "fault_arg": "KT_FAB_",
    "interlink_kind": "KT_IL_KIND_",
}


def _fabric(spec: Spec, doc: dict[str, Any]) -> None:
    _constants(spec, "fabric", "KT_", doc["constants"], doc["widths"])
    _code_set(spec, "type", "KT_TYPE_", 4, _listed(doc["types"]), base=16)
    _code_set(spec, "signal", "KT_SIG_", 8, _listed(doc["signals"]), base=16)
    for name, macro in _FABRIC_ENUMS.items():
        meanings = doc["enum_meanings"][name]
        codes = [(code, value, meanings[code]) for code, value in doc["enums"][name].items()]
        _code_set(spec, name, macro, doc["enum_widths"][name], codes)
    for item in doc["registers"]:
        spec.registers.append(
            Register(
                item["block"], item["name"], item["offset"], item["access"], item["reset"],
                item["count"], item["stride"], item["meaning"],
            )
        )  # fmt: skip
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for item in doc["fields"]:
        name = "FLIT" if item["group"] == "header" else item.get("type") or item["register"]
        groups.setdefault((item["group"], name), []).append(item)
    indices: list[tuple[str, int, str]] = []
    for (group, name), items in groups.items():
        space = _GROUP_SPACE[group]
        spec.layouts.append(
            Layout(name, space, doc["containers"][group], _message_macro(name), _fields(items))
        )
        if group == "cu_ctrl":
            indices.append((name, items[0]["index"], ""))
    _code_set(spec, "cu_ctrl_index", "KT_IDX_", 8, indices, base=16)


def _memory(spec: Spec, doc: dict[str, Any]) -> None:
    _constants(spec, "memory", "KT_MEM_", doc["constants"], doc["widths"])
    faults = [(n if n.startswith("M_") else f"M_{n}", c, m) for n, c, m in _listed(doc["faults"])]
    _code_set(spec, "mem_fault", "KT_", 4, faults)
    _code_set(spec, "mem_class", "KT_MEM_CLS_", 4, _plain(doc["requester_class"]))
    mover = doc["mover"]
    _code_set(spec, "mover_mode", "KT_MV_MODE_", 3, _plain(mover["modes"]))
    _code_set(spec, "mover_xform", "KT_MV_XFORM_", 4, _plain(mover["xform"]))
    _code_set(spec, "mover_fault", "KT_MV_", 4, _listed(mover["faults"]))
    for name, words in mover["xform_words"].items():
        for side, count in words.items():
            macro = f"KT_MV_XFORM_{name}_{side.upper()}"
            spec.constants.append(Constant("memory", macro.removeprefix("KT_"), macro, int(count)))
    offsets = [(reg["name"], reg["offset"], reg["meaning"]) for reg in mover["registers"]]
    _code_set(spec, "mover_offset", "KT_MV_REG_", 8, offsets, base=16)
    for reg in mover["registers"]:
        name = reg["name"]
        _add_layout(spec, f"MV_{name}", "mover", reg["fields"], meaning=reg["meaning"])
        at = mover["base"] + reg["offset"]
        spec.registers.append(Register("mover", f"MV_{name}", at, "W", reg["reset"], 1, 8, reg["meaning"]))
    _add_layout(spec, "MV_STAT", "mover", mover["status"]["fields"], meaning="AUX_STAT of the mover")
    adapter = doc["adapter"]
    for side in ("LO", "HI"):
        value = int(adapter[f"index_{side.lower()}"])
        spec.constants.append(Constant("memory", f"ADAPTER_INDEX_{side}", f"KT_IDX_AD_{side}", value, 8))
    indices = [(reg["name"], reg["index"], reg["meaning"]) for reg in adapter["registers"]]
    _code_set(spec, "adapter_index", "KT_IDX_AD_", 8, indices, base=16)
    for reg in adapter["registers"]:
        _add_layout(spec, f"AD_{reg['name']}", "adapter", reg["fields"], meaning=reg["meaning"])


_CLUSTER_LAYOUTS = {
    "instruction": "INST",
    "entry_word": "WORD",
    "entry_l1": "L1",
    "scale": "SCALE",
    "fault": "FAULT",
    "success": "RESULT",
    "dbg": "DBG",
}


def _cluster(spec: Spec, doc: dict[str, Any]) -> None:
    _constants(spec, "cluster", "KT_MG_", doc["constants"], doc["widths"])
    _code_set(spec, "mg_op", "KT_MG_OP_", 4, _listed(doc["opcodes"]))
    _code_set(spec, "mg_fault", "KT_MG_", 8, _listed(doc["faults"]), base=16)
    bits = [(item["name"], item["bit"], item["meaning"]) for item in doc["unit_err"]]
    _code_set(spec, "mg_unit_err", "KT_MG_UERR_", 0, bits)
    features = [(item["name"], item["bit"], item["meaning"]) for item in doc["features"]]
    _code_set(spec, "mg_feature", "KT_MG_FEATURE_", 0, features)
    for group, short in _CLUSTER_LAYOUTS.items():
        items = [item for item in doc["fields"] if item["group"] == group]
        _add_layout(spec, f"MG_{short}", "cluster", items, width=doc["containers"][group])


def _vector(spec: Spec, doc: dict[str, Any]) -> None:
    _constants(spec, "vector", "KT_VC_", doc["limits"], {})
    _constants(spec, "vector", "KT_VC_", doc["unit"], doc["widths"])
    _code_set(spec, "vc_op", "KT_VC_OP_", 5, _listed(doc["opcodes"]))
    _code_set(spec, "vc_env", "KT_VC_ENV_", 4, _plain(doc["enums"]["envelope"]))
    lanes = [(o["name"], o["lane_op"], o["semantics"]) for o in doc["opcodes"] if "lane_op" in o]
    _code_set(spec, "vc_lane_op", "KT_VC_LANE_", 5, lanes)
    widths = {"src": 2, "mode": 4, "dtype": 3, "pm": 2, "red": 4, "bcast": 2, "seti": 2}
    for name, width in widths.items():
        _code_set(spec, f"vc_{name}", f"KT_VC_{name.upper()}_", width, _plain(doc["enums"][name]))
    _code_set(spec, "vc_fault", "KT_VC_", 8, _listed(doc["faults"]), base=16)
    bits = [(item["name"], item["bit"], item["meaning"]) for item in doc["unit_err_bits"]]
    _code_set(spec, "vc_unit_err", "KT_VC_UERR_", 0, bits)
    for name, body in doc["payloads"].items():
        _add_layout(spec, f"VC_{name}", "envelope", body["fields"], width=256, meaning=body["meaning"])
    for name, body in doc["formats"].items():
        _add_layout(spec, f"VC_{name}", "vector", body["fields"], width=32, meaning=body["meaning"])
    peer = doc["descriptor"]["peer_base"]
    _add_layout(
        spec, "VC_PEER_BASE", "vector", peer, width=40, macro="KT_VC_PEER", meaning="base of a peer drain"
    )
    _add_layout(spec, "VC_FAULT", "vector", doc["fault_result"], width=32)
    _add_layout(spec, "VC_DBG", "vector", doc["dbg"])


def visible(layout: Layout) -> Iterator[Field]:
    """Fields that carry information: everything but reserved bits."""
    for item in layout.fields:
        if not item.reserved:
            yield item

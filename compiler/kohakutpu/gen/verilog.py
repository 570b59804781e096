# SPDX-License-Identifier: Apache-2.0
"""Verilog header: one macro for every field range, code, register offset and constant."""

from __future__ import annotations

from kohakutpu.gen.tables import CodeSet, Layout, Spec, SpecError, visible

LAYER = "L0"

_SECTIONS = (
    ("flit header", ("header",)),
    ("message payloads", ("message", "argument", "address")),
    ("registers", ("register", "control", "command", "interlink")),
    ("memory mover and adapter", ("mover", "adapter")),
    ("matmul cluster", ("cluster",)),
    ("vector core", ("envelope", "vector")),
)


class _Macros:
    """Collects macros; one name never gets two values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._seen: dict[str, str] = {}

    def add(self, name: str, value: str) -> None:
        old = self._seen.get(name)
        if old == value:
            return
        if old is not None:
            raise SpecError(f"macro {name} has two values: {old} and {value}")
        self._seen[name] = value
        self.lines.append(f"`define {name:<34} {value}")

    def title(self, text: str) -> None:
        self.lines += ["", f"// {text}"]


def _literal(value: int, width: int, base: int) -> str:
    if width == 0:
        return str(value) if value < 1 << 31 else f"{value.bit_length()}'h{value:X}"
    if base == 16:
        return f"{width}'h{value:0{(width + 3) // 4}X}"
    return f"{width}'d{value}"


def _layout(out: _Macros, layout: Layout, macro: str) -> None:
    for item in visible(layout):
        name = f"{macro}_{item.name.upper()}"
        out.add(name, str(item.msb) if item.width == 1 else f"{item.msb}:{item.lsb}")
        out.add(f"{name}_W", str(item.width))


def _codes(out: _Macros, codes: CodeSet) -> None:
    out.title(codes.name)
    for code in codes.codes:
        out.add(f"{codes.macro}{code.name}", _literal(code.value, codes.width, codes.base))


def render(spec: Spec, note: str) -> str:
    """Text of ``rtl/include/ktpu_defs.vh``."""
    out = _Macros()
    out.title("constants")
    for item in spec.constants:
        out.add(item.macro, _literal(item.value, item.width, 16))
    for codes in spec.codes:
        _codes(out, codes)
    out.title("register offsets")
    for reg in spec.registers:
        out.add(f"KT_REG_{reg.name}", _literal(reg.offset, 16, 16))
    out.title("reset values of the mover and of an adapter")
    for reg in spec.registers:
        if reg.block == "mover" and isinstance(reg.reset, int):
            out.add(f"KT_{reg.name}_RESET", _literal(reg.reset, 64, 16))
    for item in spec.raw["memory"]["adapter"]["registers"]:
        out.add(f"KT_AD_{item['name']}_RESET", _literal(int(item["reset"]), 64, 16))
    for title, spaces in _SECTIONS:
        for layout in spec.layouts:
            if layout.space not in spaces:
                continue
            if any(True for _ in visible(layout)):
                out.title(f"{title}: {layout.name}, {layout.width} bits")
                _layout(out, layout, layout.macro)
                if layout.name in ("CU_CTRL_REQ", "CU_CTRL_RSP"):
                    _layout(out, layout, "KT_CU_CTRL")
    body = "\n".join(out.lines)
    head = f"// SPDX-License-Identifier: Apache-2.0\n// {note}\n"
    return head + f"`ifndef KTPU_DEFS_VH\n`define KTPU_DEFS_VH\n{body}\n\n`endif\n"

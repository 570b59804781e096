# SPDX-License-Identifier: Apache-2.0
"""Writes the bench top of a generated machine: DRAM, host, external endpoints, taps."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from kohakutpu.mesh import find, load
from kohakutpu.mesh.verilog import top_ports

_PROG_KICK = 0x50

_AXI_DRAM = {
    "aw": ["id", "addr", "len", "size", "burst", "valid", "ready"],
    "w": ["data", "strb", "last", "valid", "ready"],
    "b": ["id", "resp", "valid", "ready"],
    "ar": ["id", "addr", "len", "size", "burst", "valid", "ready"],
    "r": ["id", "data", "resp", "last", "valid", "ready"],
}
_DRAM_WIDTH = {"id": 4, "addr": 40, "len": 8, "size": 3, "burst": 2, "data": 256, "strb": 32, "resp": 2}
_HOST_WIDTH = {"id": 4, "addr": 32, "len": 8, "size": 3, "burst": 2, "data": 64, "strb": 8, "resp": 2}


@dataclass(frozen=True)
class Endpoint:
    """A placed token of a picture."""

    token: str
    kind: str
    x: int
    y: int
    index: int


def endpoints(picture: Path) -> list[Endpoint]:
    """Endpoints of a mesh picture in scan order, with their number per token."""
    text = tomllib.loads(picture.read_text(encoding="utf-8"))
    found: list[Endpoint] = []
    counts: dict[str, int] = {}
    for y, row in enumerate(text["rows"]):
        for x, token in enumerate(row.split("#")[0].split()):
            if token in (".", "-"):
                continue
            index = counts.get(token, 0)
            counts[token] = index + 1
            found.append(Endpoint(token, text["unit"][token]["kind"], x, y, index))
    return found


def _bus(prefix: str, widths: dict[str, int]) -> tuple[list[str], list[tuple[str, str]]]:
    wires, pins = [], []
    for channel, signals in _AXI_DRAM.items():
        for signal in signals:
            name = f"{prefix}_{channel}{signal}"
            width = widths.get(signal, 1)
            wires.append(f"  wire {f'[{width - 1}:0] ' if width > 1 else ''}{name};")
            pins.append((f"{channel}{signal}", name))
    return wires, pins


def tap_names(picture: Path) -> list[str]:
    """Names of the link taps of a machine, each a file ``tap_<name>.hex`` after a dump."""
    names = []
    for e in endpoints(picture):
        if e.kind != "external":
            names += [f"{e.token}_{e.x}_{e.y}_in", f"{e.token}_{e.x}_{e.y}_out"]
    return [*names, "signals"]


def has_window(picture: Path) -> bool:
    """True if the machine's top has the host's memory window."""
    return any(name == "s_axi_mem_awvalid" for name, _, _ in top_ports(load(picture)))


def write_top(machine: str, out: Path, *, checked: bool, dram_params: dict[str, int] | None = None) -> Path:
    """Write ``tb_<machine>.v`` into ``out``.

    Args:
        machine: name of a picture below ``spec/machines`` without suffix, or the path of a picture file.
        checked: instantiate ``<machine>_checked``, which has a link checker on every link.
        dram_params: parameters of the DRAM model.

    Returns:
        path of the file.

    Raises:
        ValueError: there is no such picture; it has a clock domain besides "mesh"; this top drives one clock.
    """
    picture = find(machine)
    machine = load(picture).name
    units = endpoints(picture)
    tables = tomllib.loads(picture.read_text(encoding="utf-8"))["unit"]
    for e in units:
        if tables[e.token].get("clock", "mesh") != "mesh":
            raise ValueError(
                f"{picture.name}: unit.{e.token}.clock = {tables[e.token]['clock']!r}, but a machine bench drives one "
                'clock; write "mesh", or drive the generated top from a bench of its own like mesh_traffic_cross'
            )
    dram_wires, dram_pins = _bus("dram", _DRAM_WIDTH)
    host_wires, host_pins = _bus("host", _HOST_WIDTH)
    inner = f"u_m.{'u_dut.' if checked else ''}"
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        "// Generated bench top; do not edit.",
        "`default_nettype none",
        f"module tb_{machine} (",
        "  input  wire clk,",
        "  input  wire rst_n,",
        "  input  wire tap_dump,",
        "  input  wire mark_clear,",
        "  /* verilator lint_off UNUSEDSIGNAL */",
        "  input  wire [31:0] run_ahead,  // read by the session's simulator program",
        "  /* verilator lint_on UNUSEDSIGNAL */",
        "  output wire irq,",
        "  output reg  [63:0] cycle,",
        "  output reg  [63:0] first_kick,",
        "  output reg  [63:0] last_signal",
        ");",
        "  initial cycle = 64'd0;",
        "  always @(posedge clk) cycle <= cycle + 64'd1;",
        *dram_wires,
        *host_wires,
    ]
    pins = [("clk", "clk"), ("rst_n", "rst_n"), ("irq", "irq")]
    pins += [(f"m_axi_dram_{p}", n) for p, n in dram_pins]
    pins += [(f"s_axi_ctrl_{p}", n) for p, n in host_pins]
    instances: list[str] = []
    for e in units:
        if e.kind != "external":
            continue
        stem = f"{e.token}{e.index}"
        for side in ("in", "out"):
            lines += [
                f"  wire {stem}_{side}_valid, {stem}_{side}_busy;",
                f"  wire [287:0] {stem}_{side}_data;",
            ]
            pins += [(f"{stem}_{side}_{w}", f"{stem}_{side}_{w}") for w in ("valid", "data", "busy")]
        instances.append(
            f"  flit_port #(.SEED({e.x * 16 + e.y})) u_{stem} (.clk(clk), .rst_n(rst_n), "
            f".out_valid({stem}_in_valid), .out_data({stem}_in_data), .out_busy({stem}_in_busy), "
            f".in_valid({stem}_out_valid), .in_data({stem}_out_data), .in_busy({stem}_out_busy));"
        )
    if has_window(picture):
        window_wires, window_pins = _bus("window", _DRAM_WIDTH)
        lines += window_wires
        pins += [(f"s_axi_mem_{p}", n) for p, n in window_pins]
        instances.append(
            "  window_player u_window (.clk(clk), .rst_n(rst_n), "
            + ", ".join(f".m_axi_{p}({n})" for p, n in window_pins)
            + ");"
        )
    params = ", ".join(f".{k}({v})" for k, v in (dram_params or {}).items())
    instances.append(
        f"  axi_dram_model {f'#({params}) ' if params else ''}u_dram (.clk(clk), .rst_n(rst_n), "
        + ", ".join(f".s_axi_{p}({n})" for p, n in dram_pins)
        + ");"
    )
    instances.append(
        "  host_player u_host (.clk(clk), .rst_n(rst_n), "
        + ", ".join(f".m_axi_{p}({n})" for p, n in host_pins if p not in ("bid", "rid"))
        + ");"
    )
    for e in units:
        if e.kind == "external":
            continue
        for side in ("in", "out"):
            end = f"{inner}u_{e.token}_{e.x}_{e.y}.noc_{side}"
            name = f"{e.token}_{e.x}_{e.y}_{side}"
            instances.append(
                f'  flit_tap #(.FILE("tap_{name}.hex"), .DEPTH(1024)) t_{name} (.clk(clk), .rst_n(rst_n), '
                f".cycle(cycle), .dump(tap_dump), .valid({end}_valid), .busy({end}_busy), .data({end}_data));"
            )
    orch = inner + _orch_instance(units)
    link = f"{orch}.noc"
    instances.append(
        f'  flit_tap #(.FILE("tap_signals.hex"), .DEPTH(16384), .TYPE_ONLY(6)) t_signals (.clk(clk), '
        f".rst_n(rst_n), .cycle(cycle), .dump(tap_dump), .valid({link}_in_valid), .busy({link}_in_busy), "
        f".data({link}_in_data));"
    )
    lines.append(f"  {machine}{'_checked' if checked else ''} u_m (" + ", ".join(f".{p}({n})" for p, n in pins) + ");")
    lines += instances
    # exact cycle counts: the first write of PROG_KICK and the last completion since mark_clear
    kick = f"{orch}.s_axi_awvalid && {orch}.s_axi_awready && {orch}.s_axi_awaddr == 16'h{_PROG_KICK:04x}"
    lines += [
        "  initial begin first_kick = 64'd0; last_signal = 64'd0; end",
        "  always @(posedge clk) begin",
        "    if (mark_clear) first_kick <= 64'd0;",
        f"    else if (first_kick == 64'd0 && {kick}) first_kick <= cycle;",
        f"    if ({link}_in_valid && !{link}_in_busy && {link}_in_data[271:268] == 4'd6) last_signal <= cycle;",
        "  end",
        "endmodule",
        "`default_nettype wire",
        "",
    ]
    path = out / f"tb_{machine}.v"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _orch_instance(units: list[Endpoint]) -> str:
    for e in units:
        if e.kind == "orchestrator":
            return f"u_{e.token}_{e.x}_{e.y}"
    return "u_orch"

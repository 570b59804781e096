# SPDX-License-Identifier: Apache-2.0
"""Verilog module of the seed tables of the vector lane (docs/spec/numerics.md 10.1)."""

from __future__ import annotations

from kohakutpu.gen.tables import Spec

LAYER = "L0"

_WIDTH = 22
_MASK = (1 << _WIDTH) - 1


def render(spec: Spec, note: str) -> str:
    """Text of ``rtl/vector/vc_seed_rom.v``; rows in the order of the table: exp2, log2, inv, rsqrt."""
    doc = spec.raw["vector_isa"]["seed_tables"]
    first: dict[int, int] = {}
    lines = []
    for at, (f, _, *row) in enumerate(doc["rows"]):
        first.setdefault(f, at)
        c0, c1, c2 = (f"{_WIDTH}'h{value & _MASK:06X}" for value in row)
        lines.append(f"            8'd{at}: begin c0 = {c0}; c1 = {c1}; c2 = {c2}; end")
    starts = ", ".join(f"{name} {first[f]}" for name, f in doc["fsel"].items())
    return f"""// SPDX-License-Identifier: Apache-2.0
// {note}
// Seed coefficients, {_WIDTH}-bit signed, weights 2^-20, 2^-24, 2^-28. First rows: {starts}.
// Combinational; rows from {len(lines)} on give 0. Specification: docs/spec/numerics.md 10.1.
`default_nettype none

module vc_seed_rom (
    input  wire [7:0]  row,
    output reg  [{_WIDTH - 1}:0] c0,
    output reg  [{_WIDTH - 1}:0] c1,
    output reg  [{_WIDTH - 1}:0] c2
);
    always @*
        case (row)
{chr(10).join(lines)}
            default: begin c0 = {_WIDTH}'d0; c1 = {_WIDTH}'d0; c2 = {_WIDTH}'d0; end
        endcase
endmodule

`default_nettype wire
"""

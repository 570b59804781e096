// SPDX-License-Identifier: Apache-2.0
// Adds aligned addend and product and takes the magnitude; a seed only takes the magnitude of its polynomial.
// Bits of the addend that were shifted out act as a borrow when the signs differ: the product is then the
// larger term, and the result is one unit smaller with a residue below it.
// Latency 1 cycle with `en`, one a cycle.
// Specification: docs/spec/numerics.md 8, docs/spec/vector.md 12.3.
`default_nettype none

module vc_sum (
    input  wire               clk,
    input  wire               en,
    input  wire               poly,
    input  wire               zsign,
    input  wire               psign,
    input  wire [48:0]        addend,
    input  wire               lost,
    /* verilator lint_off UNUSEDSIGNAL */
    input  wire signed [46:0] p,
    /* verilator lint_on UNUSEDSIGNAL */
    output reg  [48:0]        mag_q,
    output reg                sign_q
);
    always @(posedge clk) if (en) begin : add
        reg        sub;
        reg [49:0] t;
        reg [49:0] w;
        reg [48:0] v;
        sub    = !poly && zsign != psign;
        t      = poly ? {{19{p[46]}}, p[46:16]} : {18'd0, p[31:0]};
        t      = t ^ {50{sub}};
        w      = {1'b0, addend} + t + {49'd0, sub};                                // addend -+ product
        v      = ~t[48:0] + (sub ? ~addend : 49'd0) + {48'd0, !lost};              // its negative
        mag_q  <= w[49] ? v : w[48:0];
        sign_q <= w[49] ? psign : zsign;
    end
endmodule

`default_nettype wire

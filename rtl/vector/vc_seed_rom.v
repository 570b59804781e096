// SPDX-License-Identifier: Apache-2.0
// Generated from spec/*.json by `python -m kohakutpu.gen`; do not edit.
// Seed coefficients, 22-bit signed, weights 2^-20, 2^-24, 2^-28. First rows: EXP2 0, LOG2 32, INV 64, RSQRT 96.
// Combinational; rows from 160 on give 0. Specification: docs/spec/numerics.md 10.1.
`default_nettype none

module vc_seed_rom (
    input  wire [7:0]  row,
    output reg  [21:0] c0,
    output reg  [21:0] c1,
    output reg  [21:0] c2
);
    always @*
        case (row)
            8'd0: begin c0 = 22'h000000; c1 = 22'h058B81; c2 = 22'h00F8AC; end
            8'd1: begin c0 = 22'h0059B1; c1 = 22'h05AA96; c2 = 22'h00FE1E; end
            8'd2: begin c0 = 22'h00B558; c1 = 22'h05CA59; c2 = 22'h0103AF; end
            8'd3: begin c0 = 22'h011302; c1 = 22'h05EACF; c2 = 22'h01095E; end
            8'd4: begin c0 = 22'h0172B8; c1 = 22'h060BFA; c2 = 22'h010F2E; end
            8'd5: begin c0 = 22'h01D487; c1 = 22'h062DE0; c2 = 22'h01151E; end
            8'd6: begin c0 = 22'h02387A; c1 = 22'h065083; c2 = 22'h011B2F; end
            8'd7: begin c0 = 22'h029E9E; c1 = 22'h0673E9; c2 = 22'h012163; end
            8'd8: begin c0 = 22'h0306FE; c1 = 22'h069815; c2 = 22'h0127B9; end
            8'd9: begin c0 = 22'h0371A7; c1 = 22'h06BD0C; c2 = 22'h012E33; end
            8'd10: begin c0 = 22'h03DEA6; c1 = 22'h06E2D2; c2 = 22'h0134D1; end
            8'd11: begin c0 = 22'h044E08; c1 = 22'h07096C; c2 = 22'h013B94; end
            8'd12: begin c0 = 22'h04BFDB; c1 = 22'h0730DE; c2 = 22'h01427D; end
            8'd13: begin c0 = 22'h05342B; c1 = 22'h07592D; c2 = 22'h01498D; end
            8'd14: begin c0 = 22'h05AB08; c1 = 22'h07825E; c2 = 22'h0150C4; end
            8'd15: begin c0 = 22'h06247F; c1 = 22'h07AC77; c2 = 22'h015824; end
            8'd16: begin c0 = 22'h06A09E; c1 = 22'h07D77B; c2 = 22'h015FAD; end
            8'd17: begin c0 = 22'h071F76; c1 = 22'h080370; c2 = 22'h016760; end
            8'd18: begin c0 = 22'h07A115; c1 = 22'h08305C; c2 = 22'h016F3F; end
            8'd19: begin c0 = 22'h08258A; c1 = 22'h085E43; c2 = 22'h01774A; end
            8'd20: begin c0 = 22'h08ACE5; c1 = 22'h088D2C; c2 = 22'h017F81; end
            8'd21: begin c0 = 22'h093738; c1 = 22'h08BD1C; c2 = 22'h0187E7; end
            8'd22: begin c0 = 22'h09C492; c1 = 22'h08EE18; c2 = 22'h01907C; end
            8'd23: begin c0 = 22'h0A5504; c1 = 22'h092027; c2 = 22'h019941; end
            8'd24: begin c0 = 22'h0AE8A0; c1 = 22'h09534F; c2 = 22'h01A237; end
            8'd25: begin c0 = 22'h0B7F77; c1 = 22'h098796; c2 = 22'h01AB60; end
            8'd26: begin c0 = 22'h0C199C; c1 = 22'h09BD01; c2 = 22'h01B4BB; end
            8'd27: begin c0 = 22'h0CB721; c1 = 22'h09F398; c2 = 22'h01BE4B; end
            8'd28: begin c0 = 22'h0D5819; c1 = 22'h0A2B61; c2 = 22'h01C811; end
            8'd29: begin c0 = 22'h0DFC97; c1 = 22'h0A6463; c2 = 22'h01D20E; end
            8'd30: begin c0 = 22'h0EA4B0; c1 = 22'h0A9EA4; c2 = 22'h01DC42; end
            8'd31: begin c0 = 22'h0F5076; c1 = 22'h0ADA2C; c2 = 22'h01E6B0; end
            8'd32: begin c0 = 22'h000000; c1 = 22'h0B8A1E; c2 = 22'h3D33D4; end
            8'd33: begin c0 = 22'h00B5D7; c1 = 22'h0B30A1; c2 = 22'h3D5DF4; end
            8'd34: begin c0 = 22'h016640; c1 = 22'h0ADC66; c2 = 22'h3D8477; end
            8'd35: begin c0 = 22'h02118B; c1 = 22'h0A8CFC; c2 = 22'h3DA7C4; end
            8'd36: begin c0 = 22'h02B804; c1 = 22'h0A41FA; c2 = 22'h3DC835; end
            8'd37: begin c0 = 22'h0359EC; c1 = 22'h09FB06; c2 = 22'h3DE617; end
            8'd38: begin c0 = 22'h03F783; c1 = 22'h09B7CE; c2 = 22'h3E01AC; end
            8'd39: begin c0 = 22'h049102; c1 = 22'h097807; c2 = 22'h3E1B2F; end
            8'd40: begin c0 = 22'h05269E; c1 = 22'h093B71; c2 = 22'h3E32D5; end
            8'd41: begin c0 = 22'h05B889; c1 = 22'h0901CF; c2 = 22'h3E48CA; end
            8'd42: begin c0 = 22'h0646EF; c1 = 22'h08CAEC; c2 = 22'h3E5D38; end
            8'd43: begin c0 = 22'h06D1FB; c1 = 22'h089695; c2 = 22'h3E7040; end
            8'd44: begin c0 = 22'h0759D5; c1 = 22'h0864A0; c2 = 22'h3E8204; end
            8'd45: begin c0 = 22'h07DEA2; c1 = 22'h0834E3; c2 = 22'h3E929F; end
            8'd46: begin c0 = 22'h086083; c1 = 22'h080739; c2 = 22'h3EA22B; end
            8'd47: begin c0 = 22'h08DF99; c1 = 22'h07DB81; c2 = 22'h3EB0BF; end
            8'd48: begin c0 = 22'h095C02; c1 = 22'h07B19A; c2 = 22'h3EBE6E; end
            8'd49: begin c0 = 22'h09D5DA; c1 = 22'h07896A; c2 = 22'h3ECB4A; end
            8'd50: begin c0 = 22'h0A4D3C; c1 = 22'h0762D5; c2 = 22'h3ED765; end
            8'd51: begin c0 = 22'h0AC241; c1 = 22'h073DC3; c2 = 22'h3EE2CE; end
            8'd52: begin c0 = 22'h0B3500; c1 = 22'h071A1E; c2 = 22'h3EED90; end
            8'd53: begin c0 = 22'h0BA590; c1 = 22'h06F7D1; c2 = 22'h3EF7BA; end
            8'd54: begin c0 = 22'h0C1405; c1 = 22'h06D6C9; c2 = 22'h3F0156; end
            8'd55: begin c0 = 22'h0C8073; c1 = 22'h06B6F5; c2 = 22'h3F0A6F; end
            8'd56: begin c0 = 22'h0CEAED; c1 = 22'h069844; c2 = 22'h3F130C; end
            8'd57: begin c0 = 22'h0D5385; c1 = 22'h067AA7; c2 = 22'h3F1B38; end
            8'd58: begin c0 = 22'h0DBA4A; c1 = 22'h065E0F; c2 = 22'h3F22F9; end
            8'd59: begin c0 = 22'h0E1F4E; c1 = 22'h06426E; c2 = 22'h3F2A57; end
            8'd60: begin c0 = 22'h0E82A0; c1 = 22'h0627BA; c2 = 22'h3F3158; end
            8'd61: begin c0 = 22'h0EE44D; c1 = 22'h060DE6; c2 = 22'h3F3803; end
            8'd62: begin c0 = 22'h0F4463; c1 = 22'h05F4E7; c2 = 22'h3F3E5C; end
            8'd63: begin c0 = 22'h0FA2F0; c1 = 22'h05DCB3; c2 = 22'h3F4469; end
            8'd64: begin c0 = 22'h0FFFFF; c1 = 22'h380113; c2 = 22'h03D1A3; end
            8'd65: begin c0 = 22'h0F83E0; c1 = 22'h387B31; c2 = 22'h037CAA; end
            8'd66: begin c0 = 22'h0F0F0E; c1 = 22'h38EAB3; c2 = 22'h033143; end
            8'd67: begin c0 = 22'h0EA0E9; c1 = 22'h3950CB; c2 = 22'h02EE1E; end
            8'd68: begin c0 = 22'h0E38E3; c1 = 22'h39AE81; c2 = 22'h02B222; end
            8'd69: begin c0 = 22'h0DD67C; c1 = 22'h3A04B8; c2 = 22'h027C60; end
            8'd70: begin c0 = 22'h0D7943; c1 = 22'h3A5439; c2 = 22'h024C10; end
            8'd71: begin c0 = 22'h0D20D2; c1 = 22'h3A9DB2; c2 = 22'h022084; end
            8'd72: begin c0 = 22'h0CCCCC; c1 = 22'h3AE1BA; c2 = 22'h01F92B; end
            8'd73: begin c0 = 22'h0C7CE0; c1 = 22'h3B20D7; c2 = 22'h01D585; end
            8'd74: begin c0 = 22'h0C30C3; c1 = 22'h3B5B81; c2 = 22'h01B526; end
            8'd75: begin c0 = 22'h0BE82F; c1 = 22'h3B9220; c2 = 22'h0197AF; end
            8'd76: begin c0 = 22'h0BA2E8; c1 = 22'h3BC511; c2 = 22'h017CD0; end
            8'd77: begin c0 = 22'h0B60B6; c1 = 22'h3BF4A6; c2 = 22'h016440; end
            8'd78: begin c0 = 22'h0B2164; c1 = 22'h3C212A; c2 = 22'h014DC1; end
            8'd79: begin c0 = 22'h0AE4C4; c1 = 22'h3C4ADE; c2 = 22'h01391E; end
            8'd80: begin c0 = 22'h0AAAAA; c1 = 22'h3C71FE; c2 = 22'h012625; end
            8'd81: begin c0 = 22'h0A72F0; c1 = 22'h3C96C0; c2 = 22'h0114AC; end
            8'd82: begin c0 = 22'h0A3D70; c1 = 22'h3CB953; c2 = 22'h01048F; end
            8'd83: begin c0 = 22'h0A0A0A; c1 = 22'h3CD9E2; c2 = 22'h00F5AD; end
            8'd84: begin c0 = 22'h09D89D; c1 = 22'h3CF895; c2 = 22'h00E7E7; end
            8'd85: begin c0 = 22'h09A90E; c1 = 22'h3D1590; c2 = 22'h00DB23; end
            8'd86: begin c0 = 22'h097B42; c1 = 22'h3D30F2; c2 = 22'h00CF4B; end
            8'd87: begin c0 = 22'h094F20; c1 = 22'h3D4ADA; c2 = 22'h00C44A; end
            8'd88: begin c0 = 22'h092492; c1 = 22'h3D6362; c2 = 22'h00BA0D; end
            8'd89: begin c0 = 22'h08FB82; c1 = 22'h3D7AA2; c2 = 22'h00B083; end
            8'd90: begin c0 = 22'h08D3DD; c1 = 22'h3D90B1; c2 = 22'h00A79D; end
            8'd91: begin c0 = 22'h08AD8F; c1 = 22'h3DA5A3; c2 = 22'h009F4D; end
            8'd92: begin c0 = 22'h088888; c1 = 22'h3DB98C; c2 = 22'h009788; end
            8'd93: begin c0 = 22'h0864B9; c1 = 22'h3DCC7C; c2 = 22'h009043; end
            8'd94: begin c0 = 22'h084210; c1 = 22'h3DDE83; c2 = 22'h008972; end
            8'd95: begin c0 = 22'h082082; c1 = 22'h3DEFB1; c2 = 22'h00830E; end
            8'd96: begin c0 = 22'h100000; c1 = 22'h3C0057; c2 = 22'h017173; end
            8'd97: begin c0 = 22'h0FC176; c1 = 22'h3C2E7F; c2 = 22'h01567D; end
            8'd98: begin c0 = 22'h0F85B4; c1 = 22'h3C5949; c2 = 22'h013E35; end
            8'd99: begin c0 = 22'h0F4C86; c1 = 22'h3C810B; c2 = 22'h012844; end
            8'd100: begin c0 = 22'h0F15BF; c1 = 22'h3CA60F; c2 = 22'h011463; end
            8'd101: begin c0 = 22'h0EE134; c1 = 22'h3CC898; c2 = 22'h010254; end
            8'd102: begin c0 = 22'h0EAEBF; c1 = 22'h3CE8DF; c2 = 22'h00F1E0; end
            8'd103: begin c0 = 22'h0E7E3F; c1 = 22'h3D0718; c2 = 22'h00E2DB; end
            8'd104: begin c0 = 22'h0E4F93; c1 = 22'h3D2371; c2 = 22'h00D51C; end
            8'd105: begin c0 = 22'h0E229F; c1 = 22'h3D3E12; c2 = 22'h00C881; end
            8'd106: begin c0 = 22'h0DF748; c1 = 22'h3D5720; c2 = 22'h00BCEA; end
            8'd107: begin c0 = 22'h0DCD77; c1 = 22'h3D6EBC; c2 = 22'h00B23E; end
            8'd108: begin c0 = 22'h0DA515; c1 = 22'h3D8502; c2 = 22'h00A866; end
            8'd109: begin c0 = 22'h0D7E0D; c1 = 22'h3D9A0D; c2 = 22'h009F4C; end
            8'd110: begin c0 = 22'h0D584D; c1 = 22'h3DADF5; c2 = 22'h0096DF; end
            8'd111: begin c0 = 22'h0D33C3; c1 = 22'h3DC0D0; c2 = 22'h008F0E; end
            8'd112: begin c0 = 22'h0D105F; c1 = 22'h3DD2B0; c2 = 22'h0087CB; end
            8'd113: begin c0 = 22'h0CEE11; c1 = 22'h3DE3A8; c2 = 22'h00810A; end
            8'd114: begin c0 = 22'h0CCCCD; c1 = 22'h3DF3C9; c2 = 22'h007ABF; end
            8'd115: begin c0 = 22'h0CAC84; c1 = 22'h3E0320; c2 = 22'h0074DF; end
            8'd116: begin c0 = 22'h0C8D2B; c1 = 22'h3E11BB; c2 = 22'h006F63; end
            8'd117: begin c0 = 22'h0C6EB6; c1 = 22'h3E1FA6; c2 = 22'h006A41; end
            8'd118: begin c0 = 22'h0C511A; c1 = 22'h3E2CEE; c2 = 22'h006572; end
            8'd119: begin c0 = 22'h0C344E; c1 = 22'h3E399B; c2 = 22'h0060F0; end
            8'd120: begin c0 = 22'h0C1849; c1 = 22'h3E45B9; c2 = 22'h005CB5; end
            8'd121: begin c0 = 22'h0BFD01; c1 = 22'h3E514F; c2 = 22'h0058BA; end
            8'd122: begin c0 = 22'h0BE26F; c1 = 22'h3E5C66; c2 = 22'h0054FC; end
            8'd123: begin c0 = 22'h0BC88A; c1 = 22'h3E6705; c2 = 22'h005175; end
            8'd124: begin c0 = 22'h0BAF4C; c1 = 22'h3E7133; c2 = 22'h004E22; end
            8'd125: begin c0 = 22'h0B96AD; c1 = 22'h3E7AF7; c2 = 22'h004AFF; end
            8'd126: begin c0 = 22'h0B7EA7; c1 = 22'h3E8456; c2 = 22'h004808; end
            8'd127: begin c0 = 22'h0B6735; c1 = 22'h3E8D57; c2 = 22'h00453B; end
            8'd128: begin c0 = 22'h0B504F; c1 = 22'h3D2C29; c2 = 22'h01053D; end
            8'd129: begin c0 = 22'h0B2416; c1 = 22'h3D4CCD; c2 = 22'h00F22D; end
            8'd130: begin c0 = 22'h0AF9D5; c1 = 22'h3D6B0F; c2 = 22'h00E101; end
            8'd131: begin c0 = 22'h0AD167; c1 = 22'h3D872B; c2 = 22'h00D17E; end
            8'd132: begin c0 = 22'h0AAAAB; c1 = 22'h3DA158; c2 = 22'h00C370; end
            8'd133: begin c0 = 22'h0A8583; c1 = 22'h3DB9C3; c2 = 22'h00B6AA; end
            8'd134: begin c0 = 22'h0A61D6; c1 = 22'h3DD096; c2 = 22'h00AB08; end
            8'd135: begin c0 = 22'h0A3F8A; c1 = 22'h3DE5F5; c2 = 22'h00A069; end
            8'd136: begin c0 = 22'h0A1E8A; c1 = 22'h3DFA01; c2 = 22'h0096B1; end
            8'd137: begin c0 = 22'h09FEC0; c1 = 22'h3E0CD5; c2 = 22'h008DC7; end
            8'd138: begin c0 = 22'h09E01B; c1 = 22'h3E1E8D; c2 = 22'h008595; end
            8'd139: begin c0 = 22'h09C289; c1 = 22'h3E2F3E; c2 = 22'h007E0A; end
            8'd140: begin c0 = 22'h09A5FB; c1 = 22'h3E3EFE; c2 = 22'h007713; end
            8'd141: begin c0 = 22'h098A62; c1 = 22'h3E4DDF; c2 = 22'h0070A4; end
            8'd142: begin c0 = 22'h096FB0; c1 = 22'h3E5BF3; c2 = 22'h006AAE; end
            8'd143: begin c0 = 22'h0955DA; c1 = 22'h3E6948; c2 = 22'h006527; end
            8'd144: begin c0 = 22'h093CD4; c1 = 22'h3E75EC; c2 = 22'h006005; end
            8'd145: begin c0 = 22'h092492; c1 = 22'h3E81EC; c2 = 22'h005B3E; end
            8'd146: begin c0 = 22'h090D0C; c1 = 22'h3E8D53; c2 = 22'h0056CB; end
            8'd147: begin c0 = 22'h08F638; c1 = 22'h3E982C; c2 = 22'h0052A4; end
            8'd148: begin c0 = 22'h08E00D; c1 = 22'h3EA27F; c2 = 22'h004EC3; end
            8'd149: begin c0 = 22'h08CA84; c1 = 22'h3EAC57; c2 = 22'h004B22; end
            8'd150: begin c0 = 22'h08B594; c1 = 22'h3EB5BB; c2 = 22'h0047BC; end
            8'd151: begin c0 = 22'h08A138; c1 = 22'h3EBEB2; c2 = 22'h00448C; end
            8'd152: begin c0 = 22'h088D67; c1 = 22'h3EC743; c2 = 22'h00418D; end
            8'd153: begin c0 = 22'h087A1D; c1 = 22'h3ECF74; c2 = 22'h003EBD; end
            8'd154: begin c0 = 22'h086753; c1 = 22'h3ED74C; c2 = 22'h003C18; end
            8'd155: begin c0 = 22'h085504; c1 = 22'h3EDECE; c2 = 22'h003999; end
            8'd156: begin c0 = 22'h08432A; c1 = 22'h3EE601; c2 = 22'h003740; end
            8'd157: begin c0 = 22'h0831C2; c1 = 22'h3EECE9; c2 = 22'h003508; end
            8'd158: begin c0 = 22'h0820C5; c1 = 22'h3EF38A; c2 = 22'h0032EF; end
            8'd159: begin c0 = 22'h081031; c1 = 22'h3EF9E7; c2 = 22'h0030F4; end
            default: begin c0 = 22'd0; c1 = 22'd0; c2 = 22'd0; end
        endcase
endmodule

`default_nettype wire

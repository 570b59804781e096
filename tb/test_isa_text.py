# SPDX-License-Identifier: Apache-2.0
"""Encodings as text: assembler, disassemblers, layouts, addresses, fault words."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from kohakutpu.isa import (
    EncodingError,
    address,
    cluster,
    codec,
    explain_fault,
    explain_signal,
    fault_arg,
    generated,
    message,
    registers,
    vector,
)

pytestmark = pytest.mark.unit

LAYOUTS = tuple(generated.LAYOUTS)
CLUSTER_OPS = ("FILL", "GEMM", "DRAIN")


def test_cluster_text_of_the_contract() -> None:
    word = cluster.parse("FILL A bank=0 eoff=0 n=64 addr=0x10000")
    assert word == cluster.encode("FILL", n=64, addr=0x10000)
    assert cluster.disasm(word) == "FILL A bank=0 eoff=0 n=64 addr=0x10000"
    gemm = cluster.encode(
        "GEMM", gm=16, gn=32, nk=4, acc=1, emit=1, dnode=1, dst_x=1, dack_x=1, dack_y=1, dflags=1
    )
    assert cluster.disasm(gemm) == (
        "GEMM gm=16 gn=32 nk=4 abank=0 aoff=0 bbank=0 boff=0 acc emit node dst=(1,0) dack=(1,1) dflags=1"
    )
    assert cluster.parse(cluster.disasm(gemm)) == gemm


def test_cluster_text_parses_back() -> None:
    rng = random.Random(6)
    for index in range(4000):
        word = rng.getrandbits(252) | (index % 16) << 252
        if index % 3 == 0:
            word &= rng.getrandbits(256) | 15 << 252
        assert cluster.parse(cluster.disasm(word)) == word
        if index % 16 not in (1, 2, 3):
            assert cluster.disasm(word).startswith(".word 0x")
            assert not cluster.matches(word)


def test_cluster_text_refusals() -> None:
    cases = [
        ("", "empty instruction"),
        ("LOAD n=1", "no cluster instruction 'LOAD'"),
        ("FILL A n=", "unknown flag 'n'"),
        ("FILL A nn=4", "no field 'nn'"),
        ("FILL A n=4 n=5", "n is given twice"),
        ("FILL A n=x4", "n=x4 is not a number"),
        ("DRAIN n=4 often", "unknown flag 'often'"),
        ("DRAIN n=4 dst=3", "not a coordinate"),
        ("DRAIN n=4 dst=(16,0)", "MG_INST.dst_x = 16"),
        ("DRAIN n=4 ; x", "cannot read ';'"),
        ("FILL A n=70000", "MG_INST.n = 70000"),
        (".word 0x1" + "0" * 64, "does not fit 256 bits"),
    ]
    for text, expected in cases:
        with pytest.raises(EncodingError, match=re.escape(expected)):
            cluster.parse(text)


def test_unused_cluster_fields_have_their_encoder_values() -> None:
    for op in CLUSTER_OPS:
        fields = cluster.decode(cluster.encode(op))
        assert (fields["nk"], fields["anchor"]) == (1, 40)
        assert all(value == 0 for name, value in fields.items() if name not in ("op", "nk", "anchor"))


def test_vector_text_parses_back() -> None:
    rng = random.Random(7)
    for index in range(20_000):
        word = (index % 32) << 27 | rng.getrandbits(27)
        if index % 2:
            word &= rng.getrandbits(32) | 31 << 27
        assert vector.parse(vector.disasm(word)) == word, vector.disasm(word)
    assert vector.disasm(1 << 32) == ".word 0x100000000"
    lines = vector.disasm_words([vector.encode("VSETI", sd=2), 0x12345678, vector.encode("VHALT")])
    assert lines == ["VSETI S2", "  .imm 0x12345678", "VHALT"]
    assert [vector.parse(line) for line in lines] == [0xD0040000, 0x12345678, 0xF8000000]


def test_envelope_text_parses_back() -> None:
    rng = random.Random(8)
    for index in range(4_000):
        payload = (index % 16) << 252 | rng.getrandbits(252)
        if index % 3:
            payload &= 15 << 252 | ((1 << 252) - (1 << 212)) | rng.getrandbits(32)
        assert vector.parse_envelope(vector.disasm_envelope(payload)) == payload
    assert vector.disasm_envelope(4 << 252).startswith(".word 0x4")
    assert vector.decode_envelope(0) == (None, {})
    assert "{reserved_242_0=0x1}" in vector.disasm_envelope(vector.run(3) | 1)
    for text in (
        "LOAD 3",
        "RUN x",
        "DESC A9 base <- 0x0",
        "DESC A0 dimension 4 <- stride 0, bound 1",
        "RUN 512",
    ):
        with pytest.raises(EncodingError):
            vector.parse_envelope(text)


def test_vector_text_refusals() -> None:
    cases = [
        ("", "cannot read vector instruction"),
        ("VXOR v0, v1", "cannot read vector instruction 'VXOR v0, v1'"),
        ("VADD v0, v1", "VADD takes 2 operands, got 1"),
        ("VADD v0, v1, x2", "operand 'x2' is not v, S or K"),
        ("VADD v16, v1, v2", "VC_ALU.vd = 16"),
        ("VADD S0, v1, v2", "cannot read operands 'S0'"),
        ("VLD.FP8 v0, A1", "'FP8' is not one of FP16, FP32"),
        ("VLD.FP16 v0, A1+9000", "VC_LDST.off = 9000 is outside -8192..8191"),
        ("VLOOP S1, 16", "VC_LOOP.body = 16"),
        ("VBAR now", "VBAR: cannot read operands 'now'"),
        ("VMOV v0, v1 {vd=3}", "vd is given twice"),
        ("VMOV v0, v1 {vb}", "'vb' is not name=number"),
    ]
    for text, expected in cases:
        with pytest.raises(EncodingError, match=re.escape(expected)):
            vector.parse(text)


def test_flit_text_and_classes() -> None:
    flit = message.encode("MEM_RD_REQ", dst=(0, 1), src=(2, 1), txn=5, addr=0x10000, flag_stream=1, count=64)
    assert message.disasm(flit) == "(2,1)->(0,1) txn=5 last MEM_RD_REQ addr=0x10000 flags=0x40 count=64"
    assert message.decode(flit).fields["flag_stream"] == 1
    assert message.matches(flit, "MEM_RD_REQ", count=64, txn=5)
    assert not message.matches(flit, "MEM_WR_REQ")
    assert not message.matches(flit, "MEM_RD_REQ", count=63)
    assert not message.matches(flit | 1, "MEM_RD_REQ")
    inst = message.encode("CU_INST", dst=(2, 1), src=(1, 1), body=cluster.encode("DRAIN", n=4))
    assert message.disasm(inst, unit=generated.CU_TYPE_CLUSTER).endswith("CU_INST DRAIN n=4 addr=0x0")
    core = message.encode("CU_INST", dst=(1, 0), src=(1, 1), last=1, body=vector.run(7))
    assert message.disasm(core, unit=generated.CU_TYPE_VECTOR).endswith("last CU_INST RUN 7")
    burst = message.encode("CU_DATA_DESC", dst=(2, 1), src=(1, 0), buf_id=2, len=7)
    assert message.classify(burst) == "CU_DATA_DESC"
    assert message.classify(burst, data=True) == "CU_DATA_DATA"
    unknown = message.HEADER.encode(type=9, txn=1, payload=3)
    assert message.classify(unknown) is None
    assert message.disasm(unknown) == f"(0,0)->(0,0) type=9 txn=1 .payload 0x{3:064x}"
    assert message.disasm(1 << 288).startswith(".flit 0x1")
    signal = message.encode("CU_SIGNAL", dst=(1, 1), src=(2, 1), code=4, arg=0x4D470107)
    assert "FAULT MG F_TILES (0x07)" in message.disasm(signal)


def test_layouts_print_every_field() -> None:
    for name in LAYOUTS:
        text = codec(name).layout()
        assert all(f" {field} " in text for field in codec(name).fields)
    assert "eoff" in cluster.layout("FILL")
    assert "aoff" not in cluster.layout("FILL")
    assert "(if emit = 1)" in cluster.layout("GEMM")
    assert cluster.layout() == codec("MG_INST").layout()
    assert "dst_x" in message.layout("FLIT")
    assert "dst_y" in registers.layout("PROG_DST")
    assert "mesh" in address.layout()
    assert "dtype" in vector.layout("VLD")


def test_addresses() -> None:
    assert address.dram(0x40, mesh=2) == 0x20_0000_0040
    assert address.staging(0x80, mesh=3) == 0xB0_0000_0080
    assert address.adapter(0) == 0x81_0000_0000
    assert address.disasm(address.dram(0x40, 2)) == "mesh 2 dram + 0x40"
    assert address.disasm(address.adapter(8, 1)) == "mesh 1 adapter + 0x8"
    assert address.disasm(1 << 38) == "mesh 0 dram + 0x0, bit 38 set"
    assert address.disasm(1 << 40) == ".address 0x10000000000"
    assert address.matches(address.staging(4), aperture=1)
    assert not address.matches(1 << 38)
    assert address.decode(address.encode(mesh=1, local=7))["local"] == 7


# --- fault words --------------------------------------------------------------------------------------------


def test_fault_words() -> None:
    assert explain_fault(0x4D470205).startswith("MG F_GEMM_A (0x05): GEMM operand range of side A")
    assert explain_fault(0x56430311).startswith("VC F_WDOG (0x11): no response")
    assert explain_fault(0xFAB00502) == (
        "shell WR_DROP (0x02): a memory write of the instruction was refused; "
        "memory M_RANGE (0x05): a byte of the access lies beyond DRAM_BYTES / STAGE_BYTES"
    )
    assert explain_fault(0x4D4702FF) == "MG unknown code (0xFF); retiring GEMM"
    assert explain_fault(0x12340102) == "unknown unit 0x1234: code 0x02, detail 1"
    assert "reserved bits 0x1 set" in explain_fault(0x4D471205)
    assert explain_fault(1 << 32).startswith("not a fault word")


@pytest.mark.parametrize(
    ("tag", "kind"),
    [
        (generated.MG_CU_TYPE, generated.ClusterFault),
        (generated.VC_CU_TYPE, generated.VectorFault),
        (generated.FAULT_MAGIC, generated.ShellFault),
    ],
)
def test_every_fault_is_explained(tag: int, kind: Any) -> None:
    texts = {explain_fault(fault_arg(tag, 1, code)) for code in kind}
    assert len(texts) == len(kind)
    for code in kind:
        assert f"{code.name} (0x{int(code):02X}): " in explain_fault(fault_arg(tag, 1, code))


def test_signals() -> None:
    assert explain_signal(0, 5) == "INST_COMPLETE 0x00000005"
    assert explain_signal(3, 2) == "DATA_RECEIVED buffer 2 accepted"
    assert explain_signal(3, 0x86000002) == "DATA_RECEIVED buffer 2 rejected: NOT_READY"
    assert explain_signal(0x41, 0) == "signal 0x41 0x00000000"

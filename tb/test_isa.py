# SPDX-License-Identifier: Apache-2.0
"""Encodings: table-driven packer against the hand-written one, examples of the pages, text, refusals."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from kohakubench import witness_packer as witness
from kohakutpu.isa import (
    EncodingError,
    address,
    cluster,
    codec,
    generated,
    message,
    registers,
    vector,
)

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
COUNT = 10_000
CLUSTER_OPS = ("FILL", "GEMM", "DRAIN")
LAYOUTS = tuple(generated.LAYOUTS)
BUS = [("CU_DATA_DATA", "data"), ("MEM_WR_DATA", "data"), ("MEM_RD_RESP", "data"), ("CU_INST", "body")]


def spec(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "spec" / f"{name}.json").read_text())
    return document


def words_of(limbs: witness.Limbs) -> list[int]:
    """Rows of 64-bit limbs as Python integers."""
    size = 8 * limbs.shape[1]
    data = np.ascontiguousarray(limbs).tobytes()
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def columns(name: str, seed: int, n: int = COUNT) -> dict[str, witness.Column]:
    """Random columns for every visible base field; every fourth value is an extreme one."""
    rng = np.random.default_rng(seed)
    out: dict[str, witness.Column] = {}
    for field in codec(name).fields.values():
        if field.reserved or field.overlay or field.width > 64:
            continue
        column: witness.Column
        if field.width == 64:
            column = rng.integers(0, 1 << 64, n, dtype=np.uint64)
        else:
            column = rng.integers(field.low, field.high + 1, n, dtype=np.int64)
        edge = rng.integers(0, 8, n)
        column[edge == 0] = field.low
        column[edge == 1] = field.high
        out[field.name] = column
    return out


def rows(fields: dict[str, witness.Column]) -> list[dict[str, int]]:
    """The columns as one dictionary an instruction."""
    names = list(fields)
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(fields[n].tolist() for n in names), strict=True)
    ]


def same(label: str, got: Sequence[int], expected: Sequence[int]) -> None:
    """Exact comparison that names the first difference."""
    assert len(got) == len(expected)
    for index, (left, right) in enumerate(zip(got, expected, strict=True)):
        assert left == right, (
            f"{label}[{index}]: table 0x{left:x}, witness 0x{right:x}, xor 0x{left ^ right:x}"
        )


# --- agreement with the second packer ---------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(witness.CONTAINERS))
def test_container_agrees_with_witness(name: str) -> None:
    fields = columns(name, seed=1)
    fields.pop("payload", None)
    expected = words_of(witness.CONTAINERS[name](fields))
    if name.startswith("VC_") and "op" in codec(name).fields:
        fields.pop("op")
        got = [vector.encode_envelope(name[3:], **row) for row in rows(fields)]
    else:
        got = [codec(name).encode(**row) for row in rows(fields)]
    same(name, got, expected)


@pytest.mark.parametrize("op", CLUSTER_OPS)
def test_cluster_agrees_with_witness(op: str) -> None:
    fields = columns("MG_INST", seed=2)
    low, high = fields.pop("addr_lo"), fields.pop("addr_hi")
    fields["addr"] = high << 34 | low
    fields["op"] = np.full(COUNT, generated.ClusterOp[op])
    expected = words_of(witness.cluster(fields))
    fields.pop("op")
    items = rows(fields)
    same(op, [cluster.encode(op, raw=True, **row) for row in items], expected)
    for row, word in zip(items[:1000], expected[:1000], strict=True):
        assert cluster.decode(word) == {"op": generated.ClusterOp[op], **row}


@pytest.mark.parametrize("op", list(witness.VECTOR_OPCODES))
def test_vector_word_agrees_with_witness(op: str) -> None:
    fields = columns(vector.word_codec(op).name, seed=3)
    fields.pop("op")
    expected = words_of(witness.vector_word(op, fields, COUNT))
    items = rows(fields) if fields else [{}] * COUNT
    same(op, [vector.encode(op, raw=True, **row) for row in items], expected)


def test_every_vector_opcode_has_a_witness() -> None:
    assert {name: code for name, (code, _) in witness.VECTOR_OPCODES.items()} == {
        op.name: op.value for op in generated.VectorOp
    }


@pytest.mark.parametrize("name", [*witness.REGISTERS, *witness.CONTROL])
def test_register_agrees_with_witness(name: str) -> None:
    fields = columns(name, seed=4)
    table = witness.REGISTERS.get(name) or witness.CONTROL[name]
    assert set(fields) == {field for field, _, _ in table[1]}
    same(
        name,
        [registers.encode(name, **row) for row in rows(fields)],
        words_of(witness.register(name, fields)),
    )


def test_register_offsets_agree_with_witness() -> None:
    for name, (offset, _) in witness.REGISTERS.items():
        assert registers.offset(name) == offset, name
    indices = {item.name: int(item) for item in generated.ControlIndex}
    indices |= {f"AD_{item.name}": int(item) for item in generated.AdapterIndex}
    assert indices == {name: index for name, (index, _) in witness.CONTROL.items()}


def test_every_register_with_fields_has_a_witness() -> None:
    whole = {n for n in registers.NAMES if [f.width for f in codec(n).fields.values()] == [64]}
    have = set(witness.REGISTERS) | set(witness.CONTROL) | whole
    assert set(registers.NAMES) - have == {"IL_DBELL1", "IL_DBELL2", "MV_STAT"}


@pytest.mark.parametrize(("name", "field"), BUS)
def test_data_flits_carry_the_payload_unchanged(name: str, field: str) -> None:
    rng = random.Random(5)
    for _ in range(1000):
        value = rng.getrandbits(256)
        assert message.payload(name, **{field: value}) == value


def _swapped(name: str) -> tuple[str, str] | None:
    """Two fields of one width and sign that a wrong table could exchange unnoticed."""
    fields = [f for f in codec(name).fields.values() if not f.reserved and not f.overlay and f.name != "op"]
    for first in fields:
        for second in fields:
            if first.lsb > second.lsb and (first.width, first.signed) == (second.width, second.signed):
                return first.name, second.name
    return None


SWAPPABLE = [name for name in [*sorted(witness.CONTAINERS), "MG_INST"] if _swapped(name)]


@pytest.mark.parametrize("name", SWAPPABLE)
def test_a_swapped_field_is_noticed(name: str) -> None:
    """The comparison above fails when two fields of the table change places."""
    pair = _swapped(name)
    assert pair is not None
    fields = columns(name, seed=9, n=100)
    fields.pop("payload", None)
    fields[pair[0]], fields[pair[1]] = fields[pair[1]], fields[pair[0]]
    got = [codec(name).encode(**row) for row in rows(fields)]
    fields[pair[0]], fields[pair[1]] = fields[pair[1]], fields[pair[0]]
    if name == "MG_INST":
        fields["addr"] = fields.pop("addr_hi") << 34 | fields.pop("addr_lo")
        expected = words_of(witness.cluster(fields))
    else:
        expected = words_of(witness.CONTAINERS[name](fields))
    with pytest.raises(AssertionError, match="xor"):
        same(name, got, expected)


# --- every field of every container -----------------------------------------------------------------------


@pytest.mark.parametrize("name", LAYOUTS)
def test_round_trip_of_every_field(name: str) -> None:
    form, rng = codec(name), random.Random(name)
    for field in form.fields.values():
        values = [field.low, field.high, *(rng.randint(field.low, field.high) for _ in range(20))]
        values += [1 << bit for bit in range(field.width - field.signed)]
        for value in values:
            word = form.encode(**{field.name: value})
            assert form.get(word, field.name) == value
            mask = ((1 << field.width) - 1) << field.lsb
            assert word & ~mask == form.encode() & ~mask, f"{name}.{field.name} = {value} touches other bits"


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_word_survives_decode_and_encode(name: str) -> None:
    form, rng = codec(name), random.Random(name)
    for word in [0, (1 << form.width) - 1, *(rng.getrandbits(form.width) for _ in range(1000))]:
        assert form.encode(**form.decode(word)) == word


@pytest.mark.parametrize("name", LAYOUTS)
def test_out_of_range_names_field_value_and_limit(name: str) -> None:
    form = codec(name)
    for field in form.fields.values():
        for value in (field.low - 1, field.high + 1):
            with pytest.raises(EncodingError) as error:
                form.encode(**{field.name: value})
            text = str(error.value)
            assert f"{name}.{field.name} = {value}" in text
            assert f"{field.low}..{field.high}" in text


def test_refusals_name_what_is_wrong() -> None:
    cases: list[tuple[Callable[[], int], str]] = [
        (lambda: codec("MEM_RD_REQ").encode(adr=0), "no field 'adr'"),
        (lambda: codec("MEM_RD_REQ").encode(addr=cast(Any, 1.5)), "MEM_RD_REQ.addr = 1.5 is not an integer"),
        (lambda: codec("ADDR40").get(1 << 40, "mesh"), "does not fit 40 bits"),
        (lambda: message.payload("MEM_READ"), "no message 'MEM_READ'"),
        (lambda: message.from_words([0] * 4), "5 words"),
        (lambda: cluster.encode("FILLS"), "no cluster instruction 'FILLS'"),
        (lambda: cluster.encode(7), "MG_INST.op = 7"),
        (lambda: cluster.encode("FILL", gm=4), "MG_INST.gm = 4: not used by FILL, only by GEMM"),
        (lambda: cluster.encode("GEMM", dst_x=1), "only if emit = 1"),
        (
            lambda: cluster.encode("FILL", addr=1 << 40),
            f"MG_INST.addr = {1 << 40} is outside 0..{(1 << 40) - 1}",
        ),
        (lambda: cluster.encode("FILL", addr=0, addr_lo=0), "not both"),
        (lambda: cluster.encode("FILL", reserved_141=1), "reserved_141 = 1"),
        (lambda: vector.encode("VXOR"), "no vector opcode 'VXOR'"),
        (lambda: vector.encode("VLD", dtype=5), "VLD.dtype = 5 is reserved; values: FP16 1, FP32 2"),
        (lambda: vector.encode("VSETI", sel=1), "VSETI.sel = 1 is reserved"),
        (lambda: vector.encode("VBAR", reserved_26_0=1), "reserved bits reserved_26_0 = 1"),
        (lambda: vector.encode_envelope("LOAD"), "no envelope instruction 'LOAD'"),
        (lambda: vector.encode_envelope(9), "envelope opcode 9"),
        (lambda: vector.set_base(0, 1 << 40), "VC_DESC.base"),
        (lambda: vector.set_dimension(0, 4, 0, 0), "VC_DESC.dim = 4 is outside 0..3"),
        (lambda: vector.set_dimension(0, 0, 131072, 1), "VC_DESC.stride = 131072 is outside -131072..131071"),
        (lambda: vector.set_dimension(0, 0, 0, 65536), "VC_DESC.bound = 65536 is outside 0..65535"),
        (lambda: registers.encode("PROG", dst_x=1), "no register 'PROG'"),
        (lambda: registers.offset("NODE_STATUS", 256), "NODE_STATUS[256] is outside 0..255"),
        (lambda: registers.offset("CU_CAPS"), "no window offset"),
        (lambda: registers.host_address("CTRL", mesh=4), "mesh = 4"),
        (lambda: address.dram(1 << 36), "ADDR40.local"),
    ]
    for call, text in cases:
        with pytest.raises(EncodingError, match=re.escape(text)):
            call()


# --- examples printed on the pages ------------------------------------------------------------------------


def test_cluster_examples() -> None:
    examples = spec("cluster")["examples"]
    page = (ROOT / "docs/spec/cluster.md").read_text()
    assert len(examples) == 6
    for example in examples:
        fields = cast(dict[str, int], dict(example["fields"]))
        word = cluster.encode(fields.pop("op"), raw=True, **fields)
        assert f"{word:064x}" == example["payload"]
        assert f"| {example['payload']} |" in page
        assert cluster.parse(cluster.disasm(word)) == word
        assert cluster.matches(word, **fields)


def test_vector_payload_examples() -> None:
    page = (ROOT / "docs/spec/vector.md").read_text()
    for example in spec("vector_isa")["examples"]["payloads"]:
        word = int(example["payload"], 16)
        assert len(example["payload"]) == 64
        assert vector.disasm_envelope(word) == example["asm"].replace("_", "")
        kind, fields = vector.decode_envelope(word)
        assert kind is not None
        assert vector.encode_envelope(kind, **fields) == word
        assert vector.matches_envelope(word, kind.name)
    for payload in re.findall(r"^\| (?:IMEM|DESC|RUN) .*\| ([0-9a-f]+) \|$", page, re.MULTILINE):
        assert payload in {example["payload"] for example in spec("vector_isa")["examples"]["payloads"]}
    assert vector.load_word(5, 0x18040220) == int(
        "1028000000000000000000000000000000000000000000000000000018040220", 16
    )
    assert vector.run(20) >> 240 == 0x30A0
    base = vector.set_base(3, 0x80_1234_5680)
    assert f"{base:064x}" == "2601234568000000000000000000000000000000000000100000000000000000"
    dim = vector.set_dimension(7, 3, -64, 5)
    assert f"{dim:064x}" == "2f3ffc0000500000000000000000000000000000000000000000000000000000"


def test_vector_word_examples() -> None:
    for example in spec("vector_isa")["examples"]["words"]:
        word = int(example["word"], 16)
        assert vector.encode(example["op"], **example["fields"]) == word
        op, fields = vector.decode(word)
        assert op.name == example["op"]
        assert vector.encode(op, raw=False, **fields) == word
        assert vector.matches(word, op.name, **example["fields"])
        text = re.sub(r" \(.*\)$", "", example["asm"])
        shown = re.sub(r" \{.*\}$", "", vector.disasm(word))
        assert shown == text


def test_vector_kernel_example() -> None:
    kernel = spec("vector_isa")["examples"]["kernel_add"]
    lines = vector.disasm_words([int(word, 16) for word in kernel["words"]])
    assert lines[:4] == ["VSETI S0", "  .imm 0x00000080", "VSETVL S0", "VSETMODE FLAT"]
    assert lines[8] == "VADD v2, v0, v1"
    assert lines[-1] == "VHALT"
    assert vector.immediate(0x80) == 0x80


def test_adapter_mailbox_examples() -> None:
    page = (ROOT / "docs/spec/memory.md").read_text()
    examples = spec("memory")["adapter"]["mailbox_examples"]
    assert len(examples) == 4
    for example in examples:
        name = "CU_CTRL_RSP" if example["op"] == generated.CTRL_OP_RSP else "CU_CTRL_REQ"
        flit = message.encode(
            name,
            dst=tuple(example["dst"]),
            src=tuple(example["src"]),
            txn=example["txn"],
            op=example["op"],
            index=example["index"],
            value=example["value"],
        )
        words = message.to_words(flit)
        assert [f"{word:016x}" for word in words] == example["words"]
        assert message.from_words(words) == flit
        assert message.classify(flit) == name
        header = f"`0x{words[4] >> 16:04x}_{words[4] & 0xFFFF:04x}`"
        assert header in page, f"{example['meaning']}: the page prints other header bits than {header}"
    caps = examples[3]["value"]
    assert caps == registers.encode("AD_CAPS", kind=2, version=1, l2_bits=18, depth=8192)


def test_mover_examples() -> None:
    copy, quantise = (item["writes"] for item in spec("memory")["mover_examples"])
    page = (ROOT / "docs/spec/memory.md").read_text()
    for example in (copy, quantise):
        for name, text in example:
            value = int(text, 16)
            assert registers.encode(f"MV_{name}", **registers.decode(f"MV_{name}", value)) == value
            printed = "_".join(text[at : at + 4] for at in range(0, 16, 4))
            short = "0x" + re.sub(r"^(0000_)+", "", printed)
            assert value < 4 or f"0x{printed}" in page or short in page
    encode = registers.encode
    assert encode("MV_HDR", walker=1, base=0x20_0000, ndim=1) == int(copy[5][1], 16)
    assert encode("MV_DIM", walker=1, index=0, count=64, stride=32) == int(copy[6][1], 16)
    assert encode("MV_CTRL", mode=0, ewidth=1, coalesce=1, go=1) == int(copy[10][1], 16)
    assert encode("MV_WINDOW", walker=1, axis=1) == int(copy[9][1], 16)
    quantiser = encode("MV_HDR", walker=0, base=0x10_0000, ndim=1, xform_id=1, xform_mode=1)
    assert quantiser == int(quantise[0][1], 16)
    assert encode("MV_HDR", walker=1, base=address.staging(0), ndim=1) == int(quantise[2][1], 16)
    assert encode("MV_CTRL", mode=generated.MoverMode.XFORM, ewidth=1, coalesce=1, go=1) == int(
        quantise[4][1], 16
    )


def test_control_examples_of_the_fabric_page() -> None:
    assert registers.encode("PROG_DST", dst_x=2, dst_y=1) == 0x12
    assert registers.offset("NODE_STATUS", 0x12) == 0x1090
    assert registers.offset("NODE_STATUS", 0x01) == 0x1008
    assert registers.offset("STAGE", 5 * 3 + 4) == 0x2000 + 40 * 3 + 8 * 4
    assert registers.host_address("CTRL", mesh=2) == 0x1002_0000
    assert registers.host_address("CMD", 4) == 0x1020
    assert (registers.find(0x0200), registers.find(0x0850), registers.find(0x2008)) == (
        "MEM_CAPS",
        "MV_GATHER",
        "STAGE[1]",
    )
    assert registers.find(0x1800) is None
    assert registers.find(0x0010, engine=True) == "ENG_CODE"

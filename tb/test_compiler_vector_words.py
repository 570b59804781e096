# SPDX-License-Identifier: Apache-2.0
"""Typed words of vector kernels: bits, text, decoding, static check (docs/spec/compiler.md 9.2 and 9.3)."""

from __future__ import annotations

import numpy as np
import pytest

from kohakubench import witness_packer
from kohakubench.programs import description, spec
from kohakutpu.errors import CompileError, EncodeError, HazardError
from kohakutpu.isa.generated import VC_OPCODES
from kohakutpu.program import Desc, Dims, Image, Pass, Run, UnitProgram, encode, parse, text
from kohakutpu.program.encode import decode_envelope, decode_program
from kohakutpu.program.vector_check import check_image
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
    Imm,
    Loop,
    Seti,
    Setmode,
    Setvl,
    Vbcast,
    Vcvt,
    Vdrain,
    Vfill,
    Vld,
    Vred,
    Vshuf,
    Vst,
    Word,
    decode_word,
    encode_word,
    parse_word,
    word_text,
)

pytestmark = pytest.mark.unit

MACHINE = spec(description(cores=1))
KINDS = 10_000
ARITHMETIC = [name for name, row in VC_OPCODES.items() if row[0] == "ALU"]
LETTERS = {"v": 0, "S": 1, "C": 2, "K": 3}
REDUCTIONS = ["SUM", "MAX", "MIN", "SUMSQ", "DOT", "EXPSUM", "ANY", "ALL"]
WHERE = ["", "set", "clear"]


def arithmetic(rng: np.random.Generator, name: str, n: int) -> tuple[list[Word], dict[str, np.ndarray]]:
    """Random words of one operation, and their fields for the hand-written packer."""
    reads = VC_OPCODES[name][2]
    compare = VC_OPCODES[name][1] == "compare"
    words: list[Word] = []
    rows: list[dict[str, int]] = []
    for _ in range(n):
        letters = {s: "vSKC"[rng.integers(0, 4)] for s in reads}
        numbers = {s: int(rng.integers(0, 4 if letters[s] == "K" else 16)) for s in reads}
        texts = {s: "C" if letters[s] == "C" else f"{letters[s]}{numbers[s]}" for s in reads}
        vd, pr, pm = int(rng.integers(0, 16)), int(rng.integers(0, 4)), int(rng.integers(0, 3))
        idle = LETTERS["K"] if "C" in letters.values() else LETTERS["v"]
        row = {"vd": 0 if compare else vd, "pr": pr, "pm": pm}
        for s in "abc":
            row[f"s{s}"] = LETTERS[letters[s]] if s in reads else idle
            row[f"v{s}"] = numbers[s] if s in reads and letters[s] != "C" else 0
        rows.append(row)
        a, b, c = (texts.get(s, "") for s in "abc")
        words.append(Alu(name, row["vd"], a, b, c, pr, WHERE[pm]))
    return words, {k: np.array([r[k] for r in rows]) for k in rows[0]}


def memory(rng: np.random.Generator, name: str, n: int) -> tuple[list[Word], dict[str, np.ndarray]]:
    f = {
        "vd": rng.integers(0, 16, n),
        "ad": rng.integers(0, 8, n),
        "off": rng.integers(-8192, 8192, n),
        "dtype": rng.integers(1, 3, n),
    }
    kind = Vld if name == "VLD" else Vst
    return [kind(int(v), int(a), int(o), ("FP16", "FP32")[d - 1]) for v, a, o, d in zip(*f.values(), strict=True)], f


def moves(rng: np.random.Generator, name: str, n: int) -> tuple[list[Word], dict[str, np.ndarray]]:
    ad = rng.integers(0, 8, n)
    if name == "VFILL":
        l1 = rng.integers(0, 512, n)
        return [Vfill(int(a), int(w)) for a, w in zip(ad, l1, strict=True)], {"ad": ad, "l1": l1}
    l1 = rng.integers(0, 512, n)
    zero = np.zeros(n, np.int64)
    f = {"mx": zero, "signal": zero, "node": zero, "ad": ad, "dst_x": zero, "dst_y": zero, "buf": zero, "l1": l1}
    return [Vdrain(int(a), int(w)) for a, w in zip(ad, l1, strict=True)], f


def scalars(rng: np.random.Generator, name: str, n: int) -> tuple[list[Word], dict[str, np.ndarray]]:
    a, b, c = (rng.integers(0, 16, n) for _ in range(3))
    match name:
        case "VCVT":
            dtype = rng.integers(1, 3, n)
            words: list[Word] = [
                Vcvt(int(d), int(x), ("FP16", "FP32")[t - 1]) for d, x, t in zip(a, b, dtype, strict=True)
            ]
            return words, {"dtype": dtype, "vd": a, "va": b}
        case "VRED":
            kind, pr = rng.integers(0, 8, n), rng.integers(0, 4, n)
            words = [
                Vred(REDUCTIONS[k], int(s), int(x), int(y), int(p))
                for k, s, x, y, p in zip(kind, a, b, c, pr, strict=True)
            ]
            zero = np.zeros(n, np.int64)
            return words, {"sd": a, "va": b, "vb": c, "kind": kind, "pr": pr, "pm": zero}
        case "VBCAST":
            source = rng.integers(0, 2, n)
            words = [
                Vbcast(f"v{d}", f"S{x}") if s else Vbcast(f"S{d}", f"v{x}")
                for s, d, x in zip(source, a, b, strict=True)
            ]
            return words, {"sa": source, "d": a, "a": b}
        case "VSHUF":
            pr, pm = rng.integers(0, 4, n), rng.integers(0, 3, n)
            words = [
                Vshuf(int(d), int(x), int(k), int(p), WHERE[m]) for d, x, k, p, m in zip(a, b, c, pr, pm, strict=True)
            ]
            return words, {"vd": a, "va": b, "sk": c, "pr": pr, "pm": pm}
        case "VSETVL":
            return [Setvl(int(s)) for s in a], {"sa": a}
        case "VSETMODE":
            mode = rng.integers(0, 4, n)
            return [Setmode(("FLAT", "D2", "D4", "TREE")[m]) for m in mode], {"mode": mode}
        case "VSETI":
            k3 = rng.integers(0, 2, n)
            made: list[Word] = [Seti("K3" if k else f"S{s}") for k, s in zip(k3, a, strict=True)]
            return made, {"sel": 3 * k3, "sd": np.where(k3, 0, a)}
        case "VLOOP":
            body = rng.integers(0, 16, n)
            return [Loop(int(s), int(w)) for s, w in zip(a, body, strict=True)], {"sa": a, "body": body}
    return [Bar() if name == "VBAR" else Halt()] * n, {}


def corpus(name: str, n: int) -> tuple[list[Word], list[int]]:
    """Typed words of one opcode and the packer's words of the same fields."""
    rng = np.random.default_rng([n, *name.encode()])
    form = VC_OPCODES[name][0]
    make = {"ALU": arithmetic, "LDST": memory, "FILL": moves, "DRAIN": moves}.get(form, scalars)
    words, f = make(rng, name, n)
    return words, [int(v) for v in witness_packer.vector_word(name, f, n)[:, 0]]


@pytest.mark.parametrize("name", VC_OPCODES)
def test_words_against_the_witness(name: str) -> None:
    """10,000 random words of every opcode: typed encoder = hand-written packer; decoding is the inverse."""
    words, want = corpus(name, KINDS if VC_OPCODES[name][0] != "NONE" else 1)
    for word, bits in zip(words, want, strict=True):
        assert encode_word(word) == bits, word
        assert decode_word(bits) == word


@pytest.mark.parametrize("name", VC_OPCODES)
def test_word_text(name: str) -> None:
    """Assembly of a word reads back to the word, alone and as a line of a unit program."""
    for word in corpus(name, 100)[0]:
        assert parse_word(word_text(word)) == word
        assert parse(text(Image(7, word))) == Image(7, word)


def test_immediates() -> None:
    """The word behind VSETI has no opcode and a text of its own."""
    for value in (0, 1, 0x80, 0xBFB8AA, 0xFFFFFF):
        assert encode_word(Imm(value)) == value
        assert parse_word(word_text(Imm(value))) == Imm(value)
    with pytest.raises(EncodeError, match="imm"):
        encode_word(Imm(1 << 24))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        (Alu("VADD", 16, "v0", c="v1"), "vd = 16"),
        (Alu("VADD", 0, "v16", c="v1"), "va = 16"),
        (Alu("VADD", 0, "K4", c="v1"), "constant registers are K0..K3"),
        (Alu("VADD", 0, "", c="v1"), "operand ''"),
        (Alu("VADD", 0, "x3", c="v1"), "operand 'x3'"),
        (Alu("VLD", 0, "v0"), "VLD is not an arithmetic operation"),
        (Vld(0, 8), "ad = 8"),
        (Vld(0, 0, 8192), "off = 8192"),
        (Vld(0, 0, -8193), "off = -8193"),
        (Vst(0, 0, 0, "FP8"), "FP8"),
        (Vfill(0, 1 << 14), "l1 = 16384"),
        (Vdrain(0, 512), "l1 = 512"),
        (Seti("K2"), "'K2' is not S with a number"),
        (Vbcast("v1", "v2"), "'v2' is not S with a number"),
        (Loop(0, 16), "body = 16"),
        (Vred("MEAN", 0), "MEAN"),
        (Setmode("D8"), "D8"),
    ],
)
def test_word_refusals(word: Word, message: str) -> None:
    """A value its field cannot hold is refused, never truncated."""
    with pytest.raises(EncodeError, match=message):
        encode_word(word)


@pytest.mark.parametrize(
    "bits",
    [
        encode_word(Vfill(1, 2)) | 1 << 15,
        encode_word(Halt()) | 1,
        encode_word(Setmode("TREE")) | 8 << 13,
        encode_word(Vld(1, 2)) | 7 << 24,
        encode_word(Alu("VMOV", 1, "v2")) | 3 << 1,
        encode_word(Vdrain(1, 2)) | 1 << 24,
        encode_word(Vbcast("v1", "S2")) | 2 << 25,
        encode_word(Alu("VMOV", 1, "v2")) | 5 << 9,
    ],
)
def test_words_nobody_compiles_are_not_decoded(bits: int) -> None:
    with pytest.raises(EncodeError):
        decode_word(bits)


# -- sent words --


def test_envelope_against_the_witness() -> None:
    """10,000 random IMEM, DESC and RUN payloads: typed encoder = hand-written packer; decoding is the inverse."""
    rng = np.random.default_rng(9)
    words, _ = corpus("VFMA", 64)
    pick = rng.integers(0, 64, KINDS)
    place = rng.integers(0, 512, KINDS)
    bits = np.array([encode_word(w) for w in words])[pick]
    made: list = [Image(int(p), words[i]) for p, i in zip(place, pick, strict=True)]
    _agree(made, witness_packer.imem({"addr": place, "word": bits}))
    ad, base = rng.integers(0, 8, KINDS), rng.integers(0, 1 << 40, KINDS)
    zero = np.zeros(KINDS, np.int64)
    low = base & ((1 << 34) - 1)
    f = {"ad": ad, "fld": zero, "value": low, "value_hi": base >> 34}
    _agree([Desc(int(a), int(b)) for a, b in zip(ad, base, strict=True)], witness_packer.desc(f))
    dim = rng.integers(0, 4, KINDS)
    stride, bound = rng.integers(-(1 << 17), 1 << 17, KINDS), rng.integers(0, 1 << 16, KINDS)
    value = (stride & ((1 << 18) - 1)) << 16 | bound
    f = {"ad": ad, "fld": dim + 1, "value": value, "value_hi": zero}
    dims = [Dims(*map(int, row)) for row in zip(ad, dim, stride, bound, strict=True)]
    _agree(dims, witness_packer.desc(f))
    _agree([Run(int(p)) for p in place], witness_packer.run({"pc": place}))


def _agree(made: list, limbs: np.ndarray) -> None:
    for ins, row in zip(made, limbs, strict=True):
        want = sum(int(v) << 64 * i for i, v in enumerate(row))
        assert encode(ins, MACHINE) == want, ins
        assert decode_envelope(want) == ins


@pytest.mark.parametrize(
    ("ins", "message"),
    [
        (Image(512, Halt()), "image word 512; instruction memory has 512 words"),
        (Image(-1, Halt()), "image word -1"),
        (Desc(8, 0), "descriptor A8; there are 8"),
        (Desc(0, 1 << 40), "VC_DESC.base"),
        (Dims(0, 4, 0, 1), "VC_DESC.dim = 4"),
        (Dims(0, 0, 1 << 17, 1), "VC_DESC.stride = 131072"),
        (Dims(0, 0, -(1 << 17) - 1, 1), "VC_DESC.stride"),
        (Dims(0, 0, 0, 1 << 16), "VC_DESC.bound = 65536"),
        (Run(512), "run from word 512"),
    ],
)
def test_envelope_refusals(ins: Image | Desc | Dims | Run, message: str) -> None:
    """The message starts with the instruction."""
    with pytest.raises(EncodeError, match=message) as caught:
        encode(ins, MACHINE)
    assert str(caught.value).startswith(text(ins).split()[0])


def test_program_text_and_decoding() -> None:
    """A whole program prints, parses back, and decodes from its payloads, immediates included."""
    lines: list = [Image(0, Seti("S4")), Image(1, Imm(0xBFB8AA)), Image(2, Setvl(4)), Image(3, Halt())]
    lines += [Desc(1, 0x1000), Dims(1, 0, 32, 8), Run(0)]
    program = UnitProgram("VC", 3, (Pass(tuple(lines)),))
    assert UnitProgram.from_text(program.text()) == program
    assert decode_program([encode(i, MACHINE) for i in program]) == lines
    with pytest.raises(CompileError, match="an image line is"):
        parse("image 3")
    with pytest.raises(EncodeError, match="cannot read vector instruction"):
        parse("image 3 VFOO v1")
    with pytest.raises(EncodeError, match="no core instruction"):
        decode_envelope(9 << 252)


# -- the static check --

OPEN: list[Word] = [Seti("S0"), Imm(128), Setvl(0), Setmode("FLAT")]
ADD = Alu("VADD", 1, "v0", c="K1")
TAIL = Alu("VADD", 1, "C", c="K1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*OPEN, ADD], "runs past its end; close it with VHALT"),
        ([Seti("S0"), Setvl(0), Halt()], "no immediate follows"),
        ([Imm(3), Halt()], "an immediate without VSETI"),
        ([Seti("S0"), Imm(129), Setvl(0), Halt()], "a vector length of 129; it is 1..128"),
        ([Seti("S0"), Imm(0), Setvl(0), Halt()], "a vector length of 0"),
        ([ADD, Halt()], "the mode is whatever the last kernel left"),
        ([*OPEN, TAIL, Halt()], "C at the head of a chain group"),
        ([*OPEN, Setmode("D2"), ADD, Bar(), Halt()], "it stands inside a chain group of 2"),
        ([*OPEN, Setmode("D2"), ADD, ADD, Halt()], "a vector register behind the head"),
        ([*OPEN, Setmode("D4"), ADD, TAIL, TAIL, Halt()], "it stands inside a chain group of 4"),
        ([*OPEN, Setmode("TREE"), ADD, Halt()], "arithmetic in TREE mode"),
        ([*OPEN, Vred("MAX", 1, 0), Halt()], "a reduction in FLAT mode; set TREE around it"),
        (
            [Seti("S0"), Imm(24), Setvl(0), Setmode("TREE"), Vred("SUM", 1), Halt()],
            "a reduction of 24 elements; it takes whole 16s",
        ),
        ([*OPEN, Loop(0, 2), ADD, Loop(0, 1), ADD, Halt()], "it reaches past the loop|a loop inside a loop"),
        ([*OPEN, Loop(0, 1), Seti("S1"), Imm(2), Halt()], "it reaches past the loop that ends at word 6"),
        ([*OPEN, Loop(0, 9), ADD, Halt()], "a body and a count of at least 1"),
        ([Seti("S1"), Imm(0), *OPEN, Loop(1, 1), ADD, Halt()], "a body and a count of at least 1"),
        (
            [*OPEN, Setmode("D2"), Alu("VADD", 1, "v0", c="K1", where="set"), TAIL, Halt()],
            "a predicate inside a chain group",
        ),
        ([*OPEN, Alu("VCMPLT", 0, "v0", "v1", where="set"), Halt()], "a predicated compare"),
        ([*OPEN, Vfill(1, 0), Vld(0, 0, 8), Bar(), Halt()], "no VBAR waited for"),
        ([*OPEN, Vfill(1, 0), Vst(0, 0, 0), Bar(), Halt()], "no VBAR waited for"),
    ],
)
def test_check_refuses(words: list[Word], message: str) -> None:
    """Every rule whose breach faults in the core, or costs its overlap."""
    with pytest.raises(HazardError, match=message):
        check_image(words, MACHINE, [(0, 64)])


def test_check_accepts() -> None:
    """Loops, groups, reductions of any predicate, and loads outside a region still being filled."""
    words: list[Word] = [
        *OPEN,
        Vfill(1, 0),
        Vld(0, 0, 64),
        Bar(),
        Vld(1, 0, 0),
        Loop(0, 2),
        ADD,
        ADD,
        Setmode("D2"),
        ADD,
        Alu("VADD", 1, "C", c="S4", where="clear"),
        Vred("ANY", 1, pr=2),
        Setmode("TREE"),
        Vred("SUM", 1, 1),
        Halt(),
    ]
    check_image(words, MACHINE, [(0, 64)])

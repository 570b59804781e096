# SPDX-License-Identifier: Apache-2.0
"""Typed instructions: words, refusals, text, emission order, hazards (docs/spec/compiler.md 9)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktpu
from kohakubench import witness_packer
from kohakubench.programs import description, device, image, operands, result, spec
from kohakutpu.errors import CompileError, EncodeError, HazardError
from kohakutpu.isa import cluster
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import (
    Drain,
    Fill,
    Gemm,
    Instruction,
    Pass,
    Sweep,
    TileWork,
    UnitProgram,
    check_hazards,
    encode,
    parse,
    text,
    unit_program,
)
from kohakutpu.program.emit import split
from kohakutpu.program.encode import decode

pytestmark = pytest.mark.unit

MACHINE = spec(description())
DEEP = MACHINE.with_(tiles=4096)
KINDS = 10_000
ADDRESS_WORDS = 1 << 35

# -- words --


def columns(kind: str, n: int) -> dict[str, np.ndarray]:
    """Random legal fields of ``n`` instructions of one kind."""
    rng = np.random.default_rng([n, len(kind), ord(kind[0])])
    address = rng.integers(0, ADDRESS_WORDS, n) * 32
    if kind == "fill":
        off = rng.integers(0, 256, n)
        count = 1 + rng.integers(0, 1 << 30, n) % np.minimum(255, 256 - off)
        return {
            "side": rng.integers(0, 2, n),
            "bank": rng.integers(0, 2, n),
            "off": off,
            "n": count,
            "at": address,
        }
    if kind == "drain":
        fuse = rng.integers(0, 2, n)
        return {"n": rng.integers(1, 4097, n), "fuse": fuse, "at": np.where(fuse, 0, address)}
    gm, gn = (np.maximum(1, (2 ** rng.uniform(0, 6, n)).astype(np.int64)) for _ in range(2))
    nk = 1 + rng.integers(0, 1 << 30, n) % (256 // np.maximum(gm, gn))
    emit = rng.integers(0, 2, n)
    return {
        "gm": gm,
        "gn": gn,
        "nk": nk,
        "acc": rng.integers(0, 2, n),
        "abank": rng.integers(0, 2, n),
        "aoff": rng.integers(0, 1 << 30, n) % (257 - gm * nk),
        "bbank": rng.integers(0, 2, n),
        "boff": rng.integers(0, 1 << 30, n) % (257 - gn * nk),
        "emit": emit,
        "at": np.where(emit, address, 0),
        "anchor": rng.integers(0, 256, n),
    }


def typed(kind: str, f: dict[str, np.ndarray]) -> list[Instruction]:
    rows = [dict(zip(f, map(int, row), strict=True)) for row in zip(*f.values(), strict=True)]
    if kind == "fill":
        return [Fill("ab"[r.pop("side")], **r) for r in rows]
    return [Drain(**r) if kind == "drain" else Gemm(**r) for r in rows]


def witnessed(kind: str, f: dict[str, np.ndarray]) -> list[int]:
    """The same instructions by the hand-written packer."""
    n = len(f["at"])
    zero, one = np.zeros(n, np.int64), np.ones(n, np.int64)
    full = dict.fromkeys(WITNESS_FIELDS, zero) | {"nk": one, "anchor": 40 * one, "addr": f["at"]}
    names = {"side": "sel", "bank": "fbank", "off": "eoff", "at": "addr"}
    full |= {names.get(k, k): v for k, v in f.items()}
    full["op"] = {"fill": 1, "gemm": 2, "drain": 3}[kind] * one
    limbs = witness_packer.cluster(full)
    return [sum(int(v) << 64 * i for i, v in enumerate(row)) for row in limbs]


def _witness_fields() -> list[str]:
    import inspect

    return re.findall(r'f\["(\w+)"\]', inspect.getsource(witness_packer.cluster))


WITNESS_FIELDS = _witness_fields()


@pytest.mark.parametrize("kind", ["fill", "gemm", "drain"])
def test_encoder_against_the_witness(kind: str) -> None:
    """10,000 random instructions of a kind: typed encoder = hand-written packer; decoding is the inverse."""
    f = columns(kind, KINDS)
    made = typed(kind, f)
    for ins, want in zip(made, witnessed(kind, f), strict=True):
        word = encode(ins, DEEP)
        assert word == want, text(ins)
        assert decode(word) == ins
        assert cluster.matches(word)


def test_decode_refuses_what_it_cannot_say() -> None:
    """A word with another operation, or with fields no typed instruction has."""
    word = encode(Drain(4, 64), MACHINE)
    for other in (word | 1 << 62, word | 1 << 111, 5 << 252, encode(Gemm(1, 1, 1, 0), MACHINE) | 1 << 115):
        with pytest.raises(EncodeError):
            decode(other)


FILL = Fill("a", 0, 0, 1, 0)
GEMM = Gemm(1, 1, 1, 0)
DRAIN = Drain(1)
TOP = (1 << 40) - 32

# object, last accepted change, first refused change, words of the message
BOUNDARIES = [
    (FILL, {"n": 255}, {"n": 256}, "n = 256; a FILL loads 1..255"),
    (FILL, {"n": 1}, {"n": 0}, "n = 0"),
    (FILL, {"off": 255}, {"off": 256}, "entries 256..256 leave the bank"),
    (FILL, {"off": 1, "n": 255}, {"off": 2, "n": 255}, "entries 2..256 leave the bank of 256"),
    (FILL, {"off": 0}, {"off": -1}, "leave the bank"),
    (FILL, {"bank": 1}, {"bank": 2}, "exceed the 512 entries"),
    (FILL, {"at": TOP}, {"at": TOP + 32}, "addr"),
    (FILL, {"at": 32}, {"at": 33}, "not a multiple of 32"),
    (FILL, {"at": 0}, {"at": -32}, "addr"),
    (FILL, {"side": "b"}, {"side": "c"}, "sides are a and b"),
    (GEMM, {"gm": 255}, {"gm": 257}, "leave the bank"),
    (GEMM, {"gm": 16, "nk": 16}, {"gm": 16, "nk": 17}, "gemm side a: entries 0..271 leave"),
    (GEMM, {"gn": 16, "nk": 16}, {"gn": 17, "nk": 16}, "gemm side b: entries 0..271 leave"),
    (GEMM, {"aoff": 255}, {"aoff": 256}, "gemm side a"),
    (GEMM, {"boff": 254, "gn": 2}, {"boff": 255, "gn": 2}, "gemm side b"),
    (GEMM, {"gm": 16, "gn": 32}, {"gm": 27, "gn": 19}, "gm\\*gn = 513 exceeds the 512"),
    (GEMM, {"gm": 1}, {"gm": 0}, "at least 1"),
    (GEMM, {"gn": 1}, {"gn": 0}, "at least 1"),
    (GEMM, {"nk": 1}, {"nk": 0}, "at least 1"),
    (GEMM, {"acc": 1}, {"acc": 2}, "acc = 2"),
    (GEMM, {"emit": 1, "at": TOP}, {"emit": 1, "at": TOP + 32}, "addr"),
    (GEMM, {"emit": 1, "at": 32}, {"emit": 0, "at": 32}, "without emit"),
    (GEMM, {"emit": 1}, {"emit": 2}, "emit = 2"),
    (GEMM, {"anchor": 255}, {"anchor": 256}, "anchor"),
    (GEMM, {"abank": 1}, {"abank": 2}, "side a"),
    (DRAIN, {"n": 512}, {"n": 513}, "n = 513; a DRAIN reads 1..512"),
    (DRAIN, {"n": 1}, {"n": 0}, "n = 0"),
    (DRAIN, {"at": TOP}, {"at": TOP + 32}, "addr"),
    (DRAIN, {"at": 64}, {"at": 65}, "not a multiple of 32"),
    (DRAIN, {"fuse": 1}, {"fuse": 2}, "fuse = 2"),
    (DRAIN, {"fuse": 0, "at": 32}, {"fuse": 1, "at": 32}, "with fuse"),
]


@pytest.mark.parametrize("row", BOUNDARIES, ids=lambda r: f"{type(r[0]).__name__}-{r[2]}")
def test_refusals_at_their_boundary(row: tuple[Instruction, dict, dict, str]) -> None:
    """The first illegal value raises and names the instruction, the last legal one survives a round trip."""
    ins, last, first, message = row
    legal = replace(ins, **last)
    assert decode(encode(legal, MACHINE)) == legal
    bad = replace(ins, **first)
    with pytest.raises(EncodeError, match=message) as caught:
        encode(bad, MACHINE)
    assert text(bad) in str(caught.value)


def test_refusals_of_a_small_cluster() -> None:
    """L1 of 128 entries has one bank: whatever reaches past it is refused, not wrapped."""
    small = MACHINE.with_(l1_a=128, l1_b=64)
    encode(Fill("a", 0, 64, 64, 0), small)
    encode(Fill("b", 0, 32, 32, 0), small)
    for bad in (
        Fill("a", 0, 65, 64, 0),
        Fill("b", 0, 33, 32, 0),
        Fill("a", 1, 0, 1, 0),
        Gemm(1, 1, 1, 0, bbank=1),
    ):
        with pytest.raises(EncodeError, match="exceed the"):
            encode(bad, small)


def test_double_pumped_cluster() -> None:
    double = MACHINE.with_(k_per_issue=2)
    for nk in (1, 2, 4):
        encode(Gemm(1, 1, nk, 0), double)
    with pytest.raises(EncodeError, match="nk = 3 is odd"):
        encode(Gemm(1, 1, 3, 0), double)


# -- text --

byte = st.integers(0, 255)
flag = st.integers(0, 1)
where = st.integers(0, ADDRESS_WORDS - 1).map(lambda w: 32 * w)
instructions = st.one_of(
    st.builds(Fill, st.sampled_from("ab"), flag, byte, byte, where),
    st.builds(Gemm, byte, byte, byte, flag, flag, byte, flag, byte, flag, where, byte),
    st.builds(Drain, st.integers(0, 4096), where, flag),
)
unit_programs = st.builds(
    UnitProgram,
    st.sampled_from(["MG", "VC"]),
    st.integers(0, 99),
    st.lists(st.lists(instructions, max_size=6).map(lambda p: Pass(tuple(p))), max_size=4).map(tuple),
)


@settings(max_examples=100, deadline=None)
@given(unit_programs)
def test_text_round_trip(program: UnitProgram) -> None:
    """The printed program parses back to the same instructions, and each line to its own."""
    assert UnitProgram.from_text(program.text()) == program
    assert all(parse(text(i)) == i for i in program)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fil side=a", "'fil' is unknown; known: fill, gemm, drain"),
        ("fill side=a bank=0 off=0 n=1", "at"),
        ("drain n=1 m=2", "'m=2' is not a field of drain"),
        ("drain n", "'n' is not a field"),
        ("drain n=x", "'x' is not a number"),
        ("", "operation '' is unknown"),
        ("drain n=1 n=2", "n is given twice"),
    ],
)
def test_text_refusals(line: str, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        parse(line)


@pytest.mark.parametrize(
    "source", ["", "pass 0", "unit MGx", "unit MG0\n  drain n=1", "unit MG0\npass 0\n  drain"]
)
def test_program_text_refusals(source: str) -> None:
    with pytest.raises(CompileError):
        UnitProgram.from_text(source)


# -- emission --


def emitted(compiled: ktpu.Compiled) -> list[Instruction]:
    return [i for band in compiled.programs for unit in band for i in unit]


def letters(program: list[Instruction]) -> str:
    """``F F G`` and the like; an emitting GEMM is E, a fused DRAIN is d."""
    out = []
    for i in program:
        name = type(i).__name__[0]
        out.append("E" if name == "G" and i.emit else "d" if name == "D" and i.fuse else name)
    return "".join(out)


ORDERS = list(itertools.product([1, 2, 5], [1, 2, 3]))


def make(tiles: int, chunks: int, machine: MachineSpec, fuse: bool, by_column: bool = False) -> ktpu.Compiled:
    rows, cols = (8, 8 * tiles) if by_column else (8 * tiles, 8)
    return ktpu.compile(
        ktpu.matmul(*operands(rows, cols, 32 * chunks), gm=2, gn=2, nk=1), machine, emit_fuse=fuse
    )


@pytest.mark.parametrize(("tiles", "chunks"), ORDERS)
def test_order_o3(tiles: int, chunks: int) -> None:
    """The order of 9.1, both forms, written out from the page."""
    inner = "FFG" * (chunks - 1)
    fused = ordinary = ""
    for t in range(tiles):
        fused += inner + "FF" + ("d" if t else "") + "E"
        ordinary += ("FFDG" if t else "FFG") + "FFG" * (chunks - 1)
    for fuse, want in ((True, fused + "d"), (False, ordinary + "D")):
        # columns reuse A where it still stands in L1, rows reuse B: the rest is the page's order
        for by_column in (False, True):
            got = letters(emitted(make(tiles, chunks, MACHINE, fuse, by_column)))
            assert got.replace("F", "") == want.replace("F", "")
        assert letters(emitted(make(1, chunks, MACHINE, fuse))) == (
            "FFG" * (chunks - 1) + ("FFEd" if fuse else "FFGD")
        )
    distinct = Sweep(2, 2, 1, tuple(_work(t, chunks) for t in range(tiles)), emit_fuse=True)
    whole = unit_program("MG", 0, distinct, MACHINE, 128)
    assert letters(list(whole)) == fused + "d"
    whole = unit_program("MG", 0, replace(distinct, emit_fuse=False), MACHINE, 128)
    assert letters(list(whole)) == ordinary + "D"


def _work(t: int, chunks: int) -> TileWork:
    """A tile that shares no operand with another."""
    base = 4096 * (t + 1)
    return TileWork(
        tuple(base + 256 * s for s in range(chunks)),
        tuple(base + 2048 + 256 * s for s in range(chunks)),
        1 << 20 | base,
    )


@pytest.mark.parametrize(("tiles", "chunks"), ORDERS)
def test_every_form_gives_the_same_memory(tiles: int, chunks: int) -> None:
    """Emitted or drained, one or four in flight, rows or columns: whole memory identical on the model."""
    for by_column in (False, True):
        images = set()
        for fuse, inflight in itertools.product([True, False], [1, 4]):
            body = description(max_inflight={"MG": inflight})
            compiled = make(tiles, chunks, spec(body), fuse, by_column)
            dev = device(body)
            done = dev.run(compiled.artifact)
            assert not done.failed, done.problems()
            assert result(dev, compiled).any()
            images.add(image(dev, compiled))
        assert len(images) == 1


TAGS = [
    (gm, gn, nk, chunks, rows)
    for gm, gn, nk in itertools.product([1, 4, 16], [2, 8, 32], [1, 4, 8])
    for chunks, rows in ((1, 1), (2, 3), (5, 2))
    if gm * gn <= 512 and max(gm, gn) * nk <= 256
]


def test_tags_are_apart_whenever_they_fit() -> None:
    """Several in flight: tags of A and B fills are disjoint if the regions of a bank fit side by side."""
    machine = MACHINE.with_(max_inflight={"MG": 4, "VC": 1})
    fitted = met = 0
    for gm, gn, nk, chunks, rows in TAGS:
        a, b = operands(4 * gm * rows, 4 * gn * 2, 32 * nk * chunks)
        compiled = ktpu.compile(ktpu.matmul(a, b, gm=gm, gn=gn, nk=nk), machine)
        (band,) = compiled.schedule.bands
        slots = -(-chunks // 2) if band.resident and chunks > 1 else 1
        fills = [i for i in emitted(compiled) if isinstance(i, Fill)]
        tags = {
            side: {t for f in fills if f.side == side for t in range(f.off, f.off + f.n)} for side in "ab"
        }
        if gm * nk + slots * gn * nk <= 256:
            fitted += 1
            assert not tags["a"] & tags["b"], (gm, gn, nk, chunks)
        else:
            met += 1
        assert min(tags["a"]) == 0
        assert max(tags["b"]) == 255
    assert fitted > 20
    assert met > 0


def test_tags_start_at_zero_one_by_one() -> None:
    """With one in flight both sides start at offset 0."""
    program = emitted(make(2, 2, MACHINE, True))
    assert {i.off for i in program if isinstance(i, Fill) and i.side == "a"} == {0}
    assert min(i.off for i in program if isinstance(i, Fill) and i.side == "b") == 0


def test_fills_are_split_equally() -> None:
    """A chunk of 256 entries goes out as two FILLs; none exceeds the limit, none is lost."""
    assert split(256, 255) == [(0, 128), (128, 128)]
    for entries in range(1, 600):
        parts = split(entries, 255)
        assert parts[0][0] == 0
        assert all(n <= 255 for _, n in parts)
        assert [lo + n for lo, n in parts] == [*(lo for lo, _ in parts[1:]), entries]
        assert len(parts) == -(-entries // 255)


def test_resident_operand_is_filled_once_a_column() -> None:
    """B fits: its chunks are loaded once per column band, A every time."""
    a, b = operands(32, 16, 128)
    compiled = ktpu.compile(ktpu.matmul(a, b, gm=2, gn=2, nk=1), MACHINE)
    (band,) = compiled.schedule.bands
    assert band.resident == ("b",)
    fills = [i for i in emitted(compiled) if isinstance(i, Fill)]
    assert sum(f.side == "b" for f in fills) == 2 * band.chunks
    assert sum(f.side == "a" for f in fills) == 2 * 4 * band.chunks
    assert "resident=b double=a" in compiled.schedule.text()


def test_operand_that_does_not_fit_is_not_resident() -> None:
    a, b = operands(16, 128, 32 * 17)
    compiled = ktpu.compile(ktpu.matmul(a, b, gm=2, gn=32, nk=1), MACHINE)
    assert compiled.schedule.bands[0].resident == ()
    shorter = ktpu.compile(ktpu.matmul(a[:, :512], b[:, :512], gm=2, gn=32, nk=1), MACHINE)
    assert shorter.schedule.bands[0].resident == ("b",)


def test_every_emitted_program_survives_both_forms() -> None:
    """Decode and re-encode, print and parse: the same words."""
    for m, n, k in ((64, 64, 64), (300, 77, 100), (5, 7, 33)):
        compiled = ktpu.compile(ktpu.matmul(*operands(m, n, k)), MACHINE)
        for unit in compiled.programs[0]:
            assert UnitProgram.from_text(unit.text()) == unit
        words = [encode(i, MACHINE) for i in emitted(compiled)]
        assert tuple(words) == compiled.artifact.payloads
        assert [encode(decode(w), MACHINE) for w in words] == words
        assert [cluster.parse(cluster.disasm(w)) for w in words] == words


@pytest.mark.parametrize("budget", [1, 2, 7, 20, 128])
def test_passes_keep_to_the_budget(budget: int) -> None:
    """No pass exceeds the budget; a long tile is cut into windows, with the same instructions in order."""
    sweep = Sweep(2, 2, 1, tuple(_work(t, 4) for t in range(5)))
    whole = list(unit_program("MG", 0, sweep, MACHINE, 128))
    cut = unit_program("MG", 0, sweep, MACHINE, budget)
    assert all(1 <= len(p) <= budget for p in cut.passes)
    if budget < 13:
        one = list(unit_program("MG", 0, replace(sweep, tiles=sweep.tiles[:1]), MACHINE, 128))
        assert list(cut)[: len(one)] == one
    assert [i.at for i in cut if isinstance(i, Gemm) and i.emit] == [
        i.at for i in whole if isinstance(i, Gemm) and i.emit
    ]


def test_tiles_of_unequal_depth() -> None:
    with pytest.raises(CompileError, match=r"unit MG3: tiles with \[1, 2\] chunks"):
        unit_program("MG", 3, Sweep(1, 1, 1, (_work(0, 1), _work(1, 2))), MACHINE, 128)


# -- hazards --


def seeded(change: Callable[[list[Instruction]], None]) -> list[Instruction]:
    program = list(unit_program("MG", 0, Sweep(4, 4, 2, (_work(0, 3), _work(1, 3))), MACHINE, 128))
    check_hazards(program)
    change(program)
    return program


def test_fill_of_the_bank_in_use_is_caught() -> None:
    """Every FILL but those of a first step, moved into the bank the GEMM before it reads."""
    caught = 0
    clean = seeded(lambda p: None)
    for at, ins in enumerate(clean):
        gemm = next((i for i in reversed(clean[:at]) if isinstance(i, Gemm | Drain)), None)
        if not isinstance(ins, Fill) or not isinstance(gemm, Gemm):
            continue
        bank = gemm.abank if ins.side == "a" else gemm.bbank

        def move(p: list[Instruction], at: int = at, ins: Fill = ins, bank: int = bank) -> None:
            p[at] = replace(ins, bank=bank)

        with pytest.raises(HazardError, match=re.escape(text(replace(ins, bank=bank)))):
            check_hazards(seeded(move))
        caught += 1
    assert caught >= 8


def test_hazard_is_about_entries() -> None:
    """One entry of overlap is caught, the neighbour is not; a DRAIN or another GEMM ends it."""
    gemm = Gemm(2, 3, 4, 0, abank=0, aoff=10, bbank=1, boff=20)
    for side, bank, first, last in (("a", 0, 10, 17), ("b", 1, 20, 31)):
        for off, bad in ((first - 1, False), (first, True), (last, True), (last + 1, False)):
            program = [gemm, Fill(side, bank, off, 1, 0)]
            if bad:
                with pytest.raises(HazardError, match=f"entries {off}..{off} of side {side}, bank {bank}"):
                    check_hazards(program)
            else:
                check_hazards(program)
        inside = Fill(side, bank, first, 1, 0)
        check_hazards([gemm, Fill(side, 1 - bank, first, 1, 0)])
        check_hazards([gemm, Drain(6), inside])
        check_hazards([gemm, replace(gemm, aoff=100, boff=100), inside])
        with pytest.raises(HazardError):
            check_hazards([Fill("a", 0, 10, 1, 0), gemm, Fill("a", 1, 10, 8, 0), inside])

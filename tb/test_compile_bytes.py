# SPDX-License-Identifier: Apache-2.0
"""A vector program in columns is the program one instruction at a time: words, text, cycles, refusals
(docs/spec/compiler.md 9).
"""

from __future__ import annotations

import gc
import random
from dataclasses import replace

import numpy as np
import pytest

import ktpu
from kohakubench.programs import description, spec
from kohakutpu.chain import ChainBuilder
from kohakutpu.cost import price
from kohakutpu.cost.profile import Profile
from kohakutpu.errors import CompileError, EncodeError
from kohakutpu.isa import EncodingError, vector
from kohakutpu.program import (
    Desc,
    Image,
    Instruction,
    LaneWork,
    Pass,
    Run,
    Store,
    Stream,
    UnitProgram,
    Walk,
    assemble,
    build_image,
    encode,
    shortened,
    vector_program,
)
from kohakutpu.program.columns import Columns, joined
from kohakutpu.program.cost import Core, at_most
from kohakutpu.program.encode import encode_all
from kohakutpu.program.vector import descriptors
from kohakutpu.program.vector_words import Halt, Imm, Seti

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("running", [True, False])
def test_the_collector_is_as_before(running: bool) -> None:
    """After a program and after a refusal."""
    was = gc.isenabled()
    try:
        (gc.enable if running else gc.disable)()
        half = np.ones((16, 32), np.float16)
        ktpu.compile(ktpu.matmul(half, half), ktpu.machine("mm_mesh"))
        assert gc.isenabled() == running
        with pytest.raises(CompileError):
            ktpu.compile(ktpu.matmul(half, half), ktpu.machine("mm_mesh"), fuse="often")
        assert gc.isenabled() == running
    finally:
        (gc.enable if was else gc.disable)()

MACHINE = spec(description(cores=4))
PROFILE = Profile("test", fill=4, control=1, walk=1, barrier=False)
WORDS = 16
HIGHEST = (1 << 40) - 32


def addresses(rng: random.Random, runs: int) -> list[list[int]]:
    """Bases of two walks, each often that of the run before; the ends of the address range are among them."""
    out = [[0, HIGHEST]]
    while len(out) < runs:
        out.append([rng.choice([old, 32 * rng.randrange(1 << 35), 1 << 39]) for old in out[-1]])
    return out


def work(rng: random.Random, runs: int, *, moving: bool = False, short: bool = False) -> LaneWork:
    """A sum of two operands; the first one is in L1 and moves, or both addresses change."""
    b = ChainBuilder()
    chain = b.chain([b.op("add", b.operand(0), b.operand(1 if moving else 0))])
    steps, walk = (0, 8), Walk.run(WORDS, 32)
    streams = [Stream("x", 0, WORDS, steps, walk)]
    shifts = tuple(rng.randrange(WORDS) for _ in range(runs)) if moving else ()
    if moving:
        streams.insert(0, Stream("tile", WORDS, 2 * WORDS, steps, None, moves=True))
    store = Store("y", 3 * WORDS, WORDS, steps, walk)
    less = (Walk.run(WORDS // 2, 32),) * 2 if short else ()
    bases = tuple(map(tuple, addresses(rng, runs)))
    return LaneWork(chain, 128, tuple(streams), (store,), bases, shifts=shifts, short=less)


def one_at_a_time(job: LaneWork) -> list[Instruction]:
    """The program of docs/spec/compiler.md 9.4, a RUN after another."""
    out: list[Instruction] = [Image(i, w) for i, w in enumerate(build_image(job, MACHINE))]
    out += descriptors(job, MACHINE)
    written: dict[int, int] = {}
    for number, bases in enumerate(job.runs):
        wanted = dict(enumerate(bases, 1))
        if job.moving:
            wanted = {0: job.shifts[number]} | dict(enumerate(bases, 2))
        for ad, at in wanted.items():
            if written.get(ad) != at:
                out.append(Desc(ad, at))
        written = wanted
        if number == len(job.runs) - 1:
            out += shortened(job, MACHINE)
        out.append(Run(0))
    return out


def listed(program: UnitProgram) -> UnitProgram:
    """The same program with nothing in columns."""
    return replace(program, passes=tuple(Pass(tuple(p.instructions)) for p in program.passes))


@pytest.mark.parametrize("seed", range(12))
def test_program(seed: int) -> None:
    """Every level below sees the instructions of the loop, however the program is cut."""
    rng = random.Random(seed)
    job = work(rng, rng.choice([1, 2, 40]), moving=seed % 2 == 1, short=seed % 3 == 0)
    wanted = one_at_a_time(job)
    for budget in (1, 7, 128):
        program = vector_program(3, job, MACHINE, budget)
        plain = UnitProgram(
            "VC", 3, tuple(Pass(tuple(wanted[i : i + budget])) for i in range(0, len(wanted), budget))
        )
        assert all(isinstance(p.instructions, Columns) for p in program.passes)
        assert program == plain == listed(program)
        assert hash(program) == hash(plain)
        assert program.text() == plain.text()
        assert UnitProgram.from_text(program.text()) == program
        assert price.program(program, MACHINE, PROFILE) == price.program(plain, MACHINE, PROFILE)
        (made,), (expected,) = assemble([program], MACHINE), assemble([plain], MACHINE)
        assert made == expected
        assert [w for p in made.programs for w in p.payloads] == [encode(ins, MACHINE) for ins in wanted]
        assert all(type(w) is int for p in made.programs for w in p.payloads)


def test_addresses_as_an_array() -> None:
    """Addresses of the RUNs may be an array or tuples."""
    job = work(random.Random(1), 30)
    as_array = replace(job, runs=np.array(job.runs))
    assert vector_program(0, as_array, MACHINE, 9) == vector_program(0, job, MACHINE, 9)
    for runs, message in (
        (np.array([[0, 64], [32, 48]]), "y: run 1 starts at 0x30; a walk starts at a multiple of 32 bytes"),
        (np.array([[0, 64, 96]]), "run 0: 3 addresses for 2 fills and drains"),
        (np.zeros((0, 2), dtype=np.int64), "unit VC5: no run; deal it an instance or leave it out"),
    ):
        for given in (runs, tuple(map(tuple, runs.tolist()))):
            with pytest.raises(CompileError, match=message):
                vector_program(5, replace(job, runs=given), MACHINE, 9)


def columns(numbers: list[int], bases: list[list[int]]) -> Columns:
    """RUNs with two images in front, the last one of an immediate."""
    runs = Columns.runs(numbers, np.array(bases))
    return runs.insert(0, [Image(0, Seti("S0")), Image(1, Imm(128))]).insert(0, [Image(2, Halt())])


def test_sequence() -> None:
    """Columns are a sequence like any other."""
    c = columns([1, 4], [[0, 32], [0, 64], [96, 64]])
    plain = [
        *(Image(2, Halt()), Image(0, Seti("S0")), Image(1, Imm(128))),
        *(Desc(1, 0), Desc(4, 32), Run(0), Desc(4, 64), Run(0), Desc(1, 96), Run(0)),
    ]
    assert list(c) == plain
    assert len(c) == len(plain)
    assert c == plain
    assert tuple(plain) == c
    assert c != plain[:-1]
    assert c != 5
    assert [c[i] for i in range(-10, 10)] == plain + plain
    assert c[2:9:3] == plain[2:9:3]
    assert isinstance(c[2:9:3], Columns)
    assert c.insert(9, [Desc(2, 1), Halt()])[8:] == [plain[8], Desc(2, 1), Halt(), plain[9]]
    assert [s.repeated for s in (c, c[3:], c[2:4])] == [False, True, False]
    with pytest.raises(IndexError):
        c[10]


def test_joined() -> None:
    """Slices of one program are columns again; anything else is a list."""
    c = columns([1], [[0], [32]])
    parts = [c[:2], c[2:5], c[5:]]
    assert joined(parts) == c
    assert isinstance(joined(parts), Columns)
    assert joined([*parts, [Run(3)]]) == [*c, Run(3)]
    other = columns([1], [[64]]).insert(0, [Image(7, Halt())])
    assert joined([c, other]) == [*c, *other]
    assert joined([]) == []


def test_cycles_follow_the_memory() -> None:
    """A RUN costs what its kernel takes where it stands, in columns as in a list."""
    slow, fast = [Image(0, Seti("S0")), Image(1, Imm(1)), Image(2, Halt())], [Image(0, Halt())]
    run = Columns.runs([1], np.array([[0], [32], [64]]))
    c = run.insert(4, fast).insert(2, slow)
    assert at_most(c, MACHINE) == at_most(list(c), MACHINE)
    halves = Core(), Core()
    for part in (c[:6], c[6:8], c[8:]):
        assert at_most(part, MACHINE, halves[0]) == at_most(list(part), MACHINE, halves[1])
    assert at_most(c, MACHINE) == 3 + len(slow) + len(fast) + 0 + (6 + 6) + 6


# -- refusals --


@pytest.mark.parametrize("at", [-32, -1, 1 << 40, 1 << 62, 1 << 70, -(1 << 70)])
def test_refused_base(at: int) -> None:
    """The message names the first instruction that is refused, whatever the size of the number."""
    job = work(random.Random(2), 6)
    runs = [*job.runs[:3], (at - at % 32, 64), (1 << 41, 1 << 42), *job.runs[3:]]
    program = vector_program(0, replace(job, runs=tuple(runs)), MACHINE, 128)
    with pytest.raises(EncodeError) as alone:
        encode(Desc(1, at - at % 32), MACHINE)
    with pytest.raises(EncodeError) as whole:
        assemble([program], MACHINE)
    assert str(whole.value) == str(alone.value)
    assert f"VC_DESC.base = {at - at % 32} is outside 0..{(1 << 40) - 1} (40 bits)" in str(whole.value)


def test_refused_others() -> None:
    """Descriptors, image words and starts of kernels out of range; the first one is named."""
    good = columns([1, 2], [[0, 32], [64, 96]])
    few = replace(MACHINE, vc_desc=2)
    high = replace(good, at=np.where(good.ad == -1, MACHINE.vc_imem, good.at))
    for c, machine, first in (
        (good, few, Desc(2, 32)),
        (columns([1, 9], [[0, 32]]), MACHINE, Desc(9, 32)),
        (good.insert(5, [Image(MACHINE.vc_imem, Halt())]), MACHINE, Image(MACHINE.vc_imem, Halt())),
        (high, MACHINE, Run(MACHINE.vc_imem)),
        (high.insert(3, [Image(-1, Halt())]), MACHINE, Image(-1, Halt())),
    ):
        with pytest.raises(EncodeError) as alone:
            encode(first, machine)
        with pytest.raises(EncodeError) as whole:
            encode_all(c, machine)
        assert str(whole.value) == str(alone.value)


def test_bases_together() -> None:
    """Words of many bases are the words of each, and none is out of range."""
    rng = np.random.default_rng(5)
    ads = rng.integers(0, 8, 2000)
    bases = rng.integers(0, 1 << 40, 2000)
    bases[:3] = 0, (1 << 40) - 1, 1 << 34
    assert vector.set_bases(ads, bases) == [
        vector.set_base(a, b) for a, b in zip(ads.tolist(), bases.tolist(), strict=True)
    ]
    assert vector.set_bases(ads[:0], bases[:0]) == []
    for a, b in ((8, 0), (-1, 0), (0, -1), (0, 1 << 40)):
        with pytest.raises(EncodingError, match=r"VC_DESC\.\w+ = -?\d+ is outside"):
            vector.set_bases(np.append(ads, a), np.append(bases, b))

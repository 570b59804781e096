# SPDX-License-Identifier: Apache-2.0
"""Vector work to images, descriptors and runs: words, registers, every resource refusal (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from kohakubench.chains import evaluate, random_chain
from kohakubench.programs import description, spec
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.errors import CompileError, EncodeError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.vector import PlainLink, VectorUnit
from kohakutpu.program import (
    Desc,
    Dims,
    Image,
    LaneWork,
    Run,
    Store,
    Stream,
    UnitProgram,
    Walk,
    assemble,
    build_image,
    encode,
    run_cost,
    vector_program,
)
from kohakutpu.program.cost import kernel_at_most
from kohakutpu.program.vector_words import Alu, Halt, Seti, Setmode, Vbcast, Vdrain, Vld, Vred, Vst, word_text
from kohakutpu.schedule import Elementwise, Operand
from kohakutpu.schedule.lanes import LaneOptions, flat_band, work_of

pytestmark = pytest.mark.unit

MACHINE = spec(description(cores=4))
IN, OUT = 0x1_0000, 0x8_0000
STEP = 8


def silu() -> Chain:
    b = ChainBuilder()
    x = b.operand(0)
    expo = b.op("exp2", b.op("mul", x, b.const(-1.4426950408889634)))
    return b.chain([b.op("mul", x, b.op("recip", b.op("add", expo, b.const(1.0))))])


def flat(chain: Chain, steps: int, runs: int = 1, *, vl: int = 128, **options: int) -> LaneWork:
    """Work on contiguous operands, the layout every elementwise pass has."""
    words = steps * -(-vl // 16)
    offsets = tuple(-(-vl // 16) * s for s in range(steps))
    walk = Walk.run(words, 32)
    streams = tuple(Stream(f"x{k}", k * words, words, offsets, walk) for k in range(chain.operands))
    first = chain.operands * words
    stores = tuple(Store(f"y{k}", first + k * words, words, offsets, walk) for k in range(len(chain.results)))
    at = [IN + k * 0x1_0000 for k in range(chain.operands)] + [OUT + k * 0x1_0000 for k in range(len(stores))]
    bases = tuple(tuple(a + 32 * words * r for a in at) for r in range(runs))
    return LaneWork(chain, vl, streams, stores, bases, **options)


def run_alone(work: LaneWork, operands: list[np.ndarray], machine: MachineSpec = MACHINE) -> list[np.ndarray]:
    """Execute the program of ``work`` on one core; FP16 bits of every result, rows in whole chunks."""
    link = PlainLink(pos=(1, 0))
    for k, x in enumerate(operands):
        link.image.write(IN + k * 0x1_0000, np.ascontiguousarray(x).view(np.uint8).reshape(-1))
    core = VectorUnit(link)
    for ins in vector_program(0, work, machine, 128):
        done = core.execute(encode(ins, machine), last=False)
        assert not done.fault, (ins, hex(done.result))
    size, row = 32 * work.stores[0].words * len(work.runs), 16 * -(-work.vl // 16)
    return [link.image.read(OUT + k * 0x1_0000, size).view(np.uint16).reshape(-1, row) for k in range(len(work.stores))]


def values(rng: np.random.Generator, rows: int, vl: int = 128) -> np.ndarray:
    return rng.standard_normal((rows, vl)).astype(np.float16).view(np.uint16)


# -- the image --


def test_canonical_image() -> None:
    """VL, constants, VSETVL, mode, fills, barrier, steps, drain, halt: word for word."""
    image = build_image(flat(silu(), 1), MACHINE)
    assert [word_text(w) for w in image] == [
        "VSETI S0",
        ".imm 0x00000080",
        "VSETI S4",
        ".imm 0x00bfb8aa",
        "VSETVL S0",
        "VSETMODE FLAT",
        "VFILL A1, L1 0",
        "VBAR",
        "VLD.FP16 v0, A0",
        "VMUL v7, v0, S4",
        "VEXP2 v7, v7",
        "VADD v7, v7, K1",
        "VINV v7, v7",
        "VMUL v7, v0, v7",
        "VST.FP16 v7, A0+8",
        "VDRAIN A2, L1 8",
        "VHALT",
    ]


def test_descriptors_and_runs() -> None:
    """Memory descriptors write all four dimensions; a later RUN writes only the bases that moved."""
    program = list(vector_program(0, flat(silu(), 4, runs=3), MACHINE, 128))
    tail = [i for i in program if not isinstance(i, Image)]
    assert tail[:2] == [Desc(0, 0), Dims(0, 0, 1, 8)]
    assert tail[2:6] == [Dims(1, 0, 32, 32), *(Dims(1, d, 0, 1) for d in (1, 2, 3))]
    assert tail[10:] == [
        Desc(1, IN), Desc(2, OUT), Run(0),
        Desc(1, IN + 1024), Desc(2, OUT + 1024), Run(0),
        Desc(1, IN + 2048), Desc(2, OUT + 2048), Run(0),
    ]  # fmt: skip
    work = flat(silu(), 4, runs=2)
    same = replace(work, runs=((IN, OUT), (IN, OUT + 1024)))
    assert list(vector_program(0, same, MACHINE, 128))[-2:] == [Desc(2, OUT + 1024), Run(0)]


def test_steady_operand_is_loaded_once() -> None:
    """An operand every step reads at the same place is loaded ahead of the steps."""
    b = ChainBuilder()
    work = flat(b.chain([b.op("mul", b.operand(0), b.operand(1))]), 4)
    row = replace(work.streams[1], words=8, offsets=(0,) * 4, fill=Walk.run(8, 32))
    image = build_image(replace(work, streams=(work.streams[0], row)), MACHINE)
    loads = [w for w in image if isinstance(w, Vld)]
    assert len(loads) == 5
    assert loads[0].off == row.l1


def test_lifted_values_and_running_result() -> None:
    """A value read twice gets a register of its own; a linear chain runs through v7, v8 stays free."""
    b = ChainBuilder()
    x = b.operand(0)
    t = b.op("add", x, b.const(0.5))
    work = flat(b.chain([b.op("mul", b.op("exp2", t), t)]), 1)
    alu = [w for w in build_image(work, MACHINE) if isinstance(w, Alu)]
    assert [word_text(w) for w in alu] == ["VADD v1, v0, S4", "VEXP2 v7, v1", "VMUL v7, v7, v1"]


def test_reductions_stand_in_tree_mode() -> None:
    """TREE around every reduction and FLAT behind it; the scalar result is read as an operand."""
    b = ChainBuilder()
    x = b.operand(0)
    work = flat(b.chain([b.op("sub", x, b.op("row_max", x))]), 2, vl=64, interleave=1)
    image = build_image(work, MACHINE)
    shown = [word_text(w) for w in image if isinstance(w, Setmode | Vred | Alu)]
    step = ["VSETMODE TREE", "VRED.MAX S1, v0", "VSETMODE FLAT", "VSUB v7, v0, S1"]
    assert shown == ["VSETMODE FLAT", *step, *step]
    together = build_image(replace(work, interleave=2), MACHINE)
    assert sum(isinstance(w, Setmode) for w in together) == 3


def test_constants() -> None:
    """0, 1 and -1 are K registers, others scalar registers once each, whatever slot they stand in."""
    b = ChainBuilder()
    x = b.operand(0)
    y = b.op("fma", x, b.const(0.25), b.const(1.0))
    y = b.op("sub", b.const(0.25), b.op("maximum", y, b.const(0.0)))
    image = build_image(flat(b.chain([b.op("mul", y, b.const(-1.0))]), 1), MACHINE)
    assert sum(isinstance(w, Seti) for w in image) == 2
    shown = [word_text(w) for w in image if isinstance(w, Alu)]
    assert shown == ["VFMA v7, v0, S4, K1", "VMAX v7, v7, K0", "VSUB v7, S4, v7", "VMUL v7, v7, K2"]


def test_machine_without_scalar_slots() -> None:
    """The compatibility profile: a constant in another slot is an error, a reduced row is broadcast first."""
    narrow = MACHINE.with_(vc_const_sources=frozenset({"aK", "bS", "bK", "cK"}))
    b = ChainBuilder()
    with pytest.raises(EncodeError, match="add reads S4 in slot c; this machine takes constants in aK, bK, bS, cK"):
        build_image(flat(b.chain([b.op("add", b.operand(0), b.const(0.3))]), 1), narrow)
    b = ChainBuilder()
    x = b.operand(0)
    chosen = b.chain([b.op("where", b.op("less", x, b.const(0.0)), b.const(0.3), x)])
    with pytest.raises(EncodeError, match="where reads S4 in slot a; this machine takes constants in aK, bK, bS, cK"):
        build_image(flat(chosen, 1), narrow)
    b = ChainBuilder()
    x = b.operand(0)
    chain = b.chain([b.op("sub", x, b.op("row_max", x))])
    image = build_image(flat(chain, 1), narrow)
    assert any(isinstance(w, Vbcast) for w in image)
    assert not any(isinstance(w, Vbcast) for w in build_image(flat(chain, 1), MACHINE))
    rows = values(np.random.default_rng(1), 1)
    (a,), (c,) = run_alone(flat(chain, 1), [rows], narrow), run_alone(flat(chain, 1), [rows])
    assert np.array_equal(a, c)


def test_where_by_compare_and_by_value() -> None:
    """A compare lowers to two predicated moves, a value to VSEL."""
    b = ChainBuilder()
    x, y = b.operand(0), b.operand(1)
    chain = b.chain([b.op("where", b.op("less", x, y), y, b.const(0.0)), b.op("where", x, y, x)])
    shown = [word_text(w) for w in build_image(flat(chain, 1), MACHINE) if isinstance(w, Alu)]
    assert shown == ["VCMPLT P0, v0, v1", "VMOV v2, v1 where P0", "VMOV v2, K0 where not P0", "VSEL v7, v1, v0, v0"]


def test_chain_groups() -> None:
    """Groups of 2 and 4 hold what leads from one word to the next; the mode changes once for alternating steps."""
    for group, groups in ((2, 2), (4, 1)):
        image = build_image(flat(silu(), 4, group=group), MACHINE)
        modes = [w.mode for w in image if isinstance(w, Setmode)]
        assert modes == ["FLAT", f"D{group}", "FLAT"]
        heads = sum(isinstance(w, Alu) and "C" not in w.reads.values() for w in image)
        assert heads == 4 * (groups + 1)


# -- execution --


@pytest.mark.parametrize("interleave", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("group", [1, 2, 4])
def test_choices_change_no_bit(interleave: int, group: int) -> None:
    """Alternating steps and chain groups give the bits of the whole-array evaluation."""
    x = values(np.random.default_rng(7), 10)
    work = flat(silu(), 5, runs=2, interleave=interleave, group=group)
    (got,) = run_alone(work, [x])
    assert np.array_equal(got, evaluate(silu(), [x], x.shape)[0])


def random_case(seed: int) -> None:
    """A random chain, operand count, row width and choice of words; every bit compared."""
    rng = random.Random(seed)
    folds = rng.random() < 0.4
    vl = rng.choice([16, 48, 64, 128]) if folds else rng.choice([1, 15, 16, 17, 100, 127, 128])
    operands = rng.randint(1, 4)
    chain = random_chain(rng, operands, rng.randint(1, 7), folds=folds)
    steps = rng.randint(1, 5)
    work = flat(chain, steps, 2, vl=vl, interleave=rng.choice([0, 0, 1]), group=rng.choice([1, 1, 2, 4]))
    refusal = None
    try:
        build_image(work, MACHINE)
    except CompileError as err:
        refusal = str(err)
    if refusal is not None:
        assert "registers" in refusal
        return
    data = np.random.default_rng(seed)
    padded = 16 * -(-vl // 16)
    rows = [values(data, 2 * steps, padded) for _ in range(operands)]
    whole = replace(work, vl=vl)
    got = run_alone(whole, rows)
    want = evaluate(chain, [r[:, :vl] for r in rows], (2 * steps, vl))
    for g, w in zip(got, want, strict=True):
        assert np.array_equal(g[:, :vl], w), (seed, chain.text())


@pytest.mark.parametrize("seed", range(60))
def test_random_chains(seed: int) -> None:
    random_case(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 3000))
def test_random_chains_long(seed: int) -> None:
    random_case(seed)


def test_dirty_descriptors() -> None:
    """Two runs of different kernels back to back, every descriptor field dirtied between them: same results."""
    x = values(np.random.default_rng(3), 4)
    b = ChainBuilder()
    other = b.chain([b.op("add", b.op("mul", b.operand(0), b.operand(1)), b.operand(2))])
    link = PlainLink(pos=(1, 0))
    for k in range(3):
        link.image.write(IN + k * 0x1_0000, x.view(np.uint8).reshape(-1))
    core = VectorUnit(link)
    results = []
    for work in (flat(silu(), 4), flat(other, 4), flat(silu(), 4)):
        for ad in range(8):
            for dirty in (Desc(ad, 0x77_7760), *(Dims(ad, d, -96 * (d + 1), 5 + d) for d in range(4))):
                assert not core.execute(encode(dirty, MACHINE), last=False).fault
        for ins in vector_program(0, work, MACHINE, 128):
            assert not core.execute(encode(ins, MACHINE), last=False).fault
        results.append(link.image.read(OUT, 1024).view(np.uint16).reshape(-1, 128).copy())
    assert np.array_equal(results[0], evaluate(silu(), [x], x.shape)[0])
    assert np.array_equal(results[1], evaluate(other, [x] * 3, x.shape)[0])
    assert np.array_equal(results[2], results[0])


def test_wider_storage() -> None:
    """FP32 operands and results take two words a chunk."""
    offsets = (0, 16)
    walk = Walk.run(32, 32)
    work = LaneWork(
        silu(),
        128,
        (Stream("x", 0, 32, offsets, walk, "FP32"),),
        (Store("y", 32, 16, (0, 8), Walk.run(16, 32)),),
        ((IN, OUT),),
    )
    link = PlainLink(pos=(1, 0))
    x = np.random.default_rng(0).standard_normal(256).astype(np.float16)
    link.image.write(IN, x.astype("<f4").view(np.uint8))
    core = VectorUnit(link)
    for ins in vector_program(0, work, MACHINE, 128):
        assert not core.execute(encode(ins, MACHINE), last=False).fault
    want = evaluate(silu(), [x.view(np.uint16).reshape(2, 128)], (2, 128))[0]
    assert np.array_equal(link.image.read(OUT, 512).view(np.uint16).reshape(2, 128), want)


# -- cut into passes --


def test_passes_and_text() -> None:
    """No pass above the budget, nothing lost, and the printed program parses back to equal payloads."""
    work = flat(silu(), 8, runs=3)
    for budget in (1, 7, 128):
        program = vector_program(2, work, MACHINE, budget)
        assert max(len(p) for p in program.passes) <= budget
        assert list(program) == list(vector_program(2, work, MACHINE, 128))
        again = UnitProgram.from_text(program.text())
        assert again == program
        assert assemble([again], MACHINE) == assemble([program], MACHINE)


def test_modelled_cycles() -> None:
    """Section 14.2: a payload 1, issued words 1, other words one a chunk, VHALT included."""
    before = 17 + 2 + 8
    run = 2 + 1 + 1 + 1 + 1 + 7 * 8 + 1 + 8
    assert run_cost(flat(silu(), 1), MACHINE) == (before, run)


def test_cycles_at_most() -> None:
    """What the artifact states of a program: column Bound of docs/spec/vector.md 16.2 at 8 chunks and ALAT = 18."""
    (words,) = assemble([vector_program(0, flat(silu(), 1), MACHINE, 128)], MACHINE)
    before = 17 + 2 + 8 + 2
    empty = 5 * (18 + 1) + 1
    setup = 6 + 6 + 6 + (4 + empty) + (3 * 256 + 10) + 6
    step = (4 * 8 + 5 + empty) + 5 * (8 + 18 + 3) + (3 * 8 + 5 + empty)
    assert sum(p.cycles for p in words.programs) == before + setup + step + (5 * 256 + 8) + 6
    reduction = dict(enumerate([Setmode("TREE"), Vred("SUM", 1, 0), Halt()]))
    assert kernel_at_most(reduction, 0, MACHINE) == (4 + empty) + (2 * 8 + 9 * 19 + 10 + empty) + 6


# -- refusals --


def chain_of(operands: int, lifted: int = 0, constants: int = 0) -> Chain:
    """A sum of ``operands`` operands, with ``lifted`` values kept for later and ``constants`` constants."""
    b = ChainBuilder()
    y = b.operand(0)
    for i in range(1, operands):
        y = b.op("add", y, b.operand(i))
    for i in range(constants):
        y = b.op("mul", y, b.const(1.5 + i))
    kept = [y]
    for _ in range(lifted):
        kept.append(b.op("exp2", kept[-1]))
    for k in kept[1:]:
        y = b.op("mul", y, k)
    for k in kept[1:]:
        y = b.op("add", y, k)
    return b.chain([y])


def shifted(work: LaneWork, **changes: object) -> LaneWork:
    """The work with its first stream changed."""
    return replace(work, streams=(replace(work.streams[0], **changes), *work.streams[1:]))


ONE = flat(silu(), 4)
REFUSED = [
    (replace(ONE, vl=0), "a step of 0 elements; a core works on 1..128"),
    (replace(ONE, vl=129), "a step of 129 elements"),
    (flat(chain_of(8), 1), r"8 operands \(x0, .*x7\); a band reads at most 7"),
    (flat(chain_of(7), 1), "7 fills and 1 drains need 9 address descriptors with the 1 for L1; the core has 8"),
    (replace(ONE, group=3), "chain groups of 3 words; the core has groups of 1, 2 and 4"),
    (replace(ONE, interleave=-1), "interleave = -1"),
    (shifted(ONE, fill=Walk(((32, 2),) * 5)), "x0: a walk of 5 dimensions; a descriptor has 4"),
    (shifted(ONE, fill=Walk(((32, 257),))), "x0: a walk of 257 words; a fill or drain moves 1..256"),
    (shifted(ONE, fill=Walk(((48, 32),))), "x0: a stride of 48 bytes; strides are multiples of 32"),
    (shifted(ONE, fill=Walk(((1 << 17, 32),))), "x0: a stride of 131072 bytes"),
    (shifted(ONE, fill=Walk(((32, 0),))), "x0: a walk of 0 words"),
    (shifted(ONE, fill=Walk.run(33, 32)), "x0: 33 words are moved, its region holds 32"),
    (shifted(ONE, offsets=(0, 8, 16, 32)), "x0: a step reaches word 40 of a region of 32 words"),
    (shifted(ONE, l1=8), "x0 ends at L1 word 40, y0 starts at 32"),
    (shifted(ONE, offsets=(0, 8, 16)), "x0: 3 steps, y0 has 4"),
    (replace(ONE, runs=((IN, OUT, 0),)), "run 0: 3 addresses for 2 fills and drains"),
    (replace(ONE, runs=((IN, OUT), (IN + 16, OUT))), "x0: run 1 starts at 0x10010"),
    (flat(silu(), 33), "x0: a walk of 264 words"),
    (flat(chain_of(3), 17), "544 L1 words are needed; the core has 512, use fewer steps"),
    (flat(chain_of(1, lifted=14), 1), "need .* vector registers; 14 are free; store an intermediate result"),
    (flat(chain_of(1, constants=13), 1), "13 constants; a kernel keeps 12 in scalar registers"),
    (replace(ONE, runs=()), "unit VC0: no run"),
]


@pytest.mark.parametrize(("work", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_refusals(work: LaneWork, message: str) -> None:
    """Every limit of a core is refused with the object, the value, the limit and the fix."""
    with pytest.raises(CompileError, match=message):
        vector_program(0, work, MACHINE, 128)


def test_limits_are_accepted() -> None:
    """One below each limit compiles."""
    for work in (
        flat(chain_of(6), 1),
        flat(chain_of(3), 16),
        flat(silu(), 32),
        flat(chain_of(1, constants=12), 1),
        flat(chain_of(1, lifted=5), 1),
    ):
        assert isinstance(build_image(work, MACHINE)[-1], Halt)


def test_image_is_too_long() -> None:
    long = flat(chain_of(1, constants=12), 32)
    with pytest.raises(CompileError, match=r"a kernel of \d+ words; instruction memory holds 448, use fewer steps"):
        build_image(long, MACHINE.with_(vc_imem=448))
    assert len(build_image(long, MACHINE)) <= 512


def test_forbidden_footprints() -> None:
    """A machine with a closed interval of footprints: refused inside, accepted at both sides."""
    machine = MACHINE.with_(vc_l1_forbidden=(321, 511))
    for steps in (21, 31):
        with pytest.raises(CompileError, match=rf"an L1 footprint of {16 * steps} words lies in 321..511"):
            build_image(flat(silu(), steps), machine)
    for steps in (20, 32):
        build_image(flat(silu(), steps), machine)


def test_comparisons_only_decide() -> None:
    b = ChainBuilder()
    x = b.operand(0)
    for chain in (
        b.chain([b.op("add", b.op("less", x, b.const(0.0)), x)]),
        b.chain([b.op("greater", x, b.const(0.0))]),
        b.chain([b.op("where", x, b.op("equal", x, b.const(0.0)), x)]),
    ):
        with pytest.raises(CompileError, match=r"only decides a where, write where\(c, 1, 0\)"):
            build_image(flat(chain, 1), MACHINE)
    five = x
    for k in range(5):
        five = b.op("where", b.op("less", x, b.const(float(k))), five, x)
    with pytest.raises(CompileError, match="5 comparisons of 1 steps exceed the 4 predicate registers"):
        build_image(flat(b.chain([five]), 1), MACHINE)


def test_other_chain_refusals() -> None:
    b = ChainBuilder()
    x = b.operand(0)
    with pytest.raises(CompileError, match="row_sum of a constant row; reduce it on the host"):
        build_image(flat(b.chain([b.op("add", x, b.op("row_sum", b.const(2.0)))]), 1), MACHINE)
    with pytest.raises(CompileError, match="y0 is a constant; fill it on the host"):
        build_image(replace(flat(silu(), 1), chain=b.chain([b.const(2.0)]), streams=(), runs=((OUT,),)), MACHINE)
    with pytest.raises(CompileError, match="rows of 24 elements are reduced; a row has a multiple of 16"):
        build_image(flat(b.chain([b.op("row_max", x)]), 1, vl=24), MACHINE)
    with pytest.raises(CompileError, match="a constant is not a number"):
        build_image(flat(b.chain([b.op("add", x, b.const(float("nan")))]), 1), MACHINE)
    with pytest.raises(CompileError, match=r"interleave = 4: .* lower it, or 0 to let it fit"):
        build_image(flat(chain_of(3, lifted=4), 4, interleave=4), MACHINE)
    other = replace(silu(), nodes=tuple(replace(n, index=1) if n.op == "operand" else n for n in silu().nodes))
    with pytest.raises(CompileError, match=r"the chain reads operands \[1\], 1 are given"):
        build_image(replace(flat(silu(), 1), chain=other), MACHINE)


def test_stored_operand_and_two_results() -> None:
    """An operand can be a result; two results drain from regions of their own."""
    b = ChainBuilder()
    x, y = b.operand(0), b.operand(1)
    chain = b.chain([x, b.op("add", x, y)])
    rows = [values(np.random.default_rng(k), 3) for k in range(2)]
    got = run_alone(flat(chain, 3), rows)
    assert np.array_equal(got[0], rows[0])
    assert np.array_equal(got[1], evaluate(chain, rows, (3, 128))[1])
    assert sum(isinstance(w, Vdrain) for w in build_image(flat(chain, 3), MACHINE)) == 2
    assert sum(isinstance(w, Vst) for w in build_image(flat(chain, 3), MACHINE)) == 6


def test_band_is_covered_and_priced() -> None:
    """A planned band becomes work whose image holds every step it promises."""
    e = Elementwise(silu(), (Operand("x", "in", (1, 5000)),), (Operand("y", "out", (1, 5000)),))
    band = flat_band(e, -(-5000 // 16), MACHINE, 1, LaneOptions())
    assert band.words >= -(-5000 // 16)
    assert len(band.offsets) * band.steps * STEP == band.words
    image = build_image(work_of(band, ((IN, OUT),)), MACHINE)
    assert sum(isinstance(w, Vst) for w in image) == band.steps

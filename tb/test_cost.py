# SPDX-License-Identifier: Apache-2.0
"""Timed model: published figures, two routes to one number, barriers, limiters (docs/spec/compiler.md 14.2)."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

import ktpu
from kohakubench.chains import random_chain
from kohakubench.programs import description, spec
from kohakudriver import Device
from kohakutpu import cost as model
from kohakutpu.cost import DEFAULT, REF, BandCost, Profile, Spent, executed, price
from kohakutpu.cost.barrier import Traffic, handed_on
from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.kernels import Trace, library
from kohakutpu.machine_spec import MachineSpec, MeshSpec
from kohakutpu.model.transport import ModelTransport
from kohakutpu.program import Desc, Dims, Drain, Fill, Gemm, Image, Run, UnitProgram, assemble
from kohakutpu.program.moves import Move
from kohakutpu.program.vector_words import Alu, Halt, Imm, Loop, Seti, Setvl, Vfill
from kohakutpu.schedule import Elementwise, LaneOptions, Operand, Schedule, emit, plan
from kohakutpu.tensor import Call
from kohakutpu.views import Window
from kohakutpu.walks import contiguous
from ktpu import explain_call
from ktpu.disassembly import explain
from ktpu.explain import buffer_lives, run_steps

pytestmark = pytest.mark.unit

CHECK = MachineSpec(
    "check",
    (
        MeshSpec(
            {"MG": tuple((x, 2) for x in range(1, 7)), "VC": tuple((x, 3) for x in range(1, 5))}, ((0, 1),), (1, 1)
        ),
    ),
)
"""The machine of the published figures: 6 clusters of 512 MAC a cycle, 4 vector cores, one memory port."""

M, N, K = 256, 1280, 1280


def normal(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@cache
def product(gn: int) -> ktpu.Compiled:
    return ktpu.compile(ktpu.matmul(normal(M, K), normal(N, K), gm=8, gn=gn, nk=2), CHECK)


# -- published figures --


@pytest.mark.parametrize(
    ("gn", "cycles", "payloads"), [(8, 418_176, 19_520), (4, 551_264, 39_040), (2, 825_184, 78_080)]
)
def test_published_products(gn: int, cycles: int, payloads: int) -> None:
    """Section 0 of the kernel specification: matmul 256x1280 @ 1280, cycles and cluster payloads."""
    found = ktpu.cost(product(gn), profile="ref")
    assert (found.high, found.payloads) == (cycles, payloads)
    assert product(gn).artifact.meta["counters"]["payloads"] == payloads
    assert (found.profile, found.tag) == ("ref", "model")


def test_published_linear_add() -> None:
    """454,016 = 418,176 of the product and 35,840 of the pass: 20,480 beats of lanes and 15,360 words moved, a core."""
    call = ktpu.linear_add(normal(M, K), normal(N, K), normal(M, N), gm=8, gn=8, nk=2)
    compiled = ktpu.compile(call, CHECK)
    found = ktpu.cost(compiled, profile="ref")
    assert found.high == 454_016
    assert found.computing == 454_016
    assert [b.high for b in found.bands] == [418_176, 35_840]
    lanes = found.bands[1].busiest
    assert (lanes.lanes, lanes.walk, lanes.control) == (20_480, 15_360, 0)


def test_published_attention_products() -> None:
    """The products of flash attention, 4 heads 256x256: 39,424 cycles.

    That is what the published totals of 4 and 20 heads leave for them: v + g = 198,144 and 5 v + 54/11 g = 987,136,
    because 64 tiles take 11 turns on 6 clusters and 320 take 54.
    """
    g = (5 * 198_144 - 987_136) * 11 // (5 * 11 - 54)
    shape = {"batch": "4", "Lq": "256", "Lkv": "256", "Dk": "64", "Dv": "64"}
    call = explain_call.build(explain_call.find("flash_attention"), shape, {"gm": 8, "gn": 8, "nk": 2})
    found = ktpu.cost(ktpu.compile(call, CHECK), "ref")
    assert sum(b.high for b in found.engine("MG")) == g == 39_424
    assert found.computing == g + sum(b.high for b in found.engine("VC") if b.role != "relayout")


@pytest.mark.parametrize("heads", [4, 10, 20])
@pytest.mark.parametrize("rows", [64, 256])
def test_heads_cost_what_the_wide_products_cost(heads: int, rows: int) -> None:
    """Row 20 of the operator table: cycles and payloads 1.00x, split before the product or joined in its sweep."""
    wide, tiles = 64 * heads, {"gm": 8, "gn": 8, "nk": 2}
    x, w, o = normal(rows, wide), normal(wide, wide), normal(heads * rows, 64)
    pairs = [
        (ktpu.call(library.project_heads, x, library.heads_of(w, heads), **tiles), ktpu.matmul(x, w, **tiles)),
        (
            ktpu.call(library.attn_out(heads), o, w, x, normal(wide), **tiles),
            ktpu.call(library.linear(bias=True, add=True), x, w, normal(wide), x, **tiles),
        ),
    ]
    for by_heads, joined in pairs:
        mine, other = (ktpu.cost(ktpu.compile(call, CHECK), "ref") for call in (by_heads, joined))
        assert (mine.high, mine.payloads) == (other.high, other.payloads)


def test_profiles_differ_as_stated() -> None:
    """Profile "ref" doubles the fills of a cluster and knows no barrier; sweeps and drains are the same."""
    (ref,), (default,) = ktpu.cost(product(8), "ref").bands, ktpu.cost(product(8)).bands
    a, b = ref.busiest, default.busiest
    assert (a.mac, a.drain, a.fill) == (b.mac, b.drain, 2 * b.fill)
    assert ref.barrier == 0


def test_unknown_profile() -> None:
    with pytest.raises(ValueError, match="cost profile 'fast' is unknown; there are default, ref"):
        ktpu.cost(product(8), profile="fast")


# -- two routes --


def both(program: UnitProgram, machine: MachineSpec, *profiles: Profile) -> None:
    """Priced as typed instructions and counted while its payloads execute: every part equal."""
    (unit,) = assemble([program], machine)
    words = [w for p in unit.programs for w in p.payloads]
    for profile in profiles or (DEFAULT, REF):
        assert price.program(program, machine, profile) == executed.payloads(program.engine, words, machine, profile)


def planned(e: Elementwise, machine: MachineSpec, cores: int, options: LaneOptions) -> Schedule | None:
    """The schedule of a pass, None if its chain needs more registers than there are."""
    try:
        return plan([e], machine, cores=cores, lanes=options)
    except CompileError as err:
        if "register" not in str(err):
            raise
        return None


@pytest.mark.parametrize("block", range(20))
def test_vector_programs_agree(block: int) -> None:
    """Ten random elementwise and row kernels a block: analytic and executed cycles agree exactly."""
    rng = random.Random(block)
    machine = spec(description(cores=4))
    compared = 0
    while compared < 10:
        folds = rng.random() < 0.5
        operands = rng.randint(1, 4)
        chain = random_chain(rng, operands, rng.randint(1, 7), folds=folds)
        rows, columns = rng.randint(1, 30), 16 * rng.randint(1, 8)
        channel = [k > 0 and rng.random() < 0.3 for k in range(operands)]
        e = Elementwise(
            chain,
            tuple(Operand(f"x{k}", "in", (1 if c else rows, columns)) for k, c in enumerate(channel)),
            (Operand("y", "out", (rows, columns)),),
        )
        schedule = planned(e, machine, rng.randint(1, 4), LaneOptions(rng.choice([0, 0, 1]), rng.choice([1, 1, 2, 4])))
        if schedule is None:
            continue
        for program in emit(schedule, machine)[0]:
            both(program, machine, REF if compared == 9 else DEFAULT)
        compared += 1


@pytest.mark.parametrize("seed", range(12))
def test_cluster_programs_agree(seed: int) -> None:
    """Random products: the same for FILL, GEMM and DRAIN, whatever stays resident."""
    rng = random.Random(seed)
    machine = spec(description(rng.randint(1, 4), features=("emit_fuse",) if rng.random() < 0.5 else ()))
    m, n, k = rng.randint(1, 120), rng.randint(1, 120), rng.randint(1, 400)
    compiled = ktpu.compile(ktpu.matmul(normal(m, k), normal(n, k)), machine)
    for program in compiled.programs[0]:
        both(program, machine)


def test_loops_agree() -> None:
    """A kernel with a hardware loop: four turns of two words at three vector lengths."""
    for vl in (16, 100, 128):
        body = [Alu("VMUL", 1, "v0", "v0"), Alu("VADD", 2, "v1", "", "v1")]
        words = [Seti("S0"), Imm(vl), Setvl(0), Seti("S1"), Imm(4), Loop(1, 2), *body, Halt()]
        program = UnitProgram("VC", 0).from_text(
            "\n".join(["unit VC0", "pass 0", *map(_line, enumerate(words)), "run"])
        )
        both(program, CHECK)
        beats = -(-vl // 16)
        spent = price.program(program, CHECK, DEFAULT)
        assert spent.lanes == beats * (1 + 4 * 2)
        assert spent.control == len(words) + 3 + beats


def _line(entry: tuple[int, object]) -> str:
    from kohakutpu.program import text

    return text(Image(*entry))  # type: ignore[arg-type]


def test_whole_artifact_agrees() -> None:
    """The payloads a node is sent in all rounds cost what the bands of its unit do, a fused epilogue included."""
    machine = spec(description(2, cores=4))
    call = ktpu.linear_silu(normal(16, 64), normal(64, 64), gm=4, gn=4, nk=2)
    compiled = ktpu.compile(call, machine, fuse="require")
    sent: dict[tuple[int, int], list[int]] = {}
    for r in compiled.artifact.rounds():
        for kick in (s for s in r.steps if hasattr(s, "base")):
            sent.setdefault((kick.x, kick.y), []).extend(r.payloads[kick.base : kick.base + kick.n])
    found = ktpu.cost(compiled)
    seen = 0
    for band in found.bands:
        for unit, spent in band.units.items():
            words = sent[machine.units(band.engine)[unit]]
            assert executed.payloads(band.engine, words, machine, DEFAULT) == spent
            seen += len(words)
    assert seen == found.payloads == compiled.artifact.meta["counters"]["payloads"]


def test_faulting_kernel_has_no_cost() -> None:
    (unit,) = assemble([UnitProgram.from_text("unit VC0\npass 0\nrun")], CHECK)
    words = [w for p in unit.programs for w in p.payloads]
    with pytest.raises(ValueError, match="payload 0 ends in fault"):
        executed.payloads("VC", words, CHECK, DEFAULT)
    with pytest.raises(ValueError, match="a unit of type DM has no cost model; there are MG and VC"):
        executed.payloads("DM", words, CHECK, DEFAULT)


# -- parts of a price --


def test_hidden_fills() -> None:
    """A fill hides behind the sweep before it, as far as the sweep is long; the first fills never do."""
    gemm = Gemm(8, 8, 2, 0)
    short = [Fill("a", 0, 0, 16, 0), Fill("b", 0, 0, 16, 0), gemm, Fill("a", 1, 0, 16, 0), Drain(64)]
    spent = price.program(short, CHECK, DEFAULT)
    assert (spent.mac, spent.fill, spent.drain, spent.hidden) == (128, 192, 64, 64)
    assert (spent.low, spent.high) == (320, 384)
    long = [gemm, Fill("a", 1, 0, 20, 0), Fill("b", 1, 0, 30, 0), gemm, Fill("a", 1, 0, 1, 0)]
    assert price.program(long, CHECK, DEFAULT).hidden == 128 + 4


def test_statements_fill_both_sides() -> None:
    """Under "ref" a sweep costs the fills of both sides, though L1 holds one of them; what moves is what is emitted."""
    first, second = Gemm(8, 4, 2, 0), Gemm(8, 4, 2, 1)
    kept = [Fill("a", 0, 0, 16, 0), Fill("b", 0, 0, 8, 0), first, Fill("a", 1, 0, 16, 0), second]
    ref, default = price.program(kept, CHECK, REF), price.program(kept, CHECK, DEFAULT)
    assert (ref.fill, ref.hidden) == (2 * 8 * 24, 64)
    assert (default.fill, default.hidden) == (4 * 40, 64)
    assert ref.words == default.words == 160
    assert ref.payloads == default.payloads == 5


def test_double_pumped_sweeps() -> None:
    """An odd nk costs a whole issue: nk' = up(nk, k_per_issue)."""
    pumped = CHECK.with_(k_per_issue=2, macs_per_cycle=1024)
    assert price.program([Gemm(8, 8, 2, 0)], pumped, DEFAULT).mac == 64
    assert price.program([Gemm(8, 8, 1, 0)], pumped, DEFAULT).mac == 64
    assert price.program([Gemm(1, 1, 1, 0)], CHECK, DEFAULT).mac == 1


def test_walks_count_words_of_all_dimensions() -> None:
    """A fill of 3 x 5 x 7 words: 105 words at the ports, priced only under "ref"."""
    program = [Image(0, Vfill(1, 0)), Image(1, Halt())]
    program += [Desc(1, 0), *(Dims(1, d, 32, n) for d, n in enumerate((3, 5, 7, 0)))]
    spent = price.program([*program, Run(0)], CHECK, REF)
    assert (spent.words, spent.walk, spent.control) == (105, 105, 0)
    default = price.program([*program, Run(0)], CHECK, DEFAULT)
    assert (default.words, default.walk, default.control) == (105, 0, 2 + 5 + 1 + 8)


def test_moves_are_bands() -> None:
    """What the mover does before a band stands in front of it, with words read and written, at least 16."""
    machine = spec(description(2, cores=2, features=("emit_fuse", "xform_granule")))
    x, up, down = normal(32, 64), normal(128, 64), normal(32, 128)
    compiled = ktpu.compile(mlp(x, up, down), machine)
    found = ktpu.cost(compiled)
    movers = found.engine("MV")
    assert [b.role for b in movers] == ["quantise"]
    assert movers[0].limiter == "mover"
    assert movers[0].busiest.moved == sum(m.cycles for m in compiled.moves[movers[0].number])
    assert found.bands.index(movers[0]) == movers[0].number
    assert found.computing == found.high - movers[0].high
    tiny = price.moves([Move("copy", contiguous(0, 2), contiguous(4096, 2))])
    assert (tiny.moved, tiny.words) == (16, 4)


def test_relayouts_are_bands() -> None:
    """Without the transpose in the mover a core reorders the hidden rows: priced by the table in both profiles."""
    machine = spec(description(2, cores=2))
    compiled = ktpu.compile(mlp(normal(32, 64), normal(128, 64), normal(32, 128)), machine)
    for band in compiled.programs:
        for program in band:
            both(program, machine)
    by_role = {}
    for profile in ("default", "ref"):
        found = ktpu.cost(compiled, profile)
        (relayout,) = [b for b in found.bands if b.role == "relayout"]
        assert found.computing == sum(b.high for b in found.bands if b.role == "compute")
        by_role[profile] = relayout
    assert by_role["ref"].units == by_role["default"].units
    assert by_role["ref"].busiest.control > 0


def mlp(x: np.ndarray, up: np.ndarray, down: np.ndarray) -> object:
    """Two products, the second of which reads the first."""
    from ktpu.language import In, Out, dims, kernel, loop, temp, tile, units

    M_, H_, K_, N_ = dims("M_, H_, K_, N_")

    @kernel
    def two(x=In(M_, K_), up=In(H_, K_), down=In(N_, H_), y=Out(M_, N_)):
        h = temp(M_, H_)
        for i, j in units(x.tiles(8), up.tiles(8)):
            acc = tile(8, 8, 2)
            for k in loop(x.chunks32(2)):
                acc += x[i, k] @ up[j, k]
            h[i, j] <<= acc
        for i, j in units(h.tiles(8), down.tiles(8)):
            acc = tile(8, 8, 2)
            for k in loop(h.chunks32(2)):
                acc += h[i, k] @ down[j, k]
            y[i, j] <<= acc

    return ktpu.call(two, x, up, down)


# -- barrier --


def test_barrier_by_hand() -> None:
    """A staged epilogue: tiles are written and read once at 32 bytes a cycle and port; results are not read."""
    call = ktpu.linear_silu(normal(32, 64), normal(32, 64), gm=4, gn=8, nk=2)
    compiled = ktpu.compile(call, CHECK, fuse="never")
    first, second = ktpu.cost(compiled).bands
    written = compiled.schedule.buffers["z0"].nbytes
    assert (first.barrier, second.barrier) == (2 * written // 32, 0)
    two = CHECK.with_(meshes=(MeshSpec(CHECK.meshes[0].units, ((0, 1), (0, 2)), (1, 1)),))
    assert ktpu.cost(ktpu.compile(call, two, fuse="never")).bands[0].barrier == written // 32
    fused = ktpu.cost(ktpu.compile(call, CHECK, fuse="require"))
    assert [b.barrier for b in fused.bands] == [0, 0]


@pytest.mark.parametrize("seed", range(60))
def test_handed_on_bytes(seed: int) -> None:
    """Interval arithmetic against a walk over every byte."""
    rng = random.Random(seed)

    def ranges() -> tuple[tuple[int, int], ...]:
        pairs = [sorted((rng.randrange(40), rng.randrange(40))) for _ in range(rng.randint(0, 3))]
        return tuple((lo, hi) for lo, hi in pairs)

    bands = [Traffic(ranges(), ranges()) for _ in range(rng.randint(1, 5))]
    want = [0] * len(bands)
    for byte in range(40):
        writer = -1
        counted = True
        for number, band in enumerate(bands):
            if not counted and any(lo <= byte < hi for lo, hi in band.reads):
                want[writer] += 1
                counted = True
            if any(lo <= byte < hi for lo, hi in band.writes):
                writer, counted = number, False
    assert handed_on(bands) == want


# -- bands --


def band(spent: Spent, **changed: object) -> BandCost:
    fields = {"number": 0, "text": "", "engine": "MG", "role": "compute", "instances": 9, "units": {0: spent}}
    return BandCost(**{**fields, "available": 4, **changed})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limiter", "made"),
    [
        ("mac", band(Spent(mac=9, fill=8))),
        ("fill", band(Spent(mac=8, fill=9))),
        ("drain", band(Spent(mac=8, drain=9))),
        ("lanes", band(Spent(lanes=9, control=8))),
        ("payload", band(Spent(lanes=8, control=9))),
        ("mover", band(Spent(moved=9), engine="MV")),
        ("fill", band(Spent(mac=4, fill=9, hidden=4), memory=9)),
        ("memory", band(Spent(mac=4, fill=9, hidden=4), memory=10)),
        ("memory", band(Spent(mac=9), barrier=10)),
    ],
)
def test_limiter(limiter: str, made: BandCost) -> None:
    """The largest part of the busiest unit, unless all units keep the memory ports longer than it runs."""
    assert made.limiter == limiter


def test_busiest_unit_and_occupancy() -> None:
    """The bracket is the maximum of each end; occupancy is that of the tile choice."""
    made = band(Spent(mac=10), units={0: Spent(mac=10), 1: Spent(mac=4, fill=8, hidden=7)}, barrier=3)
    assert (made.low, made.high) == (13, 15)
    assert made.occupancy == pytest.approx(9 / 12)


def test_dealing_decides() -> None:
    """The same work on fewer clusters costs more: the figure follows the schedule's dealing."""
    call = ktpu.matmul(normal(64, 64), normal(64, 64), gm=4, gn=4, nk=2)
    costs = [ktpu.cost(ktpu.compile(call, CHECK, clusters=n)) for n in (1, 2, 4)]
    assert [len(c.bands[0].units) for c in costs] == [1, 2, 4]
    assert costs[0].high > costs[1].high > costs[2].high


# -- words at the memory ports --


CALLS = {
    "matmul": lambda: ktpu.matmul(normal(50, 100), normal(40, 100)),
    "linear_silu": lambda: ktpu.linear_silu(normal(32, 64), normal(32, 64), gm=4, gn=8, nk=2),
    "linear_bias": lambda: ktpu.linear_bias(normal(32, 64), normal(48, 64), normal(48)),
    "softmax": lambda: ktpu.softmax(normal(20, 64)),
    "layernorm": lambda: ktpu.layernorm(normal(20, 64), normal(64), normal(64)),
    "geglu": lambda: ktpu.geglu(normal(16, 64), normal(32, 64), normal(32, 64)),
}


@pytest.mark.parametrize("emit_fuse", [True, False])
@pytest.mark.parametrize("fuse", ["auto", "never"])
@pytest.mark.parametrize("name", CALLS)
def test_mag_bytes_are_what_memory_counts(name: str, fuse: str, emit_fuse: bool) -> None:
    """``mag_bytes`` equals the words the memory agent of the model counts over the whole run."""
    text = description(2, cores=4)
    machine = spec(text)
    compiled = ktpu.compile(CALLS[name](), machine, fuse=fuse, emit_fuse=emit_fuse)
    result = Device(ModelTransport(text), machine.digest(), explain).run(compiled.artifact)
    assert not result.failed
    counted = sum(sum(r.dram_words) + sum(r.stage_words) for r in result.rounds)
    assert ktpu.cost(compiled).mag_bytes == machine.word_bytes * counted


@pytest.mark.parametrize("features", [("emit_fuse",), ("emit_fuse", "xform_granule")])
def test_mag_bytes_of_conversions(features: tuple[str, ...]) -> None:
    """The same with a conversion between two products, by a vector core and by the mover."""
    text = description(2, cores=2, features=features, stage_bytes=1 << 21)
    machine = spec(text)
    compiled = ktpu.compile(mlp(normal(32, 64), normal(128, 64), normal(32, 128)), machine)
    result = Device(ModelTransport(text), machine.digest(), explain).run(compiled.artifact)
    assert not result.failed
    counted = sum(sum(r.dram_words) + sum(r.stage_words) for r in result.rounds)
    assert ktpu.cost(compiled).mag_bytes == machine.word_bytes * counted


def test_moves_behind_the_last_band() -> None:
    """The mover brings the last product into its part of the result: a band behind all others, with its words."""
    text = description(2, cores=2, features=("emit_fuse", "xform_granule"))
    machine, graph = spec(text), Graph()
    arrays = {"x": normal(32, 64).astype(np.float16)}
    graph.value(Value("x", "fp16", (32, 64), "in"))
    graph.value(Value("cat", "fp16", (32, 96), "out"))
    for name, col, width in (("l", 0, 64), ("r", 64, 32)):
        arrays[f"w{name}"] = normal(width, 64, seed=width).astype(np.float16)
        graph.value(Value(f"w{name}", "fp16", (width, 64), "in"))
        graph.value(Value(name, "fp16", (32, width), "out", of="cat", window=Window(1, 0, 32, col, width)))
        graph.ops.append(Op("contract", ("x", f"w{name}"), name))
    compiled = ktpu.compile(Call(Trace("parts", graph, {}), arrays), machine)
    found = ktpu.cost(compiled)
    assert [(b.engine, b.number) for b in found.bands] == [("MG", 0), ("MV", 1), ("MG", 1), ("MV", 2)]
    assert found.bands[-1].busiest.moved == sum(m.cycles for m in compiled.moves[2])
    result = Device(ModelTransport(text), machine.digest(), explain).run(compiled.artifact)
    counted = sum(sum(r.dram_words) + sum(r.stage_words) for r in result.rounds)
    assert found.mag_bytes == machine.word_bytes * counted
    steps = run_steps(compiled.schedule)
    assert [s.name for s in steps] == [
        "MG0", "relayout before band 1: l:tile -> cat[0:32, 0:64]",
        "MG1", "relayout before band 2: r:tile -> cat[0:32, 64:96]",
    ]  # fmt: skip
    assert buffer_lives(compiled.schedule, steps) == compiled.schedule.lives


def test_text_names_every_band() -> None:
    """The printed form carries the tag, the profile and one line a band."""
    found = ktpu.cost(product(8), "ref")
    head, *lines = found.text().splitlines()
    assert head.startswith("model 280,064..418,176 cycles, profile ref, machine check, 19,520 payloads")
    assert len(lines) == len(found.bands)
    assert model.profile("ref") is REF

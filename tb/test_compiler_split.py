# SPDX-License-Identifier: Apache-2.0
"""Split K by every route: bits, phases, waves, coverage, refusals (docs/spec/compiler.md 5.2, 5.4, 12.6).

Bits. Route peer adds partials in accumulator width in order of their K ranges and rounds once; routes core and
memory round every partial to FP16, add in the lane in the same order and round once: these two are one class.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest

import ktpu
from kohakuabi import Await, Kick
from kohakubench.plans import Half, artifact_of, expected, run_plan
from kohakubench.programs import accumulated, description, reference, run, spec
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.errors import CannotFuse, CompileError, CoverageError, EncodeError
from kohakutpu.isa import cluster
from kohakutpu.kernels.language import In, Out, dims, kernel, loop, tile, units
from kohakutpu.model.numerics import acc_add, to_fp16
from kohakutpu.program import Drain, Gemm, encode, parse, text
from kohakutpu.program.encode import decode
from kohakutpu.schedule import (
    Band,
    Contraction,
    DrainBand,
    Elementwise,
    Operand,
    Request,
    Schedule,
    Tiling,
    VectorBand,
    emit,
    plan,
)
from kohakutpu.schedule.split_check import check_sums
from kohakutpu.views import Window
from ktpu.explain import gather, sections

pytestmark = pytest.mark.unit

FEATURES = ("emit_fuse", "stage_l2", "vshuf_pred")
ONE = description(1, cores=1, features=FEATURES, stage_bytes=2 << 20)
FOUR = description(4, cores=2, features=FEATURES, stage_bytes=2 << 20)
EIGHT = description(8, cores=4, features=FEATURES, stage_bytes=2 << 20)


def value(name: str, shape: tuple[int, int], role: str = "temp") -> Operand:
    return Operand(name, role, shape)


def split(
    m: int, n: int, k: int, count: int, route: str, tiling: Tiling | None = None, *, c: str = "out", batch: int = 1
) -> Contraction:
    """C[batch*m][n] with named or chosen tiling; the operands of a batch are blocks."""
    wa, wb = (Window(batch, 0, m, 0, k), Window(batch, 0, n, 0, k)) if batch > 1 else (None, None)
    a, b = value("a", (batch * m, k), "in"), value("b", (batch * n, k), "in")
    return Contraction(a, b, value("c", (batch * m, n), c), tiling, wa, wb, batch, split=count, route=route)


def given(requests: list[Request], seed: int = 3) -> dict[str, Half]:
    """Values of what the host holds."""
    out: dict[str, Half] = {}
    for r in requests:
        for o in (r.a, r.b) if isinstance(r, Contraction) else r.operands:
            if o.role == "in":
                rng = np.random.default_rng([seed, *o.shape, len(o.name)])
                out[o.name] = (rng.standard_normal(o.shape) * 0.5).astype(np.float16)
    return out


def check(requests: list[Request], machine: dict[str, object], seed: int = 3, **options: object) -> Schedule:
    """Run on the model and compare every bit with whole arrays in the order of the route."""
    values = given(requests, seed)
    schedule, got = run_plan(requests, values, machine, **options)
    want = expected(requests, values)
    assert got
    for name, bits in got.items():
        assert np.array_equal(bits, want[name].view(np.uint16)), name
    return schedule


def sends(schedule: Schedule) -> list[DrainBand]:
    return [b for b in schedule.bands if isinstance(b, DrainBand)]


# -- bits --


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 3), (3, 1), (2, 4), (5, 3), (8, 8)])
def test_peer_at_every_size(size: tuple[int, int], count: int) -> None:
    """gm*gn of 1 to 64, three tiles: waves of two and one, or one at a time; rows and columns are no multiples."""
    gm, gn = size
    c = split(4 * gm - 1, 12 * gn - 2, 64 * count, count, "peer", Tiling(gm, gn, 1))
    schedule = check([c], FOUR, gm + gn)
    waves = -(-3 // (4 // count))
    assert [type(b) for b in schedule.bands] == waves * [Band, *count * [DrainBand]]
    assert all(b.receipts == {("MG", u): -(-2 * gm * gn // 8) for u in owners(b)} for b in sends(schedule) if b.to)


def owners(band: DrainBand) -> set[int]:
    return {int(unit[2:]) for unit in band.to}


@pytest.mark.parametrize("route", ["peer", "core", "memory"])
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("tiling", [None, Tiling(2, 4, 2)], ids=str)
def test_every_route(route: str, count: int, tiling: Tiling | None) -> None:
    """Chosen and named tilings on eight clusters, several K chunks a partial."""
    check([split(8, 30, 256, count, route, tiling or (Tiling(1, 8, 1) if route == "core" else None))], EIGHT)


@pytest.mark.parametrize("route", ["peer", "core", "memory"])
def test_batch(route: str) -> None:
    """Two products of 8 x 16 in blocks; the tiles of both go through the same waves."""
    schedule = check([split(8, 16, 128, 2, route, Tiling(2, 4, 1), batch=2)], FOUR)
    assert " batch=2 split=2 route=" + route in schedule.text()


@pytest.mark.parametrize("options", [{"emit_fuse": False}, {"pass_budget": 2}, {"clusters": 2}, {"clusters": 3}])
@pytest.mark.parametrize("route", ["peer", "core"])
def test_choices_change_no_bit(route: str, options: dict[str, object]) -> None:
    """Explicit drains, sweeps in windows, other waves: the reference's bits."""
    check([split(8, 16, 256, 2, route, Tiling(2, 2, 1) if route == "peer" else Tiling(2, 4, 1))], FOUR, **options)


def test_core_on_one_cluster() -> None:
    """One cluster makes the partials of a tile one after another, each into its slot (12.6)."""
    c = split(13, 14, 128, 4, "core", Tiling(4, 4, 1))
    schedule = check([c], ONE)
    product, adding = schedule.bands
    assert isinstance(product, Band)
    assert isinstance(adding, VectorBand)
    assert (adding.acks, adding.role, adding.reads) == (8, "reduce", product.writes)
    (unit,) = emit(schedule, spec(ONE))[0]
    assert [i.at // 32 for i in unit if isinstance(i, Gemm) and i.emit] == [0, 16, 32, 48]


def test_classes_of_equality() -> None:
    """Core and memory agree bit for bit; peer, one accumulator and the reverse order all differ from them."""
    c = split(16, 16, 256, 4, "peer", Tiling(4, 4, 1))
    values = given([c])
    bits = {route: run_plan([replace(c, route=route)], values, FOUR)[1]["c"] for route in ("peer", "core", "memory")}
    assert np.array_equal(bits["core"], bits["memory"])
    pairs = list(zip(np.split(values["a"], 4, 1), np.split(values["b"], 4, 1), strict=True))
    codes = [accumulated(x, y) for x, y in pairs]
    assert np.array_equal(bits["peer"], to_fp16(reduce(acc_add, codes)))
    whole = reference(values["a"], values["b"])
    differ = [bits["peer"], bits["core"], to_fp16(reduce(acc_add, codes[::-1])), whole]
    assert all((x != y).any() for i, x in enumerate(differ) for y in differ[:i])
    exact = values["a"].astype(np.float64) @ values["b"].astype(np.float64).T
    for got in bits.values():
        assert np.abs(got.view(np.float16) - exact).max() < 0.05 * np.abs(exact).max()


def test_notes_of_the_rounded_partials() -> None:
    """Core and memory note a range for every partial, peer for the sum alone."""
    for route, count in (("peer", 0), ("core", 2), ("memory", 2)):
        notes = plan([split(8, 8, 64, 2, route, Tiling(2, 2, 1))], spec(FOUR)).notes
        assert sum(n.startswith("c:part") for n in notes) == count, route
        assert "c: FP16, bound unknown, saturates at 65504" in notes


# -- phases --


def test_printed_phases_of_peer() -> None:
    """Three tiles on four clusters: a wave of two and a wave of one; SK, route, sender and owner are shown."""
    lines = plan([split(8, 24, 64, 2, "peer", Tiling(2, 2, 1))], spec(FOUR)).text().splitlines()
    sweep = (
        "band MG contract 8x24x64 grid=1x3x2 tile=gm2,gn2,nk1 chunks=1 reads=a,b writes=c:part0,c:part1 resident=- "
        "double=a,b tier=dram role=compute out=kept split=2 route=peer"
    )
    assert lines[4:] == [
        sweep,
        "  dealt unit 0: 1, unit 1: 1, unit 2: 1, unit 3: 1",
        "band MG send tiles=2 subtiles=4 reads=c:part1 writes=- to=MG1>MG0,MG3>MG2 tile store, 1 acks role=reduce "
        "route=peer",
        "  dealt unit 1: 1, unit 3: 1",
        "band MG drain tiles=2 subtiles=4 reads=c:part0,c:part1 writes=c to=memory role=reduce route=peer",
        "  dealt unit 0: 1, unit 2: 1",
        sweep,
        "  dealt unit 0: 1, unit 1: 1",
        "band MG send tiles=1 subtiles=4 reads=c:part1 writes=- to=MG1>MG0 tile store, 1 acks role=reduce route=peer",
        "  dealt unit 1: 1",
        "band MG drain tiles=1 subtiles=4 reads=c:part0,c:part1 writes=c to=memory role=reduce route=peer",
        "  dealt unit 0: 1",
        "note: c: FP16, bound unknown, saturates at 65504",
    ]


def test_printed_phases_of_core() -> None:
    """A cluster a partial; they send into the slots one after another, and the core adds."""
    lines = plan([split(8, 24, 64, 2, "core", Tiling(2, 6, 1))], spec(FOUR)).text().splitlines()
    assert [ln for ln in lines if ln.startswith("band")][1:] == [
        "band MG send tiles=1 subtiles=12 reads=c:part0 writes=- to=MG0>VC0 slot 0 of 16 words, 2 acks role=compute "
        "route=core",
        "band MG send tiles=1 subtiles=12 reads=c:part1 writes=- to=MG1>VC0 slot 1 of 16 words, 2 acks role=compute "
        "route=core",
        "band VC add(x0, x1) 8x24 form=resident instances=1 steps=2 vl=128 l1=48 reads=c:part0,c:part1 writes=c "
        "role=reduce nodes=VC0 acks=0",
    ]


def test_programs_of_peer() -> None:
    """The owner opens its tile and drains it once; the sender only sends, in accumulator width."""
    schedule = plan([split(8, 8, 64, 2, "peer", Tiling(2, 2, 1))], spec(FOUR))
    by_band = [
        {u.unit: [text(i).split(" at=")[0] for i in u if not text(i).startswith("fill")] for u in programs}
        for programs in emit(schedule, spec(FOUR))
    ]
    sweep = ["gemm gm=2 gn=2 nk=1 acc=0"]
    assert by_band == [{0: sweep, 1: sweep}, {1: ["drain n=4 to=MG0 buf=2"]}, {0: ["drain n=4"]}]


@pytest.mark.parametrize("route", ["peer", "core"])
def test_one_sender_at_a_time(route: str) -> None:
    """Acknowledgements stand ahead of the next round's kicks, and no round kicks a node that receives in it."""
    machine = spec(FOUR)
    schedule = plan([split(8, 8, 128, 4, route, Tiling(2, 2, 1))], machine)
    steps = [r.steps for r in artifact_of(schedule, given([split(8, 8, 128, 4, route)]), FOUR).rounds()]
    sending = [b for b in sends(schedule) if b.to]
    assert len(steps) == len(schedule.bands)
    for number, band in enumerate(schedule.bands):
        if band not in sending:
            continue
        kicked = {(s.x, s.y) for s in steps[number] if isinstance(s, Kick)}
        for (kind, unit), count in band.receipts.items():
            node = machine.units(kind)[unit]
            assert node not in kicked
            assert steps[number + 1][0] == Await(*node, count)
        assert len(band.to) == len(set(band.to))


def test_dealt_as_stated() -> None:
    """Tile t of a wave runs partial ko on cluster t*SK + ko."""
    schedule = plan([split(8, 16, 64, 2, "peer", Tiling(2, 2, 1))], spec(FOUR))
    assert schedule.dealt[0] == (((0, 0, 0), 0), ((0, 0, 1), 1), ((0, 1, 0), 2), ((0, 1, 1), 3))
    assert schedule.dealt[1] == (((0, 0, 1), 1), ((0, 1, 1), 3))


# -- coverage --


def faulty(kind: str, bands: list[Band | DrainBand]) -> list[Band | DrainBand]:
    """The bands of one wave of four partials with one thing wrong."""
    sweep, one, two, three, drain = bands
    assert isinstance(sweep, Band)
    assert isinstance(one, DrainBand)
    match kind:
        case "missing send":
            return [sweep, one, three, drain]
        case "missing sweep":
            return [replace(sweep, kept=sweep.kept[:-1]), one, two, three, drain]
        case "swapped":
            return [sweep, two, one, three, drain]
        case "no drain":
            return [sweep, one, two, three]
        case "drained early":
            return [sweep, one, two, drain, three]
        case "sent twice":
            return [sweep, one, one, two, three, drain]
        case "wrong owner":
            return [sweep, replace(one, to=("MG2",)), two, three, drain]
        case "sender to memory":
            return [sweep, replace(one, to=()), two, three, drain]
        case "swept again":
            return [sweep, sweep, one, two, three, drain]
    return bands


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing send", r"NOREDUCE: partials \[2\] of tile \(0, 0\) stay in cluster 2"),
        ("missing sweep", r"SPLIT: instance \(0,0\) has partials 0: 1x, 1: 1x, 2: 1x; expected 0..3"),
        ("swapped", r"NOREDUCE: tile \(0, 0\) leaves as sums of partials \[\[0, 2, 1, 3\]\]"),
        ("no drain", r"NOREDUCE: partials \[0, 1, 2, 3\] of tile \(0, 0\) stay in cluster 0"),
        ("drained early", r"NOREDUCE: partials \[3\] of tile \(0, 0\) are sent to cluster 0 without it"),
        ("sent twice", r"NOREDUCE: cluster 1 is to send tile \(0, 0\) and holds None"),
        ("wrong owner", r"NOREDUCE: tile \(0, 0\) leaves as sums of partials \[\[0, 2, 1, 3\]\]"),
        ("sender to memory", r"NOREDUCE: tile \(0, 0\) leaves as sums of partials \[\[1\], \[0, 2, 3\]\]"),
        ("swept again", "SPLIT: .* 0: 2x"),
    ],
)
def test_faults_are_found(kind: str, message: str) -> None:
    """A partial that is lost, added twice, out of order or in the wrong place is an error before emission."""
    bands = list(plan([split(8, 8, 128, 4, "peer", Tiling(2, 2, 1))], spec(FOUR)).bands)
    check_sums((8, 8), bands, 4, 4)
    with pytest.raises(CoverageError, match=message):
        check_sums((8, 8), faulty(kind, bands), 4, 4)  # type: ignore[arg-type]


def test_the_plan_checks_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that loses a tile of a wave is refused."""
    tiles = Band.tiles
    monkeypatch.setattr(Band, "tiles", lambda self: list(tiles(self))[:-1])
    with pytest.raises(CoverageError, match="GAP: element"):
        plan([split(8, 24, 64, 2, "peer", Tiling(2, 2, 1))], spec(FOUR))


# -- choice and refusals --


@pytest.mark.parametrize(
    ("machine", "shape", "route", "why"),
    [
        (FOUR, (8, 8), "peer", ""),
        (ONE, (8, 8), "core", "peer does not fit, 2 partials of a tile need as many clusters, 1 are used"),
        (ONE, (8, 24), "memory", "core does not fit, 3 tiles for 1 vector cores; a core holds one"),
    ],
)
def test_route_left_open(machine: dict[str, object], shape: tuple[int, int], route: str, why: str) -> None:
    """The first of peer, core and memory that fits; choice and reason are printed."""
    c = split(*shape, 64, 2, "", Tiling(2, 2, 1))
    schedule, got = run_plan([c], given([c]), machine)
    assert f" split=2 route={route}" in schedule.text()
    assert f"note: c: split into 2 by route {route}" in schedule.text()
    assert why in schedule.text()
    assert np.array_equal(got["c"], expected([replace(c, route=route)], given([c]))["c"].view(np.uint16))


def test_without_a_word_nothing_is_split() -> None:
    c = Contraction(value("a", (8, 512), "in"), value("b", (8, 512), "in"), value("c", (8, 8), "out"))
    schedule = plan([c], spec(EIGHT))
    (band,) = schedule.bands
    assert isinstance(band, Band)
    assert (band.split, band.route, band.grid[2]) == (1, "", 1)


def test_refusals() -> None:
    """Every route names what it lacks."""
    lonely = {**FOUR, "units": {"MG": FOUR["units"]["MG"]}}  # type: ignore[index]
    small = spec(FOUR).with_(ackq={"MG": 1, "VC": 64})
    for c, machine, message in (
        (split(8, 8, 64, 2, "peer"), spec(ONE), "route peer: 2 partials of a tile need as many clusters, 1 are used"),
        (split(8, 8, 256, 8, "peer"), spec(FOUR), "8 partials of a tile need as many clusters, 4 are used"),
        (split(8, 12, 64, 2, "peer", Tiling(2, 3, 1)), small, "6 sub-tiles is 2 bursts, a cluster queues 1"),
        (split(8, 24, 64, 2, "core", Tiling(2, 2, 1)), spec(FOUR), "3 tiles for 2 vector cores; a core holds one"),
        (split(64, 64, 64, 2, "core", Tiling(16, 16, 1)), spec(FOUR), "route core: 520 L1 words are needed"),
        (split(8, 8, 256, 8, "core", Tiling(2, 2, 1)), spec(FOUR), "8 operands"),
        (split(8, 8, 64, 2, "core"), spec(lonely), "no unit of type VC"),
        (split(8, 8, 256, 8, ""), spec(lonely), "no route fits; peer does not fit, .*; memory does not fit, machine"),
        (split(8, 8, 256, 8, ""), spec(FOUR), "no route fits; .*core does.*; memory does not fit, .*8 operands"),
        (split(8, 8, 256, 8, "memory"), spec(FOUR), "split into 8 by route memory: .*8 operands"),
        (split(8, 8, 64, 2, "host"), spec(FOUR), "route 'host'; it is one of peer, core, memory"),
        (split(8, 8, 96, 2, "peer", Tiling(2, 2, 1)), spec(FOUR), "3 chunks of K do not divide into 2 parts"),
    ):
        with pytest.raises((CompileError, ValueError), match=message):
            plan([c], machine)


# -- epilogues --


def chain(name: str) -> Chain:
    b = ChainBuilder()
    x = b.operand(0)
    if name == "silu":
        return b.chain([b.op("mul", x, b.op("recip", b.op("add", b.op("exp2", b.op("neg", x)), b.const(1.0))))])
    if name == "bias":
        return b.chain([b.op("add", b.op("mul", x, x), b.operand(1))])
    return b.chain([b.op("mul", b.op("neg", x), b.operand(1))])


def epilogue(name: str, route: str, m: int, n: int, count: int, tiling: Tiling) -> list[Request]:
    """Products in K ranges and a pass on their sums."""
    k = 64 * count
    first = replace(split(m, n, k, count, route, tiling, c="temp"), c=value("z", (m, n)))
    products = [first]
    operands = [first.c]
    if name == "two":
        products.append(replace(first, b=value("bb", (n, k), "in"), c=value("zz", (m, n))))
        operands.append(products[1].c)
    if name == "bias":
        operands.append(value("r", (1, n), "in"))
    return [*products, Elementwise(chain(name), tuple(operands), (value("y", (m, n), "out"),))]


@pytest.mark.parametrize("machine", [FOUR, EIGHT], ids=["four", "eight"])
@pytest.mark.parametrize("name", ["silu", "bias", "two"])
@pytest.mark.parametrize("route", ["peer", "core"])
def test_epilogue_where_the_sum_arrives(route: str, name: str, machine: dict[str, object]) -> None:
    """Nothing but the result reaches memory, and the bits are those of the sum in memory: rounded to FP16 first."""
    requests = epilogue(name, route, 15, 31, 2, Tiling(4, 4, 1))
    fused = check(requests, machine, fuse="require")
    assert {b.role for b in fused.buffers.values()} == {"in", "out"}
    staged = check(requests, machine, fuse="never")
    assert "z" in staged.buffers
    assert ("half(add(" in fused.text()) == (route == "core")


def test_epilogue_of_waves() -> None:
    """Two tiles of four partials on four clusters: the first waits in its core while the second is made."""
    schedule = check(epilogue("silu", "peer", 13, 14, 4, Tiling(4, 2, 1)), FOUR, fuse="require")
    assert [b.to for b in sends(schedule) if b.writes] == [("VC0",), ("VC1",)]


def test_epilogues_that_are_refused() -> None:
    """Route memory, and more operands than a pass has: staged and said so, or an error if fusion is required."""
    for requests, reason in (
        (epilogue("silu", "memory", 16, 16, 2, Tiling(4, 4, 1)), "products are added in memory by route memory"),
        (epilogue("two", "core", 16, 16, 4, Tiling(4, 4, 1)), "8 operands"),
    ):
        schedule = check(requests, FOUR)
        assert len(schedule.relaxed) == 1
        assert reason in schedule.relaxed[0]
        with pytest.raises(CannotFuse, match=reason):
            plan(requests, spec(FOUR), fuse="require")


# -- the instruction --


def test_drain_into_a_tile_store() -> None:
    """Text, word and back; the granule offset of sub-tile 3 is 6."""
    machine = spec(FOUR)
    d = Drain(9, 192, to="MG1", buf=2)
    assert text(d) == "drain n=9 at=0xc0 to=MG1 buf=2"
    assert parse(text(d)) == d
    word = encode(d, machine)
    f = cluster.decode(word)
    assert (f["dnode"], f["dbuf"], f["dflags"], f["n"], f["addr"] >> 5) == (1, 2, 1, 9, 6)
    assert cluster.receiver(f) == machine.units("MG")[1]
    assert (f["dack_x"], f["dack_y"]) == machine.meshes[0].orch
    assert decode(word, machine) == d


@pytest.mark.parametrize(
    ("ins", "message"),
    [
        (Drain(1, to="MG1"), "a cluster takes tiles from a drain with buf=2 only"),
        (Drain(1, to="MG1", buf=1), "drain buf = 1; it is 0, or 2"),
        (Drain(1, to="VC0", buf=2), "only a cluster has a tile store"),
        (Drain(1, buf=2), "drain to memory with buf = 2"),
        (Drain(1, to="MG1", buf=2, fuse=1), "with fuse"),
        (Drain(1, 32, to="MG1", buf=2), "byte 0x20 is inside a sub-tile; one takes 64 bytes"),
        (Drain(2, 64 * 511, to="MG1", buf=2), r"sub-tiles 511..512 exceed the 512 it has"),
        (Gemm(1, 1, 1, 0, emit=1, to="MG1"), "a cluster takes tiles from a drain with buf=2 only"),
    ],
)
def test_words_that_are_refused(ins: Drain | Gemm, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        encode(ins, spec(FOUR))


# -- from the kernel language --

M, N, K = dims("M, N, K")


@kernel
def partial(a=In(M, K), b=In(N, K), c=Out(M, N), *, count=2, by=""):  # type: ignore[no-untyped-def]
    """A product in ``count`` partials."""
    for i, j in units(a.tiles(2), b.tiles(2)):
        acc = tile(2, 2, 1, split=count, route=by)
        for k in loop(a.chunks32(1)):
            acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc


@pytest.mark.parametrize("route", ["peer", "core", "memory", ""])
def test_a_kernel_names_its_split(route: str) -> None:
    """Compiled, explained, costed and run; without a route the first that fits."""
    rng = np.random.default_rng(4)
    a, b = (rng.standard_normal((8, 128)).astype(np.float16) for _ in range(2))
    compiled = ktpu.compile(ktpu.call(partial, a, b, count=4, by=route), spec(FOUR))
    taken = route or "peer"
    assert f" split=4 route={taken}" in compiled.schedule.text()
    want = expected([split(8, 8, 128, 4, taken)], {"a": a, "b": b})["c"]
    assert np.array_equal(run(FOUR, compiled), want.view(np.uint16))
    assert f"route={taken}" in "\n".join(str(s) for s in sections(gather(compiled)))
    assert compiled.artifact.meta["counters"]["dispatches"] == len(compiled.schedule.bands)

# SPDX-License-Identifier: Apache-2.0
"""Rounds, shadow, several clusters, linking (docs/spec/compiler.md 10, docs/spec/fabric.md 8)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktpu
from kohakuabi import (
    ArtifactError,
    Await,
    Barrier,
    Image,
    Kick,
    Move,
    RoundBuilder,
    Seed,
    build_round,
    command_count,
)
from kohakuabi.commands import MOVER_LATCHED, MOVER_SEQUENCE
from kohakubench.programs import description, device, image, operands, reference, result, run, spec
from kohakudriver import generated as g
from kohakudriver.registers import address, pack
from kohakutpu.dispatch import Program, UnitWork, Words, link, plan_rounds
from kohakutpu.dispatch.rounds import fits, round_robin, round_steps, windows
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec, MeshSpec

pytestmark = pytest.mark.unit

MACHINE = spec(description())
EIGHT = spec(description(8))


def programs(sizes: list[int], node: tuple[int, int] = (2, 1)) -> list[Program]:
    return [Program(*node, tuple(range(n)), 10 * n) for n in sizes]


# -- the three limits --


def test_staging_alone_binds() -> None:
    """Two programs fill the slots to the last; one payload more opens another round."""
    full = programs([100, 28])
    assert fits(full, MACHINE) is None
    assert plan_rounds([full], MACHINE) == [full]
    over = programs([100, 29])
    assert "129 payloads exceed the 128 staging slots" in str(fits(over, MACHINE))
    assert plan_rounds([over], MACHINE) == [[over[0]], [over[1]]]


def test_commands_alone_bind() -> None:
    """The command limit cuts rounds that staging and credit would let pass, at exactly the limit."""
    few = programs([2] * 20)
    need = command_count(round_steps(few, MACHINE.credit))
    assert fits(few, MACHINE.with_(ncmd=need)) is None
    tight = MACHINE.with_(ncmd=need - 1)
    assert f"{need} commands exceed the {need - 1} command slots" in str(fits(few, tight))
    assert [len(r) for r in plan_rounds([few], tight)] == [19, 1]


def test_credit_alone_binds() -> None:
    """P = C - 1 programs make a round, P = C are refused."""
    c = MACHINE.credit
    assert fits(programs([1] * (c - 1)), MACHINE) is None
    assert f"{c} programs need more than the {c} credits" in str(fits(programs([1] * c), MACHINE))
    assert [len(r) for r in plan_rounds([programs([1] * (2 * c - 1))], MACHINE)] == [c - 1, c - 1, 1]


def test_round_at_the_credit_limit_runs() -> None:
    """C - 1 programs in one round end on the machine; an artifact with C of them is refused."""
    body = description()
    compiled = ktpu.compile(
        ktpu.matmul(*operands(4 * 31, 4, 32), gm=1, gn=1, nk=1), spec(body), pass_budget=4
    )
    (only,) = compiled.artifact.rounds()
    assert sum(isinstance(s, Kick) for s in only.steps) == MACHINE.credit - 1
    run(body, compiled)
    steps = tuple(Seed(31) if isinstance(s, Seed) else s for s in compiled.artifact.steps)
    with pytest.raises(ArtifactError, match="31 programs with a credit of 31"):
        replace(compiled.artifact, steps=steps).check()


def test_credit_is_the_smallest_queue() -> None:
    """C is bounded by every unit type present and by the dispatcher."""
    machine = EIGHT.with_(inst_depth={"MG": 8, "VC": 4})
    assert machine.credit == 8
    both = machine.with_(meshes=(MeshSpec({"MG": ((2, 1),), "VC": ((1, 0),)}, orch=(1, 1)),))
    assert both.credit == 4
    assert EIGHT.with_(inst_depth={"MG": 64}, credit_max=16).credit == 16


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 300), max_size=12), min_size=1, max_size=4), st.integers(20, 128))
def test_planned_rounds_keep_every_limit(sizes: list[list[int]], ncmd: int) -> None:
    """Random programs: nothing lost, order within a node kept, no round breaks a limit."""
    machine = MACHINE.with_(ncmd=ncmd)
    lists = [programs(s, (2 + i, 1)) for i, s in enumerate(sizes)]
    planned = plan_rounds(lists, machine)
    assert all(group and fits(group, machine) is None for group in planned)
    for i, mine in enumerate(lists):
        got = [w for group in planned for p in group if p.x == 2 + i for w in p.payloads]
        assert got == [w for p in mine for w in p.payloads]


def test_round_robin() -> None:
    """First of every unit, then the second; ragged tails appended."""
    a, b, c = programs([1, 2, 3], (1, 1)), programs([4], (2, 1)), programs([5, 6], (3, 1))
    assert [len(p.payloads) for p in round_robin([a, b, c])] == [1, 4, 5, 2, 6, 3]


# -- windows --


def test_windowed_program() -> None:
    """1,081 payloads: windows to the same node in order, each in a round of its own from slot 0."""
    (long,) = programs([1081])
    cut = windows(long, 128)
    assert [len(w.payloads) for w in cut] == [128] * 8 + [57]
    planned = plan_rounds([[long]], MACHINE)
    assert [len(r) for r in planned] == [1] * 9
    assert [w for r in planned for p in r for w in p.payloads] == list(range(1081))
    assert all(round_steps(r, 32)[1] == Kick(2, 1, 0, len(r[0].payloads)) for r in planned)


def test_windowed_program_gives_the_same_memory() -> None:
    """One tile of more than 1,081 instructions, cut into windows by any budget: same bytes."""
    body = description()
    a, b = operands(8, 8, 32 * 361)
    want = reference(a, b)
    images = set()
    for budget in (128, 37):
        compiled = ktpu.compile(ktpu.matmul(a, b, gm=2, gn=2, nk=1), spec(body), pass_budget=budget)
        assert len(compiled.artifact.payloads) == 3 * 361 + 1 >= 1081
        assert compiled.artifact.meta["counters"]["rounds"] >= 9
        dev = device(body)
        assert not dev.run(compiled.artifact).failed
        assert (result(dev, compiled) == want).all()
        images.add(image(dev, compiled))
    assert len(images) == 1


def test_order_of_independent_rounds() -> None:
    """Rounds of separate tiles in any order give identical memory: the shadow starts empty."""
    body = description(2)
    compiled = ktpu.compile(ktpu.matmul(*operands(64, 64, 64), gm=2, gn=2, nk=1), spec(body), pass_budget=8)
    rounds = list(compiled.artifact.rounds())
    assert len(rounds) > 3
    images = set()
    for seed in range(4):
        dev = device(body)
        dev.load(compiled.artifact)
        shuffled = rounds if seed == 0 else random.Random(seed).sample(rounds, len(rounds))
        for r in shuffled:
            assert not dev.run_round(r).failed
        again = dev.run_round(shuffled[0])
        assert not again.failed
        images.add(image(dev, compiled))
    assert len(images) == 1


# -- shadow --


class Plain(RoundBuilder):
    """A builder that never skips a write."""

    def _latched(self, register: str, value: int, index: int = 0) -> None:
        self._event(register, value, index)


def plain_round(
    steps: list[object], expect: dict[tuple[int, int], int] | None = None, code: int = 0
) -> list[object]:
    builder = Plain(expect if expect is not None else {})
    for s in steps:
        builder.add(s)  # type: ignore[arg-type]
    return builder.done(code)  # type: ignore[return-value]


def test_single_program_round() -> None:
    """8 commands: seed, poll, three latched writes, kick, await, DONE (docs/spec/fabric.md 8.2)."""
    made = build_round([Seed(32), Kick(2, 1, 0, 4), Await(2, 1, 4)], {(2, 1): 0xFFFE}, code=7)
    assert [(c.op, c.register, c.index, c.data, c.mask) for c in made] == [
        ("WR", "PROG_CRED", 0, 32, 0),
        ("POLL", "PROG_STAT", 0, 0, 1),
        ("WR", "PROG_DST", 0, 0x12, 0),
        ("WR", "PROG_BASE", 0, 0, 0),
        ("WR", "PROG_LEN", 0, 4, 0),
        ("WR", "PROG_KICK", 0, 1, 0),
        ("POLL", "NODE_STATUS", 0x12, 2 << 8 | 1, 0x00FFFF01),
        ("DONE", "", 0, 7, 0),
    ]


def test_latched_registers_are_written_when_they_change() -> None:
    """DST, BASE and LEN only when they differ; KICK and CREDIT always."""
    kicks = [Kick(2, 1, 0, 4), Kick(2, 1, 4, 4), Kick(3, 1, 8, 4), Kick(3, 1, 12, 5)]
    made = build_round([Seed(9), Seed(9), *kicks])
    names = [c.register for c in made if c.op == "WR"]
    assert names.count("PROG_CRED") == 2
    assert names.count("PROG_KICK") == 4
    assert names.count("PROG_DST") == 2
    assert names.count("PROG_BASE") == 4
    assert names.count("PROG_LEN") == 2
    assert [c.data for c in made if c.register == "PROG_DST"] == [0x12, 0x13]


CTRL, CLEAR, HDR, DIM, AXIS, WINDOW, INDEX, SEED, IMM, GATHER = (
    8 * i for i in (0, 1, 2, 3, 4, 5, 6, 7, 8, 10)
)


def test_mover_offsets_are_those_of_the_tables() -> None:
    """The builder's register classes name the registers of docs/spec/memory.md 12."""
    base = address("AUX_CFG")
    at = {
        name: address(f"MV_{name}") - base
        for name in ["CTRL", "CLEAR", "HDR", "DIM", "AXIS", "WINDOW", "INDEX", "SEED", "IMM", "GATHER"]
    }
    assert {at[n] for n in ("HDR", "DIM", "AXIS", "WINDOW")} == MOVER_SEQUENCE
    assert {at[n] for n in ("INDEX", "SEED", "IMM", "GATHER")} == MOVER_LATCHED
    assert (at["CTRL"], at["CLEAR"], at["GATHER"]) == (CTRL, CLEAR, GATHER)
    assert address("AUX_CFG", HDR // 8) == address("MV_HDR")


def test_mover_shadow() -> None:
    """A sequence is skipped whole or sent whole; INDEX one by one; CTRL and CLEAR never."""
    setup = ((HDR, 1), (DIM, 2), (HDR, 3), (DIM, 4), (AXIS, 5), (WINDOW, 6))
    rest = ((INDEX, 7), (SEED, 8), (IMM, 9), (GATHER, 10), (CLEAR, 3), (CTRL, 0x1_0000))
    first = Move((*setup, *rest))
    other = Move((*setup[:3], (DIM, 44), *setup[4:], *rest))
    changed_index = Move((*setup, (INDEX, 70), *rest[1:]))

    def written(*moves: Move) -> list[list[tuple[int, int]]]:
        out: list[list[tuple[int, int]]] = [[]]
        for c in build_round(moves)[:-1]:
            if c.op == "POLL":
                assert (c.register, c.data, c.mask) == ("AUX_STAT", 0, 1)
                out.append([])
            else:
                assert c.register == "AUX_CFG"
                out[-1].append((8 * c.index, c.data))
        return out[:-1]

    events = [(CLEAR, 3), (CTRL, 0x1_0000)]
    assert written(first) == [list(first.writes)]
    assert written(first, first) == [list(first.writes), events]
    assert written(first, other)[1] == [*setup[:3], (DIM, 44), *setup[4:], *events]
    assert written(first, other, other)[2] == events
    assert written(first, other, first)[2] == [*setup, *events]
    assert written(first, changed_index)[1] == [(INDEX, 70), *events]
    for bad in (4, -8):
        with pytest.raises(ArtifactError, match="multiples of 8"):
            build_round([Move(((bad, 1),))])


def test_two_clusters_with_and_without_shadow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shadowed command list is strictly shorter and leaves the same memory."""
    body = description(2)
    compiled = ktpu.compile(ktpu.matmul(*operands(64, 64, 64), gm=4, gn=4, nk=1), spec(body), pass_budget=16)
    for r in compiled.artifact.rounds():
        assert command_count(r.steps) < len(plain_round(list(r.steps)))
    images = []
    for builder in (None, plain_round):
        if builder:
            monkeypatch.setattr("kohakudriver.device.build_round", builder)
        dev = device(body)
        assert not dev.run(compiled.artifact).failed
        images.append(image(dev, compiled))
    assert images[0] == images[1]


def page_cost(steps: list[Seed | Kick | Await | Move]) -> int:
    """Commands of a round as docs/spec/fabric.md 8.1 and 8.2 count them, without the builder."""
    cost, dst, length, base = 1, None, None, None  # DONE
    plain: dict[int, int] = {}
    sequence: list[tuple[int, int]] | None = None
    for s in steps:
        if isinstance(s, Kick):
            cost += 2 + (dst != (s.x, s.y)) + (base != s.base) + (length != s.n)
            dst, base, length = (s.x, s.y), s.base, s.n
        elif isinstance(s, Move):
            mine = [w for w in s.writes if w[0] in (HDR, DIM, AXIS, WINDOW)]
            cost += 1 + (0 if mine == sequence else len(mine))
            sequence = mine
            for at, value in s.writes:
                if at in (CTRL, CLEAR):
                    cost += 1
                elif at in (INDEX, SEED, IMM, GATHER):
                    cost += plain.get(at) != value
                    plain[at] = value
        else:
            cost += 1
    return cost


_moves = st.lists(
    st.tuples(st.sampled_from([CLEAR, HDR, DIM, AXIS, WINDOW, INDEX, SEED, IMM, GATHER]), st.integers(0, 1)), max_size=8
).map(lambda w: Move((*w, (CTRL, 1 << 16))))
_steps = st.one_of(
    st.builds(Kick, st.integers(2, 3), st.just(1), st.sampled_from([0, 4, 8]), st.integers(1, 3)),
    st.builds(Seed, st.integers(1, 32)),
    st.builds(Await, st.integers(2, 3), st.just(1), st.integers(0, 9)),
    _moves,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_steps, max_size=30))
def test_measured_cost_of_random_rounds(steps: list[Any]) -> None:
    """What is emitted is what was measured and what the page counts; no event write is missing."""
    made = build_round(steps)
    assert command_count(steps) == len(made) == page_cost(steps)
    written = [(c.register, 8 * c.index, c.data) for c in made if c.op == "WR"]
    seeds_and_kicks = [s for s in steps if isinstance(s, Seed | Kick)]
    events = [("PROG_CRED", 0, s.n) if isinstance(s, Seed) else ("PROG_KICK", 0, 1) for s in seeds_and_kicks]
    assert [w for w in written if w[0] in ("PROG_CRED", "PROG_KICK")] == events
    pulses = [("AUX_CFG", at, v) for s in steps if isinstance(s, Move) for at, v in s.writes if at in (CTRL, CLEAR)]
    assert [w for w in written if w[0] == "AUX_CFG" and w[1] in (CTRL, CLEAR)] == pulses


# -- several clusters --


@pytest.mark.parametrize("clusters", [1, 2, 3, 8])
def test_several_clusters(clusters: int) -> None:
    """The same product on one to eight clusters: same bits, work dealt to all of them."""
    body = description(clusters)
    machine = spec(body)
    a, b = operands(100, 72, 96)
    compiled = ktpu.compile(ktpu.matmul(a, b, gm=2, gn=2, nk=1), machine)
    kicked = {(s.x, s.y) for s in compiled.artifact.steps if isinstance(s, Kick)}
    assert kicked == set(machine.units("MG"))
    assert (run(body, compiled) == reference(a, b)).all()
    first = next(compiled.artifact.rounds())
    order = [(s.x, s.y) for s in first.steps if isinstance(s, Kick)]
    assert order[:clusters] == list(machine.units("MG"))
    for (mo, no), unit in compiled.schedule.dealt[0]:
        rows, cols, _ = compiled.schedule.bands[0].grid
        assert unit == (mo * cols + no) % clusters
        assert mo < rows


def test_only_some_clusters() -> None:
    """``clusters`` limits the units used and is checked."""
    body = description(8)
    a, b = operands(64, 64, 32)
    compiled = ktpu.compile(ktpu.matmul(a, b, gm=2, gn=2, nk=1), spec(body), clusters=3)
    kicked = {(s.x, s.y) for s in compiled.artifact.steps if isinstance(s, Kick)}
    assert kicked == set(spec(body).units("MG")[:3])
    assert (run(body, compiled) == reference(a, b)).all()
    for bad in (0, 9, -1):
        with pytest.raises(CompileError, match=f"clusters = {bad}; machine hand8 has 8"):
            ktpu.compile(ktpu.matmul(a, b), spec(body), clusters=bad)


def test_occupancy_uses_all_clusters() -> None:
    """With eight clusters a 64-cube is cut until all have work; with the option off it is one tile."""
    machine = EIGHT
    call = ktpu.matmul(*operands(64, 64, 64))
    on, off = ktpu.compile(call, machine), ktpu.compile(call, machine, occupancy=False)
    assert len({u for _, u in on.schedule.dealt[0]}) == 8
    assert len(off.schedule.dealt[0]) == 1


# -- linking --


def test_conflicting_images() -> None:
    """Different bytes at one address raise, wherever the overlap lies; equal bytes do not."""
    work = [[UnitWork("MG", 0, (Words((1,)),))]]
    big = Image(0, bytes(256), "big")
    inside, last = Image(32, bytes(32), "inside"), Image(192, b"\1" * 32, "last")
    link(MACHINE, work, [big, inside], [])
    for images in ([big, inside, last], [last, big], [inside, big, last]):
        with pytest.raises(CompileError, match="images big and last put different bytes at 0xc0"):
            link(MACHINE, work, images, [])
    link(MACHINE, work, [Image(0, bytes(64), "a"), Image(64, b"\1" * 32, "b")], [])


@pytest.mark.parametrize(
    ("work", "message"),
    [
        (UnitWork("MG", 1, (Words((1,)),)), "unit MG1: machine hand1 has 1 of this type"),
        (UnitWork("MG", 0, (Words(()),)), "program 0 is empty"),
    ],
)
def test_link_refusals(work: UnitWork, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        link(MACHINE, [[work]], [], [])
    with pytest.raises(ValueError, match="no unit of type VC; no mesh has one"):
        link(MACHINE, [[replace(work, engine="VC")]], [], [])


def test_machine_too_small_for_one_program() -> None:
    with pytest.raises(CompileError, match=r"node \(2,1\): 8 commands exceed the 7"):
        plan_rounds([programs([1])], MACHINE.with_(ncmd=7))
    with pytest.raises(CompileError, match=r"1 programs need more than the 1 credits"):
        plan_rounds([programs([1])], MACHINE.with_(inst_depth={"MG": 1}))


def test_bands_are_barriers() -> None:
    """Two bands never share a round."""
    band = [UnitWork("MG", 0, (Words((1,)),))]
    art = link(MACHINE, [band, band], [], [])
    assert sum(isinstance(s, Barrier) for s in art.steps) == 2
    assert [len(r.payloads) for r in art.rounds()] == [1, 1]


# -- machine description --


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"features": frozenset({"teleport"})}, "unknown features"),
        ({"features": frozenset({"desc_fill"})}, "have no encoding"),
        ({"tiles": 0}, "tiles = 0; it must be at least 1"),
        ({"ncmd": -1}, "ncmd = -1"),
    ],
)
def test_machine_refusals(changed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MACHINE.with_(**changed)


def test_description_with_an_unknown_feature() -> None:
    """A misspelt feature of a description is not dropped in silence."""
    with pytest.raises(ValueError, match="emit_fuze"):
        MachineSpec.from_description(description(features=("emit_fuze",)))


def test_digest_covers_every_field() -> None:
    """Another value anywhere gives another hash."""
    changes = [{"tiles": 256}, {"features": frozenset()}, {"ackq": {"MG": 64}}, {"name": "x"}, {"ncmd": 64}]
    digests = {MACHINE.digest(), *(MACHINE.with_(**c).digest() for c in changes), EIGHT.digest()}
    assert len(digests) == len(changes) + 2
    assert spec(description()).digest() == MACHINE.digest()


def test_units_name_the_meshes_that_have_them() -> None:
    two = MACHINE.with_(meshes=(MeshSpec({}), MeshSpec({"MG": ((2, 1),)})))
    with pytest.raises(ValueError, match="mesh 0 has no unit of type MG; meshes that do: 1"):
        two.units("MG")
    assert two.units("MG", 1) == ((2, 1),)


def test_pack_is_the_inverse_of_fields() -> None:
    """The driver packs flits from the same tables; a value that does not fit is refused."""
    assert pack("FLIT", type=g.MessageType.CU_INST, last=1) == g.MessageType.CU_INST << 268 | 1 << 259
    with pytest.raises(ValueError, match=r"FLIT.txn = 0x100 does not fit 8 bits"):
        pack("FLIT", txn=256)

# SPDX-License-Identifier: Apache-2.0
"""Lifetimes, packing, ADJACENT groups and the plan of a network (docs/spec/compiler.md 8.2)."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktpu
from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.lifetimes import Group, Guard, Life, Need, Placed, Step, conflicts, lifetimes, pack
from kohakutpu.schedule.model_plan import ModelPlan
from ktpu.compiling import finished, scheduled

pytestmark = pytest.mark.unit

BIG = 1 << 32


def chain(length: int) -> tuple[list[Need], list[Step]]:
    """x -> t0 -> t1 .. -> y."""
    needs = [Need("x", 5000, "in"), *(Need(f"t{i}", 5000) for i in range(length)), Need("y", 5000, "out")]
    names = [n.name for n in needs]
    return needs, [Step(f"s{i}", (a,), (b,)) for i, (a, b) in enumerate(pairwise(names))]


def brute_conflicts(placed: list[Placed]) -> set[frozenset[str]]:
    out = set()
    for i, p in enumerate(placed):
        for q in placed[i + 1 :]:
            share = set(range(p.base, p.end)) & set(range(q.base, q.end))
            alive = set(range(p.life.first, p.life.last + 1)) & set(range(q.life.first, q.life.last + 1))
            if share and alive:
                out.add(frozenset((p.name, q.name)))
    return out


def test_a_chain_needs_two_temps_of_room() -> None:
    needs, steps = chain(10)
    arena = Arena(0, BIG)
    placed = pack(needs, steps, arena)
    assert conflicts(placed.values()) == []
    assert arena.peak == 4 * 6144
    assert placed["t2"].base == placed["t0"].base


def test_lives() -> None:
    needs = [Need(n, 1) for n in ("never_written", "never_read", "read_first", "normal")] + [Need("w", 1, "const")]
    steps = [
        Step("0", ("read_first", "never_written"), ("never_read",)),
        Step("1", ("w",), ("read_first", "normal")),
        Step("2", ("normal",), ()),
        Step("3", (), ()),
    ]
    lives = lifetimes(needs, steps)
    assert lives.pop("normal") == Life(1, 2)
    assert lives.pop("never_read") == Life(0, 0)
    assert set(lives.values()) == {Life(0, 3)}


def test_born_before_dying() -> None:
    """A step's result never takes the place of what the step reads."""
    needs, steps = chain(2)
    placed = pack(needs, steps, Arena(0, BIG))
    assert placed["t0"].base != placed["t1"].base


def random_plan(seed: int) -> tuple[list[Need], list[Step], list[Group]]:
    rng = random.Random(seed)
    count = rng.randint(2, 14)
    needs = [Need(f"b{i}", rng.randint(0, 300), rng.choice(["temp"] * 5 + ["in", "out"])) for i in range(count)]
    names = [n.name for n in needs]
    steps = [
        Step(f"s{i}", tuple(rng.sample(names, rng.randint(0, 2))), tuple(rng.sample(names, rng.randint(0, 2))))
        for i in range(rng.randint(1, 12))
    ]
    shuffled = rng.sample(names, count)
    groups, at = [], 0
    while at < count - 1 and rng.random() < 0.6:
        size = min(rng.randint(2, 3), count - at)
        groups.append(Group(tuple(shuffled[at : at + size]), rng.random() < 0.5))
        at += size
    return needs, steps, [g for g in groups if len(g.members) > 1]


def test_a_thousand_random_plans() -> None:
    """No two live buffers share a byte; group members are consecutive."""
    grouped = 0
    for seed in range(1000):
        needs, steps, groups = random_plan(seed)
        arena = Arena(64, 1 << 20, 16)
        placed = pack(needs, steps, arena, groups)
        assert set(placed) == {n.name for n in needs}
        assert conflicts(placed.values()) == []
        assert brute_conflicts(list(placed.values())) == set()
        for group in groups:
            grouped += 1
            for a, b in pairwise(group.members):
                gap = placed[b].base - placed[a].end
                assert gap == 0 if group.exact else 0 <= gap < 16
                assert placed[a].life == placed[b].life
    assert grouped > 500


@given(st.lists(st.tuples(*[st.integers(0, 12)] * 4), max_size=12))
@settings(max_examples=300, deadline=None)
def test_conflicts_finds_what_counting_bytes_finds(items: list[tuple[int, int, int, int]]) -> None:
    placed = [Placed(f"p{i}", b, n, Life(f, f + d)) for i, (b, n, f, d) in enumerate(items)]
    assert {frozenset(pair) for pair in conflicts(placed)} == brute_conflicts(placed)


def test_guard_catches_another_order() -> None:
    needs, steps = chain(4)
    placed = pack(needs, steps, Arena(0, BIG))
    guard = Guard(placed)
    for step in steps:
        for name in step.reads:
            guard.read(name)
        for name in step.writes:
            guard.write(name)
    guard = Guard(placed)
    guard.write("t0")
    guard.write("t2")
    with pytest.raises(CompileError, match=r"t0 at 0x.* is read after t2 was written over it"):
        guard.read("t0")
    guard.write("t0")
    guard.read("t0")


def test_no_program_is_made_where_buffers_spoil_each_other() -> None:
    """A temp at the address of another one that is still needed: the program is refused before it exists."""
    half = np.ones((32, 32), np.float16)
    call, machine = ktpu.call(library.mlp(), half, half, half), ktpu.machine("mm_store")
    schedule = scheduled(call.trace, machine)
    assert finished(call, machine, schedule, (), knobs={}).artifact
    hidden, down = next(b for b in schedule.buffers.values() if b.role == "temp"), schedule.buffers["down"]
    for b, over, message in (
        (down, hidden, r"down at 0x.* is read after .* was written over it"),
        (schedule.buffers["y"], down, r"y at 0x.* is written over down in the step that reads it"),
    ):
        spoilt = replace(schedule, buffers={**schedule.buffers, b.name: replace(b, address=over.address)})
        with pytest.raises(CompileError, match=message):
            finished(call, machine, spoilt, (), knobs={})


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([Group(("t0",))], "fewer than two"),
        ([Group(("t0", "t9"))], "names t9, which is not declared"),
        ([Group(("t0", "t1")), Group(("t1", "y"))], "t1 is in two ADJACENT groups"),
    ],
)
def test_group_refusals(groups: list[Group], message: str) -> None:
    needs, steps = chain(3)
    with pytest.raises(CompileError, match=message):
        pack(needs, steps, Arena(0, BIG), groups)


def test_refusals() -> None:
    with pytest.raises(CompileError, match=r"\['a'\] are declared twice"):
        lifetimes([Need("a", 1), Need("a", 2)], [])
    with pytest.raises(CompileError, match=r"step 0 \(k\) touches z"):
        lifetimes([], [Step("k", ("z",), ())])
    needs, steps = chain(3)
    with pytest.raises(CompileError, match="t1: 6144 bytes do not fit"):
        pack(needs, steps, Arena(0, 3 * 6144))


def network(layers: int, weight: int) -> ModelPlan:
    """A residual network: two products a layer, their input kept for the sum."""
    plan = ModelPlan(BIG)
    plan.activation("h0", 4 << 20, "in")
    for i in range(layers):
        plan.weight(f"w{i}a", weight)
        plan.weight(f"w{i}b", weight)
        plan.activation(f"u{i}", 8 << 20)
        plan.activation(f"h{i + 1}", 4 << 20, "out" if i == layers - 1 else "temp")
        plan.call("up", (f"h{i}", f"w{i}a"), (f"u{i}",))
        plan.call("down", (f"u{i}", f"w{i}b", f"h{i}"), (f"h{i + 1}",))
    return plan


def test_plan_of_a_network() -> None:
    plan = network(1000, 2 << 20)
    plan.solve()
    assert plan.verify() == []
    pinned = sum(n.nbytes for n in plan.needs if n.role == "const")
    assert pinned < plan.peak <= pinned + (4 + 4 + 4 + 8 + 8) * (1 << 20)
    weights = [plan.placed[n.name] for n in plan.needs if n.role == "const"]
    assert [w.base for w in weights] == [i * (2 << 20) for i in range(len(weights))]
    assert plan.traffic() == 1000 * ((4 + 2 + 8) + (8 + 2 + 4 + 4)) << 20


def test_plan_too_large_and_plan_with_faults() -> None:
    with pytest.raises(CompileError, match="weights alone take 4294967296 bytes"):
        network(1024, 2 << 20).solve()
    plan = ModelPlan(1 << 20)
    plan.activation("t", 64)
    plan.call("k", (), ("t",))
    plan.solve()
    assert plan.verify() == ["t is written and never read"]

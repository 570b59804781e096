# SPDX-License-Identifier: Apache-2.0
"""Operands in the staging store: what is read again (docs/spec/compiler.md 8.3, docs/spec/kernels.md 5.5)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from kohakutpu.kernels import library as lib
from kohakutpu.model.transport import ModelTransport
from kohakutpu.program.instructions import Fill
from kohakutpu.schedule import emit
from kohakutpu.schedule.fills import fill_bytes
from kohakutpu.schedule.ir import Contraction, Operand
from kohakutpu.schedule.plan import plan
from kohakutpu.schedule.tiles import Tiling
from kohakutpu.tensor import Call, Tensor
from ktpu.compiling import scheduled
from ktpu.devices import description
from ktpu.runtime_forms import Run

pytestmark = pytest.mark.unit

MACHINES = ["mm_store", "mm_mesh"]
STAGE = 1 << 39
WORD = 32


def device(machine: str, stage_bytes: int | None = None) -> ktpu.TensorDevice:
    """A model of ``machine``, with a staging store of another size, 0 for none."""
    text = description(machine)
    if stage_bytes is not None:
        text = {**text, "stage_bytes": stage_bytes}
        text["features"] = [f for f in text["features"] if stage_bytes or f != "stage_l2"]
    return ktpu.TensorDevice(machine, ModelTransport(text))


def attention(queries: int, keys: int = 1, side: int = 32) -> Call:
    """``queries`` blocks of queries over ``keys`` blocks of keys; a block and a head are ``side`` wide."""
    operands = kc.flash_operands(kc.Draw("residency"), 1, side * queries, side * keys, side, side)
    return ktpu.call(lib.flash_attention, *operands.values(), block=side, qblock=side)


@dataclass
class Ran:
    """A call that ran: its result, words (DRAM, staging) that were read, and what was compiled."""

    bits: bytes
    dram: int
    staged: int
    compiled: ktpu.Compiled

    def tiers(self, role: str = "in") -> set[str]:
        """Buffers in the staging store."""
        return {n for n, b in self.compiled.schedule.buffers.items() if b.role == role and b.address >= STAGE}


def ran(dev: ktpu.TensorDevice, call: Call, **options: Any) -> Ran:
    """Compile and run."""
    compiled = ktpu.compile(call, dev.machine, **options)
    result = dev.run(compiled.artifact)
    assert not result.failed, result.problems()
    (o,) = compiled.artifact.outputs
    dram = sum(r.dram_words[0] for r in result.rounds)
    staged = sum(r.stage_words[0] for r in result.rounds)
    return Ran(dev.read(o.address, o.nbytes), dram, staged, compiled)


# -- compiled programs --


@pytest.mark.parametrize(("queries", "side", "machine"), [(4, 64, "mm_store"), (3, 32, "mm_mesh")])
def test_keys_and_values_that_query_blocks_read_again(queries: int, side: int, machine: str) -> None:
    """They stand in the staging store; DRAM loses every read of them, the program nothing else, the result no bit."""
    with device(machine) as dev:
        off, on = (ran(dev, attention(queries, 1, side), stage_operands=s) for s in (False, True))
    assert off.tiers() == set()
    assert on.tiers() == {"k", "v"}
    size = sum(on.compiled.schedule.buffers[n].nbytes for n in "kv")
    assert size == 2 * side * side
    assert off.dram - on.dram == on.staged - off.staged == queries * size // WORD
    assert on.bits == off.bits
    assert on.compiled.artifact.meta["counters"] == off.compiled.artifact.meta["counters"]


def test_one_query_block_reads_nothing_again() -> None:
    """The queries do if there are several key blocks."""
    for keys, want in ((1, set()), (2, {"q"})):
        schedule = scheduled(attention(1, keys).trace, ktpu.machine("mm_store"))
        assert {n for n, b in schedule.buffers.items() if b.role == "in" and b.address >= STAGE} == want


def test_queries_are_read_again_by_key_blocks() -> None:
    """Two query blocks of two key blocks: every operand twice, all of it from the staging store."""
    with device("mm_store") as dev:
        off, on = (ran(dev, attention(2, 2), stage_operands=s) for s in (False, True))
    assert on.tiers() == set("qkv")
    assert off.dram - on.dram == 2 * sum(on.compiled.schedule.buffers[n].nbytes for n in "qkv") // WORD
    assert on.bits == off.bits


@pytest.mark.parametrize("machine", MACHINES)
def test_a_machine_without_a_staging_store(machine: str) -> None:
    """The same bits, nothing proposed and nothing counted."""
    with device(machine) as roomy, device(machine, 0) as bare:
        on, without = (ran(dev, attention(2)) for dev in (roomy, bare))
    assert on.tiers()
    assert without.tiers() == set()
    assert without.staged == 0
    assert without.compiled.schedule.staging_full == 0
    assert without.bits == on.bits


def test_what_does_not_fit_stays_in_dram() -> None:
    """Temps come first; then one of two equal operands, and the other is counted."""
    with device("mm_store") as dev:
        roomy = ran(dev, attention(2))
        buffers = roomy.compiled.schedule.buffers.values()
        end = max(b.address + b.nbytes for b in buffers if b.address >= STAGE) - STAGE
    with device("mm_store", end - 256) as dev:
        tight = ran(dev, attention(2))
    assert tight.tiers("temp") == roomy.tiers("temp") != set()
    assert tight.tiers() == {"k"}
    assert tight.compiled.artifact.meta["counters"]["staging_full"] == 1
    assert tight.bits == roomy.bits


def test_order_of_operands() -> None:
    """The most read per byte first; what its author placed stays there, as does what is read once."""
    machine = ktpu.machine("mm_mesh")

    def staged(stage_bytes: int, tier: str = "", adjacent: tuple[tuple[str, ...], ...] = ()) -> list[str]:
        a, b = Operand("a", "in", (128, 64), tier), Operand("b", "in", (64, 64))
        c = Contraction(a, b, Operand("c", "out", (128, 64)), Tiling(4, 4, 1))
        made = plan([c], machine.with_(stage_bytes=stage_bytes), adjacent=adjacent)
        return [n for n, buffer in made.buffers.items() if buffer.address >= STAGE]

    # a is filled for each of four columns of tiles; b has a place of its own in L1 and is filled once
    assert staged(1 << 20) == ["a"]
    assert staged(1 << 20, "dram") == []
    assert staged(1 << 20, adjacent=(("a", "b"),)) == []
    assert staged(4096) == []
    twice = [
        Contraction(Operand("x", "in", (64, 64)), Operand("w", "in", (64, 64)), Operand(f"y{i}", "out", (64, 64)), t)
        for i, t in enumerate([Tiling(4, 8, 1)] * 3)
    ]
    found = plan(twice, machine.with_(stage_bytes=4096))
    assert [n for n, b in found.buffers.items() if b.address >= STAGE] == ["x"]
    assert found.staging_full == 1


CALLS = {
    "resident": lambda: ktpu.matmul(np.ones((96, 128)), np.ones((64, 128)), gm=4, gn=4, nk=1),
    "one chunk": lambda: ktpu.matmul(np.ones((128, 32)), np.ones((128, 32)), gm=4, gn=4, nk=1),
    "two chunks": lambda: ktpu.matmul(np.ones((16, 64)), np.ones((128, 64)), gm=4, gn=4, nk=1),
    "three chunks": lambda: ktpu.matmul(np.ones((64, 96)), np.ones((64, 96)), gm=8, gn=2, nk=1),
    "deep": lambda: ktpu.matmul(np.ones((64, 4096)), np.ones((64, 4096)), gm=8, gn=8, nk=2),
    "batch": lambda: ktpu.matmul_batched(np.ones((3, 32, 64)), np.ones((3, 64, 64)), gm=2, gn=4, nk=1),
    "two products": lambda: ktpu.call(lib.geglu, np.ones((64, 128)), np.ones((64, 128)), np.ones((64, 128))),
    "attention": lambda: attention(2, 2),
}


@pytest.mark.parametrize("clusters", [1, 4])
@pytest.mark.parametrize("name", CALLS)
def test_bytes_that_are_filled(name: str, clusters: int) -> None:
    """What the plan expects is what the programs fill, where none is cut into passes that start anew."""
    machine = ktpu.machine("mm_quad").with_(stage_flits=1 << 14)
    schedule = scheduled(CALLS[name]().trace, machine, clusters=clusters)
    found: Counter[str] = Counter()
    for band, programs in zip(schedule.bands, emit(schedule, machine), strict=True):
        for program in programs:
            assert band.engine == "VC" or len(program.passes) == 1
            for fill in (i for p in program.passes for i in p.instructions if isinstance(i, Fill)):
                spans = {n: schedule.buffers[n] for n in band.reads}
                (read,) = {n for n, b in spans.items() if b.address <= fill.at < b.address + b.nbytes}
                found[read] += 128 * fill.n
    assert found == fill_bytes(schedule.bands, schedule.dealt, machine)


# -- arrays of a device --


def read(dev: ktpu.TensorDevice) -> tuple[int, int]:
    """Words read from DRAM and from the staging store so far."""
    counts = dev.transport.machine.agent.counts  # type: ignore[attr-defined]
    return counts["dram"][0], counts["stage"][0]


@dataclass
class Called:
    """A call on arrays: its result, words (DRAM, staging) that were read, and what the counters rose by."""

    values: Tensor
    dram: int
    staged: int
    rose: dict[str, int]

    def bits(self) -> bytes:
        """The result."""
        return self.values.numpy().tobytes()


def called(dev: ktpu.TensorDevice, call: Call, **options: Any) -> Called:
    """Run and count."""
    before, stats = read(dev), dev.stats()
    (made,) = dev.execute(call, **options).values()
    dram, staged = (now - then for now, then in zip(read(dev), before, strict=True))
    names = ("moves", "quantised", "packed", "staging_full", "relayouts", "uploads", "relayouts_device")
    return Called(made, dram, staged, {n: dev.stats()[n] - stats[n] for n in names})  # type: ignore[operator]


def half(seed: int, *shape: int) -> np.ndarray:
    """Normal values in FP16."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def times(x: Tensor, w: Tensor, gn: int) -> Call:
    """A product of 64x64 by 64x64 that reads x 16 / gn times, in tiles of ``gn`` sub-tile columns, and w once."""
    return ktpu.matmul(x, w, gm=8, gn=gn, nk=1)


SIZE = 64 * 64
"""Bytes of a 64x64 operand in MXFP7."""
NOTHING = dict.fromkeys(("moves", "quantised", "packed", "staging_full", "relayouts", "uploads", "relayouts_device"), 0)


@pytest.mark.parametrize("machine", MACHINES)
def test_attention_of_computed_keys_and_values(machine: str) -> None:
    """Both are quantised into the staging store, and stand there for the next call."""
    q, *host = kc.flash_operands(kc.Draw("device"), 1, 64, 32, 32, 32).values()
    found, size = [], 32 * 32
    with device(machine) as dev:
        for options in ({"stage_operands": False}, {}):
            arrays = [ktpu.tensor(q, dev), *(ktpu.tensor(a, dev) * 1.0 for a in host)]
            call = ktpu.call(lib.flash_attention, *arrays, block=32, qblock=32)
            found += [called(dev, call, **options) for _ in range(2)]
        off, off_again, on, again = found
        assert len({f.bits() for f in found}) == 1
    assert off.dram - on.dram == on.staged - off.staged == 2 * 2 * size // WORD
    assert off_again.dram - again.dram == again.staged - off_again.staged == 2 * 2 * size // WORD
    assert on.rose == off.rose
    assert again.rose == off_again.rose
    assert on.rose["quantised"] == again.rose["quantised"] + 2


def test_a_form_made_for_one_call_serves_another() -> None:
    """Whatever tier that would have chosen; nothing is made again."""
    with device("mm_store") as dev:
        x, w = ktpu.tensor(half(0, 64, 64), dev) * 1.0, ktpu.tensor(half(1, 64, 64), dev)
        on = called(dev, times(x, w, 8))
        off = called(dev, times(x, w, 8), stage_operands=False)
        assert on.bits() == off.bits()
    assert on.rose["quantised"] == 1
    assert on.staged == off.staged == 2 * SIZE // WORD
    assert off.rose == NOTHING


@pytest.mark.parametrize(("gn", "count"), [(8, 2), (4, 4)])
def test_what_comes_from_the_host_is_copied_if_it_pays(gn: int, count: int) -> None:
    """Once, by one move, if it is read four times; the form in DRAM stays."""
    with device("mm_store") as dev:
        x, w = (ktpu.tensor(half(seed, 64, 64), dev) for seed in (0, 1))
        off = called(dev, times(x, w, gn), stage_operands=False)
        first, again = (called(dev, times(x, w, gn)) for _ in range(2))
        dev.empty_cache()
        (dev.execute(times(x, w, gn)))
        assert first.bits() == again.bits() == off.bits()
    copied = count == 4
    assert off.rose == {**NOTHING, "packed": 2, "uploads": 2}
    assert first.rose == {**NOTHING, "moves": int(copied)}
    assert again.rose == NOTHING
    assert off.dram - first.dram == (count - 1) * SIZE // WORD * copied
    assert off.dram - again.dram == again.staged == count * SIZE // WORD * copied


def test_a_pinned_array_keeps_its_form_in_dram() -> None:
    """It is copied, and the copy gives way; the form does not."""
    with device("mm_store") as dev:
        x, w = ktpu.tensor(half(0, 64, 64), dev) * 1.0, ktpu.tensor(half(1, 64, 64), dev)
        x.pin()
        first = called(dev, times(x, w, 4))
        dev.empty_cache()
        again = called(dev, times(x, w, 4))
        assert first.bits() == again.bits()
    assert (first.rose["quantised"], first.rose["moves"] - again.rose["moves"]) == (1, 1)
    assert again.rose == {**NOTHING, "moves": 1, "packed": 1, "uploads": 1}


def test_an_array_pinned_later_keeps_the_form_it_has() -> None:
    """In the staging store, as nothing else could bring it back without another conversion."""
    with device("mm_store") as dev:
        x, w = ktpu.tensor(half(0, 64, 64), dev) * 1.0, ktpu.tensor(half(1, 64, 64), dev).pin()
        dev.execute(times(x, w, 4))
        x.pin()
        dev.empty_cache()
        assert called(dev, times(x, w, 4)).rose == NOTHING
        x.unpin()
        dev.empty_cache()
        assert called(dev, times(x, w, 4)).rose["quantised"] == 1


def used(dev: ktpu.TensorDevice) -> int:
    """Bytes of the staging store in use."""
    return int(dev.stats()["memory"]["l2"]["used"])  # type: ignore[index]


def test_what_stands_there_between_calls_gives_way() -> None:
    """To the temps of a call; a store too small for anything is counted, and no bit changes."""
    with device("mm_store", 2 * SIZE) as dev, device("mm_store", SIZE // 2) as small:
        x, w, y = (ktpu.tensor(half(seed, 64, 64), dev) * 1.0 for seed in range(3))
        first = called(dev, times(x, w, 4))
        assert used(dev) == SIZE
        second = called(dev, times(y, w, 4))
        assert used(dev) == 2 * SIZE
        assert (first.rose["staging_full"], second.rose["staging_full"]) == (0, 0)
        third = called(dev, times(w, x, 4))
        assert third.rose["staging_full"] == 0
        assert used(dev) == SIZE
        again = called(dev, times(x, w, 4))
        assert again.bits() == first.bits()
        assert used(dev) == 2 * SIZE
        x, w = (ktpu.tensor(half(seed, 64, 64), small) * 1.0 for seed in range(2))
        spilled = called(small, times(x, w, 4))
        assert spilled.bits() == first.bits()
    assert spilled.rose["staging_full"] == 1
    assert spilled.staged == 0


def test_a_form_in_use_is_not_given_away() -> None:
    """The second operand of a call finds no room beside the first, which stood there before: it is counted."""
    with device("mm_store", SIZE) as dev:
        x, w = (ktpu.tensor(half(seed, 64, 64), dev) * 1.0 for seed in range(2))
        dev.execute(times(x, w, 4))
        forms, run = dev.runtime.forms, Run()
        before = forms.counters["staging_full"]
        for array, side in ((x, "a"), (w, "b")):
            forms.stage(run, array.contents, f"mx:8x1:{side}", SIZE, 4.0)
        places = [forms.form(run, t.contents, f"mx:8x1:{side}", SIZE) for t, side in ((x, "a"), (w, "b"))]
        assert [p.address >= STAGE for p in places] == [True, False]
        assert forms.counters["staging_full"] == before + 1
        assert used(dev) == SIZE


def test_a_program_of_fixed_places_beside_staged_forms() -> None:
    """They give way to it; a result in DRAM does not."""
    with device("mm_store") as dev:
        below = dev.runtime.memory.alloc(1 << 20, "below")
        x, w = (ktpu.tensor(half(seed, 64, 64), dev) * 1.0 for seed in range(2))
        first = called(dev, times(x, w, 4))
        del below
        assert used(dev) > 0
        program = ktpu.compile(ktpu.matmul(half(2, 64, 64), half(3, 64, 64), gm=8, gn=4, nk=1), dev.machine)
        assert program.schedule.buffers["a"].address >= STAGE
        assert not dev.run(program.artifact).failed
        assert used(dev) == 0
        again = called(dev, times(x, w, 4))
        assert again.bits() == first.bits()
        assert again.rose["quantised"] == 1


def test_a_span_of_a_machine_has_no_staging_store() -> None:
    """Operands stand in DRAM, and nothing is copied or counted."""
    dev = ktpu.TensorDevice("part", ModelTransport(description("mm_store")), (0, 1 << 20))
    with dev:
        x, w = (ktpu.tensor(half(seed, 64, 64), dev) for seed in range(2))
        found = called(dev, times(x, w, 4))
    assert found.rose == {**NOTHING, "packed": 2, "uploads": 2}
    assert found.staged == 0

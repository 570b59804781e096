# SPDX-License-Identifier: Apache-2.0
"""Attention as bands, conversions and places: counters, residency, the largest shape (docs/spec/kernels.md 5.4-5.6)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import kernel_cases as kc
import ktpu
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language.lower import lower
from kohakutpu.kernels.trace import Trace
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import Schedule
from kohakutpu.schedule.lifetimes import Life
from kohakutpu.schedule.requantise import Requantise, ToRows
from kohakutpu.tensor import Call
from ktpu.compiling import planned, scheduled

pytestmark = pytest.mark.unit

GRANULES = "mm_store"
"""A machine whose mover transposes granules."""
CORES = "mm_mesh"
"""One whose vector cores do."""
HEADS = 2
WORD = 32


def traced(heads: int, lq: int, lkv: int, dk: int, dv: int, **knobs: Any) -> Trace:
    """The kernel at these extents, without operands."""
    shapes = {"q": (heads, lq, dk), "k": (heads, lkv, dk), "v": (heads, dv, lkv)}
    return lower(lib.flash_attention.trace(**knobs).extents(shapes))


def bands(schedule: Schedule, machine: MachineSpec) -> dict[str, int]:
    """Compute bands by engine, and the counters of the plan."""
    compute = [b for b in schedule.bands if b.role != "relayout"]
    by_engine = {e: sum(b.engine == e for b in compute) for e in ("MG", "VC")}
    return {**planned(schedule), **by_engine, "dispatches": len(compute)}


@pytest.mark.parametrize("machine", [GRANULES, CORES])
@pytest.mark.parametrize("blocks", range(1, 9))
def test_conversions_of_a_key_block(blocks: int, machine: str) -> None:
    """One quantised and two granule conversions a key block on either engine, 4b+2 bands, nothing by the host."""
    spec = ktpu.machine(machine)
    found = bands(scheduled(traced(HEADS, 64, 64 * blocks, 64, 64, block=64), spec), spec)
    assert (found["quantised"], found["relayouts_device"], found["relayouts"]) == (blocks, 2 * blocks, 0)
    assert found["dispatches"] == 4 * blocks + 2
    assert found["MG"] == 2 * blocks


@pytest.mark.parametrize(("queries", "keys", "lkv"), [(1, 77, 128), (2, 77, 128), (3, 130, 256), (1, 64, 64)])
def test_bands_of_cross_attention(queries: int, keys: int, lkv: int) -> None:
    """A query block pays 4 bands a key block with keys in it, and one weights conversion; padding costs nothing."""
    spec = ktpu.machine(GRANULES)
    found = bands(scheduled(traced(HEADS, 64 * queries, lkv, 64, 64, block=64, keys=keys), spec), spec)
    blocks = -(-keys // 64)
    # a masked first block needs no start values and one band less; a store of the result ends each query block
    masked = keys % 64 > 0
    assert found["dispatches"] == queries * (4 * blocks + (0 if masked else 2))
    assert found["quantised"] == queries * blocks
    assert found["relayouts_device"] == queries * 2 * blocks
    assert found["relayouts"] == 0


# ---------------------------------------------------------------------------------------------------------- residency


def words(result: Any) -> tuple[int, int]:
    """Words read from DRAM and from the staging store, as the memory agent counts them."""
    return sum(r.dram_words[0] for r in result.rounds), sum(r.stage_words[0] for r in result.rounds)


def placed(call: Call, tier: str) -> Call:
    """The call with K and V in ``tier``."""
    values = call.trace.graph.values
    values.update({n: replace(values[n], tier=tier) for n in ("k", "v")})
    return call


@pytest.mark.parametrize("queries", [1, 3])
def test_keys_and_values_in_the_staging_store(queries: int) -> None:
    """Each query block reads K and V once; in the staging store none of that is left for DRAM, and no bit changes."""
    operands = kc.flash_operands(kc.Draw("residency"), 1, 64 * queries, 64, 64, 64)
    call = ktpu.call(lib.flash_attention, *operands.values(), block=64, qblock=64)
    device = ktpu.open(f"model:{GRANULES}")
    results, reads, size = [], [], 0
    for tier in ("dram", "l2"):
        compiled = ktpu.compile(placed(call, tier), ktpu.machine(GRANULES))
        result = device.run(compiled.artifact)
        assert not result.failed, result.problems()
        (o,) = compiled.artifact.outputs
        results.append(device.read(o.address, o.nbytes))
        reads.append(words(result))
        size = sum(compiled.schedule.buffers[n].nbytes for n in ("k", "v"))
    device.close()
    assert results[0] == results[1]
    assert reads[0][0] - reads[1][0] == reads[1][1] - reads[0][1] == queries * size // WORD


# -------------------------------------------------------------------------------------------------------- large shape


def together(schedule: Schedule, lives: Mapping[str, Life], stem: str) -> int:
    """Most values called ``stem`` or ``stem.n`` that are alive in one step."""
    ends: list[tuple[int, int]] = []
    for name in schedule.buffers:
        if name == stem or (name.startswith(f"{stem}.") and ":" not in name):
            ends += [(lives[name].first, 1), (lives[name].last + 1, -1)]
    most = count = 0
    for _, change in sorted(ends):
        count += change
        most = max(most, count)
    return most


def planned_decoder(side: int) -> tuple[Schedule, float]:
    """The mid attention of the image decoder over ``side`` queries and keys, and its CPU seconds."""
    start = time.process_time()
    schedule = scheduled(traced(1, side, side, 512, 512, block=128, qblock=512), ktpu.machine(GRANULES))
    return schedule, time.process_time() - start


def check_decoder(schedule: Schedule, side: int) -> int:
    """One score tile at a time, and temps that do not grow with the number of blocks; the DRAM bytes they take."""
    blocks = (side // 512) * (side // 128)
    (scores,) = {n.split(":")[0].split(".")[0] for n in schedule.buffers} & {"t3"}
    tiles = [b for n, b in schedule.buffers.items() if n.split(".")[0] == scores and ":" not in n]
    assert len(tiles) == blocks
    assert {b.shape for b in tiles} == {(512, 128)}
    assert together(schedule, schedule.lives, scores) == 1
    conversions = schedule.conversions
    assert sum(isinstance(c, Requantise) for c in conversions) == blocks
    assert sum(isinstance(c, ToRows) for c in conversions) == 2 * blocks
    temps = sorted((b.address, b.address + b.nbytes) for b in schedule.buffers.values() if b.role == "temp")
    taken = end = 0
    for first, last in temps:
        if first < 1 << 39 and last > end:
            taken += last - max(first, end)
            end = last
    return taken


def test_decoder_attention_reuses_its_temps() -> None:
    """Four times the blocks, the same room in DRAM."""
    small, large = (check_decoder(planned_decoder(side)[0], side) for side in (512, 1024))
    assert large == small
    assert large < 4 << 20


@pytest.mark.slow
def test_decoder_attention_at_full_size() -> None:
    """16,384 queries and keys: 32 x 128 blocks, one score tile at a time, temps in a few MiB."""
    schedule, seconds = planned_decoder(16_384)
    taken = check_decoder(schedule, 16_384)
    print(f"{len(schedule.bands)} bands, {seconds:.1f} s, temps take {taken} bytes of DRAM")
    assert taken < 4 << 20

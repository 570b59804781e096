# SPDX-License-Identifier: Apache-2.0
"""The mover of the reference model and the word-by-word witness side by side, fed with the same registers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from kohakubench.model_rig import description
from kohakubench.mover_witness import MoverWitness
from kohakutpu.isa import mover as isa
from kohakutpu.isa.generated import MoverFault
from kohakutpu.model.machine import Machine
from kohakutpu.model.memory import Image
from kohakutpu.walks import Dim, Walk

WORD = 32
STAGE = 1 << 39
SRC, DST = 0x1000, STAGE | 0x8000
"""Where the moves of the tests read and write."""

DRAM_BYTES, STAGE_BYTES = 1 << 20, 1 << 17


class Pair:
    """A machine whose mover is commanded through AUX_CFG, and its witness.

    Both memories start with the same random words in ``filled`` bytes of DRAM and staging store.
    """

    def __init__(self, seed: int = 1, *, mesh: int = 0, granule: bool = True, filled: int = 1 << 16) -> None:
        self.mesh = mesh << 36
        self._open = False
        self.m = Machine(
            description(
                mesh_id=mesh,
                dram_bytes=DRAM_BYTES,
                stage_bytes=STAGE_BYTES,
                features=("xform_granule",) if granule else (),
            )
        )
        self.w = MoverWitness(mesh, DRAM_BYTES, STAGE_BYTES, granule)
        self._dram, self._stage = Image(DRAM_BYTES), Image(STAGE_BYTES)
        rng = np.random.default_rng(seed)
        for base in (self.mesh, self.mesh | STAGE):
            self.store(base, rng.integers(0, 256, filled, dtype=np.uint8).tobytes())

    def store(self, address: int, data: bytes) -> None:
        """Whole words of both memories; the rest of the last one is zeroed."""
        data += bytes(-len(data) % WORD)
        self.m.write_mem(address, data)
        for at in range(0, len(data), WORD):
            self.w.memory[address + at] = int.from_bytes(data[at : at + WORD], "little")
            self.w.touched.add(address + at)

    def fail(self, address: int) -> None:
        """Let the bus fail at a DRAM word, for reads and writes."""
        self.m.agent.fail_bus(address & (1 << 36) - 1, WORD)
        self.w.bad_reads.add(address)
        self.w.bad_writes.add(address)

    def send(self, writes: Iterable[tuple[int, int]]) -> None:
        """Register writes, through the control window of the machine."""
        for offset, value in writes:
            assert self.m.host_write(self.m.register_address("AUX_CFG", offset // 8), value) == 0
            self.w.write(offset, value)

    def run(self, writes: Iterable[tuple[int, int]], fault: int | None = MoverFault.F_NONE) -> None:
        """A move on both, compared; `fault` None leaves the outcome open."""
        self.send(writes)
        self.compare()
        assert fault is None or self.w.fault == fault, (MoverFault(self.w.fault).name, MoverFault(fault or 0).name)

    def compare(self) -> None:
        """Status, fault record, traffic and every byte of memory."""
        value, _ = self.m.host_read(self.m.register_address("AUX_STAT"))
        assert value == self.w.moves << 40 | self.w.fault << 4 | self.w.nonfinite << 2 | self.w.sticky << 1
        events = [(e.code, e.addr, e.cls) for e in self.m.agent.faults]
        assert events == [(code, address, 2) for code, address in self.w.recorded]
        # how far reads and writes had come when the bus failed is open
        self._open |= self.w.fault == MoverFault.F_AXI
        if not self._open:
            counts = {tier: [self.w.reads[tier], self.w.writes[tier]] for tier in ("dram", "stage")}
            assert self.m.agent.counts == counts, (self.m.agent.counts, counts)
        for address in self.w.touched:
            image = self._stage if address & STAGE else self._dram
            data = self.w.memory[address].to_bytes(WORD, "little")
            image.write(address & 0xFFFF_FFFF, np.frombuffer(data, dtype=np.uint8))
        self.w.touched.clear()
        for name, got, want in (
            ("dram", self.m.agent.dram, self._dram),
            ("staging", self.m.agent.stage, self._stage),
        ):
            where = got.first_difference(want)
            assert where is None, f"{name} differs at {where:#x}"


def random_walk(rng: random.Random, base: int, size: int, *, element: int = WORD, most: int = 400) -> Walk:
    """A legal walk of accesses of `element` bytes inside [base, base + size), often with bounded axes."""
    while True:
        ndim = rng.randint(1, 6)
        counts = [rng.choice((0, 1, 1, 2, 3, 5, 7)) for _ in range(ndim)]
        if rng.random() < 0.3:
            counts[-1] = rng.randint(1, 90)
        strides = [WORD * rng.choice((0, 1, -1, 2, rng.randint(-60, 60))) for _ in range(ndim)]
        spans = [(max(c, 1) - 1) * s for c, s in zip(counts, strides, strict=True)]
        low, high = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)
        walk = Walk(0, tuple(Dim(c, s) for c, s in zip(counts, strides, strict=True)))
        room = size - (high - low) - element
        if room < 0 or walk.elements > most:
            continue
        at = base - low + WORD * rng.randint(0, room // WORD)
        if rng.random() < 0.5:
            return replace(walk, base=at)
        dims = [replace(d, axis=rng.randint(0, 3), step=rng.randint(-4, 4)) for d in walk.dims]
        windows = [(rng.randint(-8, 8), rng.choice((0, 0, rng.randint(1, 20)))) for _ in range(2)]
        return Walk(at, tuple(dims), (windows[0], windows[1]))


def longer(walk: Walk, than: Walk) -> Walk:
    """`walk` with an outermost stride-0 dimension where it would be too short for `than`."""
    if walk.elements >= than.elements:
        return walk
    dims = walk.dims[1:] if len(walk.dims) == 6 else walk.dims
    short = replace(walk, dims=dims)
    return replace(walk, dims=(Dim(-(-than.elements // short.elements), 0), *dims))


def random_move(rng: random.Random, source: int, destination: int, size: int = 1 << 15) -> isa.Writes:
    """A legal move of a random mode between two disjoint regions of `size` bytes."""
    to = random_walk(rng, destination, size)
    kind = rng.choice(("copy", "copy", "fill", "generate", "gather"))
    if kind == "fill":
        width = rng.randint(0, 2)
        return isa.fill(to, rng.getrandbits(32), ewidth=width)
    if kind == "generate":
        return isa.generate(to, rng.getrandbits(64))
    if kind == "copy":
        return isa.copy(
            longer(random_walk(rng, source, size), to), to, pad=rng.getrandbits(32), ewidth=rng.randint(0, 2)
        )
    words = rng.randint(1, 5)
    rows = -(-to.elements // words)
    return isa.gather(source, source + size, rows, to, pitch=WORD * rng.randint(0, 3), words=words)


def words(pair: Pair, address: int, n: int) -> list[int]:
    """Words of the model's memory."""
    raw = pair.m.read_mem(address, WORD * n)
    return [int.from_bytes(raw[i : i + WORD], "little") for i in range(0, len(raw), WORD)]


def ctrl(mode: int, ewidth: int = 1) -> tuple[int, int]:
    """The CTRL write that starts a move."""
    return isa.write("CTRL", mode=mode, ewidth=ewidth, go=1)


def index_vector(pair: Pair, address: int, values: list[int]) -> None:
    """Store 32-bit indices."""
    pair.store(address, np.array(values, dtype="<u4").tobytes())

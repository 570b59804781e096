# SPDX-License-Identifier: Apache-2.0
"""Relayout bands on functional vector cores, for tests without a simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import vector
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.vector import PlainLink, VectorUnit
from kohakutpu.program import Image, Instruction, Run, encode
from kohakutpu.program.cost import kernel_cycles
from kohakutpu.program.relayout import relayout_cycles, relayout_program
from kohakutpu.program.vector_words import Word
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.relayout import RelayoutBand

SOURCE, TARGET, GUARD = 0x10_0000, 0x80_0000, 512


def codes(shape: tuple[int, int], seed: int = 0) -> npt.NDArray[np.float16]:
    """FP16 of any bit pattern but signalling NaNs, which no core loads unchanged."""
    bits = np.random.default_rng([seed, *shape]).integers(0, 1 << 16, shape, dtype=np.uint16)
    bits[(bits & 0x7C00) == 0x7C00] |= 0x0200
    return bits.view(np.float16)


def passed(array: npt.NDArray[np.float16], band: RelayoutBand) -> npt.NDArray[np.float16]:
    """What every code becomes: registers make signalling NaNs quiet, VSEL leaves one zero and one NaN."""
    bits = array.view(np.uint16).copy()
    nan = (bits & 0x7FFF) > 0x7C00
    if band.granules:
        bits[nan] |= 0x0200
    if not band.exact:
        bits[nan] = 0x7E00
        bits[(bits & 0x7FFF) == 0] = 0
    return bits.view(np.float16)


def spoil(core: VectorUnit, rng: np.random.Generator) -> None:
    """Leave every descriptor, register, predicate and L1 word as an unlucky program might."""
    for ad in range(8):
        core.execute(vector.set_base(ad, int(rng.integers(1 << 30)) << 5))
        for dim in range(4):
            core.execute(vector.set_dimension(ad, dim, int(rng.integers(-4096, 4096)) * 32, int(rng.integers(1, 9))))
    core.core.v[:] = rng.integers(0, 1 << 24, core.core.v.shape, dtype=np.uint32)
    core.core.s[:] = rng.integers(0, 1 << 24, core.core.s.shape, dtype=np.uint32)
    core.core.p[:] = rng.integers(0, 2, core.core.p.shape).astype(bool)
    core.core.memory.l1[:] = rng.integers(0, 256, core.core.memory.l1.shape, dtype=np.uint8)


def execute(
    band: RelayoutBand, raw: bytes, size: int, machine: MachineSpec, cores: int, budget: int = 128, seed: int = 0
) -> bytes:
    """Bytes of the target, ``size`` long, that ``cores`` spoilt cores make of the source ``raw``.

    The target is preset to 0xA5; guards around it have to stay, and no sticky error may be raised. The analytic cycles
    of every program have to be those counted while its payloads execute.
    """
    image = PlainLink().image
    image.write(SOURCE, np.frombuffer(raw, dtype=np.uint8))
    image.write(TARGET - GUARD, np.full(size + 2 * GUARD, 0xA5, dtype=np.uint8))
    rng = np.random.default_rng(seed)
    units: dict[int, list[int]] = {}
    for (number, _), unit in deal(band.instances(), range(cores)).items():
        units.setdefault(unit, []).append(number)
    for unit, numbers in units.items():
        link = PlainLink(pos=(unit + 1, 0))
        link.image = image
        core = VectorUnit(link)
        spoil(core, rng)
        work = band.work(tuple(numbers), SOURCE, TARGET)
        program = relayout_program(unit, work, machine, budget)
        counted = _run(core, list(program), machine)
        assert counted == relayout_cycles(work, machine)
        assert not link.errors
        assert all(len(p) <= budget for p in program.passes)
    around = image.read(TARGET - GUARD, size + 2 * GUARD)
    assert set(around[:GUARD]) == {0xA5}
    assert set(around[GUARD + size :]) == {0xA5}
    return bytes(around[GUARD : GUARD + size].tobytes())


def _run(core: VectorUnit, program: list[Instruction], machine: MachineSpec) -> int:
    """Execute; cycles by section 14.2, a payload each and the words of every RUN."""
    loaded: dict[int, Word] = {}
    spent = 0
    for ins in program:
        done: Any = core.execute(encode(ins, machine), last=False)
        assert not done.fault, (ins, hex(done.result))
        if isinstance(ins, Image):
            loaded[ins.at] = ins.word
        spent += kernel_cycles(loaded, ins.pc, machine) if isinstance(ins, Run) else 1
    return spent

# SPDX-License-Identifier: Apache-2.0
"""Analytic cycles of unit programs, and what they take at most (docs/spec/compiler.md 14.2); tag ``model``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.columns import RUN, Columns
from kohakutpu.program.instructions import TILE_BUFFER, Desc, Dims, Drain, Fill, Gemm, Image, Instruction, Run
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
    Imm,
    Loop,
    Seti,
    Setmode,
    Setvl,
    Vbcast,
    Vcvt,
    Vdrain,
    Vfill,
    Vld,
    Vred,
    Vshuf,
    Vst,
    Word,
)

LAYER = "L1"

FILL_CYCLES_PER_ENTRY = 4
_ALAT = 18
"""Longest latency of a lane (docs/spec/vector.md 1)."""
_LANES_EMPTY = 5 * (_ALAT + 1) + 1

ISSUED = (Setvl, Setmode, Seti, Bar, Vfill, Vdrain)
"""Words of a kernel that cost their issue alone; an immediate is part of its VSETI."""


def cycles(ins: Instruction, machine: MachineSpec) -> int:
    """Cycles of one instruction with nothing hidden; a RUN needs its kernel, see :func:`at_most`."""
    if isinstance(ins, Desc | Dims | Image):
        return 1
    match ins:
        case Fill(n=n):
            return FILL_CYCLES_PER_ENTRY * n
        case Gemm():
            macs = 4 * ins.gm * 4 * ins.gn * machine.kblock * up(ins.nk, machine.k_per_issue)
            return cdiv(macs, machine.macs_per_cycle)
        case Drain(n=n):
            # a sub-tile in accumulator width is two granules
            return 2 * n if ins.buf == TILE_BUFFER else n
    raise TypeError(f"{ins!r} has no cycles of its own")


def kernel_cycles(words: Mapping[int, Word], pc: int, machine: MachineSpec) -> int:
    """Analytic cycles of one RUN of the kernel in instruction memory, VHALT included."""
    return _executed(words, pc, machine, lambda word, chunks: 1 if isinstance(word, ISSUED) else chunks)


def kernel_at_most(words: Mapping[int, Word], pc: int, machine: MachineSpec) -> int:
    """Cycles no RUN of the kernel exceeds beside the latency of its memory (docs/spec/vector.md 16.2, column Bound).

    Every word is charged as if it read the result before it, every walk as the longest there is.
    """

    def bound(word: Word, chunks: int) -> int:
        match word:
            case Alu():
                return chunks + _ALAT + 3
            case Vld(dtype=dtype):
                return (4 if dtype == "FP16" else 8) * chunks + 5 + _LANES_EMPTY
            case Vst(dtype=dtype):
                return (3 if dtype == "FP16" else 4) * chunks + 5 + _LANES_EMPTY
            case Vcvt() | Vshuf() | Vbcast():
                return 3 * chunks + 5 + _LANES_EMPTY
            case Vred():
                return 2 * chunks + 9 * (_ALAT + 1) + 10 + _LANES_EMPTY
            case Setmode():
                return 4 + _LANES_EMPTY
            case Vfill():
                return 3 * machine.vc_walk_max + 10
            case Vdrain():
                return 5 * machine.vc_walk_max + 8
        return 6

    return _executed(words, pc, machine, bound)


def executed_words(words: Mapping[int, Word], pc: int, machine: MachineSpec) -> Iterator[tuple[Word, int]]:
    """The words one RUN executes, each with the chunks of the vector length it finds.

    A loop comes once per iteration its scalar register was set to; the immediate of a VSETI belongs to it.
    """
    length, scalars = machine.vlmax, dict[str, int]()
    at, repeat, left, top, end = pc, False, 0, 0, -1
    while at in words:
        word = words[at]
        following = at + 1
        match word:
            case Seti(to):
                follower = words.get(at + 1)
                scalars[to] = follower.value if isinstance(follower, Imm) else 0
                following = at + 2
            case Setvl(sa):
                length = scalars.get(f"S{sa}", length)
            case Loop(sa, body):
                repeat, left, top, end = True, scalars.get(f"S{sa}", 1), at + 1, at + 1 + body
        yield word, cdiv(length, machine.slices)
        if isinstance(word, Halt):
            return
        if repeat and following == end:
            left -= 1
            repeat = left > 0
            following = top if repeat else end
        at = following


def _executed(words: Mapping[int, Word], pc: int, machine: MachineSpec, price: Callable[[Word, int], int]) -> int:
    """Sum of ``price(word, chunks of the vector length)`` over the words one RUN executes."""
    return sum(price(word, chunks) for word, chunks in executed_words(words, pc, machine))


@dataclass
class Core:
    """Instruction memory of a core while a program is read; ``bounds`` are those of its kernels, by first word."""

    memory: dict[int, Word] = field(default_factory=dict)
    bounds: dict[int, int] = field(default_factory=dict)

    def load(self, image: Image) -> None:
        """Write one word."""
        self.memory[image.at] = image.word
        self.bounds.clear()

    def run(self, pc: int, machine: MachineSpec) -> int:
        """The bound of the kernel at ``pc``, see :func:`kernel_at_most`."""
        if pc not in self.bounds:
            self.bounds[pc] = kernel_at_most(self.memory, pc, machine)
        return self.bounds[pc]


def at_most(instructions: Iterable[Instruction], machine: MachineSpec, core: Core | None = None) -> int:
    """Cycles of a program, nothing hidden and every RUN at its bound; a driver derives its patience from it.

    Args:
        core: the core so far; advanced in place.
    """
    core = Core() if core is None else core
    spent = 0
    if isinstance(instructions, Columns) and instructions.repeated:
        runs: list[int] = instructions.at[instructions.ad == RUN].tolist()
        return len(instructions) - len(runs) + sum(runs.count(pc) * core.run(pc, machine) for pc in set(runs))
    for ins in instructions:
        if isinstance(ins, Run):
            spent += core.run(ins.pc, machine)
        else:
            if isinstance(ins, Image):
                core.load(ins)
            spent += cycles(ins, machine)
    return spent

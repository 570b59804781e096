# SPDX-License-Identifier: Apache-2.0
"""What a unit does while it runs its instructions of a band, for the mesh-level model (docs/spec/compiler.md 14.2).

A cluster takes its instructions in order: a FILL waits for the sweeps that read its half of L1, a sweep for the fills
before it, one sweep can wait behind a running one, an explicit DRAIN waits for all sweeps. A vector core starts fills
and drains and goes on; VBAR and VHALT wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import prod

from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.cost import ISSUED, cycles, executed_words
from kohakutpu.program.instructions import Desc, Dims, Drain, Fill, Gemm, Image, Instruction, Run
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
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

_ALAT = 14
"""Cycles from the last operand of a lane to its result in a register, of the figures of 16.2."""
_HALF_RATE = ("SUMSQ", "DOT", "EXPSUM")


@dataclass(frozen=True)
class Payload:
    """Take the next payload from the orchestrator."""


@dataclass(frozen=True)
class Read:
    """Start to fetch words from memory."""

    words: int


@dataclass(frozen=True)
class Write:
    """Start to send words in bursts to memory, or to unit ``to``."""

    words: int
    to: str = ""


@dataclass(frozen=True)
class Work:
    """A word of a vector kernel takes ``cycles``, in ``beats`` of which lanes or control do something."""

    cycles: int
    beats: int


@dataclass(frozen=True)
class Sweep:
    """Start a sweep that ends in ``cycles`` behind the ones before it and hands ``words`` to ``to``.

    Args:
        reads: halves of L1 it reads.
        words: results, which leave one after another in the last ``emitting`` cycles, its last K block.
    """

    cycles: int
    reads: frozenset[tuple[str, int]]
    words: int = 0
    emitting: int = 0
    to: str = ""


@dataclass(frozen=True)
class Wait:
    """Wait for everything started."""


@dataclass(frozen=True)
class Free:
    """Wait for the sweeps that read a half of L1, by side and bank."""

    half: tuple[str, int]


@dataclass(frozen=True)
class Arrived:
    """Wait for all words fetched."""


Action = Payload | Read | Write | Work | Sweep | Wait | Free | Arrived


@dataclass
class _Kernel:
    """What a vector core holds of the kernel it is to run."""

    words: dict[int, Word] = field(default_factory=dict)
    bounds: dict[int, dict[int, int]] = field(default_factory=dict)

    def walk(self, ad: int) -> int:
        """Words of the walk of a descriptor."""
        return prod(self.bounds.get(ad, {}).values())


def actions(instructions: Iterable[Instruction], machine: MachineSpec) -> Iterator[Action]:
    """What a unit does, in order; nothing is in the instruction memory of a vector core at the start."""
    kernel = _Kernel()
    for ins in instructions:
        yield Payload()
        match ins:
            case Fill():
                yield Free((ins.side, ins.bank))
                yield Read(ins.n * machine.mx_entry_bytes // machine.word_bytes)
                yield Arrived()
            case Gemm():
                halves = frozenset({("a", ins.abank), ("b", ins.bbank)})
                words = ins.gm * ins.gn if ins.emit else 0
                taken = cycles(ins, machine)
                yield Sweep(taken, halves, words, taken // ins.nk, ins.to)
            case Drain(fuse=0):
                yield Wait()
                yield Write(cycles(ins, machine), ins.to)
                yield Wait()
            case Drain():
                yield Wait()
            case Image():
                kernel.words[ins.at] = ins.word
            case Dims():
                kernel.bounds.setdefault(ins.ad, {})[ins.dim] = ins.bound or 1
            case Run():
                yield from _run(kernel, ins, machine)
            case Desc():
                pass
    yield Wait()


def _run(kernel: _Kernel, run: Run, machine: MachineSpec) -> Iterator[Action]:
    before: Word | None = None
    for word, chunks in executed_words(kernel.words, run.pc, machine):
        match word:
            case Vfill(ad=ad):
                yield Read(kernel.walk(ad))
            case Vdrain(ad=ad):
                yield Write(kernel.walk(ad))
            case Bar():
                yield Arrived()
            case Halt():
                yield Wait()
        yield Work(word_cycles(word, chunks, before), 1 if isinstance(word, ISSUED) else chunks)
        before = word


def word_cycles(word: Word, chunks: int, before: Word | None) -> int:
    """Cycles of one word of a kernel behind the word ``before``: column *Goal* of docs/spec/vector.md 16.2."""
    waits = _ALAT if written(before) & read(word) else 0
    match word:
        case Alu():
            return chunks + (waits + 3 if waits else 1)
        case Vred(kind="ANY" | "ALL"):
            return _ALAT + 8
        case Vred(kind=kind):
            return (2 if kind in _HALF_RATE else 1) * chunks + 9 * (_ALAT + 1) + 10
        case Vld(dtype=dtype) | Vst(dtype=dtype):
            return waits + (1 if dtype == "FP16" else 2) * chunks + 4
        case Vbcast(to=to) if to.startswith("S"):
            return waits + 4
        case Vcvt() | Vshuf() | Vbcast():
            return waits + chunks + 4
        case Seti() | Setvl() | Setmode() | Loop():
            return 2
    return 1


def written(word: Word | None) -> frozenset[str]:
    """The register a lane word writes."""
    match word:
        case Alu(compare=True, pr=pr):
            return frozenset({f"p{pr}"})
        case Alu(vd=vd) | Vld(vd=vd) | Vcvt(vd=vd) | Vshuf(vd=vd):
            return frozenset({f"v{vd}"})
        case Vred(sd=sd):
            return frozenset({f"S{sd}"})
        case Vbcast(to=to):
            return frozenset({to})
    return frozenset()


def read(word: Word) -> frozenset[str]:
    """Registers a lane word reads, the predicate it is under included."""
    match word:
        case Alu(pr=pr, where=where):
            return frozenset(word.reads.values()) | ({f"p{pr}"} if where else frozenset())
        case Vst(vd=vd):
            return frozenset({f"v{vd}"})
        case Vcvt(va=va):
            return frozenset({f"v{va}"})
        case Vshuf(va=va, sk=sk):
            return frozenset({f"v{va}", f"S{sk}"})
        case Vbcast(of=of):
            return frozenset({of})
    return frozenset()

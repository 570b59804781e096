# SPDX-License-Identifier: Apache-2.0
"""Rewriting a buffer in another byte order on a vector core: image, descriptors, runs (docs/spec/compiler.md 7.2, 7.3).

A RUN fills one walk into L1 and drains another out of it, so whole words change places. With ``granules`` every group
of four consecutive L1 words is also a 4x4 array of 8-byte granules that is transposed on the way::

    first RUN:  VSETI VL, rotations; VSETVL; VSETMODE FLAT; lane groups; then as every RUN
    every RUN:  VFILL; VBAR; per 32 words: 4 VLD, 16 rotations into place, 4 VST; VDRAIN; VHALT

Words 4n+j of eight groups lie in one register each, a group a chunk. The lane groups 1..3 are predicates P1..P3, or
vectors v9..v11 for VSEL where the machine has no predicated VSHUF. They are made once, on the core: eight lanes of 0.0
and eight of 1.0, loaded from two FP32 words, are bit 1 of the group; rotated by a group they give the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kohakutpu.errors import CompileError
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.cost import kernel_cycles
from kohakutpu.program.instructions import Desc, Dims, Image, Instruction, Pass, Run, UnitProgram
from kohakutpu.program.vector_check import check_image
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
    Imm,
    Seti,
    Setmode,
    Setvl,
    Vdrain,
    Vfill,
    Vld,
    Vshuf,
    Vst,
    Word,
)
from kohakutpu.program.vector_work import Walk, check_footprint

LAYER = "L1"

GROUP = 4
"""Words of a granule array, and granules of a word."""

_LOCAL, _FILL, _DRAIN, _HALVES = range(4)
"""Descriptors: loads and stores of the words, the fill, the drain, and the two words the lane groups come from."""
_STRIDE_LIMIT = 1 << 17
_BOUND_LIMIT = 65535


@dataclass(frozen=True)
class RelayoutWork:
    """The rewriting of one core.

    Args:
        granules: transpose the granules of every four words.
        fill, drain: walks of a RUN over source and target, of equally many words.
        runs: per RUN, the byte address of its fill and of its drain.
    """

    granules: bool
    fill: Walk
    drain: Walk
    runs: tuple[tuple[int, int], ...]

    @property
    def words(self) -> int:
        """Words of a RUN."""
        return self.fill.words


def block_words(machine: MachineSpec) -> int:
    """Words the registers transpose at once: four registers of the longest vector."""
    return GROUP * (machine.vlmax // machine.slices)


def footprint(words: int, granules: bool, machine: MachineSpec) -> int:
    """L1 words of a RUN; the transpose works in place on whole blocks."""
    return up(words, block_words(machine)) if granules else words


def walk_problem(walk: Walk, machine: MachineSpec) -> str:
    """Why a descriptor cannot make ``walk``, "" if it can."""
    if len(walk.dims) > machine.vc_dims:
        return f"a walk of {len(walk.dims)} dimensions; a descriptor has {machine.vc_dims}"
    if not 1 <= walk.words <= machine.vc_walk_max:
        return f"a walk of {walk.words} words; a fill or drain moves 1..{machine.vc_walk_max}"
    for stride, bound in walk.dims:
        if not 1 <= bound <= _BOUND_LIMIT:
            return f"a dimension of {bound}; a bound is 1..{_BOUND_LIMIT}"
        if stride % machine.word_bytes or not -_STRIDE_LIMIT <= stride < _STRIDE_LIMIT:
            return (
                f"a stride of {stride} bytes; strides are multiples of {machine.word_bytes} in "
                f"{-_STRIDE_LIMIT}..{_STRIDE_LIMIT - 1}"
            )
    return ""


def check_relayout(work: RelayoutWork, machine: MachineSpec) -> None:
    """Refuse what a core cannot hold or walk.

    Raises:
        CompileError: naming the walk, the value, the limit and the fix.
    """
    for name, walk in (("fill", work.fill), ("drain", work.drain)):
        problem = walk_problem(walk, machine)
        if problem:
            raise CompileError(f"relayout {name}: {problem}")
    if work.drain.words != work.words:
        raise CompileError(f"relayout: {work.words} words are filled, {work.drain.words} drained; make them equal")
    if work.granules and work.words % GROUP:
        raise CompileError(f"relayout: {work.words} words; granules are transposed in groups of {GROUP} words")
    check_footprint(footprint(work.words, work.granules, machine), machine)
    for number, bases in enumerate(work.runs):
        for at in bases:
            if at % machine.word_bytes:
                raise CompileError(
                    f"relayout: run {number} starts at {at:#x}; a walk starts at a multiple of "
                    f"{machine.word_bytes} bytes"
                )


# -------------------------------------------------------------------- words


def _rotation(granules: int) -> int:
    """Scalar register that holds a rotation; S0 holds VL, a multiple of the chunk, which rotates by nothing."""
    return granules % GROUP


def _prologue(work: RelayoutWork, machine: MachineSpec) -> list[Word]:
    """Vector length and topology; for granules also the rotations and the lane groups."""
    out: list[Word] = [Seti("S0"), Imm(machine.vlmax)]
    if work.granules:
        for granules in range(1, GROUP):
            out += [Seti(f"S{granules}"), Imm(granules * machine.slices // GROUP)]
    out += [Setvl(0), Setmode("FLAT")]
    if not work.granules:
        return out
    # the upper word of the pair ends up as lanes 8..15 of every chunk
    out += [Alu("VMOV", 0, "K0"), Vst(0, _HALVES, 0, "FP32"), Alu("VMOV", 1, "K1"), Vst(1, _HALVES, 1, "FP32")]
    out += [Vld(0, _HALVES, 0, "FP32"), Vshuf(1, 0, _rotation(1))]
    if "vshuf_pred" in machine.features:
        return [
            *out,
            Alu("VCMPGT", 0, "v1", "v0", pr=1),
            Alu("VMUL", 2, "v1", "v0"),
            Alu("VCMPEQ", 0, "v2", "K1", pr=2),
            Alu("VCMPLT", 0, "v1", "v0", pr=3),
        ]
    return [
        *out,
        Alu("VMUL", 10, "v1", "v0"),
        Alu("VSUB", 9, "v1", c="v10"),
        Alu("VSUB", 11, "v0", c="v10"),
    ]


def _block(first: int, predicated: bool) -> list[Word]:
    """32 words from L1 word ``first`` on, in place: v0..v3 in, v4..v7 out, v12..v15 on the way to a VSEL."""
    lanes = range(GROUP)
    out: list[Word] = [Vld(j, _LOCAL, first + j) for j in lanes]
    out += [Vshuf(4 + i, 0, _rotation(i)) for i in lanes]
    for j in range(1, GROUP):
        if predicated:
            out += [Vshuf(4 + i, j, _rotation(i - j), pr=j, where="set") for i in lanes]
        else:
            out += [Vshuf(12 + i, j, _rotation(i - j)) for i in lanes]
            out += [Alu("VSEL", 4 + i, f"v{12 + i}", f"v{4 + i}", f"v{8 + j}") for i in lanes]
    return [*out, *(Vst(4 + i, _LOCAL, first + i) for i in lanes)]


def relayout_image(work: RelayoutWork, machine: MachineSpec) -> tuple[list[Word], int]:
    """(the kernel, the word at which every RUN but the first starts).

    Registers and predicates outlive a RUN, so a later one starts behind the prologue; a permutation of words starts at
    word 0 every time (7.2).

    Raises:
        CompileError: what :func:`check_relayout` refuses, or a kernel longer than instruction memory.
        HazardError: the emitter broke its own rule.
    """
    check_relayout(work, machine)
    words = _prologue(work, machine)
    again = len(words) if work.granules else 0
    words += [Vfill(_FILL, 0), Bar()]
    if work.granules:
        predicated = "vshuf_pred" in machine.features
        for first in range(0, work.words, block_words(machine)):
            words += _block(first, predicated)
    words += [Vdrain(_DRAIN, 0), Halt()]
    if len(words) > machine.vc_imem:
        raise CompileError(
            f"a relayout kernel of {len(words)} words; instruction memory holds {machine.vc_imem}, "
            "move fewer words a run"
        )
    check_image(words, machine, [(0, work.words)])
    return words, again


# -------------------------------------------------------------------- program


def _descriptors(work: RelayoutWork, machine: MachineSpec) -> Iterator[Instruction]:
    """Descriptor writes ahead of the first RUN; walks of one register stay in the dimensions written here."""
    if work.granules:
        chunks = machine.vlmax // machine.slices
        yield Desc(_LOCAL, 0)
        yield Dims(_LOCAL, 0, GROUP, chunks)
        yield Desc(_HALVES, 0)
        yield Dims(_HALVES, 0, 1, 2)
        yield Dims(_HALVES, 1, 0, chunks)
    for ad, walk in ((_FILL, work.fill), (_DRAIN, work.drain)):
        for dim in range(machine.vc_dims):
            stride, bound = walk.dims[dim] if dim < len(walk.dims) else (0, 1)
            yield Dims(ad, dim, stride, bound)


def relayout_program(unit: int, work: RelayoutWork, machine: MachineSpec, budget: int) -> UnitProgram:
    """Program of one core, cut into passes of at most ``budget`` instructions.

    Raises:
        CompileError: what :func:`relayout_image` refuses, or no run at all.
    """
    if not work.runs:
        raise CompileError(f"unit VC{unit}: no run; deal it an instance or leave it out")
    words, again = relayout_image(work, machine)
    out: list[Instruction] = [Image(i, w) for i, w in enumerate(words)]
    out += _descriptors(work, machine)
    for number, (source, target) in enumerate(work.runs):
        out += [Desc(_FILL, source), Desc(_DRAIN, target), Run(again if number else 0)]
    return UnitProgram("VC", unit, tuple(Pass(tuple(out[i : i + budget])) for i in range(0, len(out), budget)))


def relayout_cost(work: RelayoutWork, machine: MachineSpec) -> tuple[int, int, int]:
    """(payloads ahead of the first RUN, modelled cycles of the first RUN, of every later one).

    Raises:
        CompileError: what :func:`relayout_image` refuses.
    """
    words, again = relayout_image(work, machine)
    memory = dict(enumerate(words))
    before = len(words) + sum(1 for _ in _descriptors(work, machine))
    return before, kernel_cycles(memory, 0, machine), kernel_cycles(memory, again, machine)


def relayout_cycles(work: RelayoutWork, machine: MachineSpec) -> int:
    """Analytic cycles of the program of one core (docs/spec/compiler.md 14.2): every payload, and every RUN's words."""
    before, first, later = relayout_cost(work, machine)
    return before + 2 * len(work.runs) + first + (len(work.runs) - 1) * later

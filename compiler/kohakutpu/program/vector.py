# SPDX-License-Identifier: Apache-2.0
"""Vector work to a kernel image, its descriptors and its runs (docs/spec/compiler.md 9.2 and 9.4).

``VSETI VL; constants; VSETVL; VSETMODE FLAT; steady operands .. VFILL ..; VBAR; per step VLD, chains, VST; VDRAIN;
VHALT``. A steady operand is one every step reads at the same place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from kohakutpu.chain import COMPARES, FOLDS, ROUND
from kohakutpu.errors import CompileError, EncodeError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.columns import Column, Columns
from kohakutpu.program.cost import kernel_cycles
from kohakutpu.program.instructions import Desc, Dims, Image, Instruction, Pass, UnitProgram
from kohakutpu.program.vector_check import check_image
from kohakutpu.program.vector_registers import SLOTS, Registers, allocate, broadcasts, by_compare
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
    Imm,
    Seti,
    Setmode,
    Setvl,
    Vbcast,
    Vcvt,
    Vdrain,
    Vfill,
    Vld,
    Vred,
    Vst,
    Word,
)
from kohakutpu.program.vector_work import LaneWork, Walk, check_work, step_words

LAYER = "L1"

_REDUCTIONS = {"row_max": "MAX", "row_sum": "SUM"}
_ALONE = COMPARES | FOLDS | {ROUND}
"""Operations that are never part of a chain group."""


@dataclass(frozen=True)
class _Item:
    """Words of one operation for the step in a place; ``mode`` is the topology they need, "" for any."""

    mode: str
    words: Callable[[int, int], list[Word]]


class _Kernel:
    """Builds the image of one piece of work."""

    def __init__(self, work: LaneWork, machine: MachineSpec) -> None:
        self.work = work
        self.machine = machine
        self.chain = work.chain
        self.regs: Registers = allocate(work, machine)
        self.fixed = int(work.moving)

    # -------------------------------------------------------------- operands

    def source(self, user: int, position: int, place: int) -> str:
        """Source text of an argument of an operation."""
        n = self.chain.nodes[user]
        arg = n.args[position]
        letter = SLOTS[n.op][1][position]
        constant = self.regs.constant.get(arg)
        text = constant or ""
        if constant is None and arg in self.regs.scalar and arg not in self.regs.vector:
            text = f"S{self.regs.scalar[arg][place]}"
        elif constant is None:
            text = f"v{self.regs.vector[arg][place]}"
        return self.readable(n.op, letter, text)

    def readable(self, op: str, letter: str, text: str) -> str:
        """``text``, refused if it is no vector register and this machine has no such source in the slot."""
        if text[0] != "v" and f"{letter}{text[0]}" not in self.machine.vc_const_sources:
            raise EncodeError(
                f"{op} reads {text} in slot {letter}; this machine takes constants in "
                f"{', '.join(sorted(self.machine.vc_const_sources))}, exchange the operands or store the constant"
            )
        return text

    def lane(self, node: int, place: int, chained: int | None = None) -> Alu:
        """The arithmetic word of a node; argument ``chained`` comes from the word before."""
        n = self.chain.nodes[node]
        name, letters = SLOTS[n.op]
        args = {}
        for position, slot in enumerate(letters):
            args[slot] = "C" if n.args[position] == chained else self.source(node, position, place)
        target = self.regs.vector[node][place] if node in self.regs.vector else 0
        return Alu(name, target, args["a"], args.get("b", ""), args.get("c", ""))

    # -------------------------------------------------------------- operations

    def items(self) -> Iterator[_Item]:
        """Everything a step does, in order."""
        yield from (self.load(k) for k, s in enumerate(self.work.streams) if not s.steady)
        written = [(k, x) for k, x in enumerate(self.chain.results) if not self.work.stores[k].again]
        stored = {r: [k for k, x in written if x == r] for r in self.chain.results}
        for r in sorted(set(self.chain.results)):
            if self.chain.nodes[r].op == "operand":
                yield from (self.store(k, r) for k in stored[r])
            elif self.chain.nodes[r].op == "const":
                raise CompileError(f"{self.work.stores[stored[r][0]].name} is a constant; fill it on the host")
        pending = list(self.regs.order)
        while pending:
            group = self.group(pending)
            del pending[: len(group)]
            yield self.grouped(group) if len(group) > 1 else self.single(group[0])
            yield from (self.store(k, group[-1]) for k in stored.get(group[-1], ()))

    def group(self, pending: list[int]) -> list[int]:
        """The operations at the head of ``pending`` that make one chain group; one operation alone if none do."""
        size, nodes = self.work.group, self.chain.nodes
        out = pending[:1]
        if size == 1 or nodes[out[0]].op in _ALONE or by_compare(self.chain, out[0]):
            return out
        for before, node in pairwise(pending[:size]):
            n = nodes[node]
            vectors = [a for a in n.args if a != before and a in self.regs.vector]
            if (
                before not in self.regs.running
                or before in self.chain.results
                or before not in n.args
                or vectors
                or n.op in _ALONE
                or by_compare(self.chain, node)
            ):
                return pending[:1]
            out.append(node)
        return out if len(out) == size else pending[:1]

    def grouped(self, nodes: list[int]) -> _Item:
        """A chain group."""
        chained = [None, *nodes[:-1]]
        return _Item(
            f"D{len(nodes)}",
            lambda place, _: [self.lane(n, place, c) for n, c in zip(nodes, chained, strict=True)],
        )

    def single(self, node: int) -> _Item:
        """An operation of its own."""
        n = self.chain.nodes[node]
        if n.op in FOLDS:
            return self.fold(node)
        if n.op in COMPARES:
            return _Item("FLAT", lambda place, _: [self.compare(node, place)])
        if n.op == ROUND:
            return _Item("FLAT", lambda place, _: [self.rounded(node, place)])
        if by_compare(self.chain, node):
            return _Item("FLAT", lambda place, _: self.select(node, place))
        return _Item("FLAT", lambda place, _: [self.lane(node, place)])

    def compare(self, node: int, place: int) -> Alu:
        """A compare into the predicate of the place."""
        word = self.lane(node, place)
        return Alu(word.op, 0, word.a, word.b, pr=self.regs.predicate[node][place])

    def rounded(self, node: int, place: int) -> Vcvt:
        """The word that rounds a register through FP16."""
        (arg,) = self.chain.nodes[node].args
        return Vcvt(self.regs.vector[node][place], self.regs.vector[arg][place])

    def select(self, node: int, place: int) -> list[Word]:
        """``where`` by predicate: one move where it is set, one where it is clear."""
        target = self.regs.vector[node][place]
        predicate = self.regs.predicate[self.chain.nodes[node].args[0]][place]
        return [
            Alu("VMOV", target, self.moved(node, position, place), pr=predicate, where=where)
            for position, where in ((1, "set"), (2, "clear"))
        ]

    def moved(self, node: int, position: int, place: int) -> str:
        """Source text of a branch of a ``where``."""
        arg = self.chain.nodes[node].args[position]
        constant = self.regs.constant.get(arg)
        return f"v{self.regs.vector[arg][place]}" if constant is None else self.readable("where", "a", constant)

    def fold(self, node: int) -> _Item:
        """A row reduction into a scalar register, broadcast where a scalar cannot be read."""
        (arg,) = self.chain.nodes[node].args
        if arg not in self.regs.vector:
            raise CompileError(f"{self.chain.nodes[node].op} of a constant row; reduce it on the host")
        kind = _REDUCTIONS[self.chain.nodes[node].op]

        def words(place: int, _: int) -> list[Word]:
            scalar = self.regs.scalar[node][place]
            out: list[Word] = [Vred(kind, scalar, self.regs.vector[arg][place])]
            if broadcasts(self.chain, node, self.machine):
                out.append(Vbcast(f"v{self.regs.vector[node][place]}", f"S{scalar}"))
            return out

        return _Item("TREE", words)

    def load(self, stream: int) -> _Item:
        """The load of an operand."""
        s = self.work.streams[stream]
        node = next((i for i, n in enumerate(self.chain.nodes) if n.op == "operand" and n.index == stream), None)
        assert node is not None
        ad = 0 if s.moves else self.fixed
        return _Item(
            "",
            lambda place, step: [Vld(self.regs.vector[node][place], ad, s.l1 + s.offsets[step], s.dtype)],
        )

    def store(self, result: int, node: int) -> _Item:
        """The store of a result."""
        s = self.work.stores[result]
        ad = self.fixed
        return _Item(
            "",
            lambda place, step: [Vst(self.regs.vector[node][place], ad, s.l1 + s.offsets[step], s.dtype)],
        )

    # -------------------------------------------------------------- image

    def image(self) -> list[Word]:
        """All words of the kernel."""
        out: list[Word] = [Seti("S0"), Imm(self.work.vl)]
        for name, code in self.regs.immediates:
            out += [Seti(name), Imm(code)]
        out += [Setvl(0), Setmode("FLAT")]
        filled = self.work.filled
        out += [Vfill(self.fixed + 1 + k, s.l1) for k, s in enumerate(filled)]
        if filled:
            out.append(Bar())
        for k, s in enumerate(self.work.streams):
            if s.steady:
                out += self.load(k).words(0, 0)
        out += self.steps()
        out += [Vdrain(self.fixed + 1 + len(filled) + k, s.l1, s.mx) for k, s in enumerate(self.work.stores)]
        return [*out, Halt()]

    def steps(self) -> list[Word]:
        """The words of all steps, ``interleave`` of them alternating operation by operation."""
        items = list(self.items())
        out: list[Word] = []
        mode = "FLAT"
        for first in range(0, self.work.steps, self.regs.interleave):
            batch = range(first, min(first + self.regs.interleave, self.work.steps))
            for item in items:
                if item.mode and item.mode != mode:
                    mode = item.mode
                    out.append(Setmode(mode))
                for step in batch:
                    out += item.words(step - first, step)
        if mode != "FLAT":
            out.append(Setmode("FLAT"))
        return out


def build_image(work: LaneWork, machine: MachineSpec) -> list[Word]:
    """The kernel of ``work``.

    Raises:
        CompileError: a limit of the core, naming the operand or value, the number, the limit and the fix.
        HazardError: the emitter broke its own rule.
    """
    check_work(work, machine)
    words = _Kernel(work, machine).image()
    if len(words) > machine.vc_imem:
        raise CompileError(
            f"a kernel of {len(words)} words; instruction memory holds {machine.vc_imem}, use fewer steps a run"
        )
    check_image(words, machine, [(s.l1, s.words) for s in work.filled], stride=work.stride)
    return words


def run_cost(work: LaneWork, machine: MachineSpec) -> tuple[int, int]:
    """(payloads ahead of the first RUN, modelled cycles of one RUN).

    Raises:
        CompileError: what :func:`build_image` refuses.
    """
    words = build_image(work, machine)
    before = len(words) + sum(1 for _ in descriptors(work, machine))
    return before, kernel_cycles(dict(enumerate(words)), 0, machine)


def descriptors(work: LaneWork, machine: MachineSpec) -> Iterator[Instruction]:
    """Descriptor writes ahead of the first RUN.

    Loads and stores share one descriptor: it starts at word 0 and their offset reaches all of L1. Streams that move
    have one of their own, whose base every RUN sets. Neither walks more words than the dimensions written here hold,
    so what stands in the others cannot matter.
    """
    count = max(step_words(work.vl, r.dtype, machine) for r in work.regions())
    fixed = int(work.moving)
    if work.moving:
        yield Dims(0, 0, 1, count)
    yield Desc(fixed, 0)
    for dim, (stride, bound) in enumerate(work.stride or ((1, count),)):
        yield Dims(fixed, dim, stride, bound)
    for k, (_, walk) in enumerate(work.walks):
        for dim, (stride, bound) in enumerate(_all_dims(walk, machine)):
            yield Dims(fixed + 1 + k, dim, stride, bound)


def _all_dims(walk: Walk, machine: MachineSpec) -> list[tuple[int, int]]:
    return [walk.dims[d] if d < len(walk.dims) else (0, 1) for d in range(machine.vc_dims)]


def shortened(work: LaneWork, machine: MachineSpec) -> Iterator[Instruction]:
    """Descriptor writes ahead of a last RUN that moves fewer words: the dimensions that differ."""
    for k, ((_, usual), walk) in enumerate(zip(work.walks, work.short, strict=False)):
        pairs = zip(_all_dims(usual, machine), _all_dims(walk, machine), strict=True)
        for dim, (old, new) in enumerate(pairs):
            if old != new:
                yield Dims(int(work.moving) + 1 + k, dim, *new)


def _bases(work: LaneWork) -> Column:
    """[RUNs][descriptors]: the shift of the streams that move, if any, and the address of every fill and drain."""
    try:
        bases = np.asarray(work.runs, dtype=np.int64)
    except OverflowError:  # left to the encoder to refuse
        bases = np.asarray(work.runs, dtype=object)
    return np.insert(bases, 0, work.shifts, axis=1) if work.moving else bases


def vector_program(unit: int, work: LaneWork, machine: MachineSpec, budget: int) -> UnitProgram:
    """Program of one core, cut into passes of at most ``budget`` instructions.

    A later RUN writes only the addresses that changed.

    Raises:
        CompileError: what :func:`build_image` refuses, or no run at all.
    """
    if len(work.runs) == 0:
        raise CompileError(f"unit VC{unit}: no run; deal it an instance or leave it out")
    words = build_image(work, machine)
    # memory descriptors follow the one for L1; a moving one stands before it
    numbers = [int(work.moving) + 1 + k for k in range(len(work.walks))]
    if work.moving:
        numbers.insert(0, 0)
    out = Columns.runs(numbers, _bases(work))
    out = out.insert(len(out) - 1, [*shortened(work, machine)])
    out = out.insert(0, [*(Image(i, w) for i, w in enumerate(words)), *descriptors(work, machine)])
    return UnitProgram("VC", unit, tuple(Pass(out[i : i + budget]) for i in range(0, len(out), budget)))

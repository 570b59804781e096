# SPDX-License-Identifier: Apache-2.0
"""What a vector core is asked to do, before it has words, and every resource it may exceed.

All regions, walks and run bases are given by the schedule; docs/spec/compiler.md 9.4 has the limits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import Chain
from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.vector_words import MX_SIDES, MX_WORDS

LAYER = "L1"

MAX_STREAMS = 7
"""Operands of a band: v0..v6 (docs/spec/compiler.md 9.4)."""

_WORDS_PER_CHUNK = {"FP16": 1, "FP32": 2}
_STRIDE_LIMIT = 1 << 17
_BOUND_LIMIT = 65535


Runs = Sequence[Sequence[int]] | npt.NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """Addresses of a fill or drain: (stride in bytes, bound) of each dimension, the fastest first."""

    dims: tuple[tuple[int, int], ...]

    @property
    def words(self) -> int:
        """Words of one walk."""
        return prod(bound for _, bound in self.dims)

    @property
    def span(self) -> int:
        """Bytes from the first word to the furthest one behind it."""
        return sum(max(0, stride) * (bound - 1) for stride, bound in self.dims)

    def contiguous(self, word_bytes: int) -> bool:
        """True if the words lie one after another."""
        return self.words == 1 or [d for d in self.dims if d[1] > 1] == [(word_bytes, self.words)]

    def places(self) -> npt.NDArray[np.int64]:
        """Bytes from the first word to every word, in order."""
        out = np.zeros(1, dtype=np.int64)
        for stride, bound in self.dims:
            out = (np.arange(bound, dtype=np.int64)[:, None] * stride + out).reshape(-1)
        return out

    @classmethod
    def run(cls, words: int, word_bytes: int) -> Walk:
        """``words`` consecutive words."""
        return cls(((word_bytes, words),))


@dataclass(frozen=True)
class Stream:
    """An operand in L1.

    Args:
        l1, words: its region.
        offsets: per step, the word of the region the step reads first.
        fill: how a RUN brings it in; None if it is there already.
        moves: each RUN reads it from a word further on, see :attr:`LaneWork.shifts`.
    """

    name: str
    l1: int
    words: int
    offsets: tuple[int, ...]
    fill: Walk | None
    dtype: str = "FP16"
    moves: bool = False

    @property
    def steady(self) -> bool:
        """Every step reads the same words, so they are loaded once."""
        return len(set(self.offsets)) == 1


@dataclass(frozen=True)
class Store:
    """A result in L1 and how a RUN takes it out.

    Args:
        drain: of words; of entries if the drain quantises.
        mx: "a" or "b" quantises eight words to an MXFP7 entry of that side (docs/spec/vector.md 15), "" moves words.
        again: the region is that of an earlier result of the same value, which is drained once more.
    """

    name: str
    l1: int
    words: int
    offsets: tuple[int, ...]
    drain: Walk
    dtype: str = "FP16"
    mx: str = ""
    again: bool = False

    @property
    def drained(self) -> int:
        """L1 words a RUN takes out."""
        return self.drain.words * (MX_WORDS if self.mx else 1)


@dataclass(frozen=True)
class LaneWork:
    """The vector work of one core.

    Args:
        vl: elements of a step; the row width when rows are reduced.
        runs: per RUN, the address of every fill in order of the streams, then of every drain: [RUNs][walks].
        interleave: steps whose words alternate, so that one hides the latency of the other; 0 takes as
            many as the registers hold. It changes no result.
        shifts: per RUN, the words by which the streams that move are further on; none if nothing moves.
        group: words of a chain group, 1 (FLAT), 2 or 4. It changes no result.
        short: walks of every fill and drain of the last RUN where it moves fewer words; none otherwise. Its steps
            go on over what its regions held before, and nothing of that is drained.
        stride: (words, number) of each dimension of the L1 words of a step; none if they follow one another.
    """

    chain: Chain
    vl: int
    streams: tuple[Stream, ...]
    stores: tuple[Store, ...]
    runs: Runs
    interleave: int = 0
    group: int = 1
    shifts: tuple[int, ...] = ()
    short: tuple[Walk, ...] = ()
    stride: tuple[tuple[int, int], ...] = ()

    @property
    def steps(self) -> int:
        """Steps of a RUN."""
        return len(self.stores[0].offsets)

    @property
    def moving(self) -> bool:
        """True if a stream moves, which takes an L1 descriptor of its own."""
        return any(s.moves for s in self.streams)

    @property
    def filled(self) -> tuple[Stream, ...]:
        """The streams a RUN fills."""
        return tuple(s for s in self.streams if s.fill is not None)

    @property
    def walks(self) -> tuple[tuple[str, Walk], ...]:
        """Name and walk of every memory descriptor, in order."""
        fills = [(s.name, s.fill) for s in self.streams if s.fill is not None]
        return tuple(fills + [(s.name, s.drain) for s in self.stores])

    @property
    def footprint(self) -> int:
        """L1 words in use."""
        return max(r.l1 + r.words for r in self.regions())

    def regions(self) -> Iterator[Stream | Store]:
        """Every region of L1."""
        yield from self.streams
        yield from (s for s in self.stores if not s.again)

    def reach(self, dtype: str, machine: MachineSpec) -> int:
        """L1 words from the first of a step to the end of its last."""
        if self.stride:
            return 1 + sum(words * (number - 1) for words, number in self.stride)
        return step_words(self.vl, dtype, machine)


def step_words(vl: int, dtype: str, machine: MachineSpec) -> int:
    """L1 words of ``vl`` elements in whole chunks."""
    return cdiv(vl, machine.slices) * _WORDS_PER_CHUNK[dtype]


def check_work(work: LaneWork, machine: MachineSpec) -> None:
    """Refuse what no kernel image can hold, registers and instruction memory aside.

    Raises:
        CompileError: naming the operand, the value, the limit and the fix.
    """
    _check_shape(work, machine)
    _check_descriptors(work, machine)
    _check_l1(work, machine)
    _check_entries(work, machine)
    if work.moving and len(work.shifts) != len(work.runs):
        raise CompileError(f"{len(work.runs)} runs with {len(work.shifts)} shifts; every run moves on by one")
    _check_runs(work, machine)


def _check_runs(work: LaneWork, machine: MachineSpec) -> None:
    runs, walks, word = work.runs, work.walks, machine.word_bytes
    if isinstance(runs, np.ndarray) and runs.shape[1] == len(walks) and not (runs % word).any():
        return
    for number, bases in enumerate(runs):
        if len(bases) != len(walks):
            raise CompileError(f"run {number}: {len(bases)} addresses for {len(walks)} fills and drains")
        for (name, _), at in zip(walks, bases, strict=True):
            if at % word:
                raise CompileError(
                    f"{name}: run {number} starts at {at:#x}; a walk starts at a multiple of {word} bytes"
                )


def _check_shape(work: LaneWork, machine: MachineSpec) -> None:
    if not 1 <= work.vl <= machine.vlmax:
        raise CompileError(f"a step of {work.vl} elements; a core works on 1..{machine.vlmax} at once")
    if work.chain.folds and work.vl % machine.slices:
        raise CompileError(
            f"rows of {work.vl} elements are reduced; a row has a multiple of {machine.slices} elements, pad it"
        )
    if len(work.streams) > MAX_STREAMS:
        raise CompileError(
            f"{len(work.streams)} operands ({', '.join(s.name for s in work.streams)}); a band reads at most "
            f"{MAX_STREAMS}, store an intermediate result"
        )
    indices = sorted({n.index for n in work.chain.nodes if n.op == "operand"})
    if indices != list(range(len(work.streams))):
        raise CompileError(f"the chain reads operands {indices}, {len(work.streams)} are given")
    if len(work.chain.results) != len(work.stores):
        raise CompileError(f"{len(work.chain.results)} results, places for {len(work.stores)}")
    if work.group not in (1, 2, 4):
        raise CompileError(f"chain groups of {work.group} words; the core has groups of 1, 2 and 4")
    if work.interleave < 0:
        raise CompileError(f"interleave = {work.interleave}; it is 0 for automatic, or a number of steps")
    for r in work.regions():
        if len(r.offsets) != work.steps or not r.offsets:
            raise CompileError(f"{r.name}: {len(r.offsets)} steps, {work.stores[0].name} has {work.steps}")


def _check_descriptors(work: LaneWork, machine: MachineSpec) -> None:
    local = 2 if work.moving else 1
    need = local + len(work.walks)
    if need > machine.vc_desc:
        raise CompileError(
            f"{len(work.filled)} fills and {len(work.stores)} drains need {need} address descriptors with the {local} "
            f"for L1; the core has {machine.vc_desc}, read fewer operands or store an intermediate result"
        )
    names = [name for name, _ in work.walks]
    if work.short and len(work.short) != len(names):
        raise CompileError(f"{len(work.short)} walks of a shorter run for {len(names)} fills and drains")
    for name, walk in (*work.walks, *zip(names, work.short, strict=False)):
        if len(walk.dims) > machine.vc_dims:
            raise CompileError(f"{name}: a walk of {len(walk.dims)} dimensions; a descriptor has {machine.vc_dims}")
        if not 1 <= walk.words <= machine.vc_walk_max:
            raise CompileError(
                f"{name}: a walk of {walk.words} words; a fill or drain moves 1..{machine.vc_walk_max}, "
                "use fewer steps a run"
            )
        for stride, bound in walk.dims:
            if not 1 <= bound <= _BOUND_LIMIT:
                raise CompileError(f"{name}: a dimension of {bound}; a bound is 1..{_BOUND_LIMIT}")
            if bound > 1 and (stride % machine.word_bytes or not -_STRIDE_LIMIT <= stride < _STRIDE_LIMIT):
                raise CompileError(
                    f"{name}: a stride of {stride} bytes; strides are multiples of {machine.word_bytes} in "
                    f"{-_STRIDE_LIMIT}..{_STRIDE_LIMIT - 1}"
                )


def _check_l1(work: LaneWork, machine: MachineSpec) -> None:
    regions = sorted(work.regions(), key=lambda r: r.l1)
    for r in regions:
        size = work.reach(r.dtype, machine)
        moved = max(work.shifts, default=0) if isinstance(r, Stream) and r.moves else 0
        last = max(r.offsets) + moved + size
        if r.l1 < 0 or min(r.offsets) < 0 or last > r.words:
            raise CompileError(f"{r.name}: a step reaches word {last} of a region of {r.words} words at {r.l1}")
    held: list[Stream | Store] = [*work.filled, *work.stores]
    walks = [walk for _, walk in work.walks]
    for held_by, walk in (*zip(held, walks, strict=True), *zip(held, work.short, strict=False)):
        moved = walk.words * (MX_WORDS if isinstance(held_by, Store) and held_by.mx else 1)
        if moved > held_by.words:
            raise CompileError(f"{held_by.name}: {moved} words are moved, its region holds {held_by.words}")
    for a, b in pairwise(regions):
        if a.l1 + a.words > b.l1:
            raise CompileError(f"{a.name} ends at L1 word {a.l1 + a.words}, {b.name} starts at {b.l1}")
    check_footprint(work.footprint, machine)


def _check_entries(work: LaneWork, machine: MachineSpec) -> None:
    """Drains that quantise, walks of a step that are not contiguous, and regions that are drained twice."""
    if work.stride and (work.moving or prod(n for _, n in work.stride) != step_words(work.vl, "FP16", machine)):
        raise CompileError(
            f"a step of {work.vl} elements walks L1 in {work.stride}; it walks as many words, and nothing moves"
        )
    held: dict[tuple[int, int], int] = {}
    for store, node in zip(work.stores, work.chain.results, strict=True):
        if store.again and held.get((store.l1, store.words)) != node:
            raise CompileError(f"{store.name}: its region at {store.l1} holds no other result of the same value")
        held.setdefault((store.l1, store.words), node)
        if not store.mx:
            continue
        if "vec_mx_store" not in machine.features:
            raise CompileError(
                f"{store.name}: machine {machine.name} has no drain that quantises (feature vec_mx_store); quantise it "
                "by a move"
            )
        if store.mx not in MX_SIDES or store.dtype != "FP16":
            raise CompileError(
                f"{store.name}: {store.dtype} words for side {store.mx!r}; FP16 words are quantised for side a or b"
            )
        if store.drained > machine.vc_walk_max:
            raise CompileError(
                f"{store.name}: {store.drain.words} entries of {MX_WORDS} words; a drain quantises 1.."
                f"{machine.vc_walk_max // MX_WORDS} entries, use fewer steps a run"
            )


def check_footprint(words: int, machine: MachineSpec) -> None:
    """Refuse an L1 footprint the core does not have, or must not have.

    Raises:
        CompileError: naming the footprint and the limit.
    """
    if words > machine.vc_l1_words:
        raise CompileError(
            f"{words} L1 words are needed; the core has {machine.vc_l1_words}, use fewer steps a run or a smaller tile"
        )
    low, high = machine.vc_l1_forbidden or (0, -1)
    if low <= words <= high:
        raise CompileError(
            f"an L1 footprint of {words} words lies in {low}..{high}, which this machine's cores do not get right; "
            "use fewer steps a run or a smaller tile"
        )

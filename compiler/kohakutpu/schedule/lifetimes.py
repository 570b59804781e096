# SPDX-License-Identifier: Apache-2.0
"""Lifetimes, packing and ADJACENT groups (docs/spec/compiler.md 8.2).

Steps are bands in execution order. Bytes are reused by step order alone, so steps have to be listed in the order
they are issued; :class:`Guard` checks an actual issue order against the placement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from kohakutpu.errors import CompileError
from kohakutpu.ints import up
from kohakutpu.schedule.arena import Arena, Span

LAYER = "L2"

TEMP = "temp"


@dataclass(frozen=True)
class Need:
    """A buffer that wants a place: bytes, and role "in", "out", "temp", "table" or "const"."""

    name: str
    nbytes: int
    role: str = TEMP


@dataclass(frozen=True)
class Step:
    """One band or live conversion: ``reads`` not written earlier in the step, then ``writes``."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    conversion: bool = False


@dataclass(frozen=True)
class Group:
    """ADJACENT members: one allocation, consecutive in this order.

    Args:
        exact: a member starts at the exact end of the one before; otherwise at the next aligned byte.
    """

    members: tuple[str, ...]
    exact: bool = False


@dataclass(frozen=True)
class Life:
    """First and last step a buffer occupies bytes in, both included."""

    first: int
    last: int

    def meets(self, other: Life) -> bool:
        """Both are alive in some step."""
        return self.first <= other.last and other.first <= self.last

    def join(self, other: Life) -> Life:
        """The shortest life that covers both."""
        return Life(min(self.first, other.first), max(self.last, other.last))


@dataclass(frozen=True)
class Placed:
    """A buffer with its byte address and life."""

    name: str
    base: int
    nbytes: int
    life: Life

    @property
    def end(self) -> int:
        """First byte behind the buffer."""
        return self.base + self.nbytes


def lifetimes(needs: Sequence[Need], steps: Sequence[Step]) -> dict[str, Life]:
    """The life of every buffer.

    A temp lives from its first write to its last touch. It takes the whole run if it is never written, or read at
    or before its first write; so does everything that is no temp.

    Raises:
        CompileError: a name declared twice, or a step that touches an undeclared one.
    """
    whole = Life(0, max(0, len(steps) - 1))
    names = [n.name for n in needs]
    twice = sorted({n for n in names if names.count(n) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise CompileError(f"buffers {twice} are declared twice; a name is one buffer")
    reads: dict[str, list[int]] = {n: [] for n in names}
    writes: dict[str, list[int]] = {n: [] for n in names}
    for index, step in enumerate(steps):
        for touched, book in ((step.reads, reads), (step.writes, writes)):
            for name in touched:
                if name not in book:
                    raise CompileError(f"step {index} ({step.name}) touches {name}, which is not declared")
                book[name].append(index)
    lives = {}
    for need in needs:
        r, w = reads[need.name], writes[need.name]
        if need.role != TEMP or not w or (r and r[0] <= w[0]):
            lives[need.name] = whole
        else:
            lives[need.name] = Life(w[0], max(r + w))
    return lives


@dataclass(frozen=True)
class _Block:
    """What is allocated at once: a single buffer or a group, with the offset of each member."""

    label: str
    nbytes: int
    life: Life
    members: tuple[tuple[str, int, int], ...]
    temp: bool


def _blocks(needs: Sequence[Need], lives: Mapping[str, Life], groups: Iterable[Group], align: int) -> list[_Block]:
    by_name = {n.name: n for n in needs}
    owner: dict[str, Group] = {}
    for group in groups:
        if len(group.members) < 2:
            raise CompileError(f"ADJACENT {group.members} names fewer than two buffers")
        for name in group.members:
            if name not in by_name:
                raise CompileError(f"ADJACENT {group.members} names {name}, which is not declared")
            if name in owner:
                raise CompileError(f"{name} is in two ADJACENT groups; a buffer has one place")
            owner[name] = group
    blocks, done = [], set()
    for need in needs:
        if need.name in done:
            continue
        own = owner.get(need.name)
        members = own.members if own else (need.name,)
        offset, placed = 0, []
        life = lives[need.name]
        for name in members:
            if own and not own.exact:
                offset = up(offset, align)
            placed.append((name, offset, by_name[name].nbytes))
            offset += by_name[name].nbytes
            life = life.join(lives[name])
            done.add(name)
        temp = all(by_name[n].role == TEMP for n in members)
        blocks.append(_Block("+".join(members), offset, life, tuple(placed), temp))
    return blocks


def pack(
    needs: Sequence[Need],
    steps: Sequence[Step],
    arena: Arena,
    groups: Sequence[Group] = (),
) -> dict[str, Placed]:
    """Place every buffer: per step, everything born there, then free what dies there.

    Args:
        arena: receives the allocations; what lives to the end of the run stays allocated.
        groups: ADJACENT groups; the life of a group is the union of its members'.

    Raises:
        CompileError: what :func:`lifetimes` refuses, a malformed group, or an arena that is full.
    """
    lives = lifetimes(needs, steps)
    blocks = _blocks(needs, lives, groups, arena.align)
    out: dict[str, Placed] = {}
    spans: dict[str, Span] = {}
    last = max(0, len(steps) - 1)
    born: dict[int, list[_Block]] = {}
    dying: dict[int, list[_Block]] = {}
    for block in sorted(blocks, key=lambda b: b.temp):  # what stays for the run lies below what comes and goes
        born.setdefault(block.life.first, []).append(block)
        if block.temp and block.life.last < last:
            dying.setdefault(block.life.last, []).append(block)
    for step in range(last + 1):
        for block in born.get(step, ()):
            span = spans[block.label] = arena.alloc(block.nbytes, block.label)
            for name, offset, nbytes in block.members:
                out[name] = Placed(name, span.base + offset, nbytes, block.life)
        for block in dying.get(step, ()):
            arena.free(spans[block.label])
    return out


def conflicts(placed: Iterable[Placed]) -> list[tuple[str, str]]:
    """Pairs of buffers that are alive together and share a byte; empty for a right placement."""
    items = sorted((p for p in placed if p.nbytes), key=lambda p: p.base)
    bases = np.array([p.base for p in items], dtype=np.int64)
    found = []
    for index, one in enumerate(items):
        for other in items[index + 1 : int(np.searchsorted(bases, one.end, side="left"))]:
            if one.life.meets(other.life):
                found.append((one.name, other.name))
    return found


class Guard:
    """Checks an issue order: nothing is read after something that shares its bytes was written."""

    def __init__(self, placed: Mapping[str, Placed]) -> None:
        self._placed = dict(placed)
        self._spoilt: dict[str, str] = {}
        self._shares: dict[str, list[str]] = {name: [] for name in self._placed}
        items = sorted(self._placed.values(), key=lambda p: p.base)
        for i, p in enumerate(items):
            for q in takewhile(lambda q, end=p.end: q.base < end, items[i + 1 :]):  # type: ignore[misc]
                self._shares[p.name].append(q.name)
                self._shares[q.name].append(p.name)

    def step(self, reads: Iterable[str], writes: Iterable[str]) -> None:
        """One step reads, then writes; in which order its units do so is open.

        Raises:
            CompileError: as :meth:`read`, or what is written shares bytes with something the step reads.
        """
        inputs = set(reads)
        for name in inputs:
            self.read(name)
        for name in writes:
            spoilt = sorted(inputs & {*self._shares[name]})
            if spoilt:
                raise CompileError(
                    f"{name} at {self._placed[name].base:#x} is written over {spoilt[0]} in the step that reads it; "
                    "give them bytes of their own"
                )
            self.write(name)

    def write(self, name: str) -> None:
        """``name`` was written: it is whole, everything that shares bytes with it is spoilt."""
        self._spoilt.pop(name, None)
        for other in self._shares[name]:
            self._spoilt[other] = name

    def read(self, name: str) -> None:
        """``name`` is about to be read.

        Raises:
            CompileError: its bytes were overwritten; names the buffer that did it.
        """
        by = self._spoilt.get(name)
        if by is not None:
            at = self._placed[name].base
            raise CompileError(
                f"{name} at {at:#x} is read after {by} was written over it; "
                "bytes are reused in the declared order, so declare the steps in the order they are issued"
            )

# SPDX-License-Identifier: Apache-2.0
"""Static check of a kernel image: everything that would end in a fault or lose its overlap (docs/spec/vector.md 7).

Compiled images are checked as they are built; a hand-written one can be, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kohakutpu.errors import HazardError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.vector_words import (
    Alu,
    Bar,
    Halt,
    Imm,
    Loop,
    Seti,
    Setmode,
    Setvl,
    Vfill,
    Vld,
    Vred,
    Vst,
    Word,
    word_text,
)

LAYER = "L1"

_GROUP = {"D2": 2, "D4": 4}
_ANY_MODE = ("ANY", "ALL")


@dataclass
class _State:
    """What is known of the core while the image is read."""

    mode: str = ""
    length: int | None = None
    scalars: dict[str, int] = field(default_factory=dict)
    loop_end: int | None = None
    filled: bool = False


def check_image(
    words: Sequence[Word],
    machine: MachineSpec,
    fills: Sequence[tuple[int, int]] = (),
    base: int = 0,
    stride: Sequence[tuple[int, int]] = (),
) -> None:
    """Read the image from its first word to VHALT.

    Args:
        fills: (first L1 word, words) of every region a VFILL brings in.
        base: L1 word at which the load and store descriptors start.
        stride: (words, number) of each dimension of these descriptors; of a load or store only its first word is
            looked at without them.

    Raises:
        HazardError: naming the word, its number, the rule and the fix.
    """
    state = _State()
    reach = [0]
    for step, number in stride:
        reach = [word + step * i for i in range(number) for word in reach]
    at = 0
    while at < len(words):
        word = words[at]
        if isinstance(word, Halt):
            return
        if state.loop_end == at:
            state.loop_end = None
        size = _size(words, at, state)
        if state.loop_end is not None and at + size > state.loop_end:
            raise _bad(word, at, f"it reaches past the loop that ends at word {state.loop_end}; lengthen the body")
        _step(words, at, state, machine)
        _check_fill(word, at, state, fills, base, reach)
        at += size
    raise HazardError(f"the kernel of {len(words)} words runs past its end; close it with VHALT")


def _bad(word: Word, at: int, what: str) -> HazardError:
    return HazardError(f"word {at}, {word_text(word)}: {what}")


def _size(words: Sequence[Word], at: int, state: _State) -> int:
    """Words that execute as one: an immediate pair, a chain group, or the word alone."""
    word = words[at]
    if isinstance(word, Seti):
        if at + 1 >= len(words) or not isinstance(words[at + 1], Imm):
            raise _bad(word, at, "no immediate follows; put one behind it")
        return 2
    if isinstance(word, Imm):
        raise _bad(word, at, "an immediate without VSETI before it")
    if isinstance(word, Alu):
        group = _GROUP.get(state.mode, 1)
        _check_group(words, at, group)
        return group
    return 1


def _check_group(words: Sequence[Word], at: int, group: int) -> None:
    for i in range(group):
        word = words[at + i] if at + i < len(words) else Halt()
        if not isinstance(word, Alu):
            raise _bad(word, at + i, f"it stands inside a chain group of {group}; a group is arithmetic words only")
        sources = [s[0] for s in word.reads.values()]
        if i == 0 and "C" in sources:
            raise _bad(word, at, "C at the head of a chain group; there is no result before it")
        if i and "v" in sources:
            raise _bad(word, at + i, "a vector register behind the head of a chain group; read it in the head")
        if i < group - 1 and word.where:
            raise _bad(word, at + i, "a predicate inside a chain group; only its last word writes")
        if word.compare and word.where:
            raise _bad(word, at + i, "a predicated compare; compares write every element")


def _step(words: Sequence[Word], at: int, state: _State, machine: MachineSpec) -> None:
    word = words[at]
    match word:
        case Seti(to):
            follower = words[at + 1]
            assert isinstance(follower, Imm)
            state.scalars[to] = follower.value
        case Setvl(sa):
            state.length = state.scalars.get(f"S{sa}")
            if state.length is not None and not 1 <= state.length <= machine.vlmax:
                raise _bad(word, at, f"a vector length of {state.length}; it is 1..{machine.vlmax}")
        case Setmode(mode):
            state.mode = mode
        case Alu() if state.mode == "TREE":
            raise _bad(word, at, "arithmetic in TREE mode; set FLAT behind the reduction")
        case Alu() if not state.mode:
            raise _bad(word, at, "the mode is whatever the last kernel left; set it first")
        case Vred(kind) if kind not in _ANY_MODE:
            if state.mode != "TREE":
                raise _bad(word, at, f"a reduction in {state.mode or 'an unknown'} mode; set TREE around it")
            if state.length is not None and state.length % machine.slices:
                raise _bad(word, at, f"a reduction of {state.length} elements; it takes whole {machine.slices}s")
        case Loop(sa, body):
            if state.loop_end is not None:
                raise _bad(word, at, "a loop inside a loop; the core has one")
            if body < 1 or at + body >= len(words) or state.scalars.get(f"S{sa}") == 0:
                raise _bad(word, at, "a body and a count of at least 1 inside the image are needed")
            state.loop_end = at + 1 + body
        case _:
            pass


def _check_fill(
    word: Word, at: int, state: _State, fills: Sequence[tuple[int, int]], base: int, reach: Sequence[int]
) -> None:
    """A load of words that may still be on their way waits; the kernel should have waited once, before."""
    match word:
        case Vfill():
            state.filled = True
        case Bar():
            state.filled = False
        case Vld(off=off) | Vst(off=off) if state.filled:
            if any(first <= base + off + further < first + count for first, count in fills for further in reach):
                raise _bad(word, at, "it touches words of a fill that no VBAR waited for; put VBAR before it")

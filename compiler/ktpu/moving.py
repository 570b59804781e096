# SPDX-License-Identifier: Apache-2.0
"""Moves of a round as text, and which of them writes a word."""

from __future__ import annotations

import numpy as np

from kohakuabi.parts import Round
from kohakuabi.steps import Move, Step
from kohakutpu.isa import generated as g
from kohakutpu.isa import mover
from kohakutpu.isa.generated import MoverMode, MoverTransform
from kohakutpu.model.mover_registers import MoverRegisters

WORD = 32
_STRETCH = 1 << 16


def move_of(r: Round, address: int) -> str | None:
    """The last move of the round that writes the word at ``address``, with the element and its source; None if none.

    A word a move skips or does not reach because it faults is told too: the text says what the move was asked for.
    """
    registers = MoverRegisters()
    found = None
    for number, move in enumerate(s for s in r.steps if isinstance(s, Move)):
        for offset, value in move.writes:
            if registers.apply(offset, value):
                element = _element(registers, address)
                if element is not None:
                    found = f"round {r.index}, move {number}: {_text(registers, element)}"
    return found


def step_text(step: Step) -> str:
    """A step on one line; of a move only how many registers it writes."""
    return f"Move({len(step.writes)} writes)" if isinstance(step, Move) else str(step)


def move_lines(r: Round) -> list[str]:
    """Register writes of every move of the round as text."""
    lines = []
    for number, move in enumerate(s for s in r.steps if isinstance(s, Move)):
        lines += [f"move {number}  {line}" for line in mover.disasm(move.writes)]
    return lines


def _entry_words(registers: MoverRegisters) -> tuple[int, int]:
    """Source words and bytes written of one destination element."""
    occupant, mode = registers.xform
    if registers.field("MV_CTRL", "mode") != MoverMode.XFORM or occupant not in g.MV_XFORM_WORDS:
        return 1, WORD
    take, give = g.MV_XFORM_WORDS[occupant]
    return (1, WORD) if occupant == MoverTransform.GRANULE and mode & 1 else (take, WORD * give)


def _element(registers: MoverRegisters, address: int) -> int | None:
    """Number of the last destination element that covers ``address``."""
    walker = registers.walkers[1]
    if not walker.legal:
        return None
    _, size = _entry_words(registers)
    total, found = walker.length(), None
    for first in range(0, total, _STRETCH):
        at, valid = walker.part(first, min(_STRETCH, total - first))
        hits = np.flatnonzero(valid & (at <= address) & (address < at + size))
        if len(hits):
            found = first + int(hits[-1])
    return found


def _text(registers: MoverRegisters, element: int) -> str:
    mode = registers.field("MV_CTRL", "mode")
    name = MoverMode(mode).name if mode in list(MoverMode) else f"mode {mode}"
    source = registers.walkers[0]
    if mode not in (MoverMode.COPY, MoverMode.XFORM) or not source.legal:
        return f"{name}, destination element {element}"
    take, _ = _entry_words(registers)
    if element * take >= source.length():
        return f"{name}, destination element {element}, beyond its source"
    at, valid = source.part(element * take, 1)
    padding = "" if valid[0] else ", padding"
    return f"{name}, destination element {element} from {int(at[0]):#x}{padding}"

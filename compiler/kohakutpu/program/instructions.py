# SPDX-License-Identifier: Apache-2.0
"""Typed instructions of cluster and vector core with a text form that parses back (docs/spec/compiler.md 9)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from kohakutpu.errors import CompileError
from kohakutpu.program.vector_words import Word, parse_word, word_text

LAYER = "L1"

MXFP7_ANCHOR = 40
TILE_BUFFER = 2
"""The tile store as a buffer of a cluster (docs/spec/cluster.md 8.1)."""


@dataclass(frozen=True)
class Fill:
    """Load ``n`` entries from byte address ``at`` into side ``side`` at ``bank``, ``off``."""

    side: str
    bank: int
    off: int
    n: int
    at: int

    OP = "fill"


@dataclass(frozen=True)
class Gemm:
    """Sweep gm x gn sub-tiles over nk K blocks.

    ``acc`` 0 opens the tile, 1 adds to it. ``emit`` hands every sub-tile out to byte
    address ``at`` with the last K block; with a receiver ``to`` (a unit such as ``VC0``)
    to byte ``at`` of that unit's buffer, acknowledged to the orchestrator.
    """

    gm: int
    gn: int
    nk: int
    acc: int
    abank: int = 0
    aoff: int = 0
    bbank: int = 0
    boff: int = 0
    emit: int = 0
    at: int = 0
    anchor: int = MXFP7_ANCHOR
    to: str = ""

    OP = "gemm"


@dataclass(frozen=True)
class Drain:
    """Read ``n`` sub-tiles out to byte address ``at`` of memory or of the buffer of unit ``to``.

    With ``fuse`` wait for an emitted batch instead. With ``buf`` 2 the receiver is a cluster, which adds the
    sub-tiles in accumulator width to the tile it keeps; byte ``at`` is that of its tile store, 64 a sub-tile.
    With ``gn``, a multiple of 4, a tile of so many column groups leaves as rows, ``pitch`` words apart
    (docs/spec/cluster.md 5.6).
    """

    n: int
    at: int = 0
    fuse: int = 0
    to: str = ""
    buf: int = 0
    gn: int = 0
    pitch: int = 0

    OP = "drain"


@dataclass(frozen=True)
class Image:
    """Word ``at`` of a vector core's instruction memory."""

    at: int
    word: Word

    OP = "image"


@dataclass(frozen=True)
class Desc:
    """Base of address descriptor ``ad``: a byte address for fills and drains, an L1 word for loads and stores."""

    ad: int
    at: int

    OP = "desc"


@dataclass(frozen=True)
class Dims:
    """Stride and bound of dimension ``dim`` of descriptor ``ad``."""

    ad: int
    dim: int
    stride: int
    bound: int

    OP = "dims"


@dataclass(frozen=True)
class Run:
    """Run the kernel that starts at word ``pc``."""

    pc: int = 0

    OP = "run"


ClusterInstruction = Fill | Gemm | Drain
VectorInstruction = Image | Desc | Dims | Run
Instruction = ClusterInstruction | VectorInstruction
_KINDS: dict[str, type[Any]] = {c.OP: c for c in (Fill, Gemm, Drain, Image, Desc, Dims, Run)}
_TEXTS = ("side", "to")


def text(instruction: Instruction) -> str:
    """One line, ``op field=value ...``; addresses in hexadecimal, defaults left out.

    A word of a kernel is shown as assembly: ``image 6 VLD.FP16 v0, A1``.
    """
    if isinstance(instruction, Image):
        return f"{Image.OP} {instruction.at} {word_text(instruction.word)}"
    words = [instruction.OP]
    for f in fields(instruction):
        value = getattr(instruction, f.name)
        if value != f.default:
            words.append(f"{f.name}={value:#x}" if f.name == "at" else f"{f.name}={value}")
    return " ".join(words)


def parse(line: str) -> Instruction:
    """Inverse of :func:`text`.

    Raises:
        CompileError: an unknown operation or field, or a missing field.
    """
    op, *words = line.split() or [""]
    if op not in _KINDS:
        raise CompileError(f"{line!r}: operation {op!r} is unknown; known: {', '.join(_KINDS)}")
    if op == Image.OP:
        if len(words) < 2:
            raise CompileError(f"{line!r}: an image line is 'image <number> <assembly>'")
        return Image(_number(line, words[0]), parse_word(line.split(None, 2)[2]))
    kind = _KINDS[op]
    known = {f.name: f for f in fields(kind)}
    args: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in known or not value:
            raise CompileError(f"{line!r}: {word!r} is not a field of {op}; fields: {', '.join(known)}")
        if name in args:
            raise CompileError(f"{line!r}: {name} is given twice")
        args[name] = value if name in _TEXTS else _number(line, value)
    try:
        made: Instruction = kind(**args)
    except TypeError as err:
        raise CompileError(f"{line!r}: {err}") from err
    return made


def _number(line: str, value: str) -> int:
    try:
        return int(value, 0)
    except ValueError as err:
        raise CompileError(f"{line!r}: {value!r} is not a number") from err


@dataclass(frozen=True)
class Pass:
    """Instructions of one program: dispatched by one kick, the last one ends the program."""

    instructions: Sequence[Instruction]

    def __len__(self) -> int:
        return len(self.instructions)


@dataclass(frozen=True)
class UnitProgram:
    """All passes of one unit in order."""

    engine: str
    unit: int
    passes: tuple[Pass, ...] = field(default_factory=tuple)

    def __iter__(self) -> Iterator[Instruction]:
        for p in self.passes:
            yield from p.instructions

    def text(self) -> str:
        """Printed form: a head line, ``pass`` lines, one instruction a line."""
        lines = [f"unit {self.engine}{self.unit}"]
        for i, p in enumerate(self.passes):
            lines.append(f"pass {i}")
            lines += [f"  {text(ins)}" for ins in p.instructions]
        return "\n".join(lines)

    @classmethod
    def from_text(cls, source: str) -> UnitProgram:
        """Inverse of :meth:`text`.

        Raises:
            CompileError: a malformed line.
        """
        head, *rest = [ln.strip() for ln in source.splitlines() if ln.strip()] or [""]
        named = re.fullmatch(r"unit (\w\w)(\d+)", head)
        if named is None:
            raise CompileError(f"{head!r}: a unit program starts with 'unit <type><number>'")
        groups: list[list[Instruction]] = []
        for line in rest:
            if line.startswith("pass "):
                groups.append([])
            elif groups:
                groups[-1].append(parse(line))
            else:
                raise CompileError(f"{line!r} stands before the first 'pass' line")
        return cls(named[1], int(named[2]), tuple(Pass(tuple(g)) for g in groups))

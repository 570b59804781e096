# SPDX-License-Identifier: Apache-2.0
"""Typed words of a vector kernel, one 32-bit word each (docs/spec/vector.md 5 to 7).

Operands of arithmetic words are written as in assembly: ``v3`` vector, ``S4`` scalar, ``K1`` constant,
``C`` the result of the preceding word of a chain group. Their text is the disassembly of the word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kohakutpu.errors import EncodeError
from kohakutpu.isa import EncodingError, vector
from kohakutpu.isa.generated import (
    VC_L1_WORDS,
    VC_OPCODES,
    BroadcastSource,
    ImmediateTarget,
    LaneMode,
    PredicateMode,
    Reduction,
    Source,
    VectorDtype,
    VectorOp,
)

LAYER = "L1"

_LETTERS = {"v": Source.V, "S": Source.S, "K": Source.K}
_SLOTS = ("a", "b", "c")
SETI_K3 = "K3"
MX_SIDES = ("a", "b")
"""Packings of a drain that quantises, by the value of its field ``buf``."""
MX_WORDS = 8
"""L1 words of an MXFP7 entry."""


@dataclass(frozen=True)
class Alu:
    """An arithmetic word; a compare writes predicate ``pr`` and no vector register."""

    op: str
    vd: int
    a: str
    b: str = ""
    c: str = ""
    pr: int = 0
    where: str = ""

    @property
    def reads(self) -> dict[str, str]:
        """Operand slots the operation reads."""
        return {slot: getattr(self, slot) for slot in VC_OPCODES[self.op][2]}

    @property
    def compare(self) -> bool:
        """True if it writes a predicate."""
        return VC_OPCODES[self.op][1] == "compare"


@dataclass(frozen=True)
class Vld:
    """Load a vector register from L1: one descriptor walk, ``off`` words from its base."""

    vd: int
    ad: int
    off: int = 0
    dtype: str = "FP16"


@dataclass(frozen=True)
class Vst:
    """Store a vector register to L1."""

    vd: int
    ad: int
    off: int = 0
    dtype: str = "FP16"


@dataclass(frozen=True)
class Vcvt:
    """Round a register through ``dtype``."""

    vd: int
    va: int
    dtype: str = "FP16"


@dataclass(frozen=True)
class Vred:
    """Reduce a register into a scalar register; ANY and ALL read predicate ``pr`` instead."""

    kind: str
    sd: int
    va: int = 0
    vb: int = 0
    pr: int = 0


@dataclass(frozen=True)
class Vbcast:
    """Scalar register to all elements (``to`` = v, ``of`` = S), or element 0 to a scalar register."""

    to: str
    of: str


@dataclass(frozen=True)
class Vshuf:
    """Rotate the lanes of every chunk by scalar register ``sk``."""

    vd: int
    va: int
    sk: int
    pr: int = 0
    where: str = ""


@dataclass(frozen=True)
class Setvl:
    """Vector length from a scalar register."""

    sa: int


@dataclass(frozen=True)
class Setmode:
    """Lane topology."""

    mode: str


@dataclass(frozen=True)
class Seti:
    """Load the next word, an :class:`Imm`, into scalar register ``to`` = S0..S15 or K3."""

    to: str


@dataclass(frozen=True)
class Imm:
    """A 24-bit immediate; always behind a :class:`Seti`."""

    value: int


@dataclass(frozen=True)
class Loop:
    """Run the next ``body`` words as often as scalar register ``sa`` says."""

    sa: int
    body: int


@dataclass(frozen=True)
class Bar:
    """Wait for all fills."""


@dataclass(frozen=True)
class Vfill:
    """Start a fill: the walk of descriptor ``ad`` in memory to L1 words ``l1`` and up."""

    ad: int
    l1: int


@dataclass(frozen=True)
class Vdrain:
    """Drain L1 words ``l1`` and up to the walk of descriptor ``ad`` in memory.

    Args:
        mx: "" moves words; "a" or "b" quantises eight words to an MXFP7 entry of that side (docs/spec/vector.md 15).
    """

    ad: int
    l1: int
    mx: str = ""


@dataclass(frozen=True)
class Halt:
    """End of the kernel."""


Word = (
    Alu | Vld | Vst | Vcvt | Vred | Vbcast | Vshuf | Setvl | Setmode | Seti | Imm | Loop | Bar | Vfill | Vdrain | Halt
)

_PREDICATES = {"": PredicateMode.ALL, "set": PredicateMode.SET, "clear": PredicateMode.CLEAR}


@lru_cache(maxsize=1 << 14)
def encode_word(word: Word) -> int:
    """The 32 bits of ``word``.

    Raises:
        EncodeError: a register, offset, immediate or name its field cannot hold.
    """
    try:
        return _WRITERS[type(word)](word)
    except (EncodingError, KeyError, ValueError) as err:
        raise EncodeError(f"{word}: {err}") from err


def decode_word(bits: int) -> Word:
    """Inverse of :func:`encode_word` for every word but an immediate, which has no opcode.

    Raises:
        EncodeError: a word no typed instruction stands for.
    """
    op, f = vector.decode(bits)
    made = _READERS[VC_OPCODES[op.name][0]](op, f)
    if encode_word(made) != bits:
        raise EncodeError(f"{vector.disasm(bits)}: sets fields that no compiled word uses")
    return made


def word_text(word: Word) -> str:
    """Assembly of one word; :func:`parse_word` reads it back."""
    if isinstance(word, Imm):
        return f".imm {encode_word(word):#010x}"
    return vector.disasm(encode_word(word))


def parse_word(line: str) -> Word:
    """Inverse of :func:`word_text`.

    Raises:
        EncodeError: not a word of a kernel.
    """
    try:
        bits = vector.parse(line)
    except EncodingError as err:
        raise EncodeError(f"{line!r}: {err}") from err
    return Imm(bits) if line.strip().startswith(".imm") else decode_word(bits)


def _register(letter: str, text: str) -> int:
    if text[:1] != letter or not text[1:].isdecimal():
        raise EncodeError(f"{text!r} is not {letter} with a number")
    return int(text[1:])


def _source(text: str) -> tuple[int, int]:
    if text == "C":
        return Source.C, 0
    if text[:1] not in _LETTERS or not text[1:].isdecimal():
        raise EncodeError(f"operand {text!r} is not v, S or K with a number, or C")
    if text[0] == "K" and int(text[1:]) > 3:
        raise EncodeError(f"operand {text!r}: constant registers are K0..K3")
    return _LETTERS[text[0]], int(text[1:])


def _alu(w: Alu) -> int:
    if w.op not in VC_OPCODES or VC_OPCODES[w.op][0] != "ALU":
        raise EncodeError(f"{w.op} is not an arithmetic operation")
    # selector V is illegal behind the head of a chain, also in slots nobody reads
    idle = Source.K if "C" in w.reads.values() else Source.V
    fields: dict[str, int] = {}
    for slot in _SLOTS:
        fields[f"s{slot}"], fields[f"v{slot}"] = _source(w.reads[slot]) if slot in w.reads else (idle, 0)
    if not w.compare:
        fields["vd"] = w.vd
    return vector.encode(w.op, raw=False, pr=w.pr, pm=_PREDICATES[w.where], **fields)


def _bcast(w: Vbcast) -> int:
    if w.to.startswith("v"):
        return vector.encode("VBCAST", sa=BroadcastSource.S, d=_register("v", w.to), a=_register("S", w.of))
    return vector.encode("VBCAST", sa=BroadcastSource.V, d=_register("S", w.to), a=_register("v", w.of))


def _seti(w: Seti) -> int:
    if w.to == SETI_K3:
        return vector.encode("VSETI", sel=ImmediateTarget.K3)
    return vector.encode("VSETI", sel=ImmediateTarget.S, sd=_register("S", w.to))


def _drain(w: Vdrain) -> int:
    if not w.mx:
        return vector.encode("VDRAIN", ad=w.ad, l1=w.l1)
    if w.mx not in MX_SIDES:
        raise EncodeError(f"packing {w.mx!r}; a drain quantises for side a or b")
    if w.l1 + MX_WORDS > VC_L1_WORDS:
        raise EncodeError(
            f"an entry of {MX_WORDS} words at L1 word {w.l1}; L1 has {VC_L1_WORDS} words, start at "
            f"{VC_L1_WORDS - MX_WORDS} or before"
        )
    return vector.encode("VDRAIN", ad=w.ad, l1=w.l1, mx=1, buf=MX_SIDES.index(w.mx))


_WRITERS: dict[type[Any], Callable[[Any], int]] = {
    Alu: _alu,
    Vld: lambda w: vector.encode("VLD", vd=w.vd, ad=w.ad, off=w.off, dtype=VectorDtype[w.dtype]),
    Vst: lambda w: vector.encode("VST", vd=w.vd, ad=w.ad, off=w.off, dtype=VectorDtype[w.dtype]),
    Vcvt: lambda w: vector.encode("VCVT", vd=w.vd, va=w.va, dtype=VectorDtype[w.dtype]),
    Vred: lambda w: vector.encode("VRED", kind=Reduction[w.kind], sd=w.sd, va=w.va, vb=w.vb, pr=w.pr),
    Vbcast: _bcast,
    Vshuf: lambda w: vector.encode("VSHUF", vd=w.vd, va=w.va, sk=w.sk, pr=w.pr, pm=_PREDICATES[w.where]),
    Setvl: lambda w: vector.encode("VSETVL", sa=w.sa),
    Setmode: lambda w: vector.encode("VSETMODE", mode=LaneMode[w.mode]),
    Seti: _seti,
    Imm: lambda w: vector.immediate(w.value),
    Loop: lambda w: vector.encode("VLOOP", sa=w.sa, body=w.body),
    Bar: lambda w: vector.encode("VBAR"),
    Vfill: lambda w: vector.encode("VFILL", ad=w.ad, l1=w.l1),
    Vdrain: _drain,
    Halt: lambda w: vector.encode("VHALT"),
}


def _name(kind: Any, value: int) -> str:
    try:
        return str(kind(value).name)
    except ValueError:
        raise EncodeError(f"{kind.__name__} {value} is reserved") from None


def _where(f: dict[str, int]) -> str:
    try:
        return next(name for name, mode in _PREDICATES.items() if mode == f["pm"])
    except StopIteration:
        raise EncodeError(f"predicate mode {f['pm']} is reserved") from None


def _read_alu(op: VectorOp, f: dict[str, int]) -> Word:
    reads = VC_OPCODES[op.name][2]
    texts = {
        slot: "C" if f[f"s{slot}"] == Source.C else f"{'vSCK'[f[f's{slot}']]}{f[f'v{slot}']}"
        for slot in _SLOTS
        if slot in reads
    }
    return Alu(op.name, f["vd"], texts.get("a", ""), texts.get("b", ""), texts.get("c", ""), f["pr"], _where(f))


def _read_ldst(op: VectorOp, f: dict[str, int]) -> Word:
    kind = Vld if op is VectorOp.VLD else Vst
    return kind(f["vd"], f["ad"], f["off"], _name(VectorDtype, f["dtype"]))


def _read_bcast(op: VectorOp, f: dict[str, int]) -> Word:
    del op
    match f["sa"]:
        case BroadcastSource.S:
            return Vbcast(f"v{f['d']}", f"S{f['a']}")
        case BroadcastSource.V:
            return Vbcast(f"S{f['d']}", f"v{f['a']}")
    raise EncodeError(f"broadcast source {f['sa']} is reserved")


def _read_none(op: VectorOp, f: dict[str, int]) -> Word:
    del f
    return Bar() if op is VectorOp.VBAR else Halt()


def _read_drain(op: VectorOp, f: dict[str, int]) -> Word:
    del op
    if not f["mx"]:
        return Vdrain(f["ad"], f["l1"])
    if f["buf"] >= len(MX_SIDES):
        raise EncodeError(f"packing {f['buf']}; a drain to memory quantises for side a (0) or b (1)")
    return Vdrain(f["ad"], f["l1"], MX_SIDES[f["buf"]])


_READERS: dict[str, Callable[[VectorOp, dict[str, int]], Word]] = {
    "ALU": _read_alu,
    "LDST": _read_ldst,
    "CVT": lambda op, f: Vcvt(f["vd"], f["va"], _name(VectorDtype, f["dtype"])),
    "RED": lambda op, f: Vred(_name(Reduction, f["kind"]), f["sd"], f["va"], f["vb"], f["pr"]),
    "BCAST": _read_bcast,
    "SHUF": lambda op, f: Vshuf(f["vd"], f["va"], f["sk"], f["pr"], _where(f)),
    "SETVL": lambda op, f: Setvl(f["sa"]),
    "SETMODE": lambda op, f: Setmode(_name(LaneMode, f["mode"])),
    "SETI": lambda op, f: Seti(SETI_K3 if f["sel"] == ImmediateTarget.K3 else f"S{f['sd']}"),
    "LOOP": lambda op, f: Loop(f["sa"], f["body"]),
    "NONE": _read_none,
    "FILL": lambda op, f: Vfill(f["ad"], f["l1"]),
    "DRAIN": _read_drain,
}

# SPDX-License-Identifier: Apache-2.0
"""Typed instruction to 256-bit word and back; every refusal of docs/spec/compiler.md 9.1."""

from __future__ import annotations

from kohakutpu.errors import EncodeError
from kohakutpu.isa import EncodingError, cluster
from kohakutpu.isa.generated import ClusterOp
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, text

LAYER = "L1"

_SIDES = ("a", "b")


def encode(ins: Instruction, machine: MachineSpec) -> int:
    """The word of ``ins``.

    Raises:
        EncodeError: a value its field, the bank or the tile store cannot hold; never truncated.
            The message starts with the instruction.
    """
    try:
        match ins:
            case Fill():
                return _fill(ins, machine)
            case Gemm():
                return _gemm(ins, machine)
            case Drain():
                return _drain(ins, machine)
    except (EncodingError, EncodeError) as err:
        raise EncodeError(f"{text(ins)}: {err}") from err


def decode(word: int) -> Instruction:
    """Inverse of :func:`encode`.

    Raises:
        EncodeError: a word that no typed instruction stands for.
    """
    f = cluster.decode(word)
    made: Instruction
    match f["op"]:
        case ClusterOp.FILL:
            made = Fill(_SIDES[f["sel"]], f["fbank"], f["eoff"], f["n"], f["addr"])
        case ClusterOp.GEMM:
            made = Gemm(
                f["gm"], f["gn"], f["nk"], f["acc"], f["abank"], f["aoff"], f["bbank"], f["boff"],
                f["emit"], f["addr"], f["anchor"],
            )  # fmt: skip
        case ClusterOp.DRAIN:
            made = Drain(f["n"], f["addr"], f["fuse"])
        case _:
            raise EncodeError(f"{cluster.disasm(word)}: no cluster instruction has this operation")
    if _word(made) != word:
        raise EncodeError(f"{cluster.disasm(word)}: sets fields that no compiled instruction uses")
    return made


def _require(ok: bool, what: str) -> None:
    if not ok:
        raise EncodeError(what)


def _flag(name: str, value: int) -> None:
    _require(value in (0, 1), f"{name} = {value}; it is 0 or 1")


def _range(what: str, machine: MachineSpec, *, side: str, bank: int, off: int, n: int) -> None:
    """Entries [off, off + n) of ``bank`` stay inside the bank and inside L1."""
    span = machine.l1_off_span
    size = machine.l1_a if side == "a" else machine.l1_b
    _require(off >= 0 and off + n <= span, f"{what}: entries {off}..{off + n - 1} leave the bank of {span}")
    _require(
        bank * span + off + n <= size,
        f"{what}: entries {off}..{off + n - 1} of bank {bank} exceed the {size} entries of side {side}",
    )


def _at(what: str, at: int, machine: MachineSpec) -> None:
    _require(
        at % machine.word_bytes == 0, f"{what}: address {at:#x} is not a multiple of {machine.word_bytes}"
    )


def _fill(f: Fill, m: MachineSpec) -> int:
    _require(f.side in _SIDES, f"fill side {f.side!r}; sides are a and b")
    _require(1 <= f.n <= m.fill_max, f"fill n = {f.n}; a FILL loads 1..{m.fill_max} entries, split it")
    _range("fill", m, side=f.side, bank=f.bank, off=f.off, n=f.n)
    _at("fill", f.at, m)
    return _word(f)


def _gemm(g: Gemm, m: MachineSpec) -> int:
    _require(min(g.gm, g.gn, g.nk) >= 1, f"gemm gm, gn, nk = {g.gm}, {g.gn}, {g.nk}; each must be at least 1")
    _range("gemm side a", m, side="a", bank=g.abank, off=g.aoff, n=g.gm * g.nk)
    _range("gemm side b", m, side="b", bank=g.bbank, off=g.boff, n=g.gn * g.nk)
    _require(g.gm * g.gn <= m.tiles, f"gemm gm*gn = {g.gm * g.gn} exceeds the {m.tiles} resident sub-tiles")
    _require(
        m.k_per_issue == 1 or g.nk == 1 or g.nk % 2 == 0,
        f"gemm nk = {g.nk} is odd on a double-pumped cluster; use 1 or an even nk",
    )
    _flag("gemm acc", g.acc)
    _flag("gemm emit", g.emit)
    _require(
        bool(g.emit) or g.at == 0, f"gemm address {g.at:#x} without emit; nothing would be written there"
    )
    _at("gemm", g.at, m)
    return _word(g)


def _drain(d: Drain, m: MachineSpec) -> int:
    _require(1 <= d.n <= m.tiles, f"drain n = {d.n}; a DRAIN reads 1..{m.tiles} sub-tiles")
    _flag("drain fuse", d.fuse)
    _require(
        not d.fuse or d.at == 0, f"drain address {d.at:#x} with fuse; the emitting gemm names the address"
    )
    _at("drain", d.at, m)
    return _word(d)


def _word(ins: Instruction) -> int:
    match ins:
        case Fill():
            sel = _SIDES.index(ins.side)
            return cluster.encode("FILL", sel=sel, fbank=ins.bank, eoff=ins.off, n=ins.n, addr=ins.at)
        case Gemm():
            emitted = {"emit": ins.emit, "addr": ins.at} if ins.emit else {}
            return cluster.encode(
                "GEMM", raw=False, gm=ins.gm, gn=ins.gn, nk=ins.nk, acc=ins.acc, anchor=ins.anchor,
                abank=ins.abank, aoff=ins.aoff, bbank=ins.bbank, boff=ins.boff, **emitted,
            )  # fmt: skip
        case Drain():
            return cluster.encode(
                "DRAIN", raw=False, n=ins.n, **({"fuse": 1} if ins.fuse else {"addr": ins.at})
            )

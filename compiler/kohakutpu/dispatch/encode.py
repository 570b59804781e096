# SPDX-License-Identifier: Apache-2.0
"""Typed instruction to 256-bit payload; every refusal of docs/spec/compiler.md 9.1."""

from __future__ import annotations

from kohakutpu.errors import EncodeError
from kohakutpu.isa import EncodingError, cluster
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Drain, Fill, Gemm, Instruction

LAYER = "L0"


def _require(ok: bool, what: str) -> None:
    if not ok:
        raise EncodeError(what)


def encode(ins: Instruction, machine: MachineSpec) -> int:
    """Payload of ``ins``.

    Raises:
        EncodeError: a value its field, the bank or the tile store cannot hold; never truncated.
    """
    try:
        match ins:
            case Fill():
                return _fill(ins, machine)
            case Gemm():
                return _gemm(ins, machine)
            case Drain():
                return _drain(ins, machine)
    except EncodingError as err:
        raise EncodeError(f"{ins}: {err}") from err
    raise EncodeError(f"{ins!r} is not a cluster instruction")


def _fill(f: Fill, m: MachineSpec) -> int:
    _require(f.side in ("a", "b"), f"fill side {f.side!r}; sides are a and b")
    _require(1 <= f.n <= m.fill_max, f"fill n = {f.n}; a FILL loads 1..{m.fill_max} entries, split it")
    _require(f.off + f.n <= m.l1_off_span, f"fill off + n = {f.off + f.n} crosses the bank of {m.l1_off_span} entries")
    _require(f.at % m.word_bytes == 0, f"fill address {f.at:#x} is not a multiple of {m.word_bytes}")
    return cluster.encode("FILL", sel=int(f.side == "b"), fbank=f.bank, eoff=f.off, n=f.n, addr=f.at)


def _gemm(g: Gemm, m: MachineSpec) -> int:
    _require(min(g.gm, g.gn, g.nk) >= 1, f"gemm gm, gn, nk = {g.gm}, {g.gn}, {g.nk}; each must be at least 1")
    for side, off, groups in (("a", g.aoff, g.gm), ("b", g.boff, g.gn)):
        end = off + groups * g.nk
        _require(end <= m.l1_off_span, f"gemm side {side}: entries {off}..{end - 1} leave the bank of {m.l1_off_span}")
    _require(g.gm * g.gn <= m.tiles, f"gemm gm*gn = {g.gm * g.gn} exceeds the {m.tiles} resident sub-tiles")
    _require(
        m.k_per_issue == 1 or g.nk == 1 or g.nk % 2 == 0,
        f"gemm nk = {g.nk} is odd on a double-pumped cluster; use 1 or an even nk",
    )
    fields = dict(
        gm=g.gm, gn=g.gn, nk=g.nk, acc=g.acc, anchor=g.anchor, aoff=g.aoff, boff=g.boff, abank=g.abank, bbank=g.bbank
    )
    if g.emit:
        fields.update(emit=1, addr=g.at)
    return cluster.encode("GEMM", **fields)


def _drain(d: Drain, m: MachineSpec) -> int:
    _require(1 <= d.n <= m.tiles, f"drain n = {d.n}; a DRAIN reads 1..{m.tiles} sub-tiles")
    if d.fuse:
        return cluster.encode("DRAIN", n=d.n, fuse=1)
    return cluster.encode("DRAIN", n=d.n, addr=d.at)


def check_program(instructions: tuple[Instruction, ...]) -> None:
    """Refuse a program whose emitted batch no completion would own (docs/spec/cluster.md 2.2).

    The last instruction of a program carries ``last`` and therefore owns an open batch, so
    only an empty program is left to refuse.

    Raises:
        EncodeError: a program without instructions.
    """
    _require(len(instructions) > 0, "a program without instructions cannot be dispatched")

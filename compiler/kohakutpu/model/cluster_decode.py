# SPDX-License-Identifier: Apache-2.0
"""Decode checks of the matmul cluster, in the order of docs/spec/cluster.md 2.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kohakutpu.isa import cluster as isa
from kohakutpu.isa import generated as g
from kohakutpu.isa.generated import ClusterFault, ClusterOp
from kohakutpu.model.description import ClusterParams, Node

LAYER = "L0"

_RESERVED_LOW = (1 << 40) - 1


@dataclass(frozen=True)
class Instruction:
    """One decoded payload with the 0-means-1 rule applied to n, gm, gn and nk."""

    op: int
    addr: int
    n: int
    sel: int
    acc: bool
    gm: int
    gn: int
    nk: int
    anchor: int
    npeer: int
    eoff: int
    fbank: int
    aoff: int
    abank: int
    boff: int
    bbank: int
    emit: bool
    fuse: bool
    node: bool
    dst: Node
    dbuf: int
    dflags: int
    dack: Node
    dmesh: int
    dfin: int
    rowmajor: bool
    raw_gn: int
    pitch: int
    low: int

    @classmethod
    def decode(cls, payload: int) -> Instruction:
        """Fields of a 256-bit payload; reserved bits are ignored."""
        f = isa.decode(payload)
        op = f["op"]
        explicit = op == ClusterOp.DRAIN and not f["fuse"]
        return cls(
            op=op,
            addr=f["addr"],
            n=f["n"] or 1,
            sel=f["sel"],
            acc=bool(f["acc"]),
            gm=f["gm"] or 1,
            gn=f["gn"] or 1,
            nk=f["nk"] or 1,
            anchor=f["anchor"],
            npeer=f["npeer"],
            eoff=f["eoff"],
            fbank=f["fbank"],
            aoff=f["aoff"],
            abank=f["abank"],
            boff=f["boff"],
            bbank=f["bbank"],
            emit=bool(f["emit"]) and op == ClusterOp.GEMM,
            fuse=bool(f["fuse"]) and op == ClusterOp.DRAIN,
            node=bool(f["dnode"]),
            dst=(f["dst_x"], f["dst_y"]),
            dbuf=f["dbuf"],
            dflags=f["dflags"],
            dack=(f["dack_x"], f["dack_y"]),
            dmesh=f["dmesh"],
            dfin=f["dfin"],
            rowmajor=bool(f["rowmajor"]) and explicit,
            raw_gn=f["gn"],
            pitch=f["pitch"],
            low=payload & _RESERVED_LOW,
        )

    @property
    def send(self) -> bool:
        """True for the accumulator-float form of an explicit node DRAIN."""
        return self.op == ClusterOp.DRAIN and self.node and self.dbuf == g.MG_BUF_ACC

    @property
    def granules(self) -> int:
        """Granules the transfer writes (`G` of section 2.1)."""
        if self.op == ClusterOp.GEMM:
            return self.gm * self.gn
        return 2 * self.n if self.send else self.n

    @property
    def last_word(self) -> int:
        """Highest destination word of the transfer, relative to its base."""
        if self.rowmajor:
            return (4 * (self.n // self.raw_gn) - 1) * self.pitch + self.raw_gn // 4 - 1
        return self.granules - 1


def check(i: Instruction, params: ClusterParams, pos: Node, opened: int, batch: int) -> ClusterFault | None:
    """First failing row, None for a legal instruction.

    opened: opened sub-tiles (7.3); batch: size of the current emit batch (5.3), 0 for none.
    """
    return next((code for failed, code in _rows(i, params, pos, opened, batch) if failed), None)


def _rows(
    i: Instruction, p: ClusterParams, pos: Node, opened: int, batch: int
) -> Iterator[tuple[bool, ClusterFault]]:
    """The rows of one opcode in order; evaluated lazily, so a later row may rely on earlier ones."""
    bank = g.MG_BANK_ENTRIES
    transfer = False
    match i.op:
        case ClusterOp.FILL:
            size = p.gb if i.sel else p.ga
            yield i.n > g.MG_FILL_MAX, ClusterFault.F_FILL_N
            end = i.eoff + i.n
            yield end > bank or bank * i.fbank + end > size, ClusterFault.F_FILL_RANGE
            yield i.npeer != 0, ClusterFault.F_PEERS
        case ClusterOp.GEMM:
            end_a, end_b = i.aoff + i.gm * i.nk, i.boff + i.gn * i.nk
            yield end_a > bank or bank * i.abank + end_a > p.ga, ClusterFault.F_GEMM_A
            yield end_b > bank or bank * i.bbank + end_b > p.gb, ClusterFault.F_GEMM_B
            yield i.gm * i.gn > p.tiles, ClusterFault.F_TILES
            yield i.acc and i.gm * i.gn > opened, ClusterFault.F_UNOPENED
            yield i.emit and i.node and i.dbuf == g.MG_BUF_ACC, ClusterFault.F_EMIT_SEND
            transfer = i.emit
        case ClusterOp.DRAIN:
            yield i.n > p.tiles, ClusterFault.F_TILES
            yield not i.fuse and i.n > opened, ClusterFault.F_UNOPENED
            yield i.fuse and i.n > batch, ClusterFault.F_FUSE
            yield i.rowmajor and _bad_rowmajor(i, p), ClusterFault.F_ROWMAJOR
            transfer = not i.fuse
        case _:
            yield True, ClusterFault.F_OPCODE
    if transfer:
        yield i.dfin != 0 and (not i.node or i.dack == (0, 0)), ClusterFault.F_REMOTE
        yield i.node and i.dfin == 0 and i.dst in ((0, 0), pos), ClusterFault.F_DST
        yield i.node and _bad_offset(i), ClusterFault.F_NODE_OFF


def _bad_rowmajor(i: Instruction, p: ClusterParams) -> bool:
    return (
        not p.rowmajor
        or i.send
        or i.raw_gn == 0
        or i.raw_gn % 4 != 0
        or i.n % i.raw_gn != 0
        or i.pitch < i.raw_gn // 4
        or i.low != 0
    )


def _bad_offset(i: Instruction) -> bool:
    granule = i.addr >> 5 & 0xFFFF
    return (
        i.addr % 32 != 0
        or i.addr >> 21 != 0
        or granule + i.last_word >= g.MG_NODE_GRANULES
        or (i.dbuf == g.MG_BUF_ACC and granule % 2 == 1)
    )

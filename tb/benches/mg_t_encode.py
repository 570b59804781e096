# SPDX-License-Identifier: Apache-2.0
"""Instruction encoding and the checks of docs/spec/cluster.md 2.1."""

from __future__ import annotations

import json
import random

import cocotb

from benches.mg_ref import DRAIN, FIELDS, FILL, GEMM, Ref, pack
from benches.mg_rig import Rig
from kohakubench import checks, clocks, scale, seed
from kohakubench.bench import ROOT
from kohakutpu.isa import cluster as isa

EXAMPLES = [e["payload"] for e in json.loads((ROOT / "spec" / "cluster.json").read_text())["examples"]]


@cocotb.test()
async def encoders_agree(dut):
    """Every field at 0, all ones and each single bit: the hand-written packer equals the generated one."""
    clocks.start(dut.clk)
    spare = {"peers": ("peer0", "peer1", "peer2")}
    for name, (low, width) in FIELDS.items():
        if name in ("op", "rsv141", "tail") or name in spare:
            continue
        for value in [0, (1 << width) - 1, *(1 << b for b in range(width))]:
            for op in (FILL, GEMM, DRAIN):
                got = isa.encode(op, raw=True, **{name: value})
                checks.equal(f"{name} = {value:#x} of opcode {op}", got, pack(op, **{name: value}))
        checks.true(name, low < 256)
    for bit in range(40):
        checks.equal(f"addr bit {bit}", isa.encode(FILL, raw=True, addr=1 << bit), pack(FILL, 1 << bit))
    await clocks.cycles(1)


@cocotb.test()
async def examples_and_reserved(dut):
    """The example payloads run; reserved bits change nothing; bit 62 faults only an explicit DRAIN."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands()
    rig.op(FILL, 0, n=255)
    rig.op(FILL, 255 * 128, n=1, eoff=255)
    rig.op(FILL, 0x2000, n=255, sel=1, fbank=1)
    rig.op(GEMM, gm=16, gn=32, nk=7, bbank=1, boff=8)
    for text in EXAMPLES:
        rig.word(int(text, 16))
    tail = (1 << 62) - 1
    for f in (
        {"op": FILL, "addr": 0x1000, "n": 3, "sel": 1},
        {"op": GEMM, "gm": 3, "gn": 2, "nk": 3},
        {"op": GEMM, "gm": 3, "gn": 2, "nk": 3, "acc": 1, "emit": 1, "addr": 0x40000},
        {"op": DRAIN, "n": 6, "fuse": 1, "addr": 0x50000},
    ):
        for extra in (
            {},
            {"rsv141": 1},
            {"tail": tail},
            {"rowmajor": 1},
            {"rowmajor": 1, "tail": tail, "rsv141": 1},
        ):
            rig.op(
                f["op"],
                f.get("addr", 0),
                **{k: v for k, v in {**f, **extra}.items() if k not in ("op", "addr")},
            )
    rig.op(DRAIN, 0x60000, n=6, rsv141=1, tail=tail)
    rig.op(DRAIN, 0x70000, n=6, rowmajor=1)
    rig.op(DRAIN, 0x70000, n=4, gn=4, rowmajor=1, tail=1 << 40, last=1)
    await rig.run()


@cocotb.test()
async def address_bits(dut):
    """Address bits 33 to 39 reach the request and both descriptors unchanged."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(256)
    rig.op(FILL, 0, n=4)
    rig.op(FILL, 0x400, n=4, sel=1)
    for bit in (33, 34, 35, 36, 37, 38, 39):
        rig.op(FILL, 1 << bit | 0x20, n=1, eoff=200)
        rig.op(GEMM, gm=2, gn=2, addr=1 << bit | 0x40, emit=1)
        rig.op(DRAIN, n=4, fuse=1)
        rig.op(DRAIN, 1 << bit | 0x60, n=3)
    rig.op(DRAIN, 0x8000, n=4, last=1)
    await rig.run()


def _limits() -> list[dict[str, int]]:
    """Every row of 2.1 at its last legal and first illegal value."""
    rows: list[dict[str, int]] = []

    def add(op: int, **f: int) -> None:
        rows.append({"op": op, **f})

    for n, eoff in (
        (255, 0),
        (256, 0),
        (65535, 0),
        (255, 1),
        (255, 2),
        (1, 255),
        (2, 255),
        (0, 255),
        (56, 200),
        (57, 200),
    ):
        for sel in (0, 1):
            for bank in (0, 1):
                add(FILL, n=n, eoff=eoff, sel=sel, fbank=bank)
    for npeer in (1, 2, 3):
        add(FILL, n=1, npeer=npeer)
    for gm, gn, nk, off in (
        (16, 16, 16, 0), (16, 16, 17, 0), (1, 1, 255, 1), (1, 1, 255, 2), (255, 2, 1, 1), (255, 2, 1, 2), (2, 255, 1, 1),  # noqa: E501
        (128, 2, 2, 0), (128, 2, 3, 0), (255, 255, 255, 0), (16, 32, 8, 0), (16, 32, 9, 0), (16, 16, 1, 240), (16, 16, 1, 241),  # noqa: E501
        (0, 0, 0, 255), (16, 32, 1, 0), (19, 27, 1, 0), (32, 16, 1, 0), (33, 16, 1, 0), (4, 128, 2, 0), (2, 255, 1, 0),
    ):  # fmt: skip
        for side in ("aoff", "boff"):
            for bank in (0, 1):
                for emit in (0, 1):
                    add(
                        GEMM,
                        gm=gm,
                        gn=gn,
                        nk=nk,
                        abank=bank,
                        bbank=bank,
                        emit=emit,
                        addr=0x80000,
                        **{side: off},
                    )
    for gn in (7, 8, 9):
        add(GEMM, gm=8, gn=gn, acc=1)
    for n in (0, 1, 64, 65, 71, 72, 73, 511, 512, 513, 65535):
        for fuse in (0, 1):
            add(DRAIN, n=n, fuse=fuse, addr=0x90000)
    node = {"dnode": 1, "dst_x": 1}
    for op in (GEMM, DRAIN):
        base = {"gm": 4, "gn": 2, "emit": 1} if op == GEMM else {"n": 8}
        for f in (
            {"dfin": 0x12}, {"dfin": 0x12, "dnode": 1}, {"dfin": 0x12, "dnode": 1, "dack_x": 1},
            {"dfin": 0x12, "dnode": 1, "dack_y": 1, "dst_x": 2, "dst_y": 1}, {"dfin": 0x12, "dack_x": 1},
            {"dnode": 1}, {"dnode": 1, "dst_x": 2, "dst_y": 1}, {"dnode": 1, "dst_x": 2}, {"dnode": 1, "dst_y": 1},
            {**node, "addr": 1}, {**node, "addr": 16}, {**node, "addr": 1 << 21}, {**node, "addr": 1 << 39},
            {**node, "addr": 65528 * 32}, {**node, "addr": 65529 * 32}, {**node, "addr": 32, "dbuf": 2},
            {**node, "addr": 64, "dbuf": 2}, {**node, "addr": 65520 * 32, "dbuf": 2}, {**node, "addr": 65522 * 32, "dbuf": 2},  # noqa: E501
            {"dbuf": 2}, {**node, "dbuf": 2, "dfin": 1},
        ):  # fmt: skip
            add(op, **{**base, **f})
    return rows


@cocotb.test()
async def limits(dut):
    """Every row of 2.1 at the last legal and first illegal value, a working instruction after each."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands()
    rig.op(FILL, 0, n=64)
    rig.op(FILL, 0x4000, n=64, sel=1)
    rig.op(GEMM, gm=8, gn=8)
    for i, row in enumerate(_limits()):
        rig.op(
            row["op"],
            row.get("addr", 0),
            last=i % 3 == 2,
            **{k: v for k, v in row.items() if k not in ("op", "addr")},
        )
        if i % 4 == 0:
            rig.op(GEMM, 0xA0000 + 64 * (i % 64), gm=1, gn=2, acc=1, emit=1)
        elif i % 4 == 1:
            rig.op(DRAIN, 0xB0000, n=8)
    rig.op(DRAIN, 0x90000, n=64, last=1)
    await rig.run()


def illegal_payload(rnd: random.Random, ref: Ref) -> int:
    """A random payload that ``ref`` refuses, biased towards one bad field."""
    while True:
        op = rnd.choice((FILL, GEMM, GEMM, DRAIN, DRAIN, rnd.choice((0, *range(4, 16)))))
        f: dict[str, int] = {"n": rnd.choice((1, 8, 255, 256, 257, 512, 513, rnd.randrange(65536)))}
        for k in ("gm", "gn", "nk"):
            f[k] = rnd.choice((0, 1, 2, 16, 17, 32, 128, 255, rnd.randrange(256)))
        for k in ("eoff", "aoff", "boff", "dfin", "dbuf", "dflags", "anchor"):
            f[k] = rnd.choice((0, 0, 1, 2, 255, rnd.randrange(256)))
        for k in ("sel", "acc", "emit", "fuse", "abank", "bbank", "fbank", "dnode", "rowmajor", "rsv141"):
            f[k] = rnd.randrange(2)
        for k in ("dst_x", "dst_y", "dack_x", "dack_y"):
            f[k] = rnd.choice((0, 1, 2, 15))
        f["npeer"] = rnd.choice((0, 0, 1, 3))
        f["tail"] = rnd.choice((0, rnd.getrandbits(62)))
        word = pack(op, rnd.choice((0, 0x100, 0x20, 1, 65535 * 32, rnd.getrandbits(40))), **f)
        if ref.check(isa_fields(word)):
            return word


def isa_fields(word: int) -> dict[str, int]:
    """Fields by the bench's own table."""
    from benches.mg_ref import unpack

    return unpack(word)


@cocotb.test()
async def illegal_sweep(dut):
    """At least 2,000 illegal payloads: one FAULT each, nothing else changes, the next instruction works."""
    clocks.start(dut.clk)
    total = scale(2000, 20000)
    per_run = 1000
    for part in range(total // per_run):
        rig = Rig(dut, seed() + part)
        rig.operands()
        rig.op(FILL, 0, n=64)
        rig.op(FILL, 0x4000, n=64, sel=1)
        rig.op(GEMM, gm=8, gn=9)
        probe = Ref(rig.memory.copy(), **rig.sizes)
        probe.open = 72
        for i in range(per_run):
            rig.word(illegal_payload(rig.random, probe), last=rig.random.randrange(2))
            pick = i % 4
            if pick == 0:
                rig.op(GEMM, gm=1, gn=2, acc=1, aoff=i % 32)
            elif pick == 1:
                rig.op(DRAIN, 0xB0000, n=1 + i % 3)
            elif pick == 2:
                rig.op(FILL, 128 * (i % 128), n=1, eoff=i % 64, sel=i // 64 % 2)
            else:
                rig.op(DRAIN, 0xB0000, n=1, dnode=1, dst_x=1, dbuf=2, dack_x=1)
        rig.probe()
        rig.op(DRAIN, 0x60000, n=72, last=1)
        t = await rig.run(cycles=500_000)
        faults = sum(1 for f in t.signals(False) if f >> 248 & 255 == 4)
        checks.equal("faults", faults, per_run)

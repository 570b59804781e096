# SPDX-License-Identifier: Apache-2.0
"""Decode checks of the cluster model, last legal and first illegal values (docs/spec/cluster.md 2.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.model_rig import EXT, MEM, OUT, P, Rig
from kohakutpu.isa import cluster as isa
from kohakutpu.isa.generated import ClusterFault as F
from kohakutpu.model.messages import ReadRequest, WriteBurst

pytestmark = pytest.mark.unit

NODE = {"dnode": 1, "dst_x": EXT[0], "dst_y": EXT[1], "dack_x": 1, "dack_y": 1}
REMOTE = {**NODE, "dst_x": MEM[0], "dst_y": MEM[1], "dfin": 0x12, "dmesh": 2}
TOP = 65535 * 32


def word(op: str | int, **fields: int) -> int:
    return isa.encode(op, raw=True, **fields)


def opened(n: int) -> list[int]:
    """An opening GEMM of n sub-tiles as set-up."""
    return [word("GEMM", gm=n // 16 or 1, gn=min(n, 16))]


def case(code: F, setup: list[int], good: int, bad: int, **params: Any) -> Any:
    return pytest.param((code, setup, good, bad, params), id=f"{code.name}-{bad >> 252}-{bad % 0xFFF1:x}")


FILL, GEMM, DRAIN = "FILL", "GEMM", "DRAIN"
GA32 = {"ga": 32, "gb": 32}
GA256 = {"ga": 256, "gb": 256}
EMIT = {"emit": 1, "addr": OUT}
ROWS = [
    *(case(F.F_OPCODE, [], word(FILL, n=1), word(op)) for op in (0, 4, 7, 8, 15)),
    case(F.F_FILL_N, [], word(FILL, n=255), word(FILL, n=256)),
    case(F.F_FILL_N, [], word(FILL, n=0), word(FILL, n=65535, eoff=255)),
    case(F.F_FILL_RANGE, [], word(FILL, n=255, eoff=1), word(FILL, n=255, eoff=2)),
    case(F.F_FILL_RANGE, [], word(FILL, n=1, eoff=255), word(FILL, n=2, eoff=255, sel=1, fbank=1)),
    case(F.F_FILL_RANGE, [], word(FILL, n=32), word(FILL, n=32, eoff=1), **GA32),
    case(F.F_FILL_RANGE, [], word(FILL, n=32, sel=1), word(FILL, n=33, sel=1), **GA32),
    case(F.F_FILL_RANGE, [], word(FILL, n=255), word(FILL, n=1, fbank=1), **GA256),
    case(F.F_FILL_RANGE, [], word(FILL, n=255, sel=1, fbank=1), word(FILL, fbank=1), ga=256),
    case(F.F_PEERS, [], word(FILL, peer0=0x21, peer2=0xFF), word(FILL, npeer=1, peer0=0x21)),
    case(F.F_GEMM_A, [], word(GEMM, gm=4, nk=64), word(GEMM, gm=4, nk=64, aoff=1)),
    case(F.F_GEMM_A, [], word(GEMM, gm=1, nk=255, aoff=1), word(GEMM, gm=16, nk=17)),
    case(F.F_GEMM_A, [], word(GEMM), word(GEMM, gm=255, nk=255)),
    case(F.F_GEMM_A, [], word(GEMM, gm=16, nk=2), word(GEMM, gm=16, nk=2, aoff=1), **GA32),
    case(F.F_GEMM_A, [], word(GEMM, bbank=1), word(GEMM, abank=1), ga=256),
    case(F.F_GEMM_B, [], word(GEMM, gn=8, nk=32), word(GEMM, gn=8, nk=32, boff=1)),
    case(F.F_GEMM_B, [], word(GEMM), word(GEMM, gn=128, nk=128)),
    case(F.F_GEMM_B, [], word(GEMM, abank=1), word(GEMM, bbank=1), gb=256),
    case(F.F_TILES, [], word(GEMM, gm=32, gn=16), word(GEMM, gm=27, gn=19)),
    case(F.F_TILES, [], word(GEMM, gm=4, gn=4), word(GEMM, gm=17), tiles=16),
    case(F.F_UNOPENED, opened(32), word(GEMM, gm=16, gn=2, acc=1), word(GEMM, gm=3, gn=11, acc=1)),
    case(F.F_UNOPENED, [], word(GEMM), word(GEMM, gm=2, acc=1)),
    case(
        F.F_EMIT_SEND,
        [],
        word(GEMM, emit=1, **NODE, dbuf=0),
        word(GEMM, emit=1, **NODE, dbuf=2),
    ),
    case(F.F_TILES, opened(512), word(DRAIN, n=512, addr=OUT), word(DRAIN, n=513, addr=OUT)),
    case(F.F_TILES, [word(GEMM, **EMIT)], word(DRAIN, n=1, fuse=1), word(DRAIN, n=513, fuse=1)),
    case(F.F_UNOPENED, opened(48), word(DRAIN, n=48, addr=OUT), word(DRAIN, n=49, addr=OUT)),
    case(F.F_FUSE, [word(GEMM, gm=3, gn=3, **EMIT)], word(DRAIN, n=9, fuse=1), word(DRAIN, n=10, fuse=1)),
    case(F.F_FUSE, opened(16), word(DRAIN, addr=OUT), word(DRAIN, fuse=1)),
    case(
        F.F_ROWMAJOR, opened(16), word(DRAIN, addr=OUT), word(DRAIN, addr=OUT, n=4, gn=4, rowmajor=1, pitch=1)
    ),
    case(F.F_REMOTE, opened(16), word(DRAIN, **REMOTE), word(DRAIN, **{**REMOTE, "dnode": 0})),
    case(F.F_REMOTE, opened(16), word(DRAIN, **REMOTE), word(DRAIN, **{**REMOTE, "dack_x": 0, "dack_y": 0})),
    case(F.F_REMOTE, [], word(GEMM, emit=1, **REMOTE), word(GEMM, **EMIT, dfin=1)),
    case(F.F_DST, opened(16), word(DRAIN, **NODE), word(DRAIN, **{**NODE, "dst_x": 0, "dst_y": 0})),
    case(F.F_DST, opened(16), word(DRAIN, **NODE), word(DRAIN, **{**NODE, "dst_x": P[0], "dst_y": P[1]})),
    case(F.F_DST, [], word(GEMM, emit=1, **NODE), word(GEMM, emit=1, dnode=1)),
    case(F.F_NODE_OFF, opened(16), word(DRAIN, **NODE, addr=32), word(DRAIN, **NODE, addr=33)),
    case(F.F_NODE_OFF, opened(16), word(DRAIN, **NODE, addr=TOP), word(DRAIN, **NODE, addr=1 << 21)),
    case(F.F_NODE_OFF, opened(16), word(DRAIN, **NODE, addr=0), word(DRAIN, **NODE, addr=1 << 39)),
    case(F.F_NODE_OFF, opened(16), word(DRAIN, **NODE, addr=TOP), word(DRAIN, **NODE, addr=TOP, n=2)),
    case(
        F.F_NODE_OFF,
        opened(16),
        word(DRAIN, **NODE, dbuf=2, addr=TOP - 32),
        word(DRAIN, **NODE, dbuf=2, addr=TOP - 32, n=2),
    ),
    case(
        F.F_NODE_OFF, opened(16), word(DRAIN, **NODE, dbuf=1, addr=32), word(DRAIN, **NODE, dbuf=2, addr=32)
    ),
    case(
        F.F_NODE_OFF,
        [],
        word(GEMM, gm=2, gn=3, emit=1, **NODE, addr=TOP - 5 * 32),
        word(GEMM, gm=2, gn=3, emit=1, **NODE, addr=TOP - 4 * 32),
    ),
]


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("last", [0, 1])
def test_decode_row(row: tuple[F, list[int], int, int, dict[str, int]], last: int) -> None:
    code, setup, good, bad, params = row
    rig = Rig(cluster=params)
    rng = np.random.default_rng(1)
    for payload in setup:
        assert rig.inst(payload).code != 4
    # recognisable state, so a change by the faulting instruction shows
    for store in rig.p.l1:
        store.q[:] = rng.integers(-63, 64, store.q.shape)
    before = [*(s.q.copy() for s in rig.p.l1), rig.p.tiles.codes.copy()]
    state = (rig.p.opened, rig.p.batch, rig.p.count)
    traffic = rig.traffic()
    image = {page: data.copy() for page, data in rig.m.agent.dram.pages.items()}
    done = rig.inst(bad, last=last)
    assert (done.code, done.arg) == (4, 0x4D470000 | (bad >> 252) << 8 | code)
    for old, new in zip(before, [*(s.q for s in rig.p.l1), rig.p.tiles.codes], strict=True):
        assert np.array_equal(old, new)
    assert (rig.p.opened, rig.p.batch, rig.p.count) == state
    assert rig.traffic() == traffic
    assert image.keys() == rig.m.agent.dram.pages.keys()
    # the next instruction works, and the limit itself is legal
    done = rig.inst(good, last=last)
    assert done.code == last, hex(done.arg)


ROWMAJOR = {**dict.fromkeys(("gn", "n"), 8), "rowmajor": 1, "pitch": 2, "addr": OUT}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"gn": 0}, F.F_ROWMAJOR),
        ({"gn": 6, "n": 6}, F.F_ROWMAJOR),
        ({"n": 12}, F.F_ROWMAJOR),
        ({"pitch": 1}, F.F_ROWMAJOR),
        ({"reserved_39_0": 1}, F.F_ROWMAJOR),
        ({"reserved_39_0": 1 << 39}, F.F_ROWMAJOR),
        ({**NODE, "dbuf": 2}, F.F_ROWMAJOR),
        ({**NODE, "pitch": 4, "addr": (65536 - 13) * 32}, F.F_NODE_OFF),
    ],
)
def test_rowmajor_violations(change: dict[str, int], code: F) -> None:
    rig = Rig(cluster={"rowmajor": True})
    rig.ok("GEMM", gm=4, gn=4)
    assert rig.inst(word(DRAIN, **ROWMAJOR)).code == 0
    assert rig.fault(word(DRAIN, **{**ROWMAJOR, **change})) == 0x4D470300 | code


def test_rowmajor_node_limit_is_legal() -> None:
    rig = Rig(cluster={"rowmajor": True})
    rig.ok("GEMM", gm=4, gn=4)
    # the last word is granule 4 * 3 + 1 above the base
    assert rig.inst(word(DRAIN, **{**ROWMAJOR, **NODE, "pitch": 4, "addr": (65536 - 14) * 32})).code == 0


PRIORITY = [
    (word(FILL, n=256, eoff=9, npeer=1), F.F_FILL_N),
    (word(FILL, n=255, eoff=9, npeer=1), F.F_FILL_RANGE),
    (word(GEMM, gm=255, gn=255, nk=255, acc=1, emit=1, dnode=1, dbuf=2), F.F_GEMM_A),
    (word(GEMM, gm=2, gn=255, nk=2, acc=1, emit=1, dnode=1, dbuf=2), F.F_GEMM_B),
    (word(GEMM, gm=200, gn=200, acc=1, emit=1, dnode=1, dbuf=2), F.F_TILES),
    (word(GEMM, gm=20, gn=20, acc=1, emit=1, dnode=1, dbuf=2), F.F_UNOPENED),
    (word(GEMM, gm=2, gn=2, emit=1, dnode=1, dbuf=2, addr=1), F.F_EMIT_SEND),
    (word(GEMM, gm=2, gn=2, emit=1, dnode=1, addr=1), F.F_DST),
    (word(DRAIN, n=600, rowmajor=1, dnode=1), F.F_TILES),
    (word(DRAIN, n=600, fuse=1), F.F_TILES),
    (word(DRAIN, n=500, rowmajor=1, dnode=1), F.F_UNOPENED),
    (word(DRAIN, n=1, rowmajor=1, dnode=1, addr=1), F.F_ROWMAJOR),
    (word(DRAIN, n=1, dnode=1, dfin=1, addr=1), F.F_REMOTE),
    (word(DRAIN, n=1, dnode=1, addr=1), F.F_DST),
]


@pytest.mark.parametrize(("payload", "code"), PRIORITY)
def test_first_failing_row_wins(payload: int, code: F) -> None:
    rig = Rig()
    rig.ok("GEMM", gm=4, gn=4)
    assert rig.fault(payload) & 0xFF == code


def test_ignored_fields_and_reserved_bits_have_no_effect() -> None:
    def run(noise: int) -> tuple[bytes, list[int]]:
        rig = Rig()
        rig.operands(2, 2, 1)
        args = []
        for payload, mask in (
            (
                word(FILL, addr=0x1_0000, n=2),
                (1 << 141) | (1 << 63) - 1 | 1 << 200 | 0xFF << 192 | 0xFF << 144,
            ),
            (word(FILL, addr=0x8_0000, n=2, sel=1), (1 << 141) | (1 << 63) - 1),
            (word(GEMM, gm=2, gn=2), (1 << 141) | (1 << 63) - 1 | 0xFFFF << 202 | 1 << 115),
            (word(GEMM, gm=2, gn=2, acc=1, emit=1, addr=OUT), (1 << 141) | (1 << 63) - 1),
            (
                word(DRAIN, n=4, fuse=1),
                (1 << 141) | (1 << 63) - 1 | 0x3FFFFFFF << 218 | 0xFF << 87 | 0xFF << 69,
            ),
            (word(DRAIN, n=4, addr=OUT + 0x1000), (1 << 141) | (1 << 62) - 1 | 0xFF << 168 | 1 << 116),
        ):
            args.append(rig.inst(payload | (mask if noise else 0)).arg)
        return rig.m.read_mem(OUT, 0x2000), args

    assert run(0) == run(1)
    assert any(run(0)[0])


@pytest.mark.parametrize("bit", [33, 34, 35, 36, 37, 39])
def test_every_address_bit_reaches_the_request(bit: int) -> None:
    rig = Rig()
    rig.ok("GEMM")
    addr = 1 << bit | 0x40
    rig.inst(word(FILL, addr=addr, n=3, eoff=5))
    rig.inst(word(DRAIN, addr=addr))
    (read,) = rig.sent(ReadRequest)
    (write,) = rig.sent(WriteBurst)
    assert (read.addr, read.count, read.txn) == (addr, 3, 5)
    assert write.addr == addr
    flit = next(read.flits())
    assert flit >> 256 == 0x0_1_2_1 << 16 | 0x0 << 12 | 5 << 4 | 8
    assert flit >> 216 & (1 << 40) - 1 == addr
    assert flit >> 192 & 0xFFFFFF == 0x03_40_03
    assert flit & (1 << 192) - 1 == 0
    assert next(write.flits()) >> 216 & (1 << 40) - 1 == addr

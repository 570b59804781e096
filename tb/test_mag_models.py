# SPDX-License-Identifier: Apache-2.0
"""The benches' reference agent and the replay model's agent, written apart, agree on a random corpus."""

import random

import pytest

from kohakubench.mag_model import CU_DATA, WR_ACK, Flit, MagModel, flit, read_request, write_flits
from kohakutpu.model.agent import MemoryAgent
from kohakutpu.model.description import MachineDescription
from kohakutpu.model.messages import Flit as ModelFlit

pytestmark = pytest.mark.unit

DRAM = 1 << 16
UNITS = (0x11, 0x12, 0x21, 0x22)
PORT = (0, 1)


def _address(rng: random.Random, mesh: int) -> int:
    addr = mesh << 36 | rng.randrange(DRAM // 32) * 32
    for bit in rng.sample((0, 3, 4, 16, 20, 32, 35, 36, 37, 38, 39), rng.choice((0, 0, 0, 1, 2))):
        addr ^= 1 << bit
    return addr


def _corpus(rng: random.Random, mesh: int) -> list[int]:
    """Flits of four sources, interleaved: good, refused, badly framed, orphan, foreign."""
    streams: list[list[int]] = [[] for _ in UNITS]
    for src, stream in zip(UNITS, streams, strict=True):
        for _ in range(50):
            kind, addr, txn = rng.randrange(10), _address(rng, mesh), rng.randrange(256)
            rsvd = rng.choice((0, 0, 0, 0, 3, 4))
            if kind < 3:
                n = rng.choice((1, 2, 8, 40))
                stream.append(read_request(src, txn, addr, n, noise=rng.getrandbits(40), rsvd=rsvd))
            elif kind < 6:
                peers = tuple(rng.choice(UNITS) for _ in range(rng.randrange(4)))
                ew, count = rng.choice((0, 1, 2, 3, 4, 5, 255)), rng.choice((0, 1, 2, 9))
                stream.append(read_request(src, txn, addr, ew=ew, count=count, peers=peers, rsvd=rsvd))
            elif kind < 9:
                n = rng.choice((1, 2, 8, 8, 9, 30))
                length = rng.choice((None, None, None, n, max(0, n - 2)))
                lasts = rng.choice((None, None, None, [rng.randrange(2) for _ in range(n)]))
                words = [rng.getrandbits(256) for _ in range(n)]
                stream.extend(write_flits(src, txn, addr, words, length=length, lasts=lasts, rsvd=rsvd & 4))
            else:
                kind = rng.choice((2, 3, 5, 6, 7, CU_DATA, CU_DATA, 9, 15))
                stream.append(flit(dst=0x10, src=src, kind=kind, txn=txn, rsvd=rsvd))
    out = []
    while any(streams):
        out.append(rng.choice([s for s in streams if s]).pop(0))
    return out


@pytest.mark.parametrize("seed", range(4))
def test_two_references_agree(seed: int) -> None:
    """Responses, acknowledgements of each source, faults in order, counters, memory."""
    rng = random.Random(seed)
    mesh = seed % 4
    bench = MagModel(DRAM, mesh=mesh)
    sent: list[int] = []
    lost: list[int] = []
    machine = MachineDescription(
        name="pair",
        nx=2,
        ny=2,
        units={},
        mem_ports=(PORT,),
        orch=(3, 2),
        mesh_id=mesh,
        stage_bytes=0,
        dram_bytes=DRAM,
    )
    model = MemoryAgent(machine, sent.append, None, lost.append)
    bench.read_errors = bench.write_errors = (0x4000, 0x6000)
    model.fail_bus(0x4000, 0x2000)
    for raw in _corpus(rng, mesh):
        bench.feed(raw)
        model.take(ModelFlit(raw), PORT)
    assert [f for f in sent if Flit.of(f).kind != WR_ACK] == bench.responses
    acks: dict[int, list[int]] = {}
    for raw in sent:
        if Flit.of(raw).kind == WR_ACK:
            acks.setdefault(Flit.of(raw).dst, []).append(raw)
    assert acks == bench.acks
    events = [(int(e.code), e.node[1] << 4 | e.node[0], e.txn, e.addr) for e in model.faults]
    assert events == bench.faults
    assert (model.fault_count, model.orphans, model.control_drops) == (
        bench.fault_count,
        bench.orphans,
        bench.drops,
    )
    # A write that failed on the bus leaves its words undefined.
    defined = [a for a in range(0, DRAM, 32) if a not in bench.undefined]
    image = model.dram.read(0, DRAM).tobytes()
    assert [image[a : a + 32] for a in defined] == [bytes(bench.memory[a : a + 32]) for a in defined]
    assert len({code for code, *_ in events}) >= 9

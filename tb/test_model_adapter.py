# SPDX-License-Identifier: Apache-2.0
"""L2 adapter of the model: served, refused and forwarded requests, registers (docs/spec/memory.md 11)."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from kohakubench import scale
from kohakubench.adapter_witness import CU_CTRL, AdapterWitness
from kohakubench.mag_model import WR_ACK, Flit, flit, read_request, write_flits
from kohakubench.model_rig import MEM, ORCH, Rig, description
from kohakutpu.isa import address, message, registers
from kohakutpu.isa import cluster as isa
from kohakutpu.isa.faults import fault_arg
from kohakutpu.isa.generated import FAULT_MAGIC, AdapterIndex, ControlIndex, ShellFault
from kohakutpu.isa.generated import MemFault as M
from kohakutpu.model import messages
from kohakutpu.model.adapter import CTRL_LOST, Adapter
from kohakutpu.model.agent import MemoryAgent
from kohakutpu.model.machine import Machine

pytestmark = pytest.mark.unit

NODE, PORT, HOST = 0x12, 0x10, 0x11
BASE = address.adapter(0)
DEPTH = 512
SIZE = 32 * DEPTH
SPEC = json.loads((Path(__file__).resolve().parents[1] / "spec" / "memory.json").read_text())


class Pair:
    """The model's adapter alone and its witness, fed with the same flits."""

    def __init__(self, depth: int = DEPTH, *, enabled: bool = True) -> None:
        agent = MemoryAgent(description(), lambda _: None, None, lambda _: None)
        self.router: list[int] = []
        self.endpoint: list[int] = []
        self.m = Adapter((NODE & 15, NODE >> 4), agent, self.router.append, self.endpoint.append, depth)
        self.w = AdapterWitness(NODE, depth)
        if enabled:
            self.control(0xE1, BASE)
            self.control(0xE2, 1)
            self.take()

    def out(self, *flits: int) -> None:
        """Flits of the endpoint."""
        for raw in flits:
            self.m.from_endpoint(messages.Flit(raw))
            self.w.feed_endpoint(raw)
        self.compare()

    def into(self, *flits: int) -> None:
        """Flits of the router."""
        for raw in flits:
            self.m.from_router(messages.Flit(raw))
            self.w.feed_router(raw)
        self.compare()

    def control(self, index: int, value: int | None = None, *, dst: int = NODE, op: int | None = None) -> None:
        """A control request; a write if a value is given."""
        code = (0 if value is None else 1) if op is None else op
        payload = code << 248 | index << 240 | (value or 0) << 176
        self.into(flit(dst=dst, src=HOST, kind=CU_CTRL, txn=index, last=1, payload=payload))

    def ack(self, txn: int = 0, code: int = 0) -> None:
        """An acknowledgement of the agent."""
        self.into(flit(dst=NODE, src=PORT, kind=WR_ACK, txn=txn, last=1, payload=code << 4 | int(code > 0)))

    def compare(self) -> None:
        """Everything that left, registers and lines."""
        assert self.router == self.w.to_router
        assert self.endpoint == self.w.to_endpoint
        assert list(self.m.registers().values()) == self.w.registers()
        raw = b"".join(line.to_bytes(32, "little") for line in self.w.lines)
        assert self.m.store.read(0, 32 * self.m.depth).tobytes() == raw

    def take(self) -> tuple[list[Flit], list[Flit]]:
        """What left towards the router and the endpoint since the last call."""
        found = [Flit.of(f) for f in self.router], [Flit.of(f) for f in self.endpoint]
        for group in (self.router, self.endpoint, self.w.to_router, self.w.to_endpoint):
            group.clear()
        return found

    def fill(self) -> None:
        """Line n holds n + 1."""
        for first in range(0, DEPTH, 256):
            self.out(*write_flits(NODE, 0, BASE + 32 * first, [first + n + 1 for n in range(256)]))
        self.take()


def codes(flits: list[Flit]) -> list[tuple[int, int]]:
    """(txn, fault code) of write acknowledgements."""
    assert all(f.kind == WR_ACK for f in flits)
    return [(f.txn, f.payload >> 4) for f in flits]


# ------------------------------------------------------------------ registers


def test_reset_and_registers() -> None:
    pair = Pair(8192, enabled=False)
    resets = {r["index"]: r["reset"] for r in SPEC["adapter"]["registers"]}
    assert pair.m.registers() == {i: resets.get(i, 0) for i in range(0xE0, 0xE8)}
    for index in range(0xE0, 0xE8):
        pair.control(index)
    replies = [(f.dst, f.src, f.kind, f.txn, f.last, f.rsvd, f.payload >> 248) for f in pair.take()[0]]
    assert replies == [(HOST, NODE, CU_CTRL, i, 1, 0, 2) for i in range(0xE0, 0xE8)]
    pair.control(0xE1, (1 << 64) - 1)
    pair.control(0xE2, 0xFE)
    pair.control(0xE2, 0xFF)
    for index in (0xE0, 0xE3, 0xE5, 0xE7):
        pair.control(index, 123)
    got = [(f.payload >> 248, f.payload >> 176 & (1 << 64) - 1) for f in pair.take()[0]]
    caps = resets[0xE0]
    assert got == [(2, (1 << 40) - (1 << 18)), (2, 0), (2, 1), (3, caps), (3, 0), (3, 0), (3, 0)]
    # other operations read, other indices and other coordinates pass
    pair.control(0xE2, 0, op=5)
    assert pair.m.enabled
    for index, dst in ((0xDF, NODE), (0xE8, NODE), (0xE0, 0x02)):
        pair.control(index, dst=dst)
    router, endpoint = pair.take()
    assert ([f.txn for f in router], [f.txn for f in endpoint]) == ([0xE2], [0xDF, 0xE8, 0xE0])


def test_mailbox_examples() -> None:
    """The printed five-word flits, sent by the orchestrator of a machine."""
    machine = Machine(description(orch=MEM, adapter_lines={"MG": 8192}))
    words = [[int(w, 16) for w in e["words"]] for e in SPEC["adapter"]["mailbox_examples"]]
    for example in words[:3]:
        for n, value in enumerate(example):
            machine.host_write(machine.register_address("TX_FLIT", n), value)
        machine.host_write(machine.register_address("TX_KICK"), 1)
    assert list(message.to_words(machine.orch.rx[2])) == words[3]
    adapter = machine.adapters[(2, 1)]
    assert (adapter.base, adapter.enabled) == (BASE, True)


def test_status_is_read_before_it_is_cleared() -> None:
    pair = Pair()
    pair.out(read_request(NODE, 0, BASE + SIZE - 32, 2))
    pair.take()
    pair.m.status |= CTRL_LOST
    pair.w.status |= CTRL_LOST
    pair.control(0xE4, 0)
    pair.control(0xE4)
    assert [f.payload >> 176 & 15 for f in pair.take()[0]] == [9, 0]


# ------------------------------------------------------------------ window


def test_disabled_adapter_is_transparent() -> None:
    pair = Pair(enabled=False)
    pair.control(0xE1, BASE)
    pair.take()
    sent = [read_request(NODE, 1, BASE, 4), *write_flits(NODE, 2, BASE, [1, 2])]
    pair.out(*sent)
    router, endpoint = pair.take()
    assert (router, endpoint) == ([Flit.of(f) for f in sent], [])
    pair.ack(2)
    assert codes(pair.take()[1]) == [(2, 0)]


@pytest.mark.parametrize("n", [1, 8, 256])
def test_write_and_read_back(n: int) -> None:
    pair = Pair()
    words = [n * 1000 + i for i in range(n)]
    pair.out(*write_flits(NODE, 7, BASE + 64, words))
    pair.out(read_request(NODE, 9, BASE + 64, n))
    router, endpoint = pair.take()
    assert router == []
    assert codes(endpoint[:1]) == [(7, 0)]
    assert [(f.txn, f.last, f.rsvd, f.payload, f.src) for f in endpoint[1:]] == [
        (9, int(i == n - 1), 0, w, PORT) for i, w in enumerate(words)
    ]
    assert pair.m.registers()[AdapterIndex.COUNT] == (n + 1) << 32


@pytest.mark.parametrize("noise", [0, 0xBF])
@pytest.mark.parametrize(("raw", "ew"), [(1, 1), (2, 2), (3, 3), (4, 4), (0, 4), (5, 4)])
@pytest.mark.parametrize(("count", "c"), [(0, 1), (1, 1), (4, 4)])
def test_streaming_reads(raw: int, ew: int, count: int, c: int, noise: int) -> None:
    pair = Pair()
    pair.fill()
    pair.out(read_request(NODE, 250, BASE + 96, ew=raw, count=count, noise=noise))
    router, endpoint = pair.take()
    assert router == []
    want = [(250 + i, int(w == ew - 1), w, 4 + i * ew + w) for i in range(c) for w in range(ew)]
    assert [(f.txn, f.last, f.rsvd, f.payload) for f in endpoint] == want


@pytest.mark.parametrize(
    ("first", "n", "code"),
    [
        (-32, 1, None),
        (SIZE, 1, None),
        (-32, 2, M.M_RANGE),
        (SIZE - 32, 1, M.M_NONE),
        (SIZE - 32, 2, M.M_RANGE),
        (0, 256, M.M_NONE),
        (SIZE - 8192, 256, M.M_NONE),
        (SIZE - 8160, 256, M.M_RANGE),
        (16, 1, M.M_ALIGN),
        (-16, 1, M.M_ALIGN),
        (SIZE - 16, 1, M.M_ALIGN),
        (-33, 1, None),
    ],
)
def test_window_edges(first: int, n: int, code: M | None) -> None:
    """None: forwarded; NONE: served; else refused with the agent's own flits."""
    pair = Pair()
    pair.fill()
    pair.out(read_request(NODE, 5, BASE + first, n), *write_flits(NODE, 6, BASE + first, [0] * n))
    router, endpoint = pair.take()
    if code is None:
        assert (len(router), endpoint) == (n + 2, [])
        return
    assert router == []
    assert [(f.rsvd, f.last) for f in endpoint[:n]] == [(4 * (code > 0), int(i == n - 1)) for i in range(n)]
    assert codes(endpoint[n:]) == [(6, code)]
    crosses = first < 0 or first + 32 * n > SIZE
    assert pair.m.status == int(crosses)
    assert pair.m.local == DEPTH // 256 + n + 1
    if code:
        assert pair.m.store.read(0, 32)[0] == 1


def test_window_inside_one_run() -> None:
    """A run that begins below the window and ends above it."""
    pair = Pair()
    pair.out(read_request(NODE, 0, BASE - 32, ew=4, count=255))
    assert len(pair.take()[1]) == 1020
    assert pair.m.status == 1


def test_tags_and_multicast() -> None:
    pair = Pair()
    pair.fill()
    pair.out(read_request(NODE, 253, BASE, ew=1, count=3))
    assert [f.rsvd for f in pair.take()[1]] == [0, 0, 0]
    pair.out(read_request(NODE, 254, BASE, ew=2, count=3))
    assert [(f.txn, f.rsvd, f.last) for f in pair.take()[1]] == [
        (254 + i & 255, 4 | w, w) for i in range(3) for w in range(2)
    ]
    pair.out(read_request(NODE, 254, BASE + 8, ew=2, count=3))
    pair.out(read_request(NODE, 255, BASE + SIZE - 32, ew=2, count=3))
    assert pair.m.status == 1
    pair.take()
    for peers in ((1,), (1, 2), (1, 2, 3)):
        pair.out(read_request(NODE, 255, BASE + SIZE - 32 + 8, ew=2, count=3, peers=peers))
        router, endpoint = pair.take()
        assert (len(router), endpoint) == (1, [])
    assert (pair.m.forwarded, pair.m.status) == (3, 3)
    # outside the window a multicast is none of its business
    pair.out(read_request(NODE, 0, 0, ew=2, count=3, peers=(1,)))
    assert pair.m.forwarded == 3


def test_another_mesh_and_marked_flits_pass() -> None:
    pair = Pair()
    pair.out(
        read_request(NODE, 0, address.adapter(0, 1), 1),
        read_request(NODE, 0, BASE, 1, rsvd=4),
        *write_flits(NODE, 0, BASE, [1], rsvd=5),
        flit(dst=PORT, src=NODE, kind=6, payload=BASE << 216),
    )
    router, endpoint = pair.take()
    assert (len(router), endpoint) == (5, [])
    # the agent acknowledges a marked descriptor too, so a later local one waits for it
    assert len(pair.m.order) == 1
    pair.out(*write_flits(NODE, 9, BASE, [1]))
    assert pair.take() == ([], [])
    pair.ack(0, M.M_REMOTE)
    assert codes(pair.take()[1]) == [(0, M.M_REMOTE), (9, 0)]


# ------------------------------------------------------------------ writes


def test_acknowledgements_keep_the_order_of_descriptors() -> None:
    pair = Pair()
    sent = []
    for txn in range(20):
        at = BASE if txn % 3 else 0
        sent += write_flits(NODE, txn, at + 32 * txn, [txn])
    pair.out(*sent)
    router, endpoint = pair.take()
    assert len(router) == 14
    assert endpoint == []
    for txn in range(0, 20, 3):
        pair.ack(txn, M.M_BUS if txn == 6 else 0)
        want = [(t, M.M_BUS if t == 6 else 0) for t in range(txn, min(txn + 3, 20))]
        assert codes(pair.take()[1]) == want
    # a stray acknowledgement passes and changes nothing
    pair.ack(99)
    assert codes(pair.take()[1]) == [(99, 0)]


def test_order_list_of_64() -> None:
    """The 65th descriptor waits on the endpoint face and everything behind it."""
    pair = Pair()
    for txn in range(64):
        pair.out(*write_flits(NODE, txn, 32 * txn, [txn]))
    pair.take()
    pair.out(*write_flits(NODE, 64, BASE, [1, 2]), read_request(NODE, 65, BASE, 2))
    assert pair.take() == ([], [])
    assert len(pair.m.stalled) == 4
    pair.ack(0)
    router, endpoint = pair.take()
    assert router == []
    assert [f.kind for f in endpoint] == [WR_ACK, 2, 2]
    assert [f.payload for f in endpoint[1:]] == [1, 2]
    for txn in range(1, 64):
        pair.ack(txn)
    assert codes(pair.take()[1])[-2:] == [(63, 0), (64, 0)]
    assert len(pair.m.order) == 0


def test_second_descriptor_at_a_full_list() -> None:
    """It closes the open write, then waits like any other."""
    pair = Pair()
    for txn in range(63):
        pair.out(*write_flits(NODE, txn, 32 * txn, [txn]))
    pair.out(write_flits(NODE, 63, BASE, [1])[0])
    pair.take()
    pair.out(*write_flits(NODE, 64, BASE, [2]))
    assert pair.m.status == 4
    assert pair.take() == ([], [])
    for txn in range(63):
        pair.ack(txn)
    assert codes(pair.take()[1])[-2:] == [(63, M.M_FRAME), (64, 0)]


@pytest.mark.parametrize(("sent", "last"), [(0, 1), (1, 1), (2, 0)])
def test_local_descriptor_ends_an_open_forwarded_write(sent: int, last: int) -> None:
    """One data flit with a wrong mark, so that the agent acknowledges what would stay open for ever."""
    pair = Pair()
    pair.out(*write_flits(NODE, 1, 0, [5, 6, 7])[: 1 + sent])
    pair.out(*write_flits(NODE, 2, BASE, [8]))
    router, endpoint = pair.take()
    assert (len(router), endpoint) == (1 + sent + 1, [])
    assert (router[-1].kind, router[-1].last, router[-1].payload, router[-1].txn) == (4, last, 0, 1)
    assert pair.m.status == 4
    pair.ack(1, M.M_FRAME)
    assert codes(pair.take()[1]) == [(1, M.M_FRAME), (2, 0)]
    # a forwarded descriptor needs no help: the agent sees it
    pair.out(*write_flits(NODE, 3, 0, [5, 6])[:1], *write_flits(NODE, 4, 64, [5]))
    assert len(pair.take()[0]) == 3


@pytest.mark.parametrize("lasts", [[0, 1, 0], [0, 0, 0], [1, 0, 0]])
def test_wrong_last(lasts: list[int]) -> None:
    """Words already received stay; what follows the close goes to the agent."""
    pair = Pair()
    pair.out(*write_flits(NODE, 1, BASE, [11, 12, 13], lasts=lasts))
    router, endpoint = pair.take()
    taken = lasts.index(1) + 1 if 1 in lasts else 3
    assert codes(endpoint) == [(1, M.M_FRAME)]
    assert len(router) == 3 - taken
    assert pair.w.lines[:3] == [11, 12, 13][:taken] + [0] * (3 - taken)
    assert pair.m.status == 4


def test_refused_write_with_wrong_framing() -> None:
    """The refusal fixes the code."""
    pair = Pair()
    pair.out(*write_flits(NODE, 1, BASE - 32, [1, 2, 3], lasts=[0, 1, 0]))
    pair.out(*write_flits(NODE, 2, BASE + 3, [1] * 256))
    assert codes(pair.take()[1]) == [(1, M.M_RANGE), (2, M.M_ALIGN)]


def test_disable_while_idle_and_move_the_window() -> None:
    pair = Pair()
    pair.fill()
    pair.control(0xE2, 0)
    pair.take()
    pair.out(read_request(NODE, 1, BASE, 1))
    assert len(pair.take()[0]) == 1
    pair.control(0xE1, 0x4000)
    pair.control(0xE2, 1)
    pair.take()
    pair.out(read_request(NODE, 1, 0x4000 + 96, 1))
    assert [f.payload for f in pair.take()[1]] == [4]


def test_depth_is_checked() -> None:
    for depth in (256, 700):
        with pytest.raises(ValueError, match=f"depth = {depth}: a power of two >= 512"):
            Pair(depth)


@pytest.mark.parametrize("seed", range(scale(40, 1000)))
def test_random_traffic(seed: int) -> None:
    """Requests around the window, broken bursts, control requests and late acknowledgements."""
    rng = random.Random(seed)
    pair = Pair()
    owed = 0
    for _ in range(120):
        near = BASE + rng.choice((0, SIZE)) + 32 * rng.randint(-4, 4) + rng.choice((0, 0, 0, 0, 8))
        at = rng.choice((near, near, BASE + 32 * rng.randrange(DEPTH - 40), 32 * rng.randrange(64)))
        kind = rng.random()
        if kind < 0.35:
            peers = tuple(range(rng.choice((0, 0, 0, 1, 3))))
            if rng.random() < 0.5:
                request = read_request(NODE, rng.randrange(256), at, rng.randint(1, 20))
            else:
                ew, count = rng.randint(0, 6), rng.randint(0, 9)
                request = read_request(NODE, rng.randrange(256), at, ew=ew, count=count, peers=peers)
            pair.out(request)
        elif kind < 0.75:
            n = rng.randint(1, 9)
            data = [rng.getrandbits(256) for _ in range(n)]
            flits = write_flits(NODE, rng.randrange(256), at, data, length=n - 1 + (rng.random() < 0.1))
            if rng.random() < 0.1:
                flits[rng.randrange(len(flits))] |= 4 << 256
            pair.out(*flits[: len(flits) - (rng.random() < 0.1)])
        elif kind < 0.95 and owed:
            pair.ack(rng.randrange(256), rng.choice((0, 0, 9)))
        else:
            index = rng.choice((0xE3, 0xE4, 0xE4, 0xE2))
            pair.control(index, rng.choice((None, 1)))
        owed = sum(w.line is None for w in pair.w.writes)
        assert len(pair.m.stalled) == len(pair.w.waiting)
    while pair.w.writes and pair.w.writes[0].line is None:
        pair.ack(1)
    assert pair.w.local > 0
    assert pair.w.local == pair.m.local


# ------------------------------------------------------------------ in a machine


def adapted() -> Rig:
    rig = Rig(adapter_lines={"MG": DEPTH})
    for index, value in ((AdapterIndex.BASE, BASE), (AdapterIndex.ENABLE, 1)):
        request = message.encode("CU_CTRL_REQ", dst=(2, 1), src=ORCH, txn=1, op=1, index=index, value=value)
        rig.m.deliver(request)
    return rig


def test_unit_behind_an_adapter() -> None:
    """A cluster fills from and drains to its adapter; DRAM and staging stay untouched."""
    rig, plain = adapted(), Rig()
    rig.operands(4, 4, 2)
    plain.operands(4, 4, 2)
    adapter = rig.m.adapters[(2, 1)]
    for base, sel in ((0x1_0000, 0), (0x8_0000, 1)):
        data = rig.m.read_mem(base, 128 * 8)
        adapter.store.write(0x2000 * sel, np.frombuffer(data, dtype=np.uint8))
        rig.ok("FILL", addr=BASE + 0x2000 * sel, n=8, sel=sel)
        plain.ok("FILL", addr=base, n=8, sel=sel)
    for r, out in ((rig, BASE + 0x3000), (plain, 0x10_0000)):
        r.ok("GEMM", gm=4, gn=4, nk=2)
        r.ok("DRAIN", n=16, addr=out)
    assert adapter.store.read(0x3000, 512).tobytes() == plain.m.read_mem(0x10_0000, 512)
    assert rig.m.agent.counts == {"dram": [0, 0], "stage": [0, 0]}
    assert (adapter.local, adapter.forwarded, adapter.status) == (64 + 2, 0, 0)
    # what leaves the window goes to memory as before
    rig.ok("DRAIN", n=16, addr=0x10_0000)
    assert rig.m.read_mem(0x10_0000, 512) == plain.m.read_mem(0x10_0000, 512)


def test_refusals_reach_the_unit_as_faults() -> None:
    rig = adapted()
    assert rig.fault(isa.encode("FILL", addr=BASE + SIZE - 32)) == 0x4D470110
    rig.ok("GEMM", gm=4, gn=4)
    drain = isa.encode("DRAIN", n=16, addr=BASE - 64)
    assert rig.fault(drain) == fault_arg(FAULT_MAGIC, M.M_RANGE, ShellFault.WR_DROP)
    assert rig.m.agent.faults == []
    assert rig.m.adapters[(2, 1)].status == 1


def test_disabled_window_in_aperture_1_is_no_memory() -> None:
    rig = Rig(adapter_lines={"MG": DEPTH})
    assert rig.fault(isa.encode("FILL", addr=BASE)) == 0x4D470110
    assert [e.code for e in rig.m.agent.faults] == [M.M_APER]


def test_discovery_passes_the_adapter() -> None:
    rig = adapted()
    rig.m.deliver(message.encode("CU_CTRL_REQ", dst=(2, 1), src=ORCH, txn=9, op=0, index=ControlIndex.CU_CAPS))
    reply = messages.Flit(rig.m.orch.rx[-1])
    assert reply.payload >> 224 & 0xFFFF == registers.decode("CU_CAPS", rig.m.shells[(2, 1)].register(0))["cu_type"]

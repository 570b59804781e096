# SPDX-License-Identifier: Apache-2.0
"""Checks and events of a quantising VDRAIN at their last legal and first illegal values (docs/spec/vector.md 15)."""

from __future__ import annotations

from collections.abc import Iterator

import cocotb
import numpy as np

from benches.vc_core_rig import BAD_READ, CLAMP, CTRL, OWN, Rig
from benches.vc_mx_rig import ENTRY, IN, drain, entries, halves, peer
from kohakubench import checks, clocks, seed
from kohakubench.vector_programs import SOURCE, TARGET
from kohakutpu.isa import message
from kohakutpu.isa.generated import CTRL_OP_WRITE, ControlIndex, MessageType
from kohakutpu.isa.generated import VectorFault as F

MEMORY, NODE = "VDRAIN A0, L1 {l1} {{mx=1 {more}}}", "VDRAIN A0, L1 {l1} -> node (3,1) buf {buf} {{mx=1 {more}}}"
ONE = [(ENTRY, 1)]


def memory(code: F | int, dims: list[tuple[int, int]], base: int = TARGET, l1: int = 0, more: str = "") -> tuple:
    return code, base, dims, MEMORY.format(l1=l1, more=more)


def node(code: F | int, dims: list[tuple[int, int]], base: int = 0, l1: int = 0, buf: int = 0, more: str = "") -> tuple:
    return code, base, dims, NODE.format(l1=l1, buf=buf, more=more)


CASES = [
    *[memory(0 if buf < 2 else F.F_ENC, ONE, more=f"buf={buf}") for buf in range(16)],
    *[node(0 if buf < 2 else F.F_PEER, [(1, 1)], buf=buf) for buf in range(16)],
    *[memory(F.F_ENC, ONE, more=field) for field in ("signal=1", "dst_x=1", "dst_x=8", "dst_y=1", "dst_y=8")],
    *[memory(F.F_LEN if n > 32 else 0, [(ENTRY, n)]) for n in (31, 32, 33, 34, 63, 64, 255, 256, 257, 65535)],
    *[node(F.F_LEN if n > 32 else 0, [(1, n)]) for n in (31, 32, 33, 64, 65, 256, 512)],
    memory(0, [(ENTRY, 4), (512, 4), (2048, 2)]),
    memory(F.F_LEN, [(ENTRY, 3), (512, 11)]),
    memory(F.F_LEN, [(ENTRY, 65535)] * 4),
    # the words of L1
    *[memory(F.F_L1RANGE if l1 > 512 - IN * n else 0, [(ENTRY, n)], l1=l1)
      for n in (1, 2, 32) for l1 in (511 - IN * n, 512 - IN * n, 513 - IN * n, 511)],
    *[node(F.F_L1RANGE if l1 > 512 - IN * n else 0, [(1, n)], l1=l1)
      for n in (1, 31, 32) for l1 in (512 - IN * n, 513 - IN * n)],
    # alignment of base and of the strides in use
    memory(F.F_ALIGN, ONE, base=TARGET + 16),
    memory(F.F_ALIGN, [(ENTRY, 2), (ENTRY + 8, 2)]),
    memory(0, [(ENTRY + 8, 1)]),
    # the receiver's buffer
    *[node(F.F_PEER if off > 65536 - 4 * n else 0, [(1, n)], base=off)
      for n in (1, 31, 32) for off in (65535 - 4 * n, 65536 - 4 * n, 65537 - 4 * n, 65535)],
    node(F.F_PEER, [(4, 2)]),
    node(F.F_PEER, [(ENTRY, 2)]),
    node(0, [(4, 1)]),
    node(F.F_PEER, [(1, 2), (1, 2)]),
    node(F.F_PEER, [(1, 1)], base=1 << 26),
    node(0, [(1, 1)], base=1 << 26 | 1 << 16),
    (F.F_PEER, 0, [(1, 1)], "VDRAIN A0, L1 0 {mx=1 node=1}"),
    # the order of the checks
    memory(F.F_ENC, [(8, 300)], base=1, l1=511, more="buf=2"),
    memory(F.F_LEN, [(8, 33)], base=1, l1=511),
    memory(F.F_ALIGN, [(8, 32)], l1=511),
    node(F.F_LEN, [(5, 33)], base=65535, l1=511, buf=5),
    node(F.F_PEER, [(1, 2)], l1=511, buf=2),
]  # fmt: skip


@cocotb.test()
async def limits(dut):
    """F_ENC, F_LEN, F_PEER, F_ALIGN, F_L1RANGE at the last legal and first illegal value, in their order."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    halves(rig, 512)
    for code, base, dims, text in CASES:
        rig.describe(0, base, *dims)
        rig.text(text)
        rig.go()
        signal = rig.network.signals[-1]
        got = signal >> 216 & 0xFF if signal >> 248 & 0xFF else 0
        checks.equal(f"{text} of {dims} at {base:#x}", got, int(code))
    await rig.run()


Case = tuple[str, bool, np.ndarray, str, tuple[int, tuple[int, int]]]
"""Name, whether CU_ERR reports the clamp, codes from L1 word 16 on, the VDRAIN, base and dimension 0."""


def event_cases(rng: np.random.Generator) -> Iterator[Case]:
    """Entries with and without an infinity or NaN, drained, beside a drain, or lost."""
    plain = rng.integers(0, 2, (3, 4, 32)) << 15 | rng.integers(0, 31 << 10, (3, 4, 32))
    plain[0, 0, 0], plain[1, 1, 1], plain[2, 3, 31] = 0x7BFF, 0xFBFF, 0x0001

    def with_at(*places: int) -> np.ndarray:
        codes = plain.copy()
        codes.reshape(-1)[list(places)] = rng.choice([0x7C00, 0xFC00, 0x7C01, 0xFFFF], len(places))
        return codes

    whole = (TARGET, (ENTRY, 3))
    yield "ordinary entries", False, plain, drain(0, 16), whole
    for place in range(plain.size):
        yield f"element {place}", True, with_at(place), drain(place & 1, 16), whole
        if place % 4 == 0:
            yield "ordinary entries after it", False, plain, drain(1, 16), whole
    yield "to a peer", True, with_at(383), peer(1, 16), (0, (1, 3))
    yield "another entry of L1", False, with_at(256, 300), drain(0, 16), (TARGET, (ENTRY, 2))
    yield "words on both sides", False, with_at(127, 256), drain(0, 24), (TARGET, (ENTRY, 1))
    yield "moved unchanged", False, with_at(0, 200), "VDRAIN A0, L1 16", (TARGET, (32, 24))
    yield "refused", False, with_at(0, 200), drain(0, 16), (TARGET, (ENTRY, 33))
    yield "refused by a peer", False, with_at(0, 200), peer(1, 16), (65535, (1, 3))
    top = 1 << 40
    for words in range(1, 5):
        yield "an entry cut short", True, with_at(200), drain(0, 16), (top - ENTRY - 32 * words, (ENTRY, 3))
    yield "the first behind the end", False, with_at(200), drain(0, 16), (top - ENTRY, (ENTRY, 3))
    yield "the second behind the end", False, with_at(300), drain(0, 16), (top - ENTRY - 32, (ENTRY, 3))
    yield "two behind the beginning", False, with_at(200, 300), drain(0, 16), (32, (-ENTRY, 3))


@cocotb.test()
async def special_elements(dut):
    """unit_err[3] for an infinity or NaN in any element of an entry that is sent, and for nothing else."""
    clocks.start(dut.clk)
    clear = message.encode("CU_CTRL_REQ", dst=OWN, src=CTRL, op=CTRL_OP_WRITE, index=ControlIndex.CU_ERR)
    cases = list(event_cases(np.random.default_rng(seed())))
    for busy in (0, 130):
        rig = Rig(dut, seed(), cfg_busy=busy)
        for name, expected, codes, text, (base, dims) in cases:
            entries(rig, codes, 16)
            rig.describe(0, base, dims)
            rig.text(text)
            rig.go()
            rig.stray(clear, done=len(rig.inst))
            checks.equal(f"{name}: model", rig.shell.sticky, CLAMP if expected else 0)
            rig.shell.sticky = 0
        t = await rig.run()
        replies = [f >> 176 & 0xFFFF for f in t.of(MessageType.CU_CTRL)]
        checks.equal("replies", len(replies), len(cases) + 1)
        for (name, expected, *_), got in zip(cases, replies, strict=False):
            checks.equal(name, got, CLAMP if expected else 0)


@cocotb.test()
async def outstanding_words(dut):
    """A drain waits for a fill of any word of its entries, and reports one that failed."""
    clocks.start(dut.clk)
    for order in range(3):
        rig = Rig(dut, seed(), cfg_order=order, cfg_lat=(250, 40, 3)[order], cfg_gap=(0, 120, 30)[order])
        halves(rig, 512)
        for n, (l1, filled) in enumerate([(0, 0), (0, 3), (8, 31), (100, 163), (448, 511), (240, 250), (250, 257)]):
            rig.describe(0, TARGET + 0x1000 * n, (ENTRY, 8))
            rig.describe(1, SOURCE + 0x100 * n, (32, 1))
            rig.describe(2, TARGET + 0x8000 + 0x1000 * n, (ENTRY, 8))
            at = min(l1, 448)
            rig.text(f"VFILL A1, L1 {filled}\n{drain(n % 2, at)}VFILL A1, L1 {at}\n{drain(1, at, 2)}")
            rig.go()
        for place in (0, 7, 8, 40, 63):
            rig.describe(0, TARGET, (ENTRY, 8))
            rig.describe(1, 32 * BAD_READ, (32, 1))
            rig.text(f"VFILL A1, L1 {100 + place}\n{drain(0, 100)}VMOV v1, K1")
            rig.go()
            checks.equal(f"fault at {place}", rig.network.signals[-1] >> 216 & 0xFF, int(F.F_MEM_RD))
            rig.mend()
        for place in (99, 164):
            rig.describe(1, 32 * BAD_READ, (32, 1))
            rig.text(f"VFILL A1, L1 {place}\n{drain(0, 100)}VBAR")
            rig.go()
            rig.mend()
        await rig.run()

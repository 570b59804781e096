# SPDX-License-Identifier: Apache-2.0
"""What a quantising VDRAIN sends: the whole corpus, walks of addresses, peers (docs/spec/vector.md 15)."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.vc_core_rig import OWN, Rig
from benches.vc_mx_rig import ENTRY, IN, LAYOUTS, OUT, drain, entries, halves, peer
from kohakubench import checks, clocks, scale, seed
from kohakubench import quant_corpus as corpus
from kohakubench.vector_programs import SOURCE, TARGET
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorError

HELD = 64
"""Entries L1 holds."""
ROUNDS = 60


def pieces(codes: np.ndarray) -> list[np.ndarray]:
    """Arrays of 64 entries, the last one filled up with zeros."""
    codes = np.concatenate([codes, np.zeros((-len(codes) % HELD, 4, 32), codes.dtype)])
    return list(codes.reshape(-1, HELD, 4, 32))


@cocotb.test()
@cocotb.parametrize(name=["alone", "beside", "boundaries", "named", "random"])
async def every_case(dut, name: str):
    """The corpus of the mover's quantiser through L1, both packings, to memory; every fourth load to a peer too."""
    clocks.start(dut.clk)
    rng = np.random.default_rng(seed())
    make = {
        "alone": lambda: corpus.every_code_alone(rng),
        "beside": corpus.every_code_beside_a_peak,
        "boundaries": lambda: np.concatenate(corpus.boundaries(rng)),
        "named": lambda: corpus.named(rng),
        "random": lambda: corpus.random_entries(rng, scale(2000, 50_000)),
    }
    loads = pieces(make[name]())
    for first in range(0, len(loads), ROUNDS):
        rig = Rig(dut, seed() + first, cfg_busy=(0, 30, 128)[first // ROUNDS % 3])
        rig.text("".join(drain(layout, 256 * h, 2 * layout + h) for layout in LAYOUTS for h in (0, 1)))
        rig.text("".join(peer(layout, 256 * h, 4) for layout in LAYOUTS for h in (0, 1)), 40)
        rig.describe(4, 0x110000, (1, HELD // 2))
        for n, load in enumerate(loads[first : first + ROUNDS]):
            entries(rig, load)
            for ad in range(4):
                rig.describe(ad, TARGET + (4 * n + ad) * ENTRY * HELD // 2, (ENTRY, HELD // 2))
            rig.go()
            if n % 4 == 3:
                rig.go(40)
        await rig.run()


SHAPES: list[list[tuple[int, int]]] = [
    [(ENTRY, n)] for n in (1, 2, 3, 4, 5, 31, 32)
] + [
    [(ENTRY, 4), (4 * ENTRY, 8)],  # contiguous across rows: bursts of 8
    [(ENTRY, 3), (3 * ENTRY, 5)], [(ENTRY, 3), (4 * ENTRY, 5)], [(2 * ENTRY, 20)], [(-ENTRY, 20)], [(ENTRY, 2),
    (-2 * ENTRY, 9)],
    [(32, 9)], [(96, 9)], [(160, 9)], [(-32, 9)], [(0, 7)], [(ENTRY, 9), (0, 3)], [(ENTRY, 0), (ENTRY, 11)],
    [(ENTRY, 2), (256, 2), (512, 2), (1024, 4)], [(256, 2), (ENTRY, 3), (4096, 5)], [(131072 - 32, 3)],
    [(-131072, 3), (131072 - 32, 4)],
]  # fmt: skip


@cocotb.test()
async def walks(dut):
    """Walks of one to four dimensions, entries apart, side by side and over each other: bursts and bytes exact."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=50)
    halves(rig, 512)
    shapes = list(SHAPES)
    strides = [128, 128, 128, 256, 96, 32, -128, 0, 160, 4096]
    for _ in range(scale(40, 800)):
        dims = [(rig.rng.choice(strides), rig.rng.choice((1, 1, 2, 3, 5))) for _ in range(rig.rng.randrange(1, 5))]
        shapes.append(dims)
    for dims in shapes:
        total = int(np.prod([max(1, bound) for _, bound in dims]))
        if total > 32:
            continue
        rig.describe(0, 0xC0000 + 32 * rig.rng.randrange(999), *dims)
        rig.text(drain(rig.rng.randrange(2), rig.rng.randrange(513 - IN * total)))
        rig.go()
    await rig.run()


@cocotb.test()
async def edges_of_memory(dut):
    """Walks that leave 0..2^40-1 between entries and inside one: F_ADDR at that word, the next drain unharmed."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=30)
    halves(rig, 512)
    top = 1 << 40
    cases = [(top - 32 * k, stride) for k in range(1, 14) for stride in (128, 32, 256)]
    cases += [(32 * k, stride) for k in (0, 1, 3, 4, 9) for stride in (-32, -128, -160)]
    for n, (base, stride) in enumerate(cases):
        rig.describe(0, base, (stride, 5))
        rig.describe(1, TARGET, (ENTRY, 3))
        rig.text(drain(n % 2, 8 * n))
        index = rig.go()
        reached = [base + stride * e + 32 * w for e in range(5) for w in range(OUT)]
        fault = any(not 0 <= x < top for x in reached)
        got = rig.network.signals[-1] >> 216 & 0xFF if rig.network.signals[-1] >> 248 & 0xFF else 0
        checks.equal(f"fault of RUN {index}", got, 0x0D if fault else 0)
        rig.text(drain(1 - n % 2, 8 * n + 3, 1) if n % 3 else "VDRAIN A1, L1 40")
        rig.go()
    await rig.run()


@cocotb.test()
async def peers(dut):
    """Both packings to a peer, every size and field, local and remote; descriptor and 4E words."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=50)
    halves(rig, 512)
    cases = [(n, base) for n in (1, 2, 3, 31, 32) for base in (0, 0x11_0010, 65536 - OUT * n)]
    cases += [(4, isa.peer_base(off=9, ack_x=1, ack_y=1, mesh=m, fin_x=m + 1, fin_y=m)) for m in range(4)]
    cases += [(1, 1 << bit | (0x11 << 16 if 26 <= bit < 34 else 0)) for bit in range(40)]
    for n, base in cases:
        rig.describe(0, base, (1, n))
        for layout in LAYOUTS:
            rig.text(peer(layout, 512 - IN * n, dst=(3, n % 2), signal=n % 2 == 1))
            rig.go()
    t = await rig.run()
    checks.equal("peer flits", len(t.of(8)), 2 * sum(OUT * n + 1 for n, _ in cases))
    lengths = [f >> 224 & 255 for f in t.of(8) if not f >> 259 & 1 and f >> 240 & 0xFF == 0][:2]
    checks.equal("first lengths", lengths[0], OUT - 1)


@cocotb.test()
async def to_itself(dut):
    """A quantising drain into the core's own L1 is acknowledged and stays there; packing B is another buffer."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=40)
    rig.install_dump()
    for n, (count, offset, layout) in enumerate(
        [(1, 300, 0), (32, 384, 0), (31, 256, 0), (4, 300, 1), (2, 505, 0), (1, 508, 0)] * scale(1, 8)
    ):
        halves(rig, 256)
        rig.describe(0, (0x11 if n % 2 else 0) << 16 | offset, (1, count))
        rig.describe(1, SOURCE, (32, 5))
        rig.text(peer(layout, 0, dst=OWN, signal=True) + "VFILL A1, L1 250; VBAR; VMOV v1, K1")
        rig.go()
        rig.await_recv = rig.received
        rig.dump()
        rig.dump()
    await rig.run()
    checks.true("some were rejected", rig.shell.sticky >> 8 & 1 << VectorError.REJECT)
    checks.true("most were not", rig.received > 4)

# SPDX-License-Identifier: Apache-2.0
"""Words a cycle and read latency of the memory agent: port, both memories and mover (docs/spec/memory.md 8, 10, 12)."""

import cocotb
import numpy as np

from kohakubench import Bench, checks, clocks, figures
from kohakubench.mag_model import RD_RESP, WORD, WR_ACK, read_request, write_flits
from kohakubench.mag_tb import MOVER_SOURCES, PUBLIC, SOURCES, UNITS, MagTb, Step
from kohakubench.mover_tb import SEED, Dim, MoverTb, Walk, copy, line, move, transform
from kohakutpu.isa.generated import MoverMode, MoverTransform

BENCH = Bench(
    name="mag_rates",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 2048, "DRAM_LOG2": 18},
    slow_variants=("rd16",),
    variants={"rd16": {"RD_OUT": 16}},
    public=PUBLIC,
    mutations={
        "slow_reads": (
            "rtl/memory/mag_path.v",
            "localparam [4:0] RD_MAX = RD_OUT[4:0];",
            "localparam [4:0] RD_MAX = 5'd2;",
        ),
        "no_joins": ("rtl/memory/mov_write.v", "joins  = coalesce && word", "joins  = 1'b0 && word"),
    },
    mutation_tests={"slow_reads": ["reads"], "no_joins": ["mover"]},
    wall_s=300,
)
LATENCIES = (20, 40, 100)
"""Latencies of the ideal memory, in cycles."""
KEEPS = 40
"""Latency up to which four bursts in flight keep one word a cycle."""
HALF = 1 << 17  # sources below, destinations above
FEW, MANY = 512, 1536  # words of two runs whose difference is the rate


def _row(name, latency, words, cycles, first=None):
    row = {"name": name, "latency": latency, "words": words, "cycles": cycles, "rate": round(words / cycles, 4)}
    return row if first is None else row | {"first": first}


@cocotb.test()
async def reads(dut):
    """Streams, plain reads and a multicast of both memories; one word a cycle from DRAM to the latency of the page."""
    rows = []
    for latency in LATENCIES:
        tb = await MagTb.start(dut, ideal=1, lat_min=latency)
        for tier, place in (("DRAM", tb.own), ("staging", tb.staged)):
            if tier == "staging" and latency != LATENCIES[0]:
                continue  # DRAM latency is no part of it
            shapes = {
                "stream": [read_request(UNITS[0], 0, place(WORD), port=tb.port, ew=4, count=255)],
                "plain, 256 words": [read_request(UNITS[k], 0, place(0x2000 * k), 256, port=tb.port) for k in range(4)],
                "plain, 1 word": [
                    read_request(UNITS[k % 4], 0, place(0x2000 + k * WORD), 1, port=tb.port) for k in range(512)
                ],
                "stream to four": [read_request(UNITS[0], 0, place(0), port=tb.port, ew=4, count=60, peers=UNITS[1:4])],
            }
            for name, steps in shapes.items():
                await tb.play(steps)
                when = [c for c, _ in tb.captured]
                first = when[0] - int(dut.first_in.value)
                row = _row(f"{tier}, {name}", latency, len(when), when[-1] - when[0] + 1, first)
                rows.append(row)
                if tier == "DRAM" and latency <= KEEPS and name != "plain, 1 word":
                    checks.true(row["name"], row["rate"] > 0.99, f"{row['rate']} words a cycle, latency {latency}")
    figures.write("reads", rows)


@cocotb.test()
async def writes(dut):
    """Writes of 8 and of 1 word by four sources to both memories: first flit in to last acknowledgement out."""
    rows = []
    for latency in LATENCIES:
        tb = await MagTb.start(dut, ideal=1, lat_min=latency)
        for tier, place in (("DRAM", tb.own), ("staging", tb.staged)):
            for n in (8, 1):
                flits = []
                for k in range(256):
                    words = [tb.rng.getrandbits(256) for _ in range(n)]
                    flits += write_flits(UNITS[k % 4], k, place(8 * WORD * k), words, port=tb.port)
                await tb.play(flits)
                acks = [c for c, f in tb.captured if f.kind == WR_ACK]
                start = int(dut.first_in.value)
                row = _row(f"{tier}, {n} word{'s' * (n > 1)}", latency, 256 * n, acks[-1] - start + 1, acks[0] - start)
                rows.append(row | {"flits": len(flits)})
                checks.true(row["name"], row["words"] <= row["cycles"], "more than the link carries")
                if n == 8 and tier == "DRAM" and latency <= KEEPS:
                    checks.true(row["name"], row["rate"] > 0.8, f"{row['rate']} words a cycle, latency {latency}")
    figures.write("writes", rows)


def _moves(m, n):
    """Name -> (register writes of a move, words it writes) for ``n`` words, destinations in the upper half."""
    own, staged = m.own, m.staged
    quant = MoverTransform.QUANTISE
    square = 16  # columns of the transposed words
    return {
        "COPY, DRAM to DRAM": (copy(line(own(0), n), line(own(HALF), n)), n),
        "COPY, DRAM to staging": (copy(line(own(0), n), line(staged(0), n)), n),
        "COPY, staging to DRAM": (copy(line(staged(0), n), line(own(HALF), n)), n),
        "COPY, not coalesced": (copy(line(own(0), n), line(own(HALF), n), coalesce=False), n),
        "COPY, source every other word": (copy(Walk(own(0), [Dim(n, 2 * WORD)]), line(own(HALF), n)), n),
        "COPY, target every other word": (copy(line(own(0), n), Walk(own(HALF), [Dim(n, 2 * WORD)])), n),
        "COPY, rows of 16 words": (
            copy(Walk(own(0), [Dim(n // 16, 32 * WORD), Dim(16, WORD)]), line(own(HALF), n)),
            n,
        ),
        "COPY, words transposed": (
            copy(
                Walk(own(0), [Dim(square, WORD), Dim(n // square, square * WORD)]),
                line(own(HALF), n),
            ),
            n,
        ),
        "FILL, DRAM": (move(MoverMode.FILL, None, line(own(HALF), n)), n),
        "FILL, staging": (move(MoverMode.FILL, None, line(staged(0), n)), n),
        "GENERATE, DRAM": ([(SEED, 7), *move(MoverMode.GENERATE, None, line(own(HALF), n))], n),
        "QUANTISE": (transform(quant, 0, line(own(0), n), Walk(own(HALF), [Dim(n // 8, 4 * WORD)])), n // 2),
        "IDENTITY": (
            transform(MoverTransform.IDENTITY, 0, line(own(0), n), Walk(own(HALF), [Dim(n // 4, 4 * WORD)])),
            n,
        ),
    }


@cocotb.test()
async def mover(dut):
    """Rate of every kind of move as the difference of two lengths; contiguous COPY and FILL at one word a cycle."""
    rows = []
    for latency in LATENCIES:
        m = await MoverTb.start(dut, ideal=1, lat_min=latency)
        m.agent.stage.write(0, np.frombuffer(bytes(m.tb.model.stage), dtype=np.uint8))  # what other tests left
        for name in _moves(m, FEW):
            took, written = [], []
            for n in (FEW, MANY):
                script, words = _moves(m, n)[name]
                start = cocotb.utils.get_sim_time("ns")
                await m.run(script)
                took.append(round((cocotb.utils.get_sim_time("ns") - start) / clocks.PERIOD_NS))
                written.append(words)
            row = _row(name, latency, written[1] - written[0], took[1] - took[0])
            read = 0 if name.startswith(("FILL", "GEN")) else MANY - FEW
            start_cost = took[0] - row["cycles"] * FEW // (MANY - FEW)  # what a move costs beside its words
            rows.append(row | {"read_rate": round(read / row["cycles"], 4), "overhead": start_cost})
            fast = name in ("COPY, DRAM to DRAM", "FILL, DRAM")
            if fast and latency <= KEEPS:
                checks.true(name, row["rate"] > 0.9, f"{row['rate']} words a cycle, latency {latency}")
        await m.memories()
        await m.faults()
    figures.write("mover", rows)


@cocotb.test()
async def read_latency(dut):
    """Cycles from a single-word read at the link to its word, alone and at three loads, random memory latency."""
    tb = await MagTb.start(dut, lat_min=2, lat_max=60)
    rows = []
    for tier, place in (("DRAM", tb.own), ("staging", tb.staged)):
        for gap in (200, 40, 20, 10):
            n = 1000
            room = min(tb.bytes, tb.stage_bytes) // WORD
            steps = [
                Step(read_request(UNITS[k % 4], k & 255, place(tb.rng.randrange(room) * WORD), port=tb.port), gap)
                for k in range(n)
            ]
            await tb.play(steps, limit=400_000)
            checks.equal("requests held", int(dut.n_held.value), 0)
            start, span = int(dut.first_in.value), int(dut.last_in.value) - int(dut.first_in.value)
            checks.equal("even spacing", span % (n - 1), 0)
            when = [c for c, f in tb.captured if f.kind == RD_RESP]
            checks.equal("one word each", len(when), n)
            late = sorted(c - start - k * span // (n - 1) for k, c in enumerate(when))
            row = {"name": tier, "spacing": span // (n - 1), "reads": n, "min": late[0]}
            rows.append(row | {f"p{q}": late[n * q // 100] for q in (50, 90, 99)} | {"max": late[-1]})
            checks.true("causal", late[0] > 0)
    figures.write("read_latency", rows)

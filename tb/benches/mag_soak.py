# SPDX-License-Identifier: Apache-2.0
"""Units, host window and mover at once on DRAM and staging, long and random (docs/spec/memory.md 4 to 12).

Regions are disjoint, so the reference tells every byte: units read what nobody writes in a round, rewrite places of
their own, and take over what another unit wrote once it is acknowledged. Host and mover run for as long as the units.
"""

import itertools
import logging
import struct

import cocotb
from cocotb.triggers import Combine, with_timeout
from cocotbext.axi import AxiBus, AxiMaster, AxiResp

from kohakubench import Bench, checks, scale
from kohakubench.mag_model import WORD, WR_DATA, WR_REQ, Flit, read_request, write_flits
from kohakubench.mag_tb import DRAMCNT, DROP, FAULT, MOVER_SOURCES, PUBLIC, SOURCES, STGCNT, UNITS, Step, interleave
from kohakubench.mover_tb import GATHER, IMM, INDEX, SEED, SOURCE, Dim, MoverTb, Walk, copy, move, transform
from kohakutpu.isa.generated import MoverMode, MoverTransform

BENCH = Bench(
    name="mag_soak",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"HOST": 1, "MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 512, "DRAM_LOG2": 17},
    slow_variants=("rd1",),
    variants={"rd1": {"RD_OUT": 1, "STAGE_PIPE": 0, "MESH_ID": 1, "WR_SLOTS": 8}},
    public=PUBLIC,
    mutations={
        "host_strobes": ("rtl/memory/mag_host.v", ".in_data   ({s_axi_mem_wstrb,", ".in_data   ({~32'd0,"),
        "write_to_dram": ("rtl/memory/mag_write.v", "n_word = {n_addr[39],", "n_word = {1'b0,"),
        "walk_sign": ("rtl/memory/mov_walk.v", "sum + {{24{stride[31]}}, stride}", "sum + {24'd0, stride}"),
        "page_read": ("rtl/memory/mov_read.v", "run_next_q[6:0] != 7'd0 && ", ""),
        "early_b": (
            "rtl/memory/mag_host.v",
            "(ask_q == 9'd0 && open_q == 5'd0));",
            "(ask_q == 9'd0));",
        ),
        "read_count": ("rtl/memory/mag_regs.v", "{stage_writes_q, stage_reads_q}", "{stage_reads_q, stage_writes_q}"),
    },
    mutation_tests={
        name: ["soak"] for name in ("host_strobes", "write_to_dram", "walk_sign", "page_read", "early_b", "read_count")
    },
    timeout_cycles=40_000_000,
    wall_s=3600,
)
OPS = 40  # requests of a unit in a round
MASK32 = 0xFFFFFFFF


class _Soak:
    """The three kinds of requester on one agent.

    A quarter of each memory is read by the units and one is written by them, in turns; one is the mover's, one the
    host's. Offsets are of the DRAM or of the staging store, ``tier`` 0 or 1.
    """

    @classmethod
    async def start(cls, dut):
        self = cls()
        logging.getLogger("cocotb.tb_mag").setLevel(logging.WARNING)
        self.m = await MoverTb.start(dut)
        self.tb, self.dut, self.rng = self.m.tb, dut, self.m.rng
        self.axi = AxiMaster(AxiBus.from_prefix(dut, "s_axi_mem"), dut.clk, dut.rst_n, reset_active_level=False)
        self.quarter = (self.tb.bytes // 4, self.tb.stage_bytes // 4)
        self.host_words = [[0, 0], [0, 0]]  # per tier: read, written
        self.over = False
        self.done = {"rounds": 0, "flits": 0, "moves": 0, "host": 0, "handed over": 0}
        return self

    def place(self, tier, offset):
        return self.tb.staged(offset) if tier else self.tb.own(offset)

    def image(self, tier):
        return self.tb.model.stage if tier else self.tb.model.memory

    # ------------------------------------------------------------ units
    def unit_script(self, turn):
        """Flits of one round; a read of a place handed over waits for its acknowledgement."""
        rng, streams, handover = self.rng, [], set()
        for k, src in enumerate(UNITS[:4]):
            stream, fresh = [], 0
            for _ in range(OPS):
                tier = rng.randrange(2)
                kind = rng.randrange(4)
                if kind < 2:
                    stream.append(self.unit_read(src, tier, self.quarter[tier] * turn))
                    continue
                mine = self.quarter[tier] // 4
                base = self.quarter[tier] * (1 - turn) + k * mine
                n = rng.randrange(1, 9)
                if kind == 2 or (fresh + 1) * 8 * WORD > mine // 2:
                    at = base + rng.randrange(16 - n + 1) * WORD  # few places: most are written again
                else:
                    at = base + mine // 2 + fresh * 8 * WORD
                    fresh += 1
                    handover.add(self.place(tier, at))
                words = [rng.getrandbits(256) for _ in range(n)]
                stream += write_flits(src, rng.randrange(256), self.place(tier, at), words, port=self.tb.port)
            streams.append(stream)
        return self.with_takers(interleave(rng, streams, rng.choice(((0,), (0, 0, 3), (0, 0, 1, 25)))), handover)

    def unit_read(self, src, tier, base):
        rng = self.rng
        if rng.randrange(2):
            n = rng.choice((1, 1, 2, 8, 17, 60))
            at = base + rng.randrange(self.quarter[tier] // WORD - n) * WORD
            return read_request(src, rng.randrange(256), self.place(tier, at), n, port=self.tb.port)
        ew, count = rng.randrange(1, 5), rng.randrange(1, 9)
        at = base + rng.randrange(self.quarter[tier] // WORD - ew * count) * WORD
        peers = tuple(rng.choice(UNITS) for _ in range(rng.randrange(4)))
        txn = rng.randrange(256 - count)
        return read_request(src, txn, self.place(tier, at), port=self.tb.port, ew=ew, count=count, peers=peers)

    def with_takers(self, steps, handover):
        """Add reads of finished hand-overs by other units, each behind the acknowledgements of all writes so far."""
        out, opened, ready, acks = [], {}, [], 0
        for step in steps:
            out.append(step)
            flit = Flit.of(step.flit)
            if flit.kind == WR_REQ:
                opened[flit.src] = flit.payload >> 216, (flit.payload >> 208 & 255) + 1
            elif flit.kind == WR_DATA and flit.last:
                acks += 1
                addr, n = opened.pop(flit.src)
                if addr in handover:
                    ready.append((addr, n, flit.src))
            if ready and self.rng.randrange(25) == 0:
                addr, n, writer = ready.pop(self.rng.randrange(len(ready)))
                taker = self.rng.choice([u for u in UNITS if u != writer])
                txn = self.rng.randrange(256)
                out.append(Step(read_request(taker, txn, addr, n, port=self.tb.port), acks=acks))
                self.done["handed over"] += 1
        return out

    async def units(self, steps):
        await self.tb.play(steps, compare=False, limit=600_000)
        self.over = True

    # ------------------------------------------------------------ host
    async def host(self):
        """Writes and reads of any length and alignment; a byte written is read after its response."""
        rng = self.rng
        while not self.over:
            tier = rng.randrange(2)
            low, size = 3 * self.quarter[tier], self.quarter[tier]
            n = rng.choice((1, 31, 32, 100, 700, 2100))
            at = low + rng.randrange(size - n)
            if rng.randrange(2):
                data = rng.randbytes(n)
                self.image(tier)[at : at + n] = data
                done = await with_timeout(self.axi.write(self.place(tier, at), data), 4, "ms")
                checks.equal("host write", done.resp, AxiResp.OKAY)
                self.host_words[tier][1] += (at + n - 1) // WORD - at // WORD + 1
                n = min(n + 40, low + size - at)
            done = await with_timeout(self.axi.read(self.place(tier, at), n), 4, "ms")
            checks.equal("host read", done.resp, AxiResp.OKAY)
            checks.true(f"host bytes {self.place(tier, at):#x}+{n}", bytes(done.data) == self.image(tier)[at : at + n])
            self.host_words[tier][0] += (at + n - 1) // WORD - at // WORD + 1
            self.done["host"] += 1

    # ------------------------------------------------------------ mover
    def walk(self, tier, half, n):
        """``n`` words in half 0 or 1 of the mover's part: in a row, with gaps, backwards or in rows."""
        rng, room = self.rng, self.quarter[tier] // 2
        low = 2 * self.quarter[tier] + half * room
        gap = 2 if 2 * n * WORD <= room else 1
        rows = next(r for r in (7, 5, 4, 3, 2, 1) if n % r == 0)
        dims = rng.choice(
            (
                [Dim(n, WORD)],
                [Dim(n, gap * WORD)],
                [Dim(n, -WORD)],
                [Dim(rows, gap * n // rows * WORD), Dim(n // rows, WORD)],
                [Dim(n // rows, WORD), Dim(rows, n // rows * WORD)],
            )
        )
        least = sum(min(0, (d.count - 1) * d.stride) for d in dims)
        most = sum(max(0, (d.count - 1) * d.stride) for d in dims) + WORD
        first = rng.randrange((room - most + least) // WORD + 1) * WORD - least
        return Walk(self.place(tier, low + first), dims)

    def moves(self):
        """One to three moves from one half to the other, so none reads what it writes."""
        rng, script = self.rng, []
        for _ in range(rng.randrange(1, 4)):
            half = rng.randrange(2)
            tiers = rng.randrange(2), rng.randrange(2)
            how = {"cap": rng.randrange(8), "coalesce": rng.randrange(4) > 0, "ewidth": rng.randrange(3)}
            n = rng.randrange(1, 121)
            target = self.walk(tiers[1], 1 - half, n)
            kind = rng.randrange(8)
            if kind < 4:
                script += copy(self.walk(tiers[0], half, n), target, **how)
            elif kind == 4:
                script += [(IMM, rng.getrandbits(64)), *move(MoverMode.FILL, None, target, **how)]
            elif kind == 5:
                target = self.walk(tiers[1], 1 - half, n % 20 + 1)
                script += [(SEED, rng.getrandbits(64)), *move(MoverMode.GENERATE, None, target, **how)]
            elif kind == 6:
                script += self.gather(half, target, n, how)
            else:
                entries = n // 8 + 1
                source = Walk(self.place(tiers[0], 2 * self.quarter[tiers[0]] + half * self.quarter[tiers[0]] // 2))
                source.dims = [Dim(8 * entries, WORD)]
                start = self.walk(tiers[1], 1 - half, 4 * entries)
                base = min(start.base, start.base + sum((d.count - 1) * d.stride for d in start.dims))
                target = Walk(base, [Dim(entries, 4 * WORD)])
                script += transform(MoverTransform.QUANTISE, rng.randrange(2), source, target)
            self.done["moves"] += 1
        return script

    def gather(self, half, target, n, how):
        """Rows of one word; the index vector is DRAM that a unit reads too and nobody writes in this round."""
        count = min(n, len(self.indices))
        target.dims = [Dim(count, WORD)]
        target.base = self.place(0, 2 * self.quarter[0] + (1 - half) * self.quarter[0] // 2)
        rows = Walk(self.place(0, 2 * self.quarter[0] + half * self.quarter[0] // 2), [])
        script = [(INDEX, self.place(0, self.index_at) | count << 40), (GATHER, WORD | 1 << 32)]
        return script + rows.writes(SOURCE, ndim=1)[:1] + move(MoverMode.GATHER, None, target, **how)

    async def mover(self):
        while not self.over:
            await self.m.run(self.moves(), gaps=(0, 0, 5), limit=400_000)

    # ------------------------------------------------------------ rounds
    async def prepare(self, turn):
        """The index vector of this round, in the part that is only read."""
        self.index_at = self.quarter[0] * turn
        self.indices = [self.rng.randrange(self.quarter[0] // 2 // WORD) for _ in range(64)]
        data = struct.pack("<64I", *self.indices)
        self.tb.model.memory[self.index_at : self.index_at + len(data)] = data
        await self.m.poke(self.index_at, data)

    async def round(self):
        """Everything at once; then every flit, both images, the counters and no fault."""
        tb, agent = self.tb, self.m.agent
        turn = self.done["rounds"] & 1
        await self.prepare(turn)
        self.dut.busy_pct.value = self.rng.choice((0, 30, 70))
        tb.dram.configure(lat_max=self.rng.choice((4, 60, 200)))
        for ch, level in zip(self.channels(), self.rng.choices((0.0, 0.3, 0.7), k=5), strict=True):
            ch.set_pause_generator(self.rng.random() < p for p in itertools.repeat(level))
        before = [await tb.register(r) for r in (DRAMCNT, STGCNT)]
        beats = [tb.dram.count(n) for n in ("rd_beats", "wr_beats")]
        base = self.reference_words()
        self.over = False
        steps = self.unit_script(turn)
        parts = [self.units(steps), self.host(), self.mover()]
        await Combine(*[cocotb.start_soon(p) for p in parts])
        tb.compare_flits()
        after = [await tb.register(r) for r in (DRAMCNT, STGCNT)]
        exp = [[b - a for a, b in zip(x, y, strict=True)] for x, y in zip(base, self.reference_words(), strict=True)]
        got = [
            [(b >> s & MASK32) - (a >> s & MASK32) & MASK32 for s in (0, 32)]
            for a, b in zip(before, after, strict=True)
        ]
        checks.equal("words read, written of DRAM and staging", got, exp, n=4)
        on_bus = [tb.dram.count(n) - was for n, was in zip(("rd_beats", "wr_beats"), beats, strict=True)]
        checks.equal("beats on the bus", on_bus, got[0], n=2)
        part = slice(2 * self.quarter[0], 3 * self.quarter[0])
        tb.model.memory[part] = agent.dram.read(part.start, self.quarter[0]).tobytes()
        await tb.compare_memory()
        checks.equal("MEM_FAULT, MEM_DROP", [await tb.register(r) for r in (FAULT, DROP)], [0, 0], n=2)
        self.done["rounds"] += 1
        self.done["flits"] += len(steps) + tb.model.flits_out

    def reference_words(self):
        """(read, written) words of DRAM and of staging that the references have counted."""
        model, counts = self.tb.model, self.m.agent.counts
        port = [[model.words_read, model.words_written], [model.stage_read, model.stage_written]]
        kinds = (counts["dram"], counts["stage"])
        return [[p + h + m for p, h, m in zip(*x, strict=True)] for x in zip(port, self.host_words, kinds, strict=True)]

    def channels(self):
        w, r = self.axi.write_if, self.axi.read_if
        return w.aw_channel, w.w_channel, w.b_channel, r.ar_channel, r.r_channel

    async def staging(self):
        """The whole store through the port."""
        tb = self.tb
        part = slice(2 * self.quarter[1], 3 * self.quarter[1])
        tb.model.stage[part] = self.m.agent.stage.read(part.start, self.quarter[1]).tobytes()
        await tb.compare_stage()


@cocotb.test()
async def soak(dut):
    """20,000 memory flits (a million in the long run) beside host and mover: bytes, order, counters, no fault."""
    s = await _Soak.start(dut)
    goal = scale(20_000, 1_000_000)
    while s.done["flits"] < goal:
        await s.round()
        if s.done["rounds"] % 8 == 0:
            await s.staging()
    await s.staging()
    s.m.status()
    dut._log.warning(f"{s.done}")
    rounds = s.done["rounds"]
    for what in ("moves", "host", "handed over"):
        checks.true(f"{what} in every round", s.done[what] >= rounds, f"{s.done[what]} in {rounds} rounds")

# SPDX-License-Identifier: Apache-2.0
"""Random memory faults of units, host and mover among good traffic (docs/spec/memory.md 7, 12.6).

Every run raises one or two faults one after the other, then a program of every requester that is right.
"""

import logging

import cocotb
import numpy as np

from kohakubench import Bench, checks, scale
from kohakubench.mag_model import (
    M_ALIGN,
    M_APER,
    M_BUS,
    M_FRAME,
    M_LEN,
    M_MESH,
    M_ORPHAN,
    M_RANGE,
    M_REMOTE,
    M_RSVD,
    M_TAG,
    WORD,
    read_request,
    write_flits,
)
from kohakubench.mag_tb import DROP, FAULT, MOVER_SOURCES, PUBLIC, SOURCES, UNITS, Step, interleave
from kohakubench.mover_tb import CLEAR, Dim, MoverTb, Walk, copy, line, move
from kohakubench.window_channels import DECERR, FIXED, HOSTX, INCR, OKAY, SLVERR, WRAP, WindowChannels, words_of
from kohakutpu.isa.generated import MoverMode

BENCH = Bench(
    name="mag_faults_random",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"HOST": 1, "MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 256, "DRAM_LOG2": 16},
    slow_variants=("mesh2",),
    variants={"mesh2": {"MESH_ID": 2, "RD_OUT": 1, "STAGE_PIPE": 0, "WR_SLOTS": 8}},
    public=PUBLIC,
    mutations={
        "keeps_first": ("rtl/memory/mag_regs.v", "(any && fault_kept[3:0] == 4'd0)", "any"),
        "wrong_class": (
            "rtl/memory/mag.v",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_HOST",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_PORT",
        ),
        "range_edge": ("rtl/memory/mag_classify.v", "last > top", "last >= top"),
        "bus_error_lost": ("rtl/memory/mov_read.v", "else if (rsp_valid && rsp_err) bad <= 1'b1;", ""),
        "tag_limit": ("rtl/memory/mag_read.v", "entries_q > 9'd256", "entries_q > 9'd257"),
    },
    mutation_tests={
        name: ["mag_faults_random"]
        for name in ("keeps_first", "wrong_class", "range_edge", "bus_error_lost", "tag_limit")
    },
    timeout_cycles=20_000_000,
    wall_s=1800,
)
PORT, HOST, MOVER = 0, 1, 2
REFUSED = (M_RSVD, M_MESH, M_APER, M_RANGE)
CODES = {
    PORT: (M_ALIGN, *REFUSED, M_LEN, M_TAG, M_FRAME, M_BUS, M_REMOTE, M_ORPHAN),
    HOST: (*REFUSED, M_BUS, HOSTX),
    MOVER: (*REFUSED, M_BUS),
}
KINDS = [(cls, code, write) for cls, codes in CODES.items() for code in codes for write in range(1 + (code == M_BUS))]
"""(requester, code, writes): only a bus error is asked for once by a read and once by a write."""


class _Faults:
    """One agent, its three requesters; ``tb.model`` holds both reference images."""

    @classmethod
    async def start(cls, dut):
        self = cls()
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.m = await MoverTb.start(dut)
        self.tb, self.dut, self.rng = self.m.tb, dut, self.m.rng
        self.raw = WindowChannels(dut)
        self.log = []  # MEM_FAULT values in order since the registers were cleared
        self.orphans = 0
        return self

    def place(self, tier, offset):
        return self.tb.staged(offset) if tier else self.tb.own(offset)

    def image(self, tier):
        return self.tb.model.stage if tier else self.tb.model.memory

    def size(self, tier):
        return self.tb.stage_bytes if tier else self.tb.bytes

    def word_at(self, tier, n):
        """Offset of ``n`` random words inside the memory."""
        return self.rng.randrange(self.size(tier) // WORD - n + 1) * WORD

    def words(self, n):
        return [self.rng.getrandbits(256) for _ in range(n)]

    def bad_address(self, code, n):
        """An address that an access of ``n`` words finds refused with ``code``."""
        rng, tier = self.rng, self.rng.randrange(2)
        addr = self.place(tier, self.word_at(tier, n))
        if code == M_ALIGN:
            return addr + rng.randrange(1, WORD) if addr & 0xFFFF < 0x1000 else addr - rng.randrange(1, WORD)
        if code == M_RSVD:
            return addr | 1 << 38
        if code == M_MESH:
            return addr ^ rng.randrange(1, 4) << 36
        if code == M_APER:
            return self.tb.staged(self.word_at(1, n)) | rng.randrange(1, 16) << 32
        return self.place(tier, self.size(tier) - rng.randrange(n) * WORD)

    def window(self, write, at, n):
        """A bus error on one of ``n`` words from ``at``; returns its window."""
        lo = at + self.rng.randrange(n) * WORD
        resp = self.rng.choice((2, 3))
        self.tb.dram.configure(err_rd=1 - write, err_wr=write, err_lo=lo, err_hi=lo + WORD, err_resp=resp)
        return lo, lo + WORD

    def healed(self):
        self.tb.dram.configure(err_rd=0, err_wr=0)
        self.tb.model.read_errors = self.tb.model.write_errors = (0, 0)
        self.m.agent.bus_errors.clear()

    # ------------------------------------------------------------ ports
    def port_flits(self, code, write, src):
        """Flits of one source that raise ``code`` once."""
        rng, tb, txn = self.rng, self.tb, self.rng.randrange(256)
        kind = rng.choice(("plain", "stream", "write"))
        if code == M_BUS:
            kind = "write" if write else rng.choice(("plain", "stream"))
        if code in (M_LEN, M_FRAME, M_ORPHAN):
            return self.bad_write(code, src, txn)
        if code == M_TAG:
            count = rng.randrange(2, 6)
            addr = tb.own(self.word_at(0, 24))
            return [read_request(src, 257 - count + rng.randrange(count - 1), addr, port=tb.port, ew=4, count=count)]
        ew, count = rng.randrange(1, 5), rng.randrange(1, 6)
        n = ew * count if kind == "stream" else rng.randrange(1, 9)
        at = self.word_at(0, n)
        addr = tb.own(at) if code in (M_BUS, M_REMOTE) else self.bad_address(code, n)
        mark = 4 if code == M_REMOTE else 0
        if code == M_BUS:
            setattr(tb.model, "write_errors" if write else "read_errors", self.window(write, at, n))
        if kind == "write":
            return write_flits(src, txn, addr, self.words(n), port=tb.port, rsvd=mark)
        if kind == "plain":
            return [read_request(src, txn, addr, n, port=tb.port, rsvd=mark)]
        return [read_request(src, txn % (257 - count), addr, port=tb.port, ew=ew, count=count, rsvd=mark)]

    def bad_write(self, code, src, txn):
        """Too long, badly framed in one of three ways, or data alone."""
        rng, tb = self.rng, self.tb
        n = rng.randrange(9, 20) if code == M_LEN else rng.randrange(2, 9)
        addr = tb.own(self.word_at(0, n))
        if code == M_FRAME:
            cut = rng.randrange(1, n)
            how = rng.randrange(3)
            if how == 0:  # ends early
                lasts = [int(k == cut - 1) for k in range(n)]
                return write_flits(src, txn, addr, self.words(n), port=tb.port, lasts=lasts)[: 1 + cut]
            if how == 1:  # does not end
                return write_flits(src, txn, addr, self.words(n), port=tb.port, lasts=[0] * n)
            opened = write_flits(src, txn, addr, self.words(n), port=tb.port)[: 1 + cut]
            return opened + write_flits(src, txn + 1 & 255, addr, self.words(n), port=tb.port)
        flits = write_flits(src, txn, addr, self.words(n), port=tb.port)
        return flits[1:2] if code == M_ORPHAN else flits

    async def port(self, code, write):
        """The fault among good reads of other sources from staging, which no faulty access reaches."""
        src, *others = self.rng.sample(UNITS, 3)
        streams = [self.port_flits(code, write, src)]
        for other in others:
            addrs = [self.tb.staged(self.word_at(1, 8)) for _ in range(4)]
            streams.append([read_request(other, k, a, 1 + 2 * k, port=self.tb.port) for k, a in enumerate(addrs)])
        await self.tb.play(interleave(self.rng, streams, (0, 0, 4)))
        checks.equal("one fault", [(f[0], f[1]) for f in self.tb.model.faults], [(code, src)], n=1)
        _, _, txn, addr = self.tb.model.faults[0]
        self.orphans += code == M_ORPHAN
        self.log.append(addr << 24 | txn << 16 | src << 8 | code)

    # ------------------------------------------------------------ host
    async def host(self, code, write):
        """One burst; every beat answered once with the response of its code."""
        rng, ident, n = self.rng, self.rng.randrange(16), self.rng.choice((1, 2, 7, 40))
        write, how, bad = write if code == M_BUS else rng.randrange(2), {}, range(n)
        at = self.word_at(0, n)
        if code == HOSTX:
            addr = self.bad_address(M_RSVD, n) if rng.randrange(2) else self.tb.own(at)
            how = rng.choice(({"burst": FIXED}, {"burst": WRAP}, {"burst": INCR, "size": rng.randrange(5)}))
        elif code == M_BUS:
            addr = self.tb.own(at)
            lo, _ = self.window(write, at, n)
            bad = [(lo - at) // WORD]
        else:
            addr = self.bad_address(code, n)
        resp = DECERR if code in REFUSED else SLVERR
        if write:
            checks.equal("B", await self.raw.write(addr, self.words(n), ident=ident, **how), (ident, resp))
        else:
            exp = words_of(self.image(0), at, n)
            got = await self.raw.read(addr, n, ident=ident, **how)
            beats = [(ident, resp, 0) if k in bad else (ident, OKAY, w) for k, w in enumerate(exp)]
            checks.equal("R", got, [(*b, int(k == n - 1)) for k, b in enumerate(beats)], n=n)
        self.log.append(addr << 24 | HOST << 4 | code)
        if code == M_BUS and write:  # its words are undefined: define them
            self.healed()
            await self.host_store(0, at, n)

    async def host_store(self, tier, at, n):
        words = self.words(n)
        self.image(tier)[at : at + n * WORD] = b"".join(w.to_bytes(WORD, "little") for w in words)
        checks.equal("B", await self.raw.write(self.place(tier, at), words), (0, OKAY))

    # ------------------------------------------------------------ mover
    async def moved(self, script):
        """Play a move on the agent and on the reference, both images in step."""
        agent, model = self.m.agent, self.tb.model
        for image, mine in ((agent.dram, model.memory), (agent.stage, model.stage)):
            image.write(0, np.frombuffer(bytes(mine), dtype=np.uint8))
        await self.m.run(script)
        model.memory[:] = agent.dram.read(0, self.tb.bytes).tobytes()
        model.stage[:] = agent.stage.read(0, self.tb.stage_bytes).tobytes()

    async def mover(self, code, write):
        """A source or target that leaves what is legal at some element; what came before it stays written."""
        rng, n, half = self.rng, self.rng.randrange(4, 60), self.tb.bytes // 2
        source, target = (
            line(self.tb.own(low), n) for low in (rng.randrange(64) * WORD, half + rng.randrange(64) * WORD)
        )
        good = copy(source, target)
        if code == M_BUS:
            base = (target if write else source).base & 0xFFFFFF
            self.m.agent.bus_errors[:] = [self.window(write, base, n)]
            script = copy(source, target, cap=1 if write else rng.randrange(8))
        else:
            far = line(self.bad_address(code, rng.randrange(1, n)), n)
            if code == M_RANGE and rng.randrange(3) == 0:
                far = Walk(self.tb.own(rng.randrange(1, n) * WORD), [Dim(n + 1, -WORD)])
            pick = rng.randrange(3)
            script = copy(far, target) if pick == 0 else copy(source, far)
            if pick == 2:
                script = move(MoverMode.FILL, None, far)
        self.m.agent.faults.clear()
        await self.moved(script)
        checks.equal("faults of the reference", len(self.m.agent.faults), 1)
        entry = self.m.agent.faults[0].register()
        checks.equal("class, code", (entry >> 4 & 15, entry & 15), (MOVER, code))
        self.log.append(entry)
        self.healed()
        if code == M_BUS:
            await self.moved(good)  # defines the bytes again

    # ------------------------------------------------------------ what follows
    async def right(self):
        """A write and a read of units, a host burst and its readback, a move and a unit that reads its bytes."""
        rng, tb = self.rng, self.tb
        tier, n = rng.randrange(2), rng.randrange(1, 9)
        addr = self.place(tier, self.word_at(tier, n))
        src, taker = rng.sample(UNITS, 2)
        steps = [Step(f) for f in write_flits(src, 1, addr, self.words(n), port=tb.port)]
        await self.tb.play([*steps, Step(read_request(taker, 2, addr, n, port=tb.port), acks=1)])
        at = self.word_at(tier, n)
        await self.host_store(tier, at, n)
        got = await self.raw.read(self.place(tier, at), n, ident=3)
        exp = [(3, OKAY, w, int(k == n - 1)) for k, w in enumerate(words_of(self.image(tier), at, n))]
        checks.equal("host reads back", got, exp, n=n)
        source, target = line(tb.own(0), 8 * n), line(self.place(tier, self.size(tier) // 2), 8 * n)
        await self.moved([(CLEAR, rng.choice((1, 3))), *copy(source, target)])
        checks.equal("no new fault", self.m.mover.fault, 0)
        await tb.compare_stage()

    async def registers(self):
        """The first fault, the number of them; cleared for the next run."""
        checks.equal("MEM_FAULT", f"{await self.tb.register(FAULT):#x}", f"{self.log[0]:#x}")
        exp = self.orphans << 16 | (len(self.log) - self.orphans)
        checks.equal("MEM_DROP", await self.tb.register(DROP), exp)
        await self.tb.clear()
        self.log, self.orphans = [], 0


@cocotb.test()
async def mag_faults_random(dut):
    """40 runs (600 in the long run) over every code of every requester: one completion, right code, nothing hangs."""
    s = await _Faults.start(dut)
    act = {PORT: s.port, HOST: s.host, MOVER: s.mover}
    runs, todo = scale(40, 600), []
    for k in range(runs):
        todo = todo or s.rng.sample(KINDS, len(KINDS))  # each kind before any comes again
        dut.busy_pct.value = s.rng.choice((0, 30, 70))
        s.tb.dram.configure(lat_max=s.rng.choice((4, 60, 200)))
        kinds = [todo.pop()] + [s.rng.choice(KINDS)] * s.rng.randrange(2)
        dut._log.info(f"run {k}: {kinds}")
        for cls, code, write in kinds:
            await act[cls](code, write)
            s.healed()
        await s.right()
        await s.registers()
    checks.true("every kind", runs >= len(KINDS))

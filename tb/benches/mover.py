# SPDX-License-Identifier: Apache-2.0
"""Memory mover behind the memory agent, against the reference mover (docs/spec/memory.md 12)."""

import itertools
import math

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, with_timeout

from kohakubench import Bench, checks, clocks, scale
from kohakubench.mag_model import WORD, read_request, write_flits
from kohakubench.mag_tb import MOVER_SOURCES, PUBLIC, SOURCES, UNITS
from kohakubench.mover_tb import (
    CLEAR,
    CTRL,
    DIM,
    GATHER,
    GO,
    IMM,
    INDEX,
    SEED,
    SOURCE,
    Dim,
    MoverTb,
    Walk,
    copy,
    line,
    move,
)
from kohakutpu.isa.generated import MoverFault, MoverMode

BENCH = Bench(
    name="mover",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 512, "DRAM_LOG2": 17},
    slow_variants=("mesh2",),
    variants={"mesh2": {"MESH_ID": 2, "STAGE_PIPE": 0, "RD_OUT": 1}},
    public=PUBLIC,
    mutations={
        "short_sum": ("rtl/memory/mov_walk.v", "sum + {{24{stride[31]}}, stride}", "sum + {24'd0, stride}"),
        "axis_sign": (
            "rtl/memory/mov_walk.v",
            "{{20{jump[15]}}, jump};\n        if (axis == 2'd2)",
            "{20'd0, jump};\n        if (axis == 2'd2)",
        ),
        "outer_first": (
            "rtl/memory/mov_walk.v",
            "from_q[56*e +: 56]  <= sum;",
            "from_q[56*e +: 56]  <= e == {29'd0, who} ? sum : from_q[56*e +: 56];",
        ),
        "extent_zero": ("rtl/memory/mov_walk.v", "windows[31:16] == 16'd0 || (axis0", "(axis0"),
        "pad_lost": ("rtl/memory/mov_steps.v", "is_gather || (is_copy && s_valid);", "is_gather || is_copy;"),
        "source_unchecked": (
            "rtl/memory/mov_steps.v",
            "s_far  = asking ? index_q[40] : is_gather ? g_addr[65:40] != 26'd0 : w_addr[55:40] != 16'd0;",
            "s_far  = 1'b0;",
        ),
        "row_order": ("rtl/memory/mov_gather.v", "word[32*row_q[2:0] +: 32]", "word[32*(3'd7 - row_q[2:0]) +: 32]"),
        "pitch_signed": (
            "rtl/memory/mov_gather.v",
            "{32'd0, index_q} * {32'd0, pitch}",
            "{32'd0, index_q} * {{32{pitch[31]}}, pitch}",
        ),
        "philox_key": ("rtl/memory/mov_prng.v", "b_key_q[63:32] + `KT_MEM_PHILOX_W1", "b_key_q[63:32]"),
        "page_read": ("rtl/memory/mov_read.v", "run_next_q[6:0] != 7'd0 && ", ""),
        "cap_ignored": (
            "rtl/memory/mov_write.v",
            "run_next_q[6:0] != 7'd0 && run_len_q < cap;",
            "run_next_q[6:0] != 7'd0;",
        ),
        "coalesce_always": ("rtl/memory/mov_write.v", "joins  = coalesce && word", "joins  = word"),
        "busy_early": ("rtl/memory/mov_write.v", "assign idle = !out_valid && !wr_valid", "assign idle = !wr_valid"),
        "queue_runs_on": (
            "rtl/memory/mov_regs.v",
            "assign take            = q_valid && !run_q;",
            "assign take            = q_valid && (!run_q || q_reg == IMM);",
        ),
        "sticky_lost": (
            "rtl/memory/mov_engine.v",
            "if (over && fault != `KT_MV_F_NONE) sticky_q <= 1'b1;",
            "if (go) sticky_q <= 1'b0;\n            else if (over && fault != `KT_MV_F_NONE) sticky_q <= 1'b1;",
        ),
        "bus_error_lost": ("rtl/memory/mov_read.v", "else if (rsp_valid && rsp_err) bad <= 1'b1;", ""),
        "write_error_lost": ("rtl/memory/mov_write.v", "else if (done_valid && done_err) bad <= 1'b1;", ""),
    },
    mutation_tests={
        "short_sum": ["copy_shapes"],
        "axis_sign": ["padding"],
        "outer_first": ["copy_shapes"],
        "extent_zero": ["copy_shapes"],
        "pad_lost": ["padding"],
        "source_unchecked": ["every_fault"],
        "row_order": ["gather"],
        "pitch_signed": ["gather"],
        "philox_key": ["generate"],
        "page_read": ["copy_shapes"],
        "cap_ignored": ["caps"],
        "coalesce_always": ["caps"],
        "busy_early": ["visible_when_idle"],
        "queue_runs_on": ["queued"],
        "sticky_lost": ["every_fault"],
        "bus_error_lost": ["bus_errors"],
        "write_error_lost": ["bus_errors"],
    },
    wall_s=400,
)
HALF = 0x10000  # sources below, destinations above


@cocotb.test()
async def copy_shapes(dut):
    """1-D, 6-D with distinct prime counts and mixed strides, word transposes, broadcast, both memories."""
    m = await MoverTb.start(dut)
    await m.run(copy(line(m.own(0x800), 64), line(m.own(HALF + 0x20), 64)))
    primes = [Dim(2, -0x2000), Dim(3, 0x480), Dim(5, -0x40), Dim(7, 0xE0), Dim(2, 0x20), Dim(1, -4)]
    dense = [Dim(d.count, WORD * math.prod(x.count for x in primes[k + 1 :])) for k, d in enumerate(primes)]
    await m.run(copy(Walk(m.own(0x4000), primes), Walk(m.own(HALF), dense)))
    await m.run(copy(Walk(m.own(0x100), dense), Walk(m.own(HALF + 0x8000), [*primes[:5], Dim(0, 7)])))
    for to in (m.own(HALF + 0xC000), m.staged(0x4000)):  # 4 x 8 word transpose
        turned = Walk(to, [Dim(4, WORD), Dim(8, 4 * WORD)])
        await m.run(copy(Walk(m.own(0), [Dim(4, 8 * WORD), Dim(8, WORD)]), turned))
    await m.run(copy(Walk(m.own(0x60), [Dim(40, 0)]), line(m.staged(0x1000), 40)))
    await m.run(copy(Walk(m.own(0x60), [Dim(5, 0x400), Dim(9, 0)]), line(m.own(HALF + 0x3000), 45)))
    await m.run(copy(line(m.own(0), 300), Walk(m.own(HALF + 0xF000), [Dim(100, -WORD)])))  # surplus source
    await m.run(copy(line(m.staged(0x1000), 40), line(m.own(HALF + 0xE000), 40)))
    await m.memories()


def _walk(m, rng, low, high, *, windows, staged=False, total=None):
    """A random walker whose addresses stay in low..high."""
    place = m.staged if staged else m.own
    while True:
        n = rng.randrange(1, 7)
        dims = [
            Dim(rng.choice((0, 1, 2, 3, 5, 9)), rng.choice((0, 32, 64, 96, -32, -64, 1024, -1056, 4096)))
            for _ in range(n)
        ]
        if total is not None:
            dims = [Dim(total, rng.choice((32, 32, 64, -32, 0)))]
        counts = [d.count or 1 for d in dims]
        ends = [(c - 1) * d.stride for c, d in zip(counts, dims, strict=True)]
        least, most = sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)
        if math.prod(counts) > 400 or most - least + WORD > high - low:
            continue
        pick = (low - least) // WORD + rng.randrange((high - low - WORD - most + least) // WORD + 1)
        win = [(0, 0), (0, 0)]
        if windows:
            for d in dims:
                d.axis, d.step = rng.randrange(4), rng.randrange(-3, 4)
            win = [(rng.randrange(-4, 4), rng.choice((0, 1, 5, 40))) for _ in range(2)]
        return Walk(place(pick * WORD), dims, tuple(win)), math.prod(counts)


@cocotb.test()
async def random_moves(dut):
    """Random descriptors of COPY, FILL, GENERATE and GATHER, several queued at a time."""
    m = await MoverTb.start(dut)
    rng = m.rng
    half = m.tb.stage_bytes // 2
    for _ in range(scale(12, 80)):
        script = []
        for _ in range(rng.randrange(1, 5)):
            kind = rng.randrange(10)
            staged, windows = rng.randrange(3) == 0, rng.randrange(2) == 0
            low, high = (half, m.tb.stage_bytes) if staged else (HALF, m.tb.bytes)
            target, n = _walk(m, rng, low, high, windows=windows, staged=staged)
            how = {"ewidth": rng.randrange(3), "cap": rng.randrange(8), "coalesce": bool(rng.randrange(2))}
            script.append((IMM, rng.getrandbits(64)))
            if kind < 6:
                staged = rng.randrange(3) == 0
                high = half if staged else HALF
                source, have = _walk(m, rng, 0, high, windows=windows, staged=staged)
                if have < n and rng.randrange(4):
                    source, _ = _walk(m, rng, 0, high, windows=False, staged=staged, total=n)
                script += copy(source, target, **how)
            elif kind == 6:
                script += move(MoverMode.FILL, None, target, **how)
            elif kind == 7:
                script += [(SEED, rng.getrandbits(64)), *move(MoverMode.GENERATE, None, target, **how)]
            else:
                count, per = rng.randrange(1, 40), rng.randrange(1, 5)
                at = rng.randrange(HALF // 2 // WORD) * WORD
                rows = [rng.randrange(200) for _ in range(count)]
                await m.poke(at, b"".join(r.to_bytes(4, "little") for r in rows + [7] * (-count % 8)))
                script += [(INDEX, m.own(at) | count << 40), (GATHER, 128 | per << 32)]
                script += Walk(m.own(0), []).writes(SOURCE, ndim=1)[:1]
                script += move(MoverMode.GATHER, None, target, **how)
        await m.run(script, gaps=(0, 0, 5), limit=400_000)
        await m.memories()
        await m.faults()


@cocotb.test()
async def padding(dut):
    """Bounds on both axes of both walkers, negative axis base, extent 0, immediates of every width."""
    m = await MoverTb.start(dut)
    cells = [Dim(6, 8 * WORD, 1, 1), Dim(8, WORD, 2, 1)]
    k = 0
    for base, extent in ((-2, 4), (0, 6), (0, 3), (-1, 0), (5, 5), (-9, 2)):
        for ewidth in range(3):
            windows = ((base, extent), (base // 2, 7))
            imm = (IMM, m.rng.getrandbits(32))
            spots = [m.own(HALF + 0x600 * (4 * k + j)) for j in range(3)]
            k += 1
            await m.run([imm, *copy(Walk(m.own(0x200), cells, windows), Walk(spots[0], cells), ewidth=ewidth)])
            await m.run([imm, *copy(Walk(m.own(0x200), cells), Walk(spots[1], cells, windows), ewidth=ewidth)])
            both = Walk(spots[2], cells, ((0, 5), (-1, 6)))
            await m.run([imm, *copy(Walk(m.own(0x200), cells, windows), both, ewidth=ewidth)])
        await m.memories()
        k = 0
    # Steps of either sign and a padded border around an image.
    image = Walk(m.own(0), [Dim(10, 0x100, 1, 1), Dim(10, WORD, 2, 1)], ((-1, 8), (-1, 8)))
    await m.run(copy(image, line(m.own(HALF), 100), ewidth=0))
    back = Walk(m.own(0x4000), [Dim(9, -0x40, 1, -3), Dim(5, 0x20, 1, 2)], ((12, 16), (0, 0)))
    await m.run(copy(back, line(m.own(HALF + 0x2000), 45), ewidth=2))
    await m.memories()


@cocotb.test()
async def fill(dut):
    """FILL with immediates of 8, 16 and 32 bits, dense and strided, skipping what lies outside the windows."""
    m = await MoverTb.start(dut)
    for ewidth in range(3):
        at = HALF + 0x1000 * ewidth
        imm = (IMM, m.rng.getrandbits(64))
        await m.run([imm, *move(MoverMode.FILL, None, line(m.own(at), 40), ewidth=ewidth)])
        cells = Walk(m.own(at + 0x800), [Dim(5, 0x100, 1, 1), Dim(4, 0x40, 2, 1)], ((0, 4), (1, 4)))
        await m.run([imm, *move(MoverMode.FILL, None, cells, ewidth=ewidth)])
        await m.run([imm, *move(MoverMode.FILL, None, line(m.staged(at - HALF), 9), ewidth=ewidth)])
        value = imm[1] & (1 << (8 << ewidth)) - 1
        word = sum(value << k for k in range(0, 256, 8 << ewidth))
        checks.equal("pattern", m.read(m.own(at), 40), [word] * 40, n=40)
    await m.memories()


@cocotb.test()
async def generate(dut):
    """Known words of the page; a region in one move or in pieces gives the same; mesh and special bits count."""
    m = await MoverTb.start(dut)
    known = {
        (0, 0): "074944b373a459f5ea2362496ad0c5ec9b00dbd8bc57ac4ce169c58d6627e8d5",
        (0x0123456789ABCDEF, 0x3000): "31ce76227c6edfe5dbfed4cea879e1fd9bbe9c0a98f22d768a6853d2ac9b17bd",
        (0x0123456789ABCDEF, 0x3020): "a971abab1f3215a038e9c177645bad8e9756ea6bad48d81b4e2c70cdc0da8f7d",
        (0x0123456789ABCDEF, 1 << 39): "2a19900e499c169485286fbffd8bf43d3541816af6b2ed80f6998be487582655",
        (1, 0x20_0000_1000): "aacfab22059478cd8571dfde2b2f555d322f2a16c3463b4ac8ed575507bfe038",
    }
    used = 0
    for (seed, addr), word in known.items():
        if addr >> 36 & 3 != m.tb.mesh:
            continue
        used += 1
        await m.run([(SEED, seed), *move(MoverMode.GENERATE, None, line(addr, 1))])
        checks.equal(f"word of {addr:#x}", f"{m.read(addr, 1)[0]:064x}", word)
    checks.true("known words", used > 0)
    await m.memories()
    seed = (SEED, m.rng.getrandbits(64))
    for place in (m.own, m.staged):
        at = 0x1800
        await m.run([seed, *move(MoverMode.GENERATE, None, line(place(at), 50), ewidth=2)])
        once = m.read(place(at), 50)
        await m.run([(IMM, 0), *move(MoverMode.FILL, None, line(place(at), 50))])
        parts = [(0, 1), (1, 17), (18, 32)]
        script = [seed]
        for first, n in m.rng.sample(parts, 3):
            script += move(MoverMode.GENERATE, None, line(place(at + WORD * first), n), ewidth=0, cap=3)
        await m.run(script)
        checks.equal("in pieces", m.read(place(at), 50), once, n=50)
        await m.memories()
    checks.true("places differ", m.read(m.own(at), 1) != m.read(m.staged(at), 1))


async def _gather(m, rows, words, pitch, target, *, count=None, at=0x1000, base=0):
    data = b"".join(r.to_bytes(4, "little") for r in rows)
    await m.poke(at, data + bytes(-len(data) % WORD))
    n = len(rows) if count is None else count
    script = [(INDEX, m.own(at) | n << 40), (GATHER, pitch | words << 32)]
    script += Walk(m.own(base), []).writes(SOURCE, ndim=1)[:1]
    await m.run(script + move(MoverMode.GATHER, None, target))
    await m.faults()


@cocotb.test()
async def gather(dut):
    """5 rows of 2 words; counts 1, 8, 9, 2,048, 2,049; index 0xFFFFFFFF with pitch 0 and out of range."""
    m = await MoverTb.start(dut)
    await _gather(m, [3, 0, 9, 9, 1], 2, 64, line(m.own(HALF), 10))
    for count in (1, 8, 9):
        rows = [m.rng.randrange(100) for _ in range(count)]
        await _gather(m, rows, 3, 96, Walk(m.own(HALF + 0x1000), [Dim(count, 0x100), Dim(3, 0x20)]))
        await m.memories()
    rows = [m.rng.randrange(512) for _ in range(2048)]
    await _gather(m, rows, 1, 32, Walk(m.own(HALF), [Dim(2048, WORD)]), at=0x4000)
    await m.memories()
    await _gather(m, rows, 1, 32, line(m.own(HALF), 20), count=2049, at=0x4000)
    await _gather(m, [0xFFFFFFFF] * 4, 2, 0, line(m.own(HALF), 8), base=0x200)
    await _gather(m, [1, 0xFFFFFFFF, 2], 2, 64, line(m.own(HALF + 0x400), 6))
    await _gather(m, [0xFFFFFFFF], 1, 0xFFFFFFFF, line(m.own(HALF), 1))
    await _gather(m, [1, 2], 1, 0x8000_0000, line(m.own(HALF), 2))
    await m.memories()
    # Skipped elements count; the row that is missing is only missed if its element is written.
    holes = Walk(m.own(HALF + 0x2000), [Dim(12, WORD, 1, 1)], ((-3, 6), (0, 0)))
    await _gather(m, [5, 4, 3, 2, 1], 2, 64, holes)
    await _gather(m, [5, 4, 3, 2], 2, 64, Walk(m.own(HALF + 0x2400), [Dim(12, WORD, 1, 1)], ((0, 7), (0, 0))))
    await _gather(m, [5, 4, 3], 2, 64, line(m.own(HALF + 0x2800), 9))
    await m.memories()


def _faults(m):
    """(name, writes) of a move for every fault code and place."""
    own, top = m.own, m.tb.bytes
    to = lambda k, n=8: line(own(HALF + 0x400 * k), n)  # noqa: E731
    src = line(own(0x2000), 8)
    far = 1 + m.tb.mesh & 3
    yield "ewidth", copy(src, to(0), ewidth=3)
    yield "ewidth before mode", move(MoverMode.TRANSPOSE, src, to(0), ewidth=3)
    for mode in (1, 6, 7):
        yield f"mode {mode}", move(mode, src, to(1))
    for ident in (3, 9, 15):
        yield f"xform {ident}", move(MoverMode.XFORM, src, to(2), xform=(ident, 0))
    for n in (0, 7):
        yield f"ndim {n}", src.writes(0) + to(3).writes(1, ndim=n) + [(CTRL, GO | 8)]
        yield f"source ndim {n}", src.writes(0, ndim=n) + to(3).writes(1) + [(CTRL, GO | 8)]
        yield "unused source", src.writes(0, ndim=n) + move(MoverMode.FILL, None, to(4))
    for index in (6, 7):
        bad = [(DIM, 1 | index << 1 | 3 << 4), (32, 0)]
        yield "dimension index", src.writes(0) + to(3).writes(1) + bad + [(CTRL, GO | 8)]
        yield "still marked", [(CTRL, GO | 8)]
        yield "cleared by HDR", copy(src, to(5))
    yield "words 0", [(INDEX, own(0) | 1 << 40), (GATHER, 32), *move(MoverMode.GATHER, src, to(6))]
    for count in (0, 2049, 65535):
        yield f"count {count}", [(INDEX, own(0) | count << 40), (GATHER, 1 << 32), *move(MoverMode.GATHER, src, to(6))]
    yield "words before count", [(INDEX, own(0)), (GATHER, 0), *move(MoverMode.GATHER, src, to(6))]
    yield "index unaligned", [(INDEX, own(4) | 1 << 40), (GATHER, 1 << 32), *move(MoverMode.GATHER, src, to(6))]
    yield "index range", [(INDEX, own(top - 32) | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "index mesh", [(INDEX, far << 36 | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "index top", [(INDEX, (1 << 40) - 32 | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "short source", copy(line(own(0x2000), 5), to(7))
    yield (
        "short source, skipped",
        copy(line(own(0x2000), 5), Walk(own(HALF + 0x3000), [Dim(9, WORD, 1, 1)], ((0, 5), (0, 0)))),
    )
    for name, place in (("DRAM", own(top - 3 * WORD)), ("staging", m.staged(m.tb.stage_bytes - 3 * WORD))):
        yield f"target over {name}", copy(src, line(place, 8))
        yield f"source over {name}", copy(line(place, 8), to(8))
        yield f"filled over {name}", move(MoverMode.FILL, None, line(place, 8))
    yield "below zero", copy(Walk(own(0x40), [Dim(8, -WORD)]), to(9))
    yield "above 40 bits", copy(src, Walk((1 << 40) - 32, [Dim(8, WORD)]))
    yield "far above", copy(Walk(own(0), [Dim(3, 0x7FFFFFE0), Dim(60000, 0x7FFFFFE0)]), to(9))
    yield "target mesh", copy(src, line(far << 36 | HALF, 8))
    yield "source mesh", copy(line(far << 36, 8), to(10))
    yield "reserved bit", copy(line(1 << 38 | own(0), 8), to(10))
    yield "aperture", copy(src, line(m.staged(0) | 3 << 32, 8))
    yield "target unaligned", copy(src, Walk(own(HALF + 0x4000), [Dim(2, 0x100), Dim(3, 0x30)]))
    yield "source unaligned", copy(Walk(own(0x2000), [Dim(4, 0x21)]), to(11, 4))
    yield "unaligned before range", copy(src, line(1 << 38 | 4, 8))
    yield "target before source", copy(line(1 << 38, 8), line(own(HALF) + 1, 8))
    yield "broken but skipped", copy(line(1 << 38, 8), Walk(own(HALF) + 1, [Dim(8, WORD, 1, 1)], ((20, 4), (0, 0))))


@cocotb.test()
async def every_fault(dut):
    """Every fault code: earlier elements written, later not; status, sticky flag, MEM_FAULT; the next move runs."""
    m = await MoverTb.start(dut)
    seen = set()
    for k, (name, script) in enumerate(_faults(m)):
        m.dut._log.info(name)
        await m.run(script)
        seen.add(m.mover.fault)
        checks.equal(f"{name}: sticky", int(dut.aux_stat.value) >> 1 & 1, int(m.mover.sticky))
        if k % 8 == 7:
            await m.memories()
        await m.faults()
        await m.run(copy(line(m.own(0x20 * k), 3), line(m.own(HALF + 0x8000 + 0x80 * k), 3)))
        if k % 5 == 4:
            await m.run([(CLEAR, m.rng.choice((1, 3)))])
    await m.memories()
    expected = {MoverFault(c) for c in (0, 1, 2, 4, 5, 6, 8, 10)}
    checks.equal("codes", seen, expected, n=len(expected))


@cocotb.test()
async def caps(dut):
    """Burst caps 1 to 128 with and without coalescing: same bytes, bursts within cap and page, joined if asked."""
    m = await MoverTb.start(dut)
    for cap, coalesce in itertools.product(range(8), (True, False)):
        most = 128 if cap == 0 else 1 << cap - 1
        n, at = 200, HALF + 0x1000 - 0x60
        await m.tb.play(
            [read_request(UNITS[0], 0, m.own(0), 1, port=m.tb.port)], compare=False
        )  # restarts the bus record
        await m.run(copy(line(m.own(0xFA0), n), line(m.own(at), n), cap=cap, coalesce=coalesce))
        await m.tb._collect()
        bursts = [(w, length + 1, a) for w, _, length, a in m.tb.bus if a >= HALF or a >= 0xFA0]
        checks.true("cap", all(length <= most for _, length, _ in bursts))
        checks.true("page", all((a % 4096) // WORD + length <= 128 for _, length, a in bursts))
        writes = [length for w, length, _ in bursts if w]
        checks.equal("words", sum(writes), n)
        joined = -(-3 // most) + -(-128 // most) + -(-69 // most) if coalesce else n
        checks.equal("write bursts", len(writes), joined)
        await m.memories()


@cocotb.test()
async def queued(dut):
    """Registers and GO written while a move runs, three moves queued, a full queue: nothing lost or mixed."""
    m = await MoverTb.start(dut, lat_min=20, lat_max=60)
    spots = [m.own(HALF + 0x2000 * k) for k in range(3)]
    script = copy(line(m.own(0), 120), spots and line(spots[0], 120))
    script += [(IMM, 0x1234), *move(MoverMode.FILL, None, line(spots[1], 90), ewidth=1)]
    script += [(IMM, 0x77), (SEED, 5), *move(MoverMode.GENERATE, None, line(spots[2], 30))]
    await m.run(script)
    await m.memories()
    chain = copy(line(m.own(0x100), 100), line(m.staged(0), 100))
    chain += copy(line(m.staged(0), 100), line(m.staged(0x2000), 100), cap=4)
    chain += copy(line(m.staged(0x2000), 100), line(m.own(HALF + 0x4000), 100), coalesce=False)
    await m.run(chain)
    checks.equal("carried over", m.read(m.own(HALF + 0x4000), 100), m.read(m.own(0x100), 100), n=100)
    await m.memories()
    # A long move, and behind it more writes than the queue holds.
    script = copy(line(m.own(0), 400), line(m.own(HALF), 400), cap=1, coalesce=False)
    for k in range(100):
        script += [(IMM, k), (72, k), (0x58 + 8 * (k % 4), k), (0x80, k)]
    script += move(MoverMode.FILL, None, line(m.own(HALF + 0x6000), 8))
    await m.run(script)
    checks.true("queue filled", int(dut.aux_held.value) > 100, f"{int(dut.aux_held.value)} cycles held")
    await m.memories()


@cocotb.test()
async def bus_errors(dut):
    """A failing read or write ends the move with F_AXI and its address; the next move runs."""
    m = await MoverTb.start(dut)
    t = m.tb.dram
    for resp, k in itertools.product((2, 3), (0, 1, 40, 99)):
        for write in (0, 1):
            at = (HALF if write else 0x3000) + WORD * k
            t.configure(err_rd=1 - write, err_wr=write, err_lo=at, err_hi=at + WORD, err_resp=resp)
            m.agent.bus_errors[:] = [(at, at + WORD)]
            cap = 1 if write else m.rng.randrange(8)  # one word a burst: the burst names the word
            await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100), cap=cap))
            checks.equal("fault", m.mover.fault, MoverFault.F_AXI)
            await m.faults()
            t.configure(err_rd=0, err_wr=0)
            m.agent.bus_errors.clear()
            await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100)))  # defines the bytes again
            await m.memories()
    at = 0x5000
    t.configure(err_rd=1, err_lo=at + 64, err_hi=at + 96, err_resp=2)  # in the index vector
    m.agent.bus_errors[:] = [(at + 64, at + 96)]
    await m.run(
        [(INDEX, m.own(at) | 40 << 40), (GATHER, 1 << 32 | 32), *move(MoverMode.GATHER, None, line(m.own(HALF), 9))]
    )
    await m.faults()
    t.configure(err_rd=0)
    m.agent.bus_errors.clear()
    # An error in front of a fault of the walk wins: its element comes first.
    t.configure(err_rd=1, err_lo=0x3000, err_hi=0x3020)
    m.agent.bus_errors[:] = [(0x3000, 0x3020)]
    await m.run(copy(line(m.own(0x3000), 3), line(m.own(HALF), 9)))
    await m.faults()
    t.configure(err_rd=0)
    m.agent.bus_errors.clear()
    await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100)))
    await m.memories()


@cocotb.test()
async def visible_when_idle(dut):
    """Busy holds until the last write has its response: then a unit and the memory itself see the bytes."""
    m = await MoverTb.start(dut, lat_min=300, lat_max=500)
    for k in range(scale(4, 30)):
        target = line(m.own(HALF + 0x800 * k), 24)
        script = copy(line(m.own(0x200 * k), 24), target)
        for offset, data in script:
            m.mover.write(offset, data)
        (m.tb.dir / "aux.hex").write_text("\n".join(f"{o << 64 | v:020x}" for o, v in script) + "\n")
        dut.n_aux.value = len(script)
        dut.aux_play.value = 1
        await with_timeout(RisingEdge(dut.aux_done), 50_000 * clocks.PERIOD_NS, "ns")
        dut.aux_play.value = 0
        got = await m.tb.dram.read(HALF + 0x800 * k, 24 * WORD)
        checks.equal("bytes when idle", got, m.agent.dram.read(HALF + 0x800 * k, 24 * WORD).tobytes())
        await clocks.cycles(3)
    m.tb.model.memory[:] = m.agent.dram.read(0, m.tb.bytes).tobytes()
    await m.tb.play([read_request(UNITS[1], 3, m.own(HALF), 24, port=m.tb.port)])


@cocotb.test()
async def beside_the_port(dut):
    """A move and a busy mesh port share both memories: bytes exact, both finish; port counters of AUX_STAT."""
    m = await MoverTb.start(dut)
    before = int(dut.aux_stat.value)
    steps, n_reads, n_writes = [], 0, 0
    for k in range(60):
        if k % 2:
            steps += write_flits(
                UNITS[1], k, m.staged(0x8000 + 256 * (k % 30)), [m.rng.getrandbits(256)] * 8, port=m.tb.port
            )
            n_writes += 1
        else:
            steps.append(read_request(UNITS[0], k, m.own(0x40 * k), port=m.tb.port, ew=2, count=7))
            n_reads += 7
    steps.append(read_request(UNITS[0], 0, m.own(0), 30, port=m.tb.port))
    steps.append(read_request(UNITS[0], 0, m.own(m.tb.bytes), 30, port=m.tb.port))
    play = cocotb.start_soon(m.tb.play(steps, compare=False))
    await m.run(copy(line(m.own(0x1000), 400), line(m.staged(0), 400)))
    await m.run(copy(line(m.staged(0), 400), line(m.own(HALF), 400)))
    await play
    m.tb.compare_flits()
    m.agent.stage.write(0x8000, np.frombuffer(bytes(m.tb.model.stage[0x8000:]), dtype=np.uint8))
    await m.memories()
    after = int(dut.aux_stat.value)
    after -= (m.tb.stage_bytes // WORD // 256) << 24  # the comparison's own reads
    counts = [(after >> s & 0xFFFF) - (before >> s & 0xFFFF) & 0xFFFF for s in (24, 8)]
    checks.equal("reads served, writes issued", counts, [n_reads + 1, n_writes], n=2)


@cocotb.test()
async def slow_writes(dut):
    """Reads run ahead of writes that the memory hardly takes: no word that came back is lost."""
    m = await MoverTb.start(dut, lat_min=2, lat_max=4, w_pct=4, aw_pct=20, r_pct=100, ar_pct=100)
    await m.run(copy(line(m.own(0), 900), line(m.own(HALF), 900)))
    await m.memories()


@cocotb.test()
async def throughput(dut):
    """A copy runs at one word a cycle on an ideal memory; PRNG, rows of GATHER and single words as documented."""
    m = await MoverTb.start(dut, ideal=1, lat_min=20)
    n = 1000

    async def cycles(script):
        start = cocotb.utils.get_sim_time("ns")
        await m.run(script)
        return (cocotb.utils.get_sim_time("ns") - start) / clocks.PERIOD_NS

    took = {
        "copy": await cycles(copy(line(m.own(0), n), line(m.own(HALF), n))),
        "copy to staging": await cycles(copy(line(m.own(0), n), line(m.staged(0), n))),
        "single words": await cycles(copy(line(m.own(0), n), line(m.own(HALF), n), coalesce=False)),
        "fill": await cycles(move(MoverMode.FILL, None, line(m.own(HALF), n))),
        "generate": await cycles(move(MoverMode.GENERATE, None, line(m.own(HALF), n))),
    }
    dut._log.info(f"cycles for {n} words: {took}")
    if int(dut.RD_OUT.value) >= 4:
        checks.true("copy", took["copy"] < n + 500, f"{took['copy']}")
        checks.true("fill", took["fill"] < n + 400, f"{took['fill']}")
        checks.true("generate", took["generate"] < 10 * n + 300, f"{took['generate']}")
    await m.memories()

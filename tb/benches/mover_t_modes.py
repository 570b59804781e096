# SPDX-License-Identifier: Apache-2.0
"""What each mode of the mover moves: shapes, padding, patterns, rows (docs/spec/memory.md 12.2 to 12.4)."""

import math

import cocotb

from kohakubench import checks, scale
from kohakubench.mag_model import WORD
from kohakubench.mover_tb import GATHER, HALF, IMM, INDEX, SEED, SOURCE, Dim, MoverTb, Walk, copy, line, move
from kohakutpu.isa.generated import MoverMode


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
    """30 random descriptors (1,000 in the long run) of COPY, FILL, GENERATE and GATHER, up to four queued at a time."""
    m = await MoverTb.start(dut)
    rng = m.rng
    half = m.tb.stage_bytes // 2
    left = scale(30, 1000)
    while left > 0:
        script = []
        n_moves = rng.randrange(1, 5)
        left -= n_moves
        for _ in range(n_moves):
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

# SPDX-License-Identifier: Apache-2.0
"""Transform slot of the memory mover, against the reference mover (docs/spec/memory.md 13)."""

import itertools
import json

import cocotb
import numpy as np

from kohakubench import Bench, checks, scale
from kohakubench.bench import ROOT
from kohakubench.mag_model import WORD
from kohakubench.mag_tb import MOVER_SOURCES, PUBLIC, SOURCES
from kohakubench.mover_tb import CLEAR, HALF, Dim, MoverTb, Walk, copy, line, transform
from kohakutpu.isa.generated import MoverFault, MoverTransform
from kohakutpu.isa.generated import MoverOffset as Reg
from kohakutpu.machine_spec import MachineSpec, MeshSpec
from kohakutpu.program.moves import encode
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import Entry, Flat, MxEntry

IDENTITY, QUANTISE, GRANULE = MoverTransform.IDENTITY, MoverTransform.QUANTISE, MoverTransform.GRANULE
IN, OUT = {IDENTITY: 4, QUANTISE: 8, GRANULE: 4}, 4
BENCH = Bench(
    name="mover_xform",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 512, "DRAM_LOG2": 17},
    variants={"granule": {"XFORM_GRANULE": 1}},
    public=PUBLIC,
    mutations={
        "room_unchecked": (
            "rtl/memory/mov_read.v",
            "track_room && free_q >= {{(LW-8){1'b0}}, req_len_q}",
            "track_room",
        ),
        "pack_fixed": ("rtl/memory/mov_engine.v", ".pack      (xform_mode[0]),", ".pack      (1'b0),"),
        "entry_place": ("rtl/memory/mov_write.v", "e_four ? sub_q : 2'd0", "e_four ? 2'd0 : 2'd0"),
        "one_entry_more": ("rtl/memory/mov_steps.v", "is_xform && !apart ? 11'd4 : 11'd1", "11'd1"),
        "results_lost": ("rtl/memory/mov_bank.v", "started_q != 2'd2 && !owed_q[2];", "started_q != 2'd2;"),
        "nonfinite_lost": (
            "rtl/memory/mov_engine.v",
            "if (nonfinite) nonfinite_q <= 1'b1;",
            "if (clear_fault && nonfinite) nonfinite_q <= 1'b1;",
        ),
        "unknown_id": ("rtl/memory/mov_steps.v", "xform_id > `KT_MV_XFORM_GRANULE ||", "1'b0 ||"),
        "pad_accepted": (
            "rtl/memory/mov_steps.v",
            "s_ended ? `KT_MV_F_WALK : !s_valid ? `KT_MV_F_XPAD : s_fault",
            "s_ended ? `KT_MV_F_WALK : s_fault",
        ),
        "words_swapped": (
            "rtl/memory/mov_bank.v",
            "word_q == 2'd1 ? e_data[511:256]",
            "word_q == 2'd1 ? e_data[767:512]",
        ),
    },
    mutation_tests={
        "room_unchecked": ["slow_writes"],
        "pack_fixed": ["known_answer"],
        "entry_place": ["known_answer"],
        "one_entry_more": ["faults"],
        "results_lost": ["slow_writes"],
        "nonfinite_lost": ["special_values"],
        "unknown_id": ["faults"],
        "pad_accepted": ["faults"],
        "words_swapped": ["known_answer"],
    },
    wall_s=300,
)


def _entries(m, n, *, spread=30):
    """``n`` entries of random FP16 lanes with magnitudes of every size, as bytes."""
    rng = np.random.default_rng(m.rng.getrandbits(32))
    top = rng.integers(0, spread + 1, (n, 4, 1))
    exponent = np.maximum(top - rng.integers(0, 12, (n, 4, 32)), 0)
    bits = rng.integers(0, 2, exponent.shape) << 15 | exponent << 10 | rng.integers(0, 1024, exponent.shape)
    return bits.astype("<u2").tobytes()


def _quantise(source, target, *, mode, **kw):
    return transform(QUANTISE, mode, source, target, **kw)


@cocotb.test()
async def known_answer(dut):
    """The ramp of the page in both packings; the command words of the page are the ones this bench builds."""
    m = await MoverTb.start(dut)
    page = (ROOT / "docs" / "spec" / "memory.md").read_text()
    table = [ln for ln in page.splitlines() if ln.startswith(("| A | `", "| B | `"))]
    checks.equal("rows", len(table), 2)
    k = np.arange(32)
    ramp = np.stack([(k - 15) * 0.125 * (lane + 1) for lane in range(4)]).astype("<f2")
    await m.poke(0x1000, ramp.tobytes())
    for mode, row in enumerate(table):
        words = [int(w, 16) for w in row.split("`")[1::2]]
        for place in (m.own(HALF + 0x200 * mode), m.staged(0x400 * mode + 32)):
            await m.run(_quantise(line(m.own(0x1000), 8), Walk(place, [Dim(1, 128)]), mode=mode))
            checks.equal(f"packing {mode}", m.read(place, 4), words, n=4)
    await m.memories()
    example = json.loads((ROOT / "spec" / "memory.json").read_text())["mover_examples"][1]
    mine = dict(_quantise(line(0x10_0000, 24), Walk(1 << 39, [Dim(3, 128)]), mode=1))
    heads = [int(v, 16) for n, v in example["writes"] if n == "CTRL"]
    checks.equal("example CTRL", mine[int(Reg.CTRL)] | 1 << 3, heads[0])


@cocotb.test()
async def host_packing(dut):
    """All 65,536 FP16 codes from rows and from entries, packed for either side: the bytes the host packs."""
    m = await MoverTb.start(dut)
    machine = MachineSpec("moves", (MeshSpec({"MG": ((2, 1),)}),), stage_bytes=m.tb.stage_bytes, dram_bytes=m.tb.bytes)
    codes = np.arange(1 << 16, dtype="<u2")
    met = set()
    for array in (codes, codes * np.uint16(40503)):  # neighbours together, and among lanes of every size
        for half in array.view(np.float16).reshape(2, 256, 128):
            for order, side in itertools.product((Flat(), Entry(8, 4)), "ab"):
                target = MxEntry(8, 4, side)
                a, b = Placed(order, m.own(0), half.shape), Placed(target, m.own(HALF), half.shape)
                await m.poke(0, order.pack(half))
                await m.poke(HALF, bytes(target.nbytes(half.shape)))
                (only,) = conversion(a, b, machine)
                await m.run(encode(only))
                got, packed = await m.tb.dram.read(HALF, target.nbytes(half.shape)), target.pack(half)
                checks.true(f"{order.key}, side {side}", got == packed)
                met.update(half.view("<u2").ravel().tolist())
    checks.equal("codes", len(met), 1 << 16)
    await m.memories()


@cocotb.test()
async def many_entries(dut):
    """256 entries back to back, both packings, from DRAM into staging and back out by a copy."""
    m = await MoverTb.start(dut)
    await m.poke(0, _entries(m, 256))
    for mode in (0, 1):
        await m.run(_quantise(line(m.own(0), 2048), Walk(m.staged(0), [Dim(256, 128)]), mode=mode))
        await m.memories()
    await m.run(copy(line(m.staged(0), 1024), line(m.own(HALF), 1024)))
    await m.run(transform(IDENTITY, 9, line(m.staged(0), 1024), Walk(m.own(HALF + 0x8000), [Dim(256, 128)])))
    checks.equal("identity", m.read(m.own(HALF + 0x8000), 1024), m.read(m.own(HALF), 1024), n=1024)
    await m.memories()


@cocotb.test()
async def slow_writes(dut):
    """Entries are converted much faster than the memory takes them: none is lost."""
    m = await MoverTb.start(dut, lat_min=2, lat_max=4, w_pct=8, aw_pct=20, r_pct=100, ar_pct=100)
    await m.poke(0, _entries(m, 128))
    await m.run(_quantise(line(m.own(0), 1024), Walk(m.own(HALF), [Dim(128, 128)]), mode=1))
    await m.run(transform(IDENTITY, 0, line(m.own(0), 1024), Walk(m.own(HALF + 0x8000), [Dim(256, 128)])))
    await m.memories()


@cocotb.test()
async def places(dut):
    """Strided source, destinations that are not multiples of 128 and cross a page, gaps, reversed entries."""
    m = await MoverTb.start(dut)
    await m.poke(0, _entries(m, 256))
    for mode in (0, 1):
        at = HALF + 0x8000 * mode
        await m.run(_quantise(Walk(m.own(0), [Dim(40, 64)]), Walk(m.own(at + 0x60), [Dim(5, 128)]), mode=mode))
        rows = Walk(m.own(0x40), [Dim(6, 0x800), Dim(8, 0x20)])
        await m.run(_quantise(rows, Walk(m.own(at + 0xFA0), [Dim(6, 160)]), mode=mode, coalesce=False))
        backward = Walk(m.own(at + 0x3F60), [Dim(9, -128)])  # surplus entries
        await m.run(_quantise(Walk(m.own(0x2000), [Dim(8, 256), Dim(8, 32)]), backward, mode=mode, cap=3))
        await m.memories()
    for _ in range(scale(6, 60)):
        occupant, n = m.rng.choice((IDENTITY, QUANTISE)), m.rng.randrange(1, 20)
        source = Walk(m.own(m.rng.randrange(64) * WORD), [Dim(n, 32 * IN[occupant]), Dim(IN[occupant], 32)])
        target = Walk(
            m.own(HALF + m.rng.randrange(300) * WORD), [Dim(n + m.rng.randrange(3), m.rng.choice((128, 160, 512)))]
        )
        how = {"cap": m.rng.randrange(8), "coalesce": bool(m.rng.randrange(2))}
        await m.run(transform(occupant, m.rng.randrange(16), source, target, **how))
    await m.memories()


@cocotb.test()
async def special_values(dut):
    """Zero, subnormal, one-outlier and largest lanes; infinity and NaN set the sticky bit, CLEAR[1] clears it."""
    m = await MoverTb.start(dut)
    tiny, big = np.array([1, 0x3FF], "<u2"), np.array([0x7BFF, 0xFBFF], "<u2")
    lanes = np.zeros((12, 4, 32), "<u2")
    lanes[1] = np.resize(tiny, (4, 32))
    lanes[2, :, 7] = big[0]
    lanes[3] = np.resize(big, (4, 32))
    lanes[4] = lanes[1]
    lanes[4, 2, 31] = big[1]
    lanes[5] = 0x8000
    m_rng = np.random.default_rng(m.rng.getrandbits(32))
    lanes[6:] = m_rng.integers(0, 0x7C00, (6, 4, 32))
    await m.poke(0, lanes.tobytes())
    await m.run(_quantise(line(m.own(0), 96), Walk(m.own(HALF), [Dim(12, 128)]), mode=0))
    checks.equal("no special value", int(dut.aux_stat.value) >> 2 & 1, 0)
    for bits in (0x7C00, 0xFC00, 0x7E00, 0xFC01):
        lanes[9, 1, 17] = bits
        await m.poke(0, lanes.tobytes())
        await m.run(transform(IDENTITY, 0, line(m.own(0), 96), Walk(m.own(HALF + 0x4000), [Dim(24, 128)])))
        checks.equal("identity does not look", int(dut.aux_stat.value) >> 2 & 1, 0)
        await m.run(_quantise(line(m.own(0), 96), Walk(m.own(HALF), [Dim(12, 128)]), mode=1))
        checks.equal("sticky", int(dut.aux_stat.value) >> 2 & 1, 1)
        await m.run(copy(line(m.own(0), 3), line(m.own(HALF + 0x2000), 3)))
        checks.equal("still", int(dut.aux_stat.value) >> 2 & 1, 1)
        await m.run([(CLEAR, 1)])
        checks.equal("other bit", int(dut.aux_stat.value) >> 2 & 1, 1)
        await m.run([(CLEAR, 2)])
        checks.equal("cleared", int(dut.aux_stat.value) >> 2 & 1, 0)
        await m.memories()
        lanes[9, 1, 17] = 0


@cocotb.test()
async def faults(dut):
    """Mode 5: unknown occupants before any access; partial, padded, unaligned entries: whole entries before it stay."""
    m = await MoverTb.start(dut)
    await m.poke(0, _entries(m, 200))
    top, built = m.tb.bytes, bool(int(dut.XFORM_GRANULE.value))
    to = Walk(m.own(HALF), [Dim(40, 128)])
    cases = [transform(k, 0, line(m.own(0), 8), to) for k in (*range(0 if not built else 3, 16),) if k not in (0, 1)]
    windows = ((0, 9), (0, 0))
    padded = Walk(m.own(0), [Dim(16, 32, 1, 1)], windows)
    for occupant in (IDENTITY, QUANTISE):
        n = IN[occupant]
        cases += [
            transform(occupant, 0, line(m.own(0), 2 * n + 1), to),
            transform(occupant, 0, line(m.own(0), n - 1), to),
            transform(occupant, 0, line(m.own(0), 3 * n), Walk(m.own(HALF + 0x2000), [Dim(2, 128)])),
            transform(occupant, 0, padded, Walk(m.own(HALF + 0x3000), [Dim(8, 128)])),
            transform(
                occupant, 0, line(m.own(0), 4 * n), Walk(m.own(HALF + 0x3400), [Dim(4, 128, 1, 1)], ((-2, 9), (0, 0)))
            ),
            transform(occupant, 0, Walk(m.own(0), [Dim(2, 32 * n), Dim(n, 40)]), to),
            transform(occupant, 0, line(m.own(0), 3 * n), Walk(m.own(HALF + 0x3800), [Dim(3, 136)])),
            transform(occupant, 0, line(m.own(top - 64 * n + 32), 2 * n), to),
            transform(occupant, 0, line(m.own(0), 3 * n), Walk(m.own(top - 128 - 96), [Dim(3, 128)])),
            transform(occupant, 0, line(m.own(0), 3 * n), Walk(m.staged(m.tb.stage_bytes - 160), [Dim(3, 128)])),
            transform(occupant, 0, line(m.own(0), 2 * n), Walk(m.own(HALF + 0x4000), [Dim(2, 128)])),
        ]
    seen = set()
    for k, script in enumerate(cases):
        await m.run(script)
        seen.add(m.mover.fault)
        await m.faults()
        if k % 4 == 3:
            await m.memories()
        await m.run(
            _quantise(line(m.own(0x100 * k), 16), Walk(m.own(HALF + 0x8000 + 256 * k), [Dim(2, 128)]), mode=k & 1)
        )
    await m.memories()
    expected = {MoverFault(c) for c in (0, 2, 6, 7, 8, 10)}
    checks.equal("codes", seen, expected, n=len(expected))


@cocotb.test()
async def bus_errors(dut):
    """A failing source word or response ends the move with F_AXI; the bank is clean for the next move."""
    m = await MoverTb.start(dut)
    t = m.tb.dram
    await m.poke(0, _entries(m, 64))
    for k in (0, 7, 8, 100):
        for write in (0, 1):
            at = HALF + WORD * k if write else WORD * k
            t.configure(err_rd=1 - write, err_wr=write, err_lo=at, err_hi=at + WORD, err_resp=2)
            m.agent.bus_errors[:] = [(at, at + WORD)]
            script = _quantise(line(m.own(0), 256), Walk(m.own(HALF), [Dim(32, 128)]), mode=0, cap=1)
            await m.run(script)
            checks.equal("fault", m.mover.fault, MoverFault.F_AXI)
            await m.faults()
            t.configure(err_rd=0, err_wr=0)
            m.agent.bus_errors.clear()
            await m.run(_quantise(line(m.own(0), 512), Walk(m.own(HALF), [Dim(64, 128)]), mode=1))
            await m.memories()


@cocotb.test()
async def granule(dut):
    """Granule transpose, both destination modes; twice is the identity; patterns unchanged; F_XFORM if not built."""
    m = await MoverTb.start(dut)
    source, target = line(m.own(0), 160), Walk(m.own(HALF), [Dim(40, 128)])
    await m.run(transform(GRANULE, 0, source, target))
    if not int(dut.XFORM_GRANULE.value):
        checks.equal("not built", m.mover.fault, MoverFault.F_XFORM)
        return
    checks.equal("built", m.mover.fault, MoverFault.F_NONE)
    await m.run(transform(GRANULE, 0, line(m.own(HALF), 160), Walk(m.own(HALF + 0x4000), [Dim(40, 128)])))
    checks.equal("twice", m.read(m.own(HALF + 0x4000), 160), m.read(m.own(0), 160), n=160)
    apart = Walk(m.own(HALF + 0x8000), [Dim(5, 0x400), Dim(8, 0x20), Dim(4, 0x100)])
    await m.run(transform(GRANULE, 1, source, apart))
    await m.memories()
    rows = Walk(m.own(HALF + 0x8000), [Dim(5, 0x400), Dim(8, 0x20), Dim(4, 0x100)])
    await m.run(transform(GRANULE, 3, rows, line(m.own(HALF + 0xC000), 160)))
    checks.equal("rows and back", m.read(m.own(HALF + 0xC000), 160), m.read(m.own(0), 160), n=160)
    special = np.full(64 * 16, 0x7C00, "<u2")
    special[1::3] = 0xFE01
    await m.poke(0x8000, special.tobytes())
    await m.run(transform(GRANULE, 0, line(m.own(0x8000), 64), Walk(m.staged(0), [Dim(16, 128)])))
    checks.equal("no special value", int(dut.aux_stat.value) >> 2 & 1, 0)
    to = HALF + 0x2000
    short = [
        transform(GRANULE, 1, line(m.own(0), 8), line(m.own(to), 7)),
        transform(GRANULE, 1, line(m.own(0), 8), Walk(m.own(to + 0x400), [Dim(8, 32, 1, 1)], ((0, 6), (0, 0)))),
        transform(GRANULE, 1, line(m.own(0), 8), Walk(m.own(to + 0x800), [Dim(8, 40)])),
        transform(GRANULE, 1, line(m.own(0), 8), line(m.own(m.tb.bytes - 6 * WORD), 8)),
        transform(GRANULE, 0, line(m.own(0), 6), line(m.own(to + 0xC00), 8)),
    ]
    for script in short:
        await m.run(script)
        await m.faults()
    await m.memories()

# SPDX-License-Identifier: Apache-2.0
"""link_afifo: every clock ratio and drift, full and empty, throughput, reset of each side alone."""

import random

import cocotb
from cocotb.triggers import FallingEdge, Timer

from kohakubench import Bench, checks, scale, seed

_DUT = "rtl/noc/link_afifo.v"
_RESETS = ["reset_write_side", "reset_read_side"]

BENCH = Bench(
    name="link_afifo",
    top="tb_link_afifo",
    sources=[
        "rtl/common/sync_2ff.v",
        "rtl/common/ram_sdp_2clk.v",
        _DUT,
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/sync_2ff_model.v",
        "tb/hdl/ramp_clock.v",
        "tb/hdl/tb_link_afifo.v",
    ],
    params={"DEPTH": 16},
    variants={"shallow": {"DEPTH": 4}},
    defines={"KT_SYNC_MODEL": "1"},
    mutations={
        "overflows": (_DUT, "assign in_busy = !wr_live_q || full;", "assign in_busy = !wr_live_q;"),
        "wastes_an_entry": (_DUT, "full     = wr_gray_q ==", "full     = gray(wr_bin_d) =="),
        "full_mask_wrong": (_DUT, "gray({1'b1, {AW{1'b0}}}))", "{1'b1, {AW{1'b0}}})"),
        "empty_looks_at_old_pointer": (_DUT, "!= gray(rd_bin_d);", "!= rd_gray_q;"),
        "head_from_old_address": (_DUT, ".rd_addr (rd_bin_d[AW-1:0])", ".rd_addr (rd_bin_q[AW-1:0])"),
        "write_reset_not_passed_on": (
            _DUT,
            "rd_live_d = !rd_req_q && !rd_far_req && !rd_far_ack",
            "rd_live_d = !rd_req_q && !rd_far_ack",
        ),
        "read_reset_not_passed_on": (
            _DUT,
            "wr_live_d = !wr_req_q && !wr_far_req && !wr_far_ack",
            "wr_live_d = !wr_req_q && !wr_far_ack",
        ),
        "request_not_held": (_DUT, "if (wr_far_ack) wr_req_q <= 1'b0;", "wr_req_q <= 1'b0;"),
        "old_acknowledge_counts": (_DUT, "if (!rd_far_ack) rd_req_q <= 1'b1;", "rd_req_q <= 1'b1;"),
        "pointer_survives_reset": (_DUT, "if (rd_far_req || rd_far_ack) begin", "if (rd_far_ack) begin"),
        "pointer_cleared_too_early": (
            _DUT,
            "if (wr_far_req || wr_far_ack) begin",
            "if (!wr_rst_n || wr_far_req || wr_far_ack) begin",
        ),
        "valid_in_reset": (_DUT, "rd_rst_n && rd_live_d && (fetch", "(fetch"),
        "offer_withdrawn": (_DUT, "(fetch || (rd_valid_q && !pop))", "fetch"),
    },
    mutation_tests={
        "overflows": ["full_then_empty"],
        "wastes_an_entry": ["full_then_empty"],
        "full_mask_wrong": ["full_then_empty", "clock_ratios"],
        "empty_looks_at_old_pointer": ["clock_ratios"],
        "head_from_old_address": ["clock_ratios"],
        "write_reset_not_passed_on": ["reset_write_side"],
        "read_reset_not_passed_on": ["reset_read_side"],
        "request_not_held": ["reset_write_side"],
        "old_acknowledge_counts": _RESETS,
        "pointer_survives_reset": _RESETS,
        "pointer_cleared_too_early": _RESETS,
        "valid_in_reset": ["held_reset"],
        "offer_withdrawn": ["clock_ratios"],
    },
    wall_s=600,
)

# half periods of the write and the read clock: (lowest, highest, step), ps
FIXED = {
    "1:1": ((5000, 5000, 0), (5000, 5000, 0)),
    "1:4": ((5000, 5000, 0), (20000, 20000, 0)),
    "4:1": ((20000, 20000, 0), (5000, 5000, 0)),
    "7:5": ((7000, 7000, 0), (5000, 5000, 0)),
    "5:7": ((5000, 5000, 0), (7000, 7000, 0)),
}
DRIFTING = {
    "nearly equal": ((5000, 5000, 0), (5003, 5003, 0)),
    "write side walks": ((2500, 10000, 3), (5000, 5000, 0)),
    "read side walks": ((5000, 5000, 0), (2500, 10000, 7)),
    "both walk": ((4000, 6000, 1), (3000, 9000, 5)),
}
_NEVER = 0xFFFFFFFF
_FAULTS = (
    "lost",
    "duplicates",
    "out_of_order",
    "corrupt",
    "wrong_restarts",
    "wr_not_blocked",
    "rd_not_blocked",
)


class Link:
    """Clocks, resets, rates and counters of the bench top."""

    def __init__(self, dut, ratio):
        self.dut = dut
        self.ratio = ratio
        self.slow_ps = 2 * max(hi for _, hi, _ in ratio)
        self.depth = int(dut.DEPTH.value)

    def get(self, name):
        """A counter of the top."""
        return int(getattr(self.dut, name).value)

    async def wait(self, slow_cycles):
        """Let cycles of the slower clock pass."""
        await Timer(slow_cycles * self.slow_ps, unit="ps")

    async def fresh(self, *, uncertain=1, src=256, sink=256, src_limit=_NEVER, sink_limit=_NEVER):
        """New clocks and counters behind a reset of both sides."""
        dut = self.dut
        dut.wr_rst_n.value = dut.rd_rst_n.value = 0
        dut.clear.value = 1
        for side, (lo, hi, step) in zip(("wr", "rd"), self.ratio, strict=True):
            getattr(dut, f"{side}_lo_ps").value = lo
            getattr(dut, f"{side}_hi_ps").value = hi
            getattr(dut, f"{side}_step_ps").value = step
        dut.seed.value = (seed() * 0x9E3779B1 + src * 512 + sink) & 0xFFFFFFFF
        dut.uncertain.value = uncertain
        dut.src_rate.value, dut.sink_rate.value = src, sink
        dut.src_limit.value, dut.sink_limit.value = src_limit, sink_limit
        await self.wait(20)
        dut.clear.value = 0
        await self.wait(2)
        for side in ("wr", "rd"):
            await self.drive(side, 1)

    async def drive(self, side, level):
        """Change the reset of one side between two of its edges."""
        await FallingEdge(getattr(self.dut, f"{side}_clk"))
        getattr(self.dut, f"{side}_rst_n").value = level

    async def pulse(self, side, cycles):
        """Reset one side for this many of its own cycles."""
        await self.drive(side, 0)
        for _ in range(cycles):
            await FallingEdge(getattr(self.dut, f"{side}_clk"))
        getattr(self.dut, f"{side}_rst_n").value = 1

    async def until(self, name, value, slow_cycles):
        """Wait until a counter is at least ``value``; the caller checks it."""
        for _ in range(slow_cycles // 16 + 1):
            if self.get(name) >= value:
                return
            await self.wait(16)

    def sound(self, name, compared=1):
        """No flit lost, repeated, out of order or changed, no reset unnoticed."""
        for fault in _FAULTS:
            checks.equal(f"{name}: {fault}", self.get(fault), 0, n=compared)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def reset_state(dut):
    """Busy and silent in reset; ready soon after it, and silent until something is sent."""
    for name, ratio in FIXED.items():
        link = Link(dut, ratio)
        for signal in ("wr_rst_n", "rd_rst_n"):
            getattr(dut, signal).value = 0
        await link.fresh(src_limit=0)
        checks.equal(f"{name}: busy at release", link.get("in_busy"), 1)
        await link.wait(12)
        checks.equal(f"{name}: busy 12 slow cycles later", link.get("in_busy"), 0)
        await link.wait(50)
        checks.equal(f"{name}: received", link.get("received"), 0)
        checks.equal(f"{name}: valid", link.get("out_valid"), 0)


async def _traffic(dut, name, ratio, flits, rates):
    full = drained = 0
    for uncertain in (1, 0):
        for src, sink in rates:
            link = Link(dut, ratio)
            await link.fresh(uncertain=uncertain, src=src, sink=sink, src_limit=flits)
            await link.until("received", flits, flits * 256 // min(src, sink) * 4 + 1000)
            what = f"{name}, rates {src} and {sink}, uncertain {uncertain}"
            checks.equal(f"{what}: sent", link.get("sent"), flits)
            checks.equal(f"{what}: received", link.get("received"), flits, n=flits)
            link.sound(what)
            full |= link.get("hit_full")
            drained |= link.get("hit_drained")
    checks.equal(f"{name}: was full", full, 1)
    checks.equal(f"{name}: drained after it", drained, 1)


@cocotb.test(timeout_time=500, timeout_unit="ms")
async def clock_ratios(dut):
    """1:1, 1:4, 4:1, 7:5, 5:7 at all mixtures of rates: no loss, duplicate or reorder."""
    for name, ratio in FIXED.items():
        rates = ((256, 256), (256, 40), (40, 256), (128, 128), (200, 150))
        await _traffic(dut, name, ratio, scale(600, 50_000), rates)


@cocotb.test(timeout_time=1000, timeout_unit="ms")
async def drifting_clocks(dut):
    """Phases slide past each other and ratios pass through 1 both ways: still no loss."""
    for name, ratio in DRIFTING.items():
        await _traffic(dut, name, ratio, scale(3000, 100_000), ((256, 256), (256, 60), (180, 180)))


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def throughput(dut):
    """Both sides willing: one flit per cycle of the slower clock (depth 16)."""
    for name, ratio in (FIXED | {"nearly equal": DRIFTING["nearly equal"]}).items():
        for uncertain in (0, 1):
            link = Link(dut, ratio)
            await link.fresh(uncertain=uncertain)
            await link.wait(100)
            side = "wr_edges" if ratio[0][0] > ratio[1][0] else "rd_edges"
            moved, edges = link.get("received"), link.get(side)
            await link.wait(2000)
            moved, edges = link.get("received") - moved, link.get(side) - edges
            dut._log.info("%s uncertain %d: %d flits in %d slow cycles", name, uncertain, moved, edges)
            # depth 4: a slot returns after 6 to 9 cycles of equal clocks
            least = 0.99 if link.depth >= 16 else 0.43
            checks.true(f"{name}, uncertain {uncertain}", moved >= least * edges, f"{moved} flits in {edges} cycles")
            link.sound(name)


@cocotb.test(timeout_time=100, timeout_unit="ms")
async def latency(dut):
    """A lone flit is handed over in the fourth read cycle, the fifth when an edge was missed."""
    for name, ratio in FIXED.items():
        rd_ps = 2 * ratio[1][0]
        for uncertain in (0, 1):
            link = Link(dut, ratio)
            await link.fresh(uncertain=uncertain, src_limit=0)
            await link.wait(20)
            for n in range(1, scale(40, 400)):
                dut.src_limit.value = n
                await Timer(link.slow_ps * 12 + 1000 * (n % 7), unit="ps")
            checks.equal(f"{name}: received", link.get("received"), scale(40, 400) - 1)
            low, high = link.get("delay_min_ps"), link.get("delay_max_ps")
            dut._log.info("%s uncertain %d: %d to %d ps, read clock %d ps", name, uncertain, low, high, rd_ps)
            checks.true(f"{name}: shortest", 3 * rd_ps < low, f"{low} ps, read clock {rd_ps} ps")
            checks.true(f"{name}: longest", high <= (4 + uncertain) * rd_ps, f"{high} ps, read clock {rd_ps} ps")


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def full_then_empty(dut):
    """A stopped sink leaves exactly DEPTH flits inside; each one taken makes room for exactly one."""
    for name, ratio in FIXED.items():
        link = Link(dut, ratio)
        await link.fresh(sink_limit=0)
        await link.wait(200)
        checks.equal(f"{name}: stored", link.get("sent"), link.depth)
        checks.equal(f"{name}: busy", link.get("in_busy"), 1)
        checks.equal(f"{name}: offered", link.get("out_valid"), 1)
        for taken in range(1, 2 * link.depth + 3):
            dut.sink_limit.value = taken
            await link.wait(20)
            checks.equal(f"{name}: received", link.get("received"), taken)
            checks.equal(f"{name}: stored after {taken}", link.get("sent"), link.depth + taken)
        total = link.get("sent")
        dut.src_limit.value = 0
        # the offered flit stays offered: it is one more
        dut.sink_limit.value = _NEVER
        await link.wait(100)
        checks.equal(f"{name}: received at the end", link.get("received"), total + 1)
        checks.equal(f"{name}: sent at the end", link.get("sent"), total + 1)
        checks.equal(f"{name}: empty", link.get("out_valid"), 0)
        link.sound(name)


async def _resets(dut, sides):
    rng = random.Random(seed())
    flits = 0
    for name, ratio in (FIXED | {"both walk": DRIFTING["both walk"]}).items():
        for src, sink in ((256, 256), (256, 60), (60, 256)):
            link = Link(dut, ratio)
            await link.fresh(src=src, sink=sink)
            for turn in range(scale(12, 200)):
                before = link.get("received")
                await link.until("received", before + 5, 1000)
                checks.true(f"{name}: alive", link.get("received") >= before + 5, "stands still after a reset")
                await Timer(rng.randrange(1, 60 * link.slow_ps), unit="ps")
                length = (1, 2, 3, 4, 16, rng.randrange(1, 40))[turn % 6]
                if len(sides) == 2:
                    first, second = rng.sample(sides, 2)
                    other = cocotb.start_soon(link.pulse(second, rng.randrange(1, 20)))
                    await link.pulse(first, length)
                    await other
                    # a further one within the handshake of those
                    await Timer(rng.randrange(1, 12 * link.slow_ps), unit="ps")
                    await link.pulse(rng.choice(sides), 1)
                else:
                    await link.pulse(sides[0], length)
                    if turn % 3 == 2:
                        await Timer(rng.randrange(1, 12 * link.slow_ps), unit="ps")
                        await link.pulse(sides[0], 1)
                        await link.wait(2)
            before = link.get("received")
            await link.until("received", before + 40, 2000)
            dut.src_limit.value = 0
            await link.wait(1000)
            what = f"{name}, rates {src} and {sink}, {' and '.join(sides)}"
            checks.equal(
                f"{what}: sent = received + dropped",
                link.get("received") + link.get("dropped"),
                link.get("sent"),
            )
            checks.true(f"{what}: restarts", link.get("restarts") > scale(12, 200), f"{link.get('restarts')}")
            # a reset right behind another one can catch flits of its own
            most = (len(sides) + 1) * link.depth
            checks.true(f"{what}: dropped", link.get("dropped_max") <= most, f"{link.get('dropped_max')} at once")
            link.sound(what, compared=link.get("received"))
            flits += link.get("received")
    checks.true("flits", flits > 1000, f"only {flits}")


@cocotb.test(timeout_time=500, timeout_unit="ms")
async def reset_write_side(dut):
    """Resets of 1 to 40 write cycles in traffic: what was inside goes, all later flits arrive once."""
    await _resets(dut, ["wr"])


@cocotb.test(timeout_time=500, timeout_unit="ms")
async def reset_read_side(dut):
    """Resets of 1 to 40 read cycles in traffic: what was inside goes, all later flits arrive once."""
    await _resets(dut, ["rd"])


@cocotb.test(timeout_time=500, timeout_unit="ms")
async def reset_both_sides(dut):
    """Both sides in any overlap, and a third reset into the handshake of the first two."""
    await _resets(dut, ["wr", "rd"])


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def held_reset(dut):
    """While one side stays in reset the other one is blocked; both leave together."""
    for name, ratio in FIXED.items():
        for side, blocked in (("wr", "rd_blocked"), ("rd", "wr_blocked")):
            # a slow sink: flits are inside and offered when the reset comes
            link = Link(dut, ratio)
            await link.fresh(sink=30)
            await link.until("received", 10, 1000)
            await link.drive(side, 0)
            await link.wait(80)
            checks.true(f"{name}, {side}: looked at", link.get(blocked) > 40, f"{link.get(blocked)} edges")
            sent, received = link.get("sent"), link.get("received")
            await link.wait(40)
            checks.equal(f"{name}, {side}: sent in reset", link.get("sent"), sent)
            checks.equal(f"{name}, {side}: received in reset", link.get("received"), received)
            await link.drive(side, 1)
            dut.sink_rate.value = 256
            await link.until("received", received + 50, 500)
            checks.true(f"{name}, {side}: alive", link.get("received") >= received + 50, "stands still")
            checks.equal(f"{name}, {side}: restarts", link.get("restarts"), 2)
            link.sound(f"{name}, {side}")

# SPDX-License-Identifier: Apache-2.0
"""Machine and reference behind the host map, and control programs for them."""

from __future__ import annotations

from cocotb.triggers import FallingEdge

from benches.control import Pair, model
from kohakubench import checks, clocks
from kohakubench import orch_model as om

BASE = 0x1000_0000
WR, POLL, DONE = 1, 2, 3
READS = BASE + 0x208  # register that counts its own reads


class Machine(Pair):
    """Machine and reference behind the host map; ``eng`` is the reference of the engine."""

    base = BASE

    def __init__(self, dut):
        self.orch = model()
        self.bus = om.Window(self.orch, BASE)
        self.eng = om.Engine(self.bus, int(dut.NCMD.value), int(dut.POLL_IVL.value))
        super().__init__(dut, self.orch)

    def write_model(self, address, data, strobes=0xFF):
        """Response of a host write."""
        return self.eng.write(address, data, strobes) if address >> 16 == 0 else self.bus.write(address, data, strobes)

    def read_model(self, address):
        """(data, response) of a host read."""
        return self.eng.read(address) if address >> 16 == 0 else self.bus.read(address)

    async def write(self, address, data, strobes=0xFF):
        """One host write on both."""
        got = await self.axi.write(address, data, strobes)
        checks.equal(f"response of write {address:#x}", got, self.write_model(address, data, strobes))

    async def read(self, address):
        """One host read on both."""
        got = await self.axi.read(address)
        checks.equal(f"read {address:#x}", got, self.read_model(address))
        return got[0]

    async def load(self, commands, at=0):
        """Write a command list of (op, addr, data, mask)."""
        for n, fields in enumerate(commands):
            for f, value in enumerate((*fields, 0, 0, 0)[:4]):
                await self.write(0x1000 + 32 * (at + n) + 8 * f, value)

    async def go(self):
        """GO on both; the reference has finished when this returns, the machine has not."""
        await self.write(0, 1)
        self.eng.execute()

    async def wait(self, limit=200_000):
        """Wait for irq, then compare every engine register."""
        for _ in range(limit // 20):
            if int(self.dut.irq.value):
                break
            await clocks.cycles(20)
        checks.equal("irq", int(self.dut.irq.value), 1)
        await FallingEdge(self.dut.clk)
        await self.engine_state()

    async def engine_state(self):
        """Compare every engine register and irq."""
        for offset in range(0, 0x40, 8):
            await self.read(offset)
        checks.equal("irq", int(self.dut.irq.value), int(self.eng.done))

    async def log(self, since):
        """Writes that reached the orchestrator since ``since``."""
        out = []
        for n in range(since, int(self.dut.bus_count.value)):
            self.dut.bus_sel.value = n & 1023
            await FallingEdge(self.dut.clk)
            word = int(self.dut.bus_data.value)
            out.append((word >> 64, word & om.MASK64))
        return out


def round_of(rng, credit):
    """A round as the driver emits it: seed, polls, latched writes, kicks, awaits, DONE (fabric.md 8.1)."""
    out = [(WR, BASE + 0x70, 0), (WR, BASE + 0x60, credit)]
    for dst, base, n in ((0x12, 0, 3), (0x01, 3, 4), (0x12, 7, 2)):
        out += [
            (POLL, BASE + 0x58, 0, 1),
            (WR, BASE + 0x40, dst),
            (WR, BASE + 0x68, base),
            (WR, BASE + 0x48, n),
        ]
        out.append((WR, BASE + 0x50, 1))
    for node, count in ((0x12, 5), (0x01, 4)):
        out.append((POLL, BASE + 0x1000 + 8 * node, count << 8 | 1, 0x00FF_FF01))
    out += [(WR, BASE + 0x800 + 8 * k, rng.getrandbits(64)) for k in range(3)]
    out.append((POLL, BASE + 0x78, 1, 1))
    out.append((DONE, 0, rng.getrandbits(64)))
    return out


async def run_on_host(pair, commands):
    """The host executes the list itself, with the engine's semantics."""
    for op, address, *rest in commands:
        if op == WR:
            checks.equal("host write", await pair.axi.write(address, rest[0]), 0)
        elif op == POLL:
            while (await pair.axi.read(address))[0] & rest[1] != rest[0]:
                await clocks.cycles(30)
        else:
            return rest[0]
    raise AssertionError("no DONE")

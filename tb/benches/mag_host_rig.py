# SPDX-License-Identifier: Apache-2.0
"""The agent with an AXI4 master on its host window and the reference images of both memories."""

import logging

from cocotb.triggers import with_timeout
from cocotbext.axi import AxiBus, AxiMaster

from kohakubench import checks, clocks
from kohakubench.mag_model import WORD, read_request
from kohakubench.mag_tb import UNITS, MagTb
from kohakubench.window_channels import OKAY, WindowChannels, words_of


class Host:
    """Bench with the reference images: DRAM and staging as the host has left them."""

    @classmethod
    async def start(cls, dut, *, raw=False, **dram):
        self = cls()
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.tb = await MagTb.start(dut, **dram)
        self.dut, self.rng, self.m = dut, self.tb.rng, self.tb.model
        if raw:
            self.raw = WindowChannels(dut)
        else:
            self.axi = AxiMaster(AxiBus.from_prefix(dut, "s_axi_mem"), dut.clk, dut.rst_n, reset_active_level=False)
        await clocks.cycles(2)
        return self

    def tiers(self):
        """(window address of byte 0, reference image) of both memories."""
        return (self.tb.own(0), self.m.memory), (self.tb.staged(0), self.m.stage)

    async def write(self, tier, at, data):
        base, image = tier
        image[at : at + len(data)] = data
        done = await with_timeout(self.axi.write(base + at, data), 400, "us")
        checks.equal(f"write {base + at:#x}", done.resp, OKAY)

    async def read(self, tier, at, n):
        base, image = tier
        done = await with_timeout(self.axi.read(base + at, n), 400, "us")
        checks.equal(f"response {base + at:#x}", done.resp, OKAY)
        checks.true(f"bytes {base + at:#x}+{n}", bytes(done.data) == bytes(image[at : at + n]))

    def word(self):
        return self.rng.getrandbits(256)

    def store(self, image, at, words, strobes=None):
        """Apply whole-word beats to a reference image."""
        for k, word in enumerate(words):
            strb = 0xFFFFFFFF if strobes is None else strobes[k]
            for b in range(32):
                if strb >> b & 1:
                    image[at + WORD * k + b] = word >> 8 * b & 255

    async def put(self, tier, at, words, strobes=None, *, ident=0, skew=0):
        """One burst of the raw channels, kept in the reference image; ``skew`` moves only the address offered."""
        base, image = tier
        self.store(image, at, words, strobes)
        got = await self.raw.write(base + at + skew, words, strobes, ident=ident)
        checks.equal(f"B of {base + at:#x}", got, (ident, OKAY))

    async def get(self, tier, at, n, *, ident=0, skew=0):
        """One burst of the raw channels: id, response, last and data of every beat as the reference has them."""
        base, image = tier
        got = await self.raw.read(base + at + skew, n, ident=ident)
        expected = [(ident, OKAY, w, int(k == n - 1)) for k, w in enumerate(words_of(image, at, n))]
        checks.equal(f"beats of {base + at:#x}", got, expected, n=n)

    async def port_reads(self):
        """Two long reads of a mesh port while the window is held back: all their words arrive."""
        steps = [read_request(UNITS[0], k, self.tb.own(0x1000 * k), 100, port=self.tb.port) for k in range(2)]
        await self.tb.play(steps, compare=False)
        self.tb.compare_flits()

    async def same(self):
        """Both memories hold what the reference holds."""
        await self.tb.compare_stage()

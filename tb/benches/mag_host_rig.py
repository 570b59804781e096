# SPDX-License-Identifier: Apache-2.0
"""The agent with an AXI4 master on its host window and the reference images of both memories."""

import logging

from cocotb.triggers import with_timeout
from cocotbext.axi import AxiBus, AxiMaster

from kohakubench import checks, clocks
from kohakubench.mag_model import WORD
from kohakubench.mag_tb import MagTb
from kohakubench.window_channels import OKAY, WindowChannels


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

    async def same(self):
        """Both memories hold what the reference holds."""
        await self.tb.compare_stage()

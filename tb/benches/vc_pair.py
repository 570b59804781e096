# SPDX-License-Identifier: Apache-2.0
"""Two vector cores that drain into each other at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import First, RisingEdge, Timer

from benches.vc_mem_rig import sequence
from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.vector_kernels import END, assemble
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import Signal
from kohakutpu.model.messages import DataBurst, Flit, WriteBurst
from kohakutpu.model.shell import Shell
from kohakutpu.model.vector import ShellLink, VectorUnit

BENCH = Bench(
    name="vc_pair",
    top="tb_vc_pair",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/vector/*.v",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/vc_pair_side.v",
        "tb/hdl/tb_vc_pair.v",
        "tb/hdl/tb_vc_pair_links.sv",
    ],
    mutations={
        "receive_waits": (
            "rtl/vector/vc_core.v",
            ".recv_ready    (recv_ready)",
            ".recv_ready    (recv_ready && !send_valid)",
        ),
    },
)
PLACES = ((1, 0), (2, 0))
CTRL, MEM = (1, 1), (0, 1)
OUT = 0x8_0000


class Network:
    """Both models, one behind the other's bursts; memory only takes writes."""

    def __init__(self) -> None:
        self.signals: list[list[int]] = [[], []]
        self.writes: list[list[int]] = [[], []]
        self.data: list[list[int]] = [[], []]
        agent: Any = self
        self.shells = [Shell(place, MEM, self, agent) for place in PLACES]
        self.units = [VectorUnit(ShellLink(shell)) for shell in self.shells]
        for shell, unit in zip(self.shells, self.units, strict=True):
            shell.attach(unit)

    def deliver(self, value: int) -> None:
        f = Flit(value)
        self.signals[PLACES.index(f.src)].append(value)
        if f.dst in PLACES:
            self.shells[PLACES.index(f.dst)].take(f)

    def deliver_burst(self, burst: DataBurst) -> None:
        self.data[PLACES.index(burst.src)] += list(burst.flits())
        self.shells[PLACES.index(burst.dst)].take_burst(burst)

    def observe(self, node: Any, event: object) -> None:
        if isinstance(event, WriteBurst):
            self.writes[PLACES.index(node)] += list(event.flits())

    def write(self, src: Any, txn: int, addr: int, words: np.ndarray) -> int:
        return 0


@cocotb.test()
async def both_directions(dut):
    """256 words each way, again and again: every drain completes, both upper halves end as the other's lower half."""
    clocks.start(dut.clk)
    rounds = scale(12, 100)
    net = Network()
    programs: list[list[int]] = [[], []]
    for side, place in enumerate(PLACES):
        other = PLACES[1 - side]
        # every core fills its lower half with its own pattern, exchanges, and shows what came
        text = f"VSETMODE FLAT; S0 = 128; VSETVL S0; S1 = {0x3F8000 + 0x1111 * (side + 1):#x}; VBCAST v0, S1\n"
        text += "".join(f"VADD v0, v0, S1; VST.FP16 v0, A2+{8 * n}\n" for n in range(32))
        drain = f"VDRAIN A0, L1 0 -> node ({other[0]},{other[1]}) buf 0, signal"
        payloads = [isa.load_word(n, word) for n, word in enumerate(assemble(text + drain + END))]
        start = len(assemble(text))
        payloads += [isa.set_base(0, 256), isa.set_dimension(0, 0, 1, 256)]
        payloads += [
            isa.set_base(1, OUT),
            isa.set_dimension(1, 0, 32, 256),
            isa.set_base(2, 0),
            isa.set_dimension(2, 0, 1, 8),
        ]
        payloads += [isa.run(0)] + [isa.run(start)] * rounds
        # long after the last exchange: a kernel that waits, then drains the upper half to memory
        wait = "S2 = 4000; VLOOP S2, 1\nVBAR\nVDRAIN A1, L1 256"
        payloads += [isa.load_word(300 + n, word) for n, word in enumerate(assemble(wait + END))] + [isa.run(300)]
        head = message.encode("CU_INST", dst=place, src=CTRL)
        programs[side] = [head | payload for payload in payloads]
    final = len(programs[0]) - 1
    for span in (slice(0, final), slice(final, None)):
        for side in range(2):
            for flit in programs[side][span]:
                net.shells[side].take(Flit(flit))
    for side in range(2):
        (Path.cwd() / f"inst{side}.hex").write_text("".join(f"{f:072x}\n" for f in programs[side]))
    dut.n_inst.value = final + 1
    dut.seed.value = seed()
    dut.cfg_busy.value = 40
    dut.load.value = dut.go.value = dut.stop.value = 0
    await clocks.reset(dut, 8)
    dut.load.value = 1
    await clocks.cycles(2)
    dut.go.value = 1
    end = RisingEdge(dut.finished)
    got = await First(end, Timer(1_000_000 * clocks.PERIOD_NS, unit="ns"))
    dut.stop.value = 1
    await clocks.cycles(2)
    checks.true("no deadlock", got is end)
    out: list[list[int]] = [[], []]
    for line in (Path.cwd() / "trace.txt").read_text().splitlines():
        side, _, flit = line.split()
        out[int(side)].append(int(flit, 16))
    for side in range(2):
        results = [f for f in out[side] if f >> 268 & 15 == 6 and f >> 248 & 255 != Signal.DATA_RECEIVED]
        wanted = [f for f in net.signals[side] if f >> 248 & 255 != Signal.DATA_RECEIVED]
        hide = ~(0xFFFFFFFF << 216)  # cycle counts
        sequence(f"completion of {side}", [f & hide for f in results], [f & hide for f in wanted])
        received = [f for f in out[side] if f >> 268 & 15 == 6 and f >> 248 & 255 == Signal.DATA_RECEIVED]
        checks.equal(f"acknowledgements of {side}", len(received), rounds + 1)
        sequence(f"peer flit of {side}", [f for f in out[side] if f >> 268 & 15 == 8], net.data[side])
        writes = [f for f in out[side] if f >> 268 & 15 in (1, 4)]
        sequence(f"write of {side}", writes, net.writes[side])
        checks.equal(f"words written by {side}", sum(f >> 268 & 15 == 4 for f in writes), 256)

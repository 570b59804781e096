# SPDX-License-Identifier: Apache-2.0
"""A driver transport inside a running bench: the driver's thread, the simulator's events."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from cocotb.task import bridge, resume
from cocotb.triggers import First, RisingEdge, Timer

from kohakubench import clocks
from kohakubench.dram import Dram
from kohakubench.host import Host
from kohakubench.machines import DRAM_WORDS
from kohakubench.taps import read_tap
from kohakubench.window import Window
from kohakudriver.generated import ADDR_W, ADDRESS_MAP
from kohakudriver.memory import HostWindow

T = TypeVar("T")

STAGING = ADDRESS_MAP["staging"][0]
_INSIDE = (1 << ADDR_W) - 1


class InSim:
    """Implements the driver's transport on the handles of a machine bench.

    DRAM is reached by the back door, the staging store by the memory window. Its methods are called from the thread
    that :func:`drive` starts.
    """

    def __init__(self, dut: Any, description: dict[str, Any]) -> None:
        self.dut = dut
        self.description = description
        self.host = Host(dut.u_host)
        self.dram = Dram(dut.u_dram, words=DRAM_WORDS)
        self._signals: list[int] = []
        self._dir = Path(os.environ["KOHAKU_RUN_DIR"])
        self.write64 = resume(self._write64)
        self.read64 = resume(self._read64)
        self._load, self._fetch = resume(self.dram.load), resume(self.dram.read)
        if hasattr(dut, "u_window"):  # not every top has the memory window
            window = Window(dut.u_window)
            self._play_write, self._play_read = resume(window.write), resume(window.read)
        self.wait_done = resume(self._wait_done)
        self.signals = resume(self._signals_async)
        self.taps = resume(self._taps)

    async def _write64(self, writes: Sequence[tuple[int, int]]) -> None:
        if writes:
            await self.host.write(writes)

    async def _read64(self, addresses: Sequence[int]) -> list[int]:
        return await self.host.read(addresses)

    def mem_write(self, address: int, data: bytes) -> None:
        """Whole words to a 40-bit address."""
        if address >= STAGING:
            HostWindow(self).write(address, data)
        else:
            self._load(address, data)

    def mem_read(self, address: int, n: int) -> bytes:
        """Whole words from a 40-bit address."""
        return HostWindow(self).read(address, n) if address >= STAGING else bytes(self._fetch(address, n))

    def window_write(self, address: int, data: bytes, strobe: bytes | None = None) -> int:
        """One burst at a host address: the AXI response."""
        return int(self._play_write(address & _INSIDE, data, strobe))

    def window_read(self, address: int, n: int) -> tuple[bytes, int]:
        """One read burst at a host address: (bytes, AXI response)."""
        data, response = self._play_read(address & _INSIDE, n)
        return data, int(response)

    async def _wait_done(self, limit: int, progress: Callable[[int], None] | None = None) -> bool:
        if not int(self.dut.irq.value):
            await First(RisingEdge(self.dut.irq), Timer(limit * clocks.PERIOD_NS, unit="ns"))
        return bool(int(self.dut.irq.value))

    async def _dump(self) -> None:
        self.dut.tap_dump.value = 1
        await Timer(1, unit="ps")
        self.dut.tap_dump.value = 0
        await Timer(1, unit="ps")

    async def _taps(self, names: Sequence[str] | None = None) -> dict[str, list[tuple[int, int]]]:
        from kohakubench.machine_top import tap_names
        from kohakutpu.mesh import find

        await self._dump()
        out = {}
        for name in names or tap_names(find(self.description["name"])):
            count = int(getattr(self.dut, f"t_{name}").count.value)
            out[name] = [(c, int(f, 16)) for c, f in read_tap(self._dir / f"tap_{name}.hex", count)]
        return out

    async def _signals_async(self) -> list[int]:
        await self._dump()
        count = int(self.dut.t_signals.count.value)
        fresh = count - len(self._signals)
        if fresh:
            kept = read_tap(self._dir / "tap_signals.hex", count)
            if fresh > len(kept):
                raise RuntimeError(f"{fresh} signals since the last look, the tap keeps {len(kept)}")
            self._signals += [int(f, 16) for _, f in kept[len(kept) - fresh :]]
        return self._signals

    def reset(self) -> None:
        """A bench resets by itself, between its tests."""

    def close(self) -> None:
        """The bench owns the simulator."""


def description_of(machine: str) -> dict[str, Any]:
    """Machine description of the model that runs."""
    path = Path(os.environ["KOHAKU_MODEL_DIR"]) / "machine" / f"{machine}.machine.json"
    text: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return text


async def start(dut: Any, machine: str, **dram: int) -> InSim:
    """Clock, reset, idle endpoints, memory behaviour; the machine is ready afterwards."""
    clocks.start(dut.clk)
    dut.tap_dump.value = 0
    dut.mark_clear.value = 0
    dut.run_ahead.value = 0
    sim = InSim(dut, description_of(machine))
    sim.dram.configure(**dram)
    await clocks.reset(dut)
    await clocks.cycles(320)
    sim._signals = []
    await sim._signals_async()
    return sim


async def drive(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run blocking driver code in a thread while the simulator serves its requests."""
    return await bridge(function)(*args, **kwargs)

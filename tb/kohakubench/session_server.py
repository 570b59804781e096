# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator: serves one client until it says goodbye.

The simulation stands still while it waits for a request, so the same requests always
meet the same cycles. While a round runs, Python wakes on the engine's interrupt or on the
next progress tick only.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import First, RisingEdge, Timer

from kohakubench import clocks, wire
from kohakubench.dram import Dram
from kohakubench.host import Host, HostError
from kohakubench.taps import read_tap
from kohakubench.window import Window, WindowError

TICK_CYCLES = 100_000


class Server:
    """Requests by name; each returns (head, blob)."""

    def __init__(self, dut: Any, sock: socket.socket) -> None:
        self.dut = dut
        self.sock = sock
        self.host = Host(dut.u_host)
        self.dram = Dram(dut.u_dram, words=int(os.environ["KOHAKU_DRAM_WORDS"]))
        self.run_dir = Path(os.environ["KOHAKU_RUN_DIR"])
        self.run_ahead = os.environ.get("KOHAKU_WAVES") != "1"  # waves need every step

    async def reset(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        await clocks.reset(self.dut)
        await clocks.cycles(320)  # the orchestrator clears its mirror
        return {"cycle": int(self.dut.cycle.value)}, b""

    async def configure(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        self.dram.configure(**head["dram"])
        await Timer(1, unit="ps")
        return {}, b""

    async def write(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        await self.host.write([(a, d) for a, d in head["writes"]])
        return {}, b""

    async def read(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        return {"values": await self.host.read(head["addresses"])}, b""

    async def mem_write(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        await self.dram.load(head["address"], blob)
        return {}, b""

    async def mem_read(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        return {}, await self.dram.read(head["address"], head["n"])

    def _window(self) -> Window:
        if not hasattr(self.dut, "u_window"):
            raise ValueError("this machine's top has no memory window")
        return Window(self.dut.u_window)

    async def window_write(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        data, strobe = (blob[: len(blob) // 2], blob[len(blob) // 2 :]) if head["strobed"] else (blob, None)
        return {"response": await self._window().write(head["address"], data, strobe)}, b""

    async def window_read(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        data, response = await self._window().read(head["address"], head["n"])
        return {"response": response}, data

    async def wait(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        """Let the machine run until the engine's interrupt or ``limit`` cycles."""
        start = int(self.dut.cycle.value)
        while not int(self.dut.irq.value):
            passed = int(self.dut.cycle.value) - start
            if passed >= head["limit"]:
                return {"done": False, "cycle": start + passed}, b""
            tick = min(TICK_CYCLES, head["limit"] - passed)
            if self.run_ahead:
                self.dut.run_ahead.value = tick
            await First(RisingEdge(self.dut.irq), Timer(tick * clocks.PERIOD_NS, unit="ns"))
            if head.get("progress"):
                wire.send(self.sock, {"progress": int(self.dut.cycle.value) - start})
        return {"done": True, "cycle": int(self.dut.cycle.value)}, b""

    async def cycles(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        await clocks.cycles(head["n"])
        return {"cycle": int(self.dut.cycle.value)}, b""

    async def marks(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        """Cycle of the first kick since the last call and of the last completion."""
        names = ("cycle", "first_kick", "last_signal")
        values = {n: int(getattr(self.dut, n).value) for n in names}
        self.dut.mark_clear.value = 1
        await clocks.cycles(2)
        self.dut.mark_clear.value = 0
        return values, b""

    async def taps(self, head: dict[str, Any], blob: bytes) -> tuple[dict[str, Any], bytes]:
        self.dut.tap_dump.value = 1
        await Timer(1, unit="ps")
        self.dut.tap_dump.value = 0
        await Timer(1, unit="ps")
        out, counts = {}, {}
        for name in head["names"]:
            counts[name] = int(getattr(self.dut, f"t_{name}").count.value)
            out[name] = read_tap(self.run_dir / f"tap_{name}.hex", counts[name])
        return {"taps": out, "counts": counts}, b""

    async def serve(self) -> None:
        """Answer requests until ``close`` or the client is gone."""
        while True:
            try:
                head, blob = wire.receive(self.sock)
            except ConnectionError:
                return
            if head["op"] == "close":
                wire.send(self.sock, {"ok": True})
                return
            try:
                reply, data = await getattr(self, head["op"])(head, blob)
                wire.send(self.sock, {"ok": True, **reply}, data)
            except (HostError, WindowError, ValueError, TimeoutError) as err:
                wire.send(self.sock, {"ok": False, "error": f"{type(err).__name__}: {err}"})


@cocotb.test()
async def session(dut: Any) -> None:
    """Connect to the client that started this simulator and serve it."""
    clocks.start(dut.clk, limit=1 << 48)
    dut.tap_dump.value = 0
    dut.mark_clear.value = 0
    dut.run_ahead.value = 0
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(os.environ["KOHAKU_SOCKET"])
    server = Server(dut, sock)
    await server.reset({}, b"")
    wire.send(sock, {"ok": True, "hello": "kohakutpu-session"})
    await server.serve()
    sock.close()

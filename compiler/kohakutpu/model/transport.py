# SPDX-License-Identifier: Apache-2.0
"""The reference model as a machine a driver can run programs on.

It has the shape of a driver's transport without importing the driver: registers, memory
and "run until the engine is done", which on a machine without time is always already true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kohakutpu.isa import generated as g
from kohakutpu.model.description import MachineDescription
from kohakutpu.model.engine import Resp
from kohakutpu.model.machine import Machine
from kohakutpu.model.messages import Flit

LAYER = "L0"


class ModelError(RuntimeError):
    """A register access the machine answers with an error; names address and response."""


class _Recorded(Machine):
    """Keeps every signal that reaches the orchestrator, as the tap of a simulation does."""

    def __init__(self, spec: MachineDescription) -> None:
        self.signals: list[int] = []
        super().__init__(spec)

    def deliver(self, value: int) -> None:
        flit = Flit(value)
        if flit.type == g.MessageType.CU_SIGNAL and self.exit_of(flit.dst) == self.spec.orch:
            self.signals.append(value)
        super().deliver(value)


class ModelTransport:
    """Registers and memory of a model machine.

    Args:
        description: content of the machine's ``<name>.machine.json``.
    """

    def __init__(self, description: dict[str, Any]) -> None:
        self.description = description
        self.machine = _Recorded(MachineDescription.from_dict(description))

    def write64(self, writes: Sequence[tuple[int, int]]) -> None:
        """Write control registers in order.

        Raises:
            ModelError: an answer other than OKAY.
        """
        for address, value in writes:
            response = self.machine.host_write(address, value)
            if response != Resp.OKAY:
                raise ModelError(f"write of {value:#x} to {address:#x} was answered with {response.name}")

    def read64(self, addresses: Sequence[int]) -> list[int]:
        """Read control registers in order.

        Raises:
            ModelError: an answer other than OKAY.
        """
        out = []
        for address in addresses:
            value, response = self.machine.host_read(address)
            if response != Resp.OKAY:
                raise ModelError(f"read of {address:#x} was answered with {response.name}")
            out.append(value)
        return out

    def mem_write(self, address: int, data: bytes) -> None:
        """Store bytes, counting nothing."""
        self.machine.write_mem(address, data)

    def mem_read(self, address: int, n: int) -> bytes:
        """Read bytes, counting nothing."""
        return self.machine.read_mem(address, n)

    def window_write(self, address: int, data: bytes, strobe: bytes | None = None) -> int:
        """One burst of the memory window at a host address: the AXI response."""
        return int(self.machine.mem_window_write(address, data, strobe))

    def window_read(self, address: int, n: int) -> tuple[bytes, int]:
        """One read burst of the memory window at a host address: (bytes, AXI response)."""
        data, response = self.machine.mem_window_read(address, n)
        return data, int(response)

    def wait_done(self, limit: int, progress: Callable[[int], None] | None = None) -> bool:
        """The engine has run to its end inside the write of GO."""
        return True

    def signals(self) -> list[int]:
        """Every CU_SIGNAL flit the orchestrator has taken, oldest first."""
        return self.machine.signals

    def reset(self) -> None:
        """A machine just after reset; memory keeps its contents."""
        before = self.machine
        self.machine = _Recorded(before.spec)
        self.machine.agent.dram, self.machine.agent.stage = before.agent.dram, before.agent.stage
        for node, adapter in before.adapters.items():
            self.machine.adapters[node].store = adapter.store

    def close(self) -> None:
        """Nothing to release."""

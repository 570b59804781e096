# SPDX-License-Identifier: Apache-2.0
"""The driver: runs artifacts on a machine behind a transport.

It never imports the compiler; the two meet in :mod:`kohakuabi`.
"""

from kohakudriver.device import Device
from kohakudriver.errors import DriverError
from kohakudriver.result import (
    Disassembler,
    Fault,
    Faulted,
    NodeResult,
    RoundResult,
    RunResult,
    Signal,
    fault_text,
)
from kohakudriver.transport import MemoryWindow, Transport

LAYER = "L0"

__all__ = [
    "Device",
    "Disassembler",
    "DriverError",
    "Fault",
    "Faulted",
    "MemoryWindow",
    "NodeResult",
    "RoundResult",
    "RunResult",
    "Signal",
    "Transport",
    "fault_text",
]

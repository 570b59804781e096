# SPDX-License-Identifier: Apache-2.0
"""The driver: runs artifacts on a machine behind a transport.

It never imports the compiler; the two meet in :mod:`kohakuabi`.
"""

from kohakudriver.device import Device, DriverError
from kohakudriver.result import Fault, NodeResult, RoundResult, RunResult, Signal, fault_text
from kohakudriver.transport import Transport

LAYER = "L0"

__all__ = [
    "Device",
    "DriverError",
    "Fault",
    "NodeResult",
    "RoundResult",
    "RunResult",
    "Signal",
    "Transport",
    "fault_text",
]

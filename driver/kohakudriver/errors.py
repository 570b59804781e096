# SPDX-License-Identifier: Apache-2.0
"""Errors of the driver."""

LAYER = "L0"


class DriverError(RuntimeError):
    """The machine and the program do not fit, or the machine does not answer."""

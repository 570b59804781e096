# SPDX-License-Identifier: Apache-2.0
"""AXI4 port lists of a machine's top: names, widths and directions in one place."""

from __future__ import annotations

from dataclasses import dataclass

LAYER = "L0"

_CHANNELS = {
    "aw": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos", "region", "valid"),
    "w": ("data", "strb", "last", "valid"),
    "b": ("id", "resp", "valid"),
    "ar": ("id", "addr", "len", "size", "burst", "lock", "cache", "prot", "qos", "region", "valid"),
    "r": ("id", "data", "resp", "last", "valid"),
}
_FULL_ONLY = ("lock", "cache", "prot", "qos", "region")


@dataclass(frozen=True)
class Signal:
    """One signal; ``forward`` is True if the master drives it."""

    name: str
    width: int
    forward: bool


def signals(addr: int, data: int, *, full: bool) -> list[Signal]:
    """Signals of one AXI4 interface.

    Args:
        addr: address width in bits.
        data: data width in bits.
        full: with lock, cache, prot, qos and region.
    """
    width = {
        "id": 4,
        "addr": addr,
        "len": 8,
        "size": 3,
        "burst": 2,
        "cache": 4,
        "prot": 3,
        "qos": 4,
        "region": 4,
        "data": data,
        "strb": data // 8,
        "resp": 2,
    }
    found = []
    for channel, names in _CHANNELS.items():
        forward = channel not in ("b", "r")
        for name in names:
            if full or name not in _FULL_ONLY:
                found.append(Signal(channel + name, width.get(name, 1), forward))
        found.append(Signal(channel + "ready", 1, not forward))
    return found


DRAM = signals(40, 256, full=True)
HOST = signals(32, 64, full=False)
WINDOW = signals(40, 256, full=False)
CONTROL = signals(16, 64, full=False)

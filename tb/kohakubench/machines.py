# SPDX-License-Identifier: Apache-2.0
"""Benches of whole machines share their sources and visible signals."""

from __future__ import annotations

from typing import Any

from kohakubench.bench import Bench
from kohakubench.dram import DRAM_PUBLIC
from kohakubench.host import HOST_PUBLIC
from kohakubench.taps import TAP_PUBLIC
from kohakubench.window import WINDOW_PUBLIC

DRAM_WORDS = 1 << 19
"""Words of the DRAM model behind a machine bench (16 MiB)."""

SOURCES = [
    "rtl/common/*.v",
    "rtl/noc/*.v",
    "rtl/control/*.v",
    "rtl/memory/*.v",
    "rtl/matmul/*.v",
    "rtl/vector/*.v",
    "tb/hdl/axi_dram_model.v",
    "tb/hdl/host_player.v",
    "tb/hdl/window_player.v",
    "tb/hdl/flit_tap.v",
    "tb/hdl/flit_port.v",
]
CHECKERS = ["rtl/noc/*_sva.sv"]
PORT_PUBLIC = [f"flit_port.{n}" for n in ("tx_flit", "tx_req", "tx_ack", "rx_count", "ring", "busy_pct")]
PUBLIC = [*DRAM_PUBLIC, *HOST_PUBLIC, *WINDOW_PUBLIC, *TAP_PUBLIC, *PORT_PUBLIC]


def machine_bench(name: str, machine: str, *, checked: bool = True, **options: Any) -> Bench:
    """A bench of the generated machine ``machine``.

    Args:
        machine: name of a picture below ``spec/machines``; a caller with a picture file of its own states ``top``.
        checked: a link checker on every link; off for speed measurements and live sessions.
        options: further fields of :class:`Bench`.
    """
    return Bench(
        name=name,
        top=f"tb_{machine}",
        sources=SOURCES + (CHECKERS if checked else []),
        tier="system",
        machine=machine,
        checked=checked,
        public=PUBLIC,
        dram={"WORDS": DRAM_WORDS, **options.pop("dram", {})},
        **options,
    )

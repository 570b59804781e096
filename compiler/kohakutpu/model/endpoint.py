# SPDX-License-Identifier: Apache-2.0
"""External endpoint: a bench's own unit or controller, recording all it is sent.

It receives CU_DATA bursts by the common rules (docs/spec/fabric.md 1.7) and acknowledges them, so node drains
can be modelled without the unit that would consume them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import MessageType, RejectReason
from kohakutpu.model.cud_rx import CudRx
from kohakutpu.model.description import Node
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.shell import Network

LAYER = "L0"


class ExternalEndpoint:
    """Endpoint at `pos` with buffers `{buf_id: granules}`.

    `buffers[buf]` is uint8 (granules, 32); `writes` lists (buf, granule, words) in arrival order;
    `bursts` the bursts that came whole; `flits` every flit that is no CU_DATA for it; `acks` the
    DATA_RECEIVED arguments sent; `reasons` one reason per burst.
    """

    def __init__(self, pos: Node, net: Network, buffers: Mapping[int, int]) -> None:
        self.pos = pos
        self.buffers = {b: np.zeros((n, g.GRANULE_BYTES), dtype=np.uint8) for b, n in buffers.items()}
        self.writes: list[tuple[int, int, U8]] = []
        self.bursts: list[DataBurst] = []
        self.flits: list[Flit] = []
        self.acks: list[int] = []
        self.reasons: list[RejectReason] = []
        self._net = net
        self._rx = CudRx(pos, self)

    def take(self, flit: Flit) -> None:
        """One flit from the mesh."""
        if flit.type == MessageType.CU_DATA and flit.dst == self.pos:
            self._rx.take(flit)
        else:
            self.flits.append(flit)

    def take_burst(self, burst: DataBurst) -> None:
        """A whole burst from the mesh."""
        if burst.dst == self.pos:
            self.bursts.append(burst)
            self._rx.take_burst(burst)
        else:
            self.flits.extend(map(Flit, burst.flits()))

    def accept(self, buf: int, offset: int, n: int) -> RejectReason:
        """Known buffer, inside its capacity."""
        if buf not in self.buffers:
            return RejectReason.UNKNOWN_BUF
        return RejectReason.RANGE if offset + n > len(self.buffers[buf]) else RejectReason.NONE

    def store(self, buf: int, granule: int, words: U8) -> None:
        """Keep words of an accepted burst."""
        self.buffers[buf][granule : granule + len(words)] = words
        self.writes.append((buf, granule, words))

    def burst_end(self, reason: RejectReason) -> None:
        """Note how a burst ended."""
        self.reasons.append(reason)

    def third_sender(self) -> None:
        """A third concurrent sender leaves no trace but its missing acknowledgement."""

    def acknowledge(self, flit: int) -> None:
        """Send DATA_RECEIVED."""
        self.acks.append(codec("CU_SIGNAL").get(Flit(flit).payload, "arg"))
        self._net.observe(self.pos, Flit(flit))
        self._net.deliver(flit)

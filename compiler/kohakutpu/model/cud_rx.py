# SPDX-License-Identifier: Apache-2.0
"""Receive framing of unit-to-unit bursts (docs/spec/fabric.md 1.7 and 5.8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kohakutpu.isa import message
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import RejectReason, Signal
from kohakutpu.model.description import Node
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"


class BurstSink(Protocol):
    """The unit behind the framing."""

    def accept(self, buf: int, offset: int, n: int) -> RejectReason:
        """Reason of a burst of n granules, NONE to accept it."""

    def store(self, buf: int, granule: int, words: U8) -> None:
        """Store words (k, 32) of the open burst from `granule` on."""

    def burst_end(self, reason: RejectReason) -> None:
        """The open burst, or a second sender's, has ended."""

    def third_sender(self) -> None:
        """A flit of a third concurrent source was discarded."""

    def acknowledge(self, flit: int) -> None:
        """Send a DATA_RECEIVED flit."""


@dataclass
class _Burst:
    src: Node
    txn: int
    buf: int
    next: int
    left: int
    signal: bool
    ack: Node
    reason: RejectReason = RejectReason.NONE


class CudRx:
    """One open burst, one tracker for a second sender. `pos` is the unit's coordinate."""

    def __init__(self, pos: Node, sink: BurstSink) -> None:
        self.pos = pos
        self._sink = sink
        self._open: _Burst | None = None
        self._second: _Burst | None = None

    @property
    def open(self) -> bool:
        """True while a burst is open."""
        return self._open is not None

    def take(self, flit: Flit) -> None:
        """One CU_DATA flit."""
        if self._second is not None and flit.src == self._second.src:
            self._second.left -= 1
            if self._second.left == 0:
                ended, self._second = self._second, None
                self._end(ended)
        elif self._open is None:
            self._start(_descriptor(flit))
        elif flit.src == self._open.src:
            self._data(flit.word[None], bool(flit.last))
        elif self._second is None:
            self._second = _descriptor(flit)
            self._second.reason = RejectReason.SECOND_SENDER
        else:
            self._sink.third_sender()

    def take_burst(self, burst: DataBurst) -> None:
        """A whole well-framed burst; flit by flit while another burst is in progress."""
        if self._open is not None or self._second is not None:
            for value in burst.flits():
                self.take(Flit(value))
            return
        ack = burst.ack if burst.ack != (0, 0) else burst.src
        n = len(burst.words)
        self._start(_Burst(burst.src, burst.txn, burst.buf, burst.offset, n, bool(burst.flags & 1), ack))
        self._data(burst.words, True)

    def _start(self, burst: _Burst) -> None:
        burst.reason = self._sink.accept(burst.buf, burst.next, burst.left)
        self._open = burst

    def _data(self, words: U8, last: bool) -> None:
        """Data of the open burst; `last` is the marker of the final word of `words`."""
        burst = self._open
        assert burst is not None
        if burst.reason == RejectReason.NONE:
            self._sink.store(burst.buf, burst.next, words)
        burst.next += len(words)
        burst.left -= len(words)
        # a word is stored before its marker is judged: "store it; count down; if last disagrees ..."
        if last != (burst.left == 0) and burst.reason == RejectReason.NONE:
            burst.reason = RejectReason.LAST_MISMATCH
        if burst.left == 0:
            self._open = None
            self._end(burst)

    def _end(self, burst: _Burst) -> None:
        self._sink.burst_end(burst.reason)
        if burst.signal:
            self._sink.acknowledge(
                message.encode(
                    "CU_SIGNAL",
                    dst=burst.ack,
                    src=self.pos,
                    txn=burst.txn,
                    code=Signal.DATA_RECEIVED,
                    arg=data_arg(burst.buf, burst.reason),
                )
            )


def _descriptor(flit: Flit) -> _Burst:
    f = codec("CU_DATA_DESC").decode(flit.payload)
    ack = (f["ack_x"], f["ack_y"])
    target = ack if ack != (0, 0) else flit.src
    return _Burst(flit.src, flit.txn, f["buf_id"], f["offset"], f["len"] + 1, bool(f["flags"] & 1), target)


def data_arg(buf: int, reason: RejectReason) -> int:
    """Argument of DATA_RECEIVED (DATA_ARG of docs/spec/fabric.md 1.6)."""
    return buf | (1 << 31 | reason << 24 if reason else 0)

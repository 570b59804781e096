# SPDX-License-Identifier: Apache-2.0
"""Reference of burst reception, written from docs/spec/fabric.md 1.7 and 5.8.

:class:`Receiver` takes one flit at a time and says what becomes of it; time enters only
through the moment of an abort. :func:`replay` compares a log of ``tb_cud_rx`` with it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kohakubench.shell_model import CU_DATA, DATA_RECEIVED, Head, MismatchError, Node, flit, signal

UNKNOWN_BUF, RANGE, ODD_START, SECOND_SENDER, LAST_MISMATCH, NOT_READY = range(1, 7)


def descriptor(
    dst: Node,
    src: Node,
    *,
    buf: int,
    offset: int,
    count: int,
    want: int = 1,
    ack: Node = (0, 0),
    txn: int = 0,
) -> int:
    """Descriptor flit of a burst of ``count`` granules."""
    p = buf << 248 | offset << 232 | (count - 1) << 224 | want << 216 | ack[1] << 212 | ack[0] << 208
    return flit(dst, src, CU_DATA, txn, 0, 0, p)


def burst(
    dst: Node, src: Node, words: list[int], *, wrong: int | None = None, **desc: int | Node
) -> list[int]:
    """A whole burst. ``wrong`` = i inverts ``last`` of data flit i."""
    n, txn = len(words), desc.get("txn", 0)
    first = descriptor(dst, src, count=n, **{"buf": 0, "offset": 0, **desc})  # type: ignore[arg-type]
    assert isinstance(txn, int)
    return [
        first,
        *(flit(dst, src, CU_DATA, txn, int(k == n - 1) ^ int(k == wrong), 0, w) for k, w in enumerate(words)),
    ]


@dataclass
class Burst:
    """A burst under way."""

    src: Node
    txn: int
    buf: int
    granule: int
    left: int  # data flits to come
    want: int
    ack: Node
    reason: int

    def answer(self, own: Node) -> int:
        """Its DATA_RECEIVED flit."""
        arg = int(self.reason != 0) << 31 | self.reason << 24 | self.buf
        return signal(self.ack, own, self.txn, DATA_RECEIVED, arg)


@dataclass
class Effect:
    """What one flit does. ``store`` is (buf, granule, data, last by count)."""

    store: tuple[int, int, int, int] | None = None
    opened: bool = False
    third: bool = False
    ended: Burst | None = None
    tracked: bool = False


class Receiver:
    """Receive framing of one endpoint.

    Args:
        own: coordinate, for the signals.
        rule: the unit's answer to (buf, offset, len field): 0 or a reject reason.
        ackq_depth: signals queued.
    """

    def __init__(self, own: Node, rule: Callable[[int, int, int], int], ackq_depth: int) -> None:
        self.own, self.rule, self.depth = own, rule, ackq_depth
        self.open: Burst | None = None
        self.second: Burst | None = None
        self.signals: deque[int] = deque()

    def _describe(self, word: int, h: Head) -> Burst:
        named = (word >> 208 & 15, word >> 212 & 15)
        return Burst(
            h.src,
            h.txn,
            word >> 248 & 255,
            word >> 232 & 0xFFFF,
            (word >> 224 & 255) + 1,
            word >> 216 & 1,
            named if named != (0, 0) else h.src,
            0,
        )

    def ends(self, word: int) -> Burst | None:
        """The burst whose final flit ``word`` would be."""
        src = Head.of(word).src
        for b in (self.open, self.second):
            if b is not None and b.src == src:
                return b if b.left == 1 else None
        return None

    def held(self, word: int) -> bool:
        """A burst end that finds the acknowledgement queue full waits."""
        b = self.ends(word)
        return b is not None and bool(b.want) and len(self.signals) == self.depth

    def stores(self, word: int, abort: bool) -> bool:
        """Whether ``word`` is a granule of the accepted open burst."""
        b = self.open
        return b is not None and b.src == Head.of(word).src and not b.reason and not abort

    def abort(self) -> None:
        """The unit gives up the open burst."""
        if self.open is not None and not self.open.reason:
            self.open.reason = NOT_READY

    def take(self, word: int) -> Effect:
        """Take one CU_DATA flit."""
        h, e = Head.of(word), Effect()
        if self.open is not None and h.src == self.open.src:
            b = self.open
            if not b.reason:
                e.store = (b.buf, b.granule, word & (2**256 - 1), int(b.left == 1))
                if h.last != (b.left == 1):
                    b.reason = LAST_MISMATCH
            b.granule += 1
            b.left -= 1
            if not b.left:
                self.open, e.ended = None, b
        elif self.second is not None and h.src == self.second.src:
            self.second.left -= 1
            if not self.second.left:
                e.ended, e.tracked, self.second = self.second, True, None
        elif self.open is None:
            b = self._describe(word, h)
            b.reason = self.rule(b.buf, b.granule, b.left - 1)
            self.open, e.opened = b, True
        elif self.second is None:
            self.second = self._describe(word, h)
            self.second.reason = SECOND_SENDER
        else:
            e.third = True
        if e.ended is not None and e.ended.want:
            self.signals.append(e.ended.answer(self.own))
        return e


@dataclass
class Result:
    """What a log contained, after all of it agreed."""

    receiver: Receiver
    stores: list[tuple[int, int, int, int]]
    signals: list[int]
    third: int = 0
    rejected: int = 0
    held: int = 0
    cycles: int = 0


_NAMES = (
    "in_valid",
    "in_ready",
    "desc_valid",
    "wr_valid",
    "wr_ready",
    "wr_last",
    "sig_valid",
    "sig_ready",
    "open",
    "burst_end",
    "err1",
    "err0",
    "abort",
    "not_ready",
)


def replay(path: Path, own: Node, rule: Callable[[int, int, int, bool], int], ackq_depth: int) -> Result:
    """Check every line of the log.

    Raises:
        MismatchError: with the cycle and the port that differ.
    """
    ready = [True]
    rx = Receiver(own, lambda buf, off, length: rule(buf, off, length, ready[0]), ackq_depth)
    r = Result(rx, [], [])
    with path.open(encoding="ascii") as log:
        for line in log:
            cycle, levels, word, where, data, desc, sig = (
                int(x, 16 if k else 10) for k, x in enumerate(line.split())
            )
            seen = {n: levels >> (len(_NAMES) - 1 - k) & 1 for k, n in enumerate(_NAMES)}
            ready[0] = not seen["not_ready"]
            store = (where >> 16, where & 0xFFFF, data, seen["wr_last"])
            _line(r, seen, word, cycle, store=store, desc=desc, sig=sig)
            r.cycles += 1
    return r


def _line(
    r: Result,
    seen: dict[str, int],
    word: int,
    cycle: int,
    *,
    store: tuple[int, int, int, int],
    desc: int,
    sig: int,
) -> None:
    rx = r.receiver
    abort = bool(seen["abort"])
    expected = {"open": int(rx.open is not None), "sig_valid": int(bool(rx.signals))}
    offered = rx.signals[0] if rx.signals else None
    if abort:
        rx.abort()
    effect = Effect()
    if seen["in_valid"]:
        held, stores = rx.held(word), rx.stores(word, abort)
        r.held += held
        expected["wr_valid"] = int(stores and not held)
        expected["in_ready"] = int(not held and (not stores or seen["wr_ready"]))
        if expected["in_ready"]:
            effect = rx.take(word)
    else:
        expected["wr_valid"] = 0
    expected |= {
        "desc_valid": int(effect.opened),
        "burst_end": int(effect.ended is not None and not effect.tracked),
        "err1": int(effect.ended is not None and effect.ended.reason != 0),
        "err0": int(effect.third),
    }
    for name, value in expected.items():
        if seen[name] != value:
            raise MismatchError(f"cycle {cycle}: {name} is {seen[name]}, expected {value}; flit {word:072x}")
    if effect.store is not None:
        if store != effect.store:
            raise MismatchError(f"cycle {cycle}: stored {store}, expected {effect.store}")
        r.stores.append(store)
    if effect.opened and desc != (word >> 224 & 0xFFFFFFFF):
        raise MismatchError(f"cycle {cycle}: descriptor {desc:08x} of flit {word:072x}")
    r.third += effect.third
    r.rejected += expected["err1"]
    if offered is not None:
        if sig != offered:
            raise MismatchError(f"cycle {cycle}: signal {sig:072x}, expected {offered:072x}")
        if seen["sig_ready"]:
            r.signals.append(rx.signals.popleft())

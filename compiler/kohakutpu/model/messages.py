# SPDX-License-Identifier: Apache-2.0
"""Transactions between endpoints: what several flits say together, with the flits on demand.

Words travel as uint8 arrays of shape (n, 32), byte 0 first. `flits()` gives the 288-bit flits of
docs/spec/fabric.md section 1 as ints, in sending order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa import message
from kohakutpu.model.description import Node
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"

PAYLOAD_MASK = (1 << g.PAYLOAD_W) - 1


def word_to_int(word: U8) -> int:
    """32 bytes, lowest address first -> 256-bit int."""
    return int.from_bytes(word.tobytes(), "little")


def int_to_word(value: int) -> U8:
    """256-bit int -> uint8 (32,)."""
    return np.frombuffer((value & PAYLOAD_MASK).to_bytes(g.GRANULE_BYTES, "little"), dtype=np.uint8)


def bursts(form: str, n: int, gn: int = 0, pitch: int = 0) -> int:
    """Write descriptors, or CU_DATA bursts, of one cluster drain (docs/spec/cluster.md 5.7).

    form: "emit" (an emitting GEMM counts as n = gm*gn), "send" or "rowmajor". n: sub-tiles.
    gn, pitch: tile width in sub-tiles and row pitch in words, row-major only.
    Raises ValueError for another form.
    """
    if form == "emit":
        return -(-n // g.MG_WBURST)
    if form == "send":
        return -(-2 * n // g.MG_WBURST)
    if form == "rowmajor":
        if pitch == gn // 4:
            return -(-n // g.MG_WBURST)
        return 4 * (n // gn) * -(-gn // (4 * g.MG_WBURST))
    raise ValueError(f"bursts: form {form!r} is none of emit, send, rowmajor")


class Flit:
    """Header fields of one flit, decoded once. `value` is the 288-bit int."""

    def __init__(self, value: int) -> None:
        self.value = value
        self.dst: Node = ((value >> 284) & 15, (value >> 280) & 15)
        self.src: Node = ((value >> 276) & 15, (value >> 272) & 15)
        self.type = (value >> 268) & 15
        self.txn = (value >> 260) & 255
        self.last = (value >> 259) & 1
        self.rsvd = (value >> 256) & 7
        self.payload = value & PAYLOAD_MASK

    @cached_property
    def word(self) -> U8:
        """Payload as 32 bytes."""
        return int_to_word(self.payload)


@dataclass(frozen=True)
class WriteBurst:
    """MEM_WR_REQ with its data: words uint8 (1..8, 32) at the 40-bit byte address `addr`."""

    dst: Node
    src: Node
    txn: int
    addr: int
    words: U8

    def flits(self) -> Iterator[int]:
        """Descriptor, then data."""
        n = len(self.words)
        head = {"dst": self.dst, "src": self.src, "txn": self.txn}
        yield message.encode("MEM_WR_REQ", **head, addr=self.addr, len=n - 1)  # type: ignore[arg-type]
        base = message.encode("MEM_WR_DATA", **head)  # type: ignore[arg-type]
        final = message.encode("MEM_WR_DATA", **head, last=1)  # type: ignore[arg-type]
        for i, word in enumerate(self.words):
            yield (final if i == n - 1 else base) | word_to_int(word)


@dataclass(frozen=True)
class DataBurst:
    """A well-framed CU_DATA burst: words uint8 (1..256, 32) from granule `offset` of buffer `buf`."""

    dst: Node
    src: Node
    txn: int
    rsvd: int
    buf: int
    offset: int
    flags: int
    ack: Node
    words: U8

    def flits(self) -> Iterator[int]:
        """Descriptor, then data; `last` only on the final data flit."""
        n = len(self.words)

        def encode(name: str, last: int, **payload: int) -> int:
            return message.encode(
                name, dst=self.dst, src=self.src, txn=self.txn, rsvd=self.rsvd, last=last, **payload
            )

        yield encode(
            "CU_DATA_DESC",
            0,
            buf_id=self.buf,
            offset=self.offset,
            len=n - 1,
            flags=self.flags,
            ack_x=self.ack[0],
            ack_y=self.ack[1],
        )
        base, final = encode("CU_DATA_DATA", 0), encode("CU_DATA_DATA", 1)
        for i, word in enumerate(self.words):
            yield (final if i == n - 1 else base) | word_to_int(word)


@dataclass(frozen=True)
class ReadRequest:
    """A streaming MEM_RD_REQ of a unit: `count` entries of `entry_words` words from `addr`."""

    dst: Node
    src: Node
    txn: int
    addr: int
    count: int
    entry_words: int = g.MG_ENTRY_WORDS

    def flits(self) -> Iterator[int]:
        """The one request flit (docs/spec/cluster.md 3.3, docs/spec/vector.md 9.1)."""
        if self.entry_words == 1:
            run = {"flag_stream": 1, "count": self.count, "entry_words": 1} if self.count > 1 else {}
            yield message.encode(
                "MEM_RD_REQ", dst=self.dst, src=self.src, txn=self.txn, last=1, addr=self.addr, **run
            )
            return
        yield message.encode(
            "MEM_RD_REQ",
            dst=self.dst,
            src=self.src,
            txn=self.txn,
            addr=self.addr,
            len=g.MG_FILL_LEN,
            flags=g.MG_FILL_FLAGS,
            count=self.count,
        )

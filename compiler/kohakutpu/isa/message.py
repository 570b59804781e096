# SPDX-License-Identifier: Apache-2.0
"""Flits: header, message payloads, mailbox words (``docs/spec/fabric.md`` section 1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohakutpu.isa import cluster, vector
from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import EncodingError, codec
from kohakutpu.isa.faults import explain_signal

LAYER = "L0"

HEADER = codec("FLIT")

# message: type and the value of ``last`` a sender uses unless it says otherwise
MESSAGES: dict[str, tuple[g.MessageType, int]] = {
    "MEM_RD_REQ": (g.MessageType.MEM_RD_REQ, 1),
    "MEM_WR_REQ": (g.MessageType.MEM_WR_REQ, 0),
    "MEM_RD_RESP": (g.MessageType.MEM_RD_RESP, 0),
    "MEM_WR_ACK": (g.MessageType.MEM_WR_ACK, 1),
    "MEM_WR_DATA": (g.MessageType.MEM_WR_DATA, 0),
    "CU_INST": (g.MessageType.CU_INST, 0),
    "CU_SIGNAL": (g.MessageType.CU_SIGNAL, 1),
    "CU_CTRL_REQ": (g.MessageType.CU_CTRL, 1),
    "CU_CTRL_RSP": (g.MessageType.CU_CTRL, 1),
    "CU_DATA_DESC": (g.MessageType.CU_DATA, 0),
    "CU_DATA_DATA": (g.MessageType.CU_DATA, 0),
}
_SHARED = (g.MessageType.CU_CTRL, g.MessageType.CU_DATA)
_BY_TYPE = {int(kind): name for name, (kind, _) in MESSAGES.items() if kind not in _SHARED}
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class Message:
    """A decoded flit; ``name`` is None for a type that no endpoint sends."""

    name: str | None
    header: dict[str, int]
    fields: dict[str, int]


def payload(name: str, **fields: int) -> int:
    """256-bit payload of message ``name``.

    Raises:
        EncodingError: unknown message or field, or a value out of range.
    """
    return codec(_known(name)).encode(**fields)


def encode(
    name: str,
    *,
    dst: tuple[int, int],
    src: tuple[int, int],
    txn: int = 0,
    last: int | None = None,
    rsvd: int = 0,
    **fields: int,
) -> int:
    """288-bit flit of message ``name``.

    Args:
        dst: destination (x, y).
        src: sender (x, y).
        txn: tag.
        last: end marker; None takes the usual value of the message.
        rsvd: the three reserved header bits.
        fields: payload fields.
    """
    kind, usual = MESSAGES[_known(name)]
    head = HEADER.encode(
        dst_x=dst[0],
        dst_y=dst[1],
        src_x=src[0],
        src_y=src[1],
        type=kind,
        txn=txn,
        last=usual if last is None else last,
        rsvd=rsvd,
    )
    return head | payload(name, **fields)


def classify(flit: int, *, data: bool = False) -> str | None:
    """Message name of ``flit``; ``data``: a ``CU_DATA`` burst is open, so the flit is no descriptor."""
    kind = HEADER.get(flit, "type")
    if kind == g.MessageType.CU_DATA:
        return "CU_DATA_DATA" if data else "CU_DATA_DESC"
    if kind == g.MessageType.CU_CTRL:
        op = codec("CU_CTRL_REQ").get(flit & ((1 << g.PAYLOAD_W) - 1), "op")
        return "CU_CTRL_RSP" if op in (g.CTRL_OP_RSP, g.CTRL_OP_REFUSED) else "CU_CTRL_REQ"
    return _BY_TYPE.get(kind)


def decode(flit: int, *, data: bool = False) -> Message:
    """Header and payload fields of ``flit``."""
    header = HEADER.decode(flit)
    body = header.pop("payload")
    name = classify(flit, data=data)
    return Message(name, header, codec(name).decode(body) if name else {})


def matches(flit: int, name: str, *, data: bool = False, **fields: int) -> bool:
    """True if ``flit`` is message ``name`` with the given fields and no reserved payload bit set."""
    if flit < 0 or flit >> g.FLIT_W or classify(flit, data=data) != name:
        return False
    body = codec(name)
    own = {key: value for key, value in fields.items() if key in body.fields}
    rest = {key: value for key, value in fields.items() if key not in own}
    return body.matches(flit & ((1 << g.PAYLOAD_W) - 1), **own) and HEADER.matches(flit, **rest)


def disasm(flit: int, *, data: bool = False, unit: int | None = None) -> str:
    """One line for a flit.

    Args:
        flit: 288 bits.
        data: a ``CU_DATA`` burst is open.
        unit: ``CU_TYPE`` of the unit an instruction goes to; without it the payload is shown as bits.
    """
    if flit < 0 or flit >> g.FLIT_W:
        return f".flit 0x{flit:x}"
    message = decode(flit, data=data)
    head = message.header
    route = f"({head['src_x']},{head['src_y']})->({head['dst_x']},{head['dst_y']})"
    marks = f"txn={head['txn']}" + (" last" if head["last"] else "")
    marks += f" rsvd={head['rsvd']}" if head["rsvd"] else ""
    body = flit & ((1 << g.PAYLOAD_W) - 1)
    if message.name is None:
        return f"{route} type={head['type']} {marks} .payload 0x{body:064x}"
    if message.name == "CU_INST" and unit == g.CU_TYPE_CLUSTER:
        text = f"CU_INST {cluster.disasm(body)}"
    elif message.name == "CU_INST" and unit == g.CU_TYPE_VECTOR:
        text = f"CU_INST {vector.disasm_envelope(body)}"
    elif message.name == "CU_SIGNAL":
        text = f"CU_SIGNAL {explain_signal(message.fields['code'], message.fields['arg'])}"
    else:
        text = codec(message.name).disasm(body)
    return f"{route} {marks} {text}"


def layout(name: str) -> str:
    """Table of the fields of a message payload, or of the header for ``FLIT``."""
    return HEADER.layout() if name == "FLIT" else codec(_known(name)).layout()


def to_words(flit: int) -> tuple[int, ...]:
    """The five 64-bit words of a mailbox or staging slot, low word first; word 4 is the header."""
    return tuple((flit >> 64 * index) & _WORD for index in range(g.FLIT_WORDS))


def from_words(words: Sequence[int]) -> int:
    """Flit of five 64-bit words; bits 63:32 of word 4 are ignored.

    Raises:
        EncodingError: not five words, or a word wider than 64 bits.
    """
    if len(words) != g.FLIT_WORDS or any(not 0 <= word <= _WORD for word in words):
        raise EncodingError(f"a flit is {g.FLIT_WORDS} words of 64 bits, got {list(words)}")
    flit = sum(word << 64 * index for index, word in enumerate(words))
    return flit & ((1 << g.FLIT_W) - 1)


def _known(name: str) -> str:
    if name not in MESSAGES:
        raise EncodingError(f"no message {name!r}; messages: {', '.join(MESSAGES)}")
    return name

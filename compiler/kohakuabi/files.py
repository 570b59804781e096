# SPDX-License-Identifier: Apache-2.0
"""The two file forms of an artifact: JSON, and a JSON header followed by raw bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kohakuabi.errors import ArtifactError
from kohakuabi.parts import Image, Output
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed, Step

LAYER = "leaf"

TAG = "kohakutpu-artifact"
VERSION = 1
MAGIC = b"KTPUART1"
PAYLOAD_BYTES = 32
_LENGTH = struct.Struct("<I")

T = TypeVar("T")
Json = dict[str, Any]


def to_json(head: Json, payloads: Sequence[int], images: Sequence[Image]) -> str:
    """JSON text; payloads and image bytes are hex strings."""
    whole = {
        "tag": TAG,
        "version": VERSION,
        **head,
        "payloads": [f"{p:064x}" for p in payloads],
        "images": [{"address": i.address, "name": i.name, "data": i.data.hex()} for i in images],
    }
    return json.dumps(whole, indent=1, sort_keys=True)


def to_bytes(head: Json, payloads: Sequence[int], images: Sequence[Image]) -> bytes:
    """Magic, header length, JSON header, payloads (little endian), image bytes."""
    whole = {
        "tag": TAG,
        "version": VERSION,
        **head,
        "n_payloads": len(payloads),
        "images": [{"address": i.address, "name": i.name, "nbytes": len(i.data)} for i in images],
    }
    header = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
    body = b"".join(p.to_bytes(PAYLOAD_BYTES, "little") for p in payloads)
    return MAGIC + _LENGTH.pack(len(header)) + header + body + b"".join(i.data for i in images)


def from_json(source: str) -> Json:
    """Fields of an artifact.

    Raises:
        ArtifactError: not JSON, another tag or version, a missing or malformed field.
    """
    head = _head(source)
    payloads = tuple(_each(head, "payloads", lambda p: int(p, 16)))
    images = tuple(
        _each(head, "images", lambda m: Image(int(m["address"]), bytes.fromhex(m["data"]), str(m["name"])))
    )
    return _fields(head, payloads, images)


def from_bytes(raw: bytes) -> Json:
    """Fields of an artifact.

    Raises:
        ArtifactError: another magic, tag or version, a cut file, a missing or malformed field.
    """
    if not raw.startswith(MAGIC):
        raise ArtifactError(f"not an artifact: starts with {raw[:8]!r}, expected {MAGIC!r}")
    at = len(MAGIC) + _LENGTH.size
    if len(raw) < at:
        raise ArtifactError(f"artifact is cut off: {len(raw)} bytes do not even hold the header length")
    (length,) = _LENGTH.unpack_from(raw, len(MAGIC))
    if len(raw) < at + length:
        raise ArtifactError(f"artifact is cut off: its header has {length} bytes, {len(raw) - at} are there")
    head = _head(text(raw[at : at + length]))
    at += length
    count = _field(head, "n_payloads", int)
    stated = _each(head, "images", lambda m: (int(m["address"]), int(m["nbytes"]), str(m["name"])))
    want = at + count * PAYLOAD_BYTES + sum(size for _, size, _ in stated)
    if want != len(raw) or min([count, *(size for _, size, _ in stated)]) < 0:
        raise ArtifactError(f"artifact holds {len(raw)} bytes, its header says {want}")
    payloads = []
    for _ in range(count):
        payloads.append(int.from_bytes(raw[at : at + PAYLOAD_BYTES], "little"))
        at += PAYLOAD_BYTES
    images = []
    for address, size, name in stated:
        images.append(Image(address, raw[at : at + size], name))
        at += size
    return _fields(head, tuple(payloads), tuple(images))


def text(raw: bytes) -> str:
    """UTF-8 text.

    Raises:
        ArtifactError: neither form of an artifact.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as err:
        raise ArtifactError(f"neither form of an artifact: {err}") from err


def output_to_json(o: Output) -> Json:
    """JSON form of a result region."""
    return {
        "name": o.name,
        "address": o.address,
        "nbytes": o.nbytes,
        "layout": o.layout,
        "shape": list(o.shape),
    }


def step_to_json(step: Step) -> list[Any]:
    """JSON form of a step: its name and its numbers."""
    match step:
        case Seed(n):
            return ["seed", n]
        case Kick(x, y, base, n):
            return ["kick", x, y, base, n]
        case Await(x, y, count):
            return ["await", x, y, count]
        case Move(writes):
            return ["move", [list(w) for w in writes]]
        case Barrier():
            return ["barrier"]


def _step(item: Any) -> Step:
    match item:
        case ["seed", int(n)]:
            return Seed(n)
        case ["kick", int(x), int(y), int(base), int(n)]:
            return Kick(x, y, base, n)
        case ["await", int(x), int(y), int(count)]:
            return Await(x, y, count)
        case ["move", list(writes)]:
            return Move(tuple((int(o), int(v)) for o, v in writes))
        case ["barrier"]:
            return Barrier()
    raise ValueError(f"{item!r} is not a step of version {VERSION}")


def _head(source: str) -> Json:
    try:
        head = json.loads(source)
    except ValueError as err:
        raise ArtifactError(f"not an artifact: {err}") from err
    tag = head.get("tag") if isinstance(head, dict) else type(head).__name__
    if tag != TAG:
        raise ArtifactError(f"artifact tag is {tag!r}, expected {TAG!r}")
    version = head.get("version")
    if version != VERSION:
        raise ArtifactError(
            f"artifact version {version!r} is unknown; this build reads {VERSION}, compile it again"
        )
    return dict(head)


def _fields(head: Json, payloads: tuple[int, ...], images: tuple[Image, ...]) -> Json:
    limits = _field(head, "limits", dict)
    return {
        "machine": _field(head, "machine", str),
        "machine_hash": _field(head, "machine_hash", str),
        "payloads": payloads,
        "images": images,
        "steps": tuple(_each(head, "steps", _step)),
        "outputs": tuple(_each(head, "outputs", _output)),
        "limits": {k: _field(limits, k, int) for k in limits},
        "meta": _field(head, "meta", dict),
    }


def _output(o: Json) -> Output:
    return Output(
        str(o["name"]),
        int(o["address"]),
        int(o["nbytes"]),
        str(o["layout"]),
        tuple(int(e) for e in o["shape"]),
    )


def _field(head: Json, name: str, kind: type[T]) -> T:
    value = head.get(name)
    if not isinstance(value, kind):
        raise ArtifactError(f"artifact field {name} is {type(value).__name__}, expected {kind.__name__}")
    return value


def _each(head: Json, name: str, make: Callable[[Any], T]) -> list[T]:
    out = []
    for i, item in enumerate(_field(head, name, list)):
        try:
            out.append(make(item))
        except (KeyError, TypeError, ValueError) as err:
            raise ArtifactError(
                f"artifact field {name}[{i}] is malformed: {type(err).__name__}: {err}"
            ) from err
    return out

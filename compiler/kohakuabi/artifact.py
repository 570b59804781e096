# SPDX-License-Identifier: Apache-2.0
"""The versioned program file (docs/spec/compiler.md 10.3).

Two forms with the same content: JSON (payloads and images as hex strings) and a binary
form (a JSON header followed by raw bytes). Loading refuses what must not run.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kohakuabi.errors import ArtifactError
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed, Step

LAYER = "leaf"

TAG = "kohakutpu-artifact"
VERSION = 1
MAGIC = b"KTPUART1"
PAYLOAD_BYTES = 32


@dataclass(frozen=True)
class Image:
    """Bytes placed in memory before the first round; ``address`` is 40 bits and global."""

    address: int
    data: bytes
    name: str = ""


@dataclass(frozen=True)
class Output:
    """A result region: where it is, and how its bytes are to be read."""

    name: str
    address: int
    nbytes: int
    layout: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Round:
    """One round: its steps without the barrier, and the payloads of its staging slots."""

    index: int
    steps: tuple[Step, ...]
    payloads: tuple[int, ...]


@dataclass(frozen=True)
class Artifact:
    """A program: payloads, images, steps and where its results are.

    Args:
        machine: name of the machine it was compiled for.
        machine_hash: digest of the MachineSpec.
        payloads: 256-bit instruction words. The slots of a round are consecutive here.
        images: memory contents before the first round.
        steps: rounds separated by :class:`Barrier`.
        outputs: result regions.
        limits: ``stage_flits``, ``ncmd`` and ``credit_max`` of the machine.
        meta: kernel, shapes, knobs, counters, notes; anything JSON can hold.
    """

    machine: str
    machine_hash: str
    payloads: tuple[int, ...]
    images: tuple[Image, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...] = ()
    limits: dict[str, int] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def rounds(self) -> Iterator[Round]:
        """The rounds in order.

        Slot s of a round is payload ``first + s``, where ``first`` counts the slots of all
        earlier rounds.
        """
        first = 0
        for index, steps in enumerate(self._split()):
            used = max((k.base + k.n for k in steps if isinstance(k, Kick)), default=0)
            yield Round(index, tuple(steps), self.payloads[first : first + used])
            first += used

    def _split(self) -> list[list[Step]]:
        groups: list[list[Step]] = [[]]
        for step in self.steps:
            if isinstance(step, Barrier):
                groups.append([])
            else:
                groups[-1].append(step)
        return [g for g in groups if g]

    def check(self, machine_hash: str | None = None) -> None:
        """Refuse what must not run.

        Raises:
            ArtifactError: naming the field, its value and the limit.
        """
        if machine_hash is not None and machine_hash != self.machine_hash:
            raise ArtifactError(
                f"artifact was compiled for machine {self.machine} ({self.machine_hash}), the target is "
                f"{machine_hash}; compile it again for this target"
            )
        for payload in self.payloads:
            if not 0 <= payload < 1 << 256:
                raise ArtifactError(f"payload {payload:#x} does not fit 256 bits")
        stage = self.limits.get("stage_flits", 128)
        total = 0
        awaited: set[tuple[int, int]] = set()
        for index, steps in enumerate(self._split()):
            kicked = {(s.x, s.y) for s in steps if isinstance(s, Kick)}
            used = 0
            for step in steps:
                if isinstance(step, Kick):
                    used = max(used, self._check_kick(step, index, stage))
                if isinstance(step, Await):
                    awaited.add((step.x, step.y))
                    if step.count < 1 or step.count > 0xFFFF:
                        raise ArtifactError(f"round {index}: await count {step.count} is not in 1..65535")
                    acked = {tuple(n) for n in self.meta.get("acknowledging", [])}
                    if (step.x, step.y) not in kicked and (step.x, step.y) not in acked:
                        raise ArtifactError(
                            f"round {index}: await on node ({step.x},{step.y}), which nothing kicked or acknowledged"
                        )
            if kicked - {(s.x, s.y) for s in steps if isinstance(s, Await)}:
                raise ArtifactError(f"round {index}: a kicked node is never awaited: {sorted(kicked)}")
            total += used
        if total != len(self.payloads):
            raise ArtifactError(f"kicks cover {total} payloads, the artifact holds {len(self.payloads)}")

    @staticmethod
    def _check_kick(step: Kick, index: int, stage: int) -> int:
        if step.n < 1 or step.base < 0 or step.base + step.n > stage:
            raise ArtifactError(
                f"round {index}: kick of slots {step.base}..{step.base + step.n - 1} exceeds the "
                f"{stage} staging slots"
            )
        return step.base + step.n

    def digest(self) -> str:
        """SHA-256 of the binary form."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    # -- JSON form --
    def to_json(self) -> str:
        """JSON text; payloads and image bytes are hex strings."""
        head = self._head()
        head["payloads"] = [f"{p:064x}" for p in self.payloads]
        head["images"] = [
            {"address": i.address, "name": i.name, "data": i.data.hex()} for i in self.images
        ]
        return json.dumps(head, indent=1, sort_keys=True)

    # -- binary form --
    def to_bytes(self) -> bytes:
        """Magic, header length, JSON header, payloads (little endian), image bytes."""
        head = self._head()
        head["n_payloads"] = len(self.payloads)
        head["images"] = [
            {"address": i.address, "name": i.name, "nbytes": len(i.data)} for i in self.images
        ]
        text = json.dumps(head, sort_keys=True, separators=(",", ":")).encode()
        body = b"".join(p.to_bytes(PAYLOAD_BYTES, "little") for p in self.payloads)
        return MAGIC + struct.pack("<I", len(text)) + text + body + b"".join(i.data for i in self.images)

    def _head(self) -> dict[str, Any]:
        return {
            "tag": TAG,
            "version": VERSION,
            "machine": self.machine,
            "machine_hash": self.machine_hash,
            "limits": self.limits,
            "steps": [_step_to_json(s) for s in self.steps],
            "outputs": [
                {"name": o.name, "address": o.address, "nbytes": o.nbytes, "layout": o.layout, "shape": list(o.shape)}
                for o in self.outputs
            ],
            "meta": self.meta,
        }

    def save(self, path: str | Path) -> None:
        """Write ``path``: JSON if it ends in ``.json``, else the binary form."""
        target = Path(path)
        if target.suffix == ".json":
            target.write_text(self.to_json(), encoding="utf-8")
        else:
            target.write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Artifact:
        """Read either form and check it.

        Raises:
            ArtifactError: unknown form, tag or version, damaged content, or what :meth:`check` refuses.
        """
        raw = Path(path).read_bytes()
        art = cls.from_bytes(raw) if raw.startswith(MAGIC) else cls.from_json(_text(raw, path))
        art.check()
        return art

    @classmethod
    def from_json(cls, text: str) -> Artifact:
        """Parse the JSON form."""
        try:
            head = json.loads(text)
        except ValueError as err:
            raise ArtifactError(f"not an artifact: {err}") from err
        _check_head(head)
        images = tuple(
            Image(i["address"], bytes.fromhex(i["data"]), i.get("name", "")) for i in head["images"]
        )
        return cls._make(head, tuple(int(p, 16) for p in head["payloads"]), images)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Artifact:
        """Parse the binary form."""
        if not raw.startswith(MAGIC):
            raise ArtifactError(f"not an artifact: starts with {raw[:8]!r}, expected {MAGIC!r}")
        (length,) = struct.unpack_from("<I", raw, len(MAGIC))
        at = len(MAGIC) + 4
        try:
            head = json.loads(raw[at : at + length])
        except ValueError as err:
            raise ArtifactError(f"damaged artifact header: {err}") from err
        _check_head(head)
        at += length
        count = head["n_payloads"]
        want = at + count * PAYLOAD_BYTES + sum(i["nbytes"] for i in head["images"])
        if want != len(raw):
            raise ArtifactError(f"artifact holds {len(raw)} bytes, its header says {want}")
        payloads = tuple(
            int.from_bytes(raw[at + PAYLOAD_BYTES * i : at + PAYLOAD_BYTES * (i + 1)], "little")
            for i in range(count)
        )
        at += count * PAYLOAD_BYTES
        images = []
        for item in head["images"]:
            images.append(Image(item["address"], raw[at : at + item["nbytes"]], item.get("name", "")))
            at += item["nbytes"]
        return cls._make(head, payloads, tuple(images))

    @classmethod
    def _make(cls, head: dict[str, Any], payloads: tuple[int, ...], images: tuple[Image, ...]) -> Artifact:
        return cls(
            machine=head["machine"],
            machine_hash=head["machine_hash"],
            payloads=payloads,
            images=images,
            steps=tuple(_step_from_json(s) for s in head["steps"]),
            outputs=tuple(
                Output(o["name"], o["address"], o["nbytes"], o["layout"], tuple(o["shape"]))
                for o in head["outputs"]
            ),
            limits=head["limits"],
            meta=head["meta"],
        )


def _text(raw: bytes, path: str | Path) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as err:
        raise ArtifactError(f"{path} is neither form of an artifact: {err}") from err


def _check_head(head: Any) -> None:
    if not isinstance(head, dict) or head.get("tag") != TAG:
        tag = head.get("tag") if isinstance(head, dict) else type(head).__name__
        raise ArtifactError(f"artifact tag is {tag!r}, expected {TAG!r}")
    if head.get("version") != VERSION:
        raise ArtifactError(f"artifact version {head.get('version')!r} is unknown; this build reads {VERSION}")


def _step_to_json(step: Step) -> list[Any]:
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
    raise ArtifactError(f"{step!r} is not a step")


def _step_from_json(item: list[Any]) -> Step:
    match item:
        case ["seed", n]:
            return Seed(n)
        case ["kick", x, y, base, n]:
            return Kick(x, y, base, n)
        case ["await", x, y, count]:
            return Await(x, y, count)
        case ["move", writes]:
            return Move(tuple((o, v) for o, v in writes))
        case ["barrier"]:
            return Barrier()
    raise ArtifactError(f"{item!r} is not a step of this version")

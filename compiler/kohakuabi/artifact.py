# SPDX-License-Identifier: Apache-2.0
"""The versioned program (docs/spec/compiler.md 10.3) and what must not run of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kohakuabi import files
from kohakuabi.errors import ArtifactError
from kohakuabi.parts import Image, Output, Round, first_conflict
from kohakuabi.rounds import Limits, check_round
from kohakuabi.steps import Barrier, Kick, Step

LAYER = "leaf"

WORD_BYTES = 32
ADDRESS_END = 1 << 40


@dataclass(frozen=True)
class Artifact:
    """A program: payloads, images, steps and where its results are.

    Args:
        machine: name of the machine it was compiled for.
        machine_hash: digest of the MachineSpec.
        payloads: 256-bit instruction words. The slots of a round are consecutive here.
        images: memory contents before the first round.
        steps: rounds separated by :class:`~kohakuabi.steps.Barrier`.
        outputs: result regions.
        limits: ``stage_flits``, ``ncmd`` and ``credit_max`` of the machine.
        meta: kernel, shapes, knobs, counters, notes; anything JSON can hold. ``acknowledging``
            lists the nodes ``[x, y]`` that acknowledge bursts, ``modelled_cycles`` the cycles
            every round takes at most, memory latency aside.
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

    def cycles(self, index: int) -> int:
        """Modelled cycles of a round, 0 if the compiler stated none."""
        stated: Sequence[int] = self.meta.get("modelled_cycles", ())
        return stated[index] if index < len(stated) else 0

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
            ArtifactError: naming the object, its value and the limit.
        """
        if machine_hash is not None and machine_hash != self.machine_hash:
            raise ArtifactError(
                f"artifact was compiled for machine {self.machine} ({self.machine_hash}), the target is "
                f"{machine_hash}; compile it again for this target"
            )
        end = 1 << 8 * files.PAYLOAD_BYTES
        if self.payloads and (min(self.payloads) < 0 or max(self.payloads) >= end):
            number, payload = next((i, p) for i, p in enumerate(self.payloads) if not 0 <= p < end)
            raise ArtifactError(f"payload {number} = {payload:#x} does not fit 256 bits")
        self._check_memory()
        limits = Limits.of(self.limits)
        acknowledging = {(int(x), int(y)) for x, y in self.meta.get("acknowledging", ())}
        used: dict[tuple[Step, ...], int] = {}
        total = 0
        for index, steps in enumerate(map(tuple, self._split())):
            if steps not in used:  # a long program repeats one round
                used[steps] = check_round(index, steps, limits, acknowledging)
            total += used[steps]
        if total != len(self.payloads):
            raise ArtifactError(f"kicks cover {total} payloads, the artifact holds {len(self.payloads)}")

    def _check_memory(self) -> None:
        spans = [(f"image {i.name}", i.address, len(i.data)) for i in self.images]
        spans += [(f"result {o.name}", o.address, o.nbytes) for o in self.outputs]
        for what, address, size in spans:
            if address % WORD_BYTES or address < 0 or size < 0 or address + size > ADDRESS_END:
                raise ArtifactError(
                    f"{what}: {size} bytes at {address:#x}; it must start at a word of {WORD_BYTES} bytes "
                    "and end within 40 bits of address"
                )
        conflict = first_conflict(self.images)
        if conflict:
            a, b, at = conflict
            raise ArtifactError(
                f"images {a.name} and {b.name} put different bytes at {at:#x}; place them apart"
            )

    def digest(self) -> str:
        """SHA-256 of the binary form."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def to_json(self) -> str:
        """JSON text; payloads and image bytes are hex strings."""
        return files.to_json(self._head(), self.payloads, self.images)

    def to_bytes(self) -> bytes:
        """Binary form with the same content."""
        return files.to_bytes(self._head(), self.payloads, self.images)

    def _head(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "machine_hash": self.machine_hash,
            "limits": self.limits,
            "steps": [files.step_to_json(s) for s in self.steps],
            "outputs": [files.output_to_json(o) for o in self.outputs],
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
        try:
            art = cls.from_bytes(raw) if raw.startswith(files.MAGIC) else cls.from_json(files.text(raw))
            art.check()
        except ArtifactError as err:
            raise ArtifactError(f"{path}: {err}") from err
        return art

    @classmethod
    def from_json(cls, text: str) -> Artifact:
        """Parse the JSON form without checking that it may run.

        Raises:
            ArtifactError: not JSON, another tag or version, a missing or malformed field.
        """
        return cls(**files.from_json(text))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Artifact:
        """Parse the binary form without checking that it may run.

        Raises:
            ArtifactError: another magic, tag or version, a cut file, a missing or malformed field.
        """
        return cls(**files.from_bytes(raw))

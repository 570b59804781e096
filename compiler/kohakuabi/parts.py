# SPDX-License-Identifier: Apache-2.0
"""What an artifact is made of besides steps and payloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kohakuabi.steps import Step

LAYER = "leaf"


@dataclass(frozen=True)
class Image:
    """Bytes placed in memory before the first round; ``address`` is 40 bits and global."""

    address: int
    data: bytes
    name: str = ""

    @property
    def end(self) -> int:
        """First byte behind the image."""
        return self.address + len(self.data)


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


def first_conflict(images: Iterable[Image]) -> tuple[Image, Image, int] | None:
    """Two images that put different bytes at one address, and that address; None if there are none.

    Images whose shared bytes are equal do not conflict.
    """
    open_images: list[Image] = []
    for b in sorted(images, key=lambda i: i.address):
        open_images = [a for a in open_images if a.end > b.address]
        for a in open_images:
            shared = min(a.end, b.end) - b.address
            start = b.address - a.address
            if a.data[start : start + shared] != b.data[:shared]:
                at = next(i for i in range(shared) if a.data[start + i] != b.data[i])
                return a, b, b.address + at
        open_images.append(b)
    return None

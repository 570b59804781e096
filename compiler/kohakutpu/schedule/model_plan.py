# SPDX-License-Identifier: Apache-2.0
"""Placement of a whole network: weights pinned, activations packed above (docs/spec/compiler.md 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kohakutpu.errors import CompileError
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.lifetimes import TEMP, Group, Need, Placed, Step, conflicts, pack

LAYER = "L2"

_PINNED = ("const", "table")


@dataclass
class ModelPlan:
    """Buffers and kernel calls of a network, in the order they are issued.

    Args:
        size: bytes of the arena.
        base: its first byte.
        align: allocation granule.
    """

    size: int
    base: int = 0
    align: int = 2048
    needs: list[Need] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    groups: list[Group] = field(default_factory=list)
    released: set[str] = field(default_factory=set)
    placed: dict[str, Placed] = field(default_factory=dict)
    peak: int = 0

    def weight(self, name: str, nbytes: int) -> str:
        """Pin a weight; weights lie at the bottom in declaration order."""
        self.needs.append(Need(name, nbytes, "const"))
        return name

    def activation(self, name: str, nbytes: int, role: str = TEMP) -> str:
        """Declare an activation: "temp", or "in" and "out" for what the host touches."""
        self.needs.append(Need(name, nbytes, role))
        return name

    def adjacent(self, *names: str, exact: bool = False) -> None:
        """Ask for consecutive bytes."""
        self.groups.append(Group(names, exact))

    def call(self, kernel: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> None:
        """Issue a kernel.

        Raises:
            CompileError: it reads a weight that was released.
        """
        gone = sorted(self.released & {*reads})
        if gone:
            raise CompileError(f"{kernel} reads {gone[0]}, which was released; release it behind its last reader")
        self.steps.append(Step(kernel, reads, writes))

    def release(self, *weights: str) -> None:
        """Nothing issued from here on reads these weights: their bytes are free behind their last reader.

        The next run of the plan has to load them again.

        Raises:
            CompileError: a name that is no weight.
        """
        pinned = {n.name for n in self.needs if n.role == "const"}
        for name in weights:
            if name not in pinned:
                raise CompileError(f"release({name}): no weight of this name was declared")
        self.released.update(weights)

    def solve(self) -> Mapping[str, Placed]:
        """Place everything.

        Raises:
            CompileError: the arena is too small; names the buffer, what the weights alone take, and which of them
                could be released.
        """
        arena = Arena(self.base, self.size, self.align)
        needs = [replace(n, role=TEMP) if n.name in self.released else n for n in self.needs]
        ordered = sorted(needs, key=lambda n: n.role not in _PINNED)  # stable: declaration order within a kind
        # what is released later is there from the start
        loaded = [Step("load", (), tuple(n.name for n in self.needs if n.name in self.released))]
        try:
            self.placed = pack(ordered, [*loaded, *self.steps], arena, self.groups)
        except CompileError as error:
            raise CompileError(f"model plan of {len(self.needs)} buffers: {error}; {self._weights()}") from error
        self.peak = arena.peak
        return self.placed

    def _weights(self) -> str:
        """What weights take, and which of them the last tenth of the steps does not read."""
        pinned = {n.name: n.nbytes for n in self.needs if n.role == "const" and n.name not in self.released}
        text = f"weights alone take {sum(pinned.values())} bytes"
        last = {n: i for i, s in enumerate(self.steps) for n in s.reads if n in pinned}
        early = [n for n, i in last.items() if i < len(self.steps) - len(self.steps) // 10]
        if not early:
            return text
        size = sum(pinned[n] for n in early)
        return (
            f"{text}; the last tenth of the steps reads none of {early[0]} .. {early[-1]}, {size} bytes: "
            "release() them behind their last reader"
        )

    def verify(self) -> list[str]:
        """What is wrong with the plan, one line each: conflicts, and temps written but never read."""
        faults = [f"{a} and {b} are alive together and share bytes" for a, b in conflicts(self.placed.values())]
        read = {n for s in self.steps for n in s.reads}
        written = {n for s in self.steps for n in s.writes}
        for need in self.needs:
            if need.role == TEMP and need.name in written and need.name not in read:
                faults.append(f"{need.name} is written and never read")
        return faults

    def traffic(self) -> int:
        """Bytes all steps read and write."""
        size = {n.name: n.nbytes for n in self.needs}
        return sum(size[n] for s in self.steps for n in (*s.reads, *s.writes))

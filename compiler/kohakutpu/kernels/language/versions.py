# SPDX-License-Identifier: Apache-2.0
"""Buffers of a kernel as values that are written once (docs/spec/compiler.md 4).

Every time a statement writes a whole buffer, or several write all its parts, a version comes about. The last version
has the name and the role of the buffer, an earlier one is a temp ``acc.0``; parts are ``acc.p0``, ``acc.p1``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from kohakutpu.errors import TraceError
from kohakutpu.graph import Matrix, Value
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.views import Window

LAYER = "L4"


@dataclass(frozen=True)
class Write:
    """What one statement writes: a window of the buffer's matrix, or all of it.

    ``statement`` is its number, ``run`` the execution of its grid.
    """

    statement: int
    run: int
    buffer: str
    window: Window | None


@dataclass
class Versions:
    """Values of the written buffers, and which one each buffer holds while statements are lowered in order.

    Args:
        values: of all versions and parts, by buffer.
        names: value each statement writes.
        versions: names of the versions of each buffer, in order.
    """

    values: dict[str, list[Value]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    versions: dict[str, list[str]] = field(default_factory=dict)
    _run: dict[str, int] = field(default_factory=dict)
    _whole: dict[int, str] = field(default_factory=dict)
    _last: set[int] = field(default_factory=set)
    _current: dict[str, str] = field(default_factory=dict)
    _open: dict[str, str] = field(default_factory=dict)

    def add(self, buffer: Buffer, shape: Matrix, writes: Sequence[Write]) -> None:
        """Name the versions of one buffer.

        Raises:
            TraceError: parts that never make up the whole buffer.
        """
        groups = _groups(buffer.name, shape, [w for w in writes if w.buffer == buffer.name])
        tier = "" if buffer.tier == "dram" else buffer.tier
        out = self.values.setdefault(buffer.name, [])
        names = self.versions.setdefault(buffer.name, [])
        for number, group in enumerate(groups):
            last = number == len(groups) - 1
            name, role = (buffer.name, buffer.role) if last else (f"{buffer.name}.{number}", "temp")
            names.append(name)
            assert role in ("out", "temp")
            out.append(Value(name, "fp16", shape, role, tier=tier))
            for k, write in enumerate(group):
                part = name if write.window is None else f"{name}.p{k}"
                if write.window is not None:
                    size = write.window.blocks * write.window.rows, write.window.cols
                    out.append(Value(part, "fp16", size, role, of=name, window=write.window))
                self.names[write.statement], self._whole[write.statement] = part, name
            self._last.add(group[-1].statement)
            self._run[name] = group[-1].run

    def wrote(self, buffer: str, statement: int) -> None:
        """``statement`` has written its value."""
        if statement in self._last:
            self._current[buffer] = self._whole[statement]
            self._open.pop(buffer, None)
        else:
            self._open[buffer] = self._whole[statement]

    def current(self, buffer: Buffer) -> str:
        """The value ``buffer`` holds, "" if nothing wrote it."""
        if buffer.role in ("in", "table"):
            return buffer.name
        if buffer.name in self._open:
            return ""
        return self._current.get(buffer.name, "")

    def groups(self, names: Sequence[str]) -> list[tuple[str, ...]]:
        """ADJACENT groups of versions: those one grid writes together, or the last of all members.

        A temp that no statement of the call writes is in none.
        """
        members = [found for n in names if (found := self.versions.get(n, [n]))]
        if len(members) < 2:
            return []
        by_run = [{self._run[v]: v for v in m if v in self._run} for m in members]
        together = [run for run in by_run[0] if all(run in other for other in by_run[1:])]
        if not together:
            return [tuple(m[-1] for m in members)]
        return [tuple(m[run] for m in by_run) for run in together]


def _groups(name: str, shape: Matrix, writes: Sequence[Write]) -> list[list[Write]]:
    """Statements that together write one version."""
    total, covered = math.prod(shape), 0
    groups: list[list[Write]] = []
    for write in writes:
        window = write.window
        if window is None and covered:
            raise TraceError(
                f"{name} is written whole after {covered} of its {total} elements were; write one or other"
            )
        if not covered:
            groups.append([])
        groups[-1].append(write)
        covered += total if window is None else window.blocks * window.rows * window.cols
        if covered >= total:
            covered = 0
    if covered:
        raise TraceError(f"{name}: statements write {covered} of its {total} elements; the parts cover all of it")
    return groups

# SPDX-License-Identifier: Apache-2.0
"""Replays the event log of ``tb_cu_base`` on the reference shell, every cycle of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kohakubench.shell_model import LEVELS, Config, Head, Inputs, MismatchError, Shell


@dataclass
class Replay:
    """What a log contained, after every cycle of it agreed with the reference.

    ``left`` and ``arrived`` hold (cycle, flit) of the two links.
    """

    shell: Shell
    cycles: int = 0
    compared: int = 0
    left: list[tuple[int, int]] = field(default_factory=list)
    arrived: list[tuple[int, int]] = field(default_factory=list)
    accepted: list[tuple[int, int]] = field(default_factory=list)
    done: list[int] = field(default_factory=list)

    def signals(self, *codes: int) -> list[int]:
        """Flits of the given signal codes that left on the link, in order."""
        return [w for _, w in self.left if Head.of(w).kind == 6 and w >> 248 & 255 in codes]

    def completions(self) -> list[int]:
        """Completions that left on the link, in order."""
        return self.signals(0, 1, 4)

    def replies(self) -> list[int]:
        """CU_CTRL replies that left on the link, in order."""
        return [w for _, w in self.left if Head.of(w).kind == 7]


def _parse(line: str) -> tuple[int, int, Inputs]:
    f = line.split()
    events, levels, probes = int(f[1], 16), int(f[2], 16), int(f[3], 16)
    i = Inputs(out_stall=bool(levels >> 18 & 1), send_valid=bool(levels >> 21 & 1), any=events != 0)
    i.unit_err, i.dbg_ctr = probes >> 64, probes & (2**64 - 1)
    flits = (int(x, 16) for x in f[5:])
    if events & 32:
        i.arrived = next(flits)
    if events & 16:
        i.accepted = next(flits)
    if events & 8:
        done = int(f[4], 16)
        i.done = (bool(done >> 33 & 1), bool(done >> 32 & 1), done & 0xFFFFFFFF)
    if events & 4:
        i.sent = next(flits)
    if events & 2:
        i.received = next(flits)
    if events & 1:
        i.left = next(flits)
    return int(f[0]), levels, i


def replay(path: Path, config: Config) -> Replay:
    """Check every cycle of the log at ``path``.

    Raises:
        MismatchError: with the cycle and the port that differ.
    """
    r = Replay(Shell(config))
    held: tuple[int, Inputs] | None = None
    with path.open(encoding="ascii") as log:
        for line in log:
            if line.endswith("end\n"):
                if held is not None:
                    _quiet(r, int(line.split()[0]), *held)
                continue
            cycle, shown, inputs = _parse(line)
            if held is not None:
                _quiet(r, cycle, *held)
            if cycle < r.cycles:  # the end mark of this cycle came first
                continue
            _cycle(r, shown, inputs)
            quiet = Inputs(out_stall=inputs.out_stall, send_valid=inputs.send_valid)
            quiet.unit_err, quiet.dbg_ctr = inputs.unit_err, inputs.dbg_ctr
            held = (shown, quiet)
    return r


def _cycle(r: Replay, shown: int, i: Inputs) -> bool:
    expected = r.shell.levels(i)
    if shown != expected:
        raise MismatchError(f"cycle {r.cycles}: {_difference(shown, expected)}")
    r.compared += len(LEVELS) + 1
    for log, word in ((r.left, i.left), (r.arrived, i.arrived), (r.accepted, i.accepted)):
        if word is not None:
            log.append((r.cycles, word))
    if i.done is not None:
        r.done.append(r.cycles)
    try:
        moved = r.shell.step(i)
    except MismatchError as err:
        raise MismatchError(f"cycle {r.cycles}: {err}") from None
    r.cycles += 1
    return moved


def _quiet(r: Replay, until: int, shown: int, i: Inputs) -> None:
    """Cycles without a line: nothing was handed over and no level changed."""
    while r.cycles < until:
        if not _cycle(r, shown, i):
            r.shell.busy_cycles += (until - r.cycles) * int(r.shell.busy)
            r.cycles = until


def _difference(shown: int, expected: int) -> str:
    names = [
        f"{n} is {shown >> b & 1}"
        for b, n in zip(range(23, 15, -1), LEVELS, strict=True)
        if (shown ^ expected) >> b & 1
    ]
    if (shown ^ expected) & 0xFFFF:
        names.append(f"inst_space is {shown & 0xFFFF}, expected {expected & 0xFFFF}")
    return ", ".join(names)

# SPDX-License-Identifier: Apache-2.0
"""The main job: one artifact on the model and on another device, compared bit for bit.

What is compared and what is masked is the determinism contract of docs/spec/README.md 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kohakuabi import Artifact
from kohakuabi.artifact import Round
from kohakudriver import Device, NodeResult, RoundResult
from ktpu.diagnosis import Finding, memory_difference, signal_difference

WORD = 32
GUARD_BYTES = 4096
_FAULT = 4


@dataclass
class RoundReport:
    """Comparison of one round."""

    index: int
    words: int = 0
    signals: int = 0
    values: int = 0
    findings: list[Finding] = field(default_factory=list)
    failed: bool = False


@dataclass
class ReplayReport:
    """Comparison of a run."""

    artifact: Artifact
    target: str
    rounds: list[RoundReport] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def agree(self) -> bool:
        """True if everything compared was equal and something was compared."""
        return self.compared > 0 and not any(r.findings for r in self.rounds)

    @property
    def compared(self) -> int:
        """Memory words, signals and values compared."""
        return sum(r.words + r.signals + r.values for r in self.rounds)

    def findings(self) -> list[Finding]:
        """All differences in the order found."""
        return [f for r in self.rounds for f in r.findings]


def regions(artifact: Artifact, size: int) -> list[tuple[int, int]]:
    """(address, bytes) of every buffer with a guard on both sides, merged, inside ``size``."""
    spans = [(i.address, i.address + len(i.data)) for i in artifact.images]
    spans += [(o.address, o.address + o.nbytes) for o in artifact.outputs]
    merged: list[list[int]] = []
    for first, end in sorted((max(0, a - GUARD_BYTES), min(size, b + GUARD_BYTES)) for a, b in spans):
        if merged and first <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([first, end])
    return [(a - a % WORD, -(-(b - (a - a % WORD)) // WORD) * WORD) for a, b in merged]


def replay(
    artifact: Artifact,
    model: Device,
    other: Device,
    *,
    target: str = "rtl",
    progress: Callable[[int, int], None] | None = None,
) -> ReplayReport:
    """Run ``artifact`` on both devices, round by round, and compare after each.

    The comparison stops at the first round that differs: later ones only repeat its damage.
    """
    report = ReplayReport(artifact, target)
    artifact.check()
    for device in (model, other):
        device.load(artifact)
    size = min(int(d.description.get("dram_bytes", 1 << 32)) for d in (model, other))
    costs = artifact.meta.get("modelled_cycles", [])
    for r in artifact.rounds():
        cost = costs[r.index] if r.index < len(costs) else 0
        expected = model.run_round(r, cost)
        got = other.run_round(r, cost, None if progress is None else (lambda c, i=r.index: progress(i, c)))
        round_report = RoundReport(r.index, failed=expected.failed)
        _compare_memory(round_report, artifact, r, model, other, size)
        _compare_round(round_report, r, expected, got)
        report.rounds.append(round_report)
        report.problems += [f"round {r.index}: {p}" for p in expected.problems()]
        if round_report.findings or expected.failed or got.failed:
            break
    return report


def _compare_memory(
    report: RoundReport, artifact: Artifact, r: Round, model: Device, other: Device, size: int
) -> None:
    for address, n in regions(artifact, size):
        expected, got = model.read(address, n), other.read(address, n)
        report.words += n // WORD
        if expected == got:
            continue
        e = np.frombuffer(expected, np.uint8).reshape(-1, WORD)
        g = np.frombuffer(got, np.uint8).reshape(-1, WORD)
        bad = np.flatnonzero((e != g).any(axis=1))
        first = int(bad[0])
        taps = getattr(other.transport, "taps", None)
        report.findings.append(
            memory_difference(
                artifact,
                r,
                address + WORD * first,
                e[first].tobytes(),
                g[first].tobytes(),
                len(bad),
                taps() if taps else None,
            )
        )


def _compare_round(report: RoundReport, r: Round, expected: RoundResult, got: RoundResult) -> None:
    names = ["eng_ctrl", "eng_pc", "eng_code", "err_stat", "prog_stat", "sig_done"]
    if not expected.failed:
        names += ["dram_words", "mem_fault", "mem_drop"]
    elif bin(expected.err_stat).count("1") == 1 and (expected.err_info >> 48) <= 1:
        names += ["err_info"]
    for name in names:
        report.values += 1
        e, g = getattr(expected, name), getattr(got, name)
        if e != g:
            shown = (f"{e:#x}", f"{g:#x}") if isinstance(e, int) else (str(e), str(g))
            report.findings.append(Finding(f"{name} after round {r.index}: expected {shown[0]}, got {shown[1]}"))
    for e, g in zip(expected.nodes, got.nodes, strict=True):
        _compare_node(report, r, e, g)


def _compare_node(report: RoundReport, r: Round, expected: NodeResult, got: NodeResult) -> None:
    for name in ("signal_count", "retired", "err_bits"):
        report.values += 1
        e, g = getattr(expected, name), getattr(got, name)
        if e != g:
            x, y = expected.node
            report.findings.append(Finding(f"{name} of node ({x},{y}): expected {e:#x}, got {g:#x}"))
    for name in ("completions", "data_received"):
        want, have = getattr(expected, name), getattr(got, name)
        if want is None or have is None:
            continue
        report.signals += len(want)
        for i in range(max(len(want), len(have))):
            e = want[i].text() if i < len(want) else "nothing"
            g = have[i].text() if i < len(have) else "nothing"
            if e != g:
                report.findings.append(signal_difference(r, expected.node, i, e, g))
                break

# SPDX-License-Identifier: Apache-2.0
"""The main job: one artifact on the model and on another device, compared bit for bit.

What is compared and what is masked is the determinism contract of docs/spec/README.md 8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

import numpy as np

from kohakuabi import Artifact, Round
from kohakudriver import Device, NodeResult, RoundResult, Signal
from kohakudriver.registers import fields, pack
from kohakutpu.isa.address import dram as dram_address
from kohakutpu.isa.address import staging as staging_address
from kohakutpu.isa.generated import EnvelopeOp
from kohakutpu.isa.generated import Signal as SignalCode
from kohakutpu.isa.vector import decode_envelope
from ktpu.diagnosis import (
    Finding,
    memory_difference,
    places,
    signal_difference,
    unit_kinds,
    value_difference,
)
from ktpu.disassembly import VECTOR

WORD = 32
GUARD_BYTES = 4096


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


def regions(artifact: Artifact, size: int, stage: int = 0, mesh: int = 0) -> list[tuple[int, int]]:
    """(address, bytes) of every buffer with a guard on both sides, merged, inside the memory it stands in.

    Args:
        size: bytes of DRAM.
        stage: bytes of the staging store.
        mesh: id of the mesh.
    """
    dram, staged = dram_address(0, mesh), staging_address(0, mesh)
    buffers = [(i.address, i.address + len(i.data)) for i in artifact.images]
    buffers += [(o.address, o.address + o.nbytes) for o in artifact.outputs]
    spans = []
    for a, b in buffers:
        low, high = (staged, staged + stage) if a >= staged else (dram, dram + size)
        spans.append((max(low, a - GUARD_BYTES), min(high, b + GUARD_BYTES)))
    merged: list[list[int]] = []
    for first, end in sorted(spans):
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
    whole: int = 0,
    more: Sequence[tuple[int, int]] = (),
) -> ReplayReport:
    """Run ``artifact`` on both devices, round by round, and compare after each.

    Both start from reset and from zeroed buffers. The comparison stops at the first round that
    differs or fails: later ones only repeat its damage.

    Args:
        whole: bytes of memory compared from address 0 after the last round, beyond the buffers
            and their guards; for devices whose memory nothing else has written.
        more: further (address, bytes) compared after the last round, such as temps in the staging store.

    Raises:
        kohakuabi.ArtifactError, kohakudriver.DriverError: a program that does not run on a device.
    """
    report = ReplayReport(artifact, target)
    size = min(int(d.description.get("dram_bytes", 1 << 32)) for d in (model, other))
    stage = min(int(d.description.get("stage_bytes", 0)) for d in (model, other))
    spans = regions(artifact, size, stage, int(model.description.get("mesh_id", 0)))
    for device in (model, other):
        device.reset()
        for address, n in spans:
            device.write(address, bytes(n))
        device.load(artifact)
    for r in artifact.rounds():
        cost = artifact.cycles(r.index)
        expected = model.run_round(r, cost)
        got = other.run_round(r, cost, partial(progress, r.index) if progress else None)
        round_report = RoundReport(r.index, failed=expected.failed)
        _compare_memory(round_report, artifact, r, (model, other), spans)
        _compare_round(round_report, expected, got)
        for want, have in zip(expected.nodes, got.nodes, strict=True):
            _compare_node(round_report, artifact, r, want, have)
        report.rounds.append(round_report)
        report.problems += [f"round {r.index}: {p}" for p in expected.problems()]
        if round_report.findings or expected.failed or got.failed:
            return report
    behind = [(0, min(whole, size)), *more] if whole else list(more)
    _compare_memory(round_report, artifact, r, (model, other), behind)
    return report


def _compare_memory(
    report: RoundReport,
    artifact: Artifact,
    r: Round,
    devices: tuple[Device, Device],
    spans: list[tuple[int, int]],
) -> None:
    model, other = devices
    for address, n in spans:
        expected, got = model.read(address, n), other.read(address, n)
        report.words += n // WORD
        if expected == got:
            continue
        e = np.frombuffer(expected, np.uint8).reshape(-1, WORD)
        g = np.frombuffer(got, np.uint8).reshape(-1, WORD)
        bad = np.flatnonzero((e != g).any(axis=1))
        first = int(bad[0])
        at = address + WORD * first
        taps = getattr(other.transport, "taps", None)
        seen = taps() if taps else None
        report.findings.append(
            memory_difference(
                artifact, r, at, e[first].tobytes(), g[first].tobytes(), count=len(bad), taps=seen
            )
        )


def _compare_round(report: RoundReport, expected: RoundResult, got: RoundResult) -> None:
    names = ["eng_ctrl", "eng_pc", "eng_code", "err_stat", "prog_stat", "sig_done"]
    if not expected.failed:
        names += ["dram_words", "stage_words"]
    if fields("ERR_INFO", expected.err_info)["events"] <= 1:
        names.append("err_info")
    if fields("MEM_DROP", expected.mem_drop)["faults"] <= 1:
        names.append("mem_fault")
    values = [(name, getattr(expected, name), getattr(got, name)) for name in names]
    values.append(("mem_drop", _comparable_drop(expected.mem_drop), _comparable_drop(got.mem_drop)))
    if expected.aux_stat is not None and got.aux_stat is not None:
        e, g = fields("MV_STAT", expected.aux_stat), fields("MV_STAT", got.aux_stat)
        values += [(f"aux_stat.{n}", e[n], g[n]) for n in ("moves", "fault", "nonfinite", "sticky")]
    for name, want, have in values:
        report.values += 1
        if want != have:
            what = f"{name} after round {expected.index}"
            report.findings.append(value_difference(what, want, have, got.problems()))


def _comparable_drop(value: int) -> int:
    """MEM_DROP with the number of memory faults reduced to some or none."""
    f = fields("MEM_DROP", value)
    return pack("MEM_DROP", **{**f, "faults": min(f["faults"], 1)})


def _timed(artifact: Artifact, r: Round, node: tuple[int, int]) -> set[int]:
    """Positions of a node's RUNs: the argument of their completion is a number of cycles."""
    kinds = unit_kinds(artifact)
    if kinds.get(node) != VECTOR:
        return set()
    mine = [p for p in places(r, kinds) if p.node == node]
    return {p.position for p in mine if decode_envelope(p.payload)[0] is EnvelopeOp.RUN}


def _untimed(signal: Signal | None, position: int, timed: set[int]) -> Signal | None:
    """A completion without the cycles of a RUN."""
    if signal is None or position not in timed or signal.code != SignalCode.INST_COMPLETE:
        return signal
    return replace(signal, arg=0)


def _compare_node(
    report: RoundReport, artifact: Artifact, r: Round, expected: NodeResult, got: NodeResult
) -> None:
    for name in ("signal_count", "retired", "err_bits"):
        report.values += 1
        e, g = getattr(expected, name), getattr(got, name)
        if e != g:
            x, y = expected.node
            what = f"{name} of node ({x},{y}) after round {r.index}"
            report.findings.append(value_difference(what, e, g, got.problems()))
    for name in ("completions", "data_received"):
        want, have = getattr(expected, name), getattr(got, name)
        if want is None or have is None:
            continue
        report.signals += len(want)
        timed = _timed(artifact, r, expected.node) if name == "completions" else set()
        for i, (e, g) in enumerate(zip_longest(want, have)):
            if _untimed(e, i, timed) != _untimed(g, i, timed):
                kinds = unit_kinds(artifact)
                found = signal_difference(r, expected.node, name, i, expected=e, got=g, kinds=kinds)
                report.findings.append(found)
                break

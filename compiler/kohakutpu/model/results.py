# SPDX-License-Identifier: Apache-2.0
"""What a replay compares after a round (docs/spec/README.md section 8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohakutpu.isa.generated import EngineError, MoverFault
from kohakutpu.model.agent import MemFaultEvent
from kohakutpu.model.description import Node
from kohakutpu.model.shell import Completion

LAYER = "L0"


@dataclass(frozen=True)
class NodeResult:
    """One node: its signals during the round, and its state at the end of it."""

    completions: tuple[Completion, ...]
    data_received: tuple[int, ...]
    """Arguments of the DATA_RECEIVED signals it sent, in order."""
    signal_count: int
    """NODE_STATUS.signal_count, cumulative modulo 2**16."""
    retired: int
    """CU_COUNTERS.retired, cumulative."""
    cu_err: int
    """CU_ERR bits 15:0."""


@dataclass(frozen=True)
class RoundResult:
    """State of the control plane at the end of a round, counters as differences over it."""

    engine_err: EngineError
    engine_pc: int
    engine_code: int
    err_stat: int
    err_info: int
    run: bool
    left: int
    credit: int
    sig_done: int
    nodes: Mapping[Node, NodeResult]
    mem_faults: frozenset[MemFaultEvent]
    """Every memory fault of the round; the hardware's MEM_FAULT is one of them."""
    mem_drop: tuple[int, int, int]
    """MEM_DROP: faults, orphans, control flits."""
    counters: Mapping[str, tuple[int, int]]
    """Words (read, written) of "dram" and "stage"."""
    moves: int = 0
    """Moves that ended without a fault."""
    mover_fault: MoverFault = MoverFault.F_NONE
    """Fault of the last move."""
    mover_sticky: bool = False
    """Some move of the round faulted."""

    @property
    def failed(self) -> bool:
        """Failure rule of the await recipe (docs/spec/fabric.md 8.1)."""
        return self.engine_err != EngineError.NONE or self.err_stat != 0 or self.mover_sticky

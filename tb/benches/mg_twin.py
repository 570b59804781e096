# SPDX-License-Identifier: Apache-2.0
"""The product's functional model, played beside the bench's own expectation.

Both are written from docs/spec/cluster.md; the bench requires RTL, ``mg_ref``
and ``kohakutpu.model`` to agree on every flit and on the memory image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benches.mg_ref import CTRL, MEM, MEM_WORDS, UNIT, flit
from kohakutpu.isa import message
from kohakutpu.isa.generated import MemFault
from kohakutpu.model.cluster import Cluster
from kohakutpu.model.description import ClusterParams
from kohakutpu.model.messages import DataBurst, Flit, ReadRequest, WriteBurst
from kohakutpu.model.shell import Shell


class _Agent:
    """Memory behind the model: the rules of ``tb/hdl/mg_mem_agent.v``."""

    def __init__(self, memory: np.ndarray, rd_bad: tuple[int, int], wr_bad: tuple[int, int]) -> None:
        self.memory, self.rd_bad, self.wr_bad = memory, rd_bad, wr_bad

    def read(self, src: Any, txn: int, addr: int, words: int, *, entries: int = 1) -> tuple[np.ndarray, np.ndarray]:
        first = addr >> 5
        out = np.zeros((words, 32), np.uint8)
        if addr % 32 or addr >> 36 or first + words > MEM_WORDS:
            return out, np.ones(words, np.bool_)
        at = np.arange(first, first + words)
        failed = (at >= self.rd_bad[0]) & (at < self.rd_bad[1])
        out[~failed] = self.memory[at[~failed]]
        return out, failed

    def write(self, src: Any, txn: int, addr: int, words: np.ndarray) -> MemFault:
        first = addr >> 5
        for bad, code in (
            (addr % 32, 1), (addr >> 38 & 1, 2), (addr >> 36 & 3, 3), (addr >> 39, 4),
            (first + len(words) > MEM_WORDS, 5), (self.wr_bad[0] <= first < self.wr_bad[1], 9),
        ):  # fmt: skip
            if bad:
                return MemFault(code)
        self.memory[first : first + len(words)] = words
        return MemFault(0)


class Twin:
    """One model cluster; its lists have the names and forms of ``mg_ref.Ref``."""

    def __init__(self, memory: np.ndarray, rd_bad: tuple[int, int], wr_bad: tuple[int, int], **sizes: int) -> None:
        self.memory = memory
        self.completions: list[tuple[int, int, int]] = []
        self.received: list[tuple[tuple[int, int], int]] = []
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.node: list[int] = []
        agent: Any = _Agent(memory, rd_bad, wr_bad)
        self.shell = Shell(UNIT, MEM, self, agent)
        self.cluster = Cluster(self.shell, ClusterParams(**sizes))

    # ---- network of the model
    def deliver(self, value: int) -> None:
        kind = message.classify(value)
        if kind == "CU_SIGNAL":
            code, arg = value >> 248 & 255, value >> 216 & 0xFFFFFFFF
            if code == 3:
                self.received.append(((value >> 284 & 15, value >> 280 & 15), arg))
            else:
                self.completions.append((code, arg, value >> 260 & 255))

    def deliver_burst(self, burst: DataBurst) -> None:
        self.node += list(burst.flits())

    def observe(self, node: Any, event: object) -> None:
        if isinstance(event, ReadRequest):
            payload = event.addr << 216 | 3 << 208 | 0x40 << 200 | event.count << 192
            self.reads.append(flit(MEM, UNIT, 0, event.txn, 1, 0, payload))
        elif isinstance(event, WriteBurst):
            self.writes += list(event.flits())

    # ---- stimulus
    def execute(self, payload: int, last: int, txn: int) -> None:
        """One instruction."""
        self.shell.take(Flit(flit(UNIT, CTRL, 5, txn, last, 0, payload)))

    def burst(self, flits: list[int]) -> None:
        """The flits of one CU_DATA burst."""
        for f in flits:
            self.shell.take(Flit(f))

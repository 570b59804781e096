# SPDX-License-Identifier: Apache-2.0
"""Matmul cluster at instruction level (docs/spec/cluster.md), faults and asynchronous events included."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa.faults import fault_arg
from kohakutpu.isa.generated import ClusterError, ClusterFault, ClusterOp, MessageType, RejectReason
from kohakutpu.model.cluster_decode import Instruction, check
from kohakutpu.model.cud_rx import CudRx
from kohakutpu.model.description import ClusterParams
from kohakutpu.model.memory import ADDR_MASK, WORD
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.numerics import Layout, TileStore, receive_granules
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.operand_store import EntryAssembly, OperandStore
from kohakutpu.model.shell import Retirement, Shell

LAYER = "L0"

_ASYNC = {
    RejectReason.UNKNOWN_BUF: ClusterFault.A_BUF,
    RejectReason.RANGE: ClusterFault.A_RANGE,
    RejectReason.ODD_START: ClusterFault.A_ODD,
    RejectReason.SECOND_SENDER: ClusterFault.A_BUSY,
    RejectReason.LAST_MISMATCH: ClusterFault.A_LEN,
    RejectReason.NOT_READY: ClusterFault.A_NOTREADY,
}


class Cluster:
    """One matmul cluster behind `shell`."""

    cu_type = g.CU_TYPE_CLUSTER
    n_buffers = g.MG_N_BUFFERS

    def __init__(self, shell: Shell, params: ClusterParams) -> None:
        self.params = params
        self.features = int(params.rowmajor)
        self.l1 = (OperandStore(params.ga, Layout.A), OperandStore(params.gb, Layout.B))
        self.tiles = TileStore(params.tiles, params.acc_mw)
        self.opened = 0
        self.batch = 0
        self.count = 0
        self._shell = shell
        self._assembly = EntryAssembly(self.l1)
        self._rx = CudRx(shell.pos, self)
        self._half: U8 | None = None
        self._async: ClusterFault | None = None
        shell.attach(self)

    def debug(self) -> int:
        """CU_DBG counts cycles, of which a model has none."""
        return 0

    # ------------------------------------------------------------ instructions

    def execute(self, payload: int, last: bool) -> Retirement:
        """Run one instruction to its end (sections 2.2 and 9.1)."""
        i = Instruction.decode(payload)
        fault = check(i, self.params, self._shell.pos, self.opened, self.batch)
        passed = fault is None
        if passed:
            match i.op:
                case ClusterOp.FILL:
                    fault = self._fill(i)
                case ClusterOp.GEMM:
                    self._gemm(i)
                case ClusterOp.DRAIN:
                    self._drain(i)
        cover = last or (passed and i.op == ClusterOp.DRAIN)
        if fault is None:
            # an event since the last retirement speaks only if the instruction itself was fine
            self.count = (self.count + 1) & 0xFFFF
            fault, self._async = self._async, None
        if fault is None:
            return Retirement(False, self.count, cover)
        return Retirement(True, fault_arg(self.cu_type, i.op, fault), cover)

    def _fill(self, i: Instruction) -> ClusterFault | None:
        words, failed = self._shell.read(i.eoff, i.addr, i.n)
        self.l1[i.sel].commit(g.MG_BANK_ENTRIES * i.fbank + i.eoff, words)
        return ClusterFault.F_MEM_RD if failed.any() else None

    def _gemm(self, i: Instruction) -> None:
        bank = g.MG_BANK_ENTRIES
        first = (bank * i.abank + i.aoff, bank * i.bbank + i.boff)
        operands = []
        for store, start, groups in zip(self.l1, first, (i.gm, i.gn), strict=True):
            span = slice(start, start + groups * i.nk)
            operands.append(
                (
                    store.q[span].reshape(groups, i.nk, g.MG_LANES, g.MG_K_BLOCK),
                    store.scale[span].reshape(groups, i.nk, g.MG_LANES),
                )
            )
        self.tiles.sweep(operands[0], operands[1], i.acc, i.anchor)
        if not i.acc:
            self.opened = max(self.opened, i.gm * i.gn)
        if i.emit:
            self.batch = i.gm * i.gn
            self._hand_out(i, self._emit(self.batch))

    def _drain(self, i: Instruction) -> None:
        if i.fuse:
            return
        self.batch = 0
        if i.send:
            self._hand_out(i, self.tiles.send(i.n))
            return
        words = self._emit(i.n)
        if i.rowmajor:
            # word (g, row, q) holds that row of the four sub-tiles 4q..4q+3 of row group g
            grid = words.reshape(-1, i.raw_gn // 4, 4, 4, WORD // 4)
            words = np.ascontiguousarray(grid.transpose(0, 3, 1, 2, 4)).reshape(-1, WORD)
        self._hand_out(i, words)

    def _emit(self, n: int) -> U8:
        before = self.tiles.events.fp16_sat
        words = self.tiles.emit(n)
        if self.tiles.events.fp16_sat != before:
            self._shell.unit_error(ClusterError.CLAMP)
        return words

    def _hand_out(self, i: Instruction, words: U8) -> None:
        """Send granules in bursts partitioned by index, to memory or to a node."""
        for at, n, place in _runs(i, len(words)):
            part = words[at : at + n]
            if not i.node:
                self._shell.write(g.MG_DRAIN_TXN, (i.addr + WORD * place) & ADDR_MASK, part)
                continue
            self._shell.send_burst(
                DataBurst(
                    dst=i.dst,
                    src=self._shell.pos,
                    txn=i.dfin or g.MG_DRAIN_TXN,
                    rsvd=4 | i.dmesh if i.dfin else 0,
                    buf=i.dbuf,
                    offset=(i.addr >> 5) + place,
                    flags=i.dflags,
                    ack=i.dack,
                    words=part,
                )
            )

    # ------------------------------------------------------------ CU_DATA

    def receive(self, flit: Flit) -> None:
        """A CU_DATA flit, or a read response nobody waits for."""
        if flit.type == MessageType.CU_DATA:
            self._rx.take(flit)
        else:
            self._event(ClusterFault.A_RESP, ClusterError.RESP)

    def receive_burst(self, burst: DataBurst) -> None:
        """A whole burst."""
        self._rx.take_burst(burst)

    def accept(self, buf: int, offset: int, n: int) -> RejectReason:
        """Acceptance of section 8.2; reasons 4 and 5 are found by the framing."""
        capacity = (4 * self.params.ga, 4 * self.params.gb, 2 * self.params.tiles)
        if buf >= len(capacity):
            return RejectReason.UNKNOWN_BUF
        if offset + n > capacity[buf]:
            return RejectReason.RANGE
        if buf == g.MG_BUF_ACC:
            if offset % 2 or n % 2:
                return RejectReason.ODD_START
            if (offset + n - 1) // 2 >= self.opened:
                return RejectReason.NOT_READY
        return RejectReason.NONE

    def store(self, buf: int, granule: int, words: U8) -> None:
        """Words of an accepted burst."""
        if buf != g.MG_BUF_ACC:
            if not self._assembly.store(buf, granule, words):
                self._event(ClusterFault.A_SPLIT, ClusterError.SPLIT)
            return
        if self._half is not None:
            words = np.concatenate([self._half[None], words])
            granule -= 1
        pairs = len(words) // 2
        self._half = words[-1].copy() if len(words) % 2 else None
        if pairs:
            self.tiles.add(granule // 2, receive_granules(words[: 2 * pairs], self.params.acc_mw))

    def burst_end(self, reason: RejectReason) -> None:
        """End of a burst, accepted or rejected."""
        if reason != RejectReason.SECOND_SENDER:
            self._half = None
        if reason:
            self._event(_ASYNC[reason], ClusterError.REJECT)

    def third_sender(self) -> None:
        """A flit of a third concurrent source was discarded."""
        self._shell.unit_error(ClusterError.THIRD)

    def acknowledge(self, flit: int) -> None:
        """Send DATA_RECEIVED."""
        self._shell.acknowledge(flit)

    def _event(self, code: ClusterFault, bit: ClusterError) -> None:
        """Keep the first asynchronous code and raise its sticky bit."""
        self._shell.unit_error(bit)
        if self._async is None:
            self._async = code


def _runs(i: Instruction, granules: int) -> Iterator[tuple[int, int, int]]:
    """Bursts of a transfer: (first granule, length, destination word relative to the base)."""
    row = i.raw_gn // 4 if i.rowmajor and i.pitch > i.raw_gn // 4 else granules
    for start in range(0, granules, row):
        for at in range(start, start + row, g.MG_WBURST):
            n = min(g.MG_WBURST, start + row - at)
            place = start // row * i.pitch + at - start if i.rowmajor else at
            yield at, n, place

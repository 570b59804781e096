# SPDX-License-Identifier: Apache-2.0
"""Vector core at instruction level (docs/spec/vector.md): envelope, kernels, bursts, faults, async events.

Standing alone, for a bench of the core or of one of its parts::

    link = PlainLink(pos=(2, 1))
    link.image.write(0x1000, data)             # memory of 2**40 bytes, zero where never written
    link.read_errors.add(0x1020)               # this word is answered with rsvd[2] = 1
    link.lost.add(0x1040)                      # this word is never answered (FILL_WDOG)
    unit = VectorUnit(link)
    done = unit.execute(isa.load_word(0, word), last=False)   # envelope payloads; Retirement(fault, result, cover)
    done = unit.execute(isa.run(0), last=False)               # result of a good RUN is 0: a model has no cycles
    unit.receive(Flit(value))                  # MEM_RD_RESP or CU_DATA flits; receive_burst(DataBurst) for whole bursts
    link.writes, link.bursts, link.acks, link.errors          # what it sent, in order; errors = sticky unit_err bits

or without the envelope::

    core = VectorCore(link)                    # VectorUnit.core is one of these
    core.write_imem(0, words)
    core.memory.descriptors[3] = Descriptor(base=0x1000, strides=[32, 0, 0, 0], bounds=[16, 1, 1, 1])
    result = core.run(0)                       # RunResult(fault, pc, instructions); fault None = VHALT
    core.v, core.s, core.k, core.p, core.vl, core.mode        # registers, numpy arrays of E8M15 codes
    core.memory.l1                             # uint8 (512, 32); core.memory.undefined marks words left open
    core.memory.load/store/fill/drain/barrier  # one memory instruction each, for a bench of the memory unit

State persists from RUN to RUN as the page says. Instructions execute one after the other to their end, so a fill
is complete, or failed, when VFILL returns; the failure is reported where section 7.8 puts it.
"""

from __future__ import annotations

from kohakutpu.isa import generated as g
from kohakutpu.isa import vector as isa
from kohakutpu.isa.codec import codec
from kohakutpu.isa.faults import fault_arg
from kohakutpu.isa.generated import EnvelopeOp, MessageType, RejectReason, VectorError, VectorFault
from kohakutpu.model.cud_rx import CudRx
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.shell import Retirement
from kohakutpu.model.vector_core import RunawayError, RunResult, VectorCore
from kohakutpu.model.vector_link import PlainLink, ShellLink
from kohakutpu.model.vector_memory import Descriptor, Link

LAYER = "L0"

__all__ = ["Descriptor", "PlainLink", "RunResult", "RunawayError", "ShellLink", "VectorCore", "VectorUnit"]


class VectorUnit:
    """One vector core behind `link`."""

    cu_type = g.VC_CU_TYPE
    n_buffers = g.VC_N_BUFFERS

    def __init__(self, link: Link, mx_store: bool = False) -> None:
        self.features = int(mx_store)
        self.core = VectorCore(link, mx_store)
        self._link = link
        self._rx = CudRx(link.pos, self)
        self._event: VectorFault | None = None
        self._fault: tuple[VectorFault, int] | None = None

    def debug(self) -> int:
        """CU_DBG: the last fault and its address; the cycle count reads 0."""
        if self._fault is None:
            return 0
        code, pc = self._fault
        return codec("VC_DBG").encode(fault_valid=1, fault_pc=pc, fault_code=code)

    # ------------------------------------------------------------ envelope

    def execute(self, payload: int, last: bool = False) -> Retirement:
        """Run one envelope instruction to its end (section 2). `last` changes nothing here."""
        op, f = isa.decode_envelope(payload)
        fault: VectorFault | None = None
        pc = 0
        match op:
            case EnvelopeOp.IMEM:
                self.core.imem[f["addr"]] = f["word"]
            case EnvelopeOp.DESC if f["fld"] <= g.VC_DIMS:
                self.core.memory.set_field(f["ad"], f["fld"], f["value"], f["value_hi"])
            case EnvelopeOp.RUN:
                fault, pc = self._run(f["pc"])
            case _:
                fault = VectorFault.F_ENV
        if fault is None:
            return Retirement(False, 0, True)
        self._fault = (fault, pc)
        return Retirement(True, fault_arg(self.cu_type, payload >> 252, fault), True)

    def _run(self, pc: int) -> tuple[VectorFault | None, int]:
        """A RUN, or the asynchronous event that takes its place (section 11.3)."""
        event, self._event = self._event, None
        if event is not None:
            return event, pc
        result = self.core.run(pc)
        return result.fault, result.pc

    # ------------------------------------------------------------ receiving

    def receive(self, flit: Flit) -> None:
        """A CU_DATA flit, or a read response nobody waits for."""
        if flit.type == MessageType.CU_DATA:
            self._rx.take(flit)
        else:
            self._record(VectorFault.A_RESP, VectorError.RESP)

    def receive_burst(self, burst: DataBurst) -> None:
        """A whole burst."""
        self._rx.take_burst(burst)

    def accept(self, buf: int, offset: int, n: int) -> RejectReason:
        """Acceptance of section 10; reasons 4 and 5 are found by the framing."""
        if buf:
            return RejectReason.UNKNOWN_BUF
        return RejectReason.RANGE if offset + n > g.VC_L1_WORDS else RejectReason.NONE

    def store(self, buf: int, granule: int, words: U8) -> None:
        """Words of an accepted burst."""
        self.core.memory.receive(granule, words)

    def burst_end(self, reason: RejectReason) -> None:
        """End of a burst, accepted or rejected."""
        if reason:
            self._record(VectorFault.F_CUDATA, VectorError.REJECT)

    def third_sender(self) -> None:
        """A flit of a third concurrent source was discarded."""
        self._link.unit_error(VectorError.THIRD)

    def acknowledge(self, flit: int) -> None:
        """Send DATA_RECEIVED."""
        self._link.acknowledge(flit)

    def _record(self, code: VectorFault, bit: VectorError) -> None:
        """Keep the first asynchronous event and raise its sticky bit."""
        self._link.unit_error(bit)
        if self._event is None:
            self._event = code

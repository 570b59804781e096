# SPDX-License-Identifier: Apache-2.0
"""Control-program engine: runs WR, POLL and DONE commands literally (docs/spec/fabric.md 7).

The machine has no time of its own: between two commands it is idle. A poll whose value does not match at once
can therefore never match, and ends with err_code 5 whatever the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from kohakutpu.isa import generated as g
from kohakutpu.isa import registers
from kohakutpu.isa.generated import EngineError
from kohakutpu.model.description import MachineDescription
from kohakutpu.model.orchestrator import MASK64, merge

LAYER = "L0"

_CMD = registers.offset("CMD")
_FIELDS = 4


class Resp(IntEnum):
    """AXI responses."""

    OKAY = 0
    SLVERR = 2
    DECERR = 3


class Engine:
    """Registers, command RAM and interpreter; `write` and `read` reach the orchestrator windows."""

    def __init__(
        self,
        desc: MachineDescription,
        bus_write: Callable[[int, int], Resp],
        bus_read: Callable[[int], tuple[int, Resp]],
    ) -> None:
        self.desc = desc
        self.pc = 0
        self.code = 0
        self.polls = 0
        self.limit = 0
        self.err = EngineError.NONE
        self.err_addr = 0
        self.done = False
        self.busy = False
        self._commands = [0] * (_FIELDS * desc.ncmd)
        self._bus_write = bus_write
        self._bus_read = bus_read

    def write(self, offset: int, data: int, strobe: int = 0xFF) -> Resp:
        """Host write of one 64-bit register of the engine window."""
        offset &= ~7
        slot = (offset - _CMD) // 8
        if 0 <= slot < len(self._commands):
            self._commands[slot] = merge(self._commands[slot], data & MASK64, strobe)
            return Resp.OKAY
        if self.read(offset)[1] != Resp.OKAY:
            return Resp.SLVERR
        value = merge(0, data, strobe)
        if offset == registers.offset("ENG_CTRL") and value & 1:
            self._run()
        elif offset == registers.offset("ENG_POLL_LIMIT"):
            self.limit = merge(self.limit, data, strobe) & 0xFFFF_FFFF
        return Resp.OKAY

    def read(self, offset: int) -> tuple[int, Resp]:
        """Host read of one register: (value, response)."""
        offset &= ~7
        if _CMD <= offset < _CMD + 8 * len(self._commands):
            return 0, Resp.OKAY
        match registers.find(offset, engine=True):
            case "ENG_CTRL":
                value = registers.encode(
                    "ENG_CTRL",
                    err_code=self.err,
                    err=int(self.err != 0),
                    done=int(self.done),
                    busy=int(self.busy),
                )
            case "ENG_PC":
                value = self.pc
            case "ENG_CODE":
                value = self.code
            case "ENG_POLLS":
                value = self.polls
            case "ENG_CAPS":
                value = registers.encode(
                    "ENG_CAPS", magic=0x4345, poll_ivl=self.desc.poll_ivl, ncmd=self.desc.ncmd
                )
            case "ENG_POLL_LIMIT":
                value = self.limit
            case "ENG_ERR_ADDR":
                value = self.err_addr
            case _:
                return 0, Resp.SLVERR
        return value, Resp.OKAY

    def _run(self) -> None:
        """GO: execute from command 0 until DONE or an error."""
        if self.busy:
            return
        self.pc = self.polls = 0
        self.busy, self.done, self.err = True, False, EngineError.NONE
        while self.busy:
            op, addr, data, mask = self._commands[_FIELDS * self.pc : _FIELDS * (self.pc + 1)]
            error = self._step(op, addr, data, mask)
            if error:
                self._stop(error, addr)
            elif self.busy and self.pc == self.desc.ncmd - 1:
                self._stop(EngineError.NO_DONE, addr)
            elif self.busy:
                self.pc += 1

    def _step(self, op: int, addr: int, data: int, mask: int) -> EngineError:
        match op:
            case g.OP_WR:
                good = self._bus_write(addr, data) == Resp.OKAY
                return EngineError.NONE if good else EngineError.WR_RESP
            case g.OP_POLL:
                value, resp = self._bus_read(addr)
                self.polls = (self.polls + 1) & 0xFFFF_FFFF
                if resp != Resp.OKAY:
                    return EngineError.RD_RESP
                return EngineError.NONE if value & mask == data else EngineError.POLL_LIMIT
            case g.OP_DONE:
                self.code = data
                self.busy, self.done = False, True
                return EngineError.NONE
        return EngineError.BAD_OP

    def _stop(self, error: EngineError, addr: int) -> None:
        self.err, self.err_addr = error, addr & 0xFFFF_FFFF
        self.busy, self.done = False, True

# SPDX-License-Identifier: Apache-2.0
"""One mesh of the machine at instruction level: the functional model behind the `model` transport.

Everything a host can do is here: 64-bit control accesses, memory accesses, and complete rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from kohakuabi.commands import build_round
from kohakuabi.steps import Await, Kick, Step
from kohakutpu.isa import generated as g
from kohakutpu.isa import message, registers
from kohakutpu.model.adapter import Adapter
from kohakutpu.model.agent import MemoryAgent, MemoryPath
from kohakutpu.model.cluster import Cluster
from kohakutpu.model.description import CLUSTER, VECTOR, MachineDescription, Node
from kohakutpu.model.endpoint import ExternalEndpoint
from kohakutpu.model.engine import Engine, Resp
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.mover import Mover
from kohakutpu.model.orchestrator import Orchestrator
from kohakutpu.model.results import NodeResult, RoundResult
from kohakutpu.model.shell import Shell, ShellParams
from kohakutpu.model.vector import ShellLink, VectorUnit

LAYER = "L0"

_OPS = {"WR": g.OP_WR, "POLL": g.OP_POLL, "DONE": g.OP_DONE}
_POLL_LIMIT = 4096
_HOST_MEM_SHIFT = 40
_INCR, _SIZE_WORD = 1, 5


class Endpoint(Protocol):
    """Anything on a mesh link."""

    def take(self, flit: Flit) -> None:
        """One flit."""

    def take_burst(self, burst: DataBurst) -> None:
        """One well-framed CU_DATA burst."""


class Machine:
    """The machine `spec`, just after reset with zeroed memory.

    `units` adds unit models: type -> factory that attaches a unit to its shell. A unit type without a model
    is an :class:`ExternalEndpoint`. `observer(node, event)` sees what the units send.
    """

    def __init__(
        self,
        spec: MachineDescription,
        units: Mapping[str, Callable[[Shell], object]] | None = None,
        observer: Callable[[Node, object], None] | None = None,
    ) -> None:
        self.spec = spec
        self.clusters: dict[Node, Cluster] = {}
        self.vectors: dict[Node, VectorUnit] = {}
        self.shells: dict[Node, Shell] = {}
        self.externals: dict[Node, ExternalEndpoint] = {}
        self.adapters: dict[Node, Adapter] = {}
        self._observer = observer
        self._endpoints: dict[Node, Endpoint] = {}
        self.agent = MemoryAgent(spec, self.deliver, self._control_flit if spec.hub else None, self._lost)
        for port in spec.mem_ports:
            self._endpoints[port] = _Port(self.agent, port)
        factories = {CLUSTER: self._add_cluster, VECTOR: self._add_vector, **(units or {})}
        for kind, places in spec.units.items():
            for place in places:
                self._add_unit(kind, place, factories.get(kind))
        for place in spec.external:
            self._add_external(place)
        nodes = [*self.shells, *self.externals]
        self.orch = Orchestrator(spec, self.deliver, self.agent, nodes)
        self.mover = Mover(self.agent, granule="xform_granule" in spec.features)
        if spec.mover:
            self.orch.aux = self.mover
        if not spec.hub:
            self._endpoints[spec.orch] = _Controller(self.orch)
        self.engine = Engine(spec, self._bus_write, self._bus_read)

    def _add_unit(self, kind: str, place: Node, factory: Callable[[Shell], object] | None) -> None:
        if factory is None:
            self._add_external(place)
            return
        params = ShellParams(
            self.spec.inst_depth.get(kind, g.INST_DEPTH),
            self.spec.max_inflight.get(kind, g.MAX_INFLIGHT),
            self.spec.cu_version,
        )
        lines = self.spec.adapter_lines.get(kind, 0)
        path: MemoryPath = self.agent
        if lines:
            path = self.adapters[place] = Adapter(place, self.agent, self.deliver, self._into(place), lines)
        shell = Shell(place, self.spec.port_of(place), self, path, params)
        factory(shell)
        self.shells[place] = shell
        self._endpoints[place] = _Adapted(self.adapters[place], shell) if lines else shell

    def _into(self, place: Node) -> Callable[[int], None]:
        """What an adapter hands a flit for its unit to."""
        return lambda value: self.shells[place].take(Flit(value))

    def _add_cluster(self, shell: Shell) -> None:
        self.clusters[shell.pos] = Cluster(shell, self.spec.cluster)

    def _add_vector(self, shell: Shell) -> None:
        unit = VectorUnit(ShellLink(shell), self.spec.vector.mx_store)
        shell.attach(unit)
        self.vectors[shell.pos] = unit

    def _add_external(self, place: Node) -> None:
        endpoint = ExternalEndpoint(place, self, {0: g.VC_L1_WORDS})
        self.externals[place] = self._endpoints[place] = endpoint

    # ------------------------------------------------------------ mesh

    def exit_of(self, dst: Node) -> Node:
        """Endpoint coordinate a flit to `dst` reaches: outside values clamp, corners leave horizontally."""
        nx, ny = self.spec.nx, self.spec.ny
        x, y = min(dst[0], nx + 1), min(dst[1], ny + 1)
        if not 1 <= x <= nx:
            y = min(max(y, 1), ny)
        return x, y

    def deliver(self, value: int) -> None:
        """Route one 288-bit flit to its endpoint; a port without one discards it."""
        flit = Flit(value)
        endpoint = self._endpoints.get(self.exit_of(flit.dst))
        if endpoint is None:
            self._lost(value)
        else:
            endpoint.take(flit)

    def deliver_burst(self, burst: DataBurst) -> None:
        """Route one well-framed CU_DATA burst."""
        endpoint = self._endpoints.get(self.exit_of(burst.dst))
        if endpoint is None:
            self._lost(0)
        else:
            endpoint.take_burst(burst)

    def observe(self, node: Node, event: object) -> None:
        """Pass an event of a unit to the observer."""
        if self._observer is not None:
            self._observer(node, event)

    def _lost(self, _value: int) -> None:
        self.orch.lost()

    def _control_flit(self, flit: Flit) -> None:
        self.orch.take(flit)

    # ------------------------------------------------------------ host

    def host_write(self, addr: int, data: int, strobe: int = 0xFF) -> Resp:
        """One 64-bit write below 4 GiB: engine window or orchestrator window."""
        window = addr - self.spec.engine_base
        if 0 <= window < g.HOST_CTRL_STRIDE:
            return self.engine.write(window, data, strobe)
        return self._bus_write(addr, data, strobe)

    def host_read(self, addr: int) -> tuple[int, Resp]:
        """One 64-bit read below 4 GiB: (value, response)."""
        window = addr - self.spec.engine_base
        if 0 <= window < g.HOST_CTRL_STRIDE:
            return self.engine.read(window)
        return self._bus_read(addr)

    def register_address(self, name: str, index: int = 0) -> int:
        """Host address of a register of this mesh or of the engine."""
        base = self.spec.engine_base if g.REGISTERS[name][0] == "engine" else self._ctrl_base
        return base + registers.offset(name, index)

    @property
    def _ctrl_base(self) -> int:
        return self.spec.ctrl_base + self.spec.mesh_id * g.HOST_CTRL_STRIDE

    def _bus_write(self, addr: int, data: int, strobe: int = 0xFF) -> Resp:
        offset = addr - self._ctrl_base
        if not 0 <= offset < g.HOST_CTRL_STRIDE:
            return Resp.DECERR
        return Resp.OKAY if self.orch.write(offset, data, strobe) else Resp.SLVERR

    def _bus_read(self, addr: int) -> tuple[int, Resp]:
        offset = addr - self._ctrl_base
        if not 0 <= offset < g.HOST_CTRL_STRIDE:
            return 0, Resp.DECERR
        value, good = self.orch.read(offset)
        return value, Resp.OKAY if good else Resp.SLVERR

    def mem_window_write(
        self,
        addr: int,
        data: bytes,
        strobe: bytes | None = None,
        *,
        burst: int = _INCR,
        size: int = _SIZE_WORD,
    ) -> Resp:
        """A burst of the 256-bit host window at ((mesh+1) << 40) + inside; counted and checked.

        burst, size: AxBURST and AxSIZE.
        """
        if addr >> _HOST_MEM_SHIFT != self.spec.mesh_id + 1:
            return Resp.DECERR
        supported = (burst, size) == (_INCR, _SIZE_WORD)
        return _response(self.agent.host_write(addr & (1 << _HOST_MEM_SHIFT) - 1, data, strobe, supported))

    def mem_window_read(self, addr: int, n: int, *, burst: int = _INCR, size: int = _SIZE_WORD) -> tuple[bytes, Resp]:
        """A read burst of the 256-bit host window: (bytes, response)."""
        if addr >> _HOST_MEM_SHIFT != self.spec.mesh_id + 1:
            return bytes(n), Resp.DECERR
        supported = (burst, size) == (_INCR, _SIZE_WORD)
        fault, data = self.agent.host_read(addr & (1 << _HOST_MEM_SHIFT) - 1, n, supported)
        return data, _response(fault)

    def write_mem(self, addr: int, data: bytes) -> None:
        """Back door: store bytes at a 40-bit address, counting nothing. Raises ValueError outside memory."""
        fault, image, offset = self.agent.check(addr, len(data), aligned=False)
        if fault:
            raise ValueError(f"write_mem: {len(data)} bytes at {addr:#x}: {fault.name}")
        image.write(offset, np.frombuffer(data, dtype=np.uint8))

    def read_mem(self, addr: int, n: int) -> bytes:
        """Back door: n bytes at a 40-bit address. Raises ValueError outside memory."""
        fault, image, offset = self.agent.check(addr, n, aligned=False)
        if fault:
            raise ValueError(f"read_mem: {n} bytes at {addr:#x}: {fault.name}")
        return image.read(offset, n).tobytes()

    # ------------------------------------------------------------ programs

    def stage(self, base: int, payloads: Sequence[int], txn: int = 0, last: bool = True) -> None:
        """Write CU_INST flits into staging slots base..; `last` marks the final one."""
        for n, payload in enumerate(payloads):
            final = last and n == len(payloads) - 1
            flit = message.encode("CU_INST", dst=(0, 0), src=(0, 0), txn=txn, last=int(final)) | payload
            for w, word in enumerate(message.to_words(flit)):
                self.host_write(self.register_address("STAGE", g.FLIT_WORDS * (base + n) + w), word)

    def dispatch(self, node: Node, base: int, payloads: Sequence[int], txn: int = 0) -> NodeResult:
        """Stage one program at slot `base`, seed full credit, kick it; what `node` sent meanwhile.

        Raises ValueError if the kick is refused (ERR_STAT bits 0, 1, 2, 4).
        """
        before = self._node_marks(node)
        self.stage(base, payloads, txn)
        writes = (
            ("PROG_CRED", self.spec.credit_max),
            ("PROG_DST", node[1] << 4 | node[0]),
            ("PROG_BASE", base),
            ("PROG_LEN", len(payloads)),
            ("PROG_KICK", 1),
        )
        refused = self.orch.err_stat & 0x17
        for name, value in writes:
            self.host_write(self.register_address(name), value)
        if self.orch.err_stat & 0x17 & ~refused:
            raise ValueError(
                f"kick of {len(payloads)} flits at slot {base} for {node}: ERR_STAT {self.orch.err_stat:#x}"
            )
        return self._node_result(node, before)

    def run_round(self, steps: Sequence[Step], payloads: Sequence[int], code: int = 0) -> RoundResult:
        """One round through the engine: stage, load, GO (docs/spec/fabric.md 8).

        Slot s holds payloads[s]. The programs of a round carry txn 0, 1, 2.. in kick order. Raises ValueError
        if the commands do not fit the command RAM.
        """
        for txn, kick in enumerate(s for s in steps if isinstance(s, Kick)):
            self.stage(kick.base, payloads[kick.base : kick.base + kick.n], txn & 255)
        awaited = {(s.x, s.y) for s in steps if isinstance(s, Await)}
        expect = {node: self.orch.signal_count(node) for node in awaited}
        commands = build_round(steps, expect, code)
        if len(commands) > self.spec.ncmd:
            raise ValueError(f"round of {len(commands)} commands exceeds the {self.spec.ncmd} slots")
        for n, c in enumerate(commands):
            addr = self.register_address(c.register, c.index) if c.register else 0
            for field, value in enumerate((_OPS[c.op], addr, c.data, c.mask)):
                self.host_write(self.register_address("CMD", 4 * n + field), value)
        self.host_write(self.register_address("ENG_POLL_LIMIT"), _POLL_LIMIT)
        for name in ("ERR_STAT", "MEM_FAULT", "MEM_DROP", "MV_CLEAR"):
            self.host_write(self.register_address(name), (1 << 64) - 1)
        marks = {node: self._node_marks(node) for node in self._nodes}
        counts = {tier: tuple(pair) for tier, pair in self.agent.counts.items()}
        sig_done = self.orch.sig_done
        moves = self.mover.moves
        self.host_write(self.register_address("ENG_CTRL"), 1)
        return RoundResult(
            engine_err=self.engine.err,
            engine_pc=self.engine.pc,
            engine_code=self.engine.code,
            err_stat=self.orch.err_stat,
            err_info=self.host_read(self.register_address("ERR_INFO"))[0],
            run=self.orch.run,
            left=self.orch.left,
            credit=self.orch.credit,
            sig_done=(self.orch.sig_done - sig_done) & 0xFFFF,
            nodes={node: self._node_result(node, mark) for node, mark in marks.items()},
            mem_faults=frozenset(self.agent.faults),
            mem_drop=(self.agent.fault_count, self.agent.orphans, self.agent.control_drops),
            counters={
                tier: ((pair[0] - counts[tier][0]) & 0xFFFF_FFFF, (pair[1] - counts[tier][1]) & 0xFFFF_FFFF)
                for tier, pair in self.agent.counts.items()
            },
            moves=(self.mover.moves - moves) & 0xFF_FFFF,
            mover_fault=self.mover.fault,
            mover_sticky=self.mover.sticky,
        )

    @property
    def _nodes(self) -> list[Node]:
        return [*self.shells, *self.externals]

    def _node_marks(self, node: Node) -> tuple[int, int]:
        if node in self.shells:
            return len(self.shells[node].completions), len(self.shells[node].acks)
        return 0, len(self.externals[node].acks) if node in self.externals else 0

    def _node_result(self, node: Node, marks: tuple[int, int]) -> NodeResult:
        shell = self.shells.get(node)
        acks = shell.acks if shell is not None else self.externals[node].acks
        return NodeResult(
            completions=tuple(shell.completions[marks[0] :]) if shell is not None else (),
            data_received=tuple(acks[marks[1] :]),
            signal_count=self.orch.signal_count(node),
            retired=shell.retired if shell is not None else 0,
            cu_err=shell.sticky if shell is not None else 0,
        )


class _Port:
    """One memory port as an endpoint."""

    def __init__(self, agent: MemoryAgent, pos: Node) -> None:
        self._agent = agent
        self._pos = pos

    def take(self, flit: Flit) -> None:
        self._agent.take(flit, self._pos)

    def take_burst(self, burst: DataBurst) -> None:
        self._agent.take_burst(burst, self._pos)


class _Adapted:
    """A unit behind an L2 adapter."""

    def __init__(self, adapter: Adapter, shell: Shell) -> None:
        self._adapter = adapter
        self._shell = shell

    def take(self, flit: Flit) -> None:
        self._adapter.from_router(flit)

    def take_burst(self, burst: DataBurst) -> None:
        self._shell.take_burst(burst)


class _Controller:
    """The orchestrator at a coordinate of its own."""

    def __init__(self, orch: Orchestrator) -> None:
        self._orch = orch

    def take(self, flit: Flit) -> None:
        self._orch.take(flit)

    def take_burst(self, burst: DataBurst) -> None:
        for value in burst.flits():
            self._orch.take(Flit(value))


def _response(fault: int) -> Resp:
    """Host response of a memory fault (docs/spec/memory.md 7)."""
    if not fault:
        return Resp.OKAY
    decerr = (g.MemFault.M_RSVD, g.MemFault.M_MESH, g.MemFault.M_APER, g.MemFault.M_RANGE)
    return Resp.DECERR if fault in decerr else Resp.SLVERR

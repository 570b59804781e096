# SPDX-License-Identifier: Apache-2.0
"""A small mesh around the reference model for its tests: two clusters, an external endpoint, one memory port.

```
             ext (1,0)
 mem (0,1)  (1,1) orch   (2,1) P    (3,1) Q
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kohakutpu.isa import cluster as isa
from kohakutpu.isa import message
from kohakutpu.model import numerics as num
from kohakutpu.model.cluster import Cluster
from kohakutpu.model.description import ClusterParams, MachineDescription, Node
from kohakutpu.model.endpoint import ExternalEndpoint
from kohakutpu.model.machine import Machine
from kohakutpu.model.messages import DataBurst, ReadRequest, WriteBurst
from kohakutpu.model.shell import Completion

P: Node = (2, 1)
Q: Node = (3, 1)
EXT: Node = (1, 0)
ORCH: Node = (1, 1)
MEM: Node = (0, 1)
A_AT, B_AT, OUT = 0x1_0000, 0x8_0000, 0x10_0000
DRAM_BYTES = 1 << 26


def description(**changes: Any) -> MachineDescription:
    """The mesh of this file; keyword arguments replace fields, `cluster` a dict of cluster parameters."""
    cluster = ClusterParams(**changes.pop("cluster", {}))
    base = MachineDescription(
        "rig",
        2,
        1,
        units={"MG": (P, Q)},
        mem_ports=(MEM,),
        orch=ORCH,
        external=(EXT,),
        dram_bytes=DRAM_BYTES,
        cluster=cluster,
    )
    return replace(base, **changes)


class Rig:
    """A machine, the events its units sent, and short ways to drive it."""

    def __init__(self, **changes: Any) -> None:
        self.events: list[tuple[Node, object]] = []
        self.m = Machine(description(**changes), observer=lambda node, e: self.events.append((node, e)))
        self.ext: ExternalEndpoint = self.m.externals[EXT]
        self.ext.buffers[2] = np.zeros((1024, 32), dtype=np.uint8)

    @property
    def p(self) -> Cluster:
        """The cluster at P."""
        return self.m.clusters[P]

    def inst(self, payload: int, *, last: int = 0, txn: int = 7, node: Node = P) -> Completion:
        """Send one instruction from the orchestrator's coordinate; its completion."""
        done = self.m.shells[node].completions
        before = len(done)
        flit = message.encode("CU_INST", dst=node, src=ORCH, txn=txn, last=last) | payload
        self.m.deliver(flit)
        assert len(done) == before + 1, "every instruction returns exactly one completion"
        return done[-1]

    def ok(self, op: str, *, node: Node = P, **fields: int) -> Completion:
        """Run one instruction that must not fault."""
        done = self.inst(isa.encode(op, raw=False, **fields), node=node)
        assert done.code != 4, f"{op} {fields}: {done.arg:#010x}"
        return done

    def fault(self, payload: int, **how: Any) -> int:
        """Run one instruction that must fault; its argument."""
        done = self.inst(payload, **how)
        assert done.code == 4, f"no fault, argument {done.arg:#x}"
        return done.arg

    def sent(self, kind: type[Any], node: Node = P) -> list[Any]:
        """Events of one kind a node sent."""
        return [e for n, e in self.events if n == node and isinstance(e, kind)]

    def traffic(self) -> int:
        """Number of requests, writes and bursts sent so far."""
        return sum(isinstance(e, ReadRequest | WriteBurst | DataBurst) for _, e in self.events)

    def operands(self, gm: int, gn: int, nk: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Random FP16 matrices as entries in memory; their codes (4*gm, 32*nk) and (4*gn, 32*nk)."""
        rng = np.random.default_rng(seed)
        out = []
        for at, groups, layout in ((A_AT, gm, num.Layout.A), (B_AT, gn, num.Layout.B)):
            codes = num.fp16_codes(rng.standard_normal((4 * groups, 32 * nk)))
            q, scale = num.operand_entries(codes)
            self.m.write_mem(at, num.pack_words(q, scale, layout).tobytes())
            out.append(codes)
        return out[0], out[1]

    def fill_all(self, gm: int, gn: int, nk: int, node: Node = P) -> None:
        """FILL both sides with the whole product, entries group-major from offset 0 of bank 0."""
        for at, groups, sel in ((A_AT, gm, 0), (B_AT, gn, 1)):
            total = groups * nk
            for first in range(0, total, 128):
                n = min(128, total - first)
                self.ok("FILL", node=node, addr=at + 128 * first, n=n, sel=sel, eoff=first)

    def tile_codes(self, addr: int, gm: int, gn: int) -> np.ndarray:
        """FP16 codes (4*gm, 4*gn) of a drained tile."""
        raw = np.frombuffer(self.m.read_mem(addr, 32 * gm * gn), dtype="<u2").reshape(gm, gn, 4, 4)
        return np.ascontiguousarray(raw.transpose(0, 2, 1, 3)).reshape(4 * gm, 4 * gn)

    def burst(self, words: np.ndarray, buf: int, offset: int, *, node: Node = P, **how: Any) -> None:
        """Send a CU_DATA burst from the external endpoint; flags, ack, txn, src may be given."""
        self.m.deliver_burst(
            DataBurst(
                dst=node,
                src=how.get("src", EXT),
                txn=how.get("txn", 0x33),
                rsvd=0,
                buf=buf,
                offset=offset,
                flags=how.get("flags", 1),
                ack=how.get("ack", ORCH),
                words=words,
            )
        )


def codes_to_granules(code: int, subtiles: int = 1) -> np.ndarray:
    """SEND granules of sub-tiles filled with one ACC(14) code."""
    return num.send_granules(np.full((subtiles, 16), code))

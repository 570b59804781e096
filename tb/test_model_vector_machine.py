# SPDX-License-Identifier: Apache-2.0
"""The vector core in a machine: memory, faults, bursts between units, dispatched programs.

docs/spec/vector.md 9 to 11 and 14, docs/spec/fabric.md 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.model_rig import EXT, MEM, ORCH, OUT, P, Q, Rig
from kohakubench.vector_kernels import END, FLAT, FULL, assemble
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import MemFault, MessageType, RejectReason, Signal, VectorError, VectorFault
from kohakutpu.model import numerics as num
from kohakutpu.model.cluster import Cluster
from kohakutpu.model.description import ClusterParams, MachineDescription
from kohakutpu.model.messages import DataBurst, Flit, ReadRequest, WriteBurst, bursts, int_to_word, word_to_int
from kohakutpu.model.shell import Completion

pytestmark = pytest.mark.unit

SRC = 0x2_0000


class CoreRig(Rig):
    """The rig with a vector core in the place of the second cluster."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(units={"MG": (P,), "VC": (Q,)}, **changes)
        self.core = self.m.vectors[Q].core

    def core_inst(self, payload: int, **how: Any) -> Completion:
        return self.inst(payload, node=Q, **how)

    def kernel(self, text: str, at: int = 0) -> None:
        for n, word in enumerate(assemble(text + END)):
            assert self.core_inst(isa.load_word(at + n, word)) == Completion(Signal.INST_COMPLETE, 0, 7)

    def walk(self, ad: int, base: int, *dims: tuple[int, int]) -> None:
        self.core_inst(isa.set_base(ad, base))
        for d in range(4):
            self.core_inst(isa.set_dimension(ad, d, *(dims[d] if d < len(dims) else (0, 1))))

    def go(self, pc: int = 0, **how: Any) -> Completion:
        return self.core_inst(isa.run(pc), **how)


ADD = (
    FLAT
    + FULL
    + "VFILL A0, L1 0; VBAR; VLD.FP16 v0, A1; VLD.FP16 v1, A2; VADD v2, v0, v1; VST.FP16 v2, A3; VDRAIN A4, L1 16"
)


def adding(rig: CoreRig, target: int) -> np.ndarray:
    """The kernel of section 7.11 with random operands; its exact result."""
    rng = np.random.default_rng(1)
    codes = num.fp16_codes(rng.standard_normal(256)).astype("<u2")
    rig.m.write_mem(SRC, codes.tobytes())
    rig.kernel(ADD)
    rig.walk(0, SRC, (32, 16))
    for ad, base in ((1, 0), (2, 8), (3, 16)):
        rig.walk(ad, base, (1, 8))
    rig.walk(4, target, (32, 8))
    values = codes.view(np.float16).astype(np.float64)
    return (values[:128] + values[128:]).astype(np.float16)


def test_kernel_between_memory_and_memory() -> None:
    rig = CoreRig()
    want = adding(rig, OUT)
    assert rig.go() == Completion(Signal.INST_COMPLETE, 0, 7)
    assert rig.m.read_mem(OUT, 256) == want.tobytes()
    assert rig.go(last=1, txn=0x2A) == Completion(Signal.BATCH_COMPLETE, 0x2A, 0x2A)
    reads, writes = rig.sent(ReadRequest, Q), rig.sent(WriteBurst, Q)
    assert [(r.txn, r.addr, r.count) for r in reads] == [(0, SRC, 16)] * 2
    flit = Flit(next(reads[0].flits()))
    assert (flit.type, flit.dst, flit.src, flit.txn, flit.last) == (MessageType.MEM_RD_REQ, MEM, Q, 0, 1)
    assert flit.payload == SRC << 216 | 0x40 << 200 | 16 << 192 | 1 << 158
    assert [(w.txn, w.addr, len(w.words)) for w in writes] == [(1, OUT, 8)] * 2
    single = next(ReadRequest(MEM, Q, 5, SRC, 1, 1).flits())
    assert single & (1 << 256) - 1 == SRC << 216


def test_discovery() -> None:
    rig = CoreRig()
    shell = rig.m.shells[Q]
    assert shell.register(0) >> 48 == 0x5643
    assert shell.register(0) >> 36 & 15 == 1
    assert shell.register(0) >> 8 & 0xFF == 0
    params = {"name": "m", "nx": 1, "ny": 1, "units": {"VC": [(2, 1)]}, "mem_ports": [(0, 1)], "orch": (1, 0)}
    built = MachineDescription.from_dict({**params, "params": {"VC": {"MX_STORE": 1}}})
    assert built.vector.mx_store
    assert not MachineDescription.from_dict(params).vector.mx_store


def test_fault_is_reported_with_last_too() -> None:
    rig = CoreRig()
    rig.kernel("VSETMODE reserved7")
    for last in (0, 1):
        done = rig.go(last=last)
        assert done == Completion(Signal.FAULT, 0x5643_0000 | 3 << 8 | VectorFault.F_ENC, 7)
    assert rig.core_inst(0, last=1) == Completion(Signal.FAULT, 0x5643_0012, 7)


def test_read_error_faults_the_run_and_the_next_one_works() -> None:
    rig = CoreRig()
    want = adding(rig, OUT)
    rig.m.agent.fail_bus(SRC + 64, 32)
    done = rig.go()
    assert done == Completion(Signal.FAULT, 0x5643_0310, 7)
    assert rig.m.shells[Q].sticky & 1 << 3
    assert not any(rig.m.read_mem(OUT, 256))
    rig.m.agent.bus_errors.clear()
    assert rig.go().code == Signal.INST_COMPLETE
    assert rig.m.read_mem(OUT, 256) == want.tobytes()


def test_refused_write_turns_the_run_into_wr_drop() -> None:
    rig = CoreRig()
    want = adding(rig, OUT)
    rig.walk(4, OUT, (32, 5), (256, 2))
    rig.m.agent.fail_bus(OUT + 64, 32)
    done = rig.go()
    assert done == Completion(Signal.FAULT, 0xFAB0_0002 | MemFault.M_BUS << 8, 7)
    # exactly the greedy burst is missing
    assert rig.m.read_mem(OUT, 160) == bytes(160)
    assert rig.m.read_mem(OUT + 256, 96) == want.tobytes()[160:]
    rig.m.agent.bus_errors.clear()
    assert rig.go().code == Signal.INST_COMPLETE


def test_rejected_burst_in_a_machine() -> None:
    rig = CoreRig()
    rig.kernel("VMOV v1, K1")
    rig.burst(np.zeros((2, 32), dtype=np.uint8), 0, 511, node=Q)
    assert rig.m.shells[Q].acks == [1 << 31 | RejectReason.RANGE << 24]
    assert rig.go().arg == 0x5643_0309
    assert rig.go().code == Signal.INST_COMPLETE
    assert rig.m.shells[Q].sticky >> 8 == 1 << VectorError.REJECT


def test_drain_into_a_cluster_and_into_the_core_from_it() -> None:
    """Cluster results as bursts equal the drained image; the epilogue on them equals the staged one."""
    for n, gm, gn in ((1, 1, 1), (8, 2, 4), (9, 3, 3), (64, 8, 8), (256, 16, 16)):
        rig = CoreRig()
        rig.operands(gm, gn, 1)
        rig.fill_all(gm, gn, 1)
        rig.ok("GEMM", gm=gm, gn=gn)
        rig.ok("DRAIN", addr=OUT, n=n)
        node: dict[str, Any] = {
            "dnode": 1,
            "dst_x": Q[0],
            "dst_y": Q[1],
            "dflags": 1,
            "dack_x": ORCH[0],
            "dack_y": ORCH[1],
        }
        rig.ok("DRAIN", n=n, **node)
        assert rig.m.orch.signal_count(Q) == bursts("emit", n)
        image = rig.core.memory.l1[:n].tobytes()
        assert image == rig.m.read_mem(OUT, 32 * n)
        # 128 elements at a time: x * x + 1 in place, then back to memory
        chunk = "VLD.FP16 v0, A1{0}; VFMA v1, v0, v0, K1; VST.FP16 v1, A1{0}\n"
        epilogue = FLAT + FULL + "".join(chunk.format(f"+{8 * c}" if c else "") for c in range(-(-n // 8)))
        fused = epilogue + "VDRAIN A2, L1 0" + END
        rig.kernel(f"{fused}\nVFILL A3, L1 0; VBAR\n{epilogue}VDRAIN A4, L1 0")
        rig.walk(1, 0, (1, 8))
        rig.walk(2, OUT + 0x10000, (32, n))
        rig.walk(3, OUT, (32, n))
        rig.walk(4, OUT + 0x20000, (32, n))
        assert rig.go().code == Signal.INST_COMPLETE
        assert rig.go(len(assemble(fused))).code == Signal.INST_COMPLETE
        result = rig.m.read_mem(OUT + 0x10000, 32 * n)
        assert result == rig.m.read_mem(OUT + 0x20000, 32 * n)
        assert result != image


def test_peer_drain_into_a_cluster_buffer() -> None:
    rig = CoreRig()
    codes = num.fp16_codes(np.random.default_rng(2).standard_normal((4, 32)))
    q, scale = num.operand_entries(codes)
    entry = num.pack_words(q, scale, num.Layout.A).reshape(-1, 32)
    rig.core.memory.l1[8 : 8 + len(entry)] = entry
    rig.kernel(f"VDRAIN A0, L1 8 -> node ({P[0]},{P[1]}) buf 0, signal")
    rig.walk(0, ORCH[1] << 20 | ORCH[0] << 16 | 12, (1, len(entry)))
    assert rig.go().code == Signal.INST_COMPLETE
    cluster = rig.p
    assert isinstance(cluster, Cluster)
    assert np.array_equal(cluster.l1[0].q[3], q.reshape(-1, 4, 32)[0])
    assert rig.m.orch.signal_count(P) == 1
    (sent,) = rig.sent(DataBurst, Q)
    assert (sent.txn, sent.rsvd, sent.flags, sent.ack) == (0, 0, 1, ORCH)


def test_remote_burst_is_dropped_without_an_interlink() -> None:
    rig = CoreRig()
    rig.kernel(f"VDRAIN A0, L1 0 -> node ({MEM[0]},{MEM[1]}) buf 0, signal")
    rig.walk(0, isa.peer_base(off=4, ack_x=1, ack_y=1, mesh=2, fin_x=3, fin_y=1), (1, 3))
    assert rig.go().code == Signal.INST_COMPLETE
    (sent,) = rig.sent(DataBurst, Q)
    for flit in sent.flits():
        assert (flit >> 260 & 0xFF, flit >> 256 & 7) == (0x13, 4 | 2)
    assert {f.code for f in rig.m.agent.faults} == {MemFault.M_REMOTE}


def test_a_dispatched_program() -> None:
    rig = CoreRig()
    want = adding(rig, OUT)
    words = [isa.load_word(n, word) for n, word in enumerate(assemble(ADD + END))]
    result = rig.m.dispatch(Q, 0, [*words, isa.run(0)], txn=3)
    assert [c.code for c in result.completions] == [Signal.INST_COMPLETE] * len(words) + [Signal.BATCH_COMPLETE]
    assert result.retired == rig.m.shells[Q].retired
    assert rig.m.read_mem(OUT, 256) == want.tobytes()


def test_unmatched_response_in_a_machine() -> None:
    rig = CoreRig()
    rig.kernel("VMOV v1, K1")
    rig.m.deliver(message.encode("MEM_RD_RESP", dst=Q, src=MEM, txn=3, last=1) | word_to_int(int_to_word(5)))
    assert not rig.core.memory.l1.any()
    assert rig.go().arg == 0x5643_0388
    assert rig.go().code == Signal.INST_COMPLETE


def test_an_endpoint_without_a_core_stays_external() -> None:
    rig = CoreRig(cluster={"tiles": 16})
    assert set(rig.m.externals) == {EXT}
    assert rig.m.spec.cluster == ClusterParams(tiles=16)
    assert set(rig.m.vectors) == {Q}

# SPDX-License-Identifier: Apache-2.0
"""The vector core as a unit: envelope, traffic, bursts, events, MXFP7 store.

docs/spec/vector.md 2, 9 to 11 and 15. Its place in a machine: test_model_vector_machine.py.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from kohakubench.model_rig import MEM
from kohakubench.numeric_vectors import VECTORS
from kohakubench.vector_kernels import END, FLAT, FULL, assemble
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.isa.faults import explain_fault
from kohakutpu.isa.generated import MessageType, RejectReason, Signal, VectorError, VectorFault
from kohakutpu.model import numerics as num
from kohakutpu.model.messages import DataBurst, Flit
from kohakutpu.model.shell import Retirement
from kohakutpu.model.vector import Descriptor, PlainLink, VectorUnit

pytestmark = pytest.mark.unit

ISA = json.loads((VECTORS.parent / "vector_isa.json").read_text())
RUN, IMEM = 3, 1
SRC = 0x2_0000


def fault(code: VectorFault, op: int = RUN) -> Retirement:
    """Retirement of a faulting instruction."""
    return Retirement(True, 0x5643_0000 | op << 8 | code, True)


GOOD = Retirement(False, 0, True)


def unit(**options: Any) -> tuple[VectorUnit, PlainLink]:
    """A core alone; bursts to its own coordinate come back."""
    link = PlainLink((2, 1))
    made = VectorUnit(link, **options)
    link.loopback = made.receive_burst
    return made, link


def load(u: VectorUnit, text: str, at: int = 0) -> None:
    """Write a kernel and its VHALT into instruction memory."""
    u.core.write_imem(at, assemble(text + END))


def pattern(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, 32), dtype=np.uint8)


def describe(u: VectorUnit, ad: int, base: int, stride: int = 32, bound: int = 1) -> None:
    u.core.memory.descriptors[ad] = Descriptor(base, [stride, 0, 0, 0], [bound, 1, 1, 1])


# ------------------------------------------------------------------ envelope


def test_payload_examples_of_the_isa_tables() -> None:
    u, _ = unit()
    for row in ISA["examples"]["payloads"]:
        text, payload = row["asm"], int(row["payload"], 16)
        if text.startswith("RUN"):
            u.core.imem[:] = isa.encode("VHALT")
        assert u.execute(payload) == GOOD, text
    assert u.core.imem[5] == isa.encode("VHALT")
    descriptors = u.core.memory.descriptors
    assert descriptors[3].base == 0x80_1234_5680
    assert (descriptors[0].strides[0], descriptors[0].bounds[0]) == (32, 16)
    assert (descriptors[7].strides[3], descriptors[7].bounds[3]) == (-64, 5)


def test_imem_and_run_at_both_ends() -> None:
    u, _ = unit()
    halt = isa.encode("VHALT")
    for addr in (0, 511):
        assert u.execute(isa.load_word(addr, halt)) == GOOD
        assert u.core.imem[addr] == halt
        assert u.execute(isa.run(addr)) == GOOD
    assert u.core.imem.sum() == 2 * halt
    assert u.execute(isa.run(1)) == GOOD  # 510 moves of a register to itself, then the second VHALT
    assert u.execute(isa.load_word(511, 0)) == GOOD
    assert u.execute(isa.run(1)) == fault(VectorFault.F_PC)


def test_every_descriptor_field() -> None:
    u, _ = unit()
    for ad in range(8):
        for bit in (0, 33, 34, 39):
            assert u.execute(isa.set_base(ad, 1 << bit)) == GOOD
            assert u.core.memory.descriptors[ad].base == 1 << bit
        for dim in range(4):
            for stride, bound in ((-131072, 65535), (131071, 0), (-1, 1)):
                payload = isa.set_dimension(ad, dim, stride, bound) | 0x3F << 63  # value_hi is ignored
                assert u.execute(payload) == GOOD
                d = u.core.memory.descriptors[ad]
                assert (d.strides[dim], d.bounds[dim]) == (stride, bound)
    before = [(d.base, list(d.strides), list(d.bounds)) for d in u.core.memory.descriptors]
    for fld in (5, 6, 7):
        payload = isa.encode_envelope("DESC", ad=2, fld=fld, value=0x3_FFFF_FFFF)
        assert u.execute(payload) == fault(VectorFault.F_ENV, 2)
    assert before == [(d.base, d.strides, d.bounds) for d in u.core.memory.descriptors]


def test_unknown_envelope_opcodes() -> None:
    u, _ = unit()
    for op in (0, *range(4, 16)):
        assert u.execute(op << 252 | 0x1234) == fault(VectorFault.F_ENV, op)
    assert not u.core.imem.any()
    assert "F_ENV" in explain_fault(u.execute(0).result)


def test_debug_register_describes_the_last_fault() -> None:
    u, _ = unit()
    load(u, "VMOV v1, v0; VMOV v1, C")
    assert u.debug() == 0
    assert u.execute(isa.run(0)) == fault(VectorFault.F_CHAIN)
    assert u.debug() == 1 << 63 | 1 << 48 | VectorFault.F_CHAIN << 32
    assert u.execute(isa.run(2)) == GOOD
    assert u.debug() == 1 << 63 | 1 << 48 | VectorFault.F_CHAIN << 32
    u.execute(0)
    assert u.debug() == 1 << 63 | VectorFault.F_ENV << 32
    # a chain group is one instruction: its first word is reported
    load(u, "VSETMODE D4; VMOV v1, v0; VMOV v1, C {sb=3 sc=3}; VHALT")
    assert u.execute(isa.run(0)) == fault(VectorFault.F_OPCODE)
    assert u.debug() >> 48 & 0x1FF == 1


# ------------------------------------------------------------------ memory traffic


def test_requests_of_a_fill() -> None:
    u, link = unit()
    image = pattern(300)
    link.image.write(SRC, image.reshape(-1))
    load(u, "VFILL A0, L1 150; VBAR")
    describe(u, 0, SRC, bound=256)
    assert u.execute(isa.run(0)) == GOOD
    # tags are the low eight bits of the L1 word, and a run does not wrap them
    assert link.reads == [(150, SRC, 106), (0, SRC + 106 * 32, 150)]
    assert np.array_equal(u.core.memory.l1[150:406], image[:256])
    link.reads.clear()
    describe(u, 0, SRC, bound=256)
    load(u, "VFILL A0, L1 256; VBAR")
    assert u.execute(isa.run(0)) == GOOD
    assert [n for _, _, n in link.reads] == [255, 1]


@pytest.mark.parametrize("n", [1, 8, 128, 255, 256])
def test_every_position_of_a_fill(n: int) -> None:
    image = pattern(n, n)
    for l1 in range(0, 513 - n, 1 if n > 200 else 7):
        u, link = unit()
        link.image.write(SRC, image.reshape(-1))
        describe(u, 0, SRC, bound=n)
        describe(u, 1, SRC + 0x10000, bound=n)
        load(u, f"VFILL A0, L1 {l1}; VBAR; VDRAIN A1, L1 {l1}")
        assert u.execute(isa.run(0)) == GOOD
        assert np.array_equal(u.core.memory.l1[l1 : l1 + n], image)
        assert u.core.memory.l1.any(axis=1).sum() <= n
        assert link.image.read(SRC + 0x10000, 32 * n).tobytes() == image.tobytes()


def test_write_bursts_are_greedy_along_the_walk() -> None:
    u, link = unit()
    u.core.memory.l1[:] = pattern(512)
    load(u, "VDRAIN A0, L1 7")
    u.core.memory.descriptors[0] = Descriptor(SRC, [32, 0x1000, 0, 0], [11, 2, 1, 1])
    assert u.execute(isa.run(0)) == GOOD
    assert [(address, len(words)) for address, words in link.writes] == [
        (SRC, 8),
        (SRC + 0x100, 3),
        (SRC + 0x1000, 8),
        (SRC + 0x1100, 3),
    ]
    assert np.array_equal(np.concatenate([w for _, w in link.writes]), u.core.memory.l1[7:29])
    # the walk 32, 64, 0: consecutive words join whatever dimension they come from
    link.writes.clear()
    u.core.memory.descriptors[0] = Descriptor(SRC, [32, 64, 0, 0], [2, 2, 1, 1])
    assert u.execute(isa.run(0)) == GOOD
    assert [(address, len(words)) for address, words in link.writes] == [(SRC, 4)]
    link.writes.clear()
    u.core.memory.descriptors[0] = Descriptor((1 << 40) - 64, [32, 0, 0, 0], [5, 1, 1, 1])
    assert u.execute(isa.run(0)) == fault(VectorFault.F_ADDR)
    assert [(address, len(words)) for address, words in link.writes] == [((1 << 40) - 64, 2)]


def test_watchdog_takes_the_place_of_a_read_error() -> None:
    u, link = unit()
    load(u, "VFILL A0, L1 0; VMOV v1, K1; VBAR; VMOV v1, K2")
    describe(u, 0, SRC, bound=4)
    link.read_errors, link.lost = {SRC}, {SRC + 96}
    assert u.execute(isa.run(0)) == fault(VectorFault.F_WDOG)
    assert link.errors == 1 << VectorError.FILL_WDOG
    assert u.core.v[1].tolist() == [0x3F8000] * 128
    link.lost = set()
    assert u.execute(isa.run(0)) == fault(VectorFault.F_MEM_RD)
    link.read_errors = set()
    assert u.execute(isa.run(0)) == GOOD


def test_bad_words_end_with_the_run() -> None:
    u, link = unit()
    load(u, "VFILL A0, L1 8; VHALT")
    load(u, FLAT + FULL + "VLD.FP16 v1, A1", 100)
    describe(u, 0, SRC, bound=4)
    describe(u, 1, 0, 1, 16)
    link.read_errors = {SRC + 32}
    assert u.execute(isa.run(0)) == fault(VectorFault.F_MEM_RD)
    assert u.core.memory.undefined.nonzero()[0].tolist() == [8, 9, 10, 11]
    assert u.execute(isa.run(100)) == GOOD


# ------------------------------------------------------------------ CU_DATA and asynchronous events


def burst(words: np.ndarray, offset: int = 0, **how: Any) -> DataBurst:
    fields: dict[str, Any] = {"dst": (2, 1), "src": (3, 1), "txn": 9, "rsvd": 0, "buf": 0, "flags": 1, "ack": (0, 0)}
    return DataBurst(offset=offset, words=words, **(fields | how))


def ack_of(flit: int) -> tuple[tuple[int, int], int, int]:
    """(destination, txn, argument) of a DATA_RECEIVED flit."""
    f = Flit(flit)
    assert (f.type, f.src, f.last, f.payload >> 248) == (MessageType.CU_SIGNAL, (2, 1), 1, Signal.DATA_RECEIVED)
    return f.dst, f.txn, f.payload >> 216 & 0xFFFF_FFFF


@pytest.mark.parametrize(("offset", "n"), [(0, 1), (511, 1), (0, 256), (256, 256), (100, 8)])
def test_accepted_burst(offset: int, n: int) -> None:
    u, link = unit()
    words = pattern(n)
    u.receive_burst(burst(words, offset, ack=(1, 1)))
    assert np.array_equal(u.core.memory.l1[offset : offset + n], words)
    assert u.core.memory.l1.any(axis=1).sum() == n
    assert [ack_of(flit) for flit in link.acks] == [((1, 1), 9, 0)]
    u.core.imem[0] = isa.encode("VHALT")
    assert u.execute(isa.run(0)) == GOOD
    assert link.errors == 0
    u.receive_burst(burst(words, offset, flags=0))
    assert len(link.acks) == 1


REJECTS = [
    (burst(pattern(2), 511), RejectReason.RANGE),
    (burst(pattern(1), 512), RejectReason.RANGE),
    (burst(pattern(256), 257), RejectReason.RANGE),
    (burst(pattern(256), 65535), RejectReason.RANGE),
    *((burst(pattern(3), 5, buf=buf), RejectReason.UNKNOWN_BUF) for buf in (1, 2, 3, 255)),
]


@pytest.mark.parametrize(("bad", "reason"), REJECTS)
def test_rejected_burst(bad: DataBurst, reason: RejectReason) -> None:
    u, link = unit()
    load(u, FLAT + FULL + "VMOV v1, K1")
    u.receive_burst(bad)
    assert not u.core.memory.l1.any()
    assert [ack_of(flit) for flit in link.acks] == [((3, 1), 9, 1 << 31 | reason << 24 | bad.buf)]
    assert link.errors == 1 << VectorError.REJECT
    # IMEM and DESC do not report it, the next RUN does, once, without executing a word
    assert u.execute(isa.load_word(300, 7)) == GOOD
    assert u.execute(isa.set_base(1, 64)) == GOOD
    assert u.execute(isa.run(0)) == fault(VectorFault.F_CUDATA)
    assert not u.core.v.any()
    assert u.execute(isa.run(0)) == GOOD
    assert u.core.v[1].all()


def test_first_event_is_kept_and_waits_for_a_run() -> None:
    u, link = unit()
    u.core.imem[:] = isa.encode("VHALT")
    response = Flit(message.encode("MEM_RD_RESP", dst=(2, 1), src=MEM, txn=7, last=1))
    u.receive(response)
    u.receive_burst(burst(pattern(1), buf=1))
    assert link.errors == 1 << VectorError.RESP | 1 << VectorError.REJECT
    assert u.execute(isa.run(5)) == fault(VectorFault.A_RESP)
    assert u.debug() == 1 << 63 | 5 << 48 | VectorFault.A_RESP << 32
    assert u.execute(isa.run(0)) == GOOD


def test_framing_by_flits() -> None:
    u, link = unit()
    u.core.imem[0] = isa.encode("VHALT")
    words = pattern(4)
    first, *data = list(burst(words, 8).flits())
    # the flit that disagrees is stored, later ones are not
    early = data[1] | 1 << 259
    for value in (first, data[0], early, data[2], data[3]):
        u.receive(Flit(value))
    assert np.array_equal(u.core.memory.l1[8:10], words[:2])
    assert not u.core.memory.l1[10:].any()
    assert [ack_of(flit)[2] for flit in link.acks] == [1 << 31 | RejectReason.LAST_MISMATCH << 24]
    assert u.execute(isa.run(0)) == fault(VectorFault.F_CUDATA)
    # a second sender is rejected, a third one dropped, the first unaffected
    link.acks.clear()
    a, b, c = (list(burst(words, 20, src=(x, 1), ack=(x, 2)).flits()) for x in (3, 4, 5))
    for value in (a[0], b[0], a[1], c[0], b[1], a[2], a[3], b[2], a[4], b[3], b[4]):
        u.receive(Flit(value))
    assert np.array_equal(u.core.memory.l1[20:24], words)
    assert [ack_of(flit)[::2] for flit in link.acks] == [
        ((3, 2), 0),
        ((4, 2), 1 << 31 | RejectReason.SECOND_SENDER << 24),
    ]
    assert link.errors >> VectorError.THIRD & 1


def test_burst_to_itself() -> None:
    u, link = unit()
    u.core.memory.l1[:8] = pattern(8)
    u.core.memory.descriptors[0] = Descriptor(0x40, [1, 0, 0, 0], [8, 1, 1, 1])
    load(u, "VDRAIN A0, L1 0 -> node (2,1) buf 0, signal")
    assert u.execute(isa.run(0)) == GOOD
    assert np.array_equal(u.core.memory.l1[64:72], u.core.memory.l1[:8])
    assert [ack_of(flit)[0] for flit in link.acks] == [(2, 1)]
    # a rejected one is reported by the next RUN, not by this one
    load(u, "VDRAIN A0, L1 0 -> node (2,1) buf 3; VMOV v1, K1")
    assert u.execute(isa.run(0)) == GOOD
    assert u.core.v[1].all()
    assert u.execute(isa.run(0)) == fault(VectorFault.F_CUDATA)


# ------------------------------------------------------------------ MXFP7 store


@pytest.mark.parametrize("entries", [1, 31, 32])
@pytest.mark.parametrize("layout", list(num.Layout))
def test_mx_store_to_memory_and_peer(entries: int, layout: num.Layout) -> None:
    u, link = unit(mx_store=True)
    codes = num.fp16_codes(np.random.default_rng(entries).standard_normal((512, 16)))
    u.core.memory.l1[:] = codes.astype("<u2").view(np.uint8)
    want = num.quantise_entries(u.core.memory.l1[16 : 16 + 8 * entries].reshape(-1, 256), layout).reshape(-1, 32)
    u.core.memory.descriptors[0] = Descriptor(SRC, [128, 0, 0, 0], [entries, 1, 1, 1])
    load(u, f"VDRAIN A0, L1 16 {{mx=1 buf={layout.value}}}")
    assert u.execute(isa.run(0)) == GOOD
    assert link.image.read(SRC, 128 * entries).tobytes() == want.tobytes()
    assert [len(words) for _, words in link.writes] == [8] * (entries // 2) + [4] * (entries % 2)
    u.core.memory.descriptors[0] = Descriptor(0x200, [1, 0, 0, 0], [entries, 1, 1, 1])
    load(u, f"VDRAIN A0, L1 16 -> node (3,1) buf {layout.value} {{mx=1}}")
    assert u.execute(isa.run(0)) == GOOD
    (sent,) = link.bursts
    assert np.array_equal(sent.words, want)
    assert (sent.offset, sent.buf) == (0x200, layout)
    assert link.errors == 0


def test_mx_store_limits() -> None:
    u, link = unit(mx_store=True)
    assert u.features == 1

    def outcome(text: str, bound: int) -> Retirement:
        u.core.memory.descriptors[0] = Descriptor(0, [128, 0, 0, 0], [bound, 1, 1, 1])
        load(u, text)
        return u.execute(isa.run(0))

    assert outcome("VDRAIN A0, L1 0 {mx=1}", 33) == fault(VectorFault.F_LEN)
    assert outcome("VDRAIN A0, L1 505 {mx=1}", 1) == fault(VectorFault.F_L1RANGE)
    assert outcome("VDRAIN A0, L1 504 {mx=1}", 1) == GOOD
    assert outcome("VDRAIN A0, L1 0 {mx=1 buf=2}", 1) == fault(VectorFault.F_ENC)
    assert outcome("VDRAIN A0, L1 0 -> node (3,1) buf 2 {mx=1}", 1) == fault(VectorFault.F_PEER)
    u.core.memory.l1[504, :2] = [0, 0x7C]
    u.core.memory.descriptors[0] = Descriptor((1 << 40) - 160, [128, 0, 0, 0], [3, 1, 1, 1])
    load(u, "VDRAIN A0, L1 488 {mx=1}")  # the infinity is in the third entry, of which nothing is written
    assert u.execute(isa.run(0)) == fault(VectorFault.F_ADDR)
    assert [len(words) for _, words in link.writes][-1] == 5
    assert link.errors == 0
    assert outcome("VDRAIN A0, L1 504 {mx=1}", 1) == GOOD
    assert link.errors == 1 << VectorError.CLAMP

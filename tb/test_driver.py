# SPDX-License-Identifier: Apache-2.0
"""The driver on the model: the await recipe, failures and recovery (docs/spec/fabric.md 8.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

import ktpu
from kohakuabi import Artifact, ArtifactError, Await, Barrier, Kick, Move, Round, Seed
from kohakubench.programs import description, device, operands, reference, result, spec
from kohakudriver import Device, DriverError, Signal, fault_text
from kohakudriver import generated as g
from kohakudriver.registers import address, fields, pack
from kohakutpu.isa import cluster, mover
from kohakutpu.isa.address import staging
from kohakutpu.model.transport import ModelError, ModelTransport
from kohakutpu.walks import contiguous

pytestmark = pytest.mark.unit

NODE = (2, 1)


class Wrapped:
    """A transport that records every control write and may answer differently."""

    def __init__(self, inner: ModelTransport) -> None:
        self.inner = inner
        self.writes: list[tuple[int, int]] = []
        self.answers: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write64(self, writes: Sequence[tuple[int, int]]) -> None:
        self.writes += writes
        self.inner.write64(writes)

    def read64(self, addresses: Sequence[int]) -> list[int]:
        values = self.inner.read64(addresses)
        return [self.answers.get(a, v) for a, v in zip(addresses, values, strict=True)]


def wrapped(clusters: int = 1, **changed: Any) -> tuple[Device, Wrapped]:
    transport = Wrapped(ModelTransport(description(clusters, **changed)))
    return Device(transport), transport


def product(seed: int = 0, budget: int = 16, shape: tuple[int, int, int] = (48, 32, 64)) -> ktpu.Compiled:
    call = ktpu.matmul(*operands(*shape, seed), gm=2, gn=2, nk=1)
    return ktpu.compile(call, spec(description()), pass_budget=budget)


def bits_of(compiled: ktpu.Compiled) -> Any:
    return reference(compiled.call.operands["a"], compiled.call.operands["b"])


def with_payload(art: Artifact, number: int, payload: int) -> Artifact:
    return replace(art, payloads=(*art.payloads[:number], payload, *art.payloads[number + 1 :]))


# -- failures --


@pytest.mark.parametrize("position", range(8))
def test_decode_fault(position: int) -> None:
    """A fault anywhere: the round fails and names it, later rounds do not run, the next run works."""
    compiled = product(budget=8)
    dev = device(description())
    first = len(next(compiled.artifact.rounds()).payloads)
    number = first + position
    bad = with_payload(compiled.artifact, number, 5 << 252)
    seen: list[int] = []
    done = dev.run(bad, on_round=lambda r, _: seen.append(r.index))
    assert done.failed
    assert seen == [0, 1]
    assert not done.rounds[0].failed
    text = "\n".join(done.problems())
    assert f"round 1: node (2, 1): instruction {position} ended in MG fault F_OPCODE (0x01), detail 5" in text
    assert "round 1: ERR_STAT.node_fault" in text
    assert "ERR_INFO: 1 events, the first from node (2, 1), FAULT arg 0x4d470501" in text
    again = dev.run(compiled.artifact)
    assert not again.failed, again.problems()
    assert again.problems() == []
    assert (result(dev, compiled) == bits_of(compiled)).all()


def test_read_outside_memory() -> None:
    """A FILL past the end of memory: F_MEM_RD on it, MEM_FAULT with address and node."""
    body = description(dram_bytes=1 << 20)
    compiled = product()
    bad = with_payload(compiled.artifact, 1, cluster.encode("FILL", sel=1, n=2, addr=1 << 20))
    text = "\n".join(device(body).run(bad).problems())
    assert "instruction 1 ended in MG fault F_MEM_RD (0x10), detail 1" in text
    assert "MEM_FAULT M_RANGE at address 0x100000, node (2, 1)" in text
    assert "node (2, 1): CU_ERR rd_err" in text


def test_write_outside_memory() -> None:
    """A result past the end of memory: WR_DROP on the instruction that owns the write."""
    body = description(dram_bytes=1 << 20)
    compiled = product()
    emit = next(i for i, p in enumerate(compiled.artifact.payloads) if cluster.decode(p)["emit"])
    fields_of = {**cluster.decode(compiled.artifact.payloads[emit]), "addr": 1 << 20}
    bad = with_payload(compiled.artifact, emit, cluster.encode(fields_of.pop("op"), raw=True, **fields_of))
    text = "\n".join(device(body).run(bad).problems())
    owner = next(i for i in range(emit + 1, 99) if cluster.decode(compiled.artifact.payloads[i])["fuse"])
    assert f"instruction {owner} ended in shell fault WR_DROP (0x02), detail {g.MemFault.M_RANGE}" in text
    assert "CU_ERR wr_drop" in text


def test_rejected_burst_and_awaited_burst() -> None:
    """Acknowledgements are awaited on the receiver in a later round; a rejected one fails its round."""
    receiver = (2, 0)
    for buffer, good in ((0, True), (9, False)):
        dev = device(description(2))
        words = [
            cluster.encode("FILL", sel=0, n=1, addr=0),
            cluster.encode("FILL", sel=1, n=1, addr=128),
            cluster.encode("GEMM", gm=1, gn=1),
            cluster.encode(
                "DRAIN", n=1, addr=0, dnode=1, dst_x=2, dst_y=0, dbuf=buffer, dflags=1, dack_x=1, dack_y=1
            ),
        ]
        art = Artifact(
            "hand2",
            "",
            tuple(words),
            (),
            (Seed(32), Kick(*NODE, 0, 4), Await(*NODE, 4), Barrier(), Await(*receiver, 1)),
            limits={"stage_flits": 128, "ncmd": 128, "credit_max": 32},
            meta={"acknowledging": [list(receiver)]},
        )
        done = dev.run(art)
        assert done.failed != good
        assert len(done.rounds) == (2 if good else 1)
        node = next(n for n in done.rounds[0].nodes if n.node == receiver)
        assert len(node.data_received or ()) == 1
        if not good:
            assert any("node (2, 0): burst to buffer 9 rejected, UNKNOWN_BUF" in p for p in done.problems())
            assert any("ERR_STAT.data_reject" in p for p in done.problems())


def test_await_that_is_never_met() -> None:
    """A count that does not come ends at the poll limit, err_code 5, with the command in words."""
    compiled = product()
    dev = device(description())
    dev.load(compiled.artifact)
    r = next(compiled.artifact.rounds())
    short = replace(
        r, steps=tuple(replace(s, count=s.count + 1) if isinstance(s, Await) else s for s in r.steps)
    )
    done = dev.run_round(short)
    assert fields("ENG_CTRL", done.eng_ctrl)["err_code"] == g.EngineError.POLL_LIMIT
    want = (len(r.payloads) + 1) << 8 | 1
    at = f"{done.eng_pc} POLL NODE_STATUS[18]"
    assert done.problems()[0] == f"engine stopped at command {at} mask 0xffff01 want {want:#x}: POLL_LIMIT"
    assert not dev.run(compiled.artifact).failed


def test_stuck_dispatcher_is_aborted() -> None:
    """A dispatch that runs out of credit is aborted; the machine works afterwards."""
    compiled = product()
    dev, transport = wrapped()
    dev.load(compiled.artifact)
    r = next(compiled.artifact.rounds())
    # a program of one instruction keeps its credit for good: nothing is left for the second
    steps = (Seed(1), Kick(*NODE, 0, 1), Kick(*NODE, 1, 1), Await(*NODE, 2))
    done = dev.run_round(Round(0, steps, r.payloads))
    assert done.failed
    assert (address("PROG_ABORT"), 1) in transport.writes
    assert not dev.run(compiled.artifact).failed


def test_kick_of_nobody() -> None:
    """A refused kick fails the round by ERR_STAT."""
    dev = device(description())
    done = dev.run_round(Round(0, (Seed(4), Kick(5, 5, 0, 1), Await(*NODE, 1)), (1 << 252,)))
    assert "ERR_STAT.dst_bad" in done.problems()
    assert not dev.run(product().artifact).failed


# -- the recipe, item by item --


def test_counts_are_read_on_opening() -> None:
    """Item 1: a device opened on a machine that has run before starts from its counts."""
    compiled = product()
    first = device(description())
    for _ in range(3):
        assert not first.run(compiled.artifact).failed
    second = Device(first.transport)
    assert not second.run(compiled.artifact).failed
    assert second._expect[NODE] == 4 * len(compiled.artifact.payloads)


@pytest.mark.slow
def test_counts_wrap_at_sixteen_bits() -> None:
    """Item 1: the cumulative count is 16 bits wide."""
    dev = device(description())
    fill = cluster.encode("FILL", n=1, addr=0)
    r = Round(0, (Seed(32), Kick(*NODE, 0, 128), Await(*NODE, 128)), (fill,) * 128)
    dev._expect[NODE] = 0
    for _ in range(65536 // 128 + 1):
        assert not dev.run_round(r).failed
    assert dev._expect[NODE] == 128


def test_counts_are_read_again_after_a_failure() -> None:
    """Item 1: a round that ended early leaves counts the driver reads, not guesses."""
    compiled = product()
    dev = device(description())
    art = with_payload(compiled.artifact, 0, 0)
    assert dev.run(art).failed
    dev2 = Device(dev.transport)
    assert dev._expect == dev2._expect


def test_registers_before_go() -> None:
    """Item 2: poll limit and cleared errors are written before GO, which is the last write of the upload."""
    compiled = product()
    dev, transport = wrapped()
    dev.load(compiled.artifact)
    transport.writes.clear()
    r = next(compiled.artifact.rounds())
    for cycles, limit in ((0, 4096), (4 * 4096, 4096), (100_000, 8 * 100_000 // 32)):
        transport.writes.clear()
        dev.run_round(r, cycles)
        go = transport.writes.index((address("ENG_CTRL"), 1))
        before = transport.writes[:go]
        assert (address("ENG_POLL_LIMIT"), limit) in before
        assert (address("ERR_STAT"), (1 << 64) - 1) in before
        assert {address("MEM_FAULT"), address("MEM_DROP")} <= {a for a, _ in before}
        assert address("MV_CLEAR") not in {a for a, _ in before}
        assert max(a for a, _ in transport.writes[go + 1 :]) < address("STAGE")


def test_old_errors_do_not_fail_a_round() -> None:
    """Item 2: what was sticky before GO is cleared."""
    dev = device(description())
    dev.transport.write64([(address("PROG_LEN"), 0), (address("PROG_KICK"), 1)])
    assert dev.transport.read64([address("ERR_STAT")])[0] != 0
    assert not dev.run(product().artifact).failed


def test_slots_and_headers() -> None:
    """Staged flits: CU_INST, txn counts programs, last only on the final slot of each."""
    compiled = product(budget=4)
    dev, transport = wrapped()
    dev.load(compiled.artifact)
    r = next(compiled.artifact.rounds())
    dev.run_round(r)
    written = dict(transport.writes)
    kicks = [s for s in r.steps if isinstance(s, Kick)]
    assert len(kicks) > 2
    for number, kick in enumerate(kicks):
        for i in range(kick.n):
            slot = kick.base + i
            flit = sum(written[address("STAGE", 5 * slot + w)] << 64 * w for w in range(5))
            head = fields("FLIT", flit)
            assert head["payload"] == r.payloads[slot]
            assert (head["type"], head["txn"], head["last"]) == (
                g.MessageType.CU_INST,
                number,
                int(i == kick.n - 1),
            )


def test_mover_rounds() -> None:
    """Item 5: a round that moves clears the mover's sticky bits first and fails on them afterwards."""
    dev, transport = wrapped(stage_bytes=2 << 20)
    data = bytes(range(256)) * 2
    dev.write(0x1000, data)
    good = mover.copy(contiguous(0x1000, 16), contiguous(staging(64), 16))
    bad = mover.copy(contiguous(0x1000, 4), contiguous(1 << 38, 4))
    done = dev.run_round(Round(0, (Move(good), Move(good)), ()))
    assert (address("MV_CLEAR"), 3) in transport.writes
    assert not done.failed, done.problems()
    assert dev.read(staging(64), 512) == data
    assert (done.dram_words, done.stage_words) == ((32, 0), (0, 32))
    # the fault of the first move is still seen after the second one
    done = dev.run_round(Round(1, (Move(bad), Move(good)), ()))
    assert done.failed
    assert done.problems() == [
        "MEM_FAULT M_RSVD at address 0x4000000000, requester MOVER",
        "AUX_STAT: a move before the last one faulted, after 3 moves",
    ]
    assert not dev.run_round(Round(2, (Move(good),), ())).failed
    transport.answers = {address("AUX_STAT"): pack("MV_STAT", sticky=1, fault=g.MoverFault.F_RANGE, moves=2)}
    assert dev.run_round(Round(3, (Move(good),), ())).problems() == [
        "AUX_STAT: mover fault F_RANGE after 2 moves"
    ]


def test_signals_of_unknown_sequence() -> None:
    """Without a tap the last signal of a node still tells of its fault."""
    dev, transport = wrapped()
    transport.signals = lambda: None  # type: ignore[method-assign]
    bad = with_payload(product().artifact, 0, 5 << 252)
    last = with_payload(bad, 15, 5 << 252)
    assert dev.run(last).rounds[0].nodes[0].completions is None
    assert any("ERR_INFO: 2 events" in p or "ERR_INFO: 1 events" in p for p in dev.run(bad).problems())


# -- a machine that is not what it says, or does not answer --


@pytest.mark.parametrize(
    ("register", "what"),
    [("CAPS2", "staging slots"), ("ENG_CAPS", "command slots"), ("CAPS2", "orchestrator")],
)
def test_description_is_checked(register: str, what: str) -> None:
    """The registers of the machine have to agree with its description."""
    transport = Wrapped(ModelTransport(description()))
    (value,) = transport.read64([address(register)])
    field = {"staging slots": "stage_flits", "command slots": "ncmd", "orchestrator": "orc_x"}[what]
    transport.answers = {address(register): value ^ pack(register, **{field: 1})}
    with pytest.raises(DriverError, match=f"machine hand1: {what}"):
        Device(transport)


def test_artifact_of_another_machine() -> None:
    """Another name, or the same name with another build, is refused before anything is written."""
    art = product().artifact
    dev, transport = wrapped(2)
    with pytest.raises(DriverError, match="compiled for hand1, this device is hand2; compile it again"):
        dev.run(art)
    assert transport.writes == []
    other = Device(ModelTransport(description()), machine_hash="0" * 32)
    with pytest.raises(ArtifactError, match=f"the target is {'0' * 32}"):
        other.run(art)
    assert not Device(ModelTransport(description()), art.machine_hash).run(art).failed


@pytest.mark.parametrize("what", ["read", "write"])
@pytest.mark.parametrize(("addr", "n"), [(16, 32), (32, 16), (-32, 32), ((1 << 40) - 32, 64)])
def test_unaligned_memory(what: str, addr: int, n: int) -> None:
    dev = device(description())
    with pytest.raises(DriverError, match=f"{what} of {n} bytes at {addr:#x}"):
        dev.read(addr, n) if what == "read" else dev.write(addr, bytes(n))


def test_images_end_anywhere() -> None:
    """The rest of an image's last word is zero."""
    compiled = product()
    (first, *rest) = compiled.artifact.images
    odd = replace(compiled.artifact, images=(replace(first, data=first.data + b"\7\7"), *rest))
    dev = device(description())
    dev.load(odd)
    assert dev.read(first.end, 32) == b"\7\7" + bytes(30)


def test_engine_that_never_stops() -> None:
    dev, transport = wrapped()
    transport.wait_done = lambda limit, progress=None: False  # type: ignore[method-assign]
    with pytest.raises(DriverError, match="round 0: the engine did not stop within"):
        dev.run(product().artifact)


def test_unit_that_does_not_answer() -> None:
    """A described unit that is not there is named."""
    dev = device(description())
    with pytest.raises(DriverError, match=r"unit \(4, 1\) did not answer the read of control register 1"):
        dev.control_read((4, 1), g.ControlIndex.CU_STATUS)


def test_unit_that_stays_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failed round the driver waits for the units, and says which one does not come to rest."""
    dev = device(description())
    monkeypatch.setattr(dev, "control_read", lambda node, index: (1 << 64) - 1)
    with pytest.raises(DriverError, match=r"unit \(2, 1\) is still busy"):
        dev.run(with_payload(product().artifact, 0, 0))


def test_control_registers_by_mailbox() -> None:
    """Discovery registers of every unit, more reads than the tag has values."""
    dev = device(description(3))
    for node in dev.nodes * 100:
        assert dev.control_read(node, g.ControlIndex.CU_CAPS) >> 48 == g.CU_TYPE_CLUSTER


def test_reset_keeps_memory() -> None:
    dev = device(description())
    compiled = product()
    assert not dev.run(compiled.artifact).failed
    before = result(dev, compiled)
    dev.reset()
    assert dev._expect == {NODE: 0}
    assert (result(dev, compiled) == before).all()
    assert not dev.run(compiled.artifact).failed


def test_register_that_does_not_exist() -> None:
    with pytest.raises(ModelError, match="write of 0x1 to 0x10003400 was answered with SLVERR"):
        device(description()).transport.write64([(0x1000_3400, 1)])
    with pytest.raises(ModelError, match="read of 0x10003400"):
        device(description()).transport.read64([0x1000_3400])
    with pytest.raises(IndexError, match="STAGE has 640 elements, index 640"):
        address("STAGE", 640)


def test_words_of_faults_and_signals() -> None:
    """Codes the tables do not know are shown as numbers, never raise."""
    assert fault_text(0x4D47_0205) == "MG fault F_GEMM_A (0x05), detail 2"
    assert fault_text(0xFAB0_0502) == "shell fault WR_DROP (0x02), detail 5"
    assert fault_text(0x1234_00FF) == "0x1234 fault 0xff (0xff), detail 0"
    assert Signal(NODE, 9, 1, 2).text() == "0x09 arg 0x00000001 txn 2"

# SPDX-License-Identifier: Apache-2.0
"""Replay of a program on two devices: one injected difference, one finding that names it.

The second device is the model behind a transport that lies in one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakuabi import Artifact
from kohakubench.programs import description, device, operands, spec
from kohakudriver import Device
from kohakudriver.registers import address, fields, pack
from kohakutpu.isa import cluster, message
from kohakutpu.isa.address import staging
from kohakutpu.model.transport import ModelTransport
from ktpu import cli
from ktpu.replay import ReplayReport, regions, replay

pytestmark = pytest.mark.unit

STAGE = staging(0)
STAGE_BYTES = spec(description()).stage_bytes

NODE = (2, 1)


class Lying:
    """The model with one lie: a memory bit, the value of a register, or a changed signal list."""

    def __init__(self) -> None:
        self.inner = ModelTransport(description())
        self.flip: tuple[int, int] | None = None
        self.registers: dict[int, int] = {}
        self.change: Any = lambda flits: flits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def mem_read(self, at: int, n: int) -> bytes:
        data = bytearray(self.inner.mem_read(at, n))
        if self.flip and at <= self.flip[0] < at + n:
            word = self.flip[0] - at
            data[word + self.flip[1] // 8] ^= 1 << self.flip[1] % 8
        return bytes(data)

    def read64(self, addresses: Sequence[int]) -> list[int]:
        values = self.inner.read64(addresses)
        return [v ^ self.registers.get(a, 0) for a, v in zip(addresses, values, strict=True)]

    def signals(self) -> list[int]:
        return list(self.change(self.inner.signals()))


def product(budget: int = 16) -> ktpu.Compiled:
    call = ktpu.matmul(*operands(45, 30, 60), gm=2, gn=2, nk=1)
    return ktpu.compile(call, spec(description()), pass_budget=budget)


def lied(art: Artifact, **lie: Any) -> ReplayReport:
    transport = Lying()
    other = Device(transport)
    for name, value in lie.items():
        setattr(transport, name, value)
    return replay(art, device(description()), other)


def only(report: ReplayReport) -> list[str]:
    """Lines of the only finding."""
    (finding,) = report.findings()
    assert not report.agree
    return finding.text().splitlines()


def test_equal_devices_agree() -> None:
    """Nothing injected: agreement, and everything was looked at."""
    art = product().artifact
    report = lied(art)
    assert report.agree, [f.text() for f in report.findings()]
    assert len(report.rounds) == len(list(art.rounds()))
    assert sum(r.signals for r in report.rounds) == len(art.payloads)
    size = sum(n for _, n in regions(art, 1 << 32, STAGE_BYTES)) // 32
    assert all(r.words == size for r in report.rounds)
    assert report.problems == []


@pytest.mark.parametrize("bit", [0, 77, 255])
@pytest.mark.parametrize("word", [0, 9, 40, -1])
def test_one_memory_bit(bit: int, word: int) -> None:
    """Step, disassembled instruction, node, address, element, expected, got and bit."""
    compiled = product()
    (out,) = compiled.artifact.outputs
    at = out.address + 32 * (word % (out.nbytes // 32))
    # rounds before the one that writes the word see the lie first, in bytes that are still zero
    one_round = replace_by_one_round(compiled)
    lines = only(lied(one_round.artifact, flip=(at, bit)))
    dev = device(description())
    dev.run(one_round.artifact)
    want = int.from_bytes(dev.read(at, 32), "little")
    writer = next(
        p
        for p in one_round.artifact.payloads
        if cluster.decode(p)["emit"] and 0 <= at - cluster.decode(p)["addr"] < 4 * 32
    )
    assert lines[0] == f"memory: 1 words differ, the first at address {at:#x}"
    index = (at - out.address) // 32
    tile, sub = divmod(index, 4)
    row = 8 * (tile // 4) + 4 * (sub // 2) + bit // 16 // 4
    col = 8 * (tile % 4) + 4 * (sub % 2) + bit // 16 % 4
    padding = ", padding" if row >= 45 or col >= 30 else ""
    assert lines[1].split("  ")[-1] == f"c[{row},{col}] of shape [45, 30]{padding}"
    assert (
        f"round 0, kick 0 to node (2,1), instruction {one_round.artifact.payloads.index(writer)}: "
        in lines[2]
    )
    assert lines[2].endswith(cluster.disasm(writer))
    assert lines[3].endswith(f"{want:064x}")
    assert lines[4].endswith(f"{want ^ 1 << bit:064x}")
    assert lines[5].split() == ["bits", str(bit)]


def replace_by_one_round(compiled: ktpu.Compiled) -> ktpu.Compiled:
    whole = ktpu.compile(compiled.call, spec(description(), stage_flits=4096), pass_budget=4096)
    body = {**whole.artifact.limits, "stage_flits": 128}
    assert len(whole.artifact.payloads) <= 128
    return replace(whole, artifact=replace(whole.artifact, limits=body))


def test_bit_outside_the_result() -> None:
    """A stray write beside a buffer and a damaged operand are noticed too."""
    art = product().artifact
    (out,) = art.outputs
    lines = only(lied(art, flip=(out.address + out.nbytes, 3)))
    assert "outside every buffer" in lines[1]
    assert "no instruction writes this word" in lines[2]
    lines = only(lied(art, flip=(art.images[0].address + 32, 8)))
    assert "operand a at byte 33" in lines[1]


def test_the_flit_of_the_word() -> None:
    """A target with taps shows the flits up to the one that carried the word."""
    art = replace_by_one_round(product()).artifact
    (out,) = art.outputs
    at = out.address + 64

    def write(addr: int, words: int) -> list[int]:
        return [
            message.encode("MEM_WR_REQ", dst=(0, 1), src=NODE, addr=addr, len=words - 1),
            *(message.encode("MEM_WR_DATA", dst=(0, 1), src=NODE, data=i) for i in range(words)),
        ]

    flits = [*write(out.address - 64, 2), *write(out.address, 4), *write(out.address + 128, 2)]
    taps = {"mg_2_1_out": [(100 + i, f) for i, f in enumerate(flits)], "mg_2_1_in": []}
    text = "\n".join(only(lied(art, flip=(at, 0), taps=lambda: taps)))
    assert "link     mg_2_1_out: written by the flit of cycle 106" in text
    assert "MEM_WR_REQ" in text
    missing = {"mg_2_1_out": [(1, f) for f in flits[:3]]}
    text = "\n".join(only(lied(art, flip=(at, 0), taps=lambda: missing)))
    assert "no write of this word among its last 3 flits" in text


def test_one_argument_of_a_signal() -> None:
    """Node, number, instruction, both signals and the bit of the argument."""
    art = product().artifact

    def change(flits: list[int]) -> list[int]:
        return [f ^ 1 << 216 + 5 if i == 3 else f for i, f in enumerate(flits)]

    lines = only(lied(art, change=change))
    assert lines[0] == "completions of node (2,1): number 3 differs"
    assert lines[1].endswith(f"instruction 3: {cluster.disasm(art.payloads[3])}")
    assert "expected INST_COMPLETE arg 0x00000004" in lines[2]
    assert "got      INST_COMPLETE arg 0x00000024" in lines[3]
    assert lines[4].split() == ["bits", "5", "of", "the", "argument"]


def test_lost_and_surplus_signals() -> None:
    art = product().artifact
    for change, want, got in (
        (lambda flits: flits[:-1], "COMPLETE", "nothing"),
        (lambda flits: [*flits, *flits[-1:]], "nothing", "COMPLETE"),
    ):
        (first, *_) = lied(art, change=change).findings()
        text = first.text()
        assert want in text.split("expected")[1].split("got")[0]
        assert got in text.split("got")[1]


def test_one_fault() -> None:
    """A completion turned into a fault is told in words."""
    art = product().artifact

    def change(flits: list[int]) -> list[int]:
        bad = message.encode("CU_SIGNAL", dst=(1, 1), src=NODE, last=1, code=4, arg=0x4D47_0205)
        return [bad if i == 2 else f for i, f in enumerate(flits)]

    text = "\n".join(only(lied(art, change=change)))
    assert f"instruction 2: {cluster.disasm(art.payloads[2])}" in text
    assert "got      FAULT arg 0x4d470205 txn 0: MG fault F_GEMM_A (0x05), detail 2" in text


COUNTERS = [
    ("MEM_DRAMCNT", "written", "dram_words after round 0"),
    ("MEM_STGCNT", "read", "stage_words after round 0"),
    ("PROG_STAT", "credit", "prog_stat after round 0"),
    ("ENG_CODE", None, "eng_code after round 0"),
    ("MEM_FAULT", "code", "mem_fault after round 0"),
    ("MEM_DROP", "orphan", "mem_drop after round 0"),
    ("ERR_STAT", "node_fault", "err_stat after round 0"),
]


@pytest.mark.parametrize(("register", "field", "what"), COUNTERS, ids=[w for *_, w in COUNTERS])
def test_one_counter(register: str, field: str | None, what: str) -> None:
    """One bit of one register after a round: its name, both values."""
    transport = Lying()
    other = Device(transport)
    bit = pack(register, **{field: 1}) if field else 1
    real = transport.read64
    asked = 0

    def read64(addresses: Sequence[int]) -> list[int]:
        # counters are read before and after a round: only the later value lies
        nonlocal asked
        values = real(addresses)
        if address("ENG_CTRL") in addresses:
            asked += 1
            return [v ^ bit if a == address(register) else v for a, v in zip(addresses, values, strict=True)]
        return values

    transport.read64 = read64  # type: ignore[method-assign]
    report = replay(product().artifact, device(description()), other)
    assert asked == 1
    assert [f.what.split(":")[0] for f in report.findings()] == [what]


def test_node_counters() -> None:
    """signal_count by the status mirror; retired and the sticky bits by the mailbox."""
    art = product().artifact
    node = address("NODE_STATUS", 0x12)
    transport = Lying()
    other = Device(transport)
    asked = {"n": 0}
    real = transport.read64

    def read64(addresses: Sequence[int]) -> list[int]:
        values = real(addresses)
        if list(addresses) == [node]:
            asked["n"] += 1
            # the first look is the resync after the reset
            return [values[0] ^ (pack("NODE_STATUS", signal_count=2) if asked["n"] == 2 else 0)]
        return values

    transport.read64 = read64  # type: ignore[method-assign]
    lines = only(replay(art, device(description()), other))
    assert lines[0].startswith("signal_count of node (2,1) after round 0: expected 0x")
    assert lines[1].split() == ["bits", "1"]
    for index, bit, name in ((2, 1 << 33, "retired"), (4, 1 << 2, "err_bits"), (4, 1 << 11, "err_bits")):
        other = device(description())
        honest = other.control_read
        other.control_read = (  # type: ignore[method-assign]
            lambda n, i, index=index, bit=bit, honest=honest: honest(n, i) ^ (bit if i == index else 0)
        )
        assert only(replay(art, device(description()), other))[0].startswith(
            f"{name} of node (2,1) after round 0"
        )


def test_only_the_first_header_may_differ() -> None:
    """CU_ERR.first_hdr is not compared."""
    other = device(description())
    honest = other.control_read
    header = pack("CU_ERR", first_hdr=1)
    other.control_read = (  # type: ignore[method-assign]
        lambda n, i: honest(n, i) ^ (header if i == 4 else 0)
    )
    assert replay(product().artifact, device(description()), other).agree


def test_comparison_stops_at_the_first_round_that_differs() -> None:
    art = product().artifact
    (out,) = art.outputs
    report = lied(art, flip=(out.address, 0))
    assert [r.index for r in report.rounds] == [0]
    assert len(list(art.rounds())) > 1


def test_a_program_that_fails_on_both() -> None:
    """Equal failures agree; the report says what went wrong."""
    art = product().artifact
    bad = replace(art, payloads=(*art.payloads[:2], 7 << 252, *art.payloads[3:]))
    report = lied(bad)
    assert report.agree
    assert len(report.rounds) == 1
    assert any("round 0: node (2, 1): instruction 2 ended in MG fault F_OPCODE" in p for p in report.problems)


def test_used_devices_start_afresh() -> None:
    """Leftovers of an earlier program on one device are no difference."""
    other = device(description())
    other.run(product(8).artifact)
    other.write(product().artifact.outputs[0].address, b"\xff" * 64)
    assert replay(product().artifact, device(description()), other).agree


def test_regions_hold_guards() -> None:
    """Every buffer with 4 KiB on both sides, inside the memory it stands in, whole words, disjoint."""
    art = product().artifact
    found = regions(art, 1 << 32, STAGE_BYTES)
    for low, n in found:
        assert low % 32 == n % 32 == 0
    buffers = [(i.address, i.end) for i in art.images] + [(o.address, o.address + o.nbytes) for o in art.outputs]
    assert {first >= STAGE for first, _ in buffers} == {False, True}
    for first, end in buffers:
        base = STAGE if first >= STAGE else 0
        assert any(low <= max(base, first - 4096) and end + 4096 <= low + n for low, n in found)
    last = max(end for _, end in buffers if end < STAGE)
    assert max(low + n for low, n in regions(art, last + 64) if low < STAGE) == last + 64
    last = max(end for _, end in buffers)
    assert max(low + n for low, n in regions(art, 1 << 32, last + 64 - STAGE)) == last + 64


# -- the command --

runner = CliRunner()


def invoke(*args: str) -> tuple[int, str]:
    """Exit code, and output with line breaks taken out."""
    done = runner.invoke(cli.app, list(args))
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture
def artifact_file(tmp_path: Path) -> Path:
    code, text = invoke("compile", "20", "12", "40", "-o", str(tmp_path / "p.ktpu"))
    assert code == 0, text
    assert "schedule for mm_mesh" in text
    return tmp_path / "p.ktpu"


def test_replay_command_agrees(artifact_file: Path) -> None:
    code, text = invoke("replay", str(artifact_file), "--on", "model:mm_mesh")
    assert code == 0
    assert "AGREE model and model:mm_mesh: 1 rounds;" in text
    assert "0 differing bits" in text


def test_replay_command_differs(artifact_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 1, the finding, and the command that reproduces it."""
    real = ktpu.devices.open
    out = Artifact.load(artifact_file).outputs[0]

    def open_device(target: str, **options: object) -> Device:
        dev = real(target, **options)
        honest = dev.transport.mem_read
        if not opened:
            dev.transport.mem_read = (  # type: ignore[method-assign]
                lambda a, n: (
                    bytes([honest(a, n)[0] ^ 1]) + honest(a, n)[1:]
                    if a <= out.address < a + n
                    else honest(a, n)
                )
            )
        opened.append(target)
        return dev

    opened: list[str] = []
    monkeypatch.setattr(ktpu, "open", open_device)
    code, text = invoke("replay", str(artifact_file), "--on", "model:mm_mesh", "--seed", "5")
    assert code == 1
    assert "memory: 1 words differ" in text
    assert "DIFFER model and model:mm_mesh" in text
    assert "reproduce with waves: ktpu replay" in text
    assert "--seed 5 --waves" in text


def test_replay_command_refuses(tmp_path: Path, artifact_file: Path) -> None:
    """Exit code 2 and one line that says why."""
    (tmp_path / "junk").write_text("junk")
    for args, words in (
        (("replay", str(tmp_path / "junk")), "not an artifact"),
        (("replay", str(tmp_path / "missing")), "No such file"),
        (("replay", str(artifact_file), "--on", "model:nowhere"), "no machine called 'nowhere'"),
        (("replay", str(artifact_file), "--on", "fpga:x"), "target 'fpga:x'; use model:<machine>"),
        (("replay", str(artifact_file), "--on", "model:mm_mesh_ext"), "compiled for mm_mesh,"),
        (("show", str(tmp_path / "junk")), "not an artifact"),
        (("compile", "4", "4", "4", "-o", str(tmp_path / "x"), "--tiling", "1,1"), "zip"),
        (("compile", "0", "4", "4", "-o", str(tmp_path / "x")), "at least 1"),
        (("compile", "4", "4", "4", "-o", str(tmp_path / "x"), "--machine", "nowhere"), "no machine called"),
        (("compile", "4", "4", "4", "-o", str(tmp_path / "no" / "x")), "No such file"),
        (
            ("compile", "4", "4", "4", "-o", str(tmp_path / "x"), "--a", str(tmp_path / "a.npy")),
            "No such file",
        ),
        (("run", str(tmp_path / "none.py")), "does not exist"),
    ):
        code, text = invoke(*args)
        assert code == 2, (args, text)
        assert words in text, (args, text)


def test_operands_from_files(tmp_path: Path) -> None:
    """--a and --b have to fit the product."""
    np.save(tmp_path / "a.npy", np.ones((4, 8)))
    options = ("-o", str(tmp_path / "x.json"), "--a", str(tmp_path / "a.npy"))
    assert invoke("compile", "4", "4", "8", *options)[0] == 0
    code, text = invoke("compile", "4", "4", "9", *options)
    assert code == 2
    assert "holds (4, 8), the product needs (4, 9)" in text


def test_show_command(artifact_file: Path) -> None:
    """Machine, images, results, steps and every payload."""
    code, text = invoke("show", str(artifact_file))
    art = Artifact.load(artifact_file)
    assert code == 0
    for payload in art.payloads:
        assert " ".join(cluster.disasm(payload).split()) in text
    assert "result c: tile:" in text
    assert "Kick(x=2, y=1, base=0" in text


def test_run_command(tmp_path: Path) -> None:
    """The script sees --on and its own options."""
    (tmp_path / "s.py").write_text("import sys\nprint(sys.argv[1:], __name__)\n")
    code, text = invoke("run", str(tmp_path / "s.py"), "--on", "model:mm_mesh", "--images", "3")
    assert code == 0
    assert "['--on', 'model:mm_mesh', '--images', '3'] __main__" in text


def test_open_refuses() -> None:
    """Nothing is substituted for a target that does not open."""
    for target in ("model:", ":x", "rtl", "gpu:0", "mm_store", ""):
        with pytest.raises(ktpu.TargetError, match="use model:<machine> or rtl:<machine>"):
            ktpu.open(target)
    with pytest.raises(ktpu.TargetError, match="the model has one option, span, got waves"):
        ktpu.open("model:mm_mesh", waves=True)
    assert (
        fields("CAPS2", ktpu.open("model:mm_mesh").transport.read64([address("CAPS2")])[0])["stage_flits"]
        == 128
    )

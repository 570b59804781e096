# SPDX-License-Identifier: Apache-2.0
"""Replay of programs that move: the staging store and the mover's status are compared too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kohakuabi import Artifact, Barrier, Image, Move, Output, Round
from kohakubench.programs import description, spec
from kohakubench.two_layers import chained, layers, requantise
from kohakudriver import Device
from kohakudriver.registers import address
from kohakutpu.isa import mover
from kohakutpu.isa.address import staging
from kohakutpu.model.transport import ModelTransport
from kohakutpu.walks import Dim, Walk, contiguous
from ktpu import cli
from ktpu.moving import move_of
from ktpu.replay import GUARD_BYTES, ReplayReport, regions, replay

pytestmark = pytest.mark.unit

STAGE_BYTES = 2 << 20
TEXT = description(1, stage_bytes=STAGE_BYTES)


class Lying:
    """The model with one byte of memory or one register read wrongly."""

    def __init__(self, text: dict[str, Any]) -> None:
        self.inner = ModelTransport(text)
        self.flip: int | None = None
        self.registers: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def mem_read(self, at: int, n: int) -> bytes:
        data = bytearray(self.inner.mem_read(at, n))
        if self.flip is not None and at <= self.flip < at + n:
            data[self.flip - at] ^= 1
        return bytes(data)

    def read64(self, addresses: Sequence[int]) -> list[int]:
        values = self.inner.read64(addresses)
        return [v ^ self.registers.get(a, 0) for a, v in zip(addresses, values, strict=True)]


def program(at: int = staging(0x1000)) -> Artifact:
    """Generate, copy and fill into a result of 4 KiB at ``at``."""
    source = contiguous(0x8000, 64)
    moves = (mover.generate(contiguous(at + 2048, 32), 5), mover.copy(source, contiguous(at, 64)))
    fill = mover.fill(contiguous(at + 3072, 32), 0x1234)
    return Artifact(
        "hand1",
        "",
        (),
        (Image(0x8000, bytes(range(256)) * 8, "x"),),
        (*(Move(m) for m in moves), Barrier(), Move(fill), Barrier()),
        (Output("y", at, 4096, "flat", (1, 2048)),),
        limits={"stage_flits": 128, "ncmd": 128, "credit_max": 32},
    )


def compared(art: Artifact, text: dict[str, Any] = TEXT, **lie: Any) -> ReplayReport:
    transport = Lying(text)
    other = Device(transport)
    for name, value in lie.items():
        setattr(transport, name, value)
    return replay(art, Device(ModelTransport(text)), other)


def test_equal_devices_agree() -> None:
    report = compared(program())
    assert report.agree
    assert [r.words for r in report.rounds] == [(2048 + 4096 + 4 * GUARD_BYTES) // 32] * 2
    assert report.problems == []


def test_regions_of_the_staging_store() -> None:
    """Guards stay inside the store and inside DRAM; both tiers are listed."""
    assert regions(program(), 1 << 20, STAGE_BYTES) == [
        (0x8000 - GUARD_BYTES, 2048 + 2 * GUARD_BYTES),
        (staging(0), 0x1000 + 4096 + GUARD_BYTES),
    ]
    top = program(staging(STAGE_BYTES - 4096))
    assert regions(top, 0x9000, STAGE_BYTES)[1] == (staging(STAGE_BYTES - 8192), 8192)
    moved = replace(program(staging(64, 2)), images=())
    assert regions(moved, 1 << 20, STAGE_BYTES, mesh=2) == [(staging(0, 2), 64 + 4096 + GUARD_BYTES)]


@pytest.mark.parametrize("at", [staging(0x1000), staging(0x1FFF), staging(0x2001), staging(0)])
def test_one_byte_of_the_store(at: int) -> None:
    """In the result and in both guards."""
    (finding,) = compared(program(), flip=at).findings()
    assert f"{at - at % 32:#x}" in finding.text()


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (staging(0x1020), "round 0, move 1: COPY, destination element 1 from 0x8020"),
        (staging(0x1C20), "round 1, move 0: FILL, destination element 1"),
        (staging(0x1800), "round 0, move 0: GENERATE, destination element 0"),
        (staging(0x0FE0), "no instruction writes this word"),
    ],
)
def test_the_move_that_wrote_a_word(at: int, text: str) -> None:
    """Named as the last move of the round that covers the word; the word is told to differ in that round only."""
    art = program()
    if "round 1" in text:
        art = replace(art, steps=(Barrier(), *art.steps[-2:]), images=())
        text = text.replace("round 1", "round 0")
    (finding,) = compared(art, flip=at).findings()
    assert text in finding.text()


def test_moves_of_entries_are_named() -> None:
    """Quantised entries and words of a granule transpose, padding, and a source that is too short."""
    target = contiguous(staging(0), 3, 160)
    quantise = mover.transform(contiguous(0x100, 24), target, mover.QUANTISE)
    granule = mover.transform(contiguous(0x100, 8), contiguous(staging(0x400), 8), mover.GRANULE, 1)
    padded = mover.copy(Walk(0x80, (Dim(4, 32, 1, 1),), ((-1, 2), (0, 0))), contiguous(staging(0x800), 4))
    r = Round(5, (Move(quantise), Move(granule), Move(padded)), ())
    for at, text in (
        (160 + 96, "move 0: XFORM, destination element 1 from 0x200"),
        (0x400 + 5 * 32, "move 1: XFORM, destination element 5 from 0x1a0"),
        (0x800, "move 2: COPY, destination element 0 from 0x80, padding"),
        (0x820, "move 2: COPY, destination element 1 from 0xa0"),
    ):
        assert move_of(r, staging(at)) == f"round 5, {text}"
    assert move_of(r, staging(128)) is None
    late = (mover.write("DIM", walker=1, count=4, stride=32), mover.write("AXIS"))
    moves = (*mover.copy(contiguous(0, 2), contiguous(staging(0), 2))[:-1], *late, (0, 1 << 16))
    assert move_of(Round(0, (Move(moves),), ()), staging(96)) == (
        "round 0, move 0: COPY, destination element 3, beyond its source"
    )
    gone = (*moves[:-1], mover.write("HDR", walker=1, base=staging(0), ndim=7), (0, 1 << 16))
    assert move_of(Round(0, (Move(gone),), ()), staging(96)) is None


@pytest.mark.parametrize(("bit", "what"), [(40, "moves"), (4, "fault"), (2, "nonfinite")])
def test_status_of_the_mover(bit: int, what: str) -> None:
    report = compared(program(), registers={address("AUX_STAT"): 1 << bit})
    assert any(f"aux_stat.{what}" in f.text() for f in report.findings())


def test_staging_traffic() -> None:
    report = compared(program(), registers={address("MEM_STGCNT"): 0})
    assert report.agree
    art = program()
    more = replace(art, steps=(art.steps[0], art.steps[0], *art.steps[1:]))
    model, other = Device(ModelTransport(TEXT)), Device(ModelTransport(TEXT))
    rounds = [model.run_round(next(a.rounds())) for model, a in ((model, art), (other, more))]
    assert rounds[1].stage_words[1] - rounds[0].stage_words[1] == 32


def test_two_layers() -> None:
    """The chained products agree, and a wrong word of the requantised operand is found in its own round."""
    text = description(1, features=("emit_fuse", "xform_granule"), stage_bytes=STAGE_BYTES)
    first, second = layers(text, 0x10_0000)
    art = chained(first.artifact, second.artifact, requantise(first, second, staging(0), spec(text)))
    rows = Output("rows", staging(0), 4096, "flat", (1, 2048))
    art = replace(art, outputs=(*art.outputs, rows))
    report = compared(art, text)
    assert report.agree, [f.text() for f in report.findings()]
    moving = next(r.index for r in art.rounds() if any(isinstance(s, Move) for s in r.steps))
    wrong = compared(art, text, flip=staging(0x20))
    assert not wrong.agree
    assert len(wrong.rounds) <= moving + 1


def test_show_prints_moves(tmp_path: Path) -> None:
    """Steps on one line, then every register write of every move."""
    file = tmp_path / "moves.ktpu"
    program().save(file)
    done = CliRunner().invoke(cli.app, ["show", str(file)])
    assert done.exit_code == 0, done.output
    assert "round 0: Move(7 writes); Move(12 writes)" in done.output
    assert "  move 0  MV_SEED seed=0x5" in done.output
    assert "  move 1  MV_HDR ndim=1 base=0x8000\n" in done.output
    assert "round 1: Move(7 writes)" in done.output

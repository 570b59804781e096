# SPDX-License-Identifier: Apache-2.0
"""Epilogues on the tile where it arrives, and the same through memory (docs/spec/compiler.md 12)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ktpu
from kohakuabi import Await
from kohakubench.epilogues import FORMS, FOUR, ONE, both, counters, operands
from kohakubench.programs import device, reference, run, spec
from kohakutpu.errors import CompileError, EncodeError
from kohakutpu.isa import cluster
from kohakutpu.model.numerics import error_metrics
from kohakutpu.program import Drain, Gemm, UnitProgram, encode, parse, text
from kohakutpu.program.encode import decode, decode_program
from kohakutpu.schedule import Band, VectorBand
from kohakutpu.schedule.layout import ChannelBias

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", FORMS)
def test_fused_equals_staged(name: str) -> None:
    """Every form: fused and staged leave equal bytes, on four cores of each kind."""
    both(FORMS[name], FOUR)


@pytest.mark.parametrize("options", [{"emit_fuse": False}, {"interleave": 1}, {"group": 4}, {"pass_budget": 3}])
def test_choices_change_no_bit(options: dict[str, Any]) -> None:
    """Explicit node drains, one step at a time, chain groups, short passes: the same bits."""
    plain = run(FOUR, ktpu.compile(FORMS["geglu_biases"], spec(FOUR), fuse="require"))
    _, _, got = both(FORMS["geglu_biases"], FOUR, **options)
    assert np.array_equal(plain, got)


@pytest.mark.parametrize("gn", [*range(1, 17), 20, 24, 32])
@pytest.mark.parametrize("gm", [1, 2, 4])
def test_channel_operand_at_any_width(gm: int, gn: int) -> None:
    """A per-channel operand at any gn: eight words from any phase are there."""
    o = operands(4 * gm, 4 * gn, 32)
    call = ktpu.linear(o["x"], o["w"], bias=o["b"], activation="relu", gm=gm, gn=gn, nk=1)
    _, _, got = both(call, ONE)
    z = reference(o["x"], o["w"]).view(np.float16).astype(np.float64)
    want = np.maximum(z + o["b"].astype(np.float64), 0)
    assert error_metrics(got.view(np.float16).astype(np.float64), want).max < 1.5e-3


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (1, 8), (3, 3), (8, 8), (10, 16), (16, 16)])
def test_acknowledgements(size: tuple[int, int]) -> None:
    """n = 1, 7, 8, 9, 64, 160, 256 sub-tiles: ceil(n/8) acknowledgements, awaited ahead of the first kick."""
    gm, gn = size
    o = operands(4 * gm, 4 * gn, 32)
    compiled = ktpu.compile(ktpu.linear_silu(o["x"], o["w"], gm=gm, gn=gn, nk=1), spec(ONE), fuse="require")
    want = -(-gm * gn // 8)
    band = compiled.schedule.bands[1]
    assert isinstance(band, VectorBand)
    assert band.acks == want
    first = next(
        r for r in compiled.artifact.rounds() if any(isinstance(s, Await) and (s.x, s.y) == (1, 0) for s in r.steps)
    )
    assert first.steps[0] == Await(1, 0, want)
    assert compiled.artifact.meta["acknowledging"] == [[1, 0]]
    dev = device(ONE)
    done = dev.run(compiled.artifact)
    assert not done.failed, done.problems()
    got = [n for r in done.rounds for n in r.nodes if n.node == (1, 0)]
    assert sum(len(n.data_received or ()) for n in got) == want


def test_two_accumulators_add_their_acknowledgements() -> None:
    """Two drains of 64 give 16; slots follow the order of the products, spans are whole eights."""
    o = operands(32, 32, 64)
    call = ktpu.geglu(o["x"], o["w"], o["u"], gm=8, gn=8, nk=2)
    compiled = ktpu.compile(call, spec(ONE), fuse="require")
    product, band = compiled.schedule.bands
    assert isinstance(band, VectorBand)
    assert isinstance(product, Band)
    assert band.acks == 16
    assert product.delivery is not None
    assert product.delivery.span == 64
    sent = [i for i in compiled.programs[0][0] if isinstance(i, Gemm) and i.emit]
    assert [(i.to, i.at) for i in sent] == [("VC0", 0), ("VC0", 64 * 32)]


def test_shared_operand_is_filled_once() -> None:
    """geglu at 64x128x64, gm = gn = 8, nk = 2: 6 fills an instance where two projections need 8."""
    o = operands(64, 64, 128)
    call = ktpu.geglu(o["x"], o["w"], o["u"], gm=8, gn=8, nk=2)
    for fuse in ("require", "never"):
        compiled = ktpu.compile(call, spec(FOUR), fuse=fuse)
        for program in compiled.programs[0]:
            assert sum(text(i).startswith("fill") for i in program) == 6


def test_gate_order() -> None:
    """The activation is on the first weight: swapped weights are far off."""
    o = operands(64, 64, 128)
    gate, up = (reference(o["x"], o[n]).view(np.float16).astype(np.float64) for n in "wu")
    want = gate / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) * up
    right = run(FOUR, ktpu.compile(ktpu.geglu(o["x"], o["w"], o["u"]), spec(FOUR)))
    wrong = run(FOUR, ktpu.compile(ktpu.geglu(o["x"], o["u"], o["w"]), spec(FOUR)))
    assert error_metrics(right.view(np.float16).astype(np.float64), want).p99 < 1e-3
    assert error_metrics(wrong.view(np.float16).astype(np.float64), want).p99 > 0.1


def test_class_m() -> None:
    """Against float64 from the FP16 operands: one MXFP7 contraction and its epilogue."""
    o = operands(64, 64, 128)
    x, w, b, r = (o[n].astype(np.float64) for n in "xwbr")
    z = x @ w.T
    for call, want in (
        (ktpu.linear_silu(o["x"], o["w"]), z / (1 + np.exp(-z))),
        (ktpu.linear_bias(o["x"], o["w"], o["b"]), z + b),
        (ktpu.linear_add(o["x"], o["w"], o["r"]), z + r),
    ):
        m = error_metrics(run(FOUR, ktpu.compile(call, spec(FOUR))).view(np.float16).astype(np.float64), want)
        assert m.p50 <= 4e-3
        assert m.p99 <= 1.5e-2
        assert m.max <= 3e-2
        assert m.over_1_percent <= 0.06
        assert m.over_10_percent == 0


# -- what it costs --


def test_payloads_and_temps() -> None:
    """linear_silu 32x64x32, gm 4, gn 8, nk 2, four of each kind: payloads and memory of both forms."""
    fused, staged, _ = both(FORMS["silu"], FOUR)
    unmoved = dict.fromkeys(("moves", "quantised", "relaxed", "relayouts", "relayouts_device", "staging_full"), 0)
    for compiled, payloads, temps in ((fused, 78, 0), (staged, 87, 2048)):
        assert counters(compiled) | {"image_bytes": 0} == {
            **unmoved, "payloads": payloads, "rounds": 2, "dispatches": 2, "temp_bytes": temps, "image_bytes": 0,
        }  # fmt: skip
    assert {b.name for b in fused.schedule.buffers.values()} == {"x", "w", "y"}
    assert {b.name for b in staged.schedule.buffers.values()} == {"x", "w", "z0", "y"}
    words = {}
    for name, c in (("fused", fused), ("staged", staged)):
        dev = device(FOUR)
        done = dev.run(c.artifact)
        words[name] = [sum(r.dram_words[i] for r in done.rounds) for i in (0, 1)]
    tile = 32 * 32 * 2 // 32
    assert words["staged"][0] - words["fused"][0] == tile
    assert words["staged"][1] - words["fused"][1] == tile


def test_printed_schedule() -> None:
    """Receivers, span, cores and acknowledgements are part of the printed schedule."""
    shown = ktpu.compile(FORMS["bias_silu"], spec(FOUR), fuse="require").schedule.text().splitlines()
    assert shown[1:5] == [
        "in x: mx:4x2:a 32x64 at 0x0, 2048 bytes",
        "in w: mx:8x2:b 32x64 at 0x8000000000, 2048 bytes",
        "in b: bias:8 1x32 at 0x800, 256 bytes",
        "out y: tile:2x1:4x8 32x32 at 0x1000, 2048 bytes",
    ]
    assert shown[5].endswith("role=compute out=emit to=VC0,VC1 span=32")
    assert shown[7].endswith(
        "form=resident instances=4 steps=2 vl=128 l1=56 reads=z0,b writes=y role=epilogue nodes=VC0,VC1 acks=4"
    )


def test_node_transfers_have_text_and_bits() -> None:
    """The receiver is a unit by name; text and words go both ways."""
    machine = spec(FOUR)
    for ins in (Gemm(2, 4, 1, 0, emit=1, at=96, to="VC2"), Drain(9, 64, to="VC1"), Drain(9, 64, to="MG3", buf=2)):
        assert parse(text(ins)) == ins
        assert decode(encode(ins, machine), machine) == ins
    f = cluster.decode(encode(Drain(9, 64, to="VC1"), machine))
    assert (f["dnode"], f["dst_x"], f["dst_y"], f["dbuf"], f["dflags"]) == (1, 1, 2, 0, 1)
    assert (f["dack_x"], f["dack_y"], f["addr"], f["dfin"], f["dmesh"]) == (1, 1, 64, 0, 0)
    for bad, message in (
        (Drain(1, to="VC4"), "receiver VC4: machine hand4 has 4 units of type VC"),
        (Drain(1, to="core"), "receiver 'core'; name a unit such as VC0"),
        (Drain(1, 512 * 32, to="VC0"), "drain to VC0: word 512 is beyond its 512 words"),
        (Drain(1, fuse=1, to="VC0"), "drain to VC0 with fuse"),
        (Gemm(1, 1, 1, 0, to="VC0"), "gemm to VC0 without emit"),
    ):
        with pytest.raises(EncodeError, match=message):
            encode(bad, machine)


def test_channel_layout() -> None:
    """Word c of a per-channel operand holds columns 4c..4c+3 in each of its four rows."""
    order = ChannelBias(3)
    values = np.arange(1, 15, dtype=np.float16)[None]
    raw = order.pack(values)
    assert len(raw) == order.nbytes((1, 14)) == 8 * 24
    for n in range(14):
        for row in range(4):
            at = 32 * (n // 4) + 8 * row + 2 * (n % 4)
            assert raw[at : at + 2] == values[0, n].tobytes()
    assert not any(raw[32 * 4 :])
    assert np.array_equal(order.unpack(raw, (1, 14)), values)
    with pytest.raises(CompileError, match="one value a column is a single row"):
        order.nbytes((2, 8))


@pytest.mark.parametrize("fuse", ["require", "never"])
@pytest.mark.parametrize("name", FORMS)
def test_emitted_programs_decode(name: str, fuse: str) -> None:
    """Every payload decodes to its typed instruction and encodes to the same word; the text parses back."""
    machine = spec(FOUR)
    compiled = ktpu.compile(FORMS[name], machine, fuse=fuse)
    for band in compiled.programs:
        for program in band:
            payloads = [encode(i, machine) for i in program]
            if program.engine == "VC":
                assert decode_program(payloads) == list(program)
            else:
                assert [decode(p, machine) for p in payloads] == list(program)
            assert UnitProgram.from_text(program.text()) == program
    sent = sorted(compiled.artifact.payloads)
    assert sent == sorted(encode(i, machine) for band in compiled.programs for p in band for i in p)

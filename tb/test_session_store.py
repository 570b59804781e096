# SPDX-License-Identifier: Apache-2.0
"""A machine with an L2 adapter and the granule transpose on RTL, beside the model (docs/spec/memory.md 11 and 13)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from kohakuabi import Artifact, Await, Barrier, Image, Kick, Output, Seed
from kohakubench.two_layers import FIRST, SECOND, call, expected
from kohakudriver import Device
from kohakudriver.generated import AdapterIndex
from kohakutpu.isa import cluster
from kohakutpu.isa.address import adapter, staging
from kohakutpu.kernels.library import flash_attention
from kohakutpu.machine_spec import MachineSpec
from ktpu.replay import replay

pytestmark = [pytest.mark.system, pytest.mark.slow]

NODE = (2, 1)
Pair = tuple[Device, Device, MachineSpec]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """The model and the RTL of ``mm_store``, and what the compiler knows of it."""
    rtl = ktpu.open("rtl:mm_store", dram={"lat_min": 5, "lat_max": 50})
    yield ktpu.open("model:mm_store"), rtl, ktpu.machine("mm_store")
    rtl.close()


def test_two_layers(pair: Pair) -> None:
    """Tiles to rows to entries by the mover, through the staging store: every word and signal as on the model."""
    model, rtl, spec = pair
    mlp = call(first=FIRST, second=SECOND)
    compiled = ktpu.compile(mlp, spec)
    assert compiled.artifact.meta["counters"]["moves"] == 2
    report = replay(compiled.artifact, model, rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    (out,) = compiled.artifact.outputs
    bits = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    assert (bits == expected(mlp)).all()


def test_attention_reads_keys_and_values_from_the_store(pair: Pair) -> None:
    """Two query blocks of two key blocks: all operands stand there, loaded by the host; no bit or signal differs."""
    model, rtl, spec = pair
    operands = kc.flash_operands(kc.Draw("residency"), 1, 128, 128, 64, 64)
    compiled = ktpu.compile(ktpu.call(flash_attention, *operands.values(), block=64, qblock=64), spec)
    assert {n for n in "qkv" if compiled.schedule.buffers[n].address >= staging(0)} == set("qkv")
    report = replay(compiled.artifact, model, rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    (out,) = compiled.artifact.outputs
    assert any(rtl.read(out.address, out.nbytes))


def test_padding_and_odd_extents(pair: Pair) -> None:
    """Columns that end inside an entry: the mover clears the rows first."""
    model, rtl, spec = pair
    mlp = call(45, 60, 64, 30, first={"gm": 2, "gn": 4, "nk": 1}, second={"gm": 3, "gn": 1, "nk": 2}, seed=3)
    compiled = ktpu.compile(mlp, spec)
    report = replay(compiled.artifact, model, rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    (out,) = compiled.artifact.outputs
    bits = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    assert (bits == expected(mlp)).all()


def test_a_program_with_operands_in_the_near_window(pair: Pair) -> None:
    """Drained to the adapter, filled from it, a run over its edge refused: signals, counters and memory agree."""
    model, rtl, spec = pair
    near = adapter(0)
    rng = np.random.default_rng(9)
    entries = rng.integers(0, 256, (2, 256), dtype=np.uint8)
    payloads = (
        cluster.encode("FILL", n=2, addr=0x1_0000),
        cluster.encode("FILL", n=2, addr=0x2_0000, sel=1),
        cluster.encode("GEMM", gm=2, gn=2),
        cluster.encode("DRAIN", n=4, addr=near + 512 * 32 - 128),
        cluster.encode("FILL", n=1, addr=near + 512 * 32 - 128, eoff=2),
        cluster.encode("GEMM", gm=1, gn=2, aoff=2),
        cluster.encode("DRAIN", n=2, addr=0x8_0000),
        cluster.encode("FILL", n=2, addr=near + 512 * 32 - 128, eoff=4),
    )
    limits = {"stage_flits": spec.stage_flits, "ncmd": spec.ncmd, "credit_max": spec.credit}

    def program(last: int) -> Artifact:
        steps = (
            *(Seed(32), Kick(*NODE, 0, 4), Await(*NODE, 4), Barrier()),
            *(Seed(32), Kick(*NODE, 0, last), Await(*NODE, last), Barrier()),
        )
        images = (Image(0x1_0000, entries[0].tobytes(), "a"), Image(0x2_0000, entries[1].tobytes(), "b"))
        outputs = (Output("y", 0x8_0000, 64, "flat", (1, 32)),)
        return Artifact("mm_store", spec.digest(), payloads[: 4 + last], images, steps, outputs, limits)

    report = replay(program(3), model, rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    assert any(rtl.read(0x8_0000, 64))
    count = [d.control_read(NODE, AdapterIndex.COUNT) for d in (model, rtl)]
    assert count == [5 << 32] * 2
    refused = replay(program(4), model, rtl)
    assert refused.agree, "\n".join(f.text() for f in refused.findings())
    assert any("F_MEM_RD" in p for p in refused.problems)
    status = [d.control_read(NODE, AdapterIndex.STATUS) for d in (model, rtl)]
    assert status == [1, 1]

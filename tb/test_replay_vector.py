# SPDX-License-Identifier: Apache-2.0
"""Replay of vector programs: what is masked, and findings that name the RUN (docs/spec/README.md 8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakuabi import Artifact
from kohakubench.programs import description, device, spec
from kohakudriver import Device
from kohakutpu.isa import message, vector
from kohakutpu.model.transport import ModelTransport
from ktpu.diagnosis import places, unit_kinds, writer_of
from ktpu.replay import ReplayReport, replay
from ktpu.vector_writes import writes

pytestmark = pytest.mark.unit

BODY = description(cores=1)
CORE = (1, 0)


class Lying:
    """The model with one lie: a memory bit, or a changed signal list."""

    def __init__(self) -> None:
        self.inner = ModelTransport(BODY)
        self.flip: tuple[int, int] | None = None
        self.change: Callable[[list[int]], list[int]] = lambda flits: flits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def mem_read(self, at: int, n: int) -> bytes:
        data = bytearray(self.inner.mem_read(at, n))
        if self.flip and at <= self.flip[0] < at + n:
            data[self.flip[0] - at + self.flip[1] // 8] ^= 1 << self.flip[1] % 8
        return bytes(data)

    def signals(self) -> list[int]:
        return list(self.change(self.inner.signals()))


def kernel() -> Artifact:
    """Three RUNs over 3,000 elements."""
    x = np.random.default_rng(1).standard_normal(3000)
    return ktpu.compile(ktpu.silu(x), spec(BODY)).artifact


def lied(art: Artifact, **lie: Any) -> ReplayReport:
    transport = Lying()
    other = Device(transport)
    for name, value in lie.items():
        setattr(transport, name, value)
    return replay(art, device(BODY), other)


def argument(position: int, value: int) -> Callable[[list[int]], list[int]]:
    """Signals with the argument of the core's completion number ``position`` changed."""

    def change(flits: list[int]) -> list[int]:
        out = list(flits)
        if position < len(out):
            sent = message.decode(out[position])
            out[position] = message.encode(
                "CU_SIGNAL",
                dst=(1, 1),
                src=CORE,
                txn=sent.header["txn"],
                code=sent.fields["code"],
                arg=value,
            )
        return out

    return change


def runs_of(art: Artifact) -> list[int]:
    return [i for i, p in enumerate(art.payloads) if p >> 252 == 3]


def test_cycles_of_a_run_are_masked() -> None:
    """The argument of a RUN's completion is a number of cycles; that of a load is compared."""
    art = kernel()
    (first, *_, last) = runs_of(art)
    assert len(list(art.rounds())) == 1
    assert lied(art, change=argument(first, 1234)).agree
    (finding,) = lied(art, change=argument(first - 1, 5)).findings()
    assert f"step     round 0, kick 0 to node (1,0), instruction {first - 1}: DESC A" in finding.text()
    # the last instruction is a batch completion, whose argument is the program's number
    assert not lied(art, change=argument(last, 1)).agree


def test_a_wrong_word_names_its_run() -> None:
    """Step, RUN and node of the word; every RUN writes a part of its own."""
    art = kernel()
    (out,) = art.outputs
    runs = runs_of(art)
    size = -(-out.nbytes // len(runs) // 256) * 256
    for number, position in enumerate(runs):
        at = out.address + min(number * size, out.nbytes - 32)
        (finding,) = lied(art, flip=(at, 7)).findings()
        lines = finding.text()
        assert f"memory: 1 words differ, the first at address {at:#x}" in lines
        assert f"instruction {position}: RUN 0" in lines
        assert "bits     7" in lines


def test_writers_follow_descriptors_over_rounds() -> None:
    """An image loaded in one round and run in later ones: the writer is found in its own round."""
    x = np.random.default_rng(1).standard_normal((40, 128))
    art = ktpu.compile(ktpu.softmax(x), spec(BODY), pass_budget=20).artifact
    rounds = list(art.rounds())
    (out,) = art.outputs
    found = set()
    for word in range(0, out.nbytes, 32):
        here = [(r.index, p.position) for r in rounds if (p := writer_of(art, r, out.address + word))]
        assert len(here) == 1
        found.add(here[0])
    assert len(found) == len(runs_of(art))
    assert all(writer_of(art, r, out.address - 32) is None for r in rounds)


def test_walks_of_drains() -> None:
    """Strides, two dimensions and a bound of zero; a walk too long for the core writes nothing."""
    words = [vector.encode("VDRAIN", ad=2, l1=0), vector.encode("VHALT")]
    sent = [vector.load_word(i, w) for i, w in enumerate(words)]
    sent += [vector.set_base(2, 0x1000), vector.set_dimension(2, 0, 64, 3), vector.set_dimension(2, 1, 0x400, 2)]
    sent.append(vector.run(0))
    for a in range(0, 0x1000, 32):
        want = a in (0, 64, 128, 0x400, 0x440, 0x480)
        assert writes(sent, 0x1000 + a) == ([len(sent) - 1] if want else [])
    assert writes([*sent[:-1], vector.set_dimension(2, 1, 0x400, 0), vector.run(0)], 0x1400) == []
    assert writes([*sent[:-1], vector.set_dimension(2, 1, 32, 200), vector.run(0)], 0x1000) == []


def test_places_know_their_unit() -> None:
    """Disassembly by the unit type the compiler noted; an artifact without the note is read as a cluster's."""
    art = kernel()
    assert unit_kinds(art) == {CORE: "VC"}
    r = next(art.rounds())
    assert places(r, unit_kinds(art))[0].text() == "round 0, kick 0 to node (1,0), instruction 0: IMEM 0 <- D0000000"
    assert "IMEM" not in places(r)[0].text()

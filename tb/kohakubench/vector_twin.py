# SPDX-License-Identifier: Apache-2.0
"""Runs one vector core model and one scalar witness side by side and compares all they hold."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from kohakubench.vector_programs import Case, Descriptor, random_word
from kohakubench.witness_vector import WitnessCore
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorError
from kohakutpu.model.messages import int_to_word, word_to_int
from kohakutpu.model.vector import PlainLink, VectorUnit

POS = (2, 1)
L1_WORDS = 512


def words_to_ints(words: np.ndarray) -> list[int]:
    """uint8 (n, 32) -> 256-bit ints."""
    return [word_to_int(word) for word in words]


class Twin:
    """`unit` is the model behind a plain link, `witness` the other one; both see the same memory."""

    def __init__(self) -> None:
        self.link = PlainLink(POS)
        self.unit = VectorUnit(self.link)
        self.core = self.unit.core
        self.witness = WitnessCore()

    def poke(self, address: int, value: int) -> None:
        """One word of memory."""
        self.link.image.write(address, int_to_word(value))
        self.witness.memory[address] = value

    def poke_l1(self, first: int, values: Iterable[int]) -> None:
        """L1 words, as a burst would bring them."""
        for n, value in enumerate(values):
            self.core.memory.receive(first + n, int_to_word(value)[None])
            self.witness.l1[first + n] = value

    def random_l1(self, rng: random.Random) -> None:
        """Fill L1 with random words."""
        self.poke_l1(0, [random_word(rng) for _ in range(L1_WORDS)])

    def load(self, words: Iterable[int], at: int = 0) -> None:
        """Instruction words through IMEM payloads."""
        for n, word in enumerate(words):
            assert not self.unit.execute(isa.load_word(at + n, word)).fault
            self.witness.imem[at + n] = word

    def describe(self, ad: int, descriptor: Descriptor) -> None:
        """All fields of a descriptor through DESC payloads."""
        base, strides, bounds = descriptor
        self.unit.execute(isa.set_base(ad, base))
        for d, (stride, bound) in enumerate(zip(strides, bounds, strict=True)):
            self.unit.execute(isa.set_dimension(ad, d, stride, bound))
        self.witness.a[ad] = (base, list(strides), list(bounds))

    def run(self, pc: int = 0) -> str | None:
        """One RUN on both; the fault they agree on. Compares everything afterwards."""
        result = self.core.run(pc, limit=100_000)
        fault = result.fault.name if result.fault is not None else None
        want = self.witness.run(pc)
        assert (fault, result.pc) == want, f"model {fault} at {result.pc}, witness {want[0]} at {want[1]}"
        self.compare()
        return fault

    def run_case(self, case: Case) -> str | None:
        """Load a case and run it."""
        for ad, descriptor in enumerate(case.descriptors):
            self.describe(ad, descriptor)
        self.load(case.words, case.pc)
        self.link.read_errors = self.witness.read_errors = case.read_errors
        return self.run(case.pc)

    def compare(self) -> None:
        """Registers, L1, traffic since the last comparison, clamp flag."""
        core, other = self.core, self.witness
        for r in range(16):
            assert core.v[r].tolist() == other.v[r], f"V{r}"
        assert core.s.tolist() == other.s, "S"
        assert core.k.tolist() == other.k, "K"
        assert core.p.astype(int).tolist() == other.p, "P"
        assert (core.vl, core.mode) == (other.vl, other.mode), "VL, VMODE"
        for w in np.flatnonzero(~core.memory.undefined):
            assert word_to_int(core.memory.l1[w]) == other.l1[w], f"L1 word {w}"
        for w in np.flatnonzero(core.memory.undefined):
            self.poke_l1(int(w), [0])
        writes = [(address, words_to_ints(words)) for address, words in self.link.writes]
        assert writes == other.writes, "memory writes"
        bursts = [
            (b.dst, b.txn, b.rsvd, b.buf, b.offset, b.flags, b.ack, words_to_ints(b.words)) for b in self.link.bursts
        ]
        assert bursts == [(b.dst, b.txn, b.rsvd, b.buf, b.offset, b.signal, b.ack, b.words) for b in other.bursts], (
            "bursts"
        )
        assert bool(self.link.errors >> VectorError.CLAMP & 1) == other.clamped, "clamp flag"
        self.link.writes.clear()
        self.link.bursts.clear()
        self.link.errors = 0
        other.writes.clear()
        other.bursts.clear()
        other.clamped = False

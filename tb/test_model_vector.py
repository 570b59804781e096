# SPDX-License-Identifier: Apache-2.0
"""Kernels on the vector core model against the scalar witness (docs/spec/vector.md 3 to 8, 11.1, 11.2)."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from kohakubench import vector_kernels as kernels
from kohakubench import witness_e8m15
from kohakubench.numeric_vectors import SWEEP, VECTORS
from kohakubench.vector_kernels import DESCRIPTORS, END, FLAT, FULL, Kernel, assemble
from kohakubench.vector_programs import SOURCE, SOURCE_WORDS, TARGET, ProgramMaker, random_word
from kohakubench.vector_twin import Twin
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VC_OPCODES, VectorFault, VectorOp
from kohakutpu.model.vector import PlainLink, RunawayError, VectorCore

pytestmark = pytest.mark.unit

ISA = json.loads((VECTORS.parent / "vector_isa.json").read_text())
witness_e8m15.load_table(ISA["seed_tables"]["rows"])


def prepared(seed: int) -> Twin:
    """A twin with random L1 and random fill sources."""
    twin = Twin()
    rng = random.Random(seed)
    twin.random_l1(rng)
    for n in range(SOURCE_WORDS):
        twin.poke(SOURCE + 32 * n, random_word(rng))
    return twin


def run_kernel(twin: Twin, kernel: Kernel) -> str | None:
    """One directed kernel."""
    for ad, descriptor in DESCRIPTORS.items():
        twin.describe(ad, kernel.descriptors.get(ad, descriptor))
    twin.load(kernel.words, kernel.at)
    twin.link.read_errors = twin.witness.read_errors = set(kernel.read_errors)
    return twin.run(kernel.at)


def run_text(twin: Twin, text: str) -> str | None:
    """One kernel without surroundings of its own."""
    twin.load(assemble(text + END))
    return twin.run()


# ------------------------------------------------------------------ directed


@pytest.fixture(scope="module")
def worn() -> Twin:
    """A twin that keeps its state from kernel to kernel."""
    return prepared(1)


@pytest.mark.parametrize("kernel", kernels.KERNELS, ids=lambda k: k.name)
def test_directed_kernel(worn: Twin, kernel: Kernel) -> None:
    assert run_kernel(worn, kernel) == kernel.fault


def test_directed_kernels_cover_every_opcode_and_fault() -> None:
    opcodes = {word >> 27 for kernel in kernels.KERNELS for word in kernel.words}
    assert opcodes == set(VectorOp)
    faults = {kernel.fault for kernel in kernels.KERNELS if kernel.fault}
    elsewhere = {"F_CUDATA", "F_WDOG", "F_ENV", "A_RESP"}  # test_model_vector_unit.py
    assert faults | elsewhere == set(VectorFault.__members__)
    of_arithmetic = {op["name"] for op in ISA["opcodes"] if op["code"] <= VectorOp.VRSQRT}
    assert of_arithmetic == {name for name, row in VC_OPCODES.items() if row[0] == "ALU"}


def test_example_kernel_of_the_page() -> None:
    twin = prepared(2)
    example = ISA["examples"]["kernel_add"]
    places = {"SRC": SOURCE, "DST": TARGET}
    for row in example["descriptors"]:
        stride, bound = row["dims"][0]
        twin.describe(row["ad"], (places.get(row["base"], row["base"]), [stride, 0, 0, 0], [bound, 1, 1, 1]))
    twin.load([int(word, 16) for word in example["words"]])
    assert twin.run() is None
    a, b = (twin.witness.memory[SOURCE + 32 * n] for n in (0, 8))
    assert twin.witness.memory[TARGET] not in (0, a, b)
    assert twin.link.image.read(TARGET, 256).tobytes() == b"".join(
        twin.witness.memory[TARGET + 32 * n].to_bytes(32, "little") for n in range(8)
    )


def test_state_after_reset() -> None:
    twin = Twin()
    twin.compare()
    core = twin.core
    assert (core.vl, core.mode, core.k.tolist()) == (128, 0, [0, 0x3F8000, 0xBF8000, 0])
    for cleared in (core.v, core.s, core.p, core.memory.l1, core.imem):
        assert not cleared.any()
    assert all(d.bounds == [1] * 4 and d.base == 0 and d.strides == [0] * 4 for d in core.memory.descriptors)
    # memory of zeros is VMOV v0, v0 up to the end
    assert twin.run() == "F_PC"


def test_state_persists_across_every_fault() -> None:
    twin = prepared(3)
    set_up = FLAT + FULL + "S4 = 0x123456; K3 = 0x404040; VLD.FP16 v9, A0; VCMPLT P3, v9, K0; VLD.FP32 v8, A1\n"
    set_up += "S5 = 33; VSETVL S5; VSETMODE D2"
    seen = set()
    for kernel in kernels.ENCODINGS + kernels.CONTROL + kernels.ADDRESSES:
        if kernel.fault is None or kernel.fault in seen:
            continue
        seen.add(kernel.fault)
        for ad, descriptor in DESCRIPTORS.items():
            twin.describe(ad, descriptor)
        assert run_text(twin, set_up) is None
        before = (twin.core.v[8:10].copy(), twin.core.s[4], twin.core.k[3], twin.core.p[3].copy())
        assert run_kernel(twin, kernel) == kernel.fault
        # the next RUN, which takes no register of its own, sees what the first one left
        for ad, descriptor in DESCRIPTORS.items():
            twin.describe(ad, descriptor)
        assert run_text(twin, "VST.FP32 v9, A1-32; VBCAST v7, S4") is None
        after = (twin.core.v[8:10], twin.core.s[4], twin.core.k[3], twin.core.p[3])
        assert all((x == y).all() for x, y in zip(before, after, strict=True)), kernel.name
    assert len(seen) == 15


def test_two_kernels_in_one_image() -> None:
    twin = prepared(4)
    twin.describe(0, DESCRIPTORS[0])
    twin.load(assemble(FLAT + FULL + "VLD.FP16 v3, A0" + END))
    twin.load(assemble("VADD v4, v3, v3" + END), 100)
    assert twin.run(0) is None
    assert twin.run(100) is None
    assert twin.core.v[4].any()
    # re-run with only the base rewritten
    twin.describe(0, DESCRIPTORS[1])
    assert twin.run(0) is None
    assert twin.run(100) is None


def test_longest_loop_stops_at_its_limit_only() -> None:
    core = VectorCore(PlainLink())
    core.write_imem(0, assemble("S1 = 0xffffff\nVLOOP S1, 1\nVMOV v3, K1"))
    with pytest.raises(RunawayError, match="more than 500"):
        core.run(0, limit=500)


def test_granule_transpose_by_rotations_is_exact() -> None:
    """Four words become their 4x4 granule transpose by rotations and predicated merges, NaN and infinity included."""
    twin = prepared(5)
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 1 << 16, (4, 16))
    codes[codes & 0x7C00 == 0x7C00] |= 0x0200  # quiet NaNs; infinities follow
    codes[0, :4], codes[2, 9], codes[3, 15] = (0x7C00, 0xFC00, 0x7E01, 0x8000), 0xFFFF, 0x0001
    twin.poke_l1(0, [int.from_bytes(row.astype("<u2").tobytes(), "little") for row in codes])
    twin.describe(0, DESCRIPTORS[0])
    assert run_text(twin, kernels.granule_transpose()) is None
    got = twin.core.memory.l1[8:12].view("<u2").reshape(4, 4, 4)
    assert np.array_equal(got, codes.reshape(4, 4, 4).transpose(1, 0, 2))


# ------------------------------------------------------------------ random


def random_sequence(seed: int, cases: int, faulty: float) -> None:
    """Several cases on one core, without a reset between them."""
    twin = prepared(seed)
    maker = ProgramMaker(seed)
    for n in range(cases):
        case = maker.case(faulty)
        try:
            twin.run_case(case)
        except AssertionError as error:
            listing = "\n".join(isa.disasm_words(case.words))
            raise AssertionError(f"seed {seed}, case {n}: {error}\n{listing}") from error


@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed: int) -> None:
    random_sequence(seed, 6, faulty=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_ten_thousand_random_programs(block: int) -> None:
    """10^4 cases at the standard sweep: register reuse, chains, predicates, loops, loads and stores."""
    cases = SWEEP // 100
    for n in range(cases // 20 // 5):
        random_sequence(1000 + 1000 * block + n, 5, faulty=0.2)


def test_random_words_in_every_mode_end_in_a_defined_way() -> None:
    rng = random.Random(6)
    endings = set()
    twin = prepared(6)
    scalar_writers = (VectorOp.VSETI, VectorOp.VBCAST, VectorOp.VRED)
    for n in range(400):
        words = [rng.getrandbits(32) for _ in range(6)]
        if any(word >> 27 == VectorOp.VLOOP for word in words):
            # loop counts stay below 64
            words = [word for word in words if word >> 27 not in scalar_writers]
        twin.load([isa.encode("VSETMODE", mode=n % 4), *words, isa.encode("VHALT")])
        for ad, descriptor in DESCRIPTORS.items():
            twin.describe(ad, descriptor)
        counts = [rng.randrange(64) for _ in range(16)]
        twin.core.s[:] = counts
        twin.witness.s[:] = counts
        endings.add(twin.run())
    assert len(endings) >= 8

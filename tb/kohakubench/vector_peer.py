# SPDX-License-Identifier: Apache-2.0
"""Programs of the peer bench: tiles into the vector core, kernels over them, and what they compute.

docs/spec/vector.md 14: tile r of n sub-tiles lies at L1 word r*span, results at R*span, side operands behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kohakuabi import Artifact, Image, Output
from kohakuabi.steps import Await, Barrier, Kick, Seed, Step
from kohakubench.mesh_paths import CTRL, VC, WORD
from kohakutpu.isa import cluster
from kohakutpu.isa import vector as isa
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import Layout, e8m15_to_fp16, fp16_to_e8m15, lane, quantise_entries
from kohakutpu.program.vector_words import Alu, Bar, Halt, Imm, Seti, Vdrain, Vfill, Vld, Vst, Word, encode_word
from kohakutpu.schedule.layout import Entry

A_AT, B_AT, BIAS_AT = 0x10000, 0x30000, 0x50000
TILE_AT, OUT_AT = 0x60000, 0x80000
TILE_STEP = 0x8000
SLOTS = 100
"""Payloads of one round: below the staging size."""
LOG2E = 1.4426950408889634
ONE = 0x3F8000


def bursts(n: int) -> int:
    """Bursts of a node drain of n sub-tiles."""
    return -(-n // 8)


def code(value: float) -> int:
    """E8M15 code of a constant, nearest."""
    word = int(np.float32(value).view(np.uint32))
    return word + 0x7F + (word >> 8 & 1) >> 8


@dataclass(frozen=True)
class Epilogue:
    """Arithmetic over one chunk of every tile: words on v0 (, v1), bias in v7; the result is in v2."""

    name: str
    tiles: int
    scale: float  # K3
    words: tuple[Alu, ...]
    bias: bool = False

    def __call__(self, chunks: Sequence[np.ndarray], bias: np.ndarray) -> np.ndarray:
        """The same operation by operation on arrays of E8M15 codes."""
        values: dict[str, Any] = {f"v{r}": c for r, c in enumerate(chunks)}
        values |= {"v7": bias, "K1": np.full_like(bias, ONE), "K3": np.full_like(bias, code(self.scale))}
        zero = np.zeros_like(bias)
        for w in self.words:
            a, b, c = (values.get(name, zero) for name in (w.a, w.b, w.c))
            values[f"v{w.vd}"] = lane(_OPCODES[w.op], a, b, c)
        return np.asarray(values["v2"])


_OPCODES = {"VMOV": 0, "VADD": 3, "VMUL": 5, "VEXP2": 14, "VINV": 16}


def _sigmoid(source: str) -> tuple[Alu, ...]:
    return (
        Alu("VMUL", 3, source, "K3"),
        Alu("VEXP2", 3, "v3"),
        Alu("VADD", 3, "v3", c="K1"),
        Alu("VINV", 3, "v3"),
    )


COPY = Epilogue("copy", 1, 0.0, (Alu("VMOV", 2, "v0"),))
SILU = Epilogue("silu", 1, -LOG2E, (*_sigmoid("v0"), Alu("VMUL", 2, "v0", "v3")))
BIAS_SILU = Epilogue(
    "bias_silu", 1, -LOG2E, (Alu("VADD", 4, "v0", c="v7"), *_sigmoid("v4"), Alu("VMUL", 2, "v4", "v3")), True
)
GEGLU = Epilogue("geglu", 2, -1.702 * LOG2E, (*_sigmoid("v0"), Alu("VMUL", 3, "v0", "v3"), Alu("VMUL", 2, "v3", "v1")))


@dataclass
class Program:
    """Rounds of a hand-made artifact."""

    spec: MachineSpec
    payloads: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def round(self, node: tuple[int, int], payloads: Sequence[int], *, first: Sequence[Step] = ()) -> None:
        """One program for a node, in as many rounds as it needs; ``first`` opens the first of them."""
        for at in range(0, len(payloads), SLOTS):
            part = payloads[at : at + SLOTS]
            self.steps += [Seed(self.spec.credit), *(first if at == 0 else ())]
            self.steps += [Kick(*node, 0, len(part)), Await(*node, len(part)), Barrier()]
            self.payloads += part

    def wait(self, node: tuple[int, int], signals: int) -> None:
        """A round that only waits."""
        self.steps += [Await(*node, signals), Barrier()]

    def artifact(self, images: Sequence[Image] = (), outputs: Sequence[Output] = ()) -> Artifact:
        """What the driver runs."""
        return Artifact(
            machine=self.spec.name,
            machine_hash=self.spec.digest(),
            payloads=tuple(self.payloads),
            images=tuple(images),
            steps=tuple(self.steps[:-1]),
            outputs=tuple(outputs),
            limits={
                "stage_flits": self.spec.stage_flits,
                "ncmd": self.spec.ncmd,
                "credit_max": self.spec.credit_max,
            },
            meta={"acknowledging": [list(VC)]},
        )


def words_output(name: str, at: int, n: int) -> Output:
    """A region of n sub-tiles."""
    return Output(name, at, WORD * n, f"tile:1x1:1x{n}", (4, 4 * n))


def operand_images(rng: np.random.Generator, tiles: int, gm: int, gn: int) -> list[Image]:
    """Both operands of every tile: one K block."""
    images = []
    for r in range(tiles):
        for name, base, groups, side in (("a", A_AT, gm, Layout.A), ("b", B_AT, gn, Layout.B)):
            values = rng.standard_normal((4 * groups, 32)).astype(np.float16)
            data = quantise_entries(Entry(groups, 1).entries(values), side).tobytes()
            images.append(Image(base + TILE_STEP * r, data, f"{name}{r}"))
    return images


def node_drain(n: int, word: int, ack: tuple[int, int] = CTRL, buf: int = 0, flags: int = 1) -> int:
    """DRAIN of n sub-tiles into the core's L1 from ``word`` on."""
    return cluster.encode(
        "DRAIN", n=n, addr=WORD * word, dnode=1, dst_x=VC[0], dst_y=VC[1], dbuf=buf, dflags=flags,
        dack_x=ack[0], dack_y=ack[1],
    )  # fmt: skip


def multiply(r: int, gm: int, gn: int) -> list[int]:
    """Tile r: fills and the sweep that opens gm*gn sub-tiles."""
    return [
        cluster.encode("FILL", sel=0, n=gm, addr=A_AT + TILE_STEP * r),
        cluster.encode("FILL", sel=1, n=gn, addr=B_AT + TILE_STEP * r),
        cluster.encode("GEMM", gm=gm, gn=gn, nk=1),
    ]


def describe(ad: int, base: int, stride: int, bound: int) -> list[int]:
    """DESC payloads of a one-dimensional walk; the other dimensions are left at one step."""
    rest = [isa.set_dimension(ad, d, 0, 1) for d in (1, 2, 3)]
    return [isa.set_base(ad, base), isa.set_dimension(ad, 0, stride, bound), *rest]


def image(words: Sequence[Word]) -> list[int]:
    """IMEM payloads of a kernel at word 0."""
    return [isa.load_word(i, encode_word(w)) for i, w in enumerate(words)]


def kernel(e: Epilogue, n: int, out: int, fill_from: int | None) -> list[int]:
    """Payloads that run ``e`` over the tiles in L1 and drain n results to ``out``.

    Args:
        fill_from: address of the tiles in memory for the staged form, None for the fused one.
    """
    span = 8 * bursts(n)
    result, side = e.tiles * span, (e.tiles + 1) * span
    words: list[Word] = [Seti("K3"), Imm(code(e.scale))]
    setup = [*describe(1, 0, 1, 8), *describe(2, side, 1, 8), *describe(4, out, 32, n)]
    if e.bias:
        setup += describe(3, BIAS_AT, 32, 8)
        words += [Vfill(3, side), Vld(7, 2)]
    if fill_from is not None:
        for r in range(e.tiles):
            setup += describe(5 + r, fill_from + TILE_STEP * r, 32, n)
            words.append(Vfill(5 + r, r * span))
        words.append(Bar())
    for c in range(bursts(n)):
        words += [Vld(r, 1, r * span + 8 * c) for r in range(e.tiles)]
        words += [*e.words, Vst(2, 1, result + 8 * c)]
    words += [Vdrain(4, result), Halt()]
    return [*image(words), *setup, isa.run(0)]


def expected(e: Epilogue, tiles: Sequence[bytes], n: int, bias: bytes) -> np.ndarray:
    """The result image (n, 16) FP16 codes from the tiles' memory images, by the reference arithmetic."""
    chunks = [fp16_to_e8m15(np.frombuffer(t, np.uint16).reshape(n, 16)) for t in tiles]
    rows = np.frombuffer(bias, np.uint16).reshape(8, 16)[np.arange(n) % 8]
    return e8m15_to_fp16(e(chunks, fp16_to_e8m15(rows)))

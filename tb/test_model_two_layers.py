# SPDX-License-Identifier: Apache-2.0
"""A two-layer product wholly on the machine: no byte of the intermediate result passes the host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakuabi import Artifact, Kick, Move
from kohakubench.formulas import activation
from kohakubench.programs import description, reference, spec
from kohakubench.two_layers import (
    FIRST,
    HIDDEN,
    SECOND,
    STAGE,
    STAGE_BYTES,
    K,
    M,
    N,
    call,
    chained,
    expected,
    layers,
    requantise,
)
from kohakudriver import Device
from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.isa import cluster
from kohakutpu.isa.generated import ClusterOp
from kohakutpu.kernels import Trace
from kohakutpu.kernels.formula import Formula
from kohakutpu.model.transport import ModelTransport
from kohakutpu.tensor import Call

pytestmark = pytest.mark.system

GRANULE = ("emit_fuse", "xform_granule", "stage_l2")


class Watched:
    """A transport that notes every access to memory."""

    def __init__(self, inner: ModelTransport) -> None:
        self.inner = inner
        self.touched: list[tuple[str, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def mem_write(self, address: int, data: bytes) -> None:
        self.touched.append(("write", address, len(data)))
        self.inner.mem_write(address, data)

    def mem_read(self, address: int, n: int) -> bytes:
        self.touched.append(("read", address, n))
        return self.inner.mem_read(address, n)


def machine(clusters: int = 1, stage: int = STAGE_BYTES, **changed: Any) -> dict[str, Any]:
    return description(clusters, features=GRANULE, stage_bytes=stage, **changed)


def run(text: dict[str, Any], program: Artifact) -> tuple[np.ndarray, Device, ModelTransport]:
    """Bits of the result; the host touches memory only to load and to read back."""
    transport = Watched(ModelTransport(text))
    device = Device(transport)
    device.load(program)
    assert {kind for kind, _, _ in transport.touched} == {"write"}
    loaded = len(transport.touched)
    done = device.run(program, load=False)
    assert not done.failed, done.problems()
    assert len(transport.touched) == loaded
    (out,) = program.outputs
    bits = ktpu.read_output(out, device.read(out.address, out.nbytes)).view(np.uint16)
    return bits, device, transport.inner


# ------------------------------------------------------------------ one compiled program


@pytest.mark.parametrize("clusters", [1, 2])
@pytest.mark.parametrize("stage", [0, STAGE_BYTES, 8192])
def test_compiled(clusters: int, stage: int) -> None:
    """The hidden layer, its rows and its entries stand in the staging store as far as it holds them."""
    text = machine(clusters, stage)
    mlp = call(first=FIRST, second=SECOND)
    compiled = ktpu.compile(mlp, spec(text), stage_operands=False)
    rows, entries = "h:rows:48x64", "h:mx:4x2:a"
    assert [c.text() for c in compiled.schedule.conversions] == [
        f"quantise before band 1: h -> {entries} through {rows}"
    ]
    places = {name: compiled.schedule.buffers[name].address >= STAGE for name in (rows, entries)}
    assert places == {rows: stage > 0, entries: stage == STAGE_BYTES}
    counters = compiled.artifact.meta["counters"]
    assert (counters["quantised"], counters["moves"], counters["staging_full"]) == (1, 2, 2 * int(stage == 8192))
    bits, _, model = run(text, compiled.artifact)
    want = expected(mlp)
    assert (bits == want).all()
    assert len(np.unique(want)) > 100
    assert model.machine.mover.moves == 2
    assert {i.name for i in compiled.artifact.images} == {"x", "w1", "w2"}


@pytest.mark.parametrize(
    "shape",
    [(M, K, HIDDEN, N), (45, 60, 64, 30), (20, 33, 96, 17), (64, 128, 128, 64), (7, 50, 50, 9), (33, 32, 20, 70)],
)
def test_any_extents(shape: tuple[int, int, int, int]) -> None:
    """Chosen tilings, padding in every direction, including columns that end inside an entry."""
    mlp = call(*shape, first={"gm": 2, "gn": 4, "nk": 1}, second={"gm": 3, "gn": 1, "nk": 2}, seed=3)
    text = machine(2)
    bits, _, _ = run(text, ktpu.compile(mlp, spec(text)).artifact)
    assert (bits == expected(mlp)).all()


def test_a_deep_chain() -> None:
    """Four products behind one another, the last reading an earlier value as its other operand too."""
    graph, rng = Graph(), np.random.default_rng(4)
    for name, shape, role in (
        ("x", (32, 64), "in"),
        ("w", (64, 64), "in"),
        ("a", (32, 64), "temp"),
        ("b", (32, 64), "temp"),
        ("c", (32, 64), "temp"),
        ("y", (32, 32), "out"),
    ):
        graph.value(Value(name, "fp16", shape, role))  # type: ignore[arg-type]
    knobs = tuple(sorted({"gm": 2, "gn": 4, "nk": 1}.items()))
    for args, result in ((("x", "w"), "a"), (("a", "w"), "b"), (("b", "w"), "c"), (("c", "a"), "y")):
        graph.ops.append(Op("contract", args, result, knobs))
    x = rng.standard_normal((32, 64)).astype(np.float16)
    w = (rng.standard_normal((64, 64)) / 8).astype(np.float16)
    text = machine(2)
    compiled = ktpu.compile(Call(Trace("chain", graph, {}), {"x": x, "w": w}), spec(text))
    bits, _, model = run(text, compiled.artifact)
    a = reference(x, w).view(np.float16)
    c = reference(reference(a, w).view(np.float16), w).view(np.float16)
    assert (bits == reference(c, a)).all()
    # a is needed packed for both sides, each with rows of its own shape
    assert [c.operand for c in compiled.schedule.conversions] == [
        "a:mx:2x1:a",
        "b:mx:2x1:a",
        "c:mx:2x1:a",
        "a:mx:4x1:b",
    ]
    assert model.machine.mover.moves == 8
    assert "mover\n  granule from" in compiled.text()
    assert "  quantise side=b from" in compiled.text()


def activated(hidden: int, *, first: dict[str, int], flat: bool = False) -> Call:
    """y = act(h) w2^T: a silu behind the first product, or a relu of the input itself (``flat``)."""
    mlp = call(M, K, hidden, N, first=first, second=SECOND)
    graph = Graph()
    shapes = {"x": (M, hidden if flat else K), "w1": (hidden, K), "w2": (N, hidden), "y": (M, N)}
    for name, shape in shapes.items():
        if not (flat and name == "w1"):
            graph.value(Value(name, "fp16", shape, "out" if name == "y" else "in"))
    graph.value(Value("h", "fp16", (M, hidden), "temp"))
    if flat:
        activation(Formula(graph), "relu", "x", out="h")
    else:
        graph.value(Value("z", "fp16", (M, hidden), "temp"))
        graph.ops.append(Op("contract", ("x", "w1"), "z", tuple(sorted(first.items()))))
        activation(Formula(graph), "silu", "z", out="h")
    graph.ops.append(Op("contract", ("h", "w2"), "y", tuple(sorted(SECOND.items()))))
    values = dict(mlp.operands)
    if flat:
        del values["w1"]
        values["x"] = np.random.default_rng(2).standard_normal((M, hidden)).astype(np.float16)
    return Call(Trace("activated", graph, {}), values)


@pytest.mark.parametrize("fuse", ["auto", "never"])
def test_an_activation_between_the_layers(fuse: str) -> None:
    """The stored result of a vector core's pass is what the second layer reads."""
    text = machine(2, cores=16)
    mlp = activated(HIDDEN, first=FIRST)
    bits, _, _ = run(text, ktpu.compile(mlp, spec(text), fuse=fuse).artifact)
    alone = ktpu.compile(ktpu.linear_silu(mlp.operands["x"], mlp.operands["w1"], **FIRST), spec(text))
    hidden, _, _ = run(text, alone.artifact)
    assert (bits == reference(hidden.view(np.float16), mlp.operands["w2"])).all()


def test_rows_of_a_pass_are_quantised_where_they_stand() -> None:
    """A value in plain rows takes one move and no scratch."""
    text = machine(1, cores=2)
    mlp = activated(HIDDEN, first=FIRST, flat=True)
    compiled = ktpu.compile(mlp, spec(text))
    assert [c.rows for c in compiled.schedule.conversions] == [""]
    bits, _, model = run(text, compiled.artifact)
    hidden = np.maximum(mlp.operands["x"], np.float16(0))
    assert (bits == reference(hidden, mlp.operands["w2"])).all()
    assert model.machine.mover.moves == 1
    with pytest.raises(CompileError, match=r"its rows \(48, 58\) are not padded to \(48, 64\) .* multiple of 16"):
        ktpu.compile(activated(58, first=FIRST, flat=True), spec(text))


def test_padding_of_a_pass_is_not_taken_for_zero() -> None:
    with pytest.raises(CompileError, match=r"its 58 columns end inside a sub-tile .* use a multiple of 16 columns"):
        ktpu.compile(activated(58, first=FIRST), spec(machine(2, cores=16)))


def test_moves_fill_rounds() -> None:
    """A machine with few command slots takes a round for every move; one with too few is refused."""
    mlp = call(first=FIRST, second=SECOND)
    roomy, tight = ktpu.compile(mlp, spec(machine())), ktpu.compile(mlp, spec(machine(), ncmd=24))
    moving = [[len([s for s in r.steps if isinstance(s, Move)]) for r in c.artifact.rounds()] for c in (roomy, tight)]
    assert [n for n in moving[0] if n] == [2]
    assert [n for n in moving[1] if n] == [1, 1]
    bits, _, _ = run(machine(ncmd=24), tight.artifact)
    assert (bits == expected(mlp)).all()
    with pytest.raises(CompileError, match="a move of 23 commands exceeds the 21 command slots"):
        ktpu.compile(mlp, spec(machine(), ncmd=21))


def test_refusals() -> None:
    mlp = call(first=FIRST, second=SECOND)
    with pytest.raises(CompileError, match=r"y: operand h is computed on the machine; .*\(feature xform_granule"):
        ktpu.compile(mlp, spec(description(1)))
    odd = call(first={"gm": 4, "gn": 2, "nk": 1}, second=SECOND)
    with pytest.raises(CompileError, match="tile:3x8:4x2; a tiling whose gn is a multiple of 4"):
        ktpu.compile(odd, spec(machine()))


# ------------------------------------------------------------------ put together by hand


@pytest.mark.parametrize("rows_at", [0x8_0000, STAGE])
def test_granule_then_quantise(rows_at: int) -> None:
    """Two programs and a round of moves between: tiles to rows to entries."""
    text = machine(2)
    first, second = layers(text, 0x10_0000)
    moves = requantise(first, second, rows_at, spec(text))
    bits, _, model = run(text, chained(first.artifact, second.artifact, moves))
    assert (bits == expected(call())).all()
    read, written = model.machine.agent.counts["stage"]
    words = M * HIDDEN // 16
    assert (read, written) == ((words, words) if rows_at == STAGE else (0, 0))


def test_rows_from_the_drain() -> None:
    """With row-major drains one quantising move is all there is between the layers."""
    text = description(2, features=("drain_rowmajor",), stage_bytes=STAGE_BYTES, MG_ROWMAJOR=1)
    first, second = layers(text, 0x10_0000, emit_fuse=False)
    rows_at = STAGE + 0x4_0000
    program = chained(
        rows_drained(first, rows_at), second.artifact, requantise(first, second, rows_at, spec(text), "rows")
    )
    bits, device, model = run(text, program)
    assert (bits == expected(call())).all()
    assert model.machine.mover.moves == 1
    hidden = np.frombuffer(device.read(rows_at, 2 * M * HIDDEN), dtype="<u2").reshape(M, HIDDEN)
    assert (hidden == reference(first.call.operands["a"], first.call.operands["b"])).all()


def rows_drained(first: ktpu.Compiled, rows_at: int) -> Artifact:
    """The first layer with every drain rewritten to leave rows of the whole matrix at ``rows_at``."""
    (out,) = first.artifact.outputs
    gm, gn = FIRST["gm"], FIRST["gn"]
    payloads = []
    for word in first.artifact.payloads:
        payload, fields = word, cluster.decode(word)
        if fields["op"] == ClusterOp.DRAIN:
            tile = (fields["addr"] - out.address) // 32 // (gm * gn)
            i, j = divmod(tile, HIDDEN // (4 * gn))
            at = rows_at + 2 * (4 * gm * i * HIDDEN + 4 * gn * j)
            payload = cluster.encode("DRAIN", raw=False, n=gm * gn, gn=gn, addr=at, rowmajor=1, pitch=HIDDEN // 16)
        payloads.append(payload)
    return replace(first.artifact, payloads=tuple(payloads))


def test_a_failing_move_stops_the_program() -> None:
    """The second layer does not run on operands that were never made."""
    text = machine()
    first, second = layers(text, 0x10_0000)
    moves = requantise(first, second, STAGE + STAGE_BYTES - 4096, spec(text))
    program = chained(first.artifact, second.artifact, moves)
    done = Device(ModelTransport(text)).run(program)
    assert done.failed
    kicks = [any(isinstance(s, Kick) for s in r.steps) for r in program.rounds()]
    assert len(done.rounds) == kicks.index(False) + 1
    assert any("MEM_FAULT M_RANGE at address 0x8000200000, requester MOVER" in p for p in done.problems())
    assert any("AUX_STAT: mover fault F_RANGE after 0 moves" in p for p in done.problems())

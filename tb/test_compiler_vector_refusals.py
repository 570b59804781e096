# SPDX-License-Identifier: Apache-2.0
"""Epilogues that cannot run on the arriving tile, and failures of those that do (docs/spec/compiler.md 12.7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakuabi import Artifact, ArtifactError, Await, Kick
from kohakubench.epilogues import FORMS, FOUR, ONE, TILE, both, counters, half, operands
from kohakubench.programs import description, device, image, reference, result, run, spec
from kohakudriver import Device
from kohakutpu.dispatch import UnitWork, Words, link
from kohakutpu.errors import CannotFuse, CompileError, EncodeError
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.isa import cluster, vector
from kohakutpu.kernels import Trace
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import error_metrics
from kohakutpu.model.transport import ModelTransport
from kohakutpu.program import text
from kohakutpu.schedule import VectorBand
from kohakutpu.tensor import Call
from ktpu.disassembly import explain

pytestmark = pytest.mark.unit

# -- refusals --


def refused(message: str, call: Call, machine: MachineSpec) -> None:
    """fuse="require" names the condition and both ways out; "auto" records it and gives the staged bits."""
    with pytest.raises(CannotFuse, match=message) as caught:
        ktpu.compile(call, machine, fuse="require")
    assert "choose another tile, or two stages" in str(caught.value)
    relaxed = ktpu.compile(call, machine)
    assert len(relaxed.relaxed) == counters(relaxed)["relaxed"] == 1
    assert "relaxed: epilogue into y" in relaxed.summary()
    assert counters(relaxed)["temp_bytes"] > 0
    staged = ktpu.compile(call, machine, fuse="never")
    assert staged.artifact.payloads == relaxed.artifact.payloads


def test_more_tiles_than_cores() -> None:
    """Three cores and four instances; and only two cores allowed of four."""
    o = operands(64, 32, 64)
    call = ktpu.linear_silu(o["x"], o["w"], **TILE)
    refused("4 tiles for 3 vector cores; a core holds one", call, spec(description(4, cores=3)))
    with pytest.raises(CannotFuse, match="4 tiles for 2 vector cores"):
        ktpu.compile(call, spec(FOUR), fuse="require", cores=2)
    both(call, FOUR)


def test_no_orchestrator() -> None:
    machine = spec(FOUR)
    alone = machine.with_(meshes=(replace(machine.meshes[0], orch=None),))
    refused("machine hand4 has no orchestrator to acknowledge bursts to", FORMS["silu"], alone)


def test_more_acknowledgements_than_the_queue() -> None:
    machine = spec(FOUR).with_(ackq={"MG": 128, "VC": 7})
    call = FORMS["geglu"]
    refused("8 bursts arrive at a core, it queues 7 acknowledgements", call, machine)
    ktpu.compile(call, spec(FOUR).with_(ackq={"MG": 128, "VC": 8}), fuse="require")


def test_tile_beyond_the_core() -> None:
    o = operands(128, 64, 32)
    refused(
        r"gm\*gn = 512 sub-tiles; a core takes 256", ktpu.linear_silu(o["x"], o["w"], gm=32, gn=16, nk=1), spec(ONE)
    )


def test_footprints() -> None:
    """Tiles and the result of one part have to fit; a part is the whole tile or an equal share of it."""
    o = operands(64, 64, 32)
    tile = {"gm": 16, "gn": 16, "nk": 1}
    for call in (
        ktpu.linear_silu(o["x"], o["w"], **tile),
        ktpu.linear_bias(o["x"], o["w"], o["b"], **tile),
        ktpu.linear_add(o["x"], o["w"], o["r"], **tile),
    ):
        both(call, ONE)
    refused("520 L1 words are needed; the core has 512", ktpu.geglu(o["x"], o["w"], o["u"], **tile), spec(ONE))
    closed = spec(ONE).with_(vc_l1_forbidden=(321, 511))
    p = operands(40, 64, 32)
    refused("328 words lies in 321..511", ktpu.geglu(p["x"], p["w"], p["u"], gm=10, gn=16, nk=1), closed)
    q = operands(64, 44, 32)
    compiled = ktpu.compile(ktpu.linear_silu(q["x"], q["w"], gm=16, gn=11, nk=1), closed, fuse="require")
    assert int(compiled.schedule.bands[1].text().split("l1=")[1].split()[0]) <= 320


@pytest.mark.parametrize(
    ("gm", "gn", "shares"), [(8, 8, True), (4, 32, True), (3, 3, False), (2, 12, False), (16, 16, True)]
)
def test_parts_of_a_tile(gm: int, gn: int, shares: bool) -> None:
    """A tile in several RUNs: its L1 base moves, the result region stays; one RUN where it does not divide."""
    o = operands(4 * gm, 4 * gn, 32)
    call = ktpu.linear(o["x"], o["w"], bias=o["b"], activation="gelu", gm=gm, gn=gn, nk=1)
    fused, _, _ = both(call, ONE)
    band = fused.schedule.bands[1]
    assert isinstance(band, VectorBand)
    assert (len(band.shifts) > 1) == shares
    if shares:
        part = band.stores[0].drain.words
        assert list(band.shifts) == list(range(0, gm * gn, part))
        moved = [i for i in fused.programs[1][0] if text(i).startswith("desc ad=0")]
        assert len(moved) == len(band.shifts)


def many_sides(sides: int) -> Call:
    """x w^T plus ``sides`` full-shape operands."""
    graph = Graph()
    graph.value(Value("x", "fp16", (4, 32), "in"))
    graph.value(Value("w", "fp16", (4, 32), "in"))
    graph.value(Value("z", "fp16", (4, 4), "temp"))
    graph.value(Value("y", "fp16", (4, 4), "out"))
    graph.ops.append(Op("contract", ("x", "w"), "z", (("gm", 1), ("gn", 1), ("nk", 1))))
    before = "z"
    given = {"x": half(4, 32), "w": half(4, 32)}
    for i in range(sides):
        graph.value(Value(f"s{i}", "fp16", (4, 4), "in"))
        given[f"s{i}"] = half(4, 4, seed=i)
        out = "y" if i == sides - 1 else f"t{i}"
        if out != "y":
            graph.value(Value(out, "e8m15", (4, 4), "temp"))
        graph.ops.append(Op("add", (before, f"s{i}"), out))
        before = out
    return Call(Trace("sides", graph, {}), given)


def test_descriptors() -> None:
    """One descriptor for L1, one for the drain, one a side operand: six of them fill the core, a seventh does not."""
    fused = ktpu.compile(many_sides(6), spec(ONE), fuse="require")
    used = {vector.decode_envelope(p)[1]["ad"] for p in fused.artifact.payloads[4:] if p >> 252 == 2}
    assert used == set(range(8))
    run(ONE, fused)
    with pytest.raises(CannotFuse, match=r"8 operands .* a band reads at most 7"):
        ktpu.compile(many_sides(7), spec(ONE), fuse="require")
    with pytest.raises(CannotFuse, match=r"6 fills and 1 drains need 8 address descriptors .* the core has 7"):
        ktpu.compile(many_sides(6), spec(ONE).with_(vc_desc=7), fuse="require")


def test_registers() -> None:
    """Values kept for later exceed the vector registers."""
    graph = Graph()
    for name, shape in (("x", (4, 32)), ("w", (4, 32))):
        graph.value(Value(name, "fp16", shape, "in"))
    graph.value(Value("z", "fp16", (4, 4), "temp"))
    graph.value(Value("y", "fp16", (4, 4), "out"))
    graph.ops.append(Op("contract", ("x", "w"), "z"))
    names = ["z"]
    for i in range(14):
        graph.value(Value(f"e{i}", "e8m15", (4, 4), "temp"))
        graph.ops.append(Op("exp2", (names[-1],), f"e{i}"))
        names.append(f"e{i}")
    for i, name in enumerate(names[1:]):
        out = "y" if i == 13 else f"s{i}"
        if out != "y":
            graph.value(Value(out, "e8m15", (4, 4), "temp"))
        graph.ops.append(Op("add", (name, names[0] if i == 0 else f"s{i - 1}"), out))
    call = Call(Trace("deep", graph, {}), {"x": half(4, 32), "w": half(4, 32)})
    with pytest.raises(CannotFuse, match=r"need .* vector registers; 14 are free"):
        ktpu.compile(call, spec(ONE), fuse="require")


def test_constant_in_a_slot_the_machine_does_not_list() -> None:
    """An error in both forms: a constant array would not help."""
    graph = Graph()
    for name, shape in (("x", (4, 32)), ("w", (4, 32))):
        graph.value(Value(name, "fp16", shape, "in"))
    graph.value(Value("k", "e8m15", (1, 1), "const", 0.3))
    graph.value(Value("z", "fp16", (4, 4), "temp"))
    graph.value(Value("y", "fp16", (4, 4), "out"))
    graph.ops += [Op("contract", ("x", "w"), "z"), Op("add", ("z", "k"), "y")]
    call = Call(Trace("const", graph, {}), {"x": half(4, 32), "w": half(4, 32)})
    narrow = spec(ONE).with_(vc_const_sources=frozenset({"aK", "bS", "bK", "cK"}))
    for fuse in ("require", "auto", "never"):
        with pytest.raises(EncodeError, match="add reads S4 in slot c; this machine takes constants in"):
            ktpu.compile(call, narrow, fuse=fuse)


def test_product_that_is_also_a_result() -> None:
    """A product somebody else reads keeps its place in memory."""
    graph = Graph()
    graph.value(Value("x", "fp16", (16, 32), "in"))
    graph.value(Value("w", "fp16", (16, 32), "in"))
    graph.value(Value("z", "fp16", (16, 16), "out"))
    graph.value(Value("y", "fp16", (16, 16), "out"))
    graph.ops += [Op("contract", ("x", "w"), "z"), Op("neg", ("z",), "y")]
    call = Call(Trace("seen", graph, {}), {"x": half(16, 32), "w": half(16, 32)})
    with pytest.raises(CannotFuse, match="also read elsewhere"):
        ktpu.compile(call, spec(ONE), fuse="require")
    compiled = ktpu.compile(call, spec(ONE))
    dev = device(ONE)
    assert not dev.run(compiled.artifact).failed
    got = {o.name: ktpu.read_output(o, dev.read(o.address, o.nbytes)) for o in compiled.artifact.outputs}
    assert np.array_equal(got["y"], -got["z"])


@pytest.mark.parametrize("shape", [(300, 77, 100), (5, 7, 33), (65, 130, 40)])
def test_staged_at_any_shape(shape: tuple[int, int, int]) -> None:
    """Padded grids of several tiles through memory, with per-channel and full-shape operands."""
    m, n, k = shape
    o = operands(m, n, k)
    call = ktpu.linear(o["x"], o["w"], bias=o["b"], add=o["r"], activation="silu", gm=2, gn=3, nk=1)
    got = run(ONE, ktpu.compile(call, spec(ONE), fuse="never")).view(np.float16).astype(np.float64)
    z = reference(o["x"], o["w"]).view(np.float16).astype(np.float64)
    z = z + o["b"].astype(np.float64) + o["r"].astype(np.float64)
    assert error_metrics(got, z / (1 + np.exp(-z))).max < 1.5e-3


# -- dispatch --


def test_payload_of_another_unit_type() -> None:
    """A payload encoded for a core is refused at a cluster, and the reverse."""
    machine = spec(FOUR)
    for kind, other in (("MG", "VC"), ("VC", "MG")):
        with pytest.raises(CompileError, match=f"unit {other}0: program 0 was encoded for a unit of type {kind}"):
            link(machine, [[UnitWork(other, 0, (Words((1,), 1, kind),))]], [], [])


def test_arrivals_are_checked() -> None:
    machine = spec(FOUR)
    core, sender = ([UnitWork(k, 0, (Words((vector.run(0),), 1, k),))] for k in ("VC", "MG"))
    with pytest.raises(CompileError, match="unit VC0 receives 65 bursts before anyone waits; it queues 64"):
        link(machine, [sender, core], [], [], arrivals=[{}, {("VC", 0): 65}])
    with pytest.raises(CompileError, match="unit VC0 receives bursts in a round that kicks it"):
        link(machine, [core, core], [], [], arrivals=[{}, {("VC", 0): 1}])


def test_round_that_awaits_a_node_twice() -> None:
    """Acknowledgements at the head, the node's own instructions at the end; anything else is refused."""
    art = ktpu.compile(FORMS["silu"], spec(FOUR), fuse="require").artifact
    art.check()
    heads = [s for s in art.steps if isinstance(s, Await) and (s.x, s.y) == (1, 0)]
    assert len(heads) == 2
    doubled = replace(art, steps=tuple(x for s in art.steps for x in ([s, s] if s == heads[0] else [s])))
    with pytest.raises(ArtifactError, match="a round awaits a node once, for its total"):
        doubled.check()
    with pytest.raises(ArtifactError, match="which nothing kicked or acknowledged"):
        replace(art, meta={**art.meta, "acknowledging": []}).check()
    late = replace(art, steps=tuple(replace(s, count=s.count + 1) if s == heads[1] else s for s in art.steps))
    with pytest.raises(ArtifactError, match="instructions are kicked there"):
        late.check()


# -- failures end in a report --


def patched(art: Artifact, number: int, payload: int) -> Artifact:
    return replace(art, payloads=(*art.payloads[:number], payload, *art.payloads[number + 1 :]))


def opened(body: dict[str, Any]) -> Device:
    return Device(ModelTransport(body), None, explain)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dbuf": 1}, "burst to buffer 1 rejected, UNKNOWN_BUF"),
        ({"addr": 32 * 500}, "burst to buffer 0 rejected, RANGE"),
    ],
)
def test_rejected_burst(changed: dict[str, int], words: str) -> None:
    """A bad buffer or range: the sender's round fails, the epilogue does not start, the next run works."""
    art = ktpu.compile(FORMS["silu"], spec(FOUR), fuse="require").artifact
    at = next(i for i, p in enumerate(art.payloads) if p >> 252 == 2 and cluster.decode(p)["emit"])
    fields = {**cluster.decode(art.payloads[at]), **changed}
    dev = opened(FOUR)
    done = dev.run(patched(art, at, cluster.encode(fields.pop("op"), raw=True, **fields)))
    assert done.failed
    assert len(done.rounds) == 1
    assert any(words in p for p in done.problems()), done.problems()
    # the rejected burst is reported once more, by the next RUN of the core that refused it
    again = dev.run(art)
    assert any("F_CUDATA" in p for p in again.problems())
    third = dev.run(art)
    assert not third.failed, third.problems()


@pytest.mark.parametrize("position", range(4))
def test_fault_in_the_sender(position: int) -> None:
    """A fault on each instruction of a cluster program: reported with its disassembly, no poll limit, no epilogue."""
    art = ktpu.compile(FORMS["silu"], spec(FOUR), fuse="require").artifact
    dev = opened(FOUR)
    done = dev.run(patched(art, position, 5 << 252))
    assert done.failed
    assert len(done.rounds) == 1
    report = "\n".join(done.problems())
    assert f"node (2, 1): instruction {position} ended in MG fault F_OPCODE" in report
    assert "POLL_LIMIT" not in report
    assert not dev.run(art).failed


def test_fault_in_a_kernel_names_its_word() -> None:
    """A RUN that faults: the word of the kernel, its number, and its disassembly."""
    art = ktpu.compile(ktpu.softmax(half(8, 128)), spec(ONE)).artifact
    loads = [vector.decode_envelope(p)[1] for p in art.payloads]
    at = next(i for i, f in enumerate(loads) if "word" in f and vector.disasm(f["word"]).startswith("VRED.MAX"))
    word = loads[at]
    broken = vector.load_word(word["addr"], word["word"] | 8 << 5)
    done = opened(ONE).run(patched(art, at, broken))
    report = "\n".join(done.problems())
    assert done.failed
    assert "ended in VC fault F_ENC (0x0a), detail 3: RUN 0, at word " in report
    assert f"at word {word['addr']}: VRED.reserved" in report


def test_fault_of_a_descriptor_write() -> None:
    """An envelope fault names the payload itself."""
    art = ktpu.compile(ktpu.silu(half(64)), spec(ONE)).artifact
    at = next(i for i, p in enumerate(art.payloads) if p >> 252 == 2)
    done = opened(ONE).run(patched(art, at, art.payloads[at] | 6 << 246))
    report = "\n".join(done.problems())
    assert f"node (1, 0): instruction {at} ended in VC fault F_ENV (0x12), detail 2: DESC A0 field 6" in report


def test_faults_without_a_disassembler() -> None:
    """The driver alone knows no instruction set; it still names node, instruction and code."""
    art = ktpu.compile(ktpu.silu(half(64)), spec(ONE)).artifact
    report = "\n".join(device(ONE).run(patched(art, 3, 9 << 252)).problems())
    assert "node (1, 0): instruction 3 ended in VC fault F_ENV (0x12), detail 9" in report


def test_epilogue_on_its_cores_only() -> None:
    """Receivers of the drains and kicked cores are the same nodes, instance by instance."""
    compiled = ktpu.compile(FORMS["bias_silu"], spec(FOUR), fuse="require")
    machine = spec(FOUR)
    _, band = compiled.schedule.bands
    assert isinstance(band, VectorBand)
    kicked = [(s.x, s.y) for s in compiled.artifact.steps if isinstance(s, Kick)]
    cores = {machine.units("VC")[u] for u in band.nodes}
    assert {k for k in kicked if k in machine.units("VC")} == cores
    dev = device(FOUR)
    dev.run(compiled.artifact)
    assert np.array_equal(result(dev, compiled), run(FOUR, ktpu.compile(FORMS["bias_silu"], machine, fuse="never")))
    assert len(image(dev, compiled)) > 0

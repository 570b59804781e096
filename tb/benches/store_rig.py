# SPDX-License-Identifier: Apache-2.0
"""A running machine with staging store and L2 adapter, and programs on it with their temporaries placed by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from cocotb.task import resume

import ktpu
from kohakuabi import Artifact, Image, Kick, Output
from kohakubench import checks, seed
from kohakubench.formulas import activation
from kohakubench.insim import InSim, start
from kohakubench.two_layers import FIRST, HIDDEN, SECOND, STAGE, M, N, call
from kohakudriver import Device
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.ints import up
from kohakutpu.isa import cluster
from kohakutpu.isa.generated import ClusterOp
from kohakutpu.kernels import Trace
from kohakutpu.kernels.formula import Formula
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.transport import ModelTransport
from kohakutpu.schedule import Schedule, plan
from kohakutpu.tensor import Call
from ktpu import compiling
from ktpu.disassembly import explain
from ktpu.replay import ReplayReport, replay

MACHINE = "mm_store"
MG, VC = (2, 1), (1, 0)
PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}


class Store:
    """Transport of the driver that takes notes.

    ``touched`` notes every access of the host to memory as (kind, address, bytes).
    """

    def __init__(self, sim: InSim) -> None:
        self.inner = sim
        self.description = sim.description
        self.touched: list[tuple[str, int, int]] = []
        self._beats = resume(self._count)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def mem_write(self, address: int, data: bytes) -> None:
        """Whole words to a 40-bit address."""
        self.touched.append(("write", address, len(data)))
        self.inner.mem_write(address, data)

    def mem_read(self, address: int, n: int) -> bytes:
        """Whole words from a 40-bit address."""
        self.touched.append(("read", address, n))
        return self.inner.mem_read(address, n)

    def beats(self) -> tuple[int, int]:
        """Words (read, written) on the DRAM bus so far."""
        return self._beats()

    async def _count(self) -> tuple[int, int]:
        return self.inner.dram.count("rd_beats"), self.inner.dram.count("wr_beats")


async def opened(dut: Any, number: int) -> tuple[Store, MachineSpec]:
    """The machine after reset with random memory behaviour, and what the compiler knows of it."""
    sim = Store(await start(dut, MACHINE, seed=seed() + number, **PRESSURE))
    return sim, MachineSpec.from_description(sim.description)


def pair(sim: Store) -> tuple[Device, Device]:
    """A fresh model and the running simulation as devices."""
    return Device(ModelTransport(sim.description)), Device(sim, None, explain)


def agreed(artifact: Artifact, model: Device, rtl: Device) -> ReplayReport:
    """Replay on both; every word, signal, counter and fault has to be equal."""
    report = replay(artifact, model, rtl)
    checks.equal("findings", [f.text() for f in report.findings()], [], n=max(1, report.compared))
    checks.true("something was compared", report.agree)
    return report


def program(
    spec: MachineSpec, payloads: Sequence[int], steps: Sequence[Any], images: Sequence[Image], outputs: Sequence[Output]
) -> Artifact:
    """An artifact put together by hand."""
    limits = {"stage_flits": spec.stage_flits, "ncmd": spec.ncmd, "credit_max": spec.credit}
    return Artifact(MACHINE, spec.digest(), tuple(payloads), tuple(images), tuple(steps), tuple(outputs), limits)


# ------------------------------------------------------------------ compiled programs


def activated(hidden: int = HIDDEN) -> Call:
    """y = silu(x w1^T) w2^T."""
    mlp = call(hidden=hidden, first=FIRST, second=SECOND)
    x, w1, w2 = (mlp.operands[n] for n in ("x", "w1", "w2"))
    graph = Graph()
    for name, shape in (("x", x.shape), ("w1", w1.shape), ("w2", w2.shape)):
        graph.value(Value(name, "fp16", shape, "in"))
    for name in ("z", "h"):
        graph.value(Value(name, "fp16", (M, hidden), "temp"))
    graph.value(Value("y", "fp16", (M, N), "out"))
    graph.ops.append(Op("contract", ("x", "w1"), "z", tuple(sorted(FIRST.items()))))
    activation(Formula(graph), "silu", "z", out="h")
    graph.ops.append(Op("contract", ("h", "w2"), "y", tuple(sorted(SECOND.items()))))
    return Call(Trace("activated", graph, {}), dict(mlp.operands))


def placed(kernel: Call, spec: MachineSpec, place: str, **options: Any) -> ktpu.Compiled:
    """``kernel`` with its temporaries in ``dram``, where the compiler puts them (``proposed``), or ``all`` staged."""
    if place == "dram":
        return ktpu.compile(kernel, spec.with_(stage_bytes=0), **options)
    if place == "proposed":
        return ktpu.compile(kernel, spec, **options)
    with patch.object(compiling, "plan", _everything_staged):
        return ktpu.compile(kernel, spec, **options)


def _everything_staged(*args: Any, **options: Any) -> Schedule:
    schedule = plan(*args, **{**options, "stage_operands": False})
    buffers, at = dict(schedule.buffers), STAGE
    for name, b in schedule.buffers.items():
        if b.role == "temp":
            buffers[name] = replace(b, address=at)
            at += up(b.nbytes, 256)
    return replace(schedule, buffers=buffers)


def with_temps(compiled: ktpu.Compiled) -> Artifact:
    """The artifact with every temporary as an output, so that a replay compares it too."""
    temps = [
        Output(b.name, b.address, up(b.nbytes, 32), b.layout, b.shape)
        for b in compiled.schedule.buffers.values()
        if b.role == "temp"
    ]
    return replace(compiled.artifact, outputs=(*compiled.artifact.outputs, *temps))


def filled(artifact: Artifact) -> dict[bool, int]:
    """Words the cluster reads by its fills, by whether they stand in the staging store."""
    words = {True: 0, False: 0}
    for word in _sent(artifact, MG):
        fields = cluster.decode(word)
        if fields["op"] == ClusterOp.FILL:
            words[fields["addr"] >= STAGE] += 4 * fields["n"]
    return words


def _sent(artifact: Artifact, node: tuple[int, int]) -> Iterator[int]:
    for r in artifact.rounds():
        for kick in (s for s in r.steps if isinstance(s, Kick)):
            if (kick.x, kick.y) == node:
                yield from r.payloads[kick.base : kick.base + kick.n]


def half(*shape: int, number: int = 0) -> np.ndarray:
    """FP16 bits of normal values."""
    values = np.random.default_rng([seed(), number, *shape]).standard_normal(shape)
    return values.astype(np.float16).view(np.uint16)

# SPDX-License-Identifier: Apache-2.0
"""Compiled products on model machines made by hand, for tests without a simulator."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

import ktpu
from kohakudriver import Device
from kohakutpu.isa.address import staging
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import product
from kohakutpu.model.transport import ModelTransport
from kohakutpu.schedule.layout import F16
from ktpu import devices

F64 = npt.NDArray[np.float64]

PLACES = ((2, 1), (2, 0), (3, 1), (3, 0), (4, 1), (4, 0), (3, 2), (4, 2))
"""Coordinates of up to eight clusters on four routers in a row; (1,1) is the orchestrator's."""


CORE_PLACES = ((1, 0), (1, 2), (2, 2), (5, 1))
"""Coordinates of up to four vector cores beside them."""


def description(
    clusters: int = 1, *, cores: int = 0, features: tuple[str, ...] = ("emit_fuse",), **changed: Any
) -> dict[str, Any]:
    """Machine description with ``clusters`` clusters and ``cores`` vector cores.

    ``changed`` replaces keys, MG_* cluster parameters.

    >>> description(2, MG_GA=128, ncmd=40)["params"]["MG"]["GA"]
    128
    """
    text: dict[str, Any] = json.loads(json.dumps(devices.description("mm_mesh")))
    text.update(name=f"hand{clusters}", nx=4, ny=1, external=[], features=list(features))
    text["units"] = {"MG": [list(p) for p in PLACES[:clusters]]}
    if cores:
        text["units"]["VC"] = [list(p) for p in CORE_PLACES[:cores]]
        for key, value in (("inst_depth", 32), ("max_inflight", 1), ("ackq", 64)):
            text[key] = {**text.get(key, {}), "VC": value}
    for key, value in changed.items():
        if key.startswith("MG_"):
            text["params"]["MG"][key[3:]] = value
        else:
            text[key] = value
    return text


def spec(text: dict[str, Any], **changed: Any) -> MachineSpec:
    """What the compiler knows of a description."""
    return MachineSpec.from_description(text).with_(**changed)


def device(text: dict[str, Any]) -> Device:
    """A model machine just after reset."""
    return Device(ModelTransport(text))


def operands(m: int, n: int, k: int, seed: int = 0) -> tuple[F64, F64]:
    """Normal values; B scaled so that results stay near one."""
    rng = np.random.default_rng([seed, m, n, k])
    return rng.standard_normal((m, k)), rng.standard_normal((n, k)) / np.sqrt(k)


def reference(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.uint16]:
    """FP16 bits of A B^T by the reference arithmetic on whole matrices, without any tiling."""
    return _product(a, b)[1]


def accumulated(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.uint32]:
    """Accumulator codes of A B^T by the same arithmetic."""
    return _product(a, b)[0]


def _product(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint16]]:
    x, y = (np.asarray(v).astype(np.float16) for v in (a, b))

    def padded(v: F16) -> npt.NDArray[np.uint16]:
        rows, k = -v.shape[0] % 4, -v.shape[1] % 32
        return np.pad(v, ((0, rows), (0, k))).view(np.uint16)

    codes, bits = product(padded(x), padded(y))
    return codes[: x.shape[0], : y.shape[0]], bits[: x.shape[0], : y.shape[0]]


def result(dev: Device, compiled: ktpu.Compiled) -> npt.NDArray[np.uint16]:
    """FP16 bits of the only output, read back."""
    (out,) = compiled.artifact.outputs
    return ktpu.read_output(out, dev.read(out.address, out.nbytes)).view(np.uint16)


def run(text: dict[str, Any], compiled: ktpu.Compiled) -> npt.NDArray[np.uint16]:
    """Run on a fresh model machine; the result's bits.

    Raises:
        AssertionError: a failed round, with the driver's words.
    """
    dev = device(text)
    done = dev.run(compiled.artifact)
    assert not done.failed, done.problems()
    return result(dev, compiled)


def image(dev: Device, compiled: ktpu.Compiled) -> bytes:
    """Everything in DRAM and in the staging store from the first buffer to the last, guards included."""
    spans = [(i.address, i.end) for i in compiled.artifact.images]
    spans += [(o.address, o.address + o.nbytes) for o in compiled.artifact.outputs]
    store = staging(0)
    out = b""
    for base, size in ((0, compiled.machine.dram_bytes), (store, compiled.machine.stage_bytes)):
        here = [(a, e) for a, e in spans if (a >= store) == (base == store)]
        if here:
            low, high = max(base, min(a for a, _ in here) - 4096), min(base + size, max(e for _, e in here) + 4096)
            out += dev.read(low, -(-(high - low) // 32) * 32)
    return out

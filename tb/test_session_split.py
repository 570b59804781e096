# SPDX-License-Identifier: Apache-2.0
"""Split K on RTL beside the model: tiles sent from cluster to cluster, and into the slots of a core (5.4)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import ktpu
from kohakubench.plans import expected
from kohakudriver import Device
from kohakutpu.kernels.language import In, Out, dims, kernel, loop, tile, units
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import Contraction, Operand
from ktpu.replay import replay

pytestmark = [pytest.mark.system, pytest.mark.slow]

M, N, K = dims("M, N, K")
Trio = tuple[Device, Device, MachineSpec]
LATENCY = {"lat_min": 5, "lat_max": 50}


@kernel
def partial(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=4, gn=4, nk=1, count=2, by="peer"):  # type: ignore[no-untyped-def]
    """A product in ``count`` partials."""
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk, split=count, route=by)
        for k in loop(a.chunks32(nk)):
            acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc


@kernel
def squared(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=4, gn=4, nk=1, count=2, by="peer"):  # type: ignore[no-untyped-def]
    """The square of a product in ``count`` partials, computed where the sum arrives."""
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk, split=count, route=by)
        for k in loop(a.chunks32(nk)):
            acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc * acc


def opened(name: str) -> Iterator[Trio]:
    rtl = ktpu.open(f"rtl:{name}", dram=LATENCY)
    yield ktpu.open(f"model:{name}"), rtl, ktpu.machine(name)
    rtl.close()


@pytest.fixture(scope="module")
def quad() -> Iterator[Trio]:
    """Four clusters and two cores."""
    yield from opened("mm_quad")


@pytest.fixture(scope="module", params=["mm_mesh", "mm_store"])
def single(request: pytest.FixtureRequest) -> Iterator[Trio]:
    """One cluster and one core."""
    yield from opened(request.param)


def agrees(machines: Trio, size: tuple[int, int, int], kind: object = partial, **knobs: object) -> None:
    """Every completion, acknowledgement and word as on the model, and the bits of the reference in its order."""
    model, rtl, spec = machines
    m, n, k = size
    rng = np.random.default_rng([m, n, k])
    a, b = ((rng.standard_normal(s) * 0.4).astype(np.float16) for s in ((m, k), (n, k)))
    fuse = "require" if kind is squared else "auto"
    compiled = ktpu.compile(ktpu.call(kind, a, b, **knobs), spec, fuse=fuse)  # type: ignore[arg-type]
    report = replay(compiled.artifact, model, rtl)
    assert report.agree, "\n".join(f.text() for f in report.findings())
    (out,) = compiled.artifact.outputs
    bits = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    if kind is partial:
        operands = Operand("a", "in", (m, k)), Operand("b", "in", (n, k)), Operand("c", "out", (m, n))
        c = Contraction(*operands, split=int(knobs["count"]), route=str(knobs["by"]))  # type: ignore[call-overload]
        assert np.array_equal(bits, expected([c], {"a": a, "b": b})["c"].view(np.uint16))
    got = ktpu.run(ktpu.call(kind, a, b, **knobs), rtl)["c"]  # type: ignore[arg-type]
    assert np.array_equal(got.view(np.uint16), bits)


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("size", [(16, 16, 256), (29, 34, 256)])
def test_peer(quad: Trio, count: int, size: tuple[int, int, int]) -> None:
    """One wave and several, extents that are no multiples of the tile."""
    agrees(quad, size, count=count, by="peer")


@pytest.mark.parametrize("tile_size", [(1, 1), (16, 32)])
def test_peer_of_the_smallest_and_largest_tile(quad: Trio, tile_size: tuple[int, int]) -> None:
    """One sub-tile, one burst; all 512 sub-tiles, 128 bursts and acknowledgements."""
    gm, gn = tile_size
    agrees(quad, (4 * gm, 4 * gn, 256), count=4, by="peer", gm=gm, gn=gn, nk=2)


@pytest.mark.parametrize("count", [2, 4])
def test_core_from_clusters(quad: Trio, count: int) -> None:
    """A cluster a partial, one sender at a time."""
    agrees(quad, (16, 15, 256), count=count, by="core")


@pytest.mark.parametrize("route", ["peer", "core"])
def test_epilogue(quad: Trio, route: str) -> None:
    """The square is taken of the sum rounded to FP16, without a temp."""
    agrees(quad, (16, 30, 256), squared, count=2, by=route)


@pytest.mark.parametrize("count", [2, 4])
def test_core_from_one_cluster(single: Trio, count: int) -> None:
    """One cluster makes and sends all partials."""
    agrees(single, (16, 16, 256), count=count, by="core")
    agrees(single, (13, 15, 256), squared, count=count, by="core")

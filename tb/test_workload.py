# SPDX-License-Identifier: Apache-2.0
"""The network of docs/spec/kernels.md: its published figures follow from the tree, and it fits where the page says."""

from __future__ import annotations

import pytest

from kohakubench import sdxl
from kohakubench.sdxl import Network
from kohakutpu.errors import CompileError
from kohakutpu.schedule.model_plan import ModelPlan

pytestmark = pytest.mark.unit

MESH = 4 << 30


def network(build, size: int = MESH, **options) -> Network:
    net = Network(ModelPlan(size), **options)
    build(net)
    return net


def texts() -> tuple[Network, Network]:
    first = network(lambda n: sdxl.text_encoder(n, 768, 12, projected=False))
    return first, network(lambda n: sdxl.text_encoder(n, 1280, 32, projected=True))


def test_module_counts() -> None:
    """Section 1.1."""
    net = network(sdxl.unet)
    want = {
        "conv3x3": 40,
        "conv1x1": 11,
        "linear": 743,
        "layer_norm": 210,
        "group_norm": 46,
        "silu": 54,
        "gelu": 70,
        "softmax": 140,
        "residual_add": 238,
        "embedding_add": 17,
        "concat": 9,
    }
    assert {kind: net.count(kind) for kind in want} == want


def close(value: float, published: str) -> None:
    """``value`` rounded to as many digits as ``published`` has is ``published``."""
    digits = len(published.partition("e")[0].replace(".", ""))
    assert f"{value:.{digits - 1}e}".replace("e+", "e").replace("e0", "e") == published


def test_arithmetic() -> None:
    """Section 2, column "recomputed"."""
    net = Network(ModelPlan(MESH))
    places = sdxl.unet(net)
    close(sum(m.macs for m in net.modules if m.kind.startswith("conv")), "8.116e11")
    published = {
        "level 1 in": "2.158e11",
        "level 2 in": "6.765e11",
        "mid": "3.382e11",
        "level 2 out": "1.015e12",
        "level 1 out": "3.237e11",
    }
    assert places.keys() == published.keys()
    for place, figure in published.items():
        close(places[place], figure)
    close(net.macs, "3.381e12")
    encoders = 2 * sum(t.macs for t in texts())
    close(encoders, "1.112e11")
    decoder = network(sdxl.vae).macs
    close(decoder, "5.235e12")
    close(60 * net.macs + encoders + decoder, "2.082e14")


def test_parameters() -> None:
    """Section 2: parameters, which are the bytes as stored, and the FP16 bytes."""
    parts = [network(sdxl.unet), *texts(), network(sdxl.vae)]
    for part, published in zip(parts, ("2.5675e9", "1.231e8", "6.947e8", "4.949e7"), strict=True):
        close(part.parameters, published)
    close(sum(p.parameters for p in parts), "3.4347e9")
    close(2 * sum(p.parameters for p in parts), "6.869e9")


def test_the_network_in_one_mesh() -> None:
    """Weights as entries fit beside every activation; nothing that is alive together shares a byte."""
    net = network(sdxl.unet)
    net.plan.solve()
    assert net.plan.verify() == []
    pinned = sum(n.nbytes for n in net.plan.needs if n.role == "const")
    assert 2.56e9 < pinned < net.plan.peak < MESH
    assert len(net.plan.steps) > 2000


def test_the_network_in_fp16_is_refused() -> None:
    """5.14 GB of weights do not fit 4 GiB; four meshes' worth of memory holds them."""
    with pytest.raises(CompileError, match=r"weights alone take 51\d{8} bytes"):
        network(sdxl.unet, quantised=False).plan.solve()
    larger = network(sdxl.unet, 4 * MESH, quantised=False)
    larger.plan.solve()
    assert larger.plan.verify() == []


def test_decoder_beside_the_network_is_refused() -> None:
    """The decoder alone fits; its activations do not fit beside the weights of the network."""
    network(sdxl.vae).plan.solve()
    both = Network(ModelPlan(MESH))
    sdxl.unet(both)
    sdxl.vae(both)
    with pytest.raises(CompileError, match="do not fit"):
        both.plan.solve()


def test_decoder_behind_the_network() -> None:
    """Both in one sequence: refused with the weights that could go, in place once the plan releases exactly those."""
    pinned = Network(ModelPlan(MESH))
    sdxl.unet(pinned)
    weights = [n.name for n in pinned.plan.needs if n.role == "const"]
    sdxl.vae(pinned)
    named = rf"reads none of {weights[0]} \.\. \S+, 25\d{{8}} bytes: release\(\) them"
    with pytest.raises(CompileError, match=named):
        pinned.plan.solve()
    both = Network(ModelPlan(MESH))
    sdxl.unet(both)
    both.plan.release(*weights)
    sdxl.vae(both)
    both.plan.solve()
    assert both.plan.verify() == []
    assert max(n.nbytes for n in both.plan.needs) >= 537e6
    with pytest.raises(CompileError, match=rf"again reads {weights[0]}, which was released"):
        both.plan.call("again", (weights[0],), ())
    with pytest.raises(CompileError, match=r"release\(x\): no weight of this name was declared"):
        both.plan.release("x")


def test_largest_activation() -> None:
    """Section 2: 537 MB, 1024 x 1024 x 256 behind the last upsample; 10.49 MB at level 0 of the network."""
    decoder = network(sdxl.vae)
    largest = max(n.nbytes for n in decoder.plan.needs if ".mx" not in n.name)
    assert 537e6 < largest < 1.02 * 537e6
    assert 10.49e6 < sdxl.Activation("x", 320, 128).nbytes < 1.04 * 10.49e6

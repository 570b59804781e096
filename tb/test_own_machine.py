# SPDX-License-Identifier: Apache-2.0
"""A machine of the user's own: a picture outside this repository (docs/spec/compiler.md 13.1)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ktpu
from ktpu.devices import description
from ktpu.replay import replay

pytestmark = pytest.mark.unit

PICTURE = """
format = 1
name = "own"
rows = [ ".    mg   mg   .",
         "mem  agt  vc   mg",
         ".    -    vc   ." ]
control.attach = "token"
unit.vc.kind  = "vector"
unit.mg.kind  = "cluster"
unit.mem.kind = "memory"
unit.agt.kind = "orchestrator"
"""


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    """Three clusters and two vector cores."""
    path = tmp_path / "mine.toml"
    path.write_text(PICTURE)
    return path


def network(dev: ktpu.TensorDevice) -> np.ndarray:
    """Two products with an activation and a softmax behind them."""
    rng = np.random.default_rng(1)
    x, w, v = (ktpu.tensor(rng.standard_normal(s) / 4, dev) for s in ((48, 64), (96, 64), (32, 96)))
    return (x.linear(w, activation="silu") @ v).softmax().numpy()


def test_a_picture_of_ones_own_opens(picture: Path) -> None:
    """Every unit of it gets work, and the result is that of a machine of this repository."""
    spec = ktpu.machine(str(picture))
    assert (spec.name, len(spec.units("MG")), len(spec.units("VC"))) == ("own", 3, 2)
    with ktpu.open(f"model:{picture}") as dev, ktpu.open("model:mm_mesh") as known:
        assert dev.name == "own"
        assert np.abs(network(dev).astype(float) - network(known)).max() < 1e-3
    call = ktpu.matmul(np.ones((96, 64)), np.ones((96, 64)), gm=4, gn=4, nk=2)
    program = ktpu.compile(call, spec)
    assert {u for _, u in program.schedule.dealt[0]} == {0, 1, 2}


def test_a_changed_picture_is_another_machine(picture: Path) -> None:
    """The file is read again when it was written again; programs of the old machine are refused by the new one."""
    program = ktpu.compile(ktpu.matmul(np.ones((8, 32)), np.ones((8, 32))), ktpu.machine(str(picture)))
    picture.write_text(PICTURE.replace("vc   mg", "vc   vc"))
    with ktpu.open(f"model:{picture}") as dev:
        assert len(dev.runtime.machine.units("VC")) == 3
        with pytest.raises(ValueError, match="machine"):
            dev.run(program.artifact)


def test_refusals(picture: Path, tmp_path: Path) -> None:
    """A file that is not there, and one that is no machine, with every reason."""
    with pytest.raises(ktpu.TargetError, match=r"no\.toml does not exist; there are: .*mm_mesh.*path/to/machine.toml"):
        ktpu.open(f"model:{tmp_path / 'no.toml'}")
    picture.write_text(PICTURE.replace('kind  = "vector"', 'kind  = "victor"'))
    with pytest.raises(ktpu.TargetError, match=r"mine\.toml: .*victor"):
        description(str(picture))
    with pytest.raises(ktpu.TargetError, match="or a picture file"):
        ktpu.open("mm_mesh")


@pytest.mark.slow
@pytest.mark.system
def test_the_rtl_of_ones_own_picture(picture: Path) -> None:
    """The generated machine computes what its model computes: a chain of calls, and one program bit for bit."""
    with ktpu.open(f"rtl:{picture}") as rtl, ktpu.open(f"model:{picture}") as model:
        assert np.array_equal(network(rtl), network(model))
        rng = np.random.default_rng(2)
        call = ktpu.linear_silu(rng.standard_normal((48, 64)), rng.standard_normal((48, 64)), gm=4, gn=4, nk=2)
        program = ktpu.compile(call, ktpu.machine(str(picture)))
    with ktpu.open(f"rtl:{picture}") as rtl, ktpu.open(f"model:{picture}") as model:
        assert replay(program.artifact, model, rtl).agree

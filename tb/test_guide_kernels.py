# SPDX-License-Identifier: Apache-2.0
"""The code of docs/guide_kernels.md runs as it is printed (docs/spec/compiler.md 11)."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import kernel_shapes
import ktpu
from kohakuabi import Artifact
from ktpu.cli import app

pytestmark = pytest.mark.unit

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide_kernels.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file the guide has the reader write, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.py"
    path.write_text(BLOCKS[0] + BLOCKS[1], encoding="utf-8")
    return path


def test_the_first_kernel(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It prints an error below 3% of the peak, which is 4.7, and leaves a program that loads."""
    runpy.run_path(str(mine), run_name="__main__")
    assert 0 < float(capsys.readouterr().out) < 0.14
    assert Artifact.load("mine.ktpu").machine == "mm_mesh"


def test_its_explanation(mine: Path) -> None:
    """Both commands of the guide."""
    text = GUIDE.read_text(encoding="utf-8")
    commands = [line.split()[1:] for line in text.splitlines() if line.startswith("ktpu explain")]
    assert len(commands) == 2
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        assert "linear_bias_silu" in done.output
    assert mine.with_suffix(".html").exists()


def test_rows_and_temps() -> None:
    """A softmax, and a norm with a product behind it, against float64."""
    names: dict[str, Any] = {}
    softmax, norm_linear = BLOCKS[2], BLOCKS[3]
    path = GUIDE.with_name("guide_kernels.py")
    exec(compile(BLOCKS[0] + softmax + norm_linear, str(path), "exec"), names)
    rng = np.random.default_rng(2)
    x, g, w = rng.standard_normal((2, 20, 64)), rng.uniform(0.5, 1.5, 64), rng.standard_normal((24, 64)) / 8
    device = ktpu.open("model:mm_store")
    got = ktpu.run(ktpu.call(names["norm_linear"], x, g, w), device)["y"]
    want = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * g @ w.T
    assert np.abs(got - want).max() < 3e-2 * np.abs(want).max()
    s = rng.standard_normal((4, 128))
    e = np.exp(s - s.max(-1, keepdims=True))
    got = ktpu.run(ktpu.call(names["softmax"], s), device)["y"]
    assert np.allclose(got, e / e.sum(-1, keepdims=True), rtol=2e-3)


def test_page_of_shapes() -> None:
    """docs/kernel_shapes.md is what ``python tb/kernel_shapes.py`` prints."""
    assert kernel_shapes.PAGE.read_text(encoding="utf-8") == kernel_shapes.page()

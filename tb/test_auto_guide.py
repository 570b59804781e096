# SPDX-License-Identifier: Apache-2.0
"""The example of docs/guide_rewrites.md runs and prints what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kohakutpu.rewrite import BY_NAME, interpret
from ktpu.auto_reasons import REASONS

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).resolve().parents[1] / "docs/guide_rewrites.md").read_text(encoding="utf-8")


def test_example(capsys: pytest.CaptureFixture[str]) -> None:
    """The first block of code, its output the block behind it, its result near float64."""
    (language, code), (_, shown) = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.S)
    assert language == "python"
    scope: dict[str, Any] = {}
    exec(code, scope)
    assert capsys.readouterr().out == shown
    program = scope["program"]
    values = dict(zip(("x", "wq", "wk", "wv", "wo"), (scope["x"], *scope["weights"]), strict=True))
    want = interpret(program.expression, values)
    assert np.abs(scope["y"] - want).max() <= 6e-2 * np.abs(want).max()


def test_lists_of_the_page() -> None:
    """Every entry of the catalogue and every reason has its line."""
    first = {line.split("|")[1].strip() for line in PAGE.splitlines() if line.startswith("| ")}
    assert set(BY_NAME) <= first
    assert {r if r != "form needs rewrite" else "form needs rewrite R" for r in REASONS} <= first

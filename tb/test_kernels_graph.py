# SPDX-License-Identifier: Apache-2.0
"""The graph of every kernel of the library means what its body says (docs/spec/compiler.md 4 and 11)."""

from __future__ import annotations

import numpy as np
import pytest

import kernel_cases as kc
from kohakutpu.graph import Graph, interpret
from kohakutpu.kernels.language.lower import lower

pytestmark = pytest.mark.unit

FAST = [c for c in kc.CASES if not c.slow]


def graph_of(case: kc.Case, operands: kc.Operands) -> tuple[Graph, dict[str, np.ndarray]]:
    """The graph and its operands, tables included, in the shapes the graph gives them."""
    bound = case.kernel().trace(**case.knobs).extents({n: v.shape for n, v in operands.items()})
    graph = lower(bound).graph
    tables = {b.name: np.asarray(b.data) for b in bound.trace.buffers if b.data is not None}
    return graph, {n: np.asarray(v).reshape(graph.values[n].shape) for n, v in {**operands, **tables}.items()}


@pytest.mark.parametrize("case", FAST, ids=lambda c: c.name)
def test_graph_means_its_formula(case: kc.Case) -> None:
    """Interpreted in float64, the graph is inside the class of the kernel."""
    operands = case.draw()
    graph, arrays = graph_of(case, operands)
    (got,) = interpret(graph, arrays).values()
    want = case.reference(operands)
    metrics = kc.grade(got.reshape(want.shape), want)
    assert not kc.broken(metrics, case.bound)
    if case.bound in ("M", "M2"):
        assert metrics.max <= 1.5e-3


def test_an_attention_step_is_four_passes() -> None:
    """Scores, the running reduction in one pass, the product with v, the running result; and two around them."""
    case = next(c for c in kc.CASES if c.name == "flash_4x64x64_64_64_64")
    graph, _ = graph_of(case, case.draw())
    assert [op.kind for op in graph.ops].count("contract") == 2
    assert any(len(group) == 4 for group in graph.adjacent)


def test_named_tiling_and_head_join_reach_the_graph() -> None:
    """A tiling named by hand reaches every product of the graph."""
    case = next(c for c in kc.CASES if c.name == "attn_out_4x128")
    graph, _ = graph_of(case, case.draw())
    (op,) = [op for op in graph.ops if op.kind == "contract"]
    assert {k: op.attr(k) for k in ("gm", "gn", "nk")} == case.knobs
    assert op.attr("join") == 4

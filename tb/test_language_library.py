# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library as a graph, interpreted against its float64 reference (docs/spec/kernels.md 3 to 5)."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernel_cases as kc
from kohakutpu.graph import Graph, interpret, requests
from kohakutpu.kernels import library
from kohakutpu.kernels.language.kernel import Bound
from kohakutpu.kernels.language.lower import lower

pytestmark = pytest.mark.unit

CASES = [c for c in kc.CASES if not c.slow]


def bound_graph(case: kc.Case, operands: kc.Operands) -> tuple[Bound, Graph]:
    """The kernel of a case at the shapes of its operands."""
    bound = case.kernel().trace(**case.knobs).extents({n: v.shape for n, v in operands.items()})
    return bound, lower(bound).graph


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_graph_means_its_formula(case: kc.Case) -> None:
    """Within the limits of its error class; every pass and product of it has a request."""
    operands = case.draw()
    bound, graph = bound_graph(case, operands)
    given = {n: np.asarray(v, dtype=np.float64) for n, v in operands.items()}
    given |= {b.name: b.data for b in bound.trace.buffers if b.data is not None}
    (got,) = interpret(graph, {n: v.reshape(graph.values[n].shape) for n, v in given.items()}).values()
    want = case.reference(operands)
    assert not kc.broken(kc.grade(got.reshape(want.shape), want), case.bound)
    assert requests(graph)


@pytest.mark.parametrize("blocks", [1, 2, 4])
def test_attention_takes_four_bands_a_block_of_keys(blocks: int) -> None:
    """And two more: the first values of the state, and the division at the end (docs/spec/kernels.md 3, row 17)."""
    shapes = {"q": (4, 64, 64), "k": (4, 64 * blocks, 64), "v": (4, 64, 64 * blocks)}
    bound = library.flash_attention.trace(block=64).extents(shapes)
    assert len(requests(lower(bound).graph)) == 4 * blocks + 2


def test_attention_of_a_large_image_never_holds_all_scores() -> None:
    """One [qblock, block] tile of scores at a time (docs/spec/kernels.md 5.6)."""
    n, block, span = 2048, 128, 512
    shapes = {"q": (1, n, 512), "k": (1, n, 512), "v": (1, 512, n)}
    graph = lower(library.flash_attention.trace(block=block, qblock=span).extents(shapes)).graph
    temps = [v for v in graph.values.values() if v.role == "temp" and v.in_memory]
    assert max(math.prod(v.shape) for v in temps) == span * 512
    scores = [graph.values[op.result] for op in graph.ops if op.kind == "contract" and "k" in op.args]
    assert {v.shape for v in scores} == {(span, block)}
    assert len(scores) == (n // span) * (n // block)

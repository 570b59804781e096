# SPDX-License-Identifier: Apache-2.0
"""The L13 scoreboard accepts any interleaving of pairs and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohakubench.pair_order import PairOrder

pytestmark = pytest.mark.unit


def flit(src, dst, n):
    """A flit from ``src`` to ``dst`` with payload ``n``."""
    return dst[0] << 284 | dst[1] << 280 | src[0] << 276 | src[1] << 272 | n


A, B, C = (0, 1), (2, 1), (1, 0)


@given(st.lists(st.sampled_from([(A, B), (C, B), (A, C)]), max_size=40), st.randoms(use_true_random=False))
def test_any_interleaving(pairs, rng):
    """Each pair in its own order, pairs shuffled against each other."""
    board = PairOrder()
    queues = {}
    for n, pair in enumerate(pairs):
        f = flit(*pair, n)
        board.sent(f)
        queues.setdefault(pair, []).append(f)
    while queues:
        pair = rng.choice(sorted(queues))
        board.received(queues[pair].pop(0), at=pair[1])
        if not queues[pair]:
            del queues[pair]
    board.finish()
    assert board.delivered == len(pairs)


def test_faults():
    """Reorder, duplicate, damage, wrong endpoint and loss are each reported as what they are."""
    board = PairOrder()
    flits = [flit(A, B, n) for n in range(3)]
    for f in flits:
        board.sent(f)
    with pytest.raises(AssertionError, match=r"\(0, 1\) to \(2, 1\).*overtook 1 earlier"):
        board.received(flits[1])
    board.received(flits[0])
    with pytest.raises(AssertionError, match="duplicate or damage"):
        board.received(flits[0])
    with pytest.raises(AssertionError, match="duplicate or damage"):
        board.received(flits[1] ^ 8)
    with pytest.raises(AssertionError, match="endpoint"):
        board.received(flits[1], at=C)
    board.received(flits[1], at=B)
    with pytest.raises(AssertionError, match=r"1 missing, first pair \(0, 1\) to \(2, 1\)"):
        board.finish()

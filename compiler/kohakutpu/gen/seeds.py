# SPDX-License-Identifier: Apache-2.0
"""Seed tables of the vector lane from their rule (docs/spec/numerics.md 10.1), with 60 decimal digits.

``python -m kohakutpu.gen`` refuses a ``spec/vector_isa.json`` whose rows or SHA-256 differ from the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from hashlib import sha256
from typing import Any

LAYER = "L0"

_DIGITS = 60
_SEGMENTS = 32
_SHIFTS = (20, 24, 28)
Row = list[int]


def _functions() -> Iterator[tuple[int, int, Callable[[Decimal], Decimal]]]:
    """(function, parity, g) with g taken at t = (segment + u)/32 of one binade."""
    two = Decimal(2)
    ln2 = two.ln()
    yield 0, 0, lambda t: (t * ln2).exp() - 1
    yield 1, 0, lambda t: (1 + t).ln() / ln2
    yield 2, 0, lambda t: 1 / (1 + t)
    yield 3, 0, lambda t: 1 / (1 + t).sqrt()
    yield 3, 1, lambda t: 1 / (two * (1 + t)).sqrt()


def _quadratic(g: Callable[[Decimal], Decimal], segment: int) -> tuple[Decimal, Decimal, Decimal]:
    """Coefficients of the quadratic through g at the three Chebyshev nodes of a segment (Newton form)."""
    half_chord = Decimal(3).sqrt() / 4  # cos(pi/6) / 2; the middle node is 1/2
    x0, x1, x2 = Decimal("0.5") + half_chord, Decimal("0.5"), Decimal("0.5") - half_chord
    y0, y1, y2 = (g((segment + x) / _SEGMENTS) for x in (x0, x1, x2))
    d01, d12 = (y1 - y0) / (x1 - x0), (y2 - y1) / (x2 - x1)
    c2 = (d12 - d01) / (x2 - x0)
    c1 = d01 - c2 * (x0 + x1)
    return y0 - x0 * (c1 + c2 * x0), c1, c2


def rows() -> list[Row]:
    """The 160 rows [function, entry, c0, c1, c2] in the order of the JSON."""
    out = []
    with localcontext(Context(prec=_DIGITS)):
        for f, parity, g in _functions():
            for segment in range(_SEGMENTS):
                scaled = [c * (1 << shift) for c, shift in zip(_quadratic(g, segment), _SHIFTS, strict=True)]
                numbers = [int(c.to_integral_value(ROUND_HALF_EVEN)) for c in scaled]
                out.append([f, _SEGMENTS * parity + segment, *numbers])
    return out


def digest(table: list[Row]) -> str:
    """SHA-256 of the rows as text: one line a row, columns separated by one space, newline after each row."""
    return sha256("".join(" ".join(map(str, row)) + "\n" for row in table).encode()).hexdigest()


def problems(tables: dict[str, Any]) -> Iterator[str]:
    """Contradictions between the `seed_tables` of the JSON and the rule."""
    if tables["rows"] != rows():
        yield "vector seed tables: the rows differ from the stated rule"
    if tables["sha256"] != digest(tables["rows"]):
        yield "vector seed tables: the rows differ from their SHA-256"

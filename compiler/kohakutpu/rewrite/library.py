# SPDX-License-Identifier: Apache-2.0
"""Kernels of the library by the expression they compute (docs/spec/compiler.md 13.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kohakutpu.kernels import library
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.rewrite.expr import Expr, hole, make, named, numeral, some
from kohakutpu.rewrite.generate import one_row, reducible
from kohakutpu.rewrite.normal import normal
from kohakutpu.rewrite.ops import reshape
from kohakutpu.rewrite.template import Bound, unify

LAYER = "L5"

ROW_STEP = 16
_LONGEST_SOFTMAX = 65504.0


@dataclass(frozen=True)
class Choice:
    """A kernel of the library, what its In ports take in order, and its knobs."""

    kernel: Kernel
    operands: tuple[Expr, ...]
    knobs: Mapping[str, Knob] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """Templates of an expression and the kernel for a match, None if an extent does not suit it."""

    name: str
    templates: tuple[Expr, ...]
    choose: Callable[[Expr, Bound], Choice | None]

    def match(self, e: Expr) -> Choice | None:
        """The kernel that computes ``e``."""
        for template in self.templates:
            for found in unify(template, e):
                choice = self.choose(e, found)
                if choice is not None:
                    return choice
        return None


_x, _w, _b = hole("x"), hole("w"), hole("b")
_part, _eps = numeral("part"), numeral("eps")


def _sum(e: Expr) -> Expr:
    return make("reduce_sum", e, axis=-1)


def _softmax_of(power: str) -> Expr:
    shifted = make(power, _x - make("reduce_max", _x, axis=-1))
    return normal(shifted / _sum(shifted))


def _softmax(e: Expr, found: Bound) -> Choice | None:
    """Softmax along rows; in base 2 of ln(2) x."""
    x, n = found["x"], e.extents[-1]
    if x.shape != e.shape or n % ROW_STEP or n > _LONGEST_SOFTMAX:
        return None
    base_2 = e.args[0].op == "exp2"
    if base_2 and reducible(n):
        return None
    scores = normal(x * math.log(2.0)) if base_2 else x
    return Choice(library.softmax(n) if reducible(n) else library.softmax_wide(n), (scores,))


def _norms(centred: bool) -> tuple[Expr, ...]:
    d = _x - _sum(_x) * _part if centred else _x
    root = make("rsqrt", _sum(d * d) * _part + _eps)
    scaled = (d * root * _w, d * (root * _w), d * _w * root)
    return tuple(normal(s + _b if centred else s) for s in scaled)


def _is_mean(e: Expr, found: Bound) -> bool:
    """True if the factor of the sums is 1/n, n a width the kernels take."""
    n, part = e.extents[-1], found["part"].number or 0.0
    return found["x"].shape == e.shape and n % ROW_STEP == 0 and math.isclose(part * n, 1.0, rel_tol=1e-6)


def _vector(row: Expr) -> Expr:
    """One row as the vector the kernels take."""
    return row if len(row.extents) == 1 else reshape(row, row.extents[-1])


def _layernorm(e: Expr, found: Bound) -> Choice | None:
    n, (x, w, b) = e.extents[-1], (found[k] for k in "xwb")
    if not _is_mean(e, found):
        return None
    eps = {"eps": found["eps"].number}
    if one_row(w.extents, e.extents) and one_row(b.extents, e.extents):
        kernel = library.layernorm(n) if reducible(n) else library.layernorm_wide(n)
        return Choice(kernel, (x, _vector(w), _vector(b)), eps)
    if w.shape == b.shape == e.shape:
        return Choice(library.group_norm(n) if reducible(n) else library.group_norm_wide(n), (x, w, b), eps)
    return None


def _silu_norm(e: Expr, found: Bound) -> Choice | None:
    inner = _layernorm(e.args[0], found)
    n = e.extents[-1]
    if inner is None or found["w"].shape != e.shape or reducible(n):
        return None
    return Choice(library.group_norm_silu_wide(n), inner.operands, inner.knobs)


def _rmsnorm(e: Expr, found: Bound) -> Choice | None:
    n, (x, w) = e.extents[-1], (found[k] for k in "xw")
    if not _is_mean(e, found) or not one_row(w.extents, e.extents):
        return None
    kernel = library.rmsnorm(n) if reducible(n) else library.rmsnorm_wide(n)
    return Choice(kernel, (x, _vector(w)), {"eps": found["eps"].number})


def _attention(e: Expr, found: Bound) -> Choice | None:
    operands = found["q"], found["k"], found["v"]
    knobs: dict[str, Knob] = {"block": e.index("block")}
    if e.index("keys") != operands[1].extents[-2]:
        knobs["keys"] = e.index("keys")
    return Choice(library.flash_attention, operands, knobs)


LIBRARY: tuple[Entry, ...] = (
    Entry("flash_attention", (some("online_attention", hole("q"), hole("k"), hole("v")),), _attention),
    Entry("softmax", (_softmax_of("exp"), _softmax_of("exp2")), _softmax),
    Entry("layernorm", _norms(centred=True), _layernorm),
    Entry("group_norm_silu", tuple(make("silu", named("norm", t)) for t in _norms(centred=True)), _silu_norm),
    Entry("rmsnorm", _norms(centred=False), _rmsnorm),
)
"""Kernels that the generated ones do not replace, in the order they are tried."""


def match(e: Expr) -> Choice | None:
    """The kernel of the library that computes ``e`` from less, None if there is none."""
    return next((choice for entry in LIBRARY if (choice := entry.match(e)) is not None), None)


# SPDX-License-Identifier: Apache-2.0
"""A rewrite, and a catalogue of them applied to an expression (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from kohakutpu.errors import CompileError
from kohakutpu.rewrite.expr import Expr, like, walk
from kohakutpu.rewrite.normal import normal
from kohakutpu.rewrite.template import Bound, unify

LAYER = "L5"

_MOST = 1000
"""Applications after which a catalogue is taken to run in a circle."""


class Equality(Enum):
    """How a replacement relates to what it replaces."""

    BIT = "bit identical"
    """The machine computes the same bits."""
    BYTE = "byte identical"
    """The same bytes lie in memory."""
    EXACT = "exact"
    """The same terms are added: equal in exact arithmetic, term by term."""
    FOLDED = "exact up to the FP16 rounding of the folded weights"
    """Equal in exact arithmetic but for weights that are computed and rounded to FP16 at load time."""
    BOUND = "bound"
    """Equal in exact arithmetic; roundings differ within the class of the kernel."""


@dataclass(frozen=True)
class Outcome:
    """What a rewrite makes of a node.

    Args:
        result: the replacement, None if there is none.
        reason: why a node that looks like the pattern was left, "" if it does not look like it.
    """

    result: Expr | None = None
    reason: str = ""


class Rewrite(ABC):
    """An entry of the catalogue: pattern, preconditions, replacement and how equal both are."""

    name: ClassVar[str]
    equality: ClassVar[Equality]
    templates: ClassVar[tuple[Expr, ...]] = ()
    """Patterns, in normal form; an entry whose pattern is no template overrides :meth:`matches`."""

    def matches(self, e: Expr) -> Iterator[Bound]:
        """Every way in which ``e`` is the pattern."""
        for template in self.templates:
            yield from unify(template, e)

    def refusal(self, found: Bound) -> str:
        """The precondition that a match does not meet, in words; "" if it meets all."""
        return ""

    @abstractmethod
    def replacement(self, found: Bound) -> Expr:
        """What replaces a match that meets the preconditions."""

    def attempt(self, e: Expr) -> Outcome:
        """Rewrite one node in normal form."""
        reasons = []
        for found in self.matches(e):
            why = self.refusal(found)
            if not why:
                return Outcome(self.replacement(found))
            reasons.append(why)
        return Outcome(reason=reasons[0] if reasons else "")


@dataclass(frozen=True)
class Applied:
    """A rewrite that was applied: its name, the node before and the node after."""

    rewrite: str
    before: Expr
    after: Expr


@dataclass(frozen=True)
class Refused:
    """A node that looks like the pattern of a rewrite and misses a precondition."""

    rewrite: str
    node: Expr
    reason: str


@dataclass(frozen=True)
class Rewritten:
    """An expression after a catalogue, with what was done and what was refused on the way."""

    result: Expr
    applied: tuple[Applied, ...] = ()
    refused: tuple[Refused, ...] = ()


def rewrite(root: Expr, catalogue: Iterable[Rewrite]) -> Rewritten:
    """Apply a catalogue until nothing changes, operands before what reads them.

    Raises:
        CompileError: entries that undo each other.
    """
    entries, applied = tuple(catalogue), list[Applied]()
    refused: dict[tuple[str, Expr], Refused] = {}
    current = normal(root)
    for _ in range(_MOST):
        step = _step(current, entries, refused)
        if step is None:
            left = {id(e) for e in walk(current)}
            return Rewritten(current, tuple(applied), tuple(r for r in refused.values() if id(r.node) in left))
        applied.append(step)
        current = normal(replaced(current, step.before, step.after))
    names = ", ".join(sorted({a.rewrite for a in applied[-10:]}))
    raise CompileError(f"{_MOST} rewrites and no end: {names} undo each other; leave one of them out")


def _step(root: Expr, entries: tuple[Rewrite, ...], refused: dict[tuple[str, Expr], Refused]) -> Applied | None:
    for e in walk(root):
        for entry in entries:
            outcome = entry.attempt(e)
            if outcome.result is not None and outcome.result is not e:
                return Applied(entry.name, e, outcome.result)
            if outcome.reason:
                refused[entry.name, e] = Refused(entry.name, e, outcome.reason)
    return None


def replaced(root: Expr, old: Expr, new: Expr) -> Expr:
    """``root`` with ``new`` in every place of ``old``."""
    made: dict[Expr, Expr] = {}
    for e in walk(root):
        made[e] = new if e is old else like(e, tuple(made[a] for a in e.args))
    return made[root]

# SPDX-License-Identifier: Apache-2.0
"""The automatic choice of kernels for an expression (docs/spec/compiler.md 13.4).

Tried in order for what is needed: a kernel of the library, products with their epilogue, a vector chain of at most
three operands that reduces along the last axis, the host. What the host computes is listed and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.rewrite import generate, library
from kohakutpu.rewrite.algebra import identity_variance
from kohakutpu.rewrite.expr import Expr, like, make, walk
from kohakutpu.rewrite.generate import REDUCTIONS, full, one_row, reducible
from kohakutpu.rewrite.shapes import LANES, ROW_GROUP, Shape

LAYER = "L5"

CHAIN_OPERANDS = 3
SIDE_OPERANDS = 3
ACCUMULATORS = 2
PRODUCTS = frozenset({"contract", "contract_heads"})


@dataclass(frozen=True)
class Step:
    """One kernel call, or what the host computes.

    Args:
        how: "library", "product", "chain" or "host".
        kernel: None for the host.
        operands: nodes that inputs or earlier steps give, and the shapes they are read in.
        result: the node it computes, in the shape of the node.
    """

    how: str
    kernel: Kernel | None
    operands: tuple[tuple[Expr, Shape], ...]
    result: Expr
    knobs: Mapping[str, Knob] = field(default_factory=dict)

    def text(self, names: Mapping[Expr, str]) -> str:
        """Printed form."""
        called = self.kernel.name if self.kernel is not None else self.result.op
        knobs = "".join(f" {k}={v}" for k, v in self.knobs.items())
        args = ", ".join(f"{names[e]}{list(shape)}" for e, shape in self.operands)
        return f"{names[self.result]}{list(self.result.extents)} = {self.how} {called}({args}){knobs}"


@dataclass(frozen=True)
class Steps:
    """Steps in order; the last one gives ``root``, or a view of it is ``root``."""

    steps: tuple[Step, ...]
    root: Expr

    @property
    def host(self) -> int:
        """Steps the host computes."""
        return sum(s.kernel is None for s in self.steps)

    def names(self) -> dict[Expr, str]:
        """A name for every node that is an input or a result."""
        out = {e: e.name for e in walk(self.root) if e.op == "input"}
        return out | {s.result: f"t{i}" for i, s in enumerate(self.steps)}

    def text(self) -> str:
        """Printed form, one line a step."""
        names = self.names()
        return "\n".join(s.text(names) for s in self.steps)


def select(root: Expr) -> Steps:
    """Choose kernels for an expression in normal form.

    Raises:
        CompileError: a variance in the identity form, which is never emitted, or a root without a kernel.
    """
    for e in walk(root):
        if identity_variance(e):
            raise CompileError(
                "a variance as E[x^2] - E[x]^2 loses its value to rounding and is never emitted; leave the rewrite "
                '"two-pass variance" in the catalogue'
            )
    chosen = _Selection(root)
    chosen.need(root)
    return Steps(tuple(chosen.steps), root)


def source(e: Expr) -> Expr:
    """The node whose elements a view of other extents reads."""
    while e.op == "reshape":
        (e,) = e.args
    return e


class _Selection:
    def __init__(self, root: Expr) -> None:
        self.steps: list[Step] = []
        self.done: set[Expr] = set()
        self.users: dict[Expr, set[Expr]] = {root: {root}}
        self.folds: dict[Expr, bool] = {}
        for e in walk(root):
            self.folds[e] = e.op in REDUCTIONS or (e.op in LANES and any(self.folds[a] for a in e.args))
            for a in e.args:
                self.users.setdefault(a, set()).add(e)

    def need(self, wanted: Expr) -> None:
        """Have ``wanted`` computed."""
        e = source(wanted)
        if e in self.done or e.op == "input":
            return
        for way in (self._library, self._products, self._chain):
            if way(e):
                break
        else:
            self._add("host", None, tuple((a, a.extents) for a in e.args if a.number is None), e)

    def _add(
        self, how: str, kernel: Kernel | None, operands: Iterable[tuple[Expr, Shape]], e: Expr, **knobs: Knob
    ) -> None:
        listed = tuple((source(a), shape) for a, shape in operands)
        for a, _ in listed:
            self.need(a)
        self.steps.append(Step(how, kernel, listed, e, knobs))
        self.done.add(e)

    def _library(self, e: Expr) -> bool:
        choice = library.match(e)
        if choice is None:
            return False
        computed = any(source(a).op != "input" for a in choice.operands)
        if computed and self.folds[e] and reducible(e.extents[-1]) and self._chain(e):
            return True
        self._add("library", choice.kernel, [(a, a.extents) for a in choice.operands], e, **choice.knobs)
        return True

    # ------------------------------------------------------------------ products

    def _products(self, e: Expr) -> bool:
        if e.op not in LANES and e.op not in PRODUCTS:
            return False
        inside = self._grown(e, lambda a: self._in_epilogue(a, e), self._fits_epilogue)
        contracts = tuple(a for a in walk(e) if a in inside and a.op in PRODUCTS)
        if not contracts or not self._fits_epilogue(inside) or not _readable(contracts):
            return False
        leaves = _leaves(inside - set(contracts), exclude=contracts)
        if not all(full(a.extents, e.extents) or one_row(a.extents, e.extents) for a in leaves):
            return False
        made = generate.products(e, leaves, contracts)
        self._add("product", made.kernel, made.operands, e)
        return True

    def _in_epilogue(self, a: Expr, root: Expr) -> bool:
        return a.shape == root.shape and (a.op in PRODUCTS or (a.op in LANES and not self.folds[a]))

    def _fits_epilogue(self, inside: set[Expr]) -> bool:
        contracts = {a for a in inside if a.op in PRODUCTS}
        sides = _leaves(inside - contracts, exclude=contracts)
        return len(contracts) <= ACCUMULATORS and len([a for a in sides if a not in contracts]) <= SIDE_OPERANDS

    # ------------------------------------------------------------------ vector passes

    def _chain(self, e: Expr) -> bool:
        if e.op not in LANES and e.op not in REDUCTIONS and e.op != "broadcast":
            return False
        reduces = e.op in REDUCTIONS or e.op == "broadcast"
        if reduces and not self._reduces_rows(e):
            return False
        inside = self._grown(e, self._in_chain, lambda found: len(_leaves(found)) <= CHAIN_OPERANDS)
        leaves = _leaves(inside)
        widened = tuple(self._wide(a, e) for a in leaves)
        if len(leaves) > CHAIN_OPERANDS or not leaves or not all(
            full(a.extents, e.extents) or one_row(a.extents, e.extents) for a in widened
        ):
            return False
        made = generate.chain(_with(e, dict(zip(leaves, widened, strict=True))), widened)
        self._add("chain", made.kernel, made.operands, e)
        return True

    def _in_chain(self, a: Expr) -> bool:
        if a.op in REDUCTIONS:
            return self._reduces_rows(a)
        return a.op in LANES and (not self.folds[a] or reducible(a.extents[-1]) or a.extents[-1] == 1)

    def _reduces_rows(self, e: Expr) -> bool:
        found = [e] if e.op in REDUCTIONS else [a for a in e.args if a.op in REDUCTIONS]
        return all(a.attr("axis") == -1 and reducible(a.args[0].extents[-1]) for a in found)

    def _wide(self, leaf: Expr, e: Expr) -> Expr:
        """A leaf of one value a row as an array that holds it in the whole row."""
        if full(leaf.extents, e.extents) or one_row(leaf.extents, e.extents):
            return leaf
        if leaf.op in REDUCTIONS and leaf.extents[:-1] == e.extents[:-1]:
            return make("broadcast", leaf, shape=e.extents)
        return leaf

    def _grown(
        self, root: Expr, takes: Callable[[Expr], bool], fits: Callable[[set[Expr]], bool]
    ) -> set[Expr]:
        """``root`` and what only leads to it, as long as it is taken and fits."""
        inside = {root}
        if root.op == "broadcast" and root.args[0].op in REDUCTIONS:
            inside |= set(root.args)  # this is how a value of a row is stored
        while True:
            for a in _arguments(inside):
                if not self._leads_to(a, inside) or not takes(a):
                    continue
                found = next((g for g in (self._closure(inside | {a}, takes), inside | {a}) if fits(g)), None)
                if found is not None:
                    inside = found
                    break
            else:
                return inside

    def _closure(self, inside: set[Expr], takes: Callable[[Expr], bool]) -> set[Expr]:
        """``inside`` with all that only leads to it and is taken, whatever it reads."""
        while True:
            more = {a for a in _arguments(inside) if self._leads_to(a, inside) and takes(a)}
            if not more:
                return inside
            inside = inside | more

    def _leads_to(self, a: Expr, inside: set[Expr]) -> bool:
        """True if nobody else reads ``a``, and nobody reads it from memory, as a product does."""
        return all(u in inside and u.op not in PRODUCTS for u in self.users.get(a, set()))


def _arguments(inside: set[Expr]) -> list[Expr]:
    """What the nodes inside read; a product reads its operands from memory, whatever they are."""
    found = {a for e in inside if e.op not in PRODUCTS for a in e.args if a not in inside and a.number is None}
    return sorted(found, key=lambda a: a.serial, reverse=True)


def _leaves(inside: set[Expr], exclude: Iterable[Expr] = ()) -> tuple[Expr, ...]:
    """What the nodes inside read from outside, in the order of creation; no constants."""
    without = set(exclude)
    return tuple(a for a in reversed(_arguments(inside)) if a not in without)


def _readable(contracts: tuple[Expr, ...]) -> bool:
    """True if kernels of the language take the operands of these products in one grid.

    Blocks of a batch have a multiple of 4 rows; so has a row of what was computed before, because padding behind it
    would be read.
    """
    for e in contracts:
        a, b = e.args
        if max(a.ndim, b.ndim) > 3:
            return False
        if e.op == "contract" and b.ndim > 2 and (a.extents[-2] % ROW_GROUP or b.extents[-2] % ROW_GROUP):
            return False
        if any(x.extents[-1] % ROW_GROUP and source(x).op not in ("input", "slice") for x in (a, b)):
            return False
    return True


def _with(e: Expr, places: Mapping[Expr, Expr]) -> Expr:
    """``e`` with other leaves; what lies below a leaf stays."""
    made = dict(places)

    def placed(a: Expr) -> Expr:
        if a not in made:
            made[a] = like(a, tuple(map(placed, a.args)))
        return made[a]

    return placed(e)

# SPDX-License-Identifier: Apache-2.0
"""A lowered loop nest as one store of one expression (docs/spec/compiler.md 13.2).

Strides are read as affine coefficients of loop indices. A division, a modulo, a constant offset, a stride that is no
number, a condition on a read and everything else that is not understood ends the reading: the kernel then has no
match, and the reason is what the schedule shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ktpu_tinygrad.expression import Access, Expr, const
from ktpu_tinygrad.listing import Line, Listing

REDUCTIONS = {"add": ("sum", 0.0), "max": ("max", float("-inf")), "mul": ("product", 1.0)}
"""Operations an accumulator may be updated with: the fold's name and the value that changes nothing."""

FLOATS = ("half", "float")


class NoMatchError(Exception):
    """Why a kernel does not run on the device."""


@dataclass(frozen=True)
class Nest:
    """One store of ``value`` at ``target`` inside ``loops``.

    Args:
        loops: extents of the parallel loops, by number.
        folds: extents of the loops that folds run over, by number.
        sizes: elements of each parameter, by slot.
        slot: the parameter that is stored.
    """

    name: str
    loops: Mapping[int, int]
    folds: Mapping[int, int]
    sizes: Mapping[int, int]
    slot: int
    target: Access
    value: Expr


def read(listing: Listing) -> Nest:
    """The nest of a listing.

    Raises:
        NoMatchError: anything but one unconditional affine store, whose reason names the line.
    """
    if listing.optimised:
        raise NoMatchError(f"the loops were rewritten by tinygrad: {listing.optimised}; leave NOOPT at 1 and BEAM at 0")
    return _Reader(listing).nest()


@dataclass
class _Affine:
    """A sum of stride times loop index, and a constant."""

    strides: dict[int, int] = field(default_factory=dict)
    offset: int = 0


@dataclass
class _Store:
    slot: int
    access: Access
    value: Expr
    inside: tuple[int, ...]


class _Reader:
    """Executes the lines on expressions instead of numbers."""

    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self.lines = listing.lines
        self.values: dict[int, Expr] = {}
        self.registers: dict[int, Expr] = {}
        self.entry: dict[tuple[int, int], Expr | None] = {}
        self.open: list[int] = []
        self.stores: list[_Store] = []
        self.written = self._written()

    def nest(self) -> Nest:
        for number, line in enumerate(self.lines):
            self._step(number, line)
        if len(self.stores) != 1:
            raise NoMatchError(f"{len(self.stores)} stores; a kernel of the device has one")
        store = self.stores[0]
        if any(n.op == "register" for n in store.value.nodes()):
            raise NoMatchError("a value carried from one turn of a loop to the next")
        loops, folds = self._extents("parallel"), self._extents("reduce")
        if set(store.inside) != set(loops):
            raise NoMatchError("the store is not inside every parallel loop, or inside a reduction")
        sizes = {int(n.value or 0): n.size for n in self.lines if n.op == "param"}
        return Nest(self.listing.name, loops, folds, sizes, store.slot, store.access, store.value)

    def _extents(self, kind: str) -> dict[int, int]:
        return {i: self._extent(n) for i, n in enumerate(self.lines) if n.op == "range" and n.kind == kind}

    def _extent(self, line: Line) -> int:
        end = self._affine(line.args[0])
        if end.strides or end.offset < 1:
            raise NoMatchError("a loop whose end is no number")
        return end.offset

    def _written(self) -> dict[int, set[int]]:
        """The registers each loop stores."""
        inside: list[int] = []
        found: dict[int, set[int]] = {}
        for number, line in enumerate(self.lines):
            if line.op == "range":
                inside.append(number)
                found[number] = set()
            elif line.op == "end":
                inside.remove(line.args[0])
            elif line.op == "store":
                storage = self._storage(line.args[0])
                if self.lines[storage].op == "reg":
                    for loop in inside:
                        found[loop].add(storage)
        return found

    def _storage(self, index: int) -> int:
        line = self.lines[index]
        if line.op != "index":
            raise NoMatchError(f"an access through {line.op}")
        return line.args[0]

    # ------------------------------------------------------------------ lines

    def _step(self, number: int, line: Line) -> None:
        match line.op:
            case "range":
                self.open.append(number)
                for register in self.written[number]:
                    self.entry[number, register] = self.registers.get(register)
                    self.registers[register] = Expr("register", slot=register, loops=(number,))
            case "end":
                self._close(line.args[0])
            case "load":
                self.values[number] = self._load(line)
            case "store":
                self._stored(line)
            case "if" | "endif" | "stack" | "bitcast" | "var":
                raise NoMatchError(f"{line.op} is no part of a nest the device runs")
            case "param" | "reg" | "index":
                pass
            case "const" if line.dtype in (*FLOATS, "weakfloat"):
                self.values[number] = const(float(line.value or 0.0))
            case "cast" if line.dtype in FLOATS:
                self._cast(number, line)
            case _ if line.dtype in FLOATS or line.op in ("cmplt", "cmpne", "cmpeq"):
                # a comparison of indices has no expression; a read under it then says so
                if all(a in self.values for a in line.args):
                    self.values[number] = Expr(line.op, tuple(self.values[a] for a in line.args))
                elif line.dtype in FLOATS:
                    raise NoMatchError(f"{line.op} of what is no element")

    def _cast(self, number: int, line: Line) -> None:
        source = self.lines[line.args[0]]
        if line.args[0] in self.values and source.dtype != "bool":
            self.values[number] = self.values[line.args[0]]
        elif source.op == "const":
            self.values[number] = const(float(source.value or 0.0))
        else:
            raise NoMatchError(f"a value computed from {source.dtype}")

    def _load(self, line: Line) -> Expr:
        if len(line.args) > 1:
            raise NoMatchError("a read under a condition")
        storage = self._storage(line.args[0])
        kept = self.lines[storage]
        if kept.op == "reg":
            self._single(line.args[0])
            if storage not in self.registers:
                raise NoMatchError("a register is read before it is written")
            return self.registers[storage]
        if kept.dtype != "half":
            raise NoMatchError(f"parameter {kept.value} is {kept.dtype}; the device holds half")
        return Expr("load", slot=int(kept.value or 0), access=self._access(line.args[0]))

    def _stored(self, line: Line) -> None:
        if len(line.args) > 2:
            raise NoMatchError("a store under a condition")
        if line.args[1] not in self.values:
            raise NoMatchError(f"a store of {self.lines[line.args[1]].dtype}")
        storage, value = self._storage(line.args[0]), self.values[line.args[1]]
        kept = self.lines[storage]
        if kept.op == "reg":
            self._single(line.args[0])
            self.registers[storage] = value
            return
        if kept.dtype != "half":
            raise NoMatchError(f"the result is {kept.dtype}; the device stores half")
        self.stores.append(_Store(int(kept.value or 0), self._access(line.args[0]), value, tuple(self.open)))

    def _single(self, index: int) -> None:
        place = self._affine(self.lines[index].args[1])
        if place.strides or place.offset:
            raise NoMatchError("an array of registers")

    def _close(self, loop: int) -> None:
        self.open.remove(loop)
        for register in self.written[loop]:
            value = self.registers.pop(register, None)
            if self.lines[loop].kind == "reduce":
                if value is None:
                    raise NoMatchError("a register of a loop inside a reduction")
                held = Expr("register", slot=register, loops=(loop,))
                self.registers[register] = self._folded(value, held, loop)

    def _folded(self, value: Expr, held: Expr, loop: int) -> Expr:
        """What an accumulator holds behind a loop that updates it once a turn."""
        if value.op not in REDUCTIONS or held not in value.args or len(value.args) != 2:
            raise NoMatchError("a loop that carries a value other than a sum, a maximum or a product")
        name, neutral = REDUCTIONS[value.op]
        body = value.args[1] if value.args[0] == held else value.args[0]
        if any(n == held for n in body.nodes()):
            raise NoMatchError("a loop whose accumulator feeds itself")
        if body.op == "fold" and body.name == name:
            folded = Expr("fold", body.args, name=name, loops=(loop, *body.loops))
        else:
            folded = Expr("fold", (body,), name=name, loops=(loop,))
        before = self.entry[loop, held.slot]
        if before is None:
            raise NoMatchError("an accumulator without a first value")
        return folded if before == const(neutral) else Expr(value.op, (before, folded))

    # ------------------------------------------------------------------ indices

    def _access(self, index: int) -> Access:
        place = self._affine(self.lines[index].args[1])
        if place.offset:
            raise NoMatchError(f"a constant offset of {place.offset} elements")
        return Access(tuple(sorted((n, s) for n, s in place.strides.items() if s)))

    def _affine(self, number: int) -> _Affine:
        line = self.lines[number]
        match line.op:
            case "range":
                return _Affine({number: 1})
            case "const":
                return _Affine(offset=int(line.value or 0))
            case "cast":
                return self._affine(line.args[0])
            case "add" | "sub":
                sign = 1 if line.op == "add" else -1
                a, b = (self._affine(n) for n in line.args)
                strides = {k: a.strides.get(k, 0) + sign * b.strides.get(k, 0) for k in {*a.strides, *b.strides}}
                return _Affine(strides, a.offset + sign * b.offset)
            case "neg":
                a = self._affine(line.args[0])
                return _Affine({k: -s for k, s in a.strides.items()}, -a.offset)
            case "mul":
                a, b = (self._affine(n) for n in line.args)
                if a.strides and b.strides:
                    raise NoMatchError("a stride that is no number")
                factor, other = (b.offset, a) if not b.strides else (a.offset, b)
                return _Affine({k: s * factor for k, s in other.strides.items()}, other.offset * factor)
        what = {"cdiv": "a division", "cmod": "a modulo", "shr": "a division", "and": "a modulo"}.get(line.op, line.op)
        raise NoMatchError(f"{what} in an index")

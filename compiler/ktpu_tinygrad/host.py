# SPDX-License-Identifier: Apache-2.0
"""Runs a listing on the host, for what no kernel of the device does (docs/spec/compiler.md 13.2).

Every operation rounds to its element type as tinygrad defines it. Parallel loops are axes of numpy arrays where that
cannot change a value; every other loop is a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ktpu_tinygrad.listing import Line, Listing

Values = npt.NDArray[Any]

TYPES = {
    "bool": "?",
    **{"signed char": "i1", "short": "i2", "int": "i4", "long": "i8", "weakint": "i8"},
    **{"unsigned char": "u1", "unsigned short": "u2", "unsigned int": "u4", "unsigned long": "u8"},
    **{"half": "f2", "float": "f4", "double": "f8", "weakfloat": "f8"},
}
"""numpy's element types by tinygrad's names."""

LANES_MAX = 1 << 20
"""Elements of the largest array a loop nest is spread over; further loops stay loops."""


class HostError(Exception):
    """A kernel the host cannot run either."""


def run(listing: Listing, buffers: Mapping[int, memoryview], numbers: Sequence[int] = ()) -> None:
    """Execute a kernel.

    Args:
        buffers: bytes of every parameter, by slot.
        numbers: values of the variables, in order of their slots.

    Raises:
        HostError: an operation or an element type that is not known here.
        IndexError: an access outside its buffer.
    """
    slots = sorted({int(n.value or 0) for n in listing.lines if n.op == "var"})
    _Run(listing, buffers, dict(zip(slots, numbers, strict=False))).block(0, len(listing.lines))


def numpy_type(name: str) -> np.dtype[Any]:
    """numpy's element type.

    Raises:
        HostError: a type the host does not compute with.
    """
    if name not in TYPES:
        raise HostError(f"elements of type {name}; the host computes with {', '.join(TYPES)}")
    return np.dtype(TYPES[name])


class _Run:
    def __init__(self, listing: Listing, buffers: Mapping[int, memoryview], numbers: Mapping[int, int]) -> None:
        self.lines, self.numbers = listing.lines, numbers
        self.values: dict[int, Values] = {}
        self.ends = {n.args[0]: i for i, n in enumerate(self.lines) if n.op == "end"}
        self.storage: dict[int, Values] = {}
        self.masks: list[Values] = []
        extents = self._extents()
        self.axes = _spread(self.lines, extents, self.ends)
        self.shape = tuple(extents[loop] for loop in self.axes)
        for i, n in enumerate(self.lines):
            if n.op == "param":
                self.storage[i] = np.frombuffer(buffers[int(n.value or 0)], numpy_type(n.dtype))
            elif n.op == "reg":
                self.storage[i] = np.zeros((n.size, *self.shape), numpy_type(n.dtype))

    def _extents(self) -> dict[int, int]:
        """Extents of the loops whose end is a constant."""
        found = {}
        for i, n in enumerate(self.lines):
            end = n.args[0] if n.op == "range" else 0
            while n.op == "range" and self.lines[end].op == "cast":
                end = self.lines[end].args[0]
            if n.op == "range" and self.lines[end].op == "const":
                found[i] = int(self.lines[end].value or 0)
        return found

    def block(self, begin: int, end: int) -> None:
        """Execute lines begin to end - 1."""
        at = begin
        with np.errstate(all="ignore"):
            while at < end:
                line = self.lines[at]
                if line.op == "range" and at not in self.axes:
                    self._loop(at, line)
                    at = self.ends[at] + 1
                else:
                    self._step(at, line)
                    at += 1

    def _loop(self, at: int, line: Line) -> None:
        for turn in range(int(self.values[line.args[0]])):
            self.values[at] = np.asarray(turn, numpy_type(line.dtype))
            self.block(at + 1, self.ends[at])

    def _step(self, at: int, line: Line) -> None:
        match line.op:
            case "param" | "reg" | "index" | "end":
                return
            case "const":
                self.values[at] = np.asarray(line.value).astype(numpy_type(line.dtype))
            case "var":
                self.values[at] = np.asarray(self.numbers[int(line.value or 0)], numpy_type(line.dtype))
            case "range":
                place = self.axes.index(at)
                turns = np.arange(self.shape[place], dtype=numpy_type(line.dtype))
                self.values[at] = turns.reshape([-1 if i == place else 1 for i in range(len(self.shape))])
            case "load":
                self.values[at] = self._load(line)
            case "store":
                self._store(line)
            case "if":
                self.masks.append(self.values[line.args[0]])
            case "endif":
                self.masks.pop()
            case _:
                self.values[at] = _computed(line, [self.values[a] for a in line.args])

    def _place(self, index: int) -> tuple[Values, Values, bool]:
        """(storage, element numbers, whether it is a register)."""
        line = self.lines[index]
        if line.op != "index" or line.args[0] not in self.storage:
            raise HostError(f"an access through {line.op}; the host reads and writes single elements")
        return self.storage[line.args[0]], self.values[line.args[1]], self.lines[line.args[0]].op == "reg"

    def _load(self, line: Line) -> Values:
        if line.size != 1:
            raise HostError(f"a load of {line.size} elements at once")
        storage, where, register = self._place(line.args[0])
        if len(line.args) == 1:
            return self._read(storage, where, register)
        other, condition = (self.values[a] for a in line.args[1:3])
        where, other, condition = np.broadcast_arrays(where, other, condition)
        read = self._read(storage, np.where(condition, where, 0), register)
        return np.where(condition, read, other)

    def _read(self, storage: Values, where: Values, register: bool) -> Values:
        if not register:
            _inside(where, storage.shape[0])
            return np.asarray(storage[where])
        if where.ndim == 0:
            return np.asarray(storage[int(where)]).copy()
        return np.asarray(np.take_along_axis(storage, np.broadcast_to(where, self.shape)[None], 0)[0])

    def _store(self, line: Line) -> None:
        storage, where, register = self._place(line.args[0])
        value = self.values[line.args[1]].astype(storage.dtype)
        mask = np.asarray(True)
        for condition in (*self.masks, *(self.values[a] for a in line.args[2:])):
            mask = mask & condition
        if register:
            self._keep(storage, where, value, mask)
            return
        where, value, mask = np.broadcast_arrays(where, value, mask)
        _inside(where[mask], storage.shape[0])
        storage[where[mask]] = value[mask]

    def _keep(self, storage: Values, where: Values, value: Values, mask: Values) -> None:
        if where.ndim == 0:
            np.copyto(storage[int(where) : int(where) + 1], value, where=mask)
            return
        at = np.broadcast_to(where, self.shape)[None]
        kept = np.take_along_axis(storage, at, 0)
        np.put_along_axis(storage, at, np.where(mask, value, kept), 0)


def _inside(where: Values, size: int) -> None:
    if where.size and (where.min() < 0 or where.max() >= size):
        raise IndexError(f"element {int(where.min())} to {int(where.max())} of a buffer of {size}")


# ---------------------------------------------------------------------- loops


def _spread(lines: Sequence[Line], extents: Mapping[int, int], ends: Mapping[int, int]) -> list[int]:
    """The loops that become axes: no order of their turns could change a value."""
    loops = [i for i, n in enumerate(lines) if n.op == "range" and n.kind == "parallel" and i in extents]
    if _order_matters(lines):
        return []
    inside = {i: {loop for loop in loops if loop < i < ends[loop]} for i in range(len(lines))}
    used: dict[int, list[set[int]]] = {}
    for i, n in enumerate(lines):
        if n.op in ("load", "store") and lines[n.args[0]].op == "index" and lines[lines[n.args[0]].args[0]].op == "reg":
            used.setdefault(lines[n.args[0]].args[0], []).append(inside[i])
    for places in used.values():
        shared = set.intersection(*places)
        loops = [loop for loop in loops if loop in shared or not any(loop in p for p in places)]
    kept, elements = [], 1
    for loop in sorted(loops, key=lambda n: extents[n], reverse=True):
        if elements * extents[loop] <= LANES_MAX:
            kept.append(loop)
            elements *= extents[loop]
    return sorted(kept)


def _order_matters(lines: Sequence[Line]) -> bool:
    """True if a buffer is stored twice, or stored and read at different places."""
    stores: dict[int, list[int]] = {}
    reads: dict[int, set[int]] = {}
    for n in lines:
        if n.op in ("load", "store") and lines[n.args[0]].op == "index":
            storage, place = lines[n.args[0]].args
            if lines[storage].op == "param" and n.op == "store":
                stores.setdefault(storage, []).append(place)
            elif lines[storage].op == "param":
                reads.setdefault(storage, set()).add(place)
    return any(len(p) > 1 or reads.get(s, set()) - set(p) for s, p in stores.items())


# ---------------------------------------------------------------------- operations


def _computed(line: Line, args: list[Values]) -> Values:
    kind = numpy_type(line.dtype)
    if line.op == "cast":
        return args[0].astype(kind)
    if line.op == "bitcast":
        return np.asarray(args[0]).view(kind)
    if line.op not in OPERATIONS:
        raise HostError(f"{line.op} is no operation of the host")
    return np.asarray(OPERATIONS[line.op](*args)).astype(kind, copy=False)


def _wide(function: Callable[[Values], Values]) -> Callable[[Values], Values]:
    """A function of one operand computed in double precision and rounded once."""
    return lambda a: function(a.astype(np.float64))


def _quotient(a: Values, b: Values) -> Values:
    """The integer quotient towards zero."""
    whole = np.floor_divide(a, b)
    return np.asarray(whole + ((whole < 0) & (np.remainder(a, b) != 0)))


def _shifted(left: bool) -> Callable[[Values, Values], Values]:
    return lambda a, b: (np.left_shift if left else np.right_shift)(a, b.astype(a.dtype))


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "max": np.maximum},
    **{"exp2": _wide(np.exp2), "log2": _wide(np.log2), "sin": _wide(np.sin), "sqrt": _wide(np.sqrt)},
    "reciprocal": _wide(np.reciprocal),
    "trunc": np.trunc,
    **{"cdiv": _quotient, "cmod": np.fmod, "shl": _shifted(True), "shr": _shifted(False)},
    **{"xor": np.bitwise_xor, "or": np.bitwise_or, "and": np.bitwise_and},
    **{"cmplt": np.less, "cmpne": np.not_equal, "cmpeq": np.equal, "where": np.where},
}
"""Operations by name; a result is rounded to the element type of its line."""

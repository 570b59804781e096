# SPDX-License-Identifier: Apache-2.0
"""Hand-written kernels in place of what tinygrad lowers (docs/spec/compiler.md 13.2).

A pattern is a function of tinygrad tensors. It is lowered once for given shapes, and a nest that is equal to it, loops,
strides and operations, runs the kernel registered for it. Equal nests are the same computation, so nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from kohakutpu.errors import CompileError
from kohakutpu.kernels.language import Kernel
from ktpu_tinygrad.expression import Access, Expr, rewritten
from ktpu_tinygrad.nest import Nest, NoMatchError, read
from ktpu_tinygrad.operands import FULL, Match, Operand
from ktpu_tinygrad.shape import axes

if TYPE_CHECKING:
    from tinygrad.tensor import Tensor
    from tinygrad.uop.ops import UOp

Key = tuple[object, ...]
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Substitution:
    """A kernel registered for a pattern at some shapes; :meth:`remove`, or leaving ``with``, ends it."""

    name: str
    keys: tuple[Key, ...]

    def remove(self) -> None:
        """Let nests of the pattern be matched as if it had not been registered."""
        global _generation
        for key in self.keys:
            _registered.pop(key, None)
        _generation += 1

    def __enter__(self) -> Substitution:
        return self

    def __exit__(self, *_error: object) -> None:
        self.remove()


@dataclass(frozen=True)
class _Registered:
    """A kernel, its knobs, and for each of its operands the buffer of the nest, by order of appearance, and a shape."""

    kernel: Kernel
    knobs: tuple[tuple[str, Any], ...]
    operands: tuple[tuple[int, Shape], ...]
    shape: Shape


_registered: dict[Key, _Registered] = {}
_generation = 0


def generation() -> int:
    """Changes with every substitution that is registered or removed."""
    return _generation


def substitute(
    pattern: Callable[..., Tensor], kernel: Kernel, *shapes: Sequence[Shape], **knobs: float | int | str
) -> Substitution:
    """Run ``kernel`` wherever a kernel of tinygrad is ``pattern`` at one of ``shapes``.

    Args:
        pattern: a function of tensors, one for each operand of the kernel and in its order, which tinygrad lowers to
            one kernel.
        kernel: a kernel of :mod:`ktpu.language` with one result, which holds all elements of the pattern's in order.
        shapes: for each shape of the pattern, the extents of all operands.
        knobs: knobs of the kernel.

    Raises:
        CompileError: a pattern of several kernels, one the compiler cannot read, or that does not read an operand.
    """
    global _generation
    made: dict[Key, _Registered] = {}
    for extents in shapes:
        nest, places, shape = _lowered(pattern, extents)
        key, slots = _key(nest)
        operands = []
        for number, (slot, size) in enumerate(zip(places, extents, strict=True)):
            if slot not in slots:
                raise CompileError(f"{_name(pattern)}: operand {number} is not read; leave it out")
            operands.append((slots.index(slot), tuple(size)))
        made[key] = _Registered(kernel, tuple(knobs.items()), tuple(operands), shape)
    _registered.update(made)
    _generation += 1
    return Substitution(kernel.name, tuple(made))


def find(nest: Nest) -> Match | None:
    """The substitution for a nest, if there is one."""
    if not _registered:
        return None
    try:
        key, slots = _key(nest)
    except NoMatchError:
        return None
    known = _registered.get(key)
    if known is None:
        return None
    operands = tuple(Operand(slots[place], FULL, shape) for place, shape in known.operands)
    return Match(known.kernel.name, lambda: known.kernel, operands, known.shape, knobs=known.knobs)


def _key(nest: Nest) -> tuple[Key, list[int]]:
    """What equal computations share, and the slots that are read in order of appearance."""
    found = axes(nest)
    value = found.value
    folded = [loop for n in value.nodes() if n.op == "fold" for loop in n.loops]
    order = [*(loop for loop, _ in found.loops), *dict.fromkeys(folded)]
    loops = {loop: i for i, loop in enumerate(order)}
    slots = list(dict.fromkeys(n.slot for n in value.nodes() if n.op == "load"))
    extents = (*(n for _, n in found.loops), -1, *(found.folds[loop] for loop in dict.fromkeys(folded)))

    def change(node: Expr) -> Expr:
        if node.op == "load":
            strides = tuple(sorted((loops[loop], stride) for loop, stride in node.access.strides))
            return replace(node, slot=slots.index(node.slot), access=Access(strides))
        return replace(node, loops=tuple(loops[loop] for loop in node.loops)) if node.op == "fold" else node

    if any(loop not in loops for n in value.nodes() for loop, _ in n.access.strides):
        raise NoMatchError("a read that moves with a loop nothing runs over")
    return (extents, tuple(nest.sizes[s] for s in slots), rewritten(value, change)), slots


def _lowered(pattern: Callable[..., Tensor], shapes: Sequence[Shape]) -> tuple[Nest, list[int], Shape]:
    """The nest of a pattern, the slot of each operand, and the shape of the result."""
    from tinygrad.codegen import to_program
    from tinygrad.dtype import dtypes
    from tinygrad.helpers import Context
    from tinygrad.tensor import Tensor

    from ktpu_tinygrad.device import NAME, open
    from ktpu_tinygrad.listing import parse

    device = open()
    with Context(DEV=NAME, DEFAULT_FLOAT="half", NOOPT=1, BEAM=0):  # type: ignore[no-untyped-call]
        tensors = [Tensor.empty(*shape, dtype=dtypes.half, device=NAME) for shape in shapes]
        result = pattern(*tensors)
        calls = result.schedule_linear().src
        if len(calls) != 1:
            raise CompileError(
                f"{_name(pattern)}: tinygrad lowers it to {len(calls)} kernels; a substitution stands for one"
            )
        (one,) = calls
        program = to_program(one.src[0], device.renderer)
        places = _places(one, tensors)
    try:
        nest = read(parse(program.src[3].arg.decode()))
        axes(nest)
    except NoMatchError as e:
        raise CompileError(f"{_name(pattern)}: {e}") from e
    shape = tuple(int(n) for n in result.shape) or (1,)
    if prod(shape) != nest.sizes[nest.slot]:
        raise CompileError(f"{_name(pattern)}: the result is {shape}, the kernel stores {nest.sizes[nest.slot]}")
    return nest, places, shape


def _places(one: UOp, tensors: Sequence[Tensor]) -> list[int]:
    """The slot of each tensor in a scheduled kernel, -1 if it is not read."""
    buffers: Mapping[UOp, int] = {source: i for i, source in enumerate(one.src[1:])}
    return [buffers.get(t.uop.base, -1) for t in tensors]


def _name(pattern: Callable[..., Any]) -> str:
    return f"pattern {getattr(pattern, '__name__', 'of a substitution')}"

# SPDX-License-Identifier: Apache-2.0
"""The automatic path: from an expression to kernel calls (docs/spec/compiler.md 13.4).

>>> import ktpu
>>> from ktpu import expressions as ex
>>> program = ktpu.auto(lambda x, w: ex.silu(x @ w), x, w)
>>> print(program.text())
>>> y = program.run(ktpu.open("model")).numpy()
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature

import numpy as np
import numpy.typing as npt

from kohakutpu.cost import KernelCost
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.rewrite import CATALOGUE, Expr, Rewrite, Rewritten, array, inputs, interpret, rewrite
from kohakutpu.rewrite.expr import make
from kohakutpu.rewrite.select import Step, Steps, select, source
from kohakutpu.tensor import KernelCall, Tensor, call
from kohakutpu.tensor.operand import ANY_RANK, Array, DeviceArray, Operand, Shape, to_half
from ktpu.auto_join import Part, joinable, joined
from ktpu.compiling import Compiled, compile, scheduled
from ktpu.costing import cost
from ktpu.devices import TensorDevice

NAME = "auto"


@dataclass(frozen=True)
class Section:
    """Steps that run as one program, or one step of the host, without a call.

    Args:
        sources: for each input of the call, the input or earlier result it holds.
    """

    steps: tuple[Step, ...]
    call: KernelCall | None = None
    sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AutoCost:
    """Modelled cycles of the kernel calls of a program, one after the other; what the host does has no cycles."""

    calls: tuple[KernelCost, ...]
    compiled: tuple[Compiled, ...]
    host: int

    @property
    def high(self) -> int:
        """Cycles with everything charged."""
        return sum(c.high for c in self.calls)

    @property
    def low(self) -> int:
        """Cycles without the fills a sweep hides."""
        return sum(c.low for c in self.calls)


@dataclass(frozen=True)
class Automatic:
    """An expression with the kernels chosen for it.

    Args:
        expression: as given.
        rewritten: after the catalogue, with what was applied and refused.
        chosen: the steps.
        shapes: of the inputs by name, in order.
        values: of the inputs by name; empty if only shapes were given.
    """

    expression: Expr
    rewritten: Rewritten
    chosen: Steps
    shapes: Mapping[str, Shape]
    values: Mapping[str, Operand] = field(default_factory=dict)
    _sections: dict[str, tuple[Section, ...]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def host_steps(self) -> int:
        """Steps the host computes."""
        return self.chosen.host

    def text(self) -> str:
        """Rewrites, near misses and steps, one a line."""
        lines = [f"rewrite {a.rewrite}: {a.before.op} {list(a.before.extents)}" for a in self.rewritten.applied]
        lines += [f"not {r.rewrite}: {r.reason}" for r in self.rewritten.refused]
        return "\n".join([*lines, self.chosen.text()])

    def of(self, *arrays: Array) -> Automatic:
        """The same program for other arrays of the same shapes.

        Raises:
            CompileError: other shapes, or values FP16 cannot hold.
        """
        given = [_operand(f"operand {i}", a) for i, a in enumerate(arrays)]
        if [_shape(g) for g in given] != list(self.shapes.values()):
            listed = ", ".join(f"{n} {s}" for n, s in self.shapes.items())
            raise CompileError(f"the program takes {listed}; given: {', '.join(str(_shape(g)) for g in given)}")
        return replace(self, values=_values(tuple(self.shapes), given))

    def sections(self, machine: MachineSpec) -> tuple[Section, ...]:
        """The steps as programs for ``machine``: as many in one as its compiler takes together.

        Raises:
            CompileError: a single step the compiler refuses.
        """
        key = machine.digest()
        if key not in self._sections:
            found = (s for group in _groups(self.chosen.steps) for s in self._programs(group, machine))
            self._sections[key] = tuple(found)
        return self._sections[key]

    def _programs(self, group: tuple[Step, ...], machine: MachineSpec) -> list[Section]:
        if group[0].kernel is None:
            return [Section(group)]
        parts = [self._part(s) for s in group]
        if joinable(parts):
            name = NAME if len(group) > 1 else group[0].kernel.name
            made = joined(parts, _held(parts), name, self._read_behind(group))
            if len(group) == 1 or _compiles(made.call, machine):
                return [Section(group, made.call, made.sources)]
        half = len(group) // 2
        return self._programs(group[:half], machine) + self._programs(group[half:], machine)

    def _read_behind(self, group: tuple[Step, ...]) -> set[str]:
        """Names of what other steps read of this group."""
        names = self.chosen.names()
        return {names[e] for s in self.chosen.steps if s not in group for e, _ in s.operands}

    def _part(self, step: Step) -> Part:
        assert step.kernel is not None
        names = self.chosen.names()
        made = call(step.kernel, *(_stand_in(shape) for _, shape in step.operands), extents=None, **step.knobs)
        ports = zip(step.kernel.operands, (names[e] for e, _ in step.operands), strict=True)
        return Part(made, dict(ports), names[step.result], step.result.extents)

    def cost(self, machine: MachineSpec, profile: str = "default", **options: int | str | bool) -> AutoCost:
        """Cycles of the calls, one after the other.

        Args:
            options: of :func:`ktpu.compile`.

        Raises:
            CompileError: what the compiler refuses.
        """
        made = [
            compile(s.call, machine, **options)  # type: ignore[arg-type]
            for s in self.sections(machine)
            if s.call is not None
        ]
        return AutoCost(tuple(cost(c, profile) for c in made), tuple(made), self.host_steps)

    def run(self, device: TensorDevice | None = None) -> Tensor:
        """Run on ``device``, or where the arrays live.

        Raises:
            CompileError: shapes instead of arrays, no device, or what the compiler refuses.
            kohakudriver.DriverError: a run that ended in a fault.
        """
        if not self.values:
            raise CompileError("the program was made for shapes; give arrays to run it")
        on = device or _home(self.values.values())
        names = self.chosen.names()
        found: dict[str, Tensor] = {n: _there(on, v, n) for n, v in self.values.items()}
        for section in self.sections(on.machine):
            if section.call is None:
                (step,) = section.steps
                found[names[step.result]] = on.tensor(_on_host(step, names, found))
                continue
            operands = {
                n: found[section.sources[n]].reshape(v.shape) if n in section.sources else v
                for n, v in section.call.operands.items()
            }
            found |= on.execute(KernelCall(section.call.trace, operands, section.call.shapes))
        return found[names[source(self.chosen.root)]].reshape(self.chosen.root.extents)


def auto(
    expression: Expr | Callable[..., Expr], *arrays: Array | Shape, catalogue: Iterable[Rewrite] = CATALOGUE
) -> Automatic:
    """Choose kernels for an expression.

    Args:
        expression: an expression, or a function of expressions.
        arrays: one for each input, in the order they are read or of the parameters: real numbers, which are rounded
            to FP16, arrays of a device, or shapes where nothing is to run.
        catalogue: rewrites to apply.

    Raises:
        CompileError: a wrong number of arrays or shapes, and what the choice refuses.
    """
    given = [_operand(f"operand {i}", a) for i, a in enumerate(arrays)]
    root, names = _expression(expression, [_shape(g) for g in given])
    done = rewrite(root, catalogue)
    chosen = select(done.result)
    shapes = dict(zip(names, map(_shape, given), strict=True))
    return Automatic(root, done, chosen, shapes, _values(names, given))


def _compiles(call: KernelCall, machine: MachineSpec) -> bool:
    """True if the compiler takes a sequence as one program."""
    try:
        scheduled(call.trace, machine)
    except CompileError:
        return False
    return True


def _expression(expression: Expr | Callable[..., Expr], shapes: Sequence[Shape]) -> tuple[Expr, list[str]]:
    if isinstance(expression, Expr):
        read = inputs(expression)
        if [e.shape for e in read] != list(shapes):
            listed = ", ".join(f"{e.name} {e.shape}" for e in read)
            raise CompileError(f"the expression reads {listed or 'nothing'}; given: {', '.join(map(str, shapes))}")
        return expression, [e.name for e in read]
    names = [p.name for p in signature(expression).parameters.values() if p.default is p.empty]
    if len(names) != len(shapes):
        raise CompileError(f"the expression takes {', '.join(names)}; {len(shapes)} arrays given")
    made = expression(*(array(n, *s) for n, s in zip(names, shapes, strict=True)))
    if not isinstance(made, Expr):
        raise CompileError(f"the function gave {type(made).__name__}; it builds one expression of ktpu.expressions")
    return made, names


def _values(names: Sequence[str], given: Sequence[Operand | Shape]) -> dict[str, Operand]:
    """The operands by name, none if one of them is a shape."""
    found = {n: g for n, g in zip(names, given, strict=True) if not isinstance(g, tuple)}
    return found if len(found) == len(names) else {}


def _operand(name: str, a: Array | Shape) -> Operand | Shape:
    if isinstance(a, tuple) and all(isinstance(n, int) for n in a):
        return a
    return to_half(name, a, ANY_RANK)


def _shape(operand: Operand | Shape) -> Shape:
    return operand if isinstance(operand, tuple) else operand.shape


def _groups(steps: Sequence[Step]) -> list[tuple[Step, ...]]:
    """Runs of kernel calls, and steps of the host alone."""
    out: list[list[Step]] = []
    for step in steps:
        if out and step.kernel is not None and out[-1][-1].kernel is not None:
            out[-1].append(step)
        else:
            out.append([step])
    return [tuple(group) for group in out]


def _stand_in(shape: Shape) -> npt.NDArray[np.float16]:
    """An operand of which only the shape matters."""
    return np.broadcast_to(np.float16(0), shape)


def _held(parts: Sequence[Part]) -> dict[str, Operand]:
    """Stand-ins of what the calls read from outside."""
    return {
        name: np.ascontiguousarray(part.call.operands[port])
        for part in parts
        for port, name in part.reads.items()
        if isinstance(part.call.operands[port], np.ndarray)
    }


def _home(values: Iterable[Operand]) -> TensorDevice:
    for v in values:
        if isinstance(v, DeviceArray) and isinstance(v.device, TensorDevice):
            return v.device
        owner = getattr(getattr(v, "device", None), "device", None)
        if isinstance(owner, TensorDevice):
            return owner
    raise CompileError('no array lives on a device; name one, program.run(ktpu.open("model"))')


def _there(device: TensorDevice, value: Operand, name: str) -> Tensor:
    return value if isinstance(value, Tensor) else device.tensor(value, name)


def _on_host(step: Step, names: Mapping[Expr, str], found: Mapping[str, Tensor]) -> npt.NDArray[np.float64]:
    """The value of one operation on what is there."""
    e, given = step.result, {}
    leaves = []
    for position, a in enumerate(e.args):
        if a.number is not None:
            leaves.append(a)
            continue
        leaves.append(array(f"a{position}", *a.extents))
        given[f"a{position}"] = found[names[source(a)]].numpy().reshape(a.extents)
    return interpret(make(e.op, *leaves, **dict(e.attrs)), given)


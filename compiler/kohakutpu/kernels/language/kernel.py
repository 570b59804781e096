# SPDX-License-Identifier: Apache-2.0
"""``@kernel``: a function traced once per knob set, bound to extents per call (docs/spec/compiler.md 11)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar, Protocol

import numpy as np

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer, Port, Ref, Region
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.recorder import Assign, Block, Drain, Load, Read, Recorder, Statement, Sweep

LAYER = "L4"

OPEN_KNOBS = ("gm", "gn", "nk")
"""Parameters whose None means "the compiler chooses"."""

Knob = int | float | str | bool | None
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """What a body recorded: buffers, statements, ADJACENT groups; valid for all shapes.

    Args:
        ports: declarations by name, in order.
        knobs: values the trace was made with.
    """

    kernel: str
    ports: Mapping[str, Port]
    buffers: tuple[Buffer, ...]
    body: tuple[Statement, ...]
    adjacent: tuple[tuple[str, ...], ...]
    knobs: Mapping[str, Knob]

    def text(self) -> str:
        """Printed form, one line a buffer and a statement."""
        lines = [f"kernel {self.kernel}"]
        for b in self.buffers:
            axes = ", ".join([*(["..."] if b.batch or b.whole else []), *(d.text() for d in b.dims)])
            lines.append(f"  {b.role} {b.name}[{axes}]" + (f" tier={b.tier}" if b.tier != "dram" else ""))
        lines += [f"  adjacent {' '.join(group)}" for group in self.adjacent]
        lines += _lines(self.body, 1)
        return "\n".join(lines)

    def extents(self, shapes: Mapping[str, Shape], given: Mapping[str, int] | None = None) -> Bound:
        """Solve every named extent from operand shapes.

        Args:
            shapes: one entry per operand, batch axes included.
            given: extents that appear only inside expressions.

        Raises:
            TraceError: a missing operand, a wrong number of axes, extents or batch axes that disagree, or an extent
                nothing determines.
        """
        return _bind(self, shapes, given or {})


@dataclass(frozen=True)
class Bound:
    """A trace at concrete extents.

    Args:
        env: value of every named extent.
        batch: leading axes shared by all ports with ``...``.
        shapes: of every buffer, batch included.
    """

    trace: Trace
    env: Mapping[str, int]
    batch: Shape
    shapes: Mapping[str, Shape]


def _lines(body: Sequence[Statement], depth: int) -> list[str]:
    pad = "  " * depth
    out: list[str] = []
    for s in body:
        if isinstance(s, Block):
            names = ", ".join(i.text() for i in s.index)
            out.append(f"{pad}{s.kind} {names} in {', '.join(c.text() for c in s.count)}:")
            out += _lines(s.body, depth + 1)
        elif isinstance(s, Load):
            out.append(f"{pad}{s.region.name} <<= {s.source.text()}")
        elif isinstance(s, Sweep):
            acc = s.acc
            tile = f"{acc.gm.text()}x{acc.gn.text()}x{acc.nk.text()}"
            out.append(f"{pad}{acc.name}[{tile}] += {_source(s.left)} @ {_source(s.right)}")
        elif isinstance(s, Drain):
            out.append(f"{pad}{s.target.text()} <<= {s.acc.name}")
        elif isinstance(s, Assign):
            out.append(f"{pad}{s.target.text()} <<= {s.value.text()}")
    return out


def _source(side: Ref | Region) -> str:
    return side.text()


def _bind(trace: Trace, shapes: Mapping[str, Shape], given: Mapping[str, int]) -> Bound:
    env: dict[str, int] = dict(given)
    origin = dict.fromkeys(given, "the call")
    for name, value in given.items():
        if value < 1:
            raise TraceError(f"{trace.kernel}: extent {name} = {value}; it must be at least 1")
    operands = {n: p for n, p in trace.ports.items() if p.role == "in"}
    stray = sorted(set(shapes) - set(operands))
    if stray:
        raise TraceError(f"{trace.kernel} has no operand {stray}; it takes {', '.join(operands)}")
    batch: Shape | None = None
    batch_of = ""
    for name, port in operands.items():
        if name not in shapes:
            raise TraceError(f"{trace.kernel}: operand {name} was not given; it takes {', '.join(operands)}")
        shape = tuple(shapes[name])
        if not shape or min(shape) < 1:
            raise TraceError(f"{trace.kernel}: operand {name} has shape {shape}; every extent is at least 1")
        if port.whole:
            env[f"len({name})"] = functools.reduce(lambda a, b: a * b, shape, 1)
            continue
        lead = len(shape) - len(port.dims)
        if lead < 0 or (lead and not port.batch):
            axes = f"at least {len(port.dims)}" if port.batch else f"{len(port.dims)}"
            raise TraceError(f"{trace.kernel}: operand {name} has {len(shape)} axes, {shape}; it takes {axes}")
        if port.batch and lead:
            if batch is not None and batch != shape[:lead]:
                raise TraceError(
                    f"{trace.kernel}: batch axes disagree, {batch_of} has {batch}, {name} has {shape[:lead]}; "
                    "an operand shared by all blocks is declared without ..."
                )
            batch, batch_of = shape[:lead], name
        for dim, value in zip(port.dims, shape[lead:], strict=True):
            _solve(trace, dim, value, name, env, origin)
    for name, port in operands.items():
        if not port.whole:
            _confirm(trace, name, port, tuple(shapes[name]), env)
    return Bound(trace, env, batch or (), _shapes(trace, shapes, env, batch or ()))


def _solve(trace: Trace, dim: Int, value: int, name: str, env: dict[str, int], origin: dict[str, str]) -> None:
    if dim.op != "extent":
        return
    extent = dim.text()
    if env.setdefault(extent, value) != value:
        raise TraceError(
            f"{trace.kernel}: {extent} is {env[extent]} by {origin[extent]} and {value} by {name}; they must agree"
        )
    origin.setdefault(extent, name)


def _confirm(trace: Trace, name: str, port: Port, shape: Shape, env: Mapping[str, int]) -> None:
    for dim, value in zip(port.dims, shape[len(shape) - len(port.dims) :], strict=True):
        missing = sorted(dim.names("extent") - set(env))
        if missing:
            raise TraceError(
                f"{trace.kernel}: extent {missing[0]} appears only inside {dim.text()} of {name}; "
                f"pass it: {trace.kernel}(..., {missing[0]}=...)"
            )
        if dim.value(env) != value:
            raise TraceError(f"{trace.kernel}: {name} has {value} where {dim.text()} = {dim.value(env)} is expected")


def _shapes(trace: Trace, given: Mapping[str, Shape], env: dict[str, int], batch: Shape) -> dict[str, Shape]:
    out: dict[str, Shape] = {}
    whole = next((tuple(given[n]) for n, p in trace.ports.items() if p.whole and p.role == "in"), None)
    for b in trace.buffers:
        if b.name in given:
            out[b.name] = tuple(given[b.name])
        elif b.whole:
            if whole is None:
                raise TraceError(
                    f"{trace.kernel}: result {b.name} is Out(...) but no operand is In(...); name its extents"
                )
            out[b.name] = whole
            env[f"len({b.name})"] = functools.reduce(lambda a, c: a * c, whole, 1)
        else:
            unknown = sorted(set().union(*(d.names("extent") for d in b.dims)) - set(env))
            if unknown:
                raise TraceError(
                    f"{trace.kernel}: extent {unknown[0]} of {b.name} follows from no operand; "
                    f"pass it: {trace.kernel}(..., {unknown[0]}=...)"
                )
            inner = tuple(d.value(env) for d in b.dims)
            if min(inner) < 1:
                raise TraceError(f"{trace.kernel}: {b.name} would have shape {inner}; every extent is at least 1")
            shared = b.role == "table" or (b.name in trace.ports and not b.batch)
            out[b.name] = inner if shared else (*batch, *inner)
    return out


class Frontend(Protocol):
    """What plans and runs calls of kernels; it lies above and below this level and registers itself.

    ``args`` are the operands in the order of the In ports, or their shapes; ``named`` are knobs, named extents,
    compile options and ``machine``.
    """

    def plan(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> object:
        """The schedule of a call."""

    def footprint(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> object:
        """The memory of a call."""

    def run(self, kernel: Kernel, args: Sequence[object], named: Mapping[str, object]) -> object:
        """The results of a call."""


class Kernel:
    """A decorated function.

    Raises:
        TraceError: a signature that is not ports followed by keyword knobs with defaults.
    """

    frontend: ClassVar[Frontend | None] = None
    """Set by the package that compiles and runs (``ktpu``)."""

    def __init__(self, body: Callable[..., None]) -> None:
        self.name = body.__name__
        self._body = body
        self.ports: dict[str, Port] = {}
        self.defaults: dict[str, Knob] = {}
        self.traces = 0
        self._cache: dict[tuple[tuple[str, str, Knob], ...], Trace] = {}
        self.__doc__ = body.__doc__
        self.__name__ = self.name
        self.__wrapped__ = body
        for parameter in inspect.signature(body).parameters.values():
            self._parameter(parameter)
        if not self.ports:
            raise TraceError(f"{self.name} has no port; write def {self.name}(x=In(..., M, K), y=Out(..., M, N))")
        if not any(p.role == "out" for p in self.ports.values()):
            raise TraceError(f"{self.name} has no result; add y=Out(...)")
        styles = {p.whole for p in self.ports.values() if p.batch}
        if len(styles) > 1:
            raise TraceError(
                f"{self.name} mixes In(...) and In(..., M, K): with one, the block is the whole array, with the other "
                "it is what remains behind the batch axes; name the extents of all or of none"
            )

    def _parameter(self, p: inspect.Parameter) -> None:
        if p.default is inspect.Parameter.empty or p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise TraceError(
                f"{self.name}: parameter {p.name} has no default; a port is x=In(...) or y=Out(...), a knob gm=None"
            )
        if isinstance(p.default, Port):
            if p.kind is p.KEYWORD_ONLY:
                raise TraceError(f"{self.name}: port {p.name} stands behind *; ports come first")
            self.ports[p.name] = p.default
        elif p.kind is p.KEYWORD_ONLY:
            self.defaults[p.name] = p.default
        else:
            raise TraceError(
                f"{self.name}: {p.name}={p.default!r} is no port; knobs are keyword parameters, put * before {p.name}"
            )

    @property
    def operands(self) -> tuple[str, ...]:
        """Names of the In ports in order."""
        return tuple(n for n, p in self.ports.items() if p.role == "in")

    def trace(self, **knobs: Knob) -> Trace:
        """The recorded body; the same object for the same knobs.

        Raises:
            TraceError: an unknown knob, a tiling knob below 1, or what the body refuses.
        """
        unknown = sorted(set(knobs) - set(self.defaults))
        if unknown:
            raise TraceError(f"{self.name} has no knob {unknown[0]}; it has {', '.join(self.defaults) or 'none'}")
        # a number of numpy is the Python number of its value
        chosen = {n: v.item() if isinstance(v, np.generic) else v for n, v in {**self.defaults, **knobs}.items()}
        self._check(chosen)
        # 4.0 and 4, and 0.0 and -0.0, are equal keys of a dictionary, but not the same knob
        key = tuple((name, repr(value), value) for name, value in sorted(chosen.items(), key=lambda kv: kv[0]))
        if key not in self._cache:
            self._cache[key] = self._record(chosen)
            self.traces += 1
        return self._cache[key]

    @property
    def extents(self) -> frozenset[str]:
        """Names of the extents in the ports."""
        return frozenset().union(*(d.names("extent") for p in self.ports.values() for d in p.dims))

    def plan(self, *args: object, **named: object) -> object:
        """The schedule of a call on ``args``, one per In port: arrays, or shapes.

        Args:
            named: knobs, named extents, compile options, and ``machine``; without it the machine of a device array.
        """
        return self._front("plan").plan(self, args, named)

    def footprint(self, *args: object, **named: object) -> object:
        """Every buffer of a call with its role, bytes and lifetime, and the peak; arguments as for :meth:`plan`."""
        return self._front("footprint").footprint(self, args, named)

    def __call__(self, *args: object, **named: object) -> object:
        """Run on the device of the operands: one result, or a tuple in the order of the Out ports."""
        return self._front("call").run(self, args, named)

    def _front(self, what: str) -> Frontend:
        if Kernel.frontend is None:
            raise TraceError(f"{self.name}: {what} needs a compiler; import ktpu")
        return Kernel.frontend

    def _check(self, knobs: Mapping[str, Knob]) -> None:
        for name in OPEN_KNOBS:
            value = knobs.get(name)
            if value is not None and not isinstance(value, Integral):
                raise TraceError(
                    f"{self.name}: {name} = {value!r}; it counts sub-tiles or K blocks, give an integer"
                )
            if value is not None and int(value) < 1:
                raise TraceError(
                    f"{self.name}: {name} = {value}; a tiling knob is at least 1, or None to leave it open"
                )
        named = [n for n in OPEN_KNOBS if n in knobs and knobs[n] is not None]
        if named and len(named) < len([n for n in OPEN_KNOBS if n in knobs]):
            raise TraceError(
                f"{self.name}: {', '.join(named)} named alone; name gm, gn and nk together or none of them"
            )

    def _record(self, knobs: Mapping[str, Knob]) -> Trace:
        values: dict[str, object] = {
            n: Int("knob", (n,)) if n in OPEN_KNOBS and v is None else v for n, v in knobs.items()
        }
        with Recorder(self.name) as recorder:
            ports = {
                n: recorder.declare(Buffer(recorder, n, p.role, p.dims, p.whole, p.batch))
                for n, p in self.ports.items()
            }
            try:
                self._body(**ports, **values)
            except TraceError as error:
                raise TraceError(f"{self.name}: {error}") from None
            recorder.finish()
        touched = _touched(recorder.body)
        for name, port in self.ports.items():
            if name not in touched:
                verb = "written" if port.role == "out" else "read"
                raise TraceError(f"{self.name}: port {name} is never {verb}; remove it or use it")
        _need_grid(self.name, recorder.body)
        return Trace(
            self.name,
            dict(self.ports),
            tuple(recorder.buffers),
            tuple(recorder.body),
            tuple(recorder.adjacent),
            dict(knobs),
        )


def _touched(body: Sequence[Statement]) -> set[str]:
    names: set[str] = set()
    for s in body:
        if isinstance(s, Block):
            names |= _touched(s.body)
        elif isinstance(s, Load):
            names.add(s.source.buffer.name)
        elif isinstance(s, Sweep):
            names |= {side.buffer.name for side in (s.left, s.right) if isinstance(side, Ref)}
        elif isinstance(s, Drain):
            names.add(s.target.buffer.name)
        elif not isinstance(s, Read):
            names.add(s.target.buffer.name)
            names |= {leaf.buffer.name for n in s.value.nodes() if isinstance(leaf := n.leaf, Ref)}
    return names


def _need_grid(kernel: str, body: Sequence[Statement]) -> None:
    """A kernel that indexes needs a grid; whole-buffer statements stand by themselves."""
    for s in body:
        if isinstance(s, Assign) and s.target.index:
            raise TraceError(f"{kernel}: {s.target.text()} <<= ... has no grid; for e in units(x.parts(part))")
        if isinstance(s, Block) and s.kind == "loop":
            _need_grid(kernel, s.body)


def kernel(body: Callable[..., None]) -> Kernel:
    """Declare a kernel: ports as defaults, then keyword knobs."""
    return Kernel(body)

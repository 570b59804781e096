# SPDX-License-Identifier: Apache-2.0
"""A kernel named on the command line, called on random operands of named extents."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.buffers import Port
from kohakutpu.tensor import KernelCall, call

Knob = int | float | str | bool | None
Shape = tuple[int, ...]

BATCH = "batch"
"""Name under which ``--shape`` gives the leading axes of ports declared with ``...``."""

_NAMED = re.compile(r"(\w+)(?:\(([^()]*)\))?")
_WORDS: Mapping[str, Knob] = {"true": True, "false": False, "none": None}


@dataclass(frozen=True)
class Named:
    """A kernel with the text it was asked for by."""

    text: str
    kernel: Kernel


def find(text: str) -> Named:
    """A kernel of the library, ``name`` or ``name(arguments)``, or of a file, ``file.py:name``.

    Raises:
        CompileError: nothing of that name; lists what there is.
    """
    where, colon, name = text.rpartition(":")
    if colon:
        return Named(text, _of_file(Path(where), name))
    found = _NAMED.fullmatch(text.strip().removeprefix("ktpu."))
    known = {n: getattr(library, n) for n in library.__all__}
    known = {n: v for n, v in known.items() if isinstance(v, Kernel) or _makes_kernels(v)}
    if found is None or found[1] not in known:
        raise CompileError(
            f"no kernel {text!r} in the library; it has {', '.join(sorted(known))}. A kernel of a file is file.py:name"
        )
    made = known[found[1]]
    if isinstance(made, Kernel):
        return Named(text, made)
    if found[2] is None and any(p.default is p.empty for p in inspect.signature(made).parameters.values()):
        first = (made.__doc__ or "").strip().splitlines()[0]
        raise CompileError(f"{text} is a family of kernels; name one as {text}(640). {first}")
    return Named(text, made(*(knob(a) for a in (found[2] or "").split(",") if a.strip())))


def _makes_kernels(value: Callable[..., object]) -> bool:
    return getattr(getattr(value, "__wrapped__", value), "__annotations__", {}).get("return") in ("Kernel", Kernel)


def _of_file(path: Path, name: str) -> Kernel:
    if not path.is_file():
        raise CompileError(f"{path} does not exist; a kernel of a file is file.py:name")
    values = runpy.run_path(str(path))
    kernels = sorted(n for n, v in values.items() if isinstance(v, Kernel))
    if name not in kernels:
        raise CompileError(f"{path} has no kernel {name!r}; it has {', '.join(kernels) or 'none'}")
    found: Kernel = values[name]
    return found


def pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """``name=value`` texts, each of which may hold several separated by commas.

    Raises:
        CompileError: a text of another form, or a name given twice.
    """
    out: dict[str, str] = {}
    for text in (part for t in texts for part in t.split(",") if part.strip()):
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise CompileError(f"{option} {text!r}; write {option} name=value")
        if name in out:
            raise CompileError(f"{option}: {name} is given twice")
        out[name] = value
    return out


def knob(text: str) -> Knob:
    """A knob's value: an integer, a number, true, false, none or a text."""
    word = text.strip()
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word


def axes(option: str, name: str, text: str) -> Shape:
    """``4x128`` as (4, 128).

    Raises:
        CompileError: anything else, or an extent below 1.
    """
    parts = text.split("x")
    if not all(p.isdigit() and int(p) for p in parts):
        raise CompileError(f"{option} {name}={text}: an extent is an integer of at least 1, axes are 4x128")
    return tuple(int(p) for p in parts)


def build(named: Named, shape: Mapping[str, str], knobs: Mapping[str, Knob], seed: int = 3) -> KernelCall:
    """Call a kernel on normally distributed operands.

    Args:
        shape: extents by name, ``batch`` for leading axes, and the axes of an operand declared ``In(...)``.

    Raises:
        CompileError: an extent that is missing or that the kernel does not have, or what the kernel refuses.
    """
    kernel = named.kernel
    operands = {n: p for n, p in kernel.ports.items() if p.role == "in"}
    names = sorted(set().union(*(d.names("extent") for p in kernel.ports.values() for d in p.dims)))
    whole = [n for n, p in operands.items() if p.whole]
    leading = any(p.batch and not p.whole for p in operands.values())
    wanted = [*names, *whole]
    optional = [BATCH] if leading else []
    given = {n: axes("--shape", n, v) for n, v in shape.items()}
    unknown = sorted(set(given) - {*wanted, *optional})
    missing = [n for n in wanted if n not in given]
    if unknown or missing:
        what = f"has no extent {unknown[0]}" if unknown else f"needs {', '.join(missing)}"
        example = ",".join([*(f"{n}=64" for n in names), *(f"{n}=4x128" for n in whole)])
        also = f" ({BATCH}=... for leading axes)" if leading else ""
        raise CompileError(f"{named.text} {what}; write --shape {example}{also}")
    for n in names:
        if len(given[n]) > 1:
            raise CompileError(f"--shape {n}={shape[n]}: {n} is one extent; only {BATCH} and whole operands have axes")
    env = {n: given[n][0] for n in names}
    rng = np.random.default_rng(seed)
    arrays = [
        _operand(rng, given[n] if p.whole else _shape(p, env, given.get(BATCH, ()))) for n, p in operands.items()
    ]
    inside = set().union(*(d.names("extent") for p in operands.values() for d in p.dims if d.op == "extent"), set())
    extents = {n: v for n, v in env.items() if n not in inside}
    options: dict[str, Any] = dict(knobs)
    return call(kernel, *arrays, extents=extents, **options)


def _shape(port: Port, env: Mapping[str, int], batch: Shape) -> Shape:
    inner = tuple(d.value(env) for d in port.dims)
    return (*batch, *inner) if port.batch else inner


def _operand(rng: np.random.Generator, shape: Shape) -> npt.NDArray[np.float64]:
    """Normal values, small enough that a product of them fits FP16."""
    if prod(shape) > 1 << 28:
        raise CompileError(f"an operand of {'x'.join(map(str, shape))} elements; explain a smaller shape")
    return rng.standard_normal(shape) * 0.25

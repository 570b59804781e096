# SPDX-License-Identifier: Apache-2.0
"""Declaration of a bench and discovery of all of them."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class BenchError(ImportError):
    """A file of ``tb/benches`` that cannot be used; the message names file and reason."""


@dataclass(frozen=True)
class Bench:
    """One HDL top with its cocotb tests.

    Args:
        name: what ``TEST=`` takes.
        top: HDL top module.
        sources: repository-relative globs of Verilog files, in compile order.
        tier: ``unit`` or ``system``; becomes the pytest marker.
        params: Verilog parameters of the top.
        variants: further builds, name -> parameter overrides.
        public: ``module.signal`` names a Python test reads below the top.
        mutations: name -> (file, old text, new text); each must make the bench fail.
        machine: name of a mesh picture below ``spec/machines``; its top is generated first.
        checked: for a machine: a link checker on every link.
        dram: for a machine: parameters of the DRAM model.
        program: C++ main of the simulator; cocotb's own by default.
        defines: Verilog macros.
        slow_variants: variants that only run under the ``slow`` mark.
        mutation_tests: cocotb tests that a mutation run needs; all when empty.
        timeout_cycles: a test that reaches it has hung.
        wall_s: wall seconds after which the simulator is killed.
    """

    name: str
    top: str
    sources: list[str]
    tier: str = "unit"
    params: dict[str, int | str] = field(default_factory=dict)
    variants: dict[str, dict[str, int | str]] = field(default_factory=dict)
    public: list[str] = field(default_factory=list)
    mutations: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    machine: str | None = None
    checked: bool = True
    program: str = ""
    dram: dict[str, int] = field(default_factory=dict)
    defines: dict[str, str] = field(default_factory=dict)
    slow_variants: tuple[str, ...] = ()
    mutation_tests: dict[str, list[str]] = field(default_factory=dict)
    timeout_cycles: int = 2_000_000
    wall_s: int = 600
    module: str = ""

    def parameters(self, variant: str | None) -> dict[str, int | str]:
        """Parameters of ``variant`` (None: the base build).

        Raises:
            KeyError: no such variant; the message lists those there are.
        """
        if variant is None:
            return dict(self.params)
        if variant not in self.variants:
            known = ", ".join(self.variants) or "none"
            raise KeyError(f"bench {self.name} has no variant {variant!r}; it has: {known}")
        return {**self.params, **self.variants[variant]}

    def files(self) -> list[Path]:
        """Source files in order, each once.

        Raises:
            FileNotFoundError: a glob that matches nothing.
        """
        seen: dict[Path, None] = {}
        for pattern in self.sources:
            matches = sorted(ROOT.glob(pattern))
            if not matches:
                raise FileNotFoundError(f"bench {self.name}: source {pattern!r} matches no file")
            for path in matches:
                seen.setdefault(path)
        return list(seen)


def load(name: str) -> Bench:
    """The bench called ``name``; no other bench file is imported, so a broken one stops nobody else.

    Raises:
        KeyError: unknown name; the message lists close names.
        BenchError: the file does not import or declares another name.
    """
    files = _files()
    if name in files:
        bench = _declared(name)
        if bench is not None:
            return bench
    import difflib

    close = difflib.get_close_matches(name, files, n=3) or sorted(b.name for b in survey()[0])
    raise KeyError(f"no bench called {name!r}; did you mean {', '.join(close)}? (make list)")


def survey() -> tuple[list[Bench], dict[str, str]]:
    """All benches of ``tb/benches`` by name, and for each file that gives none although it should, why."""
    found: list[Bench] = []
    broken: dict[str, str] = {}
    for name in _files():
        try:
            bench = _declared(name)
        except BenchError as err:
            broken[name] = str(err)
        else:
            if bench is not None:
                found.append(bench)
    return found, broken


def discover() -> list[Bench]:
    """All benches of ``tb/benches``, by name.

    Raises:
        BenchError: a bench file that does not import; nothing is skipped silently.
    """
    found, broken = survey()
    if broken:
        raise BenchError("\n".join(broken.values()))
    return found


def _files() -> list[str]:
    """Module names below ``benches``, benches and their helpers alike."""
    import benches

    return sorted(info.name for info in pkgutil.iter_modules(benches.__path__))


def _declared(name: str) -> Bench | None:
    """The bench that file ``name`` declares, or None for a helper."""
    try:
        bench: Bench | None = getattr(importlib.import_module(f"benches.{name}"), "BENCH", None)
    except Exception as err:
        raise BenchError(f"tb/benches/{name}.py does not import: {type(err).__name__}: {err}") from err
    if bench is None:
        return None
    if bench.name != name:
        raise BenchError(f"tb/benches/{name}.py declares bench {bench.name!r}; name the file like the bench")
    object.__setattr__(bench, "module", f"benches.{name}")
    return bench

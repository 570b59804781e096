# SPDX-License-Identifier: Apache-2.0
"""Declaration of a bench and discovery of all of them."""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
    """The bench called ``name``.

    Raises:
        KeyError: unknown name; the message lists close names.
    """
    benches = {b.name: b for b in discover()}
    if name not in benches:
        import difflib

        close = difflib.get_close_matches(name, benches, n=3) or sorted(benches)
        raise KeyError(f"no bench called {name!r}; did you mean {', '.join(close)}? (make list)")
    return benches[name]


def discover() -> list[Bench]:
    """All benches of ``tb/benches``, by name.

    Raises:
        ImportError: a bench file that does not import; nothing is skipped silently.
    """
    import benches

    found: list[Bench] = []
    for info in pkgutil.iter_modules(benches.__path__):
        module = importlib.import_module(f"benches.{info.name}")
        bench = getattr(module, "BENCH", None)
        if bench is None:
            continue
        object.__setattr__(bench, "module", f"benches.{info.name}")
        found.append(bench)
    names = [b.name for b in found]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ImportError(f"two benches share a name: {', '.join(sorted(twice))}")
    return sorted(found, key=lambda b: b.name)

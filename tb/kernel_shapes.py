# SPDX-License-Identifier: Apache-2.0
"""Prints docs/kernel_shapes.md, the shapes at which the kernel library runs on the RTL (docs/spec/kernels.md 10).

``python tb/kernel_shapes.py > docs/kernel_shapes.md``, with the import path of tb/conftest.py.
"""

from __future__ import annotations

from pathlib import Path

from kernel_cases import CASES, Case

PAGE = Path(__file__).resolve().parents[1] / "docs" / "kernel_shapes.md"

HEAD = """\
# Shapes on the RTL

Every kernel of [the library](guide_kernels.md) runs on the RTL of `mm_store` and of `mm_mesh` at the shapes below.
Operands, results, signals and counters are compared with the model after every round, at the end all memory up to
behind the last buffer and the temps in the staging store; no bit may differ. The class is the bound of the error
against float64, [kernels.md](spec/kernels.md) 0. `pytest tb/test_session_kernels.py` runs a selection, with
`-m "slow or not slow"` all of them.
`mm_store` turns tiles into rows with its memory mover, `mm_mesh` on its vector core.

Printed by `python tb/kernel_shapes.py`.

| Kernel | Operands | Knobs | Row | Class |
|---|---|---|---|---|
"""


def line(case: Case) -> str:
    """A row of the table."""
    operands = " ".join(f"{n}[{','.join(map(str, v.shape))}]" for n, v in case.draw().items())
    knobs = " ".join(f"{n}={v}" for n, v in case.knobs.items())
    return f"| `{case.kernel().name}` | {operands} | {knobs} | {case.row} | {case.bound} |\n"


def page() -> str:
    """The whole page."""
    return HEAD + "".join(dict.fromkeys(line(c) for c in CASES if c.rtl))


if __name__ == "__main__":
    print(page(), end="")

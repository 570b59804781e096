# SPDX-License-Identifier: Apache-2.0
"""L1 hazard check of emitted programs (docs/spec/compiler.md 9.1)."""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.errors import HazardError
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, text

LAYER = "L1"

Region = tuple[str, int, int, int]


def _gemm_regions(gemm: Gemm) -> list[Region]:
    return [
        ("a", gemm.abank, gemm.aoff, gemm.aoff + gemm.gm * gemm.nk),
        ("b", gemm.bbank, gemm.boff, gemm.boff + gemm.gn * gemm.nk),
    ]


def check_hazards(instructions: Iterable[Instruction]) -> None:
    """A FILL must not meet the entries of the most recent GEMM of its side.

    The hardware would wait for the sweep, with the right result, but a compiled program
    that needs it has lost its overlap. A later GEMM or DRAIN ends the restriction.

    Raises:
        HazardError: naming both instructions and the overlapping entries.
    """
    busy: list[Region] = []
    gemm: Gemm | None = None
    for ins in instructions:
        match ins:
            case Gemm():
                gemm, busy = ins, _gemm_regions(ins)
            case Drain():
                gemm, busy = None, []
            case Fill(side, bank, off, n):
                for s, b, lo, hi in busy:
                    if (s, b) == (side, bank) and off < hi and lo < off + n and gemm is not None:
                        raise HazardError(
                            f"{text(ins)} overwrites entries {max(off, lo)}..{min(off + n, hi) - 1} "
                            f"of side {side}, bank {bank}, which {text(gemm)} may still read; fill the other"
                        )

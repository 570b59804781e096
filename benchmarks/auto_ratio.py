# SPDX-License-Identifier: Apache-2.0
"""Automatic programs beside the kernels written by hand (docs/spec/compiler.md 13.4, docs/spec/kernels.md 7.4, 10).

    PYTHONPATH=compiler:driver:tb python benchmarks/auto_ratio.py
    PYTHONPATH=compiler:driver:tb python benchmarks/auto_ratio.py --only attention

Modelled cycles, everything charged: the acceptance set on mm_mesh and every kernel of the library at the shapes of its
cases on mm_store. Ends with 1 if a ratio is above 2, a gap above 1.05 has no reason, or a step is left to the host.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

import auto_cases
import ktpu
from kohakutpu.rewrite import without
from ktpu.auto_report import ACCEPTANCE, Line, base_2_attention, report, table

RESULT = Path(__file__).parent / "results" / "auto_ratio.json"
SETS = (("acceptance set", "mm_mesh"), ("kernels of the library", "mm_store"))
KEYS = (64, 128, 256, 512, 1024, 2048)


def lines(only: str) -> list[tuple[str, list[Line]]]:
    """Both sets, each with its title."""
    workloads = (ACCEPTANCE, [c.workload() for c in auto_cases.cases()])
    out = []
    for (title, machine), chosen in zip(SETS, workloads, strict=True):
        picked = [w for w in chosen if only in w.name]
        out.append((f"{title}, {machine}", report(picked, ktpu.machine(machine))))
    return out


def streamed() -> list[dict[str, int]]:
    """Attention of 64 queries, one head, with the scores streamed and with a score matrix, by number of keys."""
    machine, out = ktpu.machine(SETS[0][1]), []
    for keys in KEYS:
        shapes = (1, 64, 64), (1, keys, 64), (1, 64, keys)
        online = ktpu.auto(base_2_attention, *shapes).cost(machine).high
        kept = ktpu.auto(base_2_attention, *shapes, catalogue=without("streamed softmax")).cost(machine).high
        out.append({"keys": keys, "streamed": online, "score matrix": kept})
    return out


def main() -> None:
    """Compare, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="workloads whose name contains this; stores nothing")
    args = parser.parse_args()
    console = Console(highlight=False, soft_wrap=True)
    found = lines(args.only)
    for title, listed in found:
        console.print(f"\n{title} (tag model)\n")
        console.print(table(listed), markup=False)
    if not args.only:
        stored = {"tag": "model", "profile": "default", "streamed softmax": streamed()}
        stored["sets"] = [{"title": title, "rows": [x.as_dict() for x in listed]} for title, listed in found]
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    bad = [x.name for _, listed in found for x in listed if not x.accepted]
    if bad:
        sys.exit(f"not accepted: {', '.join(bad)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Counters of a compiled call and of its run (docs/spec/compiler.md 14.2, docs/guide_cost.md)."""

from __future__ import annotations

from kohakudriver.registers import fields
from kohakudriver.result import RunResult
from kohakutpu.isa.generated import ClusterError, VectorError
from ktpu.compiling import Compiled
from ktpu.costing import cost

COMPILED = (
    "dispatches",
    "rounds",
    "payloads",
    "bytes_sent",
    "fetched",
    "relayouts",
    "relayouts_device",
    "quantised",
    "moves",
    "mag_bytes",
    "staging_full",
    "relaxed",
)
"""Known when the compiler is done."""

RUN = ("mag_bytes", "rounds", "saturated")
"""Counted by the machine; they replace what the compiler expects."""

_INSTRUCTION_BYTES = 32
_CLAMP = 1 << ClusterError.CLAMP | 1 << VectorError.CLAMP
"""The two unit types report a clamped FP16 store in the same sticky bit."""


def counters(compiled: Compiled, result: RunResult | None = None) -> dict[str, int]:
    """Every counter by name.

    Args:
        result: what a device answered; without it ``saturated`` is left out and the others are the compiler's.
    """
    found = _compiled(compiled)
    return found if result is None else {**found, **measured(result, compiled.machine.word_bytes)}


def _compiled(c: Compiled) -> dict[str, int]:
    kept = c.artifact.meta["counters"]
    found = {
        **{name: int(n) for name, n in kept.items()},
        "bytes_sent": _INSTRUCTION_BYTES * kept["payloads"] + kept["image_bytes"],
        "fetched": sum(o.nbytes for o in c.artifact.outputs),
        "mag_bytes": cost(c).mag_bytes,
    }
    return {name: found[name] for name in COMPILED}


def measured(result: RunResult, word_bytes: int) -> dict[str, int]:
    """Counters the machine gives; ``saturated`` are units that have clamped an FP16 store since their last reset."""
    words = sum(sum(r.dram_words) + sum(r.stage_words) for r in result.rounds)
    clamped = {n.node for r in result.rounds for n in r.nodes if fields("CU_ERR", n.cu_err)["unit_err"] & _CLAMP}
    return {"mag_bytes": word_bytes * words, "rounds": len(result.rounds), "saturated": len(clamped)}

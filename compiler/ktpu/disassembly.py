# SPDX-License-Identifier: Apache-2.0
"""Instructions as text, whatever unit they are for; what the driver shows of one that faulted."""

from __future__ import annotations

from kohakudriver.result import Faulted
from kohakutpu.isa import cluster, vector
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import VC_CU_TYPE, EnvelopeOp

CLUSTER, VECTOR = "MG", "VC"


def disassemble(kind: str, payload: int) -> str:
    """One instruction of a unit of type ``kind``."""
    if kind == CLUSTER:
        return cluster.disasm(payload)
    if kind == VECTOR:
        return vector.disasm_envelope(payload)
    return f".word 0x{payload:064x}"


def explain(faulted: Faulted) -> str:
    """The instruction, and for a RUN of a vector core the word of its kernel that faulted."""
    shown = disassemble(faulted.kind, faulted.payload)
    if faulted.kind != VECTOR or vector.decode_envelope(faulted.payload)[0] is not EnvelopeOp.RUN:
        return shown
    state = codec("VC_DBG").decode(faulted.debug)
    words = kernel(faulted.sent)
    # CU_DBG keeps the last fault of a kernel; a fault of the shell or of an earlier burst has no word
    own = codec("FAULT_ARG").decode(faulted.arg)
    mine = own["tag"] == VC_CU_TYPE and own["code"] == state["fault_code"]
    if not state["fault_valid"] or not mine or state["fault_pc"] not in words:
        return shown
    at = state["fault_pc"]
    before = words.get(at - 1)
    pair = [before, words[at]] if before is not None else [words[at]]
    return f"{shown}, at word {at}: {vector.disasm_words(pair)[-1].strip()}"


def kernel(sent: tuple[int, ...]) -> dict[int, int]:
    """Instruction memory of a vector core after these payloads, as far as they loaded it."""
    words = {}
    for payload in sent:
        op, f = vector.decode_envelope(payload)
        if op is EnvelopeOp.IMEM:
            words[f["addr"]] = f["word"]
    return words

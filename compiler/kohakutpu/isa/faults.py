# SPDX-License-Identifier: Apache-2.0
"""Fault words, burst acknowledgements and signals as text (``docs/spec/fabric.md`` section 1.6)."""

from __future__ import annotations

from enum import IntEnum

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import EncodingError, codec

LAYER = "L0"

_FAULT = codec("FAULT_ARG")
_DATA = codec("DATA_ARG")


def _named(kind: type[IntEnum], value: int) -> str | None:
    try:
        return kind(value).name
    except ValueError:
        return None


def _described(kind: type[IntEnum], value: int) -> str:
    name = _named(kind, value)
    if name is None:
        return f"unknown code (0x{value:02X})"
    return f"{name} (0x{value:02X}): {g.FAULT_MEANING[kind.__name__][value]}"


def fault_arg(tag: int, detail: int, code: int) -> int:
    """The 32-bit argument of a ``FAULT`` signal.

    Args:
        tag: ``MG_CU_TYPE``, ``VC_CU_TYPE`` or ``FAULT_MAGIC``.
        detail: opcode of the retiring instruction; memory fault code for ``WR_DROP``.
        code: code of the tag's own list.
    """
    return _FAULT.encode(tag=tag, detail=detail, code=code)


def explain_fault(arg: int) -> str:
    """One line that names the unit, the fault and the retiring instruction of a ``FAULT`` argument.

    >>> explain_fault(0x4D470205)
    'MG F_GEMM_A (0x05): GEMM operand range of side A leaves its bank or its L1; retiring GEMM'
    """
    try:
        fields = _FAULT.decode(arg)
    except EncodingError:
        return f"not a fault word: 0x{arg:x}"
    tag, detail, code = fields["tag"], fields["detail"], fields["code"]
    odd = f"; reserved bits 0x{fields['zero']:x} set" if fields.get("zero") else ""
    if tag == g.MG_CU_TYPE:
        op = _named(g.ClusterOp, detail) or f"opcode {detail}"
        return f"MG {_described(g.ClusterFault, code)}; retiring {op}{odd}"
    if tag == g.VC_CU_TYPE:
        op = _named(g.EnvelopeOp, detail) or f"envelope {detail}"
        return f"VC {_described(g.VectorFault, code)}; retiring {op}{odd}"
    if tag == g.FAULT_MAGIC:
        text = f"shell {_described(g.ShellFault, code)}"
        if code == g.ShellFault.WR_DROP:
            text += f"; memory {_described(g.MemFault, detail)}"
        return text + odd
    return f"unknown unit 0x{tag:04X}: code 0x{code:02X}, detail {detail}{odd}"


def explain_data(arg: int) -> str:
    """One line for the argument of a ``DATA_RECEIVED`` signal."""
    fields = _DATA.decode(arg)
    if not fields["reject"]:
        return f"buffer {fields['buf_id']} accepted"
    reason = _named(g.RejectReason, fields["reason"]) or f"reason {fields['reason']}"
    return f"buffer {fields['buf_id']} rejected: {reason}"


def explain_signal(code: int, arg: int) -> str:
    """One line for a ``CU_SIGNAL`` or a ``NODE_STATUS`` entry."""
    name = _named(g.Signal, code) or f"signal 0x{code:02X}"
    if code == g.Signal.FAULT:
        return f"{name} {explain_fault(arg)}"
    if code == g.Signal.DATA_RECEIVED:
        return f"{name} {explain_data(arg)}"
    return f"{name} 0x{arg:08x}"

# SPDX-License-Identifier: Apache-2.0
"""Encodings of the machine: flits, instructions, addresses, registers and fault words.

Every bit position comes from :mod:`kohakutpu.isa.generated`, which ``python -m kohakutpu.gen`` writes from
``spec/*.json``. Modules:

* :mod:`~kohakutpu.isa.message`: flits and message payloads
* :mod:`~kohakutpu.isa.cluster`: FILL, GEMM, DRAIN, with assembler and disassembler
* :mod:`~kohakutpu.isa.vector`: envelope instructions and 32-bit words of the vector core, likewise
* :mod:`~kohakutpu.isa.address`: 40-bit addresses
* :mod:`~kohakutpu.isa.registers`: control registers
* :mod:`~kohakutpu.isa.faults`: fault words, acknowledgements and signals as text
* :mod:`~kohakutpu.isa.codec`: the table-driven packer behind all of them
"""

from kohakutpu.isa.codec import Codec, EncodingError, FieldSpec, codec
from kohakutpu.isa.faults import explain_fault, explain_signal, fault_arg

LAYER = "L0"

__all__ = ["Codec", "EncodingError", "FieldSpec", "codec", "explain_fault", "explain_signal", "fault_arg"]

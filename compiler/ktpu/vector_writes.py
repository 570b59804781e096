# SPDX-License-Identifier: Apache-2.0
"""Which RUN of a vector core writes a word of memory: descriptors and kernel are followed through its payloads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from kohakutpu.isa import generated as g
from kohakutpu.isa import vector
from kohakutpu.isa.generated import EnvelopeOp, VectorOp

WORD = 32


@dataclass
class Core:
    """Instruction memory and descriptors of one core, as its payloads left them."""

    words: dict[int, int] = field(default_factory=dict)
    bases: dict[int, int] = field(default_factory=dict)
    dims: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)

    def take(self, payload: int) -> int | None:
        """One payload; the start of the kernel if it is a RUN."""
        op, f = vector.decode_envelope(payload)
        if op is EnvelopeOp.IMEM:
            self.words[f["addr"]] = f["word"]
        elif op is EnvelopeOp.DESC and vector.descriptor_base(f) is not None:
            self.bases[f["ad"]] = vector.descriptor_base(f) or 0
        elif op is EnvelopeOp.DESC:
            dim, stride, bound = vector.descriptor_dimension(f)
            self.dims[f["ad"], dim] = (stride, bound)
        return f["pc"] if op is EnvelopeOp.RUN else None

    def drains(self, pc: int) -> Iterator[int]:
        """Addresses of every word the kernel at ``pc`` drains to memory, loops taken once."""
        while pc in self.words:
            op, f = vector.decode(self.words[pc])
            if op is VectorOp.VHALT:
                return
            if op is VectorOp.VDRAIN and not f["node"]:
                yield from self._walk(f["ad"])
            pc += 2 if op is VectorOp.VSETI else 1

    def _walk(self, ad: int) -> Iterator[int]:
        dims = [self.dims.get((ad, d), (0, 1)) for d in range(g.VC_DIMS)]
        size = 1
        for _, bound in dims:
            size *= max(1, bound)
        if size > g.VC_WALK_MAX:
            return
        ranges = [range(max(1, bound)) for _, bound in dims]
        for index in product(*ranges):
            yield self.bases.get(ad, 0) + sum(i * stride for i, (stride, _) in zip(index, dims, strict=True))


def writes(payloads: Sequence[int], address: int) -> list[int]:
    """Positions of the RUNs that drain the word at ``address``."""
    core, out = Core(), []
    for position, payload in enumerate(payloads):
        pc = core.take(payload)
        if pc is not None and any(a == address for a in core.drains(pc)):
            out.append(position)
    return out

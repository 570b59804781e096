# SPDX-License-Identifier: Apache-2.0
"""The memory of a call (docs/spec/compiler.md 8.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohakutpu.isa import address
from kohakutpu.kernels import Trace
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule import Schedule
from kohakutpu.schedule.lifetimes import Life
from kohakutpu.schedule.tiers import DRAM, L2
from kohakutpu.tensor import Call
from ktpu.compiling import CompileOption, scheduled


@dataclass(frozen=True)
class Held:
    """A buffer: where it lies, how large it is, and the steps it occupies its bytes in.

    Args:
        offset: byte offset in its tier.
    """

    name: str
    role: str
    tier: str
    offset: int
    nbytes: int
    life: Life


@dataclass(frozen=True)
class Footprint:
    """Every buffer of a call; ``peak`` is the bytes from the bottom of each tier's arena that the call uses."""

    kernel: str
    buffers: tuple[Held, ...]
    peak: Mapping[str, int]

    def text(self) -> str:
        """One line a buffer, then the peak of each tier."""
        lines = [f"footprint of {self.kernel}"]
        for b in self.buffers:
            place = f"{b.tier} at {b.offset:#x}, {b.nbytes} bytes"
            lines.append(f"  {b.role} {b.name}: {place}, steps {b.life.first}..{b.life.last}")
        return "\n".join([*lines, *(f"  peak {tier}: {n} bytes" for tier, n in self.peak.items())])


def plan(call: Call | Trace, machine: MachineSpec, **options: CompileOption) -> Schedule:
    """Bands, byte orders and places of a call, without its values.

    Args:
        call: a call, or a trace of a kernel at concrete extents.
        options: of :func:`ktpu.compile`.

    Raises:
        kohakutpu.errors.CompileError: what the compiler refuses.
    """
    trace = call.trace if isinstance(call, Call) else call
    return scheduled(trace, machine, **options)


def footprint(call: Call | Trace, machine: MachineSpec, **options: CompileOption) -> Footprint:
    """The memory of a call; arguments as for :func:`plan`.

    Raises:
        kohakutpu.errors.CompileError: what the compiler refuses; a peak beyond the memory, naming the buffers.
    """
    trace = call.trace if isinstance(call, Call) else call
    schedule = plan(trace, machine, **options)
    bottom = {DRAM: machine.arena_base, L2: 0}
    held: list[Held] = []
    peak: dict[str, int] = {}
    for b in schedule.buffers.values():
        f = address.decode(b.address)
        tier, offset = (L2, f["aperture_offset"]) if f["aperture"] else (DRAM, f["local"])
        held.append(Held(b.name, b.role, tier, offset, b.nbytes, schedule.lives[b.name]))
        peak[tier] = max(peak.get(tier, 0), offset + b.nbytes - bottom[tier])
    return Footprint(trace.kernel, tuple(held), peak)

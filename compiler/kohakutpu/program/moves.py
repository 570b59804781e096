# SPDX-License-Identifier: Apache-2.0
"""The mover instruction: typed, with a text form, and its register writes (docs/spec/compiler.md 9).

A move is a barrier on both sides: what it reads has been acknowledged, and what it wrote is visible to whatever
follows it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kohakutpu.errors import EncodeError
from kohakutpu.isa import EncodingError, mover
from kohakutpu.walks import WORD_BYTES, Walk

LAYER = "L1"

OPS = ("copy", "quantise", "granule", "fill")
_PACKING = {"a": 0, "b": 1}


@dataclass(frozen=True)
class Move:
    """One move from the elements of ``source`` to those of ``target``.

    Args:
        op: ``copy`` of words, ``quantise`` of FP16 entries, ``granule`` transpose, ``fill`` with a pattern.
        source: words to read; None for a fill.
        target: words to write; entries of 128 bytes for ``quantise``.
        side: packing of ``quantise``, "a" or "b".
        pattern: 16-bit element of a fill, and of the padding of a copy whose source is bounded.
    """

    op: str
    source: Walk | None
    target: Walk
    side: str = ""
    pattern: int = 0

    @property
    def traffic(self) -> tuple[int, int]:
        """Words read and written when nothing is padded or skipped."""
        written = self.target.elements * (4 if self.op == "quantise" else 1)
        return (self.source.elements if self.source else 0), written

    @property
    def cycles(self) -> int:
        """Modelled cost (docs/spec/compiler.md 14.2)."""
        return max(16, sum(self.traffic))


def encode(move: Move) -> mover.Writes:
    """Register writes of ``move``, the start last.

    Raises:
        EncodeError: an unknown operation, or a walk the mover cannot make; the message starts with the move.
    """
    try:
        return _encode(move)
    except (EncodingError, EncodeError) as err:
        raise EncodeError(f"{text(move)}: {err}") from err


def _encode(move: Move) -> mover.Writes:
    if move.op not in OPS:
        raise EncodeError(f"operation {move.op!r} is unknown; known: {', '.join(OPS)}")
    if move.op == "fill":
        return mover.fill(move.target, move.pattern, ewidth=1)
    if move.source is None:
        raise EncodeError("it needs a source")
    if move.op == "copy":
        return mover.copy(move.source, move.target, pad=move.pattern, ewidth=1)
    if move.op == "granule":
        return mover.transform(move.source, move.target, mover.GRANULE, 1)
    if move.side not in _PACKING:
        raise EncodeError(f"side {move.side!r}; a quantised operand is packed for side a or b")
    return mover.transform(move.source, move.target, mover.QUANTISE, _PACKING[move.side])


def text(move: Move) -> str:
    """One line: operation, options, and both walks as ``base[count*stride, ...]``."""
    words = [move.op]
    if move.side:
        words.append(f"side={move.side}")
    if move.pattern:
        words.append(f"pattern={move.pattern:#x}")
    if move.source is not None:
        words.append(f"from {_walk(move.source)}")
    return " ".join([*words, f"to {_walk(move.target)}"])


def _walk(walk: Walk) -> str:
    dims = []
    for d in walk.dims:
        axis = f":{'_xy_'[d.axis]}{d.step:+d}" if d.axis in (1, 2) else ""
        stride = "" if d.stride == WORD_BYTES else f"*{d.stride}"
        dims.append(f"{d.count}{stride}{axis}")
    bounds = [f" {name}={base}:{extent}" for name, (base, extent) in zip("xy", walk.windows, strict=True) if extent]
    return f"{walk.base:#x}[{', '.join(dims)}]{''.join(bounds)}"

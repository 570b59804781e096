# SPDX-License-Identifier: Apache-2.0
"""Entries into L1 and the words that drain them, for the bench ``vc_mx_store``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benches.vc_core_rig import Rig
from kohakubench.quant_corpus import source_bytes
from kohakutpu.model.numerics import Layout

LAYOUTS = (Layout.A, Layout.B)
ENTRY = 128
"""Bytes of a packed entry."""
IN, OUT = 8, 4
"""Words of L1 that an entry takes, and words it becomes."""


def entries(rig: Rig, codes: NDArray[Any], at: int = 0) -> None:
    """FP16 codes (n, 4, 32) into L1 from word ``at`` on."""
    words = source_bytes(codes).reshape(-1, 32)
    for n in range(0, len(words), 256):
        rig.burst(at + n, words[n : n + 256])


def drain(layout: int, l1: int = 0, ad: int = 0) -> str:
    """A VDRAIN to memory."""
    return f"VDRAIN A{ad}, L1 {l1} {{mx=1 buf={int(layout)}}}\n"


def peer(layout: int, l1: int = 0, ad: int = 0, dst: tuple[int, int] = (3, 1), signal: bool = False) -> str:
    """A VDRAIN to another unit."""
    comma = ", signal" if signal else ""
    return f"VDRAIN A{ad}, L1 {l1} -> node ({dst[0]},{dst[1]}) buf {int(layout)}{comma} {{mx=1}}\n"


def halves(rig: Rig, n: int, at: int = 0) -> None:
    """n words of ordinary FP16 elements into L1 from word ``at`` on."""
    codes = rig.np_rng.standard_normal((n, 16)).astype(np.float16)
    words = codes.view(np.uint8).reshape(n, 32)
    for k in range(0, n, 256):
        rig.burst(at + k, words[k : k + 256])

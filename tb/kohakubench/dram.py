# SPDX-License-Identifier: Apache-2.0
"""Handle of an ``axi_dram_model``: backdoor images, random behaviour, error window.

    BENCH = Bench(..., public=[...] + DRAM_PUBLIC)
    dram = Dram(dut.u_dram)
    await dram.load(0x1000, image)            # bytes or a uint8 array, any multiple of 32
    data = await dram.read(0x1000, n_bytes)
    dram.configure(lat_min=4, lat_max=200, r_pct=50, reorder=1, interleave=1)

Images travel through ``$readmemh``/``$writememh`` files of the run directory, never a
Python call per beat; 64 MiB take seconds.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

_CONTROLS = [
    "cfg_seed",
    "cfg_reseed",
    "cfg_ideal",
    "cfg_fatal",
    "cfg_lat_min",
    "cfg_lat_max",
    "cfg_ar_pct",
    "cfg_aw_pct",
    "cfg_w_pct",
    "cfg_r_pct",
    "cfg_b_pct",
    "cfg_reorder",
    "cfg_interleave",
    "cfg_err_rd",
    "cfg_err_wr",
    "cfg_err_resp",
    "cfg_err_lo",
    "cfg_err_hi",
    "bd_load",
    "bd_dump",
    "bd_peek",
    "bd_poke",
    "bd_first",
    "bd_count",
    "bd_data",
]
_OBSERVERS = [
    "rd_beats",
    "wr_beats",
    "rd_bursts",
    "wr_bursts",
    "oor_count",
    "err_count",
    "err_code",
    "rd_out_max",
    "wr_out_max",
]

DRAM_PUBLIC = [f"axi_dram_model.{name}" for name in _CONTROLS + _OBSERVERS]

_WORD = 32
_LINE = 2 * _WORD + 1
_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), dtype=np.uint8).reshape(256, 2)


def format_words(data: bytes | np.ndarray) -> bytes:
    """``$readmemh`` text of whole 32-byte words, byte 0 of a word at its right end.

    Raises:
        ValueError: the length is not a multiple of 32.
    """
    raw = np.frombuffer(bytes(data), dtype=np.uint8)
    if raw.size % _WORD:
        raise ValueError(f"a DRAM image is made of 32-byte words; got {raw.size} bytes")
    text = np.empty((raw.size // _WORD, _LINE), dtype=np.uint8)
    text[:, :-1] = _HEX[raw.reshape(-1, _WORD)[:, ::-1]].reshape(-1, 2 * _WORD)
    text[:, -1] = ord("\n")
    return text.tobytes()


def parse_words(text: bytes, count: int) -> bytes:
    """Bytes of ``count`` words of a ``$writememh`` file.

    Raises:
        ValueError: fewer words than asked for, or digits that are not 0/1 (an X).
    """
    start = 0
    while text[start : start + 2] == b"//" or text[start : start + 1] == b"@":
        start = text.index(b"\n", start) + 1
    body = text[start : start + count * _LINE]
    lines = np.frombuffer(body, dtype=np.uint8)
    if lines.size != count * _LINE or (count and not (lines.reshape(-1, _LINE)[:, -1] == 10).all()):
        words = [w for w in text.split() if not w.startswith((b"//", b"@", b"0x"))]
        digits = b"".join(w.zfill(2 * _WORD) for w in words[:count])
        if len(digits) != count * 2 * _WORD:
            raise ValueError(f"the dump holds {len(words)} words, {count} were asked for")
    else:
        digits = lines.reshape(-1, _LINE)[:, :-1].tobytes()
    raw = np.frombuffer(bytes.fromhex(digits.decode("ascii")), dtype=np.uint8)
    return raw.reshape(-1, _WORD)[:, ::-1].tobytes()


class Dram:
    """One model instance.

    Args:
        handle: the instance; its signals are public (``DRAM_PUBLIC``).
        base: byte address of word 0 (parameter ``BASE``).
        words: capacity (parameter ``WORDS``).
    """

    def __init__(self, handle: Any, *, base: int = 0, words: int = 1 << 21) -> None:
        self._h = handle
        self._base = base
        self._words = words
        self._dir = Path(os.environ.get("KOHAKU_RUN_DIR", "."))

    async def _strobe(self, name: str) -> None:
        from cocotb.triggers import Timer

        signal = getattr(self._h, name)
        signal.value = 1
        await Timer(1, unit="ps")
        signal.value = 0
        await Timer(1, unit="ps")

    def _index(self, addr: int, n: int) -> int:
        first = (addr - self._base) // _WORD
        if addr % _WORD or n % _WORD or first < 0 or first + n // _WORD > self._words:
            raise ValueError(
                f"DRAM backdoor {addr:#x}+{n:#x}: whole words inside {self._base:#x}+{self._words * _WORD:#x}"
            )
        return first

    async def load(self, addr: int, data: bytes | np.ndarray) -> None:
        """Store ``data`` at byte address ``addr`` in no simulated clock cycle."""
        raw = bytes(data)
        first = self._index(addr, len(raw))
        (self._dir / "dram_in.hex").write_bytes(b"@%x\n" % first + format_words(raw))
        await self._strobe("bd_load")

    async def read(self, addr: int, n: int) -> bytes:
        """The ``n`` bytes at ``addr``."""
        first = self._index(addr, n)
        if n == 0:
            return b""
        self._h.bd_first.value = first
        self._h.bd_count.value = n // _WORD
        await self._strobe("bd_dump")
        return parse_words((self._dir / "dram_out.hex").read_bytes(), n // _WORD)

    async def peek(self, addr: int) -> int:
        """One word as an integer."""
        self._h.bd_first.value = self._index(addr, _WORD)
        await self._strobe("bd_peek")
        return int(self._h.bd_data.value)

    async def poke(self, addr: int, word: int) -> None:
        """Store one word given as an integer."""
        self._h.bd_first.value = self._index(addr, _WORD)
        self._h.bd_data.value = word
        await self._strobe("bd_poke")

    def configure(self, **controls: int) -> None:
        """Set controls by name without ``cfg_`` (``lat_min``, ``r_pct``, ``err_lo``, ...).

        Raises:
            KeyError: no such control.
        """
        for name, value in controls.items():
            if f"cfg_{name}" not in _CONTROLS:
                raise KeyError(f"axi_dram_model has no control {name!r}; it has: {', '.join(_CONTROLS)}")
            getattr(self._h, f"cfg_{name}").value = value

    async def reseed(self, value: int) -> None:
        """Restart the model's random sequence."""
        self.configure(seed=value & 0xFFFFFFFF)
        await self._strobe("cfg_reseed")

    def count(self, name: str) -> int:
        """An observer: ``rd_beats``, ``wr_bursts``, ``rd_out_max``, ``err_code``, ..."""
        return int(getattr(self._h, name).value)

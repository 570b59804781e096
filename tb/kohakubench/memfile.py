# SPDX-License-Identifier: Apache-2.0
"""Memory files between numpy and Verilog players: one word a line, hexadecimal, MSB first.

Arrays are moved as little-endian bytes (byte 0 = bits [7:0] of the word), whole files at a time, so that a
million stimulus words cost well under a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def write(path: str | Path, words: Any) -> None:
    """Write ``words``, uint8 of shape (n, bytes per word), for ``$readmemh``."""
    data = np.ascontiguousarray(np.asarray(words, dtype=np.uint8)[:, ::-1])
    Path(path).write_text(data.tobytes().hex("\n", data.shape[1]) + "\n", encoding="ascii")


def read(path: str | Path, width: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Words of a ``$writememh`` file as uint8 of shape (n, width); ``width`` in bytes.

    Raises:
        ValueError: the file holds something else than whole words (an unknown bit, for example).
    """
    text = Path(path).read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if line and line[0] not in "/@"]
    raw = np.frombuffer(bytes.fromhex("".join(lines)), dtype=np.uint8)
    return raw.reshape(-1, width)[:, ::-1]


def pack(total_bits: int, *fields: tuple[Any, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    """Pack integer columns ``(values, bits)``, lowest field first, into words of ``total_bits``.

    Scalars repeat; all other columns have the same length.

    Returns uint8 (n, total_bits / 8). Whole-byte fields on byte boundaries take a fast path.

    Raises:
        ValueError: a value does not fit its field.
    """
    n = next((np.size(v) for v, _ in fields if np.ndim(v)), 1)
    columns = [(np.broadcast_to(np.asarray(v, dtype=np.uint64), (n,)), width) for v, width in fields]
    for values, width in columns:
        if width < 64 and (values >> np.uint64(width)).any():
            raise ValueError(f"a value needs more than its {width} bits")
    if all(width % 8 == 0 for _, width in columns):
        words = np.zeros((n, total_bits // 8), dtype=np.uint8)
        at = 0
        for values, width in columns:
            for byte in range(width // 8):
                words[:, at + byte] = (values >> np.uint64(8 * byte)) & np.uint64(0xFF)
            at += width // 8
        return words
    bits = np.zeros((n, total_bits), dtype=np.uint8)
    at = 0
    for values, width in columns:
        shifts = np.arange(width, dtype=np.uint64)
        bits[:, at : at + width] = (values[:, None] >> shifts) & np.uint64(1)
        at += width
    return np.packbits(bits, axis=1, bitorder="little")


def field(words: Any, low: int, width: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """Field of ``width`` <= 57 bits at bit ``low`` of every word."""
    first = low // 8
    take = np.asarray(words, dtype=np.uint64)[:, first : first + 8]
    shifts = np.arange(take.shape[1], dtype=np.uint64) * np.uint64(8)
    value = (take << shifts).sum(axis=1, dtype=np.uint64) >> np.uint64(low % 8)
    result: np.ndarray[tuple[int, ...], np.dtype[np.uint64]] = value & np.uint64((1 << width) - 1)
    return result

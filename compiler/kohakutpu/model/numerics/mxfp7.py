# SPDX-License-Identifier: Apache-2.0
"""MXFP7 operands: quantiser, packed words and the operand L1 entry (docs/spec/numerics.md section 3).

An *entry* is 4 lanes x 32 K. Its elements are int8 of shape (..., 4, 32) indexed [lane, k], its scales uint8
of shape (..., 4). Its memory form is 4 words = 128 bytes (lowest address first), its L1 form 928 bits.
"""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from .bits import I64, U8, IntArray
from .events import NumericEvents

LAYER = "leaf"

LANES = 4
BLOCK_K = 32
WORD_BYTES = 32
ENTRY_WORDS = 4
ENTRY_BYTES = ENTRY_WORDS * WORD_BYTES
SOURCE_BYTES = LANES * BLOCK_K * 2
L1_BITS = 928
SCALE_BIAS = 20
ZERO_SCALE = 0xA0
"""Scale field of an all-zero lane."""

I8 = npt.NDArray[np.int8]

_RECIPROCAL: I64 = np.array([4096, 3641, 3277, 2979, 2731, 2520, 2341, 2185], dtype=np.int64)
"""Normative table R of section 3.2, index m8 - 8. Entry 13 is one below the nearest integer."""


class Layout(enum.IntEnum):
    """Slot assignment of an entry: a lane is a row of A or a column of B."""

    A = 0
    B = 1


def _magnitude(h: I64) -> tuple[I64, I64]:
    """`dec` of section 3.2: (e, sig) with value = sig * 2**(e-25), exponent 31 an ordinary binade."""
    e = (h >> 10) & 31
    f = h & 0x3FF
    return np.maximum(e, 1), np.where(e == 0, f, f + 1024)


def _scale(peak: I64) -> tuple[I64, I64]:
    """(es, m8) of the lane peak `h[14:0]`, m8 = 8..15."""
    e, s = _magnitude(peak)
    zero = s == 0
    # renormalise a subnormal peak: shift until the significand has 11 bits
    lead = np.maximum(0, 10 - (np.frexp(s.astype(np.float64))[1].astype(np.int64) - 1))
    lead = np.where(zero, 0, lead)
    s = s << lead
    e = e - lead
    m8 = -(-s // 126)
    es = e - 21 + (m8 >= 16)
    m8 = np.where(m8 >= 16, np.where(m8 == 16, 8, 9), m8)
    es = np.clip(es, -SCALE_BIAS, 11)
    return np.where(zero, 0, es), np.where(zero, 8, m8)


def quantise(fp16: IntArray, events: NumericEvents | None = None) -> tuple[I8, U8]:
    """Quantise lanes of 32 FP16 codes to MXFP7 (section 3.2).

    fp16: unsigned integers 0..65535 (FP16 bit patterns), shape (..., 32); the last axis is K.
    Returns (q, scale): int8 in -63..63 of the same shape, uint8 scale fields {E5, M3} of shape (...).
    Raises ValueError if the last axis is not 32. Event: Q_SPECIAL per input with exponent field 31.
    """
    if fp16.shape[-1] != BLOCK_K:
        raise ValueError(f"quantise: last axis has {fp16.shape[-1]} elements, a lane has {BLOCK_K}")
    code = fp16.astype(np.int64)
    h = code & 0x7FFF
    if events is not None:
        events.q_special += int(np.count_nonzero(h >= 0x7C00))
    es, m8 = _scale(h.max(axis=-1))
    e, s = _magnitude(h)
    t = 21 + es[..., None] - e
    p = s * _RECIPROCAL[m8 - 8][..., None]
    shift = np.clip(t, 0, 8)
    mag = np.minimum((p + (np.int64(1) << (shift + 15))) >> (shift + 16), 63)
    mag = np.where((s == 0) | (t >= 8), 0, np.where(t < 0, 63, mag))
    q = np.where(code & 0x8000, -mag, mag).astype(np.int8)
    return q, (((es + SCALE_BIAS) << 3) | (m8 - 8)).astype(np.uint8)


def dequantise(q: IntArray, scale: IntArray) -> npt.NDArray[np.float64]:
    """Exact values q * 2**(E-20) * (1 + M/8) as float64 (section 3.1).

    q: integers (..., 32); scale: fields 00h..FFh of shape (...).
    """
    field = scale.astype(np.int64)
    step = np.ldexp((8 + (field & 7)) / 8.0, ((field >> 3) - SCALE_BIAS).astype(np.int32))
    return np.asarray(q.astype(np.float64) * step[..., None], dtype=np.float64)


def _slot_order(q: IntArray, layout: Layout) -> IntArray:
    """(..., 4, 32) elements -> (..., 4 words, 32 slots) in ascending slot number."""
    lead = q.shape[:-2]
    by_word = q.reshape(*lead, LANES, ENTRY_WORDS, 8)
    axes = (-2, -3, -1) if layout == Layout.A else (-2, -1, -3)
    n = len(lead)
    order = [*range(n), *(n + 3 + a for a in axes)]
    return by_word.transpose(order).reshape(*lead, ENTRY_WORDS, 32)


def _from_slots(slots: IntArray, layout: Layout) -> IntArray:
    """Inverse of `_slot_order`."""
    lead = slots.shape[:-2]
    n = len(lead)
    shape = (ENTRY_WORDS, LANES, 8) if layout == Layout.A else (ENTRY_WORDS, 8, LANES)
    axes = (1, 0, 2) if layout == Layout.A else (2, 0, 1)
    split = slots.reshape(*lead, *shape)
    return split.transpose([*range(n), *(n + a for a in axes)]).reshape(*lead, LANES, BLOCK_K)


def pack_words(q: IntArray, scale: IntArray, layout: Layout) -> U8:
    """Entries -> memory words (section 3.3).

    q: integers -64..63, (..., 4, 32); scale: 0..255, (..., 4). Returns uint8 (..., 4, 32): word w,
    byte n = word[8n+7 : 8n].
    """
    slots = (_slot_order(q, layout).astype(np.int64) & 0x7F).astype(np.uint8)
    bits = np.unpackbits(slots[..., None], axis=-1)[..., 1:]  # seven bits a slot, msb first
    body = np.packbits(bits.reshape(*slots.shape[:-1], 224), axis=-1)  # bit 255 downwards
    scales = np.broadcast_to(scale.astype(np.uint8)[..., None, :], (*body.shape[:-1], LANES))
    return np.ascontiguousarray(np.concatenate([body, scales], axis=-1)[..., ::-1])


def unpack_words(words: U8, layout: Layout) -> tuple[I8, U8]:
    """Memory words -> (q int8 (..., 4, 32), scale uint8 (..., 4)); scales are taken from word 0.

    words: uint8 (..., 4, 32) as returned by `pack_words`.
    """
    top_down = words[..., ::-1]
    bits = np.unpackbits(top_down[..., :28], axis=-1).reshape(*words.shape[:-1], 32, 7)
    # a leading copy of the sign makes eight bits of two's complement
    slots = np.packbits(np.concatenate([bits[..., :1], bits], axis=-1), axis=-1)[..., 0]
    return _from_slots(slots.view(np.int8), layout), top_down[..., 0, 28:].copy()


def pack_l1(q: IntArray, scale: IntArray, layout: Layout) -> U8:
    """Entries -> operand L1 form, 928 bits as 116 little-endian bytes (section 3.4).

    q: integers (..., 4, 32); scale: (..., 4). Returns uint8 (..., 116).
    """
    elems = q if layout == Layout.A else np.swapaxes(q, -1, -2)
    flat = (elems.reshape(*q.shape[:-2], 128).astype(np.int64) & 0x7F).astype(np.uint8)
    bits = np.unpackbits(flat[..., None], axis=-1, bitorder="little")[..., :7]
    body = np.packbits(bits.reshape(*flat.shape[:-1], 896), axis=-1, bitorder="little")
    return np.concatenate([body, scale.astype(np.uint8)], axis=-1)


def unpack_l1(entry: U8, layout: Layout) -> tuple[I8, U8]:
    """Inverse of `pack_l1`: uint8 (..., 116) -> (q int8 (..., 4, 32), scale uint8 (..., 4))."""
    lead = entry.shape[:-1]
    bits = np.unpackbits(entry[..., :112], axis=-1, bitorder="little").reshape(*lead, 128, 7)
    flat = np.packbits(np.concatenate([bits, bits[..., -1:]], axis=-1), axis=-1, bitorder="little")
    elems = flat[..., 0].view(np.int8)
    if layout == Layout.A:
        q = elems.reshape(*lead, LANES, BLOCK_K)
    else:
        q = np.swapaxes(elems.reshape(*lead, BLOCK_K, LANES), -1, -2)
    return np.ascontiguousarray(q), entry[..., 112:].copy()


def quantise_entries(source: U8, layout: Layout, events: NumericEvents | None = None) -> U8:
    """FP16 source entries -> packed entries, the whole of sections 3.2 and 3.3.

    source: uint8 (..., 256), 4 lanes x 32 little-endian FP16, lane-major. Returns uint8 (..., 128).
    """
    codes = np.ascontiguousarray(source).view("<u2").reshape(*source.shape[:-1], LANES, BLOCK_K)
    q, scale = quantise(codes, events)
    return pack_words(q, scale, layout).reshape(*source.shape[:-1], ENTRY_BYTES)

# SPDX-License-Identifier: Apache-2.0
"""What kernels of the library refuse, each with its fix (docs/spec/kernels.md 4 and 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kohakutpu.errors import TraceError
from kohakutpu.kernels import library as lib
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.lower import lower

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"block": 48}, "block = 48; a key block is 32, 64, 96 or 128 keys"),
        ({"block": 160}, "block = 160; a key block is 32, 64, 96 or 128"),
        ({"qblock": 6}, "qblock = 6; a query block is a multiple of 4 rows"),
        ({"causal": True}, "causal with qblock = None; the diagonal is square, name qblock = block = 64"),
        ({"causal": True, "qblock": 32}, "causal with qblock = 32"),
        ({"causal": True, "qblock": 64, "groups": 2}, "causal with groups = 2: .* pass k and v per head"),
        ({"causal": True, "qblock": 64, "keys": 77}, "causal with keys = 77; give whole blocks of 64"),
        ({"keys": 0}, "keys = 0; a row needs at least one key"),
        ({"keys": 77, "qblock": 32}, "keys = 77 with qblock = 32; keys set it to block = 64, leave it out"),
        ({"groups": 1.5}, "groups = 1.5; give the query heads"),
        ({"groups": 0}, "groups = 0; give the query heads that share a KV head"),
    ],
)
def test_knobs_of_attention(knobs: dict[str, Any], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        lib.flash_attention.trace(**knobs)


@pytest.mark.parametrize(
    ("shapes", "knobs"),
    [
        ({"q": (1, 64, 64), "k": (1, 100, 64), "v": (1, 64, 100)}, {}),
        ({"q": (1, 64, 64), "k": (1, 128, 64), "v": (1, 96, 128)}, {}),
        ({"q": (1, 96, 64), "k": (1, 128, 64), "v": (1, 64, 128)}, {"qblock": 64}),
        ({"q": (1, 64, 64), "k": (1, 64, 64), "v": (1, 64, 64)}, {"keys": 77}),
        ({"q": (1, 64, 64), "k": (1, 96, 64), "v": (1, 64, 96)}, {"qblock": 64, "causal": True}),
        ({"q": (1, 128, 64), "k": (1, 64, 64), "v": (1, 64, 64)}, {"qblock": 64, "causal": True}),
    ],
    ids=["keys", "values", "queries", "more keys than there are", "causal, more keys", "causal, more queries"],
)
def test_extents_that_are_no_whole_blocks(shapes: dict[str, tuple[int, ...]], knobs: dict[str, Any]) -> None:
    """Nothing is dropped or read past the end; the lowering refuses."""
    with pytest.raises(TraceError) as refused:
        lower(lib.flash_attention.trace(**knobs).extents(shapes))
    assert "flash_attention" in str(refused.value)


@pytest.mark.parametrize("family", [lib.softmax, lib.layernorm_wide, lib.attn_out, lambda n: lib.softmax_keys(7, n)])
def test_a_float_is_no_size(family: Callable[[Any], Kernel]) -> None:
    """64.0 equals 64, but it is refused before and after the kernel of 64 was made; an integer of numpy is one."""
    for _ in range(2):
        with pytest.raises(TraceError, match=r"64\.0; give a whole number"):
            family(64.0)
        family(64)
    assert family(np.int64(64)).ports.keys() == family(64).ports.keys()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lib.layernorm(640), r"rows of 640 elements; .* layernorm_wide\(640\)"),
        (lambda: lib.softmax(77), "rows of 77 elements; .* pad the row to 80"),
        (lambda: lib.rmsnorm(0), "rows of 0 elements"),
        (lambda: lib.layernorm_wide(650), "650 elements is no whole number of sub-rows of 16; pad it to 656"),
        (lambda: lib.group_norm_wide(20_488), "20488 elements is no whole number of sub-rows"),
        (lambda: lib.softmax_wide(65_536), "rows of 65536 elements; a sum is held in FP16, at most 65504 fit"),
        (lambda: lib.softmax_keys(0), "0 keys in rows of 128; give an integer from 1 to 128"),
        (lambda: lib.softmax_keys(7.5, 64), "7.5 keys in rows of 64; give an integer"),
        (lambda: lib.softmax_keys(129), "129 keys in rows of 128"),
        (lambda: lib.softmax_keys_wide(641, 640), "641 keys in rows of 640"),
        (lambda: lib.heads_of(np.zeros((640, 32)), 7), "640 rows are no 7 heads of one width"),
        (lambda: lib.stack_groups(np.zeros((6, 8, 32)), 4), "6 query heads are no groups of 4"),
        (lambda: lib.split(77), "77 elements is no whole number of sub-rows of 128; pad it to 128"),
        (lambda: lib.part_for(0), "a group of 0 elements"),
        (lambda: lib.attn_out(0), "0 heads; give at least 1"),
        (lambda: lib.mlp("swish"), "activation 'swish' is unknown; known: .*silu"),
        (lambda: lib.geglu.trace(form="erf"), "form 'erf' of GELU is unknown; known: erf_tanh, sigmoid"),
        (lib.linear_scale.trace, "no scale; name the factor"),
    ],
)
def test_sizes_and_names(make: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        make()


def test_rows_of_another_width_than_the_kernel() -> None:
    """The width is part of the kernel, and an operand of another one does not slip through."""
    with pytest.raises(TraceError, match="x has 64 where 128"):
        lib.softmax(128).trace().extents({"x": (4, 64)})
    with pytest.raises(TraceError, match="w has 640 where 1280"):
        lib.layernorm_wide(1280).trace().extents({"x": (4, 1280), "w": (640,), "b": (1280,)})
    with pytest.raises(TraceError):
        lower(lib.layernorm_wide(1280).trace().extents({"x": (3, 640), "w": (1280,), "b": (1280,)}))
    with pytest.raises(TraceError):
        lower(lib.group_norm_wide(256).trace().extents({"x": (4, 256), "w": (2, 256), "b": (4, 256)}))


def test_heads_that_do_not_divide_a_weight() -> None:
    with pytest.raises(TraceError, match="w has 100 where"):
        lib.attn_out(4).trace().extents({"o": (64, 32), "w": (64, 100), "r": (16, 64), "b": (64,)})


def test_parts_hold_whole_groups() -> None:
    assert [lib.part_for(g) for g in (1, 128, 640, 5000, 20_480)] == [8192, 8192, 7680, 5000, 20_480]
    assert lib.part_for(640, 100) == 640

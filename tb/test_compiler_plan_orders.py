# SPDX-License-Identifier: Apache-2.0
"""Byte orders, conversions, parts and epilogues of a plan (docs/spec/compiler.md 6.1, 7.1, 12)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakubench.plans import expected, run_plan
from kohakubench.programs import spec
from kohakutpu.chain import ChainBuilder
from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.schedule import (
    Contraction,
    Elementwise,
    Request,
    Tiling,
    plan,
)
from kohakutpu.schedule.requantise import ToRows
from kohakutpu.views import Spread, Window
from plan_requests import BOTH, CORES, MOVER, batched, chain, check, folded, given, half, sound, value

pytestmark = pytest.mark.unit

# -- conversions --


@BOTH
@pytest.mark.parametrize("name", ["softmax", "centre"])
def test_a_fold_over_a_product(text: dict[str, Any], name: str) -> None:
    """Rows of a product are brought into rows once, by the mover or by the cores, and quantised for the next one."""
    requests, values = folded(name)
    schedule = check(requests, values, text)
    assert schedule.buffers["z:flat"].layout == "flat"
    roles = [b.role for b in schedule.bands]
    moved = [c for c in schedule.conversions if isinstance(c, ToRows)]
    assert (len(moved), roles.count("relayout")) == ((1, 0) if text is MOVER else (0, 1))
    quantised = [c for c in schedule.conversions if not isinstance(c, ToRows)]
    assert [(c.value, c.rows) for c in quantised] == [("y", "")]


def test_engines_by_name() -> None:
    """convert names the engine; the bits are the same, and a machine without one says so."""
    requests, values = folded("softmax")
    _, one = run_plan(requests, values, MOVER, convert="mover")
    schedule, two = run_plan(requests, values, MOVER, convert="cores")
    assert [b.role for b in schedule.bands].count("relayout") == 1
    assert np.array_equal(one["o"], two["o"])
    with pytest.raises(
        CompileError, match=r"z is read in rows; .* machine hand2 does not have \(feature xform_granule"
    ):
        plan(requests, spec(CORES), convert="mover")
    with pytest.raises(CompileError, match="convert = 'host'; it is one of auto, mover, cores"):
        plan(requests, spec(CORES), convert="host")


@BOTH
def test_rows_are_made_once(text: dict[str, Any]) -> None:
    """Two passes that fold one product read the same rows; a third in tiles keeps the tiles."""
    z = value("z", (16, 64))
    c = Contraction(value("x", (16, 64), "in"), value("w", (64, 64), "in"), z)
    outs = [value(n, (16, 64), "out") for n in "abd"]
    requests: list[Request] = [
        c,
        Elementwise(chain("softmax"), (z,), (outs[0],)),
        Elementwise(chain("centre"), (z,), (outs[1],)),
        Elementwise(chain("neg"), (z,), (outs[2],)),
    ]
    schedule = check(requests, given(c), text)
    assert [n for n in schedule.buffers if n.startswith("z")] == ["z", "z:flat"]
    assert schedule.buffers["d"].layout.startswith("tile:")
    relayouts = [b for b in schedule.bands if b.role == "relayout"]
    assert len(relayouts) + len(schedule.conversions) == 1


@BOTH
def test_mixed_orders_meet_in_rows(text: dict[str, Any]) -> None:
    """A sum of a product and of rows: the product is converted, the rows stay (residual after a layernorm)."""
    x, n, z, y = (value(v, (32, 64), r) for v, r in (("x", "in"), ("n", "temp"), ("z", "temp"), ("y", "out")))
    c = Contraction(n, value("w", (64, 64), "in"), z)
    requests: list[Request] = [Elementwise(chain("centre"), (x,), (n,)), c, Elementwise(chain("add"), (z, x), (y,))]
    schedule = check(requests, {**given(c), "x": half(32, 64)}, text)
    assert schedule.buffers["y"].layout == "flat"


@BOTH
def test_two_tilings_meet_in_rows(text: dict[str, Any]) -> None:
    """Results in different tiles have no common order but rows."""
    z, u, y = value("z", (32, 64)), value("u", (32, 64)), value("y", (32, 64), "out")
    one = Contraction(value("x", (32, 64), "in"), value("w", (64, 64), "in"), z, Tiling(4, 4, 1))
    two = Contraction(value("p", (32, 32), "in"), value("q", (64, 32), "in"), u, Tiling(2, 8, 1))
    schedule = check([one, two, Elementwise(chain("add"), (u, z), (y,))], given(one, two), text)
    assert {"u:flat", "z:flat"} <= set(schedule.buffers)
    assert "no common tile order" in schedule.relaxed[0]


PADDED = [(20, 48, 2), (5, 80, 2), (33, 16, 1), (8, 64, 4)]


@BOTH
@pytest.mark.parametrize(("rows", "cols", "nk"), PADDED)
def test_padding_the_value_does_not_hold(text: dict[str, Any], rows: int, cols: int, nk: int) -> None:
    """Rows and K of an operand in plain rows, padded through a scratch of zeros."""
    x, h, c = value("x", (rows, cols), "in"), value("h", (rows, cols)), value("c", (rows, 12), "out")
    last = Contraction(h, value("w", (12, cols), "in"), c, Tiling(2, 1, nk))
    requests: list[Request] = [Elementwise(chain("neg"), (x,), (h,)), last]
    schedule = check(requests, {**given(last), "x": half(rows, cols)}, text)
    (conversion,) = schedule.conversions
    assert not isinstance(conversion, ToRows)
    padded = rows + -rows % 8, cols + -cols % (32 * nk)
    assert conversion.rows == ("" if padded == (rows, cols) else f"h:rows:{padded[0]}x{padded[1]}")


@BOTH
def test_padding_of_tiles_that_is_not_zero(text: dict[str, Any]) -> None:
    """Columns behind the result of an epilogue are infinite; they are cleared before they are quantised."""
    z, h = value("z", (20, 48)), value("h", (20, 48))
    b = ChainBuilder()
    shifted = b.chain([b.op("recip", b.operand(0))])
    first = Contraction(value("x", (20, 64), "in"), value("w", (48, 64), "in"), z, Tiling(2, 8, 1))
    last = Contraction(h, value("v", (12, 48), "in"), value("c", (20, 12), "out"), Tiling(4, 1, 2))
    check([first, Elementwise(shifted, (z,), (h,)), last], given(first, last), text)


@BOTH
def test_rows_of_tiles_wider_than_the_value(text: dict[str, Any]) -> None:
    """A fold over a product whose tiles reach beyond its columns."""
    z, y = value("z", (20, 48)), value("y", (20, 48), "out")
    first = Contraction(value("x", (20, 64), "in"), value("w", (48, 64), "in"), z, Tiling(2, 8, 1))
    check([first, Elementwise(chain("softmax"), (z,), (y,))], given(first), text)


@BOTH
@pytest.mark.parametrize("role", ["out", "temp"])
def test_products_as_parts(text: dict[str, Any], role: str) -> None:
    """Two products side by side in the rows of one buffer; then a pass or nothing reads it."""
    cat = value("cat", (32, 96), role)
    requests: list[Request] = []
    for name, col, width in (("l", 0, 64), ("r", 64, 32)):
        part = value(name, (32, width), of="cat", window=Window(1, 0, 32, col, width))
        requests.append(Contraction(value("x", (32, 64), "in"), value(f"w{name}", (width, 64), "in"), part))
    values = given(*requests)  # type: ignore[arg-type]
    if role == "temp":
        requests.append(Elementwise(chain("neg"), (cat,), (value("y", (32, 96), "out"),)))
        check(requests, values, text)
        return
    _, got = run_plan(requests, values, text, buffers=[cat])
    sides = []
    for r in requests:
        assert isinstance(r, Contraction)
        alone = Contraction(r.a, r.b, value(r.c.name, r.c.shape, "out"))
        sides.append(expected([alone], values)[r.c.name].view(np.uint16))
    assert np.array_equal(got["cat"], np.concatenate(sides, axis=1))


@BOTH
@pytest.mark.parametrize(("col", "width", "cols"), [(8, 32, 64), (0, 24, 64), (0, 32, 56)])
def test_products_as_parts_of_no_whole_words(text: dict[str, Any], col: int, width: int, cols: int) -> None:
    """Refused by the plan, with part and buffer, whichever engine would bring it into rows."""
    part = value("p", (32, width), "out", of="cat", window=Window(1, 0, 32, col, width))
    c = Contraction(value("x", (32, 64), "in"), value("w", (width, 64), "in"), part)
    words = rf"p is the part \[0:32, {col}:{col + width}\] of cat 32x{cols}; .* whole words of 16 elements, pad the col"
    with pytest.raises(CompileError, match=words):
        plan([c], spec(text), buffers=[value("cat", (32, cols), "out")])


@BOTH
def test_blocks_as_parts(text: dict[str, Any]) -> None:
    """Every block of a batch lands in its own block of the buffer, other rows keep another product."""
    cat = value("cat", (48, 32))
    upper = value("u", (16, 32), of="cat", window=Window(2, 0, 8, 0, 32))
    lower = value("l", (32, 32), of="cat", window=Window(2, 8, 16, 0, 32))
    one = Contraction(value("a", (16, 32), "in"), value("b", (32, 32), "in"), upper)
    two = Contraction(value("p", (32, 32), "in"), value("q", (32, 32), "in"), lower)
    last = Elementwise(chain("neg"), (cat,), (value("y", (48, 32), "out"),))
    check([one, two, last], given(one, two), text)


@BOTH
def test_passes_with_parts_and_periodic_reads(text: dict[str, Any]) -> None:
    """A pass repeats every row of a product twice and writes the columns of a buffer that another product shares."""
    cat, z = value("cat", (32, 64)), value("z", (16, 32))
    left = value("l", (32, 32), of="cat", window=Window(1, 0, 32, 0, 32))
    right = value("r", (32, 32), of="cat", window=Window(1, 0, 32, 32, 32))
    one = Contraction(value("a", (16, 64), "in"), value("b", (32, 64), "in"), z)
    two = Contraction(value("p", (32, 32), "in"), value("q", (32, 32), "in"), right)
    twice = Elementwise(chain("neg"), (z,), (left,), (Spread(0, 32, 2, 32),))
    y = value("y", (32, 64), "out")
    requests: list[Request] = [one, twice, two, Elementwise(chain("neg"), (cat,), (y,))]
    values = given(one, two)
    schedule, got = run_plan(requests, values, text)
    sound(schedule)
    outs = [Contraction(c.a, c.b, value(n, c.c.shape, "out")) for c, n in ((one, "one"), (two, "two"))]
    parts = expected(outs, values)
    want = -np.concatenate([-np.repeat(parts["one"], 2, axis=0), parts["two"]], axis=1)
    assert np.array_equal(got["y"].view(np.float16), want)
    assert schedule.buffers["cat"].layout == "flat"


# -- epilogues --


def test_epilogue_of_a_batch_on_the_arriving_tile() -> None:
    """Blocks of a batch are delivered like tiles of one product: fused and staged bits are equal."""
    b = batched(2, 8, 16, 64)
    z, y = value("z", (16, 16)), value("y", (16, 16), "out")
    c = Contraction(b.a, b.b, z, Tiling(2, 4, 1), b.a_window, b.b_window, batch=2)
    requests: list[Request] = [c, Elementwise(chain("neg"), (z,), (y,))]
    for fuse in ("require", "never"):
        schedule = check(requests, given(c), MOVER, fuse=fuse)
        assert ("z" in schedule.buffers) == (fuse == "never")


def test_epilogue_with_a_stored_operand_in_the_same_tiles() -> None:
    """A side operand that an earlier pass left in tiles of the same grid takes part in a fused epilogue."""
    t = Tiling(4, 4, 1)
    z, u, v, y = (value(n, (16, 16)) for n in "zuvy")
    y = value("y", (16, 16), "out")
    one = Contraction(value("a", (16, 32), "in"), value("b", (16, 32), "in"), z, t)
    two = Contraction(value("p", (16, 64), "in"), value("q", (16, 64), "in"), v, t)
    requests: list[Request] = [
        one, Elementwise(chain("neg"), (z,), (u,)), two, Elementwise(chain("add"), (v, u), (y,)),
    ]  # fmt: skip
    schedule = check(requests, given(one, two), MOVER, fuse="require")
    assert [n for n in schedule.buffers if n in "zuvy"] == ["u", "y"]


def test_epilogue_that_meets_rows() -> None:
    """No common tile order: recorded, and refused where the author requires the arriving tile."""
    x, n, z, y = (value(v, (32, 64), r) for v, r in (("x", "in"), ("n", "temp"), ("z", "temp"), ("y", "out")))
    c = Contraction(n, value("w", (64, 64), "in"), z)
    requests: list[Request] = [Elementwise(chain("centre"), (x,), (n,)), c, Elementwise(chain("add"), (z, x), (y,))]
    (reason,) = plan(requests, spec(MOVER)).relaxed
    assert "epilogue into y: its operands have no common tile order" in reason
    assert plan(requests, spec(MOVER), fuse="never").relaxed == ()
    with pytest.raises(CannotFuse, match="no common tile order"):
        plan(requests, spec(MOVER), fuse="require")


def test_product_of_one_row_for_every_row() -> None:
    """A pass that adds the only row of a product to every row reads it in rows."""
    z, y = value("z", (1, 64)), value("y", (16, 64), "out")
    c = Contraction(value("a", (1, 32), "in"), value("b", (64, 32), "in"), z)
    e = Elementwise(chain("add"), (value("x", (16, 64), "in"), z), (y,))
    schedule = check([c, e], {**given(c), "x": half(16, 64)}, MOVER)
    assert schedule.buffers["y"].layout == "flat"


def test_products_of_different_depth_in_one_pass() -> None:
    """Two products of one grid and different K: a band each, one pass in their order."""
    z, u = value("z", (16, 16)), value("u", (16, 16))
    one = Contraction(value("a", (16, 32), "in"), value("b", (16, 32), "in"), z)
    two = Contraction(value("p", (16, 96), "in"), value("q", (16, 96), "in"), u)
    e = Elementwise(chain("add"), (z, u), (value("y", (16, 16), "out"),))
    schedule = check([one, two, e], given(one, two), MOVER)
    assert [b.engine for b in schedule.bands] == ["MG", "MG", "VC"]
    assert "do not share M, N and K" in schedule.relaxed[0]

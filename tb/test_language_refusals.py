# SPDX-License-Identifier: Apache-2.0
"""Bodies of the kernel language that are refused, each with its fix (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    adjacent,
    dims,
    kernel,
    less,
    loop,
    region,
    row_sum,
    table,
    temp,
    tile,
    units,
    where,
)

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")
Body = Callable[..., None]


def product(body: Callable[..., None]) -> Kernel:
    """A kernel whose body gets the ports of a matrix product and its tiling knobs."""

    def bad(
        a: Any = In(..., M, K), b: Any = In(N, K), c: Any = Out(..., M, N), *, gm: Any = 2, gn: Any = 2, nk: Any = 1
    ) -> None:
        body(a, b, c, gm, gn, nk)

    return kernel(bad)


def vector(body: Callable[..., None]) -> Kernel:
    """A kernel whose body gets two operands and a result of one shape."""

    def bad(x: Any = In(M, N), z: Any = In(M, N), y: Any = Out(M, N), *, part: Any = 256) -> None:
        body(x, z, y, part)

    return kernel(bad)


def early_break(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a[i, 0] @ b[j, 0]
        c[i, j] <<= acc
        break


def branch_on_extent(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    if M > 64:
        c <<= a


def branch_on_index(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        if i:
            c[i, j] <<= a[i, j]


def plain_for(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, _j in units(a.tiles(gm), b.tiles(gn)):
        for k in a.chunks32(nk):
            a[i, k]


def python_range(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i in range(a.tiles(gm)):
        c[i, i] <<= a[i, i]


def bare(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    c <<= a @ b


def bare_right(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a[i, j] @ b


def no_grid(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    tile(gm, gn, nk)


def acc_operand(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for _i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc @ b[j, 0]


def rebound(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a[i, 0] @ b[j, 0]
        acc = acc * 2  # type: ignore[assignment]
        acc += a[i, 1] @ b[j, 1]


def add_value(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += c[i, j]


def product_as_value(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        c[i, j] <<= a[i, 0] @ b[j, 0]


def nested_loops(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        for _s in loop(2):
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc


def one_region(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        r = region(gm, nk)
        r <<= a[i, 0]
        acc += r @ r
        c[i, j] <<= acc


def region_sides(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        r = region(gm, nk)
        r <<= a[i, 0]
        acc += r @ b[j, 0]
        acc += a[i, 0] @ r
        c[i, j] <<= acc


def region_blocks(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        r = region(gm, 2)
        r <<= a[i, 0]
        acc += r @ b[j, 0]


def region_empty(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for _i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += region(gm, nk) @ b[j, 0]


def knob_zero(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for _i, _j in units(a.tiles(gm), b.tiles(gn)):
        tile(gm, 0, nk)


def unswept(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        c[i, j] <<= tile(gm, gn, nk)


def view_in_contraction(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a.as_rows(4)[i, 0] @ b[j, 0]


def swept_where_written(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    t = temp(M, N)
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a[i, 0] @ b[j, 0]
        t[i, j] <<= acc
        other = tile(gm, gn, nk)
        other += t[i, 0] @ b[j, 0]
        c[i, j] <<= other


def route_without_split(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for _i, _j in units(a.tiles(gm), b.tiles(gn)):
        tile(gm, gn, nk, route="peer")


def periodic_in_contraction(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a.repeated()[i, 0] @ b[j, 0]


def plain_assignment(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        c[i, j] = a[i, j]


def fold_in_epilogue(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        acc += a[i, 0] @ b[j, 0]
        c[i, j] <<= row_sum(acc)


def epilogue(read: Any) -> Kernel:
    """A body whose epilogue adds ``read(r, bias, i, j)``, r of the result's shape, bias one value a column."""

    def wrong_operand(a=In(M, K), b=In(N, K), r=In(M, N), bias=In(N), c=Out(M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            acc += a[i, 0] @ b[j, 0]
            c[i, j] <<= acc + read(r, bias, i, j)

    return kernel(wrong_operand)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda r, bias, i, j: bias[i], r"reads bias\[i0\], another part than \[i1\]"),
        (lambda r, bias, i, j: r[j, i], r"reads r\[i1, i0\], another part than \[i0, i1\]"),
        (lambda r, bias, i, j: bias, r"reads all of bias in every instance; index it: bias\[i1\]"),
        (lambda r, bias, i, j: r, r"reads all of r in every instance; index it: r\[i0, i1\]"),
    ],
)
def test_operands_of_an_epilogue_belong_to_its_tile(read: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        epilogue(read).trace()
    text = epilogue(lambda r, bias, i, j: r[i, j] + bias[j])
    with pytest.raises(TraceError, match="never"):
        epilogue(lambda r, bias, i, j: r[i, j]).trace()
    assert "add(acc0, add(r[i0, i1], bias[i1]))" in text.trace().text()


def untouched(a, b, c, gm, gn, nk):  # type: ignore[no-untyped-def]
    c <<= a + 1


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (early_break, r"`break` or `return` inside units\(cdiv\(M, 8\)"),
        (branch_on_extent, "comparison on M, an extent: a kernel is traced once for all shapes. Branch on a knob"),
        (branch_on_index, "control flow on i0, an index"),
        (plain_for, r"write `for k in loop\(cdiv\(K, 32\)\)`"),
        (python_range, "use as a Python integer on cdiv"),
        (bare, r"a @ ...: a contraction of bare buffers has no tiling; inside a kernel write acc \+= a\[i, k\]"),
        (bare_right, r"b on the right of @ has no index; write b\[j, k\]"),
        (no_grid, r"tile\(\) outside a grid; for i, j in units"),
        (acc_operand, "a resident tile is no operand of a contraction; drain it to a temp"),
        (rebound, "`\\+=` of a product on a name that now holds an expression"),
        (add_value, r"acc0 \+= Ref: an accumulator adds products"),
        (product_as_value, r"c\[i0, i1\] <<= a @ b: open an accumulator with tile"),
        (nested_loops, "acc0 is swept inside 2 nested loops opened after it"),
        (one_region, "region region0 is read as both sides; fill a second region"),
        (region_sides, "region region0 was read as the left side and now as the right"),
        (region_blocks, "region region0 holds 2 groups of 2 blocks, the left side of acc0 sweeps 2 of 1"),
        (region_empty, "region0 is read before it was filled"),
        (knob_zero, r"gn of tile\(\) is 0; it must be at least 1"),
        (unswept, "nothing was swept into it"),
        (view_in_contraction, "a as_rows view cannot be indexed by the cluster"),
        (swept_where_written, r"acc1 sweeps t0\[i0, 0\], which t0\[i0, i1\] writes in the same stage"),
        (route_without_split, r"tile\(split=1, route='peer'\): partial sums, at least 1, and with more than one "),
        (periodic_in_contraction, "a repeated view cannot be indexed by the cluster"),
        (plain_assignment, r"rebinds nothing on the machine; write c\[...\] <<= ..."),
        (fold_in_epilogue, r"row_sum\(\) in a fused epilogue: a tile's rows are not whole"),
        (untouched, "port b is never read; remove it or use it"),
    ],
    ids=lambda v: v.__name__ if callable(v) else "",
)
def test_contraction_bodies_refused(body: Body, message: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        product(body).trace()
    assert str(caught.value).startswith("bad: ")


def element(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= x[0] + z


def element_value(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= z * float(x[dims("Q")[0]])


def slices(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= x[0:4] + z


def element_branch(x, z, y, part):  # type: ignore[no-untyped-def]
    for e in units(x.parts(part)):
        if x[e] + z[e]:
            pass


def other_part(x, z, y, part):  # type: ignore[no-untyped-def]
    for e in units(x.parts(part)):
        y[e] <<= x[e + 1] + z[e]


def whole_inside_grid(x, z, y, part):  # type: ignore[no-untyped-def]
    t = temp(M, N)
    for e in units(x.parts(part)):
        t[e] <<= x[e] + z[e]
        y[e] <<= t.rows_from(1)[e]


def periodic_target(x, z, y, part):  # type: ignore[no-untyped-def]
    y_all = y.repeated()
    y_all <<= x + z


def operand_target(x, z, y, part):  # type: ignore[no-untyped-def]
    x <<= z + y


def compare_value(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= less(x, z)


def compare_inside(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= less(x, z) * 2


def compare_branch(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= where(x, less(x, z), z)


def infinite(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= x + z * float("inf")


def extent_as_value(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= x * N + z


def index_without_grid(x, z, y, part):  # type: ignore[no-untyped-def]
    (q,) = dims("Q")
    y[q] <<= x[q] + z[q]


def zero_count(x, z, y, part):  # type: ignore[no-untyped-def]
    for e in units(0):
        y[e] <<= x[e] + z[e]


def three_axes(x, z, y, part):  # type: ignore[no-untyped-def]
    for _e in units(1, 2, 3):
        pass


def bad_tier(x, z, y, part):  # type: ignore[no-untyped-def]
    temp(M, tier="l3")


def adjacent_view(x, z, y, part):  # type: ignore[no-untyped-def]
    adjacent(x, z.rows_from(1))


def adjacent_twice(x, z, y, part):  # type: ignore[no-untyped-def]
    adjacent(x, z)
    adjacent(z, y)


def empty_table(x, z, y, part):  # type: ignore[no-untyped-def]
    table(np.zeros(0))


def text_operand(x, z, y, part):  # type: ignore[no-untyped-def]
    y <<= x + "1"


def whole_in_grid(x, z, y, part):  # type: ignore[no-untyped-def]
    for _e in units(x.parts(part)):
        y <<= x + z


def whole_operand(x, z, y, part):  # type: ignore[no-untyped-def]
    for e in units(x.parts(part)):
        y[e] <<= x[e] + z


def iterate(x, z, y, part):  # type: ignore[no-untyped-def]
    for _v in x:
        pass


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (element, r"x\[0\] reads one element; a kernel is traced without data"),
        (element_value, "reading an element; a kernel is traced without data"),
        (slices, r"slices are not views; use rows_from"),
        (element_branch, r"control flow on an element; write where\(condition, a, b\)"),
        (other_part, r"reads x\[\(i0 \+ 1\)\], another part"),
        (whole_inside_grid, r"which t0\[i0\] writes in the same stage"),
        (periodic_target, "writing through a periodic view"),
        (operand_target, r"x is an operand; write to an Out\(\) port or a temp"),
        (compare_value, "a comparison is no value; use where"),
        (compare_inside, r"may only be the condition of where\(\)"),
        (compare_branch, "a comparison may only be its condition"),
        (infinite, "inf is no finite constant"),
        (extent_as_value, "N is an extent or index, not an element; pass its value as a knob"),
        (index_without_grid, r"y\[Q\] <<= ... has no grid; for e in units"),
        (zero_count, r"units\(0\) runs never"),
        (three_axes, r"units\(\) takes 2 counts, 3 were given"),
        (bad_tier, "tier='l3'"),
        (adjacent_view, "takes buffers, not views"),
        (adjacent_twice, "a buffer has one place; name it once"),
        (empty_table, "of an empty array"),
        (text_operand, "'1' of type str cannot be an operand"),
        (iterate, "elements are not read one by one"),
        (whole_in_grid, "every instance would write all of y"),
        (whole_operand, r"reads all of z in every instance; index it: z\[i0\]"),
    ],
    ids=lambda v: v.__name__ if callable(v) else "",
)
def test_vector_bodies_refused(body: Body, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        vector(body).trace()

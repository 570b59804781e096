# SPDX-License-Identifier: Apache-2.0
"""The kernel language: what it records, and every refusal with its fix (docs/spec/compiler.md 11)."""

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
    exp2,
    grid,
    kernel,
    less,
    loop,
    plane,
    recip,
    region,
    row_max,
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


@kernel
def matmul(a=In(..., M, K), b=In(N, K), c=Out(..., M, N), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(a.chunks32(nk)):
            acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc


def test_printed_form() -> None:
    assert matmul.trace(gm=4, gn=8, nk=2).text().splitlines() == [
        "kernel matmul",
        "  in a[..., M, K]",
        "  in b[N, K]",
        "  out c[..., M, N]",
        "  units i0, i1 in cdiv(M, 16), cdiv(N, 32):",
        "    loop s0 in cdiv(K, 64):",
        "      acc0[4x8x2] += a[i0, s0] @ b[i1, s0]",
        "    c[i0, i1] <<= acc0",
    ]
    assert "acc0[gmxgnxnk]" in matmul.trace().text()


def test_one_trace_for_three_shapes() -> None:
    k = kernel(matmul._body)
    for m in (4, 64, 100):
        bound = k.trace(gm=2, gn=2, nk=1).extents({"a": (m, 64), "b": (32, 64)})
        assert bound.shapes["c"] == (m, 32)
    assert k.traces == 1
    k.trace(gm=4, gn=2, nk=1)
    assert k.traces == 2


def test_batch_axes_lead() -> None:
    bound = matmul.trace().extents({"a": (3, 5, 8, 64), "b": (12, 64)})
    assert bound.batch == (3, 5)
    assert bound.shapes == {"a": (3, 5, 8, 64), "b": (12, 64), "c": (3, 5, 8, 12)}


def test_fused_epilogue_and_folds_record() -> None:
    @kernel
    def both(x=In(M, K), w=In(N, K), b=In(N), y=Out(M, N), z=Out(M, N), *, gm=2, gn=2, nk=1, part=256):  # type: ignore[no-untyped-def]
        t = temp(M, N, tier="l2")
        for i, j in units(x.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(x.chunks32(nk)):
                acc += x[i, k] @ w[j, k]
            v = acc + b[j]
            t[i, j] <<= v * recip(exp2(-v) + 1)
        adjacent(y, z)
        for e in units(t.parts(part)):
            ex = exp2(t[e] - row_max(t[e]))
            y[e] <<= ex / row_sum(ex)
            z[e] <<= where(less(t[e], 0), 0.0, t[e])

    text = both.trace().text()
    assert "  temp t0[M, N] tier=l2" in text
    assert "  adjacent y z" in text
    assert "t0[i0, i1] <<= mul(add(acc0, b[i1]), recip(" in text
    assert "row_sum(exp2(sub(t0[i2], row_max(t0[i2]))))" in text
    assert "z[i2] <<= where(less(t0[i2], 0.0), 0.0, t0[i2])" in text


def test_extents_that_must_be_passed() -> None:
    H, W = dims("H, W")

    @kernel
    def heads(x=In(M, H * W), y=Out(M, H * W), *, part=64):  # type: ignore[no-untyped-def]
        for e in units(x.parts(part)):
            y[e] <<= x[e] + 1

    with pytest.raises(TraceError, match=r"extent H appears only inside \(H \* W\) of x; pass it: heads\(..., H="):
        heads.trace().extents({"x": (4, 32)})
    assert heads.trace().extents({"x": (4, 32)}, {"H": 4, "W": 8}).shapes["y"] == (4, 32)
    with pytest.raises(TraceError, match=r"x has 32 where \(H \* W\) = 36"):
        heads.trace().extents({"x": (4, 32)}, {"H": 4, "W": 9})
    with pytest.raises(TraceError, match="extent H = 0"):
        heads.trace().extents({"x": (4, 32)}, {"H": 0, "W": 9})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"a": (4, 64)}, "operand b was not given; it takes a, b"),
        ({"a": (4, 64), "b": (8, 32)}, "K is 64 by a and 32 by b; they must agree"),
        ({"a": (64,), "b": (8, 64)}, "a has 1 axes, .* it takes at least 2"),
        ({"a": (4, 64), "b": (2, 8, 64)}, "b has 3 axes, .* it takes 2"),
        ({"a": (4, 64), "b": (8, 64), "q": (1,)}, r"no operand \['q'\]"),
        ({"a": (0, 64), "b": (8, 64)}, "every extent is at least 1"),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        matmul.trace().extents(shapes)


def test_batch_axes_disagree() -> None:
    @kernel
    def both(a=In(..., M, K), b=In(..., N, K), c=Out(..., M, N), *, gm=1, gn=1, nk=1):  # type: ignore[no-untyped-def]
        matmul._body(a, b, c, gm=gm, gn=gn, nk=nk)

    with pytest.raises(TraceError, match=r"batch axes disagree, a has \(3,\), b has \(2,\)"):
        both.trace().extents({"a": (3, 4, 32), "b": (2, 4, 32)})


# ------------------------------------------------------------------------------------------------- refused bodies


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
        acc += a.rows_from(4)[i, 0] @ b[j, 0]


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
        (view_in_contraction, "a rows_from view cannot be indexed by the cluster"),
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
    ],
    ids=lambda v: v.__name__ if callable(v) else "",
)
def test_vector_bodies_refused(body: Body, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        vector(body).trace()


def test_fold_without_row_width() -> None:
    @kernel
    def fold(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= x - row_max(x)

    with pytest.raises(TraceError, match=r"row_max\(x\) has no row width; say x.as_rows\(width\)"):
        fold.trace()

    @kernel
    def rows(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        v = x.as_rows(128)
        y <<= v - row_max(v)

    assert "row_max(x.as_rows(128))" in rows.trace().text()


# ---------------------------------------------------------------------------------------------- refused signatures


def test_signatures_refused() -> None:
    def no_default(x, y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x

    def positional_knob(x=In(M, N), part=4, y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x

    def late_port(x=In(M, N), *, y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x

    def no_result(x=In(M, N)):  # type: ignore[no-untyped-def]
        pass

    def no_port(*, part=1):  # type: ignore[no-untyped-def]
        pass

    def mixed(x=In(...), w=In(..., M, N), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= x + w

    for body, message in [
        (no_default, "parameter x has no default; a port is"),
        (positional_knob, r"put \* before part"),
        (late_port, "port y stands behind"),
        (no_result, r"no result; add y=Out"),
        (no_port, "has no port"),
        (mixed, r"mixes In\(...\) and In\(..., M, K\)"),
    ]:
        with pytest.raises(TraceError, match=message):
            kernel(body)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match=r"`...` stands first"):
        In(M, ...)
    with pytest.raises(TraceError, match="names no axis"):
        In()
    with pytest.raises(TraceError, match="is no name"):
        dims("M N")
    with pytest.raises(TraceError, match="lists a name twice"):
        dims("M, M")


def test_knobs_refused() -> None:
    with pytest.raises(TraceError, match="matmul has no knob tile; it has gm, gn, nk"):
        matmul.trace(tile=3)
    with pytest.raises(TraceError, match="gm = 0; a tiling knob is at least 1, or None"):
        matmul.trace(gm=0, gn=1, nk=1)
    with pytest.raises(TraceError, match="gm named alone; name gm, gn and nk together"):
        matmul.trace(gm=4)


def test_constructs_outside_a_kernel() -> None:
    with pytest.raises(TraceError, match=r"temp\(\) is used outside a kernel body"):
        temp(M)
    with pytest.raises(TraceError, match=r"units\(\) is used outside"):
        list(units(3))


def test_views_print_and_vanish_when_trivial() -> None:
    @kernel
    def views(x=In(M, N), b=In(N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x.per_group(1) + x.row_repeat(1) + b.repeated() + x.per_group(4) + x.row_repeat(3)

    text = views.trace().text()
    assert "add(add(add(add(x, x), b.repeated()), x.per_group(4)), x.row_repeat(3))" in text


def test_tapped_operand_and_whole_stage_loops() -> None:
    @kernel
    def conv(x=In(M, K), w=In(N, K), c=Out(M, N), *, gm=2, gn=2):  # type: ignore[no-untyped-def]
        p = plane(x, gm)
        for i, j in grid(x.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, 1)
            for s in loop(x.chunks32(1) * 9):
                acc += p[i, s // 9, s % 9] @ w[j, s]
            c[i, j] <<= acc

    assert "acc0[2x2x1] += x.plane(2)[i0, (s0 // 9), (s0 % 9)] @ w[i1, s0]" in conv.trace().text()

# SPDX-License-Identifier: Apache-2.0
"""The kernel language: what it records, and signatures it refuses (docs/spec/compiler.md 11)."""

from __future__ import annotations

import pytest

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import (
    In,
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
    row_max,
    row_sum,
    temp,
    tile,
    units,
    where,
)

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")


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

# SPDX-License-Identifier: Apache-2.0
"""The numerics report: sources, references, saturation located, files and exit code (docs/spec/compiler.md 14.3)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakudriver import Device
from kohakutpu.graph import Graph, Op, Value
from kohakutpu.kernels import Trace
from kohakutpu.model.numerics import error_metrics, relative_errors
from kohakutpu.rewrite import ops
from kohakutpu.tensor import Call
from ktpu import numerics
from ktpu.cli import app
from ktpu.language import In, Out, dims, kernel, units
from ktpu.numerics import AUTO, CASES, FP64, INTERPRETER, MODEL, MX, RTL, Case, Report, measure
from ktpu.numerics_plot import PlotError, draw, exceedance
from ktpu.numerics_text import as_json, markdown

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def model() -> Iterator[Device]:
    device = ktpu.open("model:mm_mesh")
    yield device
    device.close()


@pytest.fixture(scope="module")
def cases() -> dict[str, Case]:
    """The library's cases, registered once."""
    import ktpu.numerics_cases  # noqa: F401

    return CASES


def graded(case: Case, model: Device, rtl: Device | None = None) -> Report:
    return measure(case, ktpu.machine("mm_mesh"), model, rtl)


def small(rng: np.random.Generator) -> Call:
    return ktpu.linear_silu(rng.standard_normal((16, 64)), rng.standard_normal((16, 64)) / 10)


SMALL = Case("small", small)
GRADED = ["matmul 64x256x64", "linear_bias_gelu 64x128x64", "geglu 64x128x64", "softmax 64x128"]


@pytest.mark.parametrize("name", GRADED)
def test_cases_are_within_their_class(cases: dict[str, Case], model: Device, name: str) -> None:
    report = graded(cases[name], model)
    assert list(report.problems()) == []
    assert report.case.norm
    assert report.saturated == []


@pytest.mark.slow
def test_every_case_is_within_its_class(cases: dict[str, Case], model: Device) -> None:
    assert len(cases) >= 20
    for case in cases.values():
        assert list(graded(case, model).problems()) == []


def test_rows(model: Device) -> None:
    """The format's own error first; the model differs from mx by rounding only, from float64 by the format."""
    (tensor,) = graded(SMALL, model).tensors
    assert [(r.source, r.reference) for r in tensor.rows] == [
        (MX, FP64), (INTERPRETER, FP64), (INTERPRETER, MX), (MODEL, FP64), (MODEL, MX),
    ]  # fmt: skip
    assert tensor.wrong == 0
    assert tensor.differing is None
    assert tensor.row(MODEL, MX).metrics.max < 1e-3 < tensor.row(MODEL, FP64).metrics.max
    assert tensor.row(INTERPRETER, FP64).metrics.max < 1e-3
    assert tensor.row(MX, FP64).metrics.p99 == pytest.approx(tensor.row(MODEL, FP64).metrics.p99, rel=0.1)


@pytest.mark.parametrize("name", ["linear_bias_silu 64x128x64", "layernorm 64x128"])
def test_the_automatic_path_is_a_source(name: str, cases: dict[str, Case], model: Device) -> None:
    """Graded as the kernel is; what it computes is read from the formula, not from the kernel."""
    case = cases[name]
    (tensor,) = graded(case, model).tensors
    assert [r.source for r in tensor.rows[-2:]] == [AUTO, AUTO]
    assert tensor.row(AUTO, FP64).metrics.max < 2 * tensor.row(MODEL, FP64).metrics.max
    other = replace(case, formula=lambda x, w, b: ops.relu(x) if w.shape[0] == 1 else x @ w + b)
    (found, *_) = graded(other, model).problems()
    assert f"{AUTO}: p50" in found


def test_every_kernel_of_the_report_has_a_formula(cases: dict[str, Case]) -> None:
    """Of the registered cases."""
    assert [n for n, c in cases.items() if c.formula is None] == []


# ------------------------------------------------------------------ saturation


def large(rng: np.random.Generator) -> Call:
    """One element of the product is truly 204,800 = 32 x 80 x 80, another -96,000; the rest stay below 3,200."""
    a, b = np.ones((8, 32)), np.ones((12, 32))
    a[5], b[7] = 80, 80
    b[9] = -37.5
    return ktpu.matmul(a, b)


def test_a_saturating_product(model: Device) -> None:
    """204,800 comes back as 65,504; counted, located, and announced by the compiler (kernels.md 10)."""
    call = large(np.random.default_rng(0))
    a, b = (call.operands[n].astype(np.float64) for n in "ab")
    assert (a @ b.T)[5, 7] == 204_800
    compiled = ktpu.compile(call, ktpu.machine("mm_mesh"))
    assert any(re.match(r"c\b.*65504", str(n)) for n in compiled.artifact.meta["notes"])
    got = ktpu.run(call, model)["c"]
    assert got[5, 7] == 65_504
    assert got[5, 9] == -65_504
    report = graded(Case("large", large, "M"), model)
    assert [(s.name, s.count, s.first) for s in report.saturated] == [("c", 2, (5, 7))]
    assert report.counters["saturated"] == 2
    tensor = report.tensors[0]
    assert tensor.row(MODEL, FP64).metrics.saturated == 2
    assert tensor.row(INTERPRETER, FP64).metrics.saturated == 0
    assert tensor.wrong == 0
    assert "large: 2 elements saturate; class M has none" in list(report.problems())
    assert "* Saturated: c: 2 elements saturate at 65,504, the first at [5, 7]" in markdown([report], {})


@pytest.mark.parametrize(("top", "count"), [(65_504.0, 0), (65_519.0, 0), (65_520.0, 1), (1e30, 1), (2.0**128, 0)])
def test_what_counts_as_saturated(model: Device, top: float, count: int) -> None:
    """A store is clamped from 65,520 upwards; what rounds to 65,504 is not, and infinity is not finite."""
    x = np.zeros((1, 16))
    x[0, 3] = 1
    call = ktpu.elementwise({"x": x}, [("mul", ("x", top))])
    report = graded(Case("edge", lambda rng: call), model)
    assert [s.count for s in report.saturated] == ([count] if count else [])
    if count:
        assert report.saturated[0].first == (0, 3)


def test_a_value_that_never_leaves_the_machine(model: Device) -> None:
    """A tile that saturates before its epilogue divides: the value is named, no output is clamped."""
    call = ktpu.linear(large(np.random.default_rng(0)).operands["a"], np.full((12, 32), 80.0), scale=2.0**-10)
    report = graded(Case("hidden", lambda rng: call), model)
    assert [(s.name, s.count, s.first) for s in report.saturated] == [("z0", 12, (5, 0))]
    assert report.tensors[0].row(MODEL, FP64).metrics.saturated == 0
    assert report.tensors[0].row(MODEL, FP64).metrics.max > 0.5


def test_a_part_of_an_output(model: Device) -> None:
    """What a part clamps counts for the buffer it belongs to."""
    (rows,) = dims("rows")

    @kernel
    def halves(x=In(rows, 32), y=Out(rows + rows, 32)):  # type: ignore[no-untyped-def]
        first, second = y.rows_from(0), y.rows_from(rows)
        for e in units(x.parts(1024)):
            first[e] <<= x[e] * 2
        for e in units(x.parts(1024)):
            second[e] <<= x[e] * 1024

    x = np.ones((8, 32))
    x[3, 4] = 80.0
    report = graded(Case("halves", lambda rng: ktpu.call(halves, x)), model)
    assert [(s.name, s.count, s.first) for s in report.saturated] == [("y.p1", 1, (3, 4))]
    assert report.tensors[0].row(MODEL, FP64).metrics.saturated == 1


# ------------------------------------------------------------------ what must not pass


class Wrong:
    """A device whose memory has one bit of the first result turned."""

    def __init__(self, inner: Device) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def read(self, address: int, n: int) -> bytes:
        raw = bytearray(self.inner.read(address, n))
        raw[0] ^= 1
        return bytes(raw)


def test_a_wrong_bit_is_a_problem(model: Device) -> None:
    """In the model against the reference arithmetic, and in the RTL against the model."""
    wrong: Device = Wrong(model)  # type: ignore[assignment]
    assert [p.partition(": y: ")[2] for p in graded(SMALL, wrong).problems()] == [
        "model and reference arithmetic differ in 1 elements"
    ]
    report = graded(SMALL, model, wrong)
    assert [p.partition(": y: ")[2] for p in report.problems()] == ["RTL and model differ in 1 elements"]
    assert report.tensors[0].row(RTL, FP64)
    assert graded(SMALL, model, model).tensors[0].differing == 0


def test_an_exceeded_class_is_a_problem(model: Device) -> None:
    """A product is not within the class of a vector pass."""
    found = list(graded(replace(SMALL, norm="V"), model).problems())
    assert {p.split()[2] for p in found} >= {"p50", "p99", "max"}
    assert all("of class V" in p for p in found)


def test_metrics() -> None:
    """Norm and largest difference beside the percentiles; infinities stay infinite."""
    m = error_metrics([3.0, 4.0, 0.0], [3.0, 5.0, 0.0])
    assert (m.max_abs, m.rel_l2) == (1.0, pytest.approx(1 / np.sqrt(34)))
    assert list(relative_errors([3.0, 4.0], [3.0, 5.0])) == [0.0, pytest.approx(0.2)]
    lost = error_metrics([np.inf, 1.0], [1.0, 1.0])
    assert lost.max_abs == lost.rel_l2 == np.inf
    assert error_metrics([0.0], [0.0]).rel_l2 == 0
    assert error_metrics([1.0], [0.0]).rel_l2 == np.inf


def test_two_outputs_and_two_layers(model: Device) -> None:
    """A hidden layer is quantised from its rounded value in mx, and every output has rows of its own."""
    graph = Graph()
    for name, shape, role in (
        ("x", (8, 64), "in"),
        ("w", (32, 64), "in"),
        ("u", (16, 64), "in"),
        ("h", (8, 32), "out"),
        ("y", (8, 16), "out"),
    ):
        graph.value(Value(name, "fp16", shape, role))  # type: ignore[arg-type]
    graph.ops += [Op("contract", ("x", "w"), "h"), Op("contract", ("x", "u"), "y")]
    rng = np.random.default_rng(4)
    halves = {n: rng.standard_normal(graph.values[n].shape).astype(np.float16) for n in ("x", "w", "u")}
    report = graded(Case("two", lambda _: Call(Trace("two", graph, {}), halves)), model)
    assert [t.name for t in report.tensors] == ["h", "y"]
    assert [t.wrong for t in report.tensors] == [0, 0]
    assert [t["shape"] for t in as_json([report])["cases"][0]["tensors"]] == [[8, 32], [8, 16]]


# ------------------------------------------------------------------ registry, files, command


def test_registry() -> None:
    with pytest.raises(ValueError, match="error class 'Z' is unknown; known: V, W, W8, M"):
        numerics.register("new", "Z")
    name = "only for this test"
    made = numerics.register(name, "V")(SMALL.make)
    try:
        assert CASES[name] is made
        with pytest.raises(ValueError, match="is registered already; choose another name"):
            numerics.register(name)
    finally:
        del CASES[name]


def test_exceedance() -> None:
    """Shares at or above every error; exact elements count, infinite ones stay above."""
    x, y = exceedance(np.array([0.0, 0.0, 1e-3, 1e-3, 1e-2, np.inf, 0.0, 0.0]))
    assert list(x) == [1e-3, 1e-2]
    assert list(y) == [0.5, 0.25]


def test_command(tmp_path: Path) -> None:
    """Files of both forms and curves; a case of a file of one's own; 1 when something is exceeded."""
    runner = CliRunner()
    extra = tmp_path / "more.py"
    extra.write_text(
        "import ktpu\nfrom ktpu.numerics import register\n"
        "@register('zz exceeds', 'V')\n"
        "def _(rng):\n    return ktpu.matmul(rng.standard_normal((8, 32)), rng.standard_normal((8, 32)))\n"
    )
    out = tmp_path / "report"
    try:
        fine = runner.invoke(app, ["numerics", "rmsnorm", "linear_add_silu", "--out", str(out)])
        assert fine.exit_code == 0, fine.output
        assert "WITHIN 2 cases" in fine.output
        kept = json.loads((out / "numerics.json").read_text())
        assert [c["name"] for c in kept["cases"]] == ["linear_add_silu 64x128x64", "rmsnorm 64x128"]
        assert kept["problems"] == []
        first = kept["cases"][0]["tensors"][0]["rows"][0]
        assert (first["source"], first["reference"]) == (MX, FP64)
        shares = {"over_1_percent", "over_10_percent"}
        assert {"p50", "p99", "max", "rel_l2", "max_abs", "saturated"} | shares <= set(first)
        text = (out / "numerics.md").read_text()
        for picture in re.findall(r"\]\((\S+\.png)\)", text):
            assert (out / picture).read_bytes().startswith(b"\x89PNG")
        assert len(re.findall(r"\.png\)", text)) == 3
        assert text.count("| model | fp64 |") == 2
        broken = runner.invoke(app, ["numerics", "zz", "--cases", str(extra)])
        assert broken.exit_code == 1, broken.output
        assert "zz exceeds: c: p50" in broken.output
    finally:
        CASES.pop("zz exceeds", None)
    for arguments, message in (
        (["nothing like it"], "no case starts with 'nothing like it'; there are: matmul"),
        (["--machine", "mars", "relu"], "no machine called 'mars'"),
        (["--cases", "absent.py"], "absent.py does not exist"),
    ):
        refused = runner.invoke(app, ["numerics", *arguments])
        assert refused.exit_code == 2
        assert message in refused.output.replace("\n", " ")


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, model: Device, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(PlotError, match="matplotlib is missing; install it with"):
        draw([graded(SMALL, model)], tmp_path)

# SPDX-License-Identifier: Apache-2.0
"""``ktpu explain``: kernels by name, every decision in the text and on the page, counters of a run."""

from __future__ import annotations

import re
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakubench.programs import description, spec
from kohakudriver import Device
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec, MeshSpec
from kohakutpu.model.transport import ModelTransport
from ktpu import explain_call
from ktpu.cli import app
from ktpu.counters import COMPILED, RUN, counters
from ktpu.disassembly import explain as explained
from ktpu.explain import Explanation, gather, notes, sections, span
from ktpu.explain_html import page
from ktpu.explain_pictures import COLOURS, grids, memory_maps, timeline
from ktpu.explain_tiles import choice

pytestmark = pytest.mark.unit

BIG = MachineSpec(
    "big",
    (
        MeshSpec(
            {"MG": tuple((x, 2) for x in range(1, 7)), "VC": tuple((x, 3) for x in range(1, 5))}, ((0, 1),), (1, 1)
        ),
    ),
    stage_bytes=1 << 21,
    features=frozenset({"emit_fuse", "xform_granule"}),
)


@cache
def made(text: str, shape: str, knobs: str = "", fuse: str = "auto") -> Explanation:
    named = explain_call.find(text)
    given = {n: explain_call.knob(v) for n, v in explain_call.pairs("--knob", [knobs]).items()}
    call = explain_call.build(named, explain_call.pairs("--shape", [shape]), given)
    return gather(ktpu.compile(call, BIG, fuse=fuse), name=text, trace=named.kernel.trace(**given).text())


def mlp() -> Explanation:
    """Two products, a staged activation between them and a conversion."""
    return made("mlp(silu)", "M=128,N=192,K=128,F=256")


def everything(e: Explanation, *, full: bool = False) -> str:
    out = []
    for s in sections(e, full=full):
        out += [s.title, *s.lines, *("  ".join(row) for t in s.tables for row in (t.headers, *t.rows))]
    return "\n".join(out)


# -- kernels by name --


def test_kernel_of_a_file(tmp_path: Path) -> None:
    """``file.py:name`` with an extent only inside an expression, and knobs."""
    source = tmp_path / "mine.py"
    source.write_text(
        "from ktpu.language import In, Out, dims, kernel, units\n"
        "R, H = dims('R, H')\n"
        "@kernel\n"
        "def twice(x=In(R, 2 * H), y=Out(R, 2 * H), *, part=1024):\n"
        "    for e in units(x.parts(part)):\n"
        "        y[e] <<= x[e] * 2\n"
    )
    named = explain_call.find(f"{source}:twice")
    call = explain_call.build(named, {"R": "8", "H": "32"}, {"part": 2048})
    assert call.operands["x"].shape == (8, 64)
    with pytest.raises(CompileError, match=r"mine.py has no kernel 'other'; it has twice"):
        explain_call.find(f"{source}:other")
    with pytest.raises(CompileError, match=r"none.py does not exist; a kernel of a file is file.py:name"):
        explain_call.find(f"{tmp_path}/none.py:twice")


def test_shapes_of_operands() -> None:
    """Batch axes lead the ports declared with ``...``, shared operands have none; whole operands name their axes."""
    call = explain_call.build(explain_call.find("matmul"), {"M": "8", "N": "12", "K": "32", "batch": "2x3"}, {})
    assert call.shapes["c"] == (2, 3, 8, 12)
    assert call.operands["b"].shape == (12, 32)
    whole = explain_call.build(explain_call.find("silu"), {"x": "3x128"}, {})
    assert whole.shapes["y"] == (3, 128)
    again = explain_call.build(explain_call.find("silu"), {"x": "3x128"}, {})
    assert np.array_equal(whole.operands["x"], again.operands["x"])


@pytest.mark.parametrize(
    ("kernel", "shape", "message"),
    [
        ("matmal", "M=1", r"no kernel 'matmal' in the library; it has .*matmul.*file.py:name"),
        ("heads_of", "M=1", r"no kernel 'heads_of' in the library"),
        ("softmax_wide", "M=1", r"softmax_wide is a family of kernels; name one as softmax_wide\(640\)"),
        ("matmul", "M=8,N=8", r"matmul needs K; write --shape K=64,M=64,N=64 \(batch=... for leading axes\)"),
        ("matmul", "M=8,N=8,K=8,L=8", r"matmul has no extent L; write --shape K=64,M=64,N=64"),
        ("matmul", "M=8,N=8,K=0", r"--shape K=0: an extent is an integer of at least 1, axes are 4x128"),
        ("matmul", "M=8,N=8,K=8x8", "K is one extent; only batch and whole operands have axes"),
        ("matmul", "M=8,N=8,K", r"--shape 'K'; write --shape name=value"),
        ("matmul", "M=8,N=8,M=9,K=1", "--shape: M is given twice"),
        ("silu", "M=8", r"silu has no extent M; write --shape x=4x128"),
        ("matmul", "M=99999,N=8,K=99999", r"an operand of 99999x99999 elements; explain a smaller shape"),
    ],
)
def test_refusals(kernel: str, shape: str, message: str) -> None:
    """What is wrong, what there is, and what to write."""
    with pytest.raises(CompileError, match=message):
        explain_call.build(explain_call.find(kernel), explain_call.pairs("--shape", [shape]), {})


def test_kernel_of_the_package() -> None:
    assert explain_call.find("ktpu.matmul").kernel is explain_call.find("matmul").kernel
    assert explain_call.find("mlp").kernel.name == explain_call.find("mlp(silu)").kernel.name == "mlp_silu"


def test_page_needs_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the template library the text is still printed, and the command says what to install."""
    monkeypatch.setitem(sys.modules, "ktpu.explain_html", None)
    args = ["explain", "silu", "--shape", "x=4x128", "--html", str(tmp_path / "page.html")]
    done = CliRunner().invoke(app, args)
    assert done.exit_code == 2
    assert "Counters" in done.output
    assert "--html needs the package ktpu.explain_html; pip install" in " ".join(done.output.split())


def test_knob_values() -> None:
    assert [explain_call.knob(t) for t in ("8", "1e-5", "true", "None", "erf")] == [8, 1e-5, True, None, "erf"]


# -- the text --


def test_every_level_is_there() -> None:
    """Bands, buffers, conversions, moves, notes and relaxations all appear, each under its level."""
    e = mlp()
    schedule = e.compiled.schedule
    text = everything(e)
    titles = [s.title for s in sections(e)]
    assert titles[:4] == ["L5 call", "L4 trace", "L3 graph", "L2 schedule"]
    last = len(schedule.bands) - 1
    assert [t for t in titles if t.startswith("Tile of band")] == ["Tile of band MG0", f"Tile of band MG{last}"]
    assert titles[-6:] == ["Memory", "L1 unit programs", "L0 rounds", "Cost", "Notes", "Counters"]
    for band in schedule.bands:
        assert band.text() in text
    for name, b in schedule.buffers.items():
        assert re.search(rf"^{re.escape(name)}  {b.role}  .*{b.nbytes:,}", text, re.M), name
    assert schedule.conversions
    assert schedule.notes
    assert schedule.relaxed
    for line in (*(c.text() for c in schedule.conversions), *schedule.notes):
        assert line in text
    decisions = next(s.lines for s in sections(e) if s.title == "L2 schedule")
    assert decisions[-1:] == (f"relaxed: {schedule.relaxed[0]}",)
    assert text.count("  mover: ") == sum(map(len, e.compiled.moves))
    assert e.compiled.call.trace.graph.text() in text
    assert "kernel mlp_silu" in text


def test_programs_are_abbreviated_unless_full() -> None:
    """Every unit is named; with ``full`` every instruction and round stands there."""
    e = mlp()
    short, full = everything(e), everything(e, full=True)
    units = [(n, u) for n, band in enumerate(e.compiled.programs) for u in band]
    for number, u in units:
        head = f"band {number} unit {u.engine}{u.unit}"
        assert head in short
        assert f"band {number} " + u.text() in full
    assert "shown with --full" in short
    assert "shown with --full" not in full
    assert len(re.findall(r"^round \d+:", full, re.M)) == len(list(e.compiled.artifact.rounds()))


def test_cost_and_counters() -> None:
    """One row a band with its limiter and bracket; all compile-time counters."""
    e = mlp()
    by_title = {s.title: s for s in sections(e)}
    rows = by_title["Cost"].tables[0].rows
    assert [r[0] for r in rows] == [f"{b.engine}{b.number}" for b in e.cost.bands]
    assert [r[-1] for r in rows] == [b.limiter for b in e.cost.bands]
    assert by_title["Cost"].lines[0].startswith("model ")
    shown = dict(by_title["Counters"].tables[0].rows)
    assert list(shown) == list(COMPILED)
    assert [name for name, value in shown.items() if value.endswith("(model)")] == ["mag_bytes"]


def test_fusion_and_residency_are_told() -> None:
    fused = everything(made("linear_silu", "M=32,N=32,K=64", "gm=4,gn=8,nk=2"))
    assert "fusion: tiles go to VC0, VC1, 32 L1 words each; they never reach memory" in fused
    staged = everything(made("linear_silu", "M=32,N=32,K=64", "gm=4,gn=8,nk=2", "never"))
    assert "fusion: results go to memory, handed out with the last sweep" in staged
    resident = everything(made("matmul", "M=256,N=64,K=128", "gm=4,gn=4,nk=2"))
    assert "residency: b stays in L1 across the row tiles; fills of a alternate halves" in resident
    assert "residency: nothing stays in L1" in everything(made("matmul", "M=16,N=64,K=128", "gm=4,gn=4,nk=2"))


def test_tile_decision() -> None:
    """The winner comes first, the next keys in order with what they lose by, then what a limit forbids."""
    e = made("matmul", "M=256,N=256,K=1024")
    c = e.tiles[0]
    assert c.candidates[0].tiling == e.compiled.schedule.bands[0].tiling  # type: ignore[union-attr]
    assert c.candidates[0].reason == "chosen: the largest key"
    keys = [x.key for x in c.candidates if x.key is not None]
    assert keys == sorted(keys, reverse=True)
    assert len(keys) == 6
    beyond = [x for x in c.candidates if x.key is None]
    assert all(x.reason.startswith("limit: ") for x in beyond)
    assert any(x.tiling.gm * x.tiling.gn == 1024 for x in beyond)
    assert any("entries of a chunk exceed a bank of 256" in x.reason for x in beyond)
    named = made("matmul", "M=256,N=256,K=1024", "gm=8,gn=8,nk=2").tiles[0]
    assert named.candidates[0].reason == "named by the caller, the chooser was not asked"
    assert any(x.reason.startswith("larger key") for x in named.candidates)
    band = e.compiled.schedule.bands[0]
    assert choice(band, BIG, named=False) == c  # type: ignore[arg-type]


def test_tiles_that_a_body_or_a_reader_decides(tmp_path: Path) -> None:
    """A tile written in the body is named; where rows are drained, not every legal tile was open."""
    source = tmp_path / "mine.py"
    source.write_text(
        "from ktpu.language import In, Out, dims, kernel, loop, tile, units\n"
        "M, N, K = dims('M, N, K')\n"
        "@kernel\n"
        "def fixed(a=In(M, K), b=In(N, K), c=Out(M, N)):\n"
        "    for i, j in units(a.tiles(4), b.tiles(4)):\n"
        "        acc = tile(4, 4, 2)\n"
        "        for k in loop(a.chunks32(2)):\n"
        "            acc += a[i, k] @ b[j, k]\n"
        "        c[i, j] <<= acc\n"
    )
    fixed = made(f"{source}:fixed", "M=64,N=64,K=64").tiles[0]
    assert fixed.candidates[0].reason == "named by the caller, the chooser was not asked"
    call = explain_call.build(explain_call.find("mlp"), {"M": "64", "N": "80", "K": "64", "F": "80"}, {})
    first = gather(ktpu.compile(call, ktpu.machine("mm_rows"))).tiles[0].candidates
    assert first[1].reason.startswith("larger key, but not what was asked for")
    assert first[0].reason == "chosen: the largest key its operands and readers allow"


def test_lifetimes_are_those_of_the_steps() -> None:
    """A temp's steps run from the one that writes it to the last that touches it; operands stay throughout."""
    e = mlp()
    lives = {p.buffer.name: (p.life.first, p.life.last) for p in e.placements}
    last = len(e.steps) - 1
    assert lives["x"] == lives["y"] == (0, last)
    quantised = next(n for n in lives if ":mx:" in n)
    assert e.steps[lives[quantised][0]].startswith("quantise before band")
    assert lives[quantised][1] == last
    assert lives["z0"] == (0, 1)
    assert {p.tier for p in e.placements} == {"dram", "l2"}


# -- the page --


def test_page_is_well_formed_and_complete() -> None:
    """It parses, holds no script and nothing from elsewhere, and names every band, buffer, note and counter."""
    e = mlp()
    text = page(e)
    body = ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    tags = {t.tag.rpartition("}")[2] for t in body.iter()}
    assert "svg" in tags
    assert not tags & {"script", "link", "img", "iframe"}
    assert "http" not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "prefers-color-scheme: dark" in text
    shown = " ".join(body.itertext())
    for b in e.cost.bands:
        assert f"{b.engine}{b.number}" in shown
    for p in e.placements:
        assert p.buffer.name in shown
    for line in (*notes(e), *COMPILED):
        assert line in shown
    assert re.search(rf"{span(e.cost.low, e.cost.high)}\s+modelled cycles \(model", shown)


def svgs(text: str, kind: str) -> list[ElementTree.Element]:
    body = ElementTree.fromstring(text.replace("<!DOCTYPE html>", "", 1))
    return [t for t in body.iter() if t.tag.endswith("svg") and t.get("class") == kind]


def rects(svg: ElementTree.Element) -> list[ElementTree.Element]:
    return [t for t in svg.iter() if t.tag.endswith("rect")]


def test_grids_have_a_rectangle_an_instance() -> None:
    """As many as instances, in the colour of the unit that runs them, and none on another."""
    e = mlp()
    schedule = e.compiled.schedule
    drawn = svgs(page(e), "grid")
    assert len(drawn) == len(schedule.bands)
    for svg, band, dealt in zip(drawn, schedule.bands, schedule.dealt, strict=True):
        found = rects(svg)
        assert len(found) == len(list(band.instances())) == len(dealt)
        assert [r.get("class") for r in found] == [f"c{unit % COLOURS}" for _, unit in dealt]
        assert len({(r.get("x"), r.get("y")) for r in found}) == len(found)
    first = grids(e)[0]
    assert {(round(c.x / first.cells[0].w), round(c.y / first.cells[0].h)) for c in first.cells} == {
        (key[1], key[0]) for key, _ in schedule.dealt[0]
    }


def test_memory_map_shows_no_overlap() -> None:
    """A rectangle a buffer and tier; buffers alive together never share a place."""
    for e in (mlp(), made("flash_attention", "batch=2,Lq=64,Lkv=128,Dk=64,Dv=64")):
        maps = memory_maps(e)
        assert sum(len(m.cells) for m in maps) == len(e.placements)
        assert len(svgs(page(e), "memory")) == len(maps)
        for m in maps:
            for i, a in enumerate(m.cells):
                for b in m.cells[i + 1 :]:
                    apart = (
                        a.x + a.w <= b.x or b.x + b.w <= a.x or a.y + a.h <= b.y + 1e-6 or b.y + b.h <= a.y + 1e-6
                    )
                    assert apart, (a.tip, b.tip)


def test_timeline_adds_up() -> None:
    """One bar a unit and band, bands one after another, the last ends at the total."""
    e = mlp()
    t = timeline(e)
    bars = [(b, u) for b in e.cost.bands for u in b.units]
    assert len(t.cells) == len(bars)
    assert len(t.barriers) == sum(b.barrier > 0 for b in e.cost.bands)
    assert max(c.x + c.w for c in (*t.cells, *t.barriers)) == pytest.approx(t.width)
    rows = {c.y for c in t.cells}
    assert len(rows) == len({(b.engine, u) for b, u in bars})
    for y in rows:
        row = sorted((c.x, c.x + c.w) for c in t.cells if c.y == y)
        assert all(end <= start + 1e-6 for (_, end), (start, _) in pairwise(row))
    (svg,) = svgs(page(e), "timeline")
    assert len(rects(svg)) == len(t.cells) + len(t.barriers)


def test_names_are_escaped() -> None:
    e = mlp()
    risky = Explanation("<b>&name", e.compiled, e.cost, e.trace, e.placements, e.steps, e.tiles)
    assert "&lt;b&gt;&amp;name" in page(risky)


# -- counters --


def test_counters_of_a_run() -> None:
    """Compile-time counters agree with the artifact; the machine's own replace what was expected."""
    text = description(2, cores=4)
    machine = spec(text)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((32, 64)), rng.standard_normal((32, 64))
    compiled = ktpu.compile(ktpu.linear_silu(x, w, gm=4, gn=8, nk=2), machine, fuse="never")
    before = counters(compiled)
    assert list(before) == list(COMPILED)
    kept = compiled.artifact.meta["counters"]
    assert [before[n] for n in ("dispatches", "rounds", "payloads", "relaxed")] == [
        kept[n] for n in ("dispatches", "rounds", "payloads", "relaxed")
    ]
    assert before["bytes_sent"] == 32 * before["payloads"] + kept["image_bytes"]
    assert before["fetched"] == 32 * 32 * 2
    result = Device(ModelTransport(text), machine.digest(), explained).run(compiled.artifact)
    after = counters(compiled, result)
    assert set(after) == {*COMPILED, *RUN}
    assert after == {**before, "saturated": 0}


def test_saturated_counts_units_that_clamped() -> None:
    """A product beyond 65,504 on one of two clusters."""
    text = description(2)
    machine = spec(text)
    a = np.ones((32, 32))
    a[:16] = 200.0
    b = np.full((16, 32), 32.0)
    compiled = ktpu.compile(ktpu.matmul(a, b, gm=4, gn=4, nk=1), machine)
    result = Device(ModelTransport(text), machine.digest(), explained).run(compiled.artifact)
    assert counters(compiled, result)["saturated"] == 1


def test_counters_of_conversions() -> None:
    e = mlp()
    found = counters(e.compiled)
    assert found["quantised"] == 1
    assert found["moves"] == sum(map(len, e.compiled.moves)) > 0
    assert (found["dispatches"], found["relayouts_device"], found["relayouts"]) == (3, 0, 0)


def test_counters_of_a_relayout() -> None:
    """On a machine whose mover cannot transpose, a pass of the cores is a relayout on the card and no dispatch."""
    named = explain_call.find("mlp(silu)")
    call = explain_call.build(named, {"M": "128", "N": "192", "K": "128", "F": "256"}, {})
    compiled = ktpu.compile(call, BIG.with_(features=frozenset({"emit_fuse"})))
    found = counters(compiled)
    assert (found["dispatches"], found["relayouts_device"], found["quantised"]) == (3, 1, 1)
    e = gather(compiled)
    drawn = svgs(page(e), "grid")
    assert [len(rects(svg)) for svg in drawn] == [len(d) for d in compiled.schedule.dealt]
    assert any(b.role == "relayout" and b.limiter in ("lanes", "memory") for b in e.cost.bands)


def test_counters_are_documented() -> None:
    """The page lists every counter and no other."""
    guide = (Path(__file__).resolve().parents[1] / "docs/guide_cost.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", guide.partition("## Counters")[2], re.M)
    assert sorted(listed) == sorted({*COMPILED, *RUN})


# -- the command --


def test_command(tmp_path: Path) -> None:
    """Prints all sections and writes the page; a wrong name or shape ends with its message."""
    target = tmp_path / "page.html"
    args = ["explain", "linear_silu", "--shape", "M=32,N=64,K=64", "--knob", "gm=4", "--knob", "gn=8,nk=2"]
    done = CliRunner().invoke(app, [*args, "--html", str(target), "--profile", "ref"])
    assert done.exit_code == 0, done.output
    for title in ("L5 call", "L4 trace", "L3 graph", "L2 schedule", "Tile of band MG0", "Memory", "Cost", "Counters"):
        assert title in done.output
    assert "profile ref" in done.output
    assert svgs(target.read_text(encoding="utf-8"), "grid")
    for wrong, message in (
        (["explain", "linear_silo", "--shape", "M=8"], "no kernel 'linear_silo'"),
        ([*args, "--machine", "nothing"], "no machine called 'nothing'; there are"),
        ([*args, "--knob", "speed=3"], "linear_silu has no knob speed; it has gm, gn, nk"),
        ([*args, "--profile", "fast"], "cost profile 'fast' is unknown"),
    ):
        failed = CliRunner().invoke(app, wrong)
        assert failed.exit_code == 2
        assert message in " ".join(failed.output.split())

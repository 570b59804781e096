# SPDX-License-Identifier: Apache-2.0
"""The six levels keep apart (docs/spec/compiler.md section 1), and a breach of each rule is noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kohakubench import layers
from kohakutpu.isa import generated as g

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "kohakutpu": ROOT / "compiler/kohakutpu",
    "kohakuabi": ROOT / "compiler/kohakuabi",
    "kohakudriver": ROOT / "driver/kohakudriver",
}
WIDTHS = frozenset(f"{n}_W" for n in ("ADDR", "FLIT", "HDR", "PAYLOAD", "POS", "CTRL_DATA"))


@pytest.fixture(scope="module")
def modules() -> dict[str, layers.Module]:
    return layers.load(PACKAGES)


def test_every_module_keeps_its_level(modules: dict[str, layers.Module]) -> None:
    """Rules 1 to 4, without a seam and without an exception."""
    assert layers.check(modules, layers.Rules(field_names=WIDTHS)) == []


def test_all_levels_are_there(modules: dict[str, layers.Module]) -> None:
    """A check of nothing would pass: every level has modules, and the widths named above exist."""
    assert {m.layer for m in modules.values()} == {*layers.LEVELS, layers.LEAF}
    assert len(modules) > 80
    assert all(hasattr(g, name) for name in WIDTHS)


def test_compiler_and_driver_never_meet(modules: dict[str, layers.Module]) -> None:
    """Rule 5."""
    assert layers.crossing(modules, "kohakutpu", "kohakudriver") == []


@pytest.mark.parametrize(
    ("package", "stranger"),
    [
        ("kohakutpu", ("kohakudriver", "ktpu", "kohakubench", "cocotb")),
        ("kohakudriver", ("kohakutpu", "ktpu", "kohakubench", "numpy")),
        ("kohakuabi", ("kohakutpu", "kohakudriver", "numpy")),
    ],
)
def test_import_pulls_in_no_other_package(package: str, stranger: tuple[str, ...]) -> None:
    """Importing one package loads none of the others."""
    code = f"import sys, {package}; print([m for m in {stranger!r} if m in sys.modules])"
    path = f"{ROOT / 'compiler'}:{ROOT / 'driver'}:{ROOT / 'tb'}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


# -- seeded breaches --

CLEAN = {
    "__init__.py": "LAYER = 'leaf'\n",
    "tensor.py": "LAYER = 'L5'\nfrom p.kernel import trace\n",
    "kernel.py": "LAYER = 'L4'\nfrom p.graph import Graph\ndef trace(): return Graph\n",
    "graph.py": "LAYER = 'L3'\nclass Graph: pass\n",
    "schedule.py": "LAYER = 'L2'\nfrom p.unit import Program\n",
    "unit.py": "LAYER = 'L1'\nfrom p.encode import word\nclass Program: pass\n",
    "encode.py": "LAYER = 'L0'\nfrom .errors import Bad\ndef word(): return Bad\n",
    "errors.py": "LAYER = 'leaf'\nclass Bad(Exception): pass\n",
}


def checked(tmp_path: Path, rules: layers.Rules | None = None, **changed: str) -> list[str]:
    for name, text in {**CLEAN, **{f"{k}.py": v for k, v in changed.items()}}.items():
        (tmp_path / name).write_text(text)
    return layers.check(layers.load({"p": tmp_path}), rules or layers.Rules(field_names=WIDTHS))


def test_clean_example(tmp_path: Path) -> None:
    assert checked(tmp_path) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"graph": "class Graph: pass\n"}, "p.graph: LAYER is None"),
        ({"graph": "LAYER = 'L7'\nclass Graph: pass\n"}, "p.graph: LAYER is 'L7'"),
        ({"errors": "LAYER = 'leaf'\nfrom p.graph import Graph\n"}, "a leaf imports p.graph (L3)"),
        ({"tensor": "LAYER = 'L5'\nfrom p.graph import Graph\n"}, "L5 imports p.graph (L3), 2 levels below"),
        ({"tensor": "LAYER = 'L5'\nimport p.unit\n"}, "L5 imports p.unit (L1), 4 levels below"),
        ({"unit": "LAYER = 'L1'\nfrom p.schedule import x\n"}, "L1 imports upward from p.schedule (L2)"),
        ({"unit": "LAYER = 'L1'\nfrom . import schedule\n"}, "L1 imports upward from p.schedule (L2)"),
        (
            {"unit": "LAYER = 'L1'\ndef f():\n    from p.graph import Graph\n"},
            "L1 imports upward from p.graph",
        ),
        (
            {"unit": "LAYER = 'L1'\nimport typing\nif typing.TYPE_CHECKING:\n    import p.schedule\n"},
            "L1 imports upward from p.schedule",
        ),
        # the name comes from two levels below although the module asked stands one below
        (
            {
                "kernel": "LAYER = 'L4'\nfrom p.graph import Program\n",
                "graph": "LAYER = 'L3'\nfrom p.schedule import Program\nclass Graph: pass\n",
            },
            "p.kernel: L4 imports p.unit (L1), 3 levels below",
        ),
        ({"kernel": "LAYER = 'L4'\ndef f(address): pass\n"}, "L4 uses the word 'address'"),
        ({"kernel": "LAYER = 'L4'\nx.slot = 1\n"}, "L4 uses the word 'slot'"),
        ({"tensor": "LAYER = 'L5'\ndef pack(): pass\n"}, "L5 uses the word 'pack'"),
        ({"tensor": "LAYER = 'L5'\nx = 0x1000\n"}, "L5 holds the number 0x1000"),
        ({"graph": "LAYER = 'L3'\nbyte_order = 1\n"}, "L3 uses the word 'byte_order'"),
        ({"schedule": "LAYER = 'L2'\nx = 1 << 12\n"}, "L2 shifts by the literal 12"),
        ({"schedule": "LAYER = 'L2'\nx = g.ADDR_W\n"}, "L2 names the field width 'ADDR_W'"),
        ({"unit": "LAYER = 'L1'\nf(dst_x=1)\n"}, "L1 names 'dst_x', a coordinate or header field"),
    ],
)
def test_a_breach_is_noticed(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    """One broken rule gives a line that names the module and what is wrong."""
    found = checked(tmp_path, **changed)
    assert any(message in line for line in found), found


def test_literal_below_the_limit_passes(tmp_path: Path) -> None:
    assert checked(tmp_path, tensor="LAYER = 'L5'\nx = 0xFFF\ny = True\n") == []


def test_seam_and_exceptions(tmp_path: Path) -> None:
    """One seam passes, two do not; an exception that nothing needs any more fails."""
    upward = "LAYER = 'L1'\nfrom p.schedule import registry\n"
    seam = ("p.unit", "p.schedule")
    assert checked(tmp_path, layers.Rules(seams=frozenset({seam})), unit=upward) == []
    two = layers.Rules(seams=frozenset({seam, ("p.encode", "p.unit")}))
    found = checked(tmp_path, two, unit=upward)
    assert any("at most one" in line for line in found)
    assert any("p.encode: the exception for p.unit is used no more" in line for line in found)
    allowed = layers.Rules(words=frozenset({("p.kernel", "slot")}))
    assert checked(tmp_path, allowed, kernel="LAYER = 'L4'\nslot = 1\n", unit=CLEAN["unit.py"]) == []
    assert checked(tmp_path, allowed, kernel=CLEAN["kernel.py"], unit=CLEAN["unit.py"]) == [
        "p.kernel: the exception for slot is used no more"
    ]


def test_packages_that_meet_are_noticed(tmp_path: Path) -> None:
    for name, text in {"c": "import d.x\n", "d": "from c import y\n", "e": "import c\n"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(text)
    modules = layers.load({n: tmp_path / n for n in "cde"})
    assert layers.crossing(modules, "c", "d") == ["c: imports d.x", "d: imports c"]

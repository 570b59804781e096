# SPDX-License-Identifier: Apache-2.0
"""Finding benches: a broken file is reported, and stops nobody else."""

import dataclasses
import sys

import pytest

import benches
from kohakubench import machine_top
from kohakubench.bench import BenchError, discover, load, survey
from kohakubench.build import BuildError, build
from kohakubench.machines import machine_bench
from kohakutpu.mesh import find

pytestmark = pytest.mark.unit

BROKEN = {
    "broken_syntax": ("def (", "SyntaxError"),
    "broken_import": ("import no_such_module_at_all", "no_such_module_at_all"),
    "broken_name": (
        'from kohakubench import Bench\nBENCH = Bench(name="other", top="t", sources=[])',
        "declares bench 'other'",
    ),
}


@pytest.fixture
def broken_folder(tmp_path, monkeypatch):
    """Three unusable bench files beside the real ones."""
    for name, (text, _) in BROKEN.items():
        (tmp_path / f"{name}.py").write_text(text + "\n")
    monkeypatch.setattr(benches, "__path__", [*benches.__path__, str(tmp_path)])
    yield
    for name in BROKEN:
        sys.modules.pop(f"benches.{name}", None)


@pytest.mark.usefixtures("broken_folder")
def test_broken_files_stop_nobody_else():
    """The canary loads, the survey names each broken file and why, the strict form refuses."""
    assert load("canary").name == "canary"
    found, why = survey()
    assert {"canary", "router"} <= {b.name for b in found}
    assert set(BROKEN) <= set(why)
    for name, (_, reason) in BROKEN.items():
        assert f"tb/benches/{name}.py" in why[name]
        assert reason in why[name]
    with pytest.raises(BenchError, match="broken_import"):
        discover()


@pytest.mark.usefixtures("broken_folder")
@pytest.mark.parametrize("name", BROKEN)
def test_asking_for_a_broken_file_says_why(name):
    """The error names the file and the reason."""
    with pytest.raises(BenchError, match=f"tb/benches/{name}.py"):
        load(name)


def test_unknown_name_suggests():
    """A typing error gets the close names; a helper is no bench."""
    with pytest.raises(KeyError, match="did you mean canary"):
        load("canari")
    with pytest.raises(KeyError, match="no bench called 'mesh_tests'"):
        load("mesh_tests")


def test_only_the_asked_file_is_imported():
    """Loading one bench imports no other."""
    before = {m for m in sys.modules if m.startswith("benches.")}
    load("canary")
    assert {m for m in sys.modules if m.startswith("benches.")} - before <= {"benches.canary"}


def test_machine_bench_refuses_a_second_clock(tmp_path, monkeypatch):
    """The generated bench top drives one clock; a picture with another domain is named, not built wrongly."""
    two = tmp_path / "two.toml"
    two.write_text(find("mm_mesh").read_text() + 'unit.mg.clock = "fast"\n')
    with pytest.raises(ValueError, match=r"two.toml: unit.mg.clock = 'fast', but a machine bench drives one clock"):
        machine_top.write_top(str(two), tmp_path, checked=True)
    bench = dataclasses.replace(machine_bench("two_clocks", str(two)), module="benches.canary")
    monkeypatch.setattr("kohakubench.build.SIM_BUILD", tmp_path / "build")
    monkeypatch.setattr("kohakubench.build._generator_files", lambda bench: [])
    with pytest.raises(BuildError, match=r"two_clocks: two\.toml: unit\.mg\.clock"):
        build(bench)

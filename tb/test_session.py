# SPDX-License-Identifier: Apache-2.0
"""The live RTL session: the commands of the README, and the same program on both devices."""

import numpy as np
import pytest
from typer.testing import CliRunner

import ktpu
from kohakubench.session import RtlSession, SessionError
from kohakutpu.model.numerics import fp16_codes, product
from ktpu.cli import app

pytestmark = pytest.mark.system


def test_one_program_on_both_devices():
    """Several programs on one open device, byte-identical to the model and to the whole product."""
    rng = np.random.default_rng(5)
    machine = ktpu.machine("mm_mesh")
    model, rtl = ktpu.open("model:mm_mesh"), ktpu.open("rtl:mm_mesh", dram={"lat_min": 10, "lat_max": 60})
    try:
        for m, n, k in ((64, 64, 64), (20, 36, 96)):
            a, b = rng.standard_normal((m, k)), rng.standard_normal((n, k))
            program = ktpu.compile(ktpu.matmul(a, b), machine)
            (out,) = program.artifact.outputs
            images = []
            for device in (model, rtl):
                assert not device.run(program.artifact).failed
                images.append(device.read(out.address, out.nbytes))
            assert images[0] == images[1]
            got = ktpu.read_output(out, images[1]).view(np.uint16)
            _, whole = product(*(fp16_codes(x.astype(np.float16).astype(np.float64)) for x in (a, b)))
            np.testing.assert_array_equal(got, whole[:m, :n])
    finally:
        rtl.close()


def test_progress_is_reported_while_a_round_runs():
    """A long round calls back now and then, and reaches the same end."""
    rng = np.random.default_rng(6)
    machine = ktpu.machine("mm_mesh")
    a, b = rng.standard_normal((512, 512)), rng.standard_normal((256, 512))
    program = ktpu.compile(ktpu.matmul(a, b), machine)
    seen: list[tuple[int, int]] = []
    rtl = ktpu.open("rtl:mm_mesh", dram={"ideal": 1})
    try:
        result = rtl.run(program.artifact, progress=lambda r, c: seen.append((r, c)))
    finally:
        rtl.close()
    assert not result.failed
    assert seen
    assert all(c >= 0 for _, c in seen)


def test_the_commands_of_the_readme(tmp_path):
    """compile, show and replay on RTL end with AGREE and exit code 0."""
    runner = CliRunner()
    path = str(tmp_path / "gemm.ktpu")
    assert runner.invoke(app, ["compile", "300", "77", "100", "-o", path]).exit_code == 0
    shown = runner.invoke(app, ["show", path])
    assert "GEMM" in shown.output
    done = runner.invoke(app, ["replay", path, "--on", "rtl:mm_mesh"])
    assert done.exit_code == 0, done.output
    assert "AGREE" in done.output
    assert "0 differing bits" in done.output


@pytest.mark.parametrize(
    ("example", "options", "verdict"),
    [
        ("04_digits.py", ["--images", "96"], "0 of 7,104 result values differ"),
        ("03_fused_kernel.py", [], "0 of 1024 values differ"),
    ],
)
def test_examples_on_rtl(capsys, monkeypatch, example, options, verdict):
    """The example runs on model and RTL and finds no differing value."""
    import runpy

    from kohakubench.bench import ROOT

    monkeypatch.setattr("sys.argv", [example, "--on", "rtl:mm_mesh", *options])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")
    text = capsys.readouterr().out
    assert end.value.code == 0, text
    assert verdict in text


def test_unknown_machine_is_named():
    """The error lists the machines there are."""
    with pytest.raises(SessionError, match="mm_mesh_ext"):
        RtlSession("no_such_machine")

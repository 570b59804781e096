# SPDX-License-Identifier: Apache-2.0
"""Runs a bench and derives a verdict from what it left behind, not from an exit code."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from kohakubench import tools
from kohakubench.bench import ROOT, Bench
from kohakubench.build import SIM_BUILD, BuildError, Model, Options, build

__all__ = ["BuildError", "Case", "Request", "Verdict", "run"]


@dataclass(frozen=True)
class Request:
    """What to run and how."""

    variant: str | None = None
    testcase: str | None = None
    seed: int = 1
    slow: bool = False
    options: Options = field(default_factory=Options)
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One cocotb test of a run."""

    name: str
    status: str
    message: str
    sim_ns: float
    wall_s: float


@dataclass(frozen=True)
class Verdict:
    """Outcome of a run; ``failures`` is empty exactly if it passed."""

    bench: Bench
    request: Request
    model: Model
    cases: list[Case]
    compared: int
    failures: list[str]
    run_dir: Path
    wall_s: float

    @property
    def passed(self) -> bool:
        return not self.failures

    def reproduce(self) -> str:
        """The shell command that repeats this run with waves."""
        words = ["make", f"SIM={self.model.simulator}", f"TEST={self.bench.name}"]
        if self.request.variant:
            words.append(f"VARIANT={self.request.variant}")
        bad = [c.name for c in self.cases if c.status == "failed"]
        if bad:
            words.append(f"TESTCASE={bad[0]}")
        return shlex.join([*words, f"SEED={self.request.seed}", "WAVES=1"])


def _run_dir(bench: Bench, req: Request) -> Path:
    name = bench.name + (f"-{req.variant}" if req.variant else "")
    name += f"~{req.options.mutation}" if req.options.mutation else ""
    name += f"-{req.testcase}" if req.testcase else ""
    directory = SIM_BUILD / "runs" / f"{name}-s{req.seed}-{req.options.simulator}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def environment(bench: Bench, req: Request, run_dir: Path) -> dict[str, str]:
    """Environment of a simulator process that runs the cocotb tests of ``bench``."""
    import cocotb_tools.config as cc
    import find_libpython

    path = [str(ROOT / p) for p in ("tb", "compiler", "driver")]
    libpython = find_libpython.find_libpython()
    if libpython is None:
        raise BuildError(
            "no libpython found. Fix: apt-get install python3-dev, or use a Python built with --enable-shared"
        )
    env = dict(os.environ)
    env.update(
        PYTHONPATH=os.pathsep.join(path + [p for p in sys.path if p]),
        PYGPI_PYTHON_BIN=sys.executable,
        GPI_USERS=";".join([libpython, cc.pygpi_entry_point()]),
        COCOTB_TOPLEVEL=bench.top,
        COCOTB_TEST_MODULES=bench.module,
        TOPLEVEL_LANG="verilog",
        COCOTB_RESULTS_FILE=str(run_dir / "results.xml"),
        COCOTB_RANDOM_SEED=str(req.seed),
        COCOTB_TRUST_INERTIAL_WRITES="1",
        COCOTB_ANSI_OUTPUT="0",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",  # cocotb loads pytest for its assertions; its plugins cost start time
        KOHAKU_SEED=str(req.seed),
        KOHAKU_SLOW="1" if req.slow else "0",
        KOHAKU_CHECKS=str(run_dir / "checks.json"),
        KOHAKU_RUN_DIR=str(run_dir),
        KOHAKU_TIMEOUT_CYCLES=str(bench.timeout_cycles * (20 if req.slow else 1)),
    )
    env.update(req.env)
    env.pop("COCOTB_TEST_FILTER", None)
    wanted = [req.testcase] if req.testcase else []
    if req.options.mutation and not wanted:
        wanted = bench.mutation_tests.get(req.options.mutation, [])
    if wanted:
        env["COCOTB_TEST_FILTER"] = r"\.(" + "|".join(wanted) + r")(/|$)"
    return env


def _command(model: Model, run_dir: Path, waves: bool) -> list[str]:
    import cocotb_tools.config as cc

    if model.simulator == "icarus":
        vpi = cc.lib_entry("vpi", "icarus")
        return ["vvp", "-m", vpi, str(model.executable), "-fst" if waves else "-none"]
    suffix = tools.wave_format()
    trace = ["--trace", "--trace-file", str(run_dir / f"dump.{suffix}")] if waves else []
    return [str(model.executable), *trace]


def run(bench: Bench, request: Request | None = None, *, echo: bool = False) -> Verdict:
    """Build and run ``bench``.

    A missing or empty result file, a run that compared nothing, a crash and a
    time-out are failures like any other; none of them raises.

    Raises:
        BuildError: the model did not build.
        KeyError: unknown variant.
    """
    req = request or Request()
    started = time.monotonic()
    model = build(bench, req.variant, req.options)
    run_dir = _run_dir(bench, req)
    env = environment(bench, req, run_dir)
    env["KOHAKU_MODEL_DIR"] = str(model.directory)
    wall = bench.wall_s * (10 if req.slow else 1)
    code = _simulate(_command(model, run_dir, req.options.waves), run_dir, env, wall, echo)
    cases = _cases(run_dir / "results.xml")
    compared = _compared(run_dir / "checks.json")
    failures = _failures(bench, req, cases, compared, code, wall, run_dir)
    return Verdict(bench, req, model, cases, compared, failures, run_dir, time.monotonic() - started)


def _simulate(command: list[str], run_dir: Path, env: dict[str, str], wall: int, echo: bool) -> int | None:
    """Exit code of the simulator, or None when it was killed for taking too long."""
    deadline = time.monotonic() + wall
    with (run_dir / "sim.log").open("w", encoding="utf-8") as log:
        out = subprocess.PIPE if echo else log
        proc = subprocess.Popen(
            command, cwd=run_dir, env=env, stdout=out, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        try:
            if echo and proc.stdout:
                for line in proc.stdout:
                    log.write(line)
                    sys.stdout.write(line)
                    if time.monotonic() > deadline:
                        raise subprocess.TimeoutExpired(command, wall)
            return proc.wait(timeout=wall)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if proc.poll() is None:
                os.killpg(proc.pid, signal.SIGKILL)
                proc.wait()


def _cases(path: Path) -> list[Case]:
    if not path.exists() or path.stat().st_size == 0:
        return []
    try:
        root = ET.parse(path).getroot()
    except ET.ParseError:
        return []
    found = []
    for case in root.iter("testcase"):
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        skipped = case.find("skipped") is not None
        status = "failed" if bad is not None else "skipped" if skipped else "passed"
        message = ""
        if bad is not None:
            message = (bad.get("error_msg") or bad.get("message") or bad.text or "").strip()
        found.append(
            Case(
                case.get("name", "?"),
                status,
                message,
                _sim_ns(case),
                float(case.get("time") or 0),
            )
        )
    return found


def _sim_ns(case: ET.Element) -> float:
    props = {p.get("name"): p.get("value") for p in case.iter("property")}
    scale = {"fs": 1e-6, "ps": 1e-3, "ns": 1.0, "us": 1e3}[props.get("sim_time_unit") or "ns"]
    return float(props.get("sim_time_duration") or 0) * scale


def _compared(path: Path) -> int:
    try:
        return int(json.loads(path.read_text())["compared"])
    except (OSError, ValueError, KeyError):
        return 0


def _failures(
    bench: Bench, req: Request, cases: list[Case], compared: int, code: int | None, wall: int, run_dir: Path
) -> list[str]:
    log = run_dir / "sim.log"
    if code is None:
        return [f"killed after {wall} wall seconds; log: {log}"]
    bad = [f"{c.name}: {c.message}" for c in cases if c.status == "failed"]
    if bad:
        return bad
    if not cases:
        tail = "\n    ".join(log.read_text(errors="replace").splitlines()[-8:])
        what = f"no test {req.testcase!r} in {bench.module}" if req.testcase else "no results"
        return [f"{what}: the simulator ended with code {code} and left none; log: {log}\n    {tail}"]
    if all(c.status == "skipped" for c in cases):
        return ["every test was skipped"]
    if code:
        return [f"the simulator ended with code {code} although no test failed; log: {log}"]
    if compared == 0:
        return ["the run compared nothing"]
    return []

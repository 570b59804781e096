# SPDX-License-Identifier: Apache-2.0
"""Builds a bench's model, once per content: sources, parameters, flags and tool decide."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from kohakubench import tools
from kohakubench.bench import ROOT, Bench

SIM_BUILD = Path(os.environ.get("KOHAKU_SIM_BUILD", ROOT / "sim_build"))
INCLUDE = ROOT / "rtl" / "include"
LINT_WAIVERS = ROOT / "rtl" / "lint.vlt"

_FAST = ["-O3", "--x-assign", "fast", "--x-initial", "fast", "--output-split", "20000"]


class BuildError(RuntimeError):
    """The model did not build; the message holds the tool's first errors."""


@dataclass(frozen=True)
class Model:
    """A built model."""

    directory: Path
    executable: Path
    seconds: float
    cached: bool
    simulator: str


@dataclass(frozen=True)
class Options:
    """What changes the build besides the bench itself."""

    simulator: str = "verilator"
    waves: bool = False
    debug: bool = False
    coverage: bool = False
    mutation: str | None = None


def mutate(bench: Bench, name: str, into: Path, files: list[Path]) -> list[Path]:
    """Copy the mutated file to ``into`` and return the file list that uses it.

    Raises:
        BuildError: the old text does not stand exactly once in the file.
    """
    target, old, new = bench.mutations[name]
    source = ROOT / target
    text = source.read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise BuildError(
            f"mutation {name} of {bench.name}: {text.count(old)} places in {target} read {old!r}; exactly one is needed"
        )
    if source not in files:
        raise BuildError(f"mutation {name} of {bench.name}: {target} is not among its sources")
    into.mkdir(parents=True, exist_ok=True)
    copy = into / source.name
    copy.write_text(text.replace(old, new), encoding="utf-8")
    return [copy if f == source else f for f in files]


def _generator_files(bench: Bench) -> list[Path]:
    if bench.machine is None:
        return []
    from kohakutpu.mesh import find

    picture = find(bench.machine)
    mesh = sorted((ROOT / "compiler" / "kohakutpu" / "mesh").rglob("*.py"))
    return [picture, Path(__file__).with_name("machine_top.py"), *mesh]


def _machine_files(bench: Bench, directory: Path) -> list[Path]:
    """Generate the machine's top and the bench top around it."""
    if bench.machine is None:
        return []
    from kohakubench.machine_top import write_top
    from kohakutpu.mesh import find, generate

    out = directory / "machine"
    out.mkdir(parents=True, exist_ok=True)
    try:
        generate(find(bench.machine), out)
        write_top(bench.machine, out, checked=bench.checked, dram_params=bench.dram)
    except ValueError as err:
        raise BuildError(f"bench {bench.name}: {err}") from err
    return sorted(out.glob("*.v")) + sorted(out.glob("*.sv"))


def _digest(parts: list[str], files: list[Path]) -> str:
    h = hashlib.sha256()
    for part in parts:
        h.update(part.encode() + b"\0")
    for path in files:
        h.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()[:16]


def _vlt(bench: Bench) -> str:
    """Verilator control file: the few internals that Python reads."""
    lines = ["`verilator_config"]
    for item in bench.public:
        module, signal = item.rsplit(".", 1)
        lines.append(f'public_flat_rw -module "{module}" -var "{signal}"')
    return "\n".join(lines) + "\n"


def build(bench: Bench, variant: str | None = None, options: Options | None = None) -> Model:
    """Build (or find) the model of ``bench``.

    Safe to call from several processes at once: one builds, the others wait.

    Raises:
        BuildError: with the first errors of the tool.
        tools.ToolError: no usable simulator.
    """
    opt = options or Options()
    started = time.monotonic()
    label = bench.name + (f"-{variant}" if variant else "") + (f"~{opt.mutation}" if opt.mutation else "")
    SIM_BUILD.mkdir(exist_ok=True)
    files = bench.files()
    generator = _generator_files(bench) + ([ROOT / bench.program] if bench.program else [])
    tool = _tool_id(opt)
    params = bench.parameters(variant)
    key = _digest(
        [tool, bench.top, repr(sorted(params.items())), repr(sorted(bench.defines.items()))]
        + [repr(bench.public), repr(opt), repr(_FAST), repr((bench.checked, sorted(bench.dram.items())))]
        + ([repr(bench.mutations[opt.mutation])] if opt.mutation else []),
        files + generator + sorted(INCLUDE.glob("*.vh")) + [Path(__file__)],
    )
    directory = SIM_BUILD / "models" / f"{label}-{key}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    stamp = directory / "built.json"
    with FileLock(str(directory) + ".lock"):
        if stamp.exists():
            exe = Path(json.loads(stamp.read_text())["executable"])
            return Model(directory, exe, time.monotonic() - started, True, opt.simulator)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        if opt.mutation:
            files = mutate(bench, opt.mutation, directory / "mutated", files)
        files = files + _machine_files(bench, directory)
        if opt.simulator == "icarus":
            exe = _icarus(bench, params, files, directory, opt)
        else:
            exe = _verilate(bench, params, files, directory, opt)
        stamp.write_text(json.dumps({"executable": str(exe), "seconds": time.monotonic() - started}))
    return Model(directory, exe, time.monotonic() - started, False, opt.simulator)


def _tool_id(opt: Options) -> str:
    if opt.simulator == "icarus":
        if not shutil.which("iverilog"):
            raise tools.ToolError("SIM=icarus needs iverilog on PATH. Fix: apt-get install iverilog")
        out = subprocess.run(["iverilog", "-V"], capture_output=True, text=True, check=False).stdout
        return out.splitlines()[0]
    if opt.simulator != "verilator":
        raise tools.ToolError(f"SIM={opt.simulator} is not supported; choose verilator or icarus")
    return tools.verilator().version


def _verilate(bench: Bench, params: dict[str, int | str], files: list[Path], directory: Path, opt: Options) -> Path:
    import cocotb_tools.config as cc

    ver = tools.verilator()
    vlt = directory / "visible.vlt"
    vlt.write_text(_vlt(bench), encoding="utf-8")
    visibility = ["--public-flat-rw"] if opt.debug else ["--public-depth", "1", "--public-params", str(vlt)]
    command = [str(ver.program), "--cc", "--exe", "--vpi", "--timing", "--assert", "-Wno-fatal"]
    command += ["-Werror-UNOPTFLAT", "-Werror-LATCH", "-Werror-COMBDLY", "-Wno-TIMESCALEMOD"]
    command += ["-Wno-GENUNNAMED", "-Wno-DECLFILENAME", "-Wno-UNUSEDPARAM", "-Wno-UNUSEDSIGNAL"]
    command += ["--timescale", "1ns/1ps", "--top-module", bench.top, "--prefix", "Vtop"]
    command += ["-Mdir", str(directory / "obj"), "-o", "sim", *_FAST, *visibility]
    if opt.waves:
        command += [f"--trace-{tools.wave_format()}", "--trace-structs"]
    if opt.coverage:
        command += ["--coverage-line", "--coverage-user"]
    command += ["-CFLAGS", "-std=gnu++20"]
    command += ["-LDFLAGS", f"-Wl,-rpath,{cc.libs_dir} -L{cc.libs_dir} -lcocotbvpi_verilator"]
    command += [f"-I{INCLUDE}"]
    command += [f"-D{k}={v}" for k, v in bench.defines.items()]
    command += [f"-G{k}={v}" for k, v in params.items()]
    if LINT_WAIVERS.exists():
        command.append(str(LINT_WAIVERS))
    command += ["--language", "1800-2017"]
    own = ROOT / bench.program if bench.program else cc.share_dir / "lib" / "verilator" / "verilator.cpp"
    command += [str(own)]
    command += [str(f) for f in files]
    env = {**os.environ, **ver.env}
    if ver.makeflags:
        env["MAKEFLAGS"] = ver.makeflags
    cache = tools.ccache()
    if cache:
        env["OBJCACHE"] = cache
        env.setdefault("CCACHE_DIR", str(SIM_BUILD / "ccache"))
        env.setdefault("CCACHE_BASEDIR", str(directory))
        env.setdefault("CCACHE_NOHASHDIR", "1")
        env.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime")
    _run(command, directory, env, "verilate.log", bench)
    make = ["make", "-j", "2", "-C", str(directory / "obj"), "-f", "Vtop.mk", f"VM_TRACE={int(opt.waves)}"]
    make += ["OPT_FAST=-O2", "OPT_SLOW=-O0", "OPT_GLOBAL=-O1"]
    _run(make, directory, env, "compile.log", bench)
    return directory / "obj" / "sim"


def _icarus(bench: Bench, params: dict[str, int | str], files: list[Path], directory: Path, opt: Options) -> Path:
    exe = directory / "sim.vvp"
    plain = [str(f) for f in files if f.suffix == ".v"]
    (directory / "cmds.f").write_text("+timescale+1ns/1ps\n", encoding="utf-8")
    command = ["iverilog", "-g2012", "-o", str(exe), "-s", bench.top, "-f", str(directory / "cmds.f")]
    command += [f"-I{INCLUDE}", "-DKT_ICARUS"]
    if opt.waves:
        dump = directory / "kohaku_dump.v"
        dump.write_text(
            f'module kohaku_dump; initial begin $dumpfile("dump.fst"); $dumpvars(0, {bench.top}); end endmodule\n'
        )
        plain.append(str(dump))
        command += ["-s", "kohaku_dump"]
    command += [f"-D{k}={v}" for k, v in bench.defines.items()]
    command += [f"-P{bench.top}.{k}={v}" for k, v in params.items()]
    _run(command + plain, directory, dict(os.environ), "iverilog.log", bench)
    return exe


def _run(command: list[str], cwd: Path, env: dict[str, str], log: str, bench: Bench) -> None:
    path = cwd / log
    with path.open("w", encoding="utf-8") as f:
        code = subprocess.run(command, cwd=cwd, env=env, stdout=f, stderr=subprocess.STDOUT, check=False).returncode
    if code:
        text = path.read_text(encoding="utf-8", errors="replace")
        errors = [ln for ln in text.splitlines() if re.search(r"%Error|error:|Error ", ln)]
        shown = "\n  ".join((errors or text.splitlines()[-15:])[:15])
        raise BuildError(f"bench {bench.name} did not build ({Path(command[0]).name}):\n  {shown}\n  log: {path}")

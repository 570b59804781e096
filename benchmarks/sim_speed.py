# SPDX-License-Identifier: Apache-2.0
"""Simulation speed: a live session against a bare C++ loop over the same Verilated model.

    python benchmarks/sim_speed.py [--repeat 5]

Both run the compiled 256-cube from GO to the engine's interrupt. The figure that counts is the
ratio within one run of this command; the kHz depend on the machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

import ktpu
from kohakubench import tools
from kohakubench.dram import format_words
from kohakubench.host import encode_writes, entry_text
from kohakubench.session import RtlSession
from kohakudriver import Device

MACHINE = "mm_mesh"
HERE = Path(__file__).parent
RESULT = HERE / "results" / "sim_speed.json"


class Recorder:
    """A transport that notes the writes of a round and answers nothing else."""

    def __init__(self, inner: RtlSession) -> None:
        self.inner = inner
        self.batches: list[list[tuple[int, int]]] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def write64(self, writes: list[tuple[int, int]]) -> None:
        self.batches.append(list(writes))
        self.inner.write64(writes)


def compiled() -> object:
    """The 256-cube in one round."""
    rng = np.random.default_rng(256)
    a, b = rng.standard_normal((256, 256)), rng.standard_normal((256, 256)) / 16
    program = ktpu.compile(ktpu.matmul(a, b), ktpu.machine(MACHINE))
    assert len(list(program.artifact.rounds())) == 1
    return program


def build_bare(model_dir: Path, top: str) -> Path:
    """Link the bare loop against the objects of the session's model."""
    obj, out = model_dir / "obj", model_dir / "bare_loop"
    ver = tools.verilator()
    root = Path(
        ver.env.get("VERILATOR_ROOT")
        or subprocess.run(
            [str(ver.program), "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    objects = [str(p) for p in obj.glob("verilated*.o")] + [str(obj / "Vtop__ALL.a")]
    command = [
        "g++",
        "-O2",
        "-std=gnu++20",
        f"-DTOP_NAME={top}",
        f"-I{obj}",
        f"-I{root / 'include'}",
        f"-I{root / 'include' / 'vltstd'}",
        "-DVM_TRACE=0",
        str(HERE / "bare_loop.cpp"),
        *objects,
        "-pthread",
        "-latomic",
        "-o",
        str(out),
    ]
    subprocess.run(command, check=True)
    return out


def main() -> None:
    """Alternate both, print the ratio of the medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    repeat = parser.parse_args().repeat
    program = compiled()
    artifact = program.artifact
    (image_round,) = artifact.rounds()
    session = RtlSession(MACHINE, dram={"ideal": 1})
    recorder = Recorder(session)
    device = Device(recorder)
    bare = build_bare(session.model.directory, f"tb_{MACHINE}")
    session_khz, bare_khz = [], []
    for _ in range(repeat):
        session.reset()
        device.resync()
        device.load(artifact)
        recorder.batches.clear()
        begin = session.marks()["cycle"]
        device.run_round(image_round)
        batch = next(b for b in recorder.batches if len(b) > 100)
        # timed run: the same set-up, then GO alone
        session.reset()
        device.resync()
        session.write64(batch[:-1])
        begin = session.marks()["cycle"]
        start = time.perf_counter()
        session.write64(batch[-1:])
        session.wait_done(10_000_000)
        seconds = time.perf_counter() - start
        cycles = session.marks()["cycle"] - begin
        session_khz.append(cycles / seconds / 1e3)
        with tempfile.TemporaryDirectory() as folder:
            text = b"".join(b"@%x\n" % (i.address // 32) + format_words(i.data) for i in artifact.images)
            Path(folder, "dram_in.hex").write_bytes(text)
            Path(folder, "ops_setup.hex").write_text(entry_text(encode_writes(batch[:-1])))
            Path(folder, "ops_go.hex").write_text(entry_text(encode_writes(batch[-1:])))
            done = subprocess.run([str(bare)], cwd=folder, capture_output=True, text=True, check=True)
        n, s = done.stdout.split()
        bare_cycles = int(n)
        bare_khz.append(int(n) / float(s) / 1e3)
    device.close()
    result = {
        "machine": MACHINE,
        "workload": "256-cube, GO to interrupt",
        "cycles": cycles,
        "bare_cycles": bare_cycles,
        "session_khz": round(statistics.median(session_khz), 1),
        "bare_khz": round(statistics.median(bare_khz), 1),
        "ratio": round(statistics.median(session_khz) / statistics.median(bare_khz), 3),
        "repeat": repeat,
    }
    print(json.dumps(result, indent=1))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""The same call gives the same artifact, byte for byte, in every process (docs/spec/compiler.md 10.3)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import kernel_cases as kc
import ktpu

pytestmark = pytest.mark.unit

NAMES = (
    "matmul_64x256x64", "linear_bias_silu", "geglu_fused", "mlp_64x128x256x64", "attn_out_4x128", "softmax_8x128",
    "softmax_keys_77_of_256_shift_-100", "layernorm_wide_16x320", "flash_1x64x64_64_64_64",
    "flash_1x64x256_64_64_64_keys_77",
)  # fmt: skip
MACHINES = ("mm_mesh", "mm_store")
CODE = "import test_compile_digest as t; print(*t.digests(), sep='\\n')"


def digest(name: str, machine: str) -> str:
    """Of the artifact of an acceptance case."""
    case = next(c for c in kc.CASES if c.name == name)
    call = ktpu.call(case.kernel(), *case.draw().values(), **case.knobs)
    return ktpu.compile(call, ktpu.machine(machine)).artifact.digest()


def digests() -> list[str]:
    """Of all cases."""
    return [f"{machine} {name} {digest(name, machine)}" for machine in MACHINES for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_compiled_twice(name: str) -> None:
    """Whatever was compiled before: on another machine, the same kernel, or another."""
    first = digest(name, "mm_store")
    other = digest(name, "mm_mesh")
    digest("softmax_8x64", "mm_store")
    assert digest(name, "mm_store") == first
    assert digest(name, "mm_mesh") == other != first


def test_no_order_of_hashes_in_an_artifact() -> None:
    """Two processes that iterate over sets and hash strings in other orders."""
    found = []
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run([sys.executable, "-c", CODE], env=env, capture_output=True, text=True, check=True)
        found.append(done.stdout.splitlines())
    assert found[0] == found[1]
    assert len(set(found[0])) == len(MACHINES) * len(NAMES)

# SPDX-License-Identifier: Apache-2.0
"""Runs every bench of ``tb/benches``: one case per build, and one per mutation."""

import os
import shutil

import pytest

from kohakubench.bench import Bench, survey
from kohakubench.build import BuildError, Options
from kohakubench.run import Request, run

FOUND, BROKEN = survey()


def _cases():
    for bench in FOUND:
        tier = getattr(pytest.mark, bench.tier)
        for variant in (None, *bench.variants):
            marks = [tier]
            if variant in bench.slow_variants:
                marks.append(pytest.mark.slow)
            name = bench.name + (f"-{variant}" if variant else "")
            yield pytest.param(bench, variant, id=name, marks=marks)


def _mutations():
    for bench in FOUND:
        for name in bench.mutations:
            yield pytest.param(bench, name, id=f"{bench.name}-{name}")


@pytest.mark.unit
def test_every_bench_file_loads() -> None:
    """A file that does not import is reported here and stops no other bench."""
    assert not BROKEN, "\n".join(BROKEN.values())


@pytest.mark.parametrize(("bench", "variant"), list(_cases()))
def test_bench(bench: Bench, variant: str | None) -> None:
    """The bench compares everything it set out to compare and finds no difference."""
    verdict = run(
        bench,
        Request(
            variant,
            seed=int(os.environ.get("SEED", "1")),
            slow=os.environ.get("SLOW", "0") not in ("", "0"),
            options=Options(simulator=os.environ.get("SIM", "verilator")),
        ),
    )
    assert verdict.passed, "\n".join([*verdict.failures, f"reproduce: {verdict.reproduce()}"])


@pytest.mark.mutation
@pytest.mark.parametrize(("bench", "mutation"), list(_mutations()))
def test_mutation(bench: Bench, mutation: str) -> None:
    """The bench notices the fault that was put in on purpose."""
    try:
        verdict = run(bench, Request(options=Options(mutation=mutation)))
    except BuildError as err:
        pytest.fail(f"a mutation has to build, or it proves nothing: {err}")
    # models are tens of megabytes: several hundred mutants would fill a small disk
    shutil.rmtree(verdict.model.directory, ignore_errors=True)
    assert not verdict.passed, f"mutation {mutation} of {bench.name} went unnoticed"

# SPDX-License-Identifier: Apache-2.0
"""The first differing instruction of a replay: cut programs are legal, and the boundary is the right one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ktpu
from kohakuabi import Artifact
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed
from kohakubench.programs import description, device, operands, spec
from kohakudriver import Device
from kohakutpu.isa import cluster
from kohakutpu.model.transport import ModelTransport
from ktpu import cli
from ktpu.bisect import Boundary, acts, bisect, cut, first
from ktpu.diagnosis import places
from ktpu.replay import replay

pytestmark = pytest.mark.unit


def product(budget: int = 16) -> Artifact:
    call = ktpu.matmul(*operands(45, 30, 60), gm=2, gn=2, nk=1)
    return ktpu.compile(call, spec(description()), pass_budget=budget).artifact


class Wrong:
    """The model with one instruction replaced wherever it stands."""

    def __init__(self, right: int, wrong: int) -> None:
        self.inner = ModelTransport(description())
        self.right, self.wrong = right, wrong

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def write64(self, writes: Sequence[tuple[int, int]]) -> None:
        words = [(self.right >> 64 * i & (1 << 64) - 1, self.wrong >> 64 * i & (1 << 64) - 1) for i in range(4)]
        out = list(writes)
        for i in range(len(out) - 3):
            if [v for _, v in out[i : i + 4]] == [a for a, _ in words]:
                out[i : i + 4] = [(a, w) for (a, _), (_, w) in zip(out[i : i + 4], words, strict=True)]
        self.inner.write64(out)


def narrowed(art: Artifact, transport: Any) -> Boundary | None:
    """Replay against fresh copies of a faulty device and bisect."""

    def rerun(part: Artifact) -> Any:
        part.check()
        return replay(part, device(description()), Device(transport()))

    report = rerun(art)
    assert report.findings()
    return bisect(report, rerun)


def boundary(art: Artifact, transport: Any) -> Boundary:
    found = narrowed(art, transport)
    assert found is not None
    return found


def last_of(art: Artifact) -> Any:
    *_, r = art.rounds()
    return places(r)[-1]


def test_first() -> None:
    """Every boundary of every range, in no more probes than a binary search needs."""
    for high in range(1, 40):
        for at in range(1, high + 1):
            asked: list[int] = []

            def differs(n: int, at: int = at, asked: list[int] = asked) -> bool:
                asked.append(n)
                return n >= at

            assert first(0, high, differs) == at
            assert len(asked) <= (high - 1).bit_length()


@pytest.mark.parametrize("number", [0, 5, 11])
def test_wrong_instruction_in_any_round(number: int) -> None:
    """One store goes to a wrong address: exactly this instruction, in its round, is named."""
    art = product()
    stores = [p for p in art.payloads if cluster.decode(p)["emit"]]
    assert len(stores) > 11
    right = stores[number]
    f = cluster.decode(right)
    wrong = cluster.encode("GEMM", **{k: v for k, v in f.items() if k != "op"} | {"addr": f["addr"] ^ 32})
    found = boundary(art, lambda: Wrong(right, wrong))
    assert last_of(found.artifact).payload == right
    assert found.where == last_of(found.artifact).text()
    total = len(art.payloads)
    assert found.runs <= 3 + total.bit_length()
    assert len(found.artifact.payloads) == art.payloads.index(right) + 1
    assert found.report.findings()
    *_, r = found.artifact.rounds()
    kick = acts(r)[-1]
    assert isinstance(kick, Kick)
    if kick.n > 1:
        shorter = cut(found.artifact, r.index, len(acts(r)), kick.n - 1)
        assert replay(shorter, device(description()), Device(Wrong(right, wrong))).agree


def test_wrong_operand_is_found_where_it_shows() -> None:
    """A fill from a wrong address shows in the first store that uses it, not in the last one of the round."""
    art = product(128)
    fills = [p for p in art.payloads if cluster.disasm(p).startswith("FILL")]
    right = fills[0]
    f = cluster.decode(right)
    wrong = cluster.encode("FILL", **{k: v for k, v in f.items() if k != "op"} | {"addr": f["addr"] + 4096})
    found = boundary(art, lambda: Wrong(right, wrong))
    end = last_of(found.artifact)
    assert art.payloads.index(right) < len(found.artifact.payloads) - 1 < len(art.payloads) - 1
    assert cluster.decode(end.payload)["emit"], found.where


def test_difference_before_the_first_instruction() -> None:
    """An operand that never arrived right."""
    art = product()

    class Damaged(ModelTransport):
        def mem_read(self, address: int, n: int) -> bytes:
            data = bytearray(super().mem_read(address, n))
            at = art.images[0].address
            if address <= at < address + n:
                data[at - address] ^= 1
            return bytes(data)

    found = boundary(art, lambda: Damaged(description()))
    assert found.where == "before the first step of round 0"
    assert found.artifact.payloads == ()
    assert found.report.findings()


def test_difference_that_does_not_come_back() -> None:
    """No boundary is invented for a difference that a second run does not show."""
    art = product()
    lies = iter([True] + [False] * 100)

    def rerun(part: Artifact) -> Any:
        report = replay(part, device(description()), device(description()))
        if next(lies):
            report.rounds[0].findings.append(object())  # type: ignore[arg-type]
        return report

    assert bisect(rerun(art), rerun) is None


A, B, C = (1, 1), (2, 1), (3, 1)
ROUND = (
    Seed(8),
    Await(*C, 2),
    Await(*A, 1),
    Kick(*A, 2, 3),
    Kick(*B, 0, 2),
    Await(*B, 2),
    Move(((0x10, 1), (0x00, 1 << 16))),
    Kick(*A, 5, 1),
    Await(*A, 4),
)


def program() -> Artifact:
    """Two rounds; in the second, kicks out of slot order, a move, and acknowledgements of another node."""
    steps = (Seed(2), Kick(*B, 0, 1), Await(*B, 1), Barrier(), *ROUND)
    limits = {"stage_flits": 128, "ncmd": 128, "credit_max": 32}
    meta = {"acknowledging": [list(A), list(C)]}
    return Artifact("m", "h", tuple(range(100, 107)), (), steps, limits=limits, meta=meta)


HEAD = ROUND[:3]
EARLIER = (Seed(2), Kick(*B, 0, 1), Await(*B, 1), Barrier())


@pytest.mark.parametrize(
    ("keep", "instructions", "steps", "payloads"),
    [
        (0, None, HEAD, []),
        (1, None, (*HEAD, Kick(*A, 0, 3), Await(*A, 3)), [103, 104, 105]),
        (1, 2, (*HEAD, Kick(*A, 0, 2), Await(*A, 2)), [103, 104]),
        (
            2,
            1,
            (*HEAD, Kick(*A, 0, 3), Kick(*B, 3, 1), Await(*A, 3), Await(*B, 1)),
            [103, 104, 105, 101],
        ),
        (
            3,
            None,
            (*HEAD, Kick(*A, 0, 3), Kick(*B, 3, 2), Await(*B, 2), ROUND[6], Await(*A, 3)),
            [103, 104, 105, 101, 102],
        ),
        (
            4,
            None,
            (*HEAD, Kick(*A, 0, 3), Kick(*B, 3, 2), Await(*B, 2), ROUND[6], Kick(*A, 5, 1), Await(*A, 4)),
            [103, 104, 105, 101, 102, 106],
        ),
    ],
)
def test_cut_by_hand(
    keep: int, instructions: int | None, steps: tuple[object, ...], payloads: list[int]
) -> None:
    """Steps and payloads of cuts of a round with every kind of step, and all of them legal."""
    part = cut(program(), 1, keep, instructions)
    part.check()
    assert part.steps == EARLIER + steps
    assert list(part.payloads) == [100, *payloads]


def test_cut_of_the_first_round_drops_the_others() -> None:
    part = cut(program(), 0, 1)
    assert part.steps == EARLIER[:-1]
    assert part.payloads == (100,)


def test_every_cut_of_a_program_runs() -> None:
    """Every prefix is accepted and agrees on two equal devices."""
    art = product(24)
    r = list(art.rounds())[1]
    for keep, step in enumerate(acts(r), 1):
        assert isinstance(step, Kick)
        for n in range(1, step.n + 1):
            part = cut(art, 1, keep, n)
            part.check()
            assert replay(part, device(description()), device(description())).agree


def test_command_bisects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command names the instruction, stores the short program and prints what repeats it."""
    runner = CliRunner()
    file = tmp_path / "p.ktpu"
    assert runner.invoke(cli.app, ["compile", "20", "12", "40", "-o", str(file), "--tiling", "2,2,1"]).exit_code == 0
    art = Artifact.load(file)
    stores = [p for p in art.payloads if cluster.decode(p)["emit"]]
    right = stores[len(stores) // 2]
    f = cluster.decode(right)
    wrong = cluster.encode("GEMM", **{k: v for k, v in f.items() if k != "op"} | {"addr": f["addr"] ^ 32})
    real = ktpu.devices.open
    opened: list[str] = []

    def open_device(target: str, **options: object) -> Device:
        opened.append(target)
        if len(opened) % 2:  # the tested device of every pair
            transport = Wrong(right, wrong)
            transport.inner = real(target, **options).transport  # type: ignore[assignment]
            return Device(transport)
        return real(target, **options)

    monkeypatch.setattr(ktpu, "open", open_device)
    done = runner.invoke(cli.app, ["replay", str(file), "--on", "model:mm_mesh"])
    text = " ".join(done.output.split())
    assert done.exit_code == 1, text
    short = tmp_path / "p.first.ktpu"
    assert " ".join(f"runs): {places(next(art.rounds()))[art.payloads.index(right)].text()}".split()) in text
    assert Artifact.load(short).payloads == art.payloads[: art.payloads.index(right) + 1]
    assert f"reproduce with waves: ktpu replay {short} --on model:mm_mesh --seed 1 --waves" in text.replace("- ", "-")
    short.unlink()
    done = runner.invoke(cli.app, ["replay", str(file), "--on", "model:mm_mesh", "--no-bisect"])
    assert done.exit_code == 1
    assert "first difference" not in done.output
    assert not short.exists()

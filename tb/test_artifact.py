# SPDX-License-Identifier: Apache-2.0
"""The program file: both forms, and everything it must refuse (docs/spec/compiler.md 10.3)."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ktpu
from kohakuabi import (
    Artifact,
    ArtifactError,
    Await,
    Barrier,
    Image,
    Kick,
    Move,
    Output,
    Seed,
    first_conflict,
)
from kohakuabi.files import MAGIC
from kohakubench.programs import description, operands, spec

pytestmark = pytest.mark.unit


@cache
def good() -> Artifact:
    """A compiled product of three rounds."""
    call = ktpu.matmul(*operands(48, 32, 64), gm=2, gn=2, nk=1)
    art = ktpu.compile(call, spec(description()), pass_budget=16).artifact
    assert sum(isinstance(s, Barrier) for s in art.steps) >= 2
    return art


small = st.integers(0, 1 << 20)
names = st.text(max_size=8)
steps = st.one_of(
    st.builds(Seed, small),
    st.builds(Kick, small, small, small, small),
    st.builds(Await, small, small, small),
    st.builds(Move, st.lists(st.tuples(small, st.integers(0, (1 << 64) - 1)), max_size=4).map(tuple)),
    st.just(Barrier()),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 60), 1 << 60) | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
artifacts = st.builds(
    Artifact,
    machine=names,
    machine_hash=names,
    payloads=st.lists(st.integers(0, (1 << 256) - 1), max_size=5).map(tuple),
    images=st.lists(
        st.builds(Image, st.integers(0, (1 << 40) - 1), st.binary(max_size=70), names), max_size=3
    ).map(tuple),
    steps=st.lists(steps, max_size=8).map(tuple),
    outputs=st.lists(
        st.builds(Output, names, small, small, names, st.lists(small, max_size=3).map(tuple)), max_size=2
    ).map(tuple),
    limits=st.dictionaries(names, small, max_size=3),
    meta=st.dictionaries(names, json_values, max_size=4),
)


@settings(max_examples=40, deadline=None)
@given(artifacts)
def test_round_trip(art: Artifact) -> None:
    """Both forms give back an equal artifact, whatever its contents; the digest follows the content."""
    assert Artifact.from_json(art.to_json()) == art
    assert Artifact.from_bytes(art.to_bytes()) == art
    assert Artifact.from_bytes(art.to_bytes()).digest() == art.digest()
    assert replace(art, machine=art.machine + "x").digest() != art.digest()


@pytest.mark.parametrize("name", ["p.json", "p.ktpu"])
def test_save_and_load(tmp_path: Path, name: str) -> None:
    """A compiled program survives either file form and is fit to run."""
    good().save(tmp_path / name)
    loaded = Artifact.load(tmp_path / name)
    assert loaded == good()
    assert list(loaded.rounds()) == list(good().rounds())
    assert (tmp_path / name).read_bytes().startswith(MAGIC) == (name == "p.ktpu")


def test_rounds_slice_the_payloads() -> None:
    """Slot s of a round is payload first + s; all rounds together are all payloads."""
    rounds = list(good().rounds())
    assert [r.index for r in rounds] == list(range(len(rounds)))
    assert tuple(p for r in rounds for p in r.payloads) == good().payloads
    assert all(not isinstance(s, Barrier) for r in rounds for s in r.steps)
    assert [good().cycles(r.index) > 0 for r in rounds] == [True] * len(rounds)
    assert good().cycles(99) == 0


def changed(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda head: head.__setitem__(key, value)


def without(key: str) -> Callable[[dict[str, Any]], None]:
    return lambda head: head.__delitem__(key)


DAMAGE = [
    (changed("tag", "kohakutpu-artifakt"), "tag is 'kohakutpu-artifakt'"),
    (changed("version", 2), "version 2 is unknown; this build reads 1"),
    (changed("version", "1"), "version '1' is unknown"),
    (without("tag"), "tag is None"),
    (without("steps"), "field steps is NoneType, expected list"),
    (without("machine_hash"), "field machine_hash is NoneType"),
    (changed("meta", []), "field meta is list, expected dict"),
    (changed("limits", {"ncmd": "x"}), "field ncmd is str"),
    (
        changed("steps", [["jump", 1]]),
        r"field steps\[0\] is malformed: ValueError: \['jump', 1\] is not a step",
    ),
    (changed("steps", [["seed", 1, 2]]), r"steps\[0\] is malformed"),
    (changed("steps", [["seed", "1"]]), r"steps\[0\] is malformed"),
    (changed("outputs", [{"name": "c"}]), r"outputs\[0\] is malformed: KeyError: 'address'"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[m for _, m in DAMAGE])
def test_damaged_header(damage: Callable[[dict[str, Any]], None], message: str) -> None:
    """Either form refuses a corrupted field and names it."""
    head = json.loads(good().to_json())
    damage(head)
    with pytest.raises(ArtifactError, match=message):
        Artifact.from_json(json.dumps(head))
    raw = good().to_bytes()
    (length,) = struct.unpack_from("<I", raw, 8)
    head = json.loads(raw[12 : 12 + length])
    damage(head)
    text = json.dumps(head).encode()
    with pytest.raises(ArtifactError, match=message):
        Artifact.from_bytes(MAGIC + struct.pack("<I", len(text)) + text + raw[12 + length :])


def test_damaged_json_payloads_and_images() -> None:
    head = json.loads(good().to_json())
    for key, value, message in (
        ("payloads", ["xyz"], r"payloads\[0\] is malformed"),
        ("images", [{"address": 0, "name": "", "data": "0"}], r"images\[0\] is malformed"),
        ("images", [{"address": 0, "data": "00"}], r"images\[0\] is malformed: KeyError: 'name'"),
    ):
        with pytest.raises(ArtifactError, match=message):
            Artifact.from_json(json.dumps({**head, key: value}))


def test_every_truncation_is_refused() -> None:
    """A file cut anywhere, or with a byte too many, never loads."""
    raw = good().to_bytes()
    for n in [*range(0, 16), *range(16, len(raw), 97), len(raw) - 1]:
        with pytest.raises(ArtifactError):
            Artifact.from_bytes(raw[:n])
    with pytest.raises(ArtifactError, match=f"holds {len(raw) + 1} bytes, its header says {len(raw)}"):
        Artifact.from_bytes(raw + b"\0")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[]", b"KTPUART2....", b"null"])
def test_foreign_files(tmp_path: Path, content: bytes) -> None:
    """Anything else is refused with the file's name."""
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ArtifactError, match=str(tmp_path / "f")):
        Artifact.load(tmp_path / "f")


def test_load_checks(tmp_path: Path) -> None:
    """A well-formed file that must not run is refused on loading."""
    bad = replace(good(), payloads=good().payloads[:-1])
    bad.save(tmp_path / "bad.ktpu")
    with pytest.raises(ArtifactError, match=r"bad\.ktpu: kicks cover"):
        Artifact.load(tmp_path / "bad.ktpu")


# -- what must not run --

KICK = (Seed(32), Kick(2, 1, 0, 2), Await(2, 1, 2))


def program(*steps: Any, payloads: int = 2, **more: Any) -> Artifact:
    limits = {"stage_flits": 128, "ncmd": 20, "credit_max": 32}
    fields = {"images": (), "limits": limits, **more}
    return Artifact("m", "h", tuple(range(payloads)), steps=steps, **fields)


def test_smallest_program_is_accepted() -> None:
    program(*KICK).check("h")
    program(payloads=0).check()
    program(Await(1, 0, 3), *KICK, meta={"acknowledging": [[1, 0]]}).check()


REFUSED = [
    (program(*KICK), "other", "compiled for machine m (h), the target is other"),
    (program(*KICK, payloads=3), None, "kicks cover 2 payloads, the artifact holds 3"),
    (program(Seed(32), Kick(2, 1, -1, 2), Await(2, 1, 2)), None, "round 0: kick of 2 payloads from slot -1"),
    (program(Seed(32), Kick(2, 1, 0, 0), Await(2, 1, 2)), None, "kick of 0 payloads"),
    (program(Seed(32), Kick(2, 1, 127, 2), Await(2, 1, 2)), None, "from slot 127; there are 128 staging"),
    (program(Seed(32), Kick(2, 1, 1, 2), Await(2, 1, 2)), None, "no program uses slot 0"),
    (
        program(Seed(32), Kick(2, 1, 0, 2), Kick(2, 1, 1, 2), Await(2, 1, 4)),
        None,
        "slot 1 belongs to two programs",
    ),
    (program(Seed(32), Kick(16, 1, 0, 2), Await(16, 1, 2)), None, "kick of node (16,1)"),
    (program(*KICK[1:]), None, "0 credit seeds"),
    (program(Seed(9), *KICK), None, "2 credit seeds"),
    (program(KICK[1], KICK[0], KICK[2]), None, "before its first kick"),
    (program(Seed(33), *KICK[1:]), None, "credit seed 33 is not in 1..32"),
    (program(Seed(1), *KICK[1:]), None, "1 programs with a credit of 1"),
    (program(*KICK[:2]), None, "node (2,1) is kicked but never awaited"),
    (program(*KICK[:2], Await(2, 1, 1)), None, "count 1, but 2 instructions are kicked there"),
    (program(*KICK[:2], Await(2, 1, 0)), None, "count 0 is not in 1..65535"),
    (program(*KICK[:2], Await(2, 1, 1), Await(2, 1, 1)), None, "count 1, but 2"),
    (program(*KICK, Await(2, 1, 2)), None, "awaits a node once"),
    (program(*KICK, Await(3, 1, 1)), None, "await on node (3,1), which nothing kicked"),
    (program(*KICK, Await(1, 0, 1), meta={"acknowledging": [[1, 0]]}), None, "before the first kick"),
    (program(Await(2, 1, 2)), None, "which nothing kicked"),
    (
        program(*KICK, limits={"stage_flits": 128, "ncmd": 7, "credit_max": 32}),
        None,
        "8 commands exceed the 7",
    ),
    (program(*KICK, limits={"stage_flits": 1, "ncmd": 20, "credit_max": 32}), None, "there are 1 staging"),
    (program(*KICK, limits={"stage_flits": 128, "credit_max": 32}), None, "limits: ncmd is None"),
    (program(*KICK, Barrier(), *KICK, Await(9, 9, 1), payloads=4), None, "round 1: await on node (9,9)"),
    (replace(program(*KICK), payloads=(1, 1 << 256)), None, "payload 1 = 0x1"),
    (replace(program(*KICK), payloads=(1, -1)), None, "payload 1 = -0x1 does not fit"),
    (program(*KICK, images=(Image(16, b"", "x"),)), None, "image x: 0 bytes at 0x10"),
    (program(*KICK, images=(Image((1 << 40) - 32, bytes(33), "x"),)), None, "within 40 bits"),
    (program(*KICK, outputs=(Output("c", 8, 32, "flat", (1,)),)), None, "result c: 32 bytes at 0x8"),
    (
        program(*KICK, images=(Image(0, bytes(64), "a"), Image(32, b"\1" * 32, "b"))),
        None,
        "images a and b put different bytes at 0x20",
    ),
]


@pytest.mark.parametrize(("art", "target", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_refused(art: Artifact, target: str | None, message: str) -> None:
    """Every way not to run, with round, value and limit in the message."""
    with pytest.raises(ArtifactError) as caught:
        art.check(target)
    assert message in str(caught.value)


# mostly equal bytes, so that images often overlap without a conflict
agreeable = st.lists(st.sampled_from([0] * 9 + [1]), max_size=30).map(bytes)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), agreeable), max_size=5))
def test_conflicts_against_a_byte_map(parts: list[tuple[int, bytes]]) -> None:
    """Two images conflict exactly if some byte would be written with two values."""
    images = [Image(a, d, str(i)) for i, (a, d) in enumerate(parts)]
    seen: dict[int, set[int]] = {}
    for i in images:
        for n, byte in enumerate(i.data):
            seen.setdefault(i.address + n, set()).add(byte)
    clash = {a for a, v in seen.items() if len(v) > 1}
    found = first_conflict(images)
    assert (found is None) == (not clash)
    if found:
        a, b, at = found
        assert at in clash
        assert a.data[at - a.address] != b.data[at - b.address]


def test_conflict_behind_an_agreeing_image() -> None:
    """The third image agrees with its neighbour and conflicts with the long one below both."""
    images = [
        Image(0, bytes(100), "long"),
        Image(10, bytes(10), "short"),
        Image(15, bytes(10) + b"\1", "third"),
    ]
    found = first_conflict(images)
    assert found is not None
    assert (found[0].name, found[1].name, found[2]) == ("long", "third", 25)

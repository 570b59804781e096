# SPDX-License-Identifier: Apache-2.0
"""Control programs and moves as text, down to the fields of every register."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from kohakuabi import Await, Kick, Move, Seed, build_round
from kohakutpu.isa import address, control, generated, mover, registers
from kohakutpu.isa.codec import codec
from kohakutpu.walks import contiguous

pytestmark = pytest.mark.unit

OPS = {"WR": generated.OP_WR, "POLL": generated.OP_POLL, "DONE": generated.OP_DONE}
MOVE = mover.transform(contiguous(0x10_0000, 24), contiguous(address.staging(0), 3, 128), mover.QUANTISE, 1)


def test_a_round_as_text() -> None:
    """Every command of a round with a move, as the driver uploads it."""
    steps = (Seed(4), Kick(2, 1, 0, 5), Await(2, 1, 5), Move(MOVE))
    fields = []
    for c in build_round(steps, {}, code=7):
        at = registers.host_address(c.register, c.index) if c.register else 0
        fields.append((OPS[c.op], at, c.data, c.mask))
    lines = control.disasm_program([*fields, (1, 0, 0, 0)])
    assert [line[4:] for line in lines] == [
        "WR PROG_CRED credit=4",
        "POLL PROG_STAT mask=0x1 want=0x0",
        "WR PROG_DST dst_y=1 dst_x=2",
        "WR PROG_BASE 0",
        "WR PROG_LEN len=5",
        "WR PROG_KICK prog_kick=1",
        "POLL NODE_STATUS[18] mask=0xffff01 want=0x501",
        *(f"WR {line}" if " " in line else f"WR {line} 0" for line in mover.disasm(MOVE)),
        "POLL AUX_STAT mask=0x1 want=0x0",
        "DONE 7",
    ]
    assert [int(line[:3]) for line in lines] == list(range(len(lines)))


def test_places() -> None:
    assert control.place(0x28) == "ENG_POLL_LIMIT"
    assert control.place(0x1000_0000 + 0x0850) == "MV_GATHER"
    assert control.place(0x1002_0000 + 0x1090) == "mesh 2 NODE_STATUS[18]"
    assert control.place(0x1002_0000 + 0x1090, mesh=2) == "NODE_STATUS[18]"
    for at in (0x2000, 0x1000_0000 + 0x1800, 0x1004_0000, 0x9999_9999):
        assert control.place(at) is None
    assert control.disasm((1, 0x2000, 5, 0)) == "WR 0x2000 0x5"
    assert control.disasm((9, 0x10, 5, 6)) == ".command 9 0x10 0x5 0x6"


def test_every_field_of_a_move_is_shown() -> None:
    """The text of a register write holds every field that is not zero, so it encodes back."""
    rng = random.Random(4)
    for offset in generated.MoverOffset:
        name = f"MV_{offset.name}"
        for _ in range(200):
            value = rng.getrandbits(64) & rng.getrandbits(64)
            (line,) = mover.disasm([(int(offset), value)])
            head, *words = line.split(" ")
            fields = {w.split("=")[0]: int(w.split("=")[1], 0) for w in words}
            assert head == name
            assert codec(name).encode(**fields) == value
    assert mover.disasm([(0x48, 3)]) == [".write 0x48 0x3"]


def test_examples_of_the_table_page() -> None:
    """The generated page lists the example moves and the adapter's registers."""
    root = Path(__file__).resolve().parents[1]
    text = (root / "docs/spec/tables/memory.md").read_text()
    examples = json.loads((root / "spec/memory.json").read_text())["mover_examples"]
    rows = re.findall(r"^\| `MV_(\w+)` \| `0x(\w{16})` \|$", text, re.MULTILINE)
    assert rows == [(name, value) for e in examples for name, value in e["writes"]]
    for name, (index, access, reset) in generated.AD_REGISTERS.items():
        assert f"| 0x{index:02X} | `{name.removeprefix('AD_')}` | {access} | 0x{reset:016X} |" in text

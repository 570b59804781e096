# SPDX-License-Identifier: Apache-2.0
"""From a differing memory word or signal to step, instruction, unit, cycle, flit and bit."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakuabi import Artifact
from kohakuabi.artifact import Round
from kohakuabi.steps import Kick
from kohakutpu.isa import cluster, explain_fault
from kohakutpu.isa.message import disasm as disasm_flit
from kohakutpu.schedule.layout import Tile, from_key

WORD = 32
FIRST_BITS = 6
LAST_FLITS = 6
_OP_GEMM, _OP_DRAIN = 2, 3


@dataclass(frozen=True)
class Place:
    """An instruction of a round: its step, kick, position and node."""

    round: int
    kick: int
    position: int
    node: tuple[int, int]
    payload: int

    def text(self) -> str:
        """Step and disassembly on one line."""
        return (
            f"round {self.round}, kick {self.kick} to node ({self.node[0]},{self.node[1]}), "
            f"instruction {self.position}: {cluster.disasm(self.payload)}"
        )


@dataclass
class Finding:
    """One difference, told from the outside in."""

    what: str
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join([self.what, *(f"  {line}" for line in self.lines)])


def places(r: Round) -> list[Place]:
    """Every instruction of a round in dispatch order."""
    out = []
    kicks = [s for s in r.steps if isinstance(s, Kick)]
    positions: dict[tuple[int, int], int] = {}
    for number, kick in enumerate(kicks):
        node = (kick.x, kick.y)
        for i in range(kick.n):
            at = positions.get(node, 0)
            positions[node] = at + 1
            out.append(Place(r.index, number, at, node, r.payloads[kick.base + i]))
    return out


def written_span(payload: int) -> tuple[int, int] | None:
    """Bytes [first, end) of memory an instruction writes, None if it writes none."""
    f = cluster.decode(payload)
    if f["dnode"]:
        return None
    if f["op"] == _OP_GEMM and f["emit"]:
        words = (f["gm"] or 1) * (f["gn"] or 1)
    elif f["op"] == _OP_DRAIN and not f["fuse"]:
        words = f["n"] or 1
    else:
        return None
    return f["addr"], f["addr"] + WORD * words


def writer_of(r: Round, address: int) -> Place | None:
    """The last instruction of the round that writes the word at ``address``."""
    found = None
    for place in places(r):
        span = written_span(place.payload)
        if span and span[0] <= address < span[1]:
            found = place
    return found


def element_of(artifact: Artifact, address: int) -> str | None:
    """Which result elements the word at ``address`` holds."""
    for o in artifact.outputs:
        if o.address <= address < o.address + o.nbytes:
            order = from_key(o.layout)
            if isinstance(order, Tile):
                row, col = order.locate((address - o.address) // WORD)
                return f"{o.name}[{row}:{row + 4}, {col}:{col + 4}] of shape {list(o.shape)}"
            return f"{o.name} at byte {address - o.address}"
    return None


def memory_difference(
    artifact: Artifact,
    r: Round,
    address: int,
    expected: bytes,
    got: bytes,
    count: int,
    taps: dict[str, list[tuple[int, int]]] | None,
) -> Finding:
    """The first differing word, its writer, its flit and its bits."""
    exp, have = int.from_bytes(expected, "little"), int.from_bytes(got, "little")
    bits = [i for i in range(8 * WORD) if (exp ^ have) >> i & 1]
    shown = ", ".join(map(str, bits[:FIRST_BITS])) + (f" and {len(bits) - FIRST_BITS} more" if len(bits) > FIRST_BITS else "")
    finding = Finding(f"memory: {count} words differ, the first at address {address:#x}")
    where = element_of(artifact, address)
    if where:
        lanes = sorted({b // 16 for b in bits})
        elements = ", ".join(f"({n // 4},{n % 4})" for n in lanes)
        finding.lines.append(f"result   {where}, sub-tile elements {elements}")
    place = writer_of(r, address)
    finding.lines.append(f"step     {place.text() if place else f'round {r.index}: no instruction writes this word'}")
    finding.lines += [f"expected {exp:064x}", f"got      {have:064x}", f"bits     {shown}"]
    if taps is not None and place is not None:
        finding.lines += _flits(taps, place, address)
    return finding


def _flits(taps: dict[str, list[tuple[int, int]]], place: Place, address: int) -> list[str]:
    x, y = place.node
    name = next((n for n in taps if n.endswith(f"_{x}_{y}_out")), None)
    if name is None:
        return []
    seen = taps[name]
    hit = None
    for i, (_, flit) in enumerate(seen):
        base, length = flit >> 216 & (1 << 40) - 1, flit >> 208 & 255
        if flit >> 268 & 15 == 1 and base <= address <= base + WORD * length:
            hit = (i, (address - base) // WORD)
    if hit is None:
        return [f"link     {name}: no write of this word among its last {len(seen)} flits"]
    data, i = hit[1], hit[0]
    carrier, left = i, data + 1
    while carrier + 1 < len(seen) and left:
        carrier += 1
        left -= seen[carrier][1] >> 268 & 15 == 4
    lines = [f"link     {name}: written by the flit of cycle {seen[carrier][0]}; the flits up to it:"]
    for cycle, flit in seen[max(0, carrier - LAST_FLITS + 1) : carrier + 1]:
        lines.append(f"         {cycle:>8}  {disasm_flit(flit)}")
    return lines


def signal_difference(r: Round, node: tuple[int, int], index: int, expected: str, got: str) -> Finding:
    """A completion that differs, with the instruction it belongs to."""
    finding = Finding(f"signals of node ({node[0]},{node[1]}): number {index} differs")
    mine = [p for p in places(r) if p.node == node]
    if index < len(mine):
        finding.lines.append(f"step     {mine[index].text()}")
    finding.lines += [f"expected {expected}", f"got      {got}"]
    return finding


def explain(arg: int) -> str:
    """A fault word in words."""
    return explain_fault(arg)

# SPDX-License-Identifier: Apache-2.0
"""From a differing memory word or signal to step, instruction, unit, cycle, flit and bit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohakuabi import Artifact
from kohakuabi.parts import Round
from kohakuabi.steps import Kick
from kohakudriver import Signal
from kohakutpu.isa import cluster, message
from kohakutpu.isa.generated import ClusterOp, MessageType
from kohakutpu.schedule.layout import Tile, from_key
from ktpu.disassembly import CLUSTER, VECTOR, disassemble
from ktpu.moving import move_of
from ktpu.vector_writes import writes

WORD = 32
FIRST_BITS = 6
FIRST_ELEMENTS = 4
LAST_FLITS = 6


@dataclass(frozen=True)
class Place:
    """An instruction of a round: its step, kick, position and node."""

    round: int
    kick: int
    position: int
    node: tuple[int, int]
    payload: int
    kind: str = CLUSTER

    def text(self) -> str:
        """Step and disassembly on one line."""
        return (
            f"round {self.round}, kick {self.kick} to node ({self.node[0]},{self.node[1]}), "
            f"instruction {self.position}: {disassemble(self.kind, self.payload)}"
        )


@dataclass
class Finding:
    """One difference, told from the outside in."""

    what: str
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join([self.what, *(f"  {line}" for line in self.lines)])


def unit_kinds(artifact: Artifact) -> dict[tuple[int, int], str]:
    """Unit type of every node the artifact kicks, as the compiler noted it."""
    return {(x, y): kind for kind, nodes in artifact.meta.get("units", {}).items() for x, y in nodes}


def places(r: Round, kinds: Mapping[tuple[int, int], str] | None = None) -> list[Place]:
    """Every instruction of a round in dispatch order; a node of unknown type is taken for a cluster."""
    out = []
    kicks = [s for s in r.steps if isinstance(s, Kick)]
    positions: dict[tuple[int, int], int] = {}
    for number, kick in enumerate(kicks):
        node = (kick.x, kick.y)
        for i in range(kick.n):
            at = positions.get(node, 0)
            positions[node] = at + 1
            kind = (kinds or {}).get(node, CLUSTER)
            out.append(Place(r.index, number, at, node, r.payloads[kick.base + i], kind))
    return out


def written_span(payload: int) -> tuple[int, int] | None:
    """Bytes [first, end) of memory an instruction writes, None if it writes none."""
    f = cluster.decode(payload)
    if f["dnode"]:
        return None
    if f["op"] == ClusterOp.GEMM and f["emit"]:
        words = (f["gm"] or 1) * (f["gn"] or 1)
    elif f["op"] == ClusterOp.DRAIN and not f["fuse"]:
        words = f["n"] or 1
    else:
        return None
    return f["addr"], f["addr"] + WORD * words


def writer_of(artifact: Artifact, r: Round, address: int) -> Place | None:
    """The last instruction of the round that writes the word at ``address``."""
    found = None
    kinds = unit_kinds(artifact)
    runs = {node: _runs(artifact, r, node, address) for node, kind in kinds.items() if kind == VECTOR}
    for place in places(r, kinds):
        if place.kind != CLUSTER:
            found = place if place.position in runs.get(place.node, ()) else found
            continue
        span = written_span(place.payload)
        if span and span[0] <= address < span[1]:
            found = place
    return found


def _runs(artifact: Artifact, r: Round, node: tuple[int, int], address: int) -> set[int]:
    """Positions, in round ``r``, of the RUNs of a vector core that write the word."""
    sent: list[int] = []
    first = 0
    for earlier in artifact.rounds():
        if earlier.index > r.index:
            break
        first = len(sent)
        sent += [p.payload for p in places(earlier) if p.node == node]
    return {position - first for position in writes(sent, address) if position >= first}


def elements_of(artifact: Artifact, address: int, bits: list[int]) -> str | None:
    """The result elements that ``bits`` of the word at ``address`` belong to."""
    for o in artifact.outputs:
        if not o.address <= address < o.address + o.nbytes:
            continue
        order = from_key(o.layout)
        if not isinstance(order, Tile):
            return f"{o.name} at byte {address - o.address + bits[0] // 8}"
        row, col = order.locate((address - o.address) // WORD)
        places = [(row + n // 4, col + n % 4) for n in dict.fromkeys(bit // 16 for bit in bits)]
        shown = ", ".join(f"{o.name}[{r},{c}]" for r, c in places[:FIRST_ELEMENTS])
        more = (
            f" and {len(places) - FIRST_ELEMENTS} more of its sub-tile"
            if len(places) > FIRST_ELEMENTS
            else ""
        )
        inside = any(r < o.shape[0] and c < o.shape[1] for r, c in places)
        return f"{shown}{more} of shape {list(o.shape)}" + ("" if inside else ", padding")
    for i in artifact.images:
        if i.address <= address < i.end:
            return f"operand {i.name} at byte {address - i.address + bits[0] // 8}"
    return None


def memory_difference(
    artifact: Artifact,
    r: Round,
    address: int,
    expected: bytes,
    got: bytes,
    *,
    count: int,
    taps: dict[str, list[tuple[int, int]]] | None,
) -> Finding:
    """The first differing word, its writer, its flit and its bits.

    Args:
        expected, got: the 32 bytes at ``address``.
        count: how many words of the region differ.
        taps: recorded transfers of the links, if the target keeps them.
    """
    exp, have = int.from_bytes(expected, "little"), int.from_bytes(got, "little")
    bits = [i for i in range(8 * WORD) if (exp ^ have) >> i & 1]
    shown = ", ".join(map(str, bits[:FIRST_BITS]))
    if len(bits) > FIRST_BITS:
        shown += f" and {len(bits) - FIRST_BITS} more"
    finding = Finding(f"memory: {count} words differ, the first at address {address:#x}")
    finding.lines.append(f"element  {elements_of(artifact, address, bits) or 'outside every buffer'}")
    place = writer_of(artifact, r, address)
    written = place.text() if place else move_of(r, address)
    finding.lines.append(f"step     {written or f'round {r.index}: no instruction writes this word'}")
    finding.lines += [f"expected {exp:064x}", f"got      {have:064x}", f"bits     {shown}"]
    if taps is not None and place is not None:
        finding.lines += _flits(taps, place, address)
    return finding


def _flits(taps: dict[str, list[tuple[int, int]]], place: Place, address: int) -> list[str]:
    """The flits that carried the word, by the tap on its writer's output link."""
    x, y = place.node
    name = next((n for n in taps if n.endswith(f"_{x}_{y}_out")), None)
    if name is None:
        return []
    seen = taps[name]
    carrier = _carrier(seen, address)
    if carrier is None:
        return [f"link     {name}: no write of this word among its last {len(seen)} flits"]
    lines = [f"link     {name}: written by the flit of cycle {seen[carrier][0]}; the flits up to it:"]
    for cycle, flit in seen[max(0, carrier - LAST_FLITS + 1) : carrier + 1]:
        lines.append(f"         {cycle:>8}  {message.disasm(flit)}")
    return lines


def _carrier(seen: list[tuple[int, int]], address: int) -> int | None:
    """Index of the last data flit that carries the word at ``address``."""
    found = None
    left = -1
    for i, (_, flit) in enumerate(seen):
        sent = message.decode(flit)
        if sent.header["type"] == MessageType.MEM_WR_REQ:
            word, rest = divmod(address - sent.fields["addr"], WORD)
            left = word if rest == 0 and 0 <= word <= sent.fields["len"] else -1
        elif sent.header["type"] == MessageType.MEM_WR_DATA:
            found = i if left == 0 else found
            left -= 1
    return found


def signal_difference(
    r: Round,
    node: tuple[int, int],
    kind: str,
    index: int,
    *,
    expected: Signal | None,
    got: Signal | None,
    kinds: Mapping[tuple[int, int], str] | None = None,
) -> Finding:
    """A signal that differs; a completion with the instruction it belongs to."""
    finding = Finding(f"{kind} of node ({node[0]},{node[1]}): number {index} differs")
    mine = [p for p in places(r, kinds) if p.node == node]
    if kind == "completions" and index < len(mine):
        finding.lines.append(f"step     {mine[index].text()}")
    finding.lines.append(f"expected {expected.text() if expected else 'nothing'}")
    finding.lines.append(f"got      {got.text() if got else 'nothing'}")
    if expected and got and expected.arg != got.arg:
        bits = [i for i in range(32) if (expected.arg ^ got.arg) >> i & 1]
        finding.lines.append(f"bits     {', '.join(map(str, bits))} of the argument")
    return finding


def value_difference(what: str, expected: object, got: object, lines: list[str]) -> Finding:
    """A register or counter that differs."""
    if isinstance(expected, int) and isinstance(got, int):
        bits = [str(i) for i in range(64) if (expected ^ got) >> i & 1]
        return Finding(
            f"{what}: expected {expected:#x}, got {got:#x}", [f"bits     {', '.join(bits)}", *lines]
        )
    return Finding(f"{what}: expected {expected}, got {got}", lines)

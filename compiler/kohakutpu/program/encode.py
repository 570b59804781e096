# SPDX-License-Identifier: Apache-2.0
"""Typed instruction to 256-bit word and back; every refusal of docs/spec/compiler.md 9.1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

import numpy as np

from kohakutpu.errors import EncodeError
from kohakutpu.isa import EncodingError, cluster, vector
from kohakutpu.isa.generated import ClusterOp, EnvelopeOp
from kohakutpu.machine_spec import MachineSpec, Node
from kohakutpu.program.columns import OTHER, RUN, Columns
from kohakutpu.program.instructions import (
    TILE_BUFFER,
    ClusterInstruction,
    Desc,
    Dims,
    Drain,
    Fill,
    Gemm,
    Image,
    Instruction,
    Run,
    VectorInstruction,
    text,
)
from kohakutpu.program.vector_words import Imm, Seti, Vdrain, decode_word, encode_word

LAYER = "L1"

_SIDES = ("a", "b")


def encode(ins: Instruction, machine: MachineSpec) -> int:
    """The word of ``ins``.

    Raises:
        EncodeError: a value its field, the bank or the tile store cannot hold; never truncated.
            The message starts with the instruction.
    """
    try:
        if isinstance(ins, Desc | Run | Image | Dims):
            return _envelope(ins, machine)
        match ins:
            case Fill():
                return _fill(ins, machine)
            case Gemm():
                return _gemm(ins, machine)
            case Drain():
                return _drain(ins, machine)
    except (EncodingError, EncodeError) as err:
        raise EncodeError(f"{text(ins)}: {err}") from err


def encode_all(instructions: Iterable[Instruction], machine: MachineSpec) -> list[int]:
    """The words of a program; columns are encoded as such.

    Raises:
        EncodeError: as :func:`encode`, for the first instruction that is refused.
    """
    if isinstance(instructions, Columns):
        with suppress(EncodingError, EncodeError):  # one at a time names the first
            return _encode_columns(instructions, machine)
    return [encode(ins, machine) for ins in instructions]


def _encode_columns(c: Columns, machine: MachineSpec) -> list[int]:
    desc, run, other = c.ad >= 0, c.ad == RUN, c.ad == OTHER
    _require(c.ad.max(initial=0) < machine.vc_desc, "a descriptor the core does not have")
    words = np.empty(len(c), dtype=object)
    words[desc] = vector.set_bases(c.ad[desc], c.at[desc])
    runs = {pc: encode(Run(pc), machine) for pc in set(c.at[run].tolist())}
    words[run] = [runs[pc] for pc in c.at[run].tolist()]
    words[other] = [encode(c.others[number], machine) for number in c.at[other].tolist()]
    out: list[int] = words.tolist()
    return out


def decode(word: int, machine: MachineSpec | None = None) -> ClusterInstruction:
    """Inverse of :func:`encode` for a cluster; ``machine`` names the receiver of a node transfer.

    Raises:
        EncodeError: a word that no typed instruction stands for.
    """
    f = cluster.decode(word)
    made: ClusterInstruction
    to = _receiver(f, machine) if f["dnode"] and machine else ""
    match f["op"]:
        case ClusterOp.FILL:
            made = Fill(_SIDES[f["sel"]], f["fbank"], f["eoff"], f["n"], f["addr"])
        case ClusterOp.GEMM:
            made = Gemm(
                f["gm"], f["gn"], f["nk"], f["acc"], f["abank"], f["aoff"], f["bbank"], f["boff"],
                f["emit"], f["addr"], f["anchor"], to,
            )  # fmt: skip
        case ClusterOp.DRAIN:
            made = Drain(f["n"], f["addr"], f["fuse"], to, f["dbuf"], f["gn"], f["pitch"])
        case _:
            raise EncodeError(f"{cluster.disasm(word)}: no cluster instruction has this operation")
    if _word(made, machine) != word:
        raise EncodeError(f"{cluster.disasm(word)}: sets fields that no compiled instruction uses")
    return made


def decode_envelope(payload: int, *, immediate: bool = False) -> VectorInstruction:
    """Inverse of :func:`encode` for a vector core.

    Args:
        immediate: the payload loads the word behind a VSETI, which has no opcode.

    Raises:
        EncodeError: a payload that no typed instruction stands for.
    """
    kind, f = vector.decode_envelope(payload)
    made: VectorInstruction
    if kind is EnvelopeOp.IMEM:
        made = Image(f["addr"], Imm(f["word"]) if immediate else decode_word(f["word"]))
    elif kind is EnvelopeOp.RUN:
        made = Run(f["pc"])
    elif kind is EnvelopeOp.DESC:
        base = vector.descriptor_base(f)
        made = Desc(f["ad"], base) if base is not None else Dims(f["ad"], *vector.descriptor_dimension(f))
    else:
        raise EncodeError(f"{vector.disasm_envelope(payload)}: no core instruction has this operation")
    if _envelope_word(made) != payload:
        raise EncodeError(f"{vector.disasm_envelope(payload)}: sets fields that no compiled instruction uses")
    return made


def decode_program(payloads: list[int]) -> list[VectorInstruction]:
    """A core's payloads in order; the word loaded behind a VSETI is taken for its immediate.

    Raises:
        EncodeError: a payload that no typed instruction stands for.
    """
    out: list[VectorInstruction] = []
    pending = False
    for payload in payloads:
        made = decode_envelope(payload, immediate=pending)
        pending = isinstance(made, Image) and isinstance(made.word, Seti)
        out.append(made)
    return out


def _require(ok: bool, what: str) -> None:
    if not ok:
        raise EncodeError(what)


def _flag(name: str, value: int) -> None:
    _require(value in (0, 1), f"{name} = {value}; it is 0 or 1")


def _range(what: str, machine: MachineSpec, *, side: str, bank: int, off: int, n: int) -> None:
    """Entries [off, off + n) of ``bank`` stay inside the bank and inside L1."""
    span = machine.l1_off_span
    size = machine.l1_a if side == "a" else machine.l1_b
    _require(off >= 0 and off + n <= span, f"{what}: entries {off}..{off + n - 1} leave the bank of {span}")
    _require(
        bank * span + off + n <= size,
        f"{what}: entries {off}..{off + n - 1} of bank {bank} exceed the {size} entries of side {side}",
    )


def _at(what: str, at: int, machine: MachineSpec) -> None:
    _require(
        at % machine.word_bytes == 0, f"{what}: address {at:#x} is not a multiple of {machine.word_bytes}"
    )


def _fill(f: Fill, m: MachineSpec) -> int:
    _require(f.side in _SIDES, f"fill side {f.side!r}; sides are a and b")
    _require(1 <= f.n <= m.fill_max, f"fill n = {f.n}; a FILL loads 1..{m.fill_max} entries, split it")
    _range("fill", m, side=f.side, bank=f.bank, off=f.off, n=f.n)
    _at("fill", f.at, m)
    return _word(f)


def _node(to: str, machine: MachineSpec) -> Node:
    """Where the unit ``to`` sits."""
    named = re.fullmatch(r"([A-Z]{2})(\d+)", to)
    _require(named is not None, f"receiver {to!r}; name a unit such as VC0")
    assert named is not None
    nodes = machine.units(named[1])
    _require(
        int(named[2]) < len(nodes),
        f"receiver {to}: machine {machine.name} has {len(nodes)} units of type {named[1]}",
    )
    return nodes[int(named[2])]


def _towards(to: str, machine: MachineSpec | None) -> dict[str, int]:
    """Fields of a transfer to the buffer of unit ``to``, acknowledged to the orchestrator."""
    if not to:
        return {}
    _require(machine is not None and machine.meshes[0].orch is not None, f"transfer to {to} without an orchestrator")
    assert machine is not None
    ack = machine.meshes[0].orch
    assert ack is not None
    return cluster.towards(_node(to, machine), ack)


def _receiver(f: dict[str, int], machine: MachineSpec) -> str:
    """Name of the unit a transfer goes to."""
    node = cluster.receiver(f)
    for kind, nodes in machine.meshes[0].units.items():
        if node in nodes:
            return f"{kind}{list(nodes).index(node)}"
    raise EncodeError(f"transfer to {node}: machine {machine.name} has no unit there")


def _delivered(what: str, to: str, at: int, machine: MachineSpec) -> None:
    """A transfer to a core starts inside its L1."""
    _require(
        not to.startswith("MG"),
        f"{what} to {to}: a cluster takes tiles from a drain with buf={TILE_BUFFER} only, in accumulator width",
    )
    _require(
        not to or at // machine.word_bytes < machine.vc_l1_words,
        f"{what} to {to}: word {at // machine.word_bytes} is beyond its {machine.vc_l1_words} words",
    )


def _gemm(g: Gemm, m: MachineSpec) -> int:
    _require(min(g.gm, g.gn, g.nk) >= 1, f"gemm gm, gn, nk = {g.gm}, {g.gn}, {g.nk}; each must be at least 1")
    _range("gemm side a", m, side="a", bank=g.abank, off=g.aoff, n=g.gm * g.nk)
    _range("gemm side b", m, side="b", bank=g.bbank, off=g.boff, n=g.gn * g.nk)
    _require(g.gm * g.gn <= m.tiles, f"gemm gm*gn = {g.gm * g.gn} exceeds the {m.tiles} resident sub-tiles")
    _require(
        m.k_per_issue == 1 or g.nk == 1 or g.nk % 2 == 0,
        f"gemm nk = {g.nk} is odd on a double-pumped cluster; use 1 or an even nk",
    )
    _flag("gemm acc", g.acc)
    _flag("gemm emit", g.emit)
    _require(
        bool(g.emit) or g.at == 0, f"gemm address {g.at:#x} without emit; nothing would be written there"
    )
    _require(bool(g.emit) or not g.to, f"gemm to {g.to} without emit; nothing would be sent there")
    _at("gemm", g.at, m)
    _delivered("gemm", g.to, g.at, m)
    return _word(g, m)


def _drain(d: Drain, m: MachineSpec) -> int:
    _require(1 <= d.n <= m.tiles, f"drain n = {d.n}; a DRAIN reads 1..{m.tiles} sub-tiles")
    _flag("drain fuse", d.fuse)
    _require(
        not d.fuse or d.at == 0, f"drain address {d.at:#x} with fuse; the emitting gemm names the address"
    )
    _require(not d.fuse or not d.to, f"drain to {d.to} with fuse; the emitting gemm names the receiver")
    _at("drain", d.at, m)
    if d.gn or d.pitch:
        _as_rows(d, m)
    if d.buf:
        _added(d, m)
    else:
        _delivered("drain", d.to, d.at, m)
    return _word(d, m)


def _as_rows(d: Drain, m: MachineSpec) -> None:
    """Whole row groups of words, rows that do not overlap; nothing of it is emitted or added."""
    _require("drain_rowmajor" in m.features, f"drain gn = {d.gn}: machine {m.name} has no row-major drain")
    _require(not d.fuse and not d.buf, f"drain gn = {d.gn}; only an explicit FP16 drain writes rows")
    _require(d.gn > 0 and d.gn % 4 == 0, f"drain gn = {d.gn}; rows of words take a multiple of 4")
    _require(d.n % d.gn == 0, f"drain n = {d.n}; it is a multiple of gn = {d.gn}")
    _require(d.pitch >= d.gn // 4, f"drain pitch = {d.pitch}; a row has {d.gn // 4} words")


def _added(d: Drain, m: MachineSpec) -> None:
    """A transfer into the tile store of a cluster: whole sub-tiles of two granules inside the store."""
    _require(d.buf == TILE_BUFFER, f"drain buf = {d.buf}; it is 0, or {TILE_BUFFER} for the tile store of a cluster")
    _require(not d.fuse, f"drain buf = {d.buf} with fuse; an emitted tile is FP16, the tile store takes no FP16")
    _require(d.to.startswith("MG"), f"drain to {d.to or 'memory'} with buf = {d.buf}; only a cluster has a tile store")
    first, odd = divmod(d.at, 2 * m.word_bytes)
    _require(not odd, f"drain to {d.to}: byte {d.at:#x} is inside a sub-tile; one takes {2 * m.word_bytes} bytes")
    _require(
        first + d.n <= m.tiles, f"drain to {d.to}: sub-tiles {first}..{first + d.n - 1} exceed the {m.tiles} it has"
    )


def _envelope(ins: VectorInstruction, m: MachineSpec) -> int:
    if isinstance(ins, Desc | Dims):
        if not 0 <= ins.ad < m.vc_desc:
            raise EncodeError(f"descriptor A{ins.ad}; there are {m.vc_desc}")
    elif isinstance(ins, Image):
        _require(0 <= ins.at < m.vc_imem, f"image word {ins.at}; instruction memory has {m.vc_imem} words")
        if isinstance(ins.word, Vdrain) and ins.word.mx:
            _require("vec_mx_store" in m.features, f"machine {m.name} has no drain that quantises (vec_mx_store)")
    else:
        _require(0 <= ins.pc < m.vc_imem, f"run from word {ins.pc}; instruction memory has {m.vc_imem} words")
    return _envelope_word(ins)


def _envelope_word(ins: VectorInstruction) -> int:
    if isinstance(ins, Desc):
        return vector.set_base(ins.ad, ins.at)
    if isinstance(ins, Run):
        return vector.run(ins.pc)
    if isinstance(ins, Image):
        return vector.load_word(ins.at, encode_word(ins.word))
    return vector.set_dimension(ins.ad, ins.dim, ins.stride, ins.bound)


def _word(ins: ClusterInstruction, machine: MachineSpec | None = None) -> int:
    match ins:
        case Fill():
            sel = _SIDES.index(ins.side)
            return cluster.encode("FILL", sel=sel, fbank=ins.bank, eoff=ins.off, n=ins.n, addr=ins.at)
        case Gemm():
            emitted = {"emit": ins.emit, "addr": ins.at, **_towards(ins.to, machine)} if ins.emit else {}
            return cluster.encode(
                "GEMM", raw=False, gm=ins.gm, gn=ins.gn, nk=ins.nk, acc=ins.acc, anchor=ins.anchor,
                abank=ins.abank, aoff=ins.aoff, bbank=ins.bbank, boff=ins.boff, **emitted,
            )  # fmt: skip
        case Drain():
            place = {"fuse": 1} if ins.fuse else {"addr": ins.at, **_towards(ins.to, machine)}
            into = {"dbuf": ins.buf} if ins.buf else {}
            rows = {"rowmajor": 1, "gn": ins.gn, "pitch": ins.pitch} if ins.gn else {}
            return cluster.encode("DRAIN", raw=False, n=ins.n, **place, **into, **rows)

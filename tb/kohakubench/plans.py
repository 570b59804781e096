# SPDX-License-Identifier: Apache-2.0
"""Requests planned, emitted and run on a model machine, and their reference; for tests of the schedule level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakuabi import Artifact, Image, Output
from kohakubench.chains import evaluate
from kohakubench.programs import accumulated, device, reference, spec
from kohakutpu.chain import ChainBuilder
from kohakutpu.dispatch import link
from kohakutpu.ints import up
from kohakutpu.model.numerics import acc_add, to_fp16
from kohakutpu.program import assemble, assemble_moves
from kohakutpu.schedule import (
    Contraction,
    Elementwise,
    Operand,
    Rearrange,
    Request,
    Schedule,
    arrivals,
    emit,
    emit_moves,
    from_key,
    pack_operands,
    plan,
)

Half = npt.NDArray[np.float16]
Bits = npt.NDArray[np.uint16]


def artifact_of(schedule: Schedule, values: Mapping[str, Half], text: dict[str, Any]) -> Artifact:
    """Everything below the schedule."""
    machine = spec(text)
    packed = pack_operands(schedule, values)
    images = [Image(schedule.buffers[n].address, data, n) for n, data in packed.items()]
    outputs = [
        Output(b.name, b.address, up(from_key(b.layout).nbytes(b.shape), machine.word_bytes), b.layout, b.shape)
        for b in schedule.buffers.values()
        if b.role == "out"
    ]
    work = [assemble(band, machine) for band in emit(schedule, machine)]
    moves = [assemble_moves(before) for before in emit_moves(schedule, machine)]
    return link(machine, work, images, outputs, {"kernel": "plan"}, arrivals(schedule), moves)


def run_plan(
    requests: Sequence[Request], values: Mapping[str, Half], text: dict[str, Any], **options: Any
) -> tuple[Schedule, dict[str, Bits]]:
    """The schedule and the bits of every output, on a fresh model machine whose memory is not zero.

    Raises:
        AssertionError: a failed round, with the driver's words.
    """
    schedule = plan(requests, spec(text), **options)
    dev = device(text)
    for b in schedule.buffers.values():
        dev.write(b.address, b"\xff\x7c" * up(b.nbytes // 2, 16))
    artifact = artifact_of(schedule, values, text)
    done = dev.run(artifact)
    assert not done.failed, done.problems()
    out = {}
    for o in artifact.outputs:
        rows, cols = o.shape
        order = from_key(o.layout)
        raw = dev.read(o.address, o.nbytes)
        out[o.name] = order.unpack(raw[: order.nbytes((rows, cols))], (rows, cols)).view(np.uint16)
    return schedule, out


def expected(requests: Sequence[Request], values: Mapping[str, Half]) -> dict[str, Half]:
    """Every value, one request after another on whole arrays; parts land in their parents."""
    have = {n: np.asarray(v, np.float16) for n, v in values.items()}
    shapes: dict[str, tuple[int, int]] = {}
    for r in requests:
        for o in (r.a, r.b, r.c) if isinstance(r, Contraction) else (*r.operands, *r.results):
            if not o.of:
                shapes.setdefault(o.name, o.shape)

    def keep(o: Operand, array: Half) -> None:
        if not o.of:
            have[o.name] = array
            return
        assert o.window is not None
        whole = have.setdefault(o.of, np.zeros(shapes[o.of], np.float16))
        w = o.window
        stack = whole.reshape(w.blocks, -1, whole.shape[1])
        stack[:, w.row : w.row + w.rows, w.col : w.col + w.cols] = array.reshape(w.blocks, w.rows, w.cols)

    for r in requests:
        if isinstance(r, Contraction):
            keep(r.c, _contracted(r, have[r.a.name], have[r.b.name]))
        elif isinstance(r, Rearrange):
            keep(r.result, have[r.source.name].reshape(-1)[r.read.sources()].reshape(r.result.shape))
        else:
            given = [have[o.name].view(np.uint16) for o in r.operands]
            for o, bits in zip(r.results, evaluate(r.chain, given, r.shape), strict=True):
                keep(o, np.asarray(bits, np.uint16).view(np.float16))
    return have


def _contracted(c: Contraction, a: Half, b: Half) -> Half:
    left, right = c.a_blocks.of(a), c.b_blocks.of(b)  # type: ignore[arg-type]
    out = []
    for z in range(c.batch):
        heads = [left[(z * c.join + h) % len(left)] for h in range(c.join)]
        x, y = np.concatenate(heads, axis=1), right[z % len(right)]
        if c.split == 1:
            out.append(reference(x, y).view(np.float16))
            continue
        pairs = list(zip(np.split(x, c.split, 1), np.split(y, c.split, 1), strict=True))
        if c.route == "peer":
            # partials in accumulator width, the first one the tile the others are added to
            held = reduce(acc_add, (accumulated(p, q) for p, q in pairs))
            out.append(to_fp16(held).view(np.float16))
            continue
        # partials are rounded to FP16 and added in order, each sum rounded once at the end of the pass
        parts = [reference(p, q) for p, q in pairs]
        total = evaluate(sum_chain(c.split).chain, parts, parts[0].shape)[0]
        out.append(np.asarray(total, np.uint16).view(np.float16))
    return np.concatenate(out)


def sum_chain(count: int) -> Elementwise:
    """x0 + x1 + ... as a pass of 1x1 values."""
    b = ChainBuilder()
    total = b.operand(0)
    for i in range(1, count):
        total = b.op("add", total, b.operand(i))
    one = Operand("y", "out", (1, 1))
    return Elementwise(b.chain([total]), tuple(Operand(f"x{i}", "in", (1, 1)) for i in range(count)), (one,))

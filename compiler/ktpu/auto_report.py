# SPDX-License-Identifier: Apache-2.0
"""Automatic programs beside the kernels written by hand (docs/spec/compiler.md 13.4, docs/spec/kernels.md 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kohakutpu.kernels import library
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.rewrite import CATALOGUE, Expr, ops, rewrite
from kohakutpu.tensor import call
from kohakutpu.tensor.operand import Shape
from ktpu.auto_reasons import Comparison, compare
from ktpu.automatic import Automatic, auto
from ktpu.compiling import compile
from ktpu.costing import cost


@dataclass(frozen=True)
class Workload:
    """An expression and the kernel that computes it by hand.

    Args:
        shapes: of the inputs of the expression, by name, in order.
        hand_shapes: of the operands of the kernel where they are others.
    """

    name: str
    expression: Callable[..., Expr]
    shapes: Mapping[str, Shape]
    kernel: Kernel
    knobs: Mapping[str, Knob] = field(default_factory=dict)
    hand_shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True)
class Line:
    """A workload with both programs compared; ``host`` counts the steps the host computes."""

    name: str
    machine: str
    profile: str
    steps: str
    host: int
    result: Comparison

    @property
    def accepted(self) -> bool:
        """True if the ratio is within its limit and explained, and nothing is left to the host."""
        return self.result.accepted and not self.host

    @property
    def reasons(self) -> str:
        """The reasons with their cycles, "" for a ratio that needs none."""
        return "; ".join(f"{r.text} ({r.cycles:,})" for r in self.result.reasons)

    def as_dict(self) -> dict[str, object]:
        """For a result file."""
        return {
            "name": self.name,
            "machine": self.machine,
            "profile": self.profile,
            "tag": "model",
            "auto": self.result.auto,
            "hand": self.result.hand,
            "ratio": round(self.result.ratio, 4),
            "reasons": [{"reason": r.text, "cycles": r.cycles} for r in self.result.reasons],
            "steps": self.steps.splitlines(),
            "accepted": self.accepted,
        }


def pending(program: Automatic) -> tuple[str, ...]:
    """Rewrites that would still apply, and those a precondition kept from applying to what is left.

    An exponential without a factor is none of them: its kernel spends the operation anyway.
    """
    left = rewrite(program.rewritten.result, CATALOGUE)
    names = [a.rewrite for a in left.applied] + [r.rewrite for r in (*left.refused, *program.rewritten.refused)]
    return tuple(n for n in dict.fromkeys(names) if n != "exp as exp2")


def measured(
    workload: Workload, machine: MachineSpec, profile: str = "default", program: Automatic | None = None
) -> Line:
    """Compare one workload.

    Raises:
        CompileError: what the compiler refuses of either.
    """
    ours = program or auto(workload.expression, *workload.shapes.values())
    spent = ours.cost(machine, profile)
    shapes = workload.hand_shapes or tuple(workload.shapes.values())
    operands = [np.zeros(s, np.float16) for s in shapes]
    hand = compile(call(workload.kernel, *operands, extents=None, **workload.knobs), machine)
    result = compare(list(zip(spent.compiled, spent.calls, strict=True)), (hand, cost(hand, profile)), pending(ours))
    return Line(workload.name, machine.name, profile, ours.chosen.text(), ours.host_steps, result)


def report(workloads: Iterable[Workload], machine: MachineSpec, profile: str = "default") -> list[Line]:
    """Compare workloads, in order."""
    return [measured(w, machine, profile) for w in workloads]


def table(lines: Sequence[Line]) -> str:
    """Markdown, a line a workload."""
    rows = ["| Workload | Automatic | By hand | Ratio | Reasons (cycles) |", "|---|---|---|---|---|"]
    for line in lines:
        r = line.result
        note = line.reasons if not r.unexplained else f"{line.reasons} UNEXPLAINED ({r.unexplained:,})".strip()
        note += f" HOST STEPS {line.host}" if line.host else ""
        rows.append(f"| {line.name} | {r.auto:,} | {r.hand:,} | {r.ratio:.2f} | {note or '-'} |")
    return "\n".join(rows)


# ------------------------------------------------------------------------------------------------ acceptance set


def base_2_attention(q: Expr, k: Expr, v: Expr) -> Expr:
    """Attention with q scaled by log2(e)/sqrt(Dk) by its producer, as the kernel takes it."""
    s = q @ k
    e = ops.exp2(s - ops.row_max(s))
    return (e / ops.row_sum(e)) @ v


def _five(x: Expr, g: Expr, r: Expr) -> Expr:
    return ops.relu((x * 0.5 + g) * x - r)


_STEPS = (
    ("mul", ("x", 0.5)),
    ("add", ("_", "g")),
    ("mul", ("_", "x")),
    ("sub", ("_", "r")),
    ("relu", ("_",)),
)


def _product(m: int, k: int, n: int) -> Workload:
    return Workload(f"matmul {m}x{k}x{n}", lambda a, b: a @ b, {"a": (m, k), "b": (n, k)}, library.matmul)


_X, _W, _Q, _V = (64, 128), (64, 128), (4, 128, 64), (4, 64, 128)

ACCEPTANCE: tuple[Workload, ...] = (
    _product(64, 256, 64),
    _product(256, 1280, 1280),
    _product(77, 2048, 1280),
    Workload("linear_silu 64x128x64", lambda x, w: ops.silu(x @ w), {"x": _X, "w": _W}, library.linear_silu),
    Workload(
        "linear_add_gelu 64x128x64",
        lambda x, w, b: ops.gelu(x @ w + b),
        {"x": _X, "w": _W, "b": (64, 64)},
        library.linear_add_gelu,
    ),
    Workload(
        "mlp 64x128x256x64",
        lambda x, up, down: ops.silu(x @ up) @ down,
        {"x": _X, "up": (256, 128), "down": (64, 256)},
        library.mlp("silu"),
    ),
    Workload(
        "geglu 64x128x64",
        lambda x, wg, wu: ops.gelu(x @ wg) * (x @ wu),
        {"x": _X, "wg": _W, "wu": _W},
        library.geglu_fused,
    ),
    Workload("softmax 64x128", ops.softmax, {"x": (64, 128)}, library.softmax(128)),
    Workload("softmax 16x1280", ops.softmax, {"x": (16, 1280)}, library.softmax_wide(1280)),
    Workload(
        "layernorm 64x128", ops.layernorm, {"x": (64, 128), "w": (128,), "b": (128,)}, library.layernorm(128)
    ),
    Workload(
        "layernorm 16x640", ops.layernorm, {"x": (16, 640), "w": (640,), "b": (640,)}, library.layernorm_wide(640)
    ),
    Workload(
        "five operations 65,536",
        _five,
        {"x": (512, 128), "g": (128,), "r": (512, 128)},
        library.chain((("x", False), ("g", True), ("r", False)), _STEPS, "five_operations"),
    ),
    Workload(
        "attention 4 heads 128x128",
        base_2_attention,
        {"q": _Q, "k": _Q, "v": _V},
        library.flash_attention,
        {"block": 64},
    ),
    Workload(
        "attention 4 heads 128x128, scale in the expression",
        lambda q, k, v: ops.softmax((q @ k) * 0.125) @ v,
        {"q": _Q, "k": _Q, "v": _V},
        library.flash_attention,
        {"block": 64},
    ),
)
"""The set of docs/spec/kernels.md 7.4 without the convolution, which has no kernel (there, section 6).

The hand-written geglu is the fused form, the faster of the two. The last line is the attention whose q nobody has
scaled; the kernel beside it takes q as its producer scaled it.
"""

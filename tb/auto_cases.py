# SPDX-License-Identifier: Apache-2.0
"""The expression every kernel of the library computes, for its automatic program (docs/spec/kernels.md 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

import kernel_cases as kc
from kohakutpu.rewrite import Expr, ops
from kohakutpu.rewrite.expr import make
from ktpu.auto_report import Workload, base_2_attention

MASKED = -60000.0
Expression = Callable[..., Expr]

ACTS = {name: (lambda v, name=name: make(name, v)) for name in ("silu", "gelu", "gelu_sigmoid", "relu", "sigmoid")}


@dataclass(frozen=True)
class AutoCase:
    """A kernel case as an expression; ``more`` are inputs the kernel makes itself."""

    case: kc.Case
    expression: Expression
    more: dict[str, kc.F16]

    def operands(self) -> kc.Operands:
        """Inputs of the expression, in its order."""
        return {**self.case.operands(kc.Draw(self.case.name)), **self.more}

    def workload(self) -> Workload:
        """The comparison with the kernel."""
        given = self.case.operands(kc.Draw(self.case.name))
        return Workload(
            self.case.name,
            self.expression,
            {n: np.shape(v) for n, v in {**given, **self.more}.items()},
            self.case.kernel(),
            self.case.knobs,
            tuple(np.shape(v) for v in given.values()),
        )


def _linear(name: str, scale: float) -> Expression:
    parts = name.split("_")[1:]
    act = next((a for a in ACTS if a in parts), "")

    def of(y: Expr, *sides: Expr) -> Expr:
        y = y * scale if "scale" in parts else y
        for side in sides:
            y = y + side
        return ACTS[act](y) if act else y

    match ("bias" in parts) + ("add" in parts):
        case 0:
            return lambda x, w: of(x @ w)
        case 1:
            return lambda x, w, b: of(x @ w, b)
        case _:
            return lambda x, w, b, r: of(x @ w, b, r)


def _gated(act: str, bias: bool) -> Expression:
    if bias:
        return lambda x, wg, wu, bg, bu: ACTS[act](x @ wg + bg) * (x @ wu + bu)
    return lambda x, wg, wu: ACTS[act](x @ wg) * (x @ wu)


def _chunked(x: Expr, w: Expr, b: Expr) -> Expr:
    h, g = ops.chunk(x @ w + b)
    return h * ops.gelu(g)


def _heads_out(o: Expr, w: Expr, r: Expr, b: Expr) -> Expr:
    rows, joined = r.extents[0], w.extents[1]
    heads = o.extents[0] // rows
    split = ops.transpose(ops.reshape(o, heads, rows, o.extents[1]), 1, 0, 2)
    return r + (ops.reshape(split, rows, joined) @ w + b)


def _masked_softmax(x: Expr, mask: Expr) -> Expr:
    return ops.softmax(ops.where(mask, x, MASKED))


def _attention_keys(keys: int) -> Expression:
    return lambda q, k, v: base_2_attention(q, ops.take(k, -2, 0, keys), ops.take(v, -1, 0, keys))


def _attention_masked(q: Expr, k: Expr, v: Expr, mask: Expr) -> Expr:
    s = ops.where(mask, q @ k, MASKED)
    e = ops.exp2(s - ops.row_max(s))
    return (e / ops.row_sum(e)) @ v


def _norm(what: str, eps: float) -> Expression:
    if what.startswith("rmsnorm"):
        return lambda x, w: ops.rmsnorm(x, w, eps)
    if what == "group_norm_silu_wide":
        return lambda x, w, b: ops.silu(ops.layernorm(x, w, b, eps))
    return lambda x, w, b: ops.layernorm(x, w, b, eps)


def expression(case: kc.Case) -> AutoCase | None:
    """The expression of a case, None where an expression cannot say what the kernel does."""
    name, knobs = case.kernel().name, dict(case.knobs)
    more: dict[str, kc.F16] = {}
    given = {n: np.shape(v) for n, v in case.operands(kc.Draw(case.name)).items()}
    found: Expression | None = _BY_NAME.get(name)
    if name.startswith("linear_") and found is None:
        found = _linear(name, float(knobs.get("scale", 1.0)))
    elif "norm" in name:
        found = _norm(name, float(knobs.get("eps", 1e-5)))
    elif name == "geglu":
        found = _gated("gelu_sigmoid" if knobs.get("form") == "sigmoid" else "gelu", False)
    elif name in ("softmax_keys", "softmax_keys_wide"):
        keys = int(case.name.split("_")[2])
        found, more = _masked_softmax, {"mask": (np.arange(given["x"][1]) < keys).astype(np.float16)}
    elif name == "flash_attention":
        found = _attention_keys(knobs["keys"]) if "keys" in knobs else base_2_attention
        if knobs.get("causal"):
            if given["q"][0] > 1 or "keys" in knobs:
                return None  # a mask of one matrix is not read again by every head
            found, more = _attention_masked, {"mask": np.tril(np.ones(given["q"][1:2] * 2, np.float16))}
    return AutoCase(case, found, more) if found is not None else None


_BY_NAME: dict[str, Expression] = {
    "matmul": lambda a, b: a @ b,
    "matmul_batched": lambda a, b: a @ b,
    "linear_gate_add": lambda x, w, g, r: r + g * (x @ w),
    "mlp_silu": lambda x, up, down: ops.silu(x @ up) @ down,
    "geglu_fused": _gated("gelu", False),
    "geglu_bias": _gated("gelu", True),
    "swiglu": _gated("silu", False),
    "swiglu_fused": _gated("silu", False),
    "swiglu_bias": _gated("silu", True),
    "gated_relu_bias": _gated("relu", True),
    "geglu_chunked": _chunked,
    "project_heads": lambda x, w: x @ w,
    "attn_out": _heads_out,
    **ACTS,
    "exp": ops.exp,
    "elementwise_3": lambda x, g: ops.silu(x * g * 0.5 + x),
    "residual": lambda x, r: x + r,
    "softmax": ops.softmax,
    "softmax_wide": ops.softmax,
    "softmax_masked": _masked_softmax,
}


def cases(slow: bool = False) -> list[AutoCase]:
    """The cases of the kernel library that an expression can say, without those of long runs."""
    found = (expression(c) for c in kc.CASES if slow or not c.slow)
    return [c for c in found if c is not None]


def covered(found: Iterable[AutoCase]) -> set[str]:
    """Names of the kernels of some cases."""
    return {c.case.kernel().name for c in found}


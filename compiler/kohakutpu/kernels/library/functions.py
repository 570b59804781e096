# SPDX-License-Identifier: Apache-2.0
"""Activations as lane expressions (docs/spec/kernels.md 4): what a statement applies to an element."""

from __future__ import annotations

import math
from collections.abc import Callable

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import exp2, fma, maximum, recip
from kohakutpu.kernels.language.lanes import Arithmetic, Lane, lane

LAYER = "L4"

LOG2E = math.log2(math.e)
TANH_GELU = 2.0 * math.sqrt(2.0 / math.pi)
TANH_CUBIC = 0.044715
SIGMOID_GELU = 1.702

Function = Callable[[Arithmetic], Lane]


def sigmoid(v: Arithmetic) -> Lane:
    """1 / (1 + exp(-v))."""
    return recip(exp2(v * -LOG2E) + 1.0)


def silu(v: Arithmetic) -> Lane:
    """v * sigmoid(v)."""
    return v * sigmoid(v)


def gelu(v: Arithmetic) -> Lane:
    """The tanh form, within 5e-4 of the erf form: v / (1 + exp(-2 sqrt(2/pi) (v + 0.044715 v^3)))."""
    scale = -TANH_GELU * LOG2E
    return v * recip(exp2(fma(v * v, scale * TANH_CUBIC, scale) * v) + 1.0)


def gelu_sigmoid(v: Arithmetic) -> Lane:
    """The sigmoid form: v * sigmoid(1.702 v); up to 5.3e-3 of the peak from the erf form."""
    return v * recip(exp2(v * (-SIGMOID_GELU * LOG2E)) + 1.0)


def relu(v: Arithmetic) -> Lane:
    """max(v, 0)."""
    return maximum(v, 0.0)


def exp(v: Arithmetic) -> Lane:
    """e^v."""
    return exp2(v * LOG2E)


def identity(v: Arithmetic) -> Lane:
    """The element itself."""
    return lane(v)


FUNCTIONS: dict[str, Function] = {
    "": identity,
    "silu": silu,
    "gelu": gelu,
    "gelu_sigmoid": gelu_sigmoid,
    "relu": relu,
    "sigmoid": sigmoid,
    "exp": exp,
}
"""Activations by name, "" for none."""

GELU_FORMS: dict[str, Function] = {"erf_tanh": gelu, "sigmoid": gelu_sigmoid}
"""The forms of GELU by the name of the knob ``form``."""


def function(name: str) -> Function:
    """An activation by name.

    Raises:
        TraceError: an unknown name.
    """
    if name not in FUNCTIONS:
        known = ", ".join(n or '""' for n in FUNCTIONS)
        raise TraceError(f"activation {name!r} is unknown; known: {known}")
    return FUNCTIONS[name]


def gelu_form(form: str) -> Function:
    """A form of GELU: "erf_tanh" or "sigmoid".

    Raises:
        TraceError: another name.
    """
    if form not in GELU_FORMS:
        raise TraceError(f"form {form!r} of GELU is unknown; known: {', '.join(GELU_FORMS)}")
    return GELU_FORMS[form]

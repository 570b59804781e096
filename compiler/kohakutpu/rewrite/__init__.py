# SPDX-License-Identifier: Apache-2.0
"""Untiled tensor expressions, the rewrite catalogue and the automatic choice of kernels (docs/spec/compiler.md 13)."""

from kohakutpu.rewrite import ops
from kohakutpu.rewrite.catalogue import BY_NAME, CATALOGUE, without
from kohakutpu.rewrite.expr import Expr, array, inputs, walk
from kohakutpu.rewrite.interpret import interpret
from kohakutpu.rewrite.normal import normal
from kohakutpu.rewrite.rule import Applied, Equality, Outcome, Refused, Rewrite, Rewritten, rewrite

LAYER = "L5"

__all__ = [
    "BY_NAME",
    "CATALOGUE",
    "Applied",
    "Equality",
    "Expr",
    "Outcome",
    "Refused",
    "Rewrite",
    "Rewritten",
    "array",
    "inputs",
    "interpret",
    "normal",
    "ops",
    "rewrite",
    "walk",
    "without",
]

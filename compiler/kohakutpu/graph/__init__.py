# SPDX-License-Identifier: Apache-2.0
"""L3: which buffers exist and who reads them (docs/spec/compiler.md 4)."""

from kohakutpu.graph.check import verify
from kohakutpu.graph.interpret import interpret
from kohakutpu.graph.ir import REARRANGE, Graph, Matrix, Op, Value
from kohakutpu.graph.lower import buffers, contractions, requests

LAYER = "L3"

__all__ = ["REARRANGE", "Graph", "Matrix", "Op", "Value", "buffers", "contractions", "interpret", "requests", "verify"]

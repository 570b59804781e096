# SPDX-License-Identifier: Apache-2.0
"""L3: which buffers exist and who reads them (docs/spec/compiler.md 4)."""

from kohakutpu.graph.interpret import interpret
from kohakutpu.graph.ir import Graph, Op, Value, verify
from kohakutpu.graph.lower import contractions, requests

LAYER = "L3"

__all__ = ["Graph", "Op", "Value", "contractions", "interpret", "requests", "verify"]

# SPDX-License-Identifier: Apache-2.0
"""L2: where data lives and where work runs (docs/spec/compiler.md 5 to 8)."""

LAYER = "L2"

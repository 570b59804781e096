# SPDX-License-Identifier: Apache-2.0
"""KohakuTPU: compiler, bit-exact reference model and encoding tables of a tensor accelerator."""

LAYER = "leaf"

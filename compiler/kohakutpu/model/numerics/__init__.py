# SPDX-License-Identifier: Apache-2.0
"""Bit-exact formats and arithmetic of docs/spec/numerics.md, numpy only, vectorised.

| module | section |
|---|---|
| `mxfp7` | 3: quantiser, packed words, operand L1 entry |
| `accumulator` | 4, 5: block dot product, ACC(MW), EMIT and SEND forms |
| `tiles`, `gemm` | 5.4, 6: commands on resident sub-tiles, matrix product |
| `convert` | 7: FP16, FP32, E8M15 |
| `e8m15`, `e8m15_seeds`, `e8m15_reduce` | 8 to 11: lane, seeds, reductions |
| `metrics`, `events` | 12, 13 |
"""

from .accumulator import (
    ACC_MW_DEFAULT,
    ANCHOR_MXFP7,
    acc_add,
    block_dot,
    chain,
    emit_words,
    receive_granules,
    send_granules,
    to_e8m15,
    to_fp16,
)
from .convert import e8m15_to_fp16, e8m15_to_fp32, fp16_to_e8m15, fp32_to_e8m15
from .e8m15 import fma, lane
from .e8m15_reduce import reduce_elements
from .events import NumericEvents
from .gemm import fp16_codes, operand_entries, product
from .metrics import ErrorMetrics, error_metrics, relative_errors
from .mxfp7 import (
    Layout,
    dequantise,
    pack_l1,
    pack_words,
    quantise,
    quantise_entries,
    unpack_l1,
    unpack_words,
)
from .tiles import TileStore

LAYER = "leaf"

__all__ = [
    "ACC_MW_DEFAULT",
    "ANCHOR_MXFP7",
    "ErrorMetrics",
    "Layout",
    "NumericEvents",
    "TileStore",
    "acc_add",
    "block_dot",
    "chain",
    "dequantise",
    "e8m15_to_fp16",
    "e8m15_to_fp32",
    "emit_words",
    "error_metrics",
    "fma",
    "fp16_codes",
    "fp16_to_e8m15",
    "fp32_to_e8m15",
    "lane",
    "operand_entries",
    "pack_l1",
    "pack_words",
    "product",
    "quantise",
    "quantise_entries",
    "receive_granules",
    "reduce_elements",
    "relative_errors",
    "send_granules",
    "to_e8m15",
    "to_fp16",
    "unpack_l1",
    "unpack_words",
]

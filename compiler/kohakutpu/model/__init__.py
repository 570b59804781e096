# SPDX-License-Identifier: Apache-2.0
"""The reference model: numpy only, instruction level, bit exact, faults included.

`kohakutpu.model.numerics` holds every format and arithmetic function of docs/spec/numerics.md,
`kohakutpu.model.machine` the units, memory and control plane of one mesh.
"""

LAYER = "L0"

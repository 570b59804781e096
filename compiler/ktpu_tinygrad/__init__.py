# SPDX-License-Identifier: Apache-2.0
"""A device for tinygrad (docs/spec/compiler.md 13.2, docs/guide_tinygrad.md).

>>> import ktpu_tinygrad
>>> from tinygrad import Tensor
>>> with ktpu_tinygrad.use("model:mm_store") as device:
...     y = (Tensor.randn(16, 64) @ Tensor.randn(32, 64).T).relu().numpy()
>>> print(*device.schedule, sep="\\n")
"""

from ktpu_tinygrad.device import KTPUDevice, open, register, use
from ktpu_tinygrad.program import Ran
from ktpu_tinygrad.substitution import Substitution, substitute

__all__ = ["KTPUDevice", "Ran", "Substitution", "open", "register", "substitute", "use"]

register()

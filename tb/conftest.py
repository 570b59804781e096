# SPDX-License-Identifier: Apache-2.0
"""Import path of a plain checkout; an installed distribution wins nothing over it."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for folder in ("driver", "compiler", "tb"):
    path = str(ROOT / folder)
    if path not in sys.path:
        sys.path.insert(0, path)

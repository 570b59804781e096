# SPDX-License-Identifier: Apache-2.0
"""Entry point of ``python -m kohakutpu.gen``."""

import sys

from kohakutpu.gen.command import main

LAYER = "L0"

if __name__ == "__main__":
    sys.exit(main())

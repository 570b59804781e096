# SPDX-License-Identifier: Apache-2.0
"""``python -m ktpu``."""

from ktpu.cli import app

if __name__ == "__main__":
    app()

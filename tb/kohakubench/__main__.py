# SPDX-License-Identifier: Apache-2.0
"""Command line behind the Makefile: ``python -m kohakubench run NAME``."""

from kohakubench.cli import app

if __name__ == "__main__":
    app()

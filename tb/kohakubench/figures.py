# SPDX-License-Identifier: Apache-2.0
"""Measured figures of a bench, left in its run directory for whoever asked for the run."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def write(name: str, rows: Sequence[Row]) -> None:
    """Leave ``rows`` as ``figures_<name>.json`` in the directory of this run."""
    path = Path(os.environ.get("KOHAKU_RUN_DIR", ".")) / f"figures_{name}.json"
    path.write_text(json.dumps(list(rows), indent=1) + "\n", encoding="utf-8")


def read(run_dir: Path, name: str) -> list[Row]:
    """Rows a test of the run left.

    Raises:
        FileNotFoundError: no test of the run wrote ``name``.
    """
    rows: list[Row] = json.loads((run_dir / f"figures_{name}.json").read_text(encoding="utf-8"))
    return rows

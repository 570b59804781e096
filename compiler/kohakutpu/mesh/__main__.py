# SPDX-License-Identifier: Apache-2.0
"""``python -m kohakutpu.mesh FILE -o DIR``: see :mod:`kohakutpu.mesh`."""

from __future__ import annotations

import argparse
import sys

from kohakutpu.mesh import MeshError, generate

LAYER = "L0"


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m kohakutpu.mesh", description=__doc__)
    parser.add_argument("file", help="mesh description (TOML)")
    parser.add_argument("-o", "--out", required=True, help="output directory, created if missing")
    args = parser.parse_args()
    try:
        machine = generate(args.file, args.out)
    except (MeshError, OSError) as err:
        print(err, file=sys.stderr)
        return 1
    units = ", ".join(f"{len(nodes)} {kind}" for kind, nodes in machine.description()["units"].items())
    print(f"{machine.name}: {machine.nx}x{machine.ny} routers, {units or 'no units'} -> {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

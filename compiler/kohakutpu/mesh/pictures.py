# SPDX-License-Identifier: Apache-2.0
"""Where the picture of a machine is: a name of this repository, or a file of the user's own."""

from __future__ import annotations

from pathlib import Path

from kohakutpu.mesh.picture import MeshError

LAYER = "L0"

MACHINES = Path(__file__).resolve().parents[3] / "spec" / "machines"


def names() -> list[str]:
    """Names of the pictures of this repository."""
    return sorted(p.stem for p in MACHINES.glob("*.toml"))


def find(machine: str) -> Path:
    """The picture of ``machine``: a name of :func:`names`, or the path of a file that ends in ``.toml``.

    Raises:
        MeshError: there is none; lists the names.
    """
    own = machine.endswith(".toml")
    picture = Path(machine).expanduser() if own else MACHINES / f"{machine}.toml"
    if not picture.is_file():
        what = f"{machine} does not exist" if own else f"no machine called {machine!r}"
        raise MeshError(f"{what}; there are: {', '.join(names())}, or name a picture file, path/to/machine.toml")
    return picture.resolve()

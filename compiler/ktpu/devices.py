# SPDX-License-Identifier: Apache-2.0
"""Opening a device: ``model:<machine>`` or ``rtl:<machine>``."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from kohakudriver import Device
from kohakutpu.machine_spec import MachineSpec
from ktpu.disassembly import explain

ROOT = Path(__file__).resolve().parents[2]
MACHINES = ROOT / "spec" / "machines"


class TargetError(ValueError):
    """A target that does not open; nothing is substituted."""


def machines() -> list[str]:
    """Names of the machines there are pictures of."""
    return sorted(p.stem for p in MACHINES.glob("*.toml"))


@lru_cache(maxsize=8)
def description(machine: str) -> dict[str, Any]:
    """Content of ``<machine>.machine.json``, generated from its picture.

    Raises:
        TargetError: no such machine; the message lists those there are.
    """
    picture = MACHINES / f"{machine}.toml"
    if not picture.exists():
        raise TargetError(f"no machine called {machine!r}; there are: {', '.join(machines())}")
    from kohakutpu.mesh import load

    text: dict[str, Any] = json.loads(json.dumps(load(picture).description()))
    return text


def machine(name: str) -> MachineSpec:
    """The MachineSpec to compile for machine ``name``."""
    return MachineSpec.from_description(description(name))


def split_target(target: str) -> tuple[str, str]:
    """("model" or "rtl", machine name).

    Raises:
        TargetError: anything else.
    """
    kind, _, name = target.partition(":")
    if kind not in ("model", "rtl") or not name:
        raise TargetError(
            f"target {target!r}; use model:<machine> or rtl:<machine>, machines: {', '.join(machines())}"
        )
    return kind, name


def open(target: str, **options: Any) -> Device:
    """Open a device.

    Args:
        target: ``model:<machine>`` or ``rtl:<machine>``.
        options: for RTL ``waves``, ``checked``, ``dram`` and ``seed``, see
            :class:`kohakubench.session.RtlSession`.

    Raises:
        TargetError: an unknown target, or an option the target does not have.
    """
    kind, name = split_target(target)
    text = description(name)
    digest = machine(name).digest()
    if kind == "model":
        if options:
            raise TargetError(f"{target}: the model has no options, got {', '.join(sorted(options))}")
        from kohakutpu.model.transport import ModelTransport

        return Device(ModelTransport(text), digest, explain)
    from kohakubench.session import RtlSession

    return Device(RtlSession(name, **options), digest, explain)

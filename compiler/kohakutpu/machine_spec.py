# SPDX-License-Identifier: Apache-2.0
"""Every number of the machine the compiler uses, as one frozen value (docs/spec/compiler.md 0)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

LAYER = "leaf"

FEATURES = frozenset(
    [
        "drain_rowmajor",
        "xform_granule",
        "vec_mx_store",
        "shared_fetch",
        "desc_fill",
        "vshuf_pred",
        "emit_fuse",
        "stage_l2",
        "adapter_l2",
    ]
)
UNOFFERED = frozenset({"shared_fetch", "desc_fill"})
_MAY_BE_ZERO = ("stage_bytes", "arena_base")

Node = tuple[int, int]


@dataclass(frozen=True)
class MeshSpec:
    """One mesh: where its units, memory ports and orchestrator sit, as (x, y).

    ``grid`` is the number of router columns and rows. No program depends on it, so no digest does.
    """

    units: Mapping[str, tuple[Node, ...]]
    mem_ports: tuple[Node, ...] = ((0, 1),)
    orch: Node | None = None
    grid: Node | None = None


@dataclass(frozen=True)
class MachineSpec:
    """The machine a program is compiled for.

    ``vc_l1_forbidden`` is the closed interval of vector L1 footprints no program may have, and
    ``vc_const_sources`` the slots of a lane operation that take a constant from a scalar (S) or
    constant (K) register.

    Raises:
        ValueError: a feature name that is not in the list or that no machine offers, or a number below 1.
    """

    name: str
    meshes: tuple[MeshSpec, ...]
    lanes: int = 4
    kblock: int = 32
    word_bytes: int = 32
    fp16_entry_bytes: int = 256
    mx_entry_bytes: int = 128
    tiles: int = 512
    l1_a: int = 512
    l1_b: int = 512
    banks: int = 2
    l1_off_span: int = 256
    fill_max: int = 255
    wburst: int = 8
    k_per_issue: int = 1
    macs_per_cycle: int = 512
    acc_mw: int = 14
    slices: int = 16
    vlmax: int = 128
    vc_l1_words: int = 512
    vc_l1_forbidden: tuple[int, int] | None = None
    vc_desc: int = 8
    vc_dims: int = 4
    vc_walk_max: int = 256
    vc_imem: int = 512
    vregs: int = 16
    sregs: int = 16
    kregs: int = 4
    pregs: int = 4
    vc_const_sources: frozenset[str] = frozenset({"aS", "aK", "bS", "bK", "cS", "cK"})
    stage_flits: int = 128
    ncmd: int = 128
    credit_max: int = 32
    inst_depth: Mapping[str, int] = field(default_factory=lambda: {"MG": 32, "VC": 32})
    max_inflight: Mapping[str, int] = field(default_factory=lambda: {"MG": 1, "VC": 1})
    ackq: Mapping[str, int] = field(default_factory=lambda: {"MG": 128, "VC": 64})
    dram_bytes: int = 1 << 32
    stage_bytes: int = 0
    arena_base: int = 0
    arena_align: int = 2048
    features: frozenset[str] = frozenset({"emit_fuse"})

    def __post_init__(self) -> None:
        unknown = self.features - FEATURES
        if unknown:
            raise ValueError(
                f"machine {self.name}: unknown features {sorted(unknown)}; known: {sorted(FEATURES)}"
            )
        reserved = self.features & UNOFFERED
        if reserved:
            raise ValueError(
                f"machine {self.name}: {sorted(reserved)} have no encoding; no machine offers them"
            )
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, int) and value < (0 if f.name in _MAY_BE_ZERO else 1):
                raise ValueError(f"machine {self.name}: {f.name} = {value}; it must be at least 1")

    def units(self, kind: str, mesh: int = 0) -> tuple[Node, ...]:
        """Coordinates of all units of ``kind`` ("MG", "VC") in scan order.

        Raises:
            ValueError: the mesh carries none; the message names the meshes that do.
        """
        found = tuple(self.meshes[mesh].units.get(kind, ()))
        if found:
            return found
        carry = [str(i) for i, m in enumerate(self.meshes) if m.units.get(kind)]
        raise ValueError(
            f"machine {self.name}: mesh {mesh} has no unit of type {kind}; "
            + (f"meshes that do: {', '.join(carry)}" if carry else "no mesh has one")
        )

    @property
    def credit(self) -> int:
        """Largest credit seed: the smallest instruction FIFO among the units present."""
        kinds = {k for m in self.meshes for k, nodes in m.units.items() if nodes}
        return min([self.credit_max, *(self.inst_depth[k] for k in kinds if k in self.inst_depth)])

    @property
    def bank_entries(self) -> tuple[int, int]:
        """Entries of one half of the cluster's L1, side A and side B (docs/spec/compiler.md 5.3)."""
        return min(self.l1_a // self.banks, self.l1_off_span), min(self.l1_b // self.banks, self.l1_off_span)

    def digest(self) -> str:
        """Hash of every field; an artifact carries it, so it never runs on another machine."""
        return hashlib.sha256(json.dumps(self._plain(), sort_keys=True).encode()).hexdigest()[:32]

    def _plain(self) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "meshes":
                value = [
                    {
                        "units": {k: [list(n) for n in v] for k, v in sorted(m.units.items())},
                        "mem_ports": [list(n) for n in m.mem_ports],
                        "orch": m.orch and list(m.orch),
                    }
                    for m in value
                ]
            elif isinstance(value, frozenset):
                value = sorted(value)
            elif isinstance(value, Mapping):
                value = dict(sorted(value.items()))
            out[f.name] = value
        return out

    def with_(self, **changes: Any) -> MachineSpec:
        """A copy with some fields changed."""
        return replace(self, **changes)

    @classmethod
    def from_description(cls, text: Mapping[str, Any]) -> MachineSpec:
        """From the content of a ``<name>.machine.json`` (docs/spec/fabric.md 4.2)."""
        mesh = MeshSpec(
            units={k: tuple((x, y) for x, y in v) for k, v in text["units"].items()},
            mem_ports=tuple((x, y) for x, y in text["mem_ports"]),
            orch=tuple(text["orch"]) if text.get("orch") else None,
            grid=(int(text["nx"]), int(text["ny"])) if "nx" in text else None,
        )
        names = {f.name for f in fields(cls)}
        offered = frozenset(text.get("features", ()))
        extra = {k: v for k, v in text.items() if k in names - {"name", "meshes", "features", "units"}}
        if extra.get("vc_l1_forbidden"):
            low, high = extra["vc_l1_forbidden"]
            extra["vc_l1_forbidden"] = (int(low), int(high))
        if "vc_const_sources" in extra:
            extra["vc_const_sources"] = frozenset(extra["vc_const_sources"])
        built = text.get("params", {}).get("MG", {})
        for parameter, name in (("TILES", "tiles"), ("GA", "l1_a"), ("GB", "l1_b"), ("ACC_MW", "acc_mw")):
            if parameter in built:
                extra[name] = int(built[parameter])
        return cls(name=text["name"], meshes=(mesh,), features=offered, **extra)

    @classmethod
    def from_file(cls, path: str | Path) -> MachineSpec:
        """From a machine description file."""
        return cls.from_description(json.loads(Path(path).read_text(encoding="utf-8")))

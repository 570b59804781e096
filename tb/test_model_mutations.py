# SPDX-License-Identifier: Apache-2.0
"""Faults put into a copy of the reference model, each of which its tests have to notice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.mutation

ROOT = Path(__file__).resolve().parents[1]
MODEL = Path("compiler/kohakutpu/model")

# name: (file, text, replacement, test file, tests to run)
MUTATIONS = {
    "reciprocal of 13": ("numerics/mxfp7.py", "2520", "2521", "numerics", "random_entries"),
    "scale carry": ("numerics/mxfp7.py", "(m8 >= 16)", "(m8 > 16)", "numerics", "scale_boundaries"),
    "scale clamp": ("numerics/mxfp7.py", "-SCALE_BIAS, 11", "-19, 11", "numerics", "lone_code"),
    "tie direction": ("numerics/mxfp7.py", "(shift + 15))", "(shift + 15)) - 1", "numerics", "lone_code"),
    "slot order": ("numerics/mxfp7.py", "(-2, -1, -3)", "(-2, -3, -1)", "numerics", "quantiser_vectors"),
    "block rounding": ("numerics/bits.py", "(floor & 1) == 1", "(floor & 1) == 0", "numerics", "chain"),
    "lost bits": ("numerics/accumulator.py", "(lost | ", "(~lost | ", "accumulator", "contract"),
    "alignment clamp": (
        "numerics/accumulator.py",
        "eb - es, mw + 9",
        "eb - es, mw",
        "accumulator",
        "exponent",
    ),
    "saturation": ("numerics/accumulator.py", "over = e >= 127", "over = e >= 126", "accumulator", "corners"),
    "flush to zero": ("numerics/accumulator.py", "(q <= 0)", "(q < 0)", "accumulator", "exhaustive"),
    "granule width": (
        "numerics/accumulator.py",
        "w = mw + 8",
        "w = mw + 7",
        "accumulator",
        "vectors or commands",
    ),
    "order of K": ("numerics/tiles.py", "in range(nk)", "in reversed(range(nk))", "accumulator", "products"),
    "subnormal store": ("numerics/convert.py", "118 - e", "117 - e", "numerics", "boundaries"),
    "first FILL row": ("cluster_decode.py", "i.n > g.MG_FILL_MAX", "i.n > 256", "decode", "decode_row"),
    "row order": ("cluster_decode.py", "i.node and i.dfin == 0", "i.dfin == 0", "decode", "decode_row"),
    "fence mark": ("cluster.py", "last or (passed and", "last or (True and", "machine", "owner_is"),
    "async kept": (
        "cluster.py",
        "fault, self._async = self._async, None",
        "fault = self._async",
        "bursts",
        "reject",
    ),
    "opened count": ("cluster.py", "max(self.opened, i.gm * i.gn)", "i.gm * i.gn", "machine", "partial"),
    "fault counts": (
        "cluster.py",
        "if fault is None:\n            # an",
        "if True:\n            # an",
        "machine",
        "success",
    ),
    "partition": ("cluster.py", "n = min(g.MG_WBURST,", "n = min(7,", "machine", "node_drain"),
    "first failure": ("shell.py", "self._pending or code", "code or self._pending", "machine", "owner_is"),
    "split entry": ("operand_store.py", "good = False\n", "good = True\n", "bursts", "split_entry"),
    "reply target": (
        "cud_rx.py",
        "ack if ack != (0, 0) else flit.src",
        "ack",
        "bursts",
        "acknowledgement or single",
    ),
    "count of a burst": ("cud_rx.py", "last != (burst.left == 0)", "False", "bursts", "last_against"),
    "order of checks": ("memory.py", "aligned and addr % WORD", "False", "memory", "classify"),
    "whole run": (
        "agent.py",
        "self.check(addr, words * WORD)",
        "self.check(addr, WORD)",
        "memory",
        "faulting",
    ),
    "credit of a batch": (
        "orchestrator.py",
        "if fault or code ==",
        "if True or code ==",
        "control",
        "credit",
    ),
    "credit ceiling": (
        "orchestrator.py",
        "min(self.credit + 1, self._ceiling)",
        "self.credit + 1",
        "control",
        "ceiling",
    ),
    "first event": (
        "orchestrator.py",
        "if self._first_event is None:\n                self",
        "if True:\n                self",
        "control",
        "first_event",
    ),
    "slot without DONE": (
        "engine.py",
        "self.pc == self.desc.ncmd - 1",
        "self.pc == 126",
        "control",
        "engine_ends",
    ),
    "walk order": ("walker.py", "reversed(self.dims[: self.ndim])", "self.dims[: self.ndim]", "mover", "grid"),
    "extent of zero": ("walker.py", "            if extent:", "            if True:", "mover", "padding"),
    "count of zero": ("walker.py", "count = max(dim.count, 1)", "count = max(dim.count, 2)", "mover", "random_moves"),
    "skipped elements": ("mover.py", "bad = used & (codes", "bad = (codes", "mover_faults", "precedence"),
    "destination first": (
        "mover.py",
        "[*checks, *self._checks(taken, used)]",
        "[*self._checks(taken, used), *checks]",
        "mover_faults",
        "precedence",
    ),
    "source one longer": (
        "mover.py",
        "min(n, source.length() - first), F.F_WALK",
        "min(n, source.length() - first + 1), F.F_WALK",
        "mover_faults",
        "earlier_elements",
    ),
    "mark of a dimension": (
        "mover_registers.py",
        'f["base"], f["ndim"], False',
        'f["base"], f["ndim"], walker.bad_index',
        "mover_faults",
        "marks_until",
    ),
    "gather beyond 40 bits": (
        "mover.py",
        "far > np.uint64(ADDR_MASK)",
        "far > np.uint64(1 << 63)",
        "mover",
        "end_of_the_range",
    ),
    "immediate width": ("mover.py", 'width = 1 << self.field("MV_CTRL", "ewidth")', "width = 2", "mover", "fill"),
    "partial entry": (
        "mover.py",
        "stop = _judge(move, checks) // (apart + take)",
        "stop = -(-_judge(move, checks) // (apart + take))",
        "transform",
        "whole_entries",
    ),
    "size of an entry": ("mover.py", "[WORD * give // apart] * apart", "[WORD] * apart", "transform", "whole_entries"),
    "sticky fault": (
        "mover.py",
        "self.sticky = True",
        "self.sticky = self.sticky",
        "mover_faults",
        "before_any_access",
    ),
    "generator key": ("prng.py", "k1 + g.MEM_PHILOX_W1", "k1 + g.MEM_PHILOX_W0", "mover", "generator"),
    "packing bit": ("transform.py", "Layout.B if mode & 1", "Layout.B if mode", "transform", "strided_sources"),
    "non-finite entry": ("transform.py", "special.any(axis=1)", "special.all(axis=1)", "transform", "nonfinite"),
    "granule order": ("transform.py", "(0, 2, 1, 3)", "(0, 1, 2, 3)", "transform", "granule"),
    "window top": (
        "adapter.py",
        "addr >= self.base + self.size:",
        "addr > self.base + self.size:",
        "adapter",
        "window_edges",
    ),
    "tags of a run": ("adapter.py", "tags > 255", "tags > 256", "adapter", "tags"),
    "order of acknowledgements": (
        "adapter.py",
        "while self.order and self.order[0].ack",
        "if self.order and self.order[0].ack",
        "adapter",
        "keep_the_order",
    ),
    "cleared status": (
        "adapter.py",
        "                    self.status = 0",
        "                    answer = self.status = 0",
        "adapter",
        "before_it_is_cleared",
    ),
    "bits of the base": ("adapter.py", '"base") & -self.size', '"base")', "adapter", "reset_and_registers"),
    "interrupted forward": (
        "adapter.py",
        "last = int(old.done + 1 < old.words)",
        "last = 1",
        "adapter",
        "ends_an_open",
    ),
    "range of a run": ("memory.py", "offsets + n > size", "offsets > size", "staging", "many_addresses"),
    "runs served": ("agent.py", "self.port_reads + entries", "self.port_reads + 1", "staging", "counts_of"),
    "burst type first": (
        "agent.py",
        "if not supported:",
        "if not supported and not fault:",
        "staging",
        "not_supported",
    ),
    "tier of a word": (
        "agent.py",
        "((self.dram, ~staged), (self.stage, staged)):\n            out",
        "((self.dram, staged), (self.stage, ~staged)):\n            out",
        "staging",
        "all_words or from_the_store",
    ),
    "window of the product": ("numerics/e8m15.py", "_PRODUCT_SHIFT = 18", "_PRODUCT_SHIFT = 12", "e8m15", "alignment"),
    "window of the addend": ("numerics/e8m15.py", "_ADDEND_SHIFT = 35", "_ADDEND_SHIFT = 16", "e8m15", "alignment"),
    "sign of a zero": ("numerics/e8m15.py", "np.where(zz, z & SIGN, z), out)", "z, out)", "e8m15", "special_operands"),
    "exp2 of 128": ("numerics/e8m15_seeds.py", "e >= 134", "e >= 135", "e8m15_seeds", "exp2_around"),
    "constant of a segment": ("numerics/seed_tables.py", "(94904,", "(94905,", "e8m15_seeds", "tables_follow"),
    "accumulator side": (
        "numerics/e8m15_reduce.py",
        "node(_tree(node, beats), accumulators[:used])",
        "node(accumulators[:used], _tree(node, beats))",
        "e8m15",
        "specials_in_every_leaf",
    ),
    "last address": ("vector_memory.py", "t = min(k, last)", "t = k", "vector", "short"),
    "whole fill is bad": (
        "vector_memory.py",
        "self.bad[l1 : l1 + reach] = worst",
        "self.bad[l1 : l1 + reach] = codes",
        "vector",
        "read_error",
    ),
    "clamp of the tail": ("vector_memory.py", "[: min(n, vl)]", "[:n]", "vector", "no_clamp"),
    "clamp behind a fault": ("vector_memory.py", "[: min(n, vl)]", "[:vl]", "vector", "behind_a_fault"),
    "tags wrap": (
        "vector_memory.py",
        "if l1 is not None and 0 < ",
        "if l1 is None and 0 < ",
        "vector_unit",
        "requests_of",
    ),
    "unused stride": (
        "vector_memory.py",
        "zip(self.strides, self.extents, strict=True) if n > 1]",
        "zip(self.strides, self.extents, strict=True)]",
        "vector",
        "unused_stride",
    ),
    "end of a buffer": ("vector_memory.py", "granules > 1 <<", "granules >= 1 <<", "vector", "peer_256"),
    "marks of a run": ("vector_memory.py", "self.bad[:] = 0", "self.bad[:] = self.bad", "vector_unit", "bad_words_end"),
    "loop end in a group": ("vector_core.py", "self._next > self._loop.end:", "False:", "vector", "splits"),
    "loop room": ("vector_core.py", "end >= g.VC_IMEM_WORDS", "end > g.VC_IMEM_WORDS", "vector", "body_past"),
    "predicate inside a group": (
        "vector_decode.py",
        "(i.compare or position < depth - 1)",
        "i.compare",
        "vector",
        "pm_in_head",
    ),
    "event reported once": (
        "vector.py",
        "event, self._event = self._event, None",
        "event = self._event",
        "vector_unit",
        "rejected",
    ),
    "first event kept": ("vector.py", "if self._event is None:", "if True:", "vector_unit", "first_event"),
    "capacity of L1": (
        "vector.py",
        "offset + n > g.VC_L1_WORDS",
        "offset + n >= g.VC_L1_WORDS",
        "vector_unit",
        "accepted",
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_caught(name: str, tmp_path: Path) -> None:
    file, old, new, test, select = MUTATIONS[name]
    skip = shutil.ignore_patterns("__pycache__", "sim_build", ".*")
    for folder in ("compiler", "spec", "tb"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    target = tmp_path / MODEL / file
    text = target.read_text()
    assert old in text, f"{file} no longer contains {old!r}; adapt the mutation"
    target.write_text(text.replace(old, new))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tmp_path / f) for f in ("compiler", "tb"))}
    command = [sys.executable, "-m", "pytest", f"tb/test_model_{test}.py", "-x", "-q", "-k", select]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert " failed" in done.stdout

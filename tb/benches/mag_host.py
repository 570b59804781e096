# SPDX-License-Identifier: Apache-2.0
"""Host window S_AXI_MEM of the memory agent, driven by an AXI4 master (docs/spec/memory.md 9)."""

from benches.mag_host_t_bursts import *  # noqa: F403
from benches.mag_host_t_errors import *  # noqa: F403
from kohakubench import Bench
from kohakubench.mag_tb import PUBLIC, SOURCES

BENCH = Bench(
    name="mag_host",
    top="tb_mag",
    sources=SOURCES,
    params={"HOST": 1, "STAGE": 1, "STAGE_ENTRIES": 1024, "DRAM_LOG2": 17},
    slow_variants=("mesh1",),
    variants={"mesh1": {"MESH_ID": 1, "STAGE_PIPE": 0, "RD_OUT": 1}},
    public=PUBLIC,
    mutations={
        "page_split": ("rtl/memory/mag_host.v", "8'd128 - {1'b0, word_q[6:0]}", "8'd128"),
        "strobes": ("rtl/memory/mag_host.v", ".in_data   ({s_axi_mem_wstrb,", ".in_data   ({~32'd0,"),
        "id_lost": ("rtl/memory/mag_host.v", "assign s_axi_mem_rid     = id_q;", "assign s_axi_mem_rid     = 4'd0;"),
        "early_b": (
            "rtl/memory/mag_host.v",
            "(ask_q == 9'd0 && open_q == 5'd0));",
            "(ask_q == 9'd0));",
        ),
        "range_open": ("rtl/memory/mag_host.v", ".words ({2'd0, words}),", ".words (11'd1),"),
        "read_first": (
            "rtl/memory/mag_host.v",
            "state_q == S_IDLE && !s_axi_mem_awvalid;",
            "state_q == S_IDLE;",
        ),
        "error_kept": (
            "rtl/memory/mag_host.v",
            "(refused || ret_err) ? 256'd0 : ret_data",
            "refused ? 256'd0 : ret_data",
        ),
        "bus_error_lost": ("rtl/memory/mag_host.v", ": bus_q ? SLVERR : OKAY;", ": OKAY;"),
        "burst_type": ("rtl/memory/mag_host.v", "s_axi_mem_awburst != INCR || ", ""),
        "wrong_class": (
            "rtl/memory/mag.v",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_HOST",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_PORT",
        ),
        "no_reservation": ("rtl/memory/mag_host.v", "ask && free_q >= {1'b0, piece};", "ask;"),
        "reset_keeps": ("rtl/memory/mag_host.v", "open_q     <= 5'd0;", "open_q     <= open_q;"),
    },
    mutation_tests={
        "page_split": ["long_bursts"],
        "strobes": ["ends_at_a_page"],
        "id_lost": ["sixteen_outstanding"],
        "early_b": ["write_then_read"],
        "range_open": ["refused"],
        "read_first": ["write_then_read"],
        "error_kept": ["errors_on_any_beat"],
        "bus_error_lost": ["errors_on_any_beat"],
        "burst_type": ["refused"],
        "wrong_class": ["refused"],
        "no_reservation": ["b_delayed"],
        "reset_keeps": ["reset_inside_a_burst"],
    },
    wall_s=400,
)

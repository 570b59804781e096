# SPDX-License-Identifier: Apache-2.0
"""Route function of every router of several grids against the page, for all 256 destinations."""

import cocotb
from cocotb.triggers import Timer

from kohakubench import Bench, checks

_ROUTE = "rtl/noc/router_route.v"

BENCH = Bench(
    name="route",
    top="tb_route",
    sources=[_ROUTE, "tb/hdl/tb_route.v"],
    variants={
        "2x1": {"NX": 2, "NY": 1},
        "2x2": {"NX": 2, "NY": 2},
        "1x4": {"NX": 1, "NY": 4},
        "3x2": {"NX": 3, "NY": 2},
        "14x14": {"NX": 14, "NY": 14},
    },
    params={"NX": 1, "NY": 1},
    mutations={
        "no_low_clamp": (_ROUTE, "(dst_y == 4'd0) ? 4'd1 :", "(dst_y == 4'd0) ? 4'd0 :"),
        "corner_goes_vertical": (
            _ROUTE,
            "else if (dst_x < PX) route",
            "else if (dst_x < PX && dst_y >= PY) route",
        ),
        "beyond_edge": (_ROUTE, "else if (dst_x > PX) route", "else if (dst_x == PX + 4'd1) route"),
    },
    wall_s=300,
)

N, E, S, W, L = (1 << i for i in range(5))


def expected(dst, pos, grid):
    """docs/spec/fabric.md 3.2."""
    (dst_x, dst_y), (pos_x, pos_y), (nx, ny) = dst, pos, grid
    cx, cy = min(max(dst_x, 1), nx), min(max(dst_y, 1), ny)
    order = ((cx, pos_x, W, E), (cy, pos_y, N, S), (dst_x, pos_x, W, E), (dst_y, pos_y, N, S))
    for target, here, low, high in order:
        if target != here:
            return low if target < here else high
    return L


@cocotb.test()
async def all_destinations(dut):
    """Every destination at every router, corners and values beyond the edge included."""
    nx, ny = int(dut.NX.value), int(dut.NY.value)
    for dst in range(256):
        dut.dst.value = dst
        await Timer(10, unit="ns")
        got = int(dut.routes.value)
        for y in range(1, ny + 1):
            for x in range(1, nx + 1):
                route = got >> 5 * ((y - 1) * nx + x - 1) & 31
                name = f"({dst & 15},{dst >> 4}) at ({x},{y})"
                checks.equal(name, route, expected((dst & 15, dst >> 4), (x, y), (nx, ny)))


@cocotb.test()
async def every_route_ends(dut):
    """Following the routes hop by hop reaches the endpoint the page names, without a second y to x turn."""
    nx, ny = int(dut.NX.value), int(dut.NY.value)
    step = {N: (0, -1), E: (1, 0), S: (0, 1), W: (-1, 0)}
    for dst in range(256):
        dut.dst.value = dst
        await Timer(10, unit="ns")
        got = int(dut.routes.value)
        x_end, y_end = min(dst & 15, nx + 1), min(dst >> 4, ny + 1)
        if x_end in (0, nx + 1) and y_end in (0, ny + 1):
            y_end = min(max(y_end, 1), ny)
        for start in {(1, 1), (nx, 1), (1, ny), (nx, ny), ((nx + 1) // 2, (ny + 1) // 2)}:
            at, hops = start, 0
            while 1 <= at[0] <= nx and 1 <= at[1] <= ny:
                route = got >> 5 * ((at[1] - 1) * nx + at[0] - 1) & 31
                if route == L:
                    break
                at = (at[0] + step[route][0], at[1] + step[route][1])
                hops += 1
                checks.true("hops", hops <= nx + ny, f"destination {dst:#x} from {start} runs in circles")
            checks.equal(f"end of {dst:#04x} from {start}", at, (x_end, y_end))

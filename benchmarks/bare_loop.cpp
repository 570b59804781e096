// SPDX-License-Identifier: Apache-2.0
// The same Verilated model as a live session, without cocotb and Python: reset, load the
// memory image, play the set-up batch, then time the machine from GO to its interrupt.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "Vtop.h"
#include "Vtop___024root.h"
#include "verilated.h"

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define SIGNAL(top, path) top->rootp->JOIN(TOP_NAME, __DOT__##path)

static void tick(Vtop* top) {
    top->clk = 1;
    top->eval();
    top->clk = 0;
    top->eval();
}

static void play(Vtop* top, const char* file) {
    std::filesystem::copy_file(file, "host_ops.hex", std::filesystem::copy_options::overwrite_existing);
    SIGNAL(top, u_host__DOT__load) = 1;
    top->eval();
    SIGNAL(top, u_host__DOT__load) = 0;
    top->eval();
    SIGNAL(top, u_host__DOT__run) = 1;
}

int main(int argc, char** argv) {
    auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(argc, argv);
    auto top = std::make_unique<Vtop>(context.get());
    long cycles = 0;
    double seconds = 0;
    // the first pass touches every page of code and data, as a session's earlier rounds do
    for (int pass = 0; pass < 2; ++pass) {
        top->rst_n = 0;
        top->tap_dump = 0;
        top->mark_clear = 0;
        top->run_ahead = 0;
        SIGNAL(top, u_dram__DOT__cfg_ideal) = 1;
        for (int i = 0; i < 16; ++i) tick(top.get());
        top->rst_n = 1;
        for (int i = 0; i < 320; ++i) tick(top.get());
        SIGNAL(top, u_dram__DOT__bd_load) = 1;
        top->eval();
        SIGNAL(top, u_dram__DOT__bd_load) = 0;
        top->eval();

        play(top.get(), "ops_setup.hex");
        while (!SIGNAL(top, u_host__DOT__done)) tick(top.get());
        SIGNAL(top, u_host__DOT__run) = 0;
        for (int i = 0; i < 4; ++i) tick(top.get());

        play(top.get(), "ops_go.hex");
        const auto start = std::chrono::steady_clock::now();
        for (cycles = 0; !top->irq && cycles < 100000000L; ++cycles) tick(top.get());
        seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        SIGNAL(top, u_host__DOT__run) = 0;
    }
    std::printf("%ld %.6f\n", cycles, seconds);
    return top->irq ? 0 : 1;
}

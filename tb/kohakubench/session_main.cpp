// SPDX-License-Identifier: Apache-2.0
// Simulator program of a live session.
//
// It serves VPI like any cocotb program, one time step after the other, and adds one thing:
// when Python writes `run_ahead` = n it clocks the model n cycles, or until `irq`, in a plain
// loop. Nobody watches in between, so nothing is called back and the model runs at its own
// speed. Callbacks that fell due meanwhile run at the end, at the later time.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>

#include "Vtop.h"
#include "verilated.h"
#include "verilated_vpi.h"
#if VM_TRACE
#if VM_TRACE_FST
#include "verilated_fst_c.h"
using Waves = VerilatedFstC;
#else
#include "verilated_vcd_c.h"
using Waves = VerilatedVcdC;
#endif
#endif

extern "C" void vlog_startup_routines_bootstrap(void);

namespace {

constexpr std::uint64_t kHalfPeriod = 5000;  // ps; the bench clock is 10 ns
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
std::uint64_t now = 0;

void propagate() {
    while (VerilatedVpi::callValueCbs()) {
    }
}

void settle(Vtop& top) {
    do {
        top.eval_step();
        VerilatedVpi::clearEvalNeeded();
        VerilatedVpi::doInertialPuts();
        propagate();
        if (!VerilatedVpi::evalNeeded()) {
            VerilatedVpi::callCbs(cbReadWriteSynch);
            VerilatedVpi::doInertialPuts();
            propagate();
        }
    } while (VerilatedVpi::evalNeeded());
    top.eval_end_step();
    VerilatedVpi::callCbs(cbReadOnlySynch);
}

void run_ahead(Vtop& top) {
    std::uint32_t left = top.run_ahead;
    top.run_ahead = 0;
    for (; left != 0 && !top.irq && !Verilated::gotFinish(); --left) {
        top.clk = 1;
        top.eval();
        now += kHalfPeriod;
        top.clk = 0;
        top.eval();
        now += kHalfPeriod;
    }
}

}  // namespace

double sc_time_stamp() { return static_cast<double>(now); }

int main(int argc, char** argv) {
    Verilated::commandArgs(argc, argv);
    auto top = std::make_unique<Vtop>("");
    Verilated::fatalOnVpiError(false);
#if VM_TRACE
    std::unique_ptr<Waves> waves;
    Verilated::traceEverOn(true);
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--trace") == 0) {
            waves = std::make_unique<Waves>();
            top->trace(waves.get(), 99);
            waves->open(VM_TRACE_FST ? "dump.fst" : "dump.vcd");
        }
    }
#endif
    vlog_startup_routines_bootstrap();
    VerilatedVpi::callCbs(cbStartOfSimulation);
    propagate();
    while (!Verilated::gotFinish()) {
        settle(*top);
#if VM_TRACE
        if (waves) waves->dump(now);
#endif
        if (top->run_ahead != 0 && top->clk == 0) run_ahead(*top);
        const std::uint64_t next =
            std::min<std::uint64_t>(VerilatedVpi::cbNextDeadline(), top->eventsPending() ? top->nextTimeSlot() : kNever);
        if (next == kNever) break;
        now = std::max(now, next);
        VerilatedVpi::callCbs(cbNextSimTime);
        propagate();
        VerilatedVpi::callTimedCbs();
        propagate();
    }
    top->final();
    VerilatedVpi::callCbs(cbEndOfSimulation);
#if VM_TRACE
    if (waves) waves->close();
#endif
    return Verilated::threadContextp()->errorCount() > 0 ? 1 : 0;
}

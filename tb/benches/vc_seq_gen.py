# SPDX-License-Identifier: Apache-2.0
"""Random kernels of the vector core: legal groups, hazards on few registers, loops, moves, reductions."""

from benches.vc_seq_rig import asm, codes, seti
from kohakutpu.isa import generated as g
from kohakutpu.isa import vector as isa

ARITH = [name for name, row in g.VC_OPCODES.items() if row[0] == "ALU"]
COMPARES = ("VCMPLT", "VCMPGT", "VCMPEQ")
MODES = ("FLAT", "D2", "D4", "TREE")
DEPTH = {"FLAT": 1, "D2": 2, "D4": 4}
V, S, C, K = range(4)
LENGTHS = (1, 15, 16, 17, 127, 128)
SCRATCH = 12
"""S12 and above belong to the generator: lengths, counts."""


def arith(rng, op, at=0, depth=1, regs=16, **fixed):
    """Word `at` of a group of `depth`; registers below `regs`; `fixed` replaces fields."""
    fields = {}
    for slot in "abc":
        source = rng.choice((V, S, K) if at == 0 else (C, C, S, K), p=(0.7, 0.2, 0.1) if at == 0 else None)
        limit = {V: regs, S: SCRATCH, C: 16, K: 4}[int(source)]
        fields |= {f"s{slot}": int(source), f"v{slot}": int(rng.integers(limit))}
    fields |= {"vd": int(rng.integers(regs)), "pr": int(rng.integers(4))}
    if at == depth - 1 and op not in COMPARES:
        fields["pm"] = int(rng.choice((0, 0, 1, 2)))
    return isa.encode(op, **fields | fixed)


def group(rng, mode, regs=16, **fixed):
    """One random group; `fixed` are fields of its last word, which is no compare if they predicate it."""
    depth = DEPTH[mode]
    words = [arith(rng, str(rng.choice(ARITH)), at, depth, regs) for at in range(depth - 1)]
    last = [op for op in ARITH if not (fixed.get("pm") and op in COMPARES)]
    return [*words, arith(rng, str(rng.choice(last)), depth - 1, depth, regs, **fixed)]


class Kernels:
    """Random legal kernels; `mode` and `vl` follow the state of the core."""

    def __init__(self, rng, mode="FLAT", vl=128, regs=16):
        self.rng, self.mode, self.vl, self.regs = rng, mode, vl, regs

    def reg(self):
        """A register number."""
        return int(self.rng.integers(self.regs))

    def set_length(self, vl):
        """VL through S15."""
        self.vl = int(vl)
        return asm(seti("S15", self.vl), "VSETVL S15")

    def set_mode(self, mode):
        """VMODE."""
        self.mode = str(mode)
        return asm(f"VSETMODE {mode}")

    def move(self):
        """VCVT, VSHUF or VBCAST."""
        rng = self.rng
        where = str(rng.choice(("", f" where P{rng.integers(4)}", f" where not P{rng.integers(4)}")))
        return asm(
            str(
                rng.choice(
                    (
                        f"VCVT.FP16 v{self.reg()}, v{self.reg()}",
                        f"VCVT.FP32 v{self.reg()}, v{self.reg()}",
                        f"VSHUF v{self.reg()}, v{self.reg()}, S{rng.integers(SCRATCH)}{where}",
                        f"VBCAST v{self.reg()}, S{rng.integers(SCRATCH)}",
                        f"VBCAST S{rng.integers(SCRATCH)}, v{self.reg()}",
                    )
                )
            )
        )

    def memory(self):
        """VLD, VST or an instruction that only passes through the memory unit."""
        rng = self.rng
        dtype = str(rng.choice(("FP16", "FP32", "FP32")))
        at = f"A{rng.integers(4)}+{rng.integers(400)}"
        return asm(
            str(
                rng.choice(
                    (f"VLD.{dtype} v{self.reg()}, {at}", f"VST.{dtype} v{self.reg()}, {at}", "VBAR", "VFILL A0, L1 3"),
                    p=(0.45, 0.45, 0.05, 0.05),
                )
            )
        )

    def reduction(self):
        """VRED: any kind in TREE mode with whole chunks, ANY and ALL elsewhere."""
        rng = self.rng
        sd = f"S{rng.integers(SCRATCH)}"
        kinds = ["ANY", "ALL"]
        if self.mode == "TREE" and self.vl % 16 == 0:
            kinds = ["ANY", "SUM", "MAX", "MIN", "SUMSQ", "DOT", "EXPSUM"]
        kind = str(rng.choice(kinds))
        if kind in ("ANY", "ALL"):
            return asm(f"VRED.{kind} {sd}, P{rng.integers(4)}")
        text = f"VRED.{kind} {sd}, v{self.reg()}"
        text += {"DOT": f", v{self.reg()}", "EXPSUM": f" -> v{self.reg()}"}.get(kind, "")
        return asm(text)

    def plain(self):
        """One instruction that leaves mode and length alone."""
        rng = self.rng
        pick = rng.random()
        if pick < 0.07:
            return asm(seti(f"S{rng.integers(SCRATCH)}", int(codes(rng, ()))))
        if pick < 0.09:
            return asm(seti("K3", int(codes(rng, ()))))
        if pick < 0.19:
            return self.move()
        if pick < 0.26:
            return self.memory()
        if pick < 0.31 or self.mode == "TREE":
            return self.reduction()
        return group(rng, self.mode, self.regs)

    def loop(self):
        """VLOOP over one to fifteen words."""
        rng = self.rng
        body = self.plain()
        want = int(rng.integers(1, 16))
        while len(body) < want:
            more = self.plain()
            if len(body) + len(more) > 15:
                break
            body += more
        return asm(seti("S14", int(rng.integers(1, 5))), f"VLOOP S14, {len(body)}", body)

    def make(self, words):
        """About `words` words of a kernel, VHALT not included."""
        rng = self.rng
        out = []
        while len(out) < words:
            pick = rng.random()
            if pick < 0.05:
                out += self.set_length(rng.choice((1, 15, 16, 17, 31, 32, 64, 100, 112, 127, 128)))
            elif pick < 0.12:
                out += self.set_mode(rng.choice(MODES, p=(0.35, 0.25, 0.25, 0.15)))
            elif pick < 0.17:
                out += self.loop()
            else:
                out += self.plain()
        return out

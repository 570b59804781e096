# SPDX-License-Identifier: Apache-2.0
"""Directed kernels of the vector core: every instruction at its edges, every fault of docs/spec/vector.md 11.

The tests of the model and the bench of the core run the same list. A kernel starts from whatever registers the one
before left; the surroundings (`DESCRIPTORS`, random L1, random memory from SOURCE on) are the same for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kohakubench.vector_programs import LOW, SOURCE, TARGET, Descriptor
from kohakutpu.isa import vector as isa

FLAT_WALK: Descriptor = (0, [1, 0, 0, 0], [16, 1, 1, 1])
DESCRIPTORS: dict[int, Descriptor] = {
    0: FLAT_WALK,
    1: (32, [1, 0, 0, 0], [16, 1, 1, 1]),
    2: (400, [1, 0, 0, 0], [16, 1, 1, 1]),
    3: (SOURCE, [32, 0, 0, 0], [8, 1, 1, 1]),
    4: (SOURCE + 0x400, [32, 0, 0, 0], [8, 1, 1, 1]),
    5: (TARGET, [32, 0, 0, 0], [8, 1, 1, 1]),
    6: (TARGET + 0x400, [32, 0, 0, 0], [8, 1, 1, 1]),
    7: (0x11_0040, [1, 0, 0, 0], [8, 1, 1, 1]),
}
PEER = "-> node (3,1) buf 0"


@dataclass(frozen=True)
class Kernel:
    """A kernel as assembly text, `fault` the name it ends with, None for VHALT.

    `descriptors` replaces entries of DESCRIPTORS; `read_errors` are addresses that answer with an error.
    """

    name: str
    text: str
    fault: str | None = None
    descriptors: Mapping[int, Descriptor] = field(default_factory=dict)
    read_errors: tuple[int, ...] = ()
    at: int = 0

    @property
    def words(self) -> list[int]:
        """The instruction words."""
        return assemble(self.text)


def assemble(text: str) -> list[int]:
    """Words of lines as the disassembler writes them; ``S0 = 128`` and ``K3 = 0x400000`` load an immediate.

    Lines may also be separated by semicolons; ``.word 0x..`` is any word. VHALT is not added.
    """
    words: list[int] = []
    for line in (part.strip() for part in re.split(r"[\n;]", text)):
        load = re.fullmatch(r"(S\d+|K3) = (\w+)", line)
        raw = re.fullmatch(r"\.word (0x[0-9a-fA-F]+)", line)
        if load:
            words += [isa.parse(f"VSETI {load[1]}"), isa.immediate(int(load[2], 0))]
        elif raw:
            words.append(int(raw[1], 16))
        elif line:
            words.append(isa.parse(line))
    return words


def _mode(name: str) -> str:
    return f"VSETMODE {name}\n"


def _length(n: int) -> str:
    return f"S15 = {n}\nVSETVL S15\n"


FLAT, D2, D4, TREE = (_mode(name) for name in ("FLAT", "D2", "D4", "TREE"))
FULL = _length(128)
LOADS = FLAT + FULL + "VLD.FP16 v0, A0; VLD.FP32 v1, A1; VLD.FP16 v2, A2\n"
END = "\nVHALT"
_K = "{sb=3 sc=3}"


def _fault(name: str, code: str, text: str, **rest: Mapping[int, Descriptor] | tuple[int, ...] | int) -> Kernel:
    return Kernel(name, text + END, code, **rest)  # type: ignore[arg-type]


def _fine(name: str, text: str, **rest: Mapping[int, Descriptor] | int) -> Kernel:
    return Kernel(name, text + END, None, **rest)  # type: ignore[arg-type]


def _encodings() -> Iterable[Kernel]:
    """F_DTYPE, F_ENC, F_VSRC, F_CHAIN, F_OPCODE."""
    for n in (0, 3, 4, 7):
        yield _fault(f"vld_dtype_{n}", "F_DTYPE", f"VLD.reserved{n} v3, A0" if n else "VLD.reserved0 v3, A0")
        yield _fault(f"vst_dtype_{n}", "F_DTYPE", f"VST.reserved{n} v3, A0")
        yield _fault(f"vcvt_dtype_{n}", "F_DTYPE", f"VCVT.reserved{n} v3, v1")
    flat = LOADS
    yield _fault("pm_3", "F_ENC", flat + "VMOV v3, v0 where reserved P1")
    yield _fault("pm_on_compare", "F_ENC", flat + "VCMPLT P1, v0, v1 {pm=1}")
    yield _fault("pm_3_on_shuffle", "F_ENC", flat + "VSHUF v3, v0, S1 where reserved P1")
    for slot, op in (("a", "VMOV v3, K4"), ("b", "VMUL v3, v0, K5"), ("c", "VADD v3, v0, K15")):
        yield _fault(f"k_number_{slot}", "F_ENC", flat + op)
    yield _fine("k_number_in_unread_slot", flat + "VMOV v3, v0 {sb=3 vb=9 sc=3 vc=12}")
    yield _fault("broadcast_from_chain", "F_ENC", "VBCAST S3, v2 {sa=2}")
    yield _fault("broadcast_from_constant", "F_ENC", "VBCAST S3, v2 {sa=3}")
    for n in (4, 9, 15):
        yield _fault(f"mode_{n}", "F_ENC", f"VSETMODE reserved{n}")
    yield _fault("seti_sel_1", "F_ENC", "VSETI S1 {sel=1}; .imm 0x5")
    yield _fault("seti_sel_2", "F_ENC", "VSETI S1 {sel=2}; .imm 0x5")
    yield _fault("seti_top_byte", "F_ENC", "VSETI S1; .imm 0x1000005")
    yield _fault("seti_k3_top_byte", "F_ENC", "VSETI K3; .imm 0x80000005")
    for n in (8, 11, 15):
        yield _fault(f"red_kind_{n}", "F_ENC", TREE + FULL + f"VRED.reserved{n} S1, v0")
    yield _fault("red_pm", "F_ENC", TREE + FULL + "VRED.SUM S1, v0 {pm=1}")
    yield _fault("red_any_pm", "F_ENC", "VRED.ANY S1, P0 {pm=2}")
    yield _fault("sumsq_two_operands", "F_ENC", TREE + FULL + "VRED.SUMSQ S1, v0, v1")
    yield _fault("red_enc_before_redvl", "F_ENC", FLAT + _length(17) + "VRED.reserved9 S1, v0")
    yield _fault("redvl_before_opcode", "F_REDVL", FLAT + _length(17) + "VRED.SUM S1, v0")
    yield _fault("redvl_in_tree", "F_REDVL", TREE + _length(100) + "VRED.MAX S1, v0")
    for mode in (FLAT, D2, D4):
        yield _fault(f"red_outside_tree_{mode[9:11]}", "F_OPCODE", mode + FULL + "VRED.MIN S1, v0")
    for op in ("VMOV v3, v0", "VCMPEQ P0, v0, v1", "VEXP2 v3, v1"):
        yield _fault(f"tree_{op[:5].strip()}", "F_OPCODE", TREE + op)
    yield _fault("tree_before_enc", "F_OPCODE", TREE + "VMOV v3, v0 where reserved P1")
    yield _fault("chain_in_flat", "F_CHAIN", flat + "VMOV v3, C")
    yield _fault("chain_in_flat_unread", "F_CHAIN", flat + "VMOV v3, v0 {sc=2}")
    yield _fault("enc_before_chain", "F_ENC", flat + "VMOV v3, C where reserved P1")
    yield _fault("chain_in_head_d2", "F_CHAIN", LOADS + D2 + f"VMOV v3, C; VMOV v3, C {_K}")
    yield _fault("chain_in_head_d4", "F_CHAIN", LOADS + D4 + "VMOV v3, v0 {sb=2}")
    yield _fault("vsrc_d2", "F_VSRC", LOADS + D2 + "VMOV v3, v0; VADD v3, C, v1 {sb=3}")
    yield _fault("vsrc_unread", "F_VSRC", LOADS + D2 + "VMOV v3, v0; VMOV v3, C {sb=3}")
    yield _fault("vsrc_d4_last", "F_VSRC", LOADS + D4 + f"VMOV v3, v0; VMOV v3, C {_K}; VMOV v3, C {_K}; VMOV v3, C")
    yield _fault("pm_in_head", "F_ENC", LOADS + D2 + "VMOV v3, v0 where P1")
    yield _fault("pm_inside_d4", "F_ENC", LOADS + D4 + f"VMOV v3, v0; VMOV v3, C where not P1 {_K}")
    yield _fault("pm_on_last_compare", "F_ENC", LOADS + D2 + "VMOV v3, v0; VCMPLT P1, C, K1 {sc=3 pm=1}")
    for n, op in enumerate(("VLD.FP16 v3, A0", "VHALT", "VSETI S1", "VBAR")):
        yield _fault(f"group_word_{n}", "F_OPCODE", LOADS + D2 + f"VMOV v3, v0; {op}")
    yield _fault("group_word_d4", "F_OPCODE", LOADS + D4 + f"VMOV v3, v0; VMOV v3, C {_K}; VMOV v3, C {_K}; VHALT")


def _control() -> Iterable[Kernel]:
    """F_VL, F_LOOP, F_PC and the loops and immediates around them."""
    for n in (0, 129, 0x800080, 0xFFFFFF):
        yield _fault(f"vl_{n:x}", "F_VL", _length(n))
    for n in (1, 128):
        yield _fine(f"vl_{n}", FLAT + _length(n) + "VMOV v3, K1")
    count = "S1 = 3\n"
    yield _fine("loop", FLAT + FULL + "VMOV v3, K0\n" + count + "VLOOP S1, 1\nVADD v3, v3, K1")
    yield _fine("loop_once", FLAT + FULL + "S1 = 1\nVLOOP S1, 2\nVMOV v3, K1; VADD v4, v3, K1\nVMOV v5, v4")
    yield _fine("loop_twice", FLAT + FULL + "S1 = 2\nVLOOP S1, 2\nVADD v3, v3, K1; VMUL v4, v3, v3")
    body = "; ".join(f"VADD v{3 + n % 3}, v{3 + n % 4}, K1" for n in range(15))
    yield _fine("loop_body_15", FLAT + FULL + count + "VLOOP S1, 15\n" + body)
    yield _fine("loop_then_loop", FLAT + FULL + count + "VLOOP S1, 1\nVADD v3, v3, K1\nVLOOP S1, 1\nVADD v3, v3, K2")
    yield _fine("loop_with_pair", FLAT + FULL + count + "VLOOP S1, 3\nS2 = 0x400000\nVADD v3, v3, S2")
    yield _fine("loop_pair_at_end", FLAT + FULL + count + "VLOOP S1, 3\nVADD v3, v3, S2\nS2 = 0x400000")
    group = "VADD v3, v3, K1; VMUL v3, C, K1 {sc=3}"
    yield _fine("loop_group_at_end", FULL + D2 + count + f"VLOOP S1, 2\n{group}")
    yield Kernel("halt_in_loop", FLAT + FULL + count + "VLOOP S1, 2\nVADD v3, v3, K1\nVHALT\nVMOV v4, K2" + END)
    most = "S1 = 0xffffff\nVLOOP S1, 2\nVADD v3, v3, K1\nVHALT"
    yield Kernel("halt_in_longest_loop", FLAT + FULL + most)
    yield _fault("loop_count_0", "F_LOOP", "S1 = 0\nVLOOP S1, 1\nVMOV v3, K1")
    yield _fault("loop_body_0", "F_LOOP", count + "VLOOP S1, 0")
    yield _fault("loop_nested", "F_LOOP", count + "VLOOP S1, 2\nVMOV v3, K1\nVLOOP S1, 1\nVMOV v3, K1")
    yield _fault("loop_splits_pair", "F_LOOP", count + "VLOOP S1, 1\nVSETI S2\n.imm 0x5")
    yield _fault("loop_splits_group", "F_LOOP", FULL + D2 + count + f"VLOOP S1, 1\n{group}")
    yield _fault("loop_splits_d4", "F_LOOP", FULL + D4 + count + "VLOOP S1, 3\n" + group + f"; VMOV v3, C {_K}" * 2)
    yield _fault("own_check_before_loop_end", "F_ENC", count + "VLOOP S1, 1\nVSETI S2 {sel=1}\n.imm 0x5")
    # the last words of instruction memory
    tail = FLAT + FULL + count
    room = 512 - len(assemble(tail)) - 1
    yield Kernel("loop_ends_at_511", tail + "VLOOP S1, 1\nVHALT", None, at=room - 1)
    yield Kernel("loop_body_past_511", tail + "VLOOP S1, 2\nVHALT", "F_LOOP", at=room - 1)
    yield Kernel("runs_past_511", FLAT + FULL + "VMOV v3, K1", "F_PC", at=512 - len(assemble(FLAT + FULL)) - 1)
    yield Kernel("immediate_past_511", "VSETI S1", "F_PC", at=511)
    yield Kernel("group_past_511", FULL + D2 + "VMOV v3, K1", "F_PC", at=512 - len(assemble(FULL + D2)) - 1)
    yield Kernel("halt_at_511", "VHALT", None, at=511)


def _addresses() -> Iterable[Kernel]:
    """F_LEN, F_L1RANGE, F_ALIGN, F_ADDR, F_PEER, F_MEM_RD, and walks."""

    def walk(base: int, strides: list[int], bounds: list[int]) -> dict[int, Descriptor]:
        return {4: (base, strides, bounds)}

    full = FLAT + FULL
    for form in ("FP16", "FP32"):
        for op in ("VLD", "VST"):
            text = full + f"{op}.{form} v3, A4"
            yield _fault(f"{op}_{form}_below_0", "F_L1RANGE", text, descriptors=walk(2, [-1, 0, 0, 0], [16, 1, 1, 1]))
            yield _fault(
                f"{op}_{form}_at_once", "F_L1RANGE", text + "-1", descriptors=walk(0, [1, 0, 0, 0], [16, 1, 1, 1])
            )
            yield _fault(f"{op}_{form}_above", "F_L1RANGE", text, descriptors=walk(507, [1, 0, 0, 0], [16, 1, 1, 1]))
            yield _fault(f"{op}_{form}_far", "F_L1RANGE", text, descriptors=walk(1 << 39, [0, 0, 0, 0], [1, 1, 1, 1]))
            yield _fine(f"{op}_{form}_one_word", text, descriptors=walk(77, [0, 0, 0, 0], [1, 1, 1, 1]))
            yield _fine(f"{op}_{form}_short", text, descriptors=walk(77, [1, -4, 0, 0], [3, 2, 1, 1]))
            yield _fine(f"{op}_{form}_zero_bounds", text, descriptors=walk(77, [3, 5, 7, 9], [0, 0, 0, 0]))
            yield _fine(f"{op}_{form}_4d", text, descriptors=walk(200, [1, 17, -30, 41], [2, 2, 2, 2]))
            yield _fine(f"{op}_{form}_primes", text, descriptors=walk(100, [1, 10, -20, 50], [3, 5, 2, 7]))
            yield _fine(f"{op}_{form}_top", text, descriptors=walk(511, [-1, 0, 0, 0], [16, 1, 1, 1]))
            for d in range(4):
                alone = walk(300, [3 if n == d else 99 for n in range(4)], [7 if n == d else 1 for n in range(4)])
                yield _fine(f"{op}_{form}_dimension_{d}", text, descriptors=alone)
            lowest = walk(8192, [1, 0, 0, 0], [16, 1, 1, 1])
            yield _fine(f"{op}_{form}_off_lowest", text + "-8192", descriptors=lowest)
            far = walk(8191, [1, 0, 0, 0], [16, 1, 1, 1])
            yield _fine(f"{op}_{form}_off_low", text + "-8191", descriptors=far)
            near = walk(0x3FFF, [1, 0, 0, 0], [16, 1, 1, 1])
            yield _fault(f"{op}_{form}_off_high", "F_L1RANGE", text + "+8191", descriptors=near)
    peer = {ad: (40, [1, 0, 0, 0], [8, 1, 1, 1]) for ad in (7,)}
    for op in ("VFILL A4, L1 10", "VDRAIN A4, L1 10"):
        name = op[:6].strip()
        base = SOURCE if name == "VFILL" else TARGET
        yield _fault(f"{name}_257", "F_LEN", op, descriptors=walk(base, [32, 0, 0, 0], [257, 1, 1, 1]))
        yield _fault(f"{name}_product", "F_LEN", op, descriptors=walk(base, [32, 32, 32, 32], [4, 4, 4, 5]))
        yield _fault(f"{name}_largest", "F_LEN", op, descriptors=walk(base, [32, 32, 32, 32], [65535] * 4))
        yield _fault(f"{name}_len_before_align", "F_LEN", op, descriptors=walk(base + 1, [1, 0, 0, 0], [300, 1, 1, 1]))
        yield _fault(f"{name}_base", "F_ALIGN", op, descriptors=walk(base + 16, [32, 0, 0, 0], [4, 1, 1, 1]))
        yield _fault(f"{name}_stride", "F_ALIGN", op, descriptors=walk(base, [32, 40, 0, 0], [4, 2, 1, 1]))
        yield _fine(f"{name}_unused_stride", op, descriptors=walk(base, [32, 40, 1, 3], [4, 1, 1, 0]))
        yield _fault(
            f"{name}_align_before_range",
            "F_ALIGN",
            op[:-2] + "509",
            descriptors=walk(base + 8, [32, 0, 0, 0], [4, 1, 1, 1]),
        )
        yield _fault(
            f"{name}_l1_range", "F_L1RANGE", op[:-2] + "509", descriptors=walk(base, [32, 0, 0, 0], [4, 1, 1, 1])
        )
        yield _fine(f"{name}_l1_end", op[:-2] + "508", descriptors=walk(base, [32, 0, 0, 0], [4, 1, 1, 1]))
        yield _fine(f"{name}_1", op, descriptors=walk(base, [32, 0, 0, 0], [1, 1, 1, 1]))
        yield _fine(f"{name}_255", op, descriptors=walk(base, [32, 0, 0, 0], [255, 1, 1, 1]))
        yield _fine(f"{name}_256", op, descriptors=walk(base, [32, 0, 0, 0], [256, 1, 1, 1]))
        yield _fine(f"{name}_blocks", op, descriptors=walk(base, [32, 320, 2240, -32], [5, 3, 2, 2]))
        yield _fine(f"{name}_same_word", op, descriptors=walk(base, [0, 0, 0, 0], [5, 1, 1, 1]))
        yield _fault(f"{name}_below_0", "F_ADDR", op, descriptors=walk(LOW + 96, [-32, 0, 0, 0], [9, 1, 1, 1]))
    yield _fault("VFILL_l1_511", "F_L1RANGE", "VFILL A4, L1 512")
    yield _fault("VFILL_l1_large", "F_L1RANGE", "VFILL A4, L1 16383")
    yield _fine("VFILL_across_256", "VFILL A4, L1 200\nVBAR", descriptors=walk(SOURCE, [32, 0, 0, 0], [100, 1, 1, 1]))
    yield _fault("drain_mx", "F_ENC", "VDRAIN A5, L1 0 {mx=1}")
    for extra in ("signal=1", "dst_x=3", "dst_y=1", "buf=1"):
        yield _fault(f"drain_memory_{extra}", "F_ENC", f"VDRAIN A5, L1 0 {{{extra}}}")
    yield _fine("peer", f"VDRAIN A7, L1 5 {PEER}, signal")
    yield _fine("peer_other_buffer", "VDRAIN A7, L1 5 -> node (3,1) buf 9")
    yield _fine(
        "peer_remote",
        f"VDRAIN A4, L1 5 {PEER}",
        descriptors=walk(0x2 << 24 | 0x45 << 26 | 0x12_0007, [1, 0, 0, 0], [3, 1, 1, 1]),
    )
    yield _fine("peer_one_any_stride", f"VDRAIN A4, L1 5 {PEER}", descriptors=walk(0x40, [77, 3, 3, 3], [1, 1, 0, 1]))
    yield _fine(
        "peer_ignored_bits", f"VDRAIN A4, L1 5 {PEER}", descriptors=walk(0x3F << 34 | 0x40, [1, 0, 0, 0], [2, 1, 1, 1])
    )
    yield _fine("peer_256", f"VDRAIN A4, L1 100 {PEER}", descriptors=walk(0xFF00, [1, 0, 0, 0], [256, 1, 1, 1]))
    rows = {
        "to_0_0": ("VDRAIN A7, L1 5 -> node (0,0) buf 0", (0x40, [1, 0, 0, 0], [8, 1, 1, 1])),
        "second_dimension": (f"VDRAIN A4, L1 5 {PEER}", (0x40, [1, 8, 0, 0], [8, 2, 1, 1])),
        "fourth_dimension": (f"VDRAIN A4, L1 5 {PEER}", (0x40, [1, 0, 0, 8], [8, 1, 1, 2])),
        "stride": (f"VDRAIN A4, L1 5 {PEER}", (0x40, [2, 0, 0, 0], [8, 1, 1, 1])),
        "offset": (f"VDRAIN A4, L1 5 {PEER}", (0xFFFC, [1, 0, 0, 0], [5, 1, 1, 1])),
        "remote_without_ack": (f"VDRAIN A4, L1 5 {PEER}", (1 << 26 | 0x40, [1, 0, 0, 0], [5, 1, 1, 1])),
        "before_range": (f"VDRAIN A4, L1 511 {PEER}", (0x40, [2, 0, 0, 0], [8, 1, 1, 1])),
    }
    for name, (text, desc) in rows.items():
        yield _fault(f"peer_{name}", "F_PEER", text, descriptors={4: desc, 7: desc})
    yield _fault("peer_257", "F_LEN", f"VDRAIN A4, L1 0 {PEER}", descriptors=walk(0x40, [2, 0, 0, 0], [257, 1, 1, 1]))
    yield _fault("peer_range", "F_L1RANGE", f"VDRAIN A7, L1 505 {PEER}", descriptors=peer)
    error = SOURCE + 32 * 5
    for name, use in {
        "bar": "VBAR",
        "halt": "VHALT",
        "load_first": FLAT + FULL + "VLD.FP16 v3, A1-10",
        "load_later": FLAT + FULL + "VLD.FP32 v3, A1-20",
        "store": FLAT + FULL + "VST.FP16 v3, A1-14",
        "fill": "VFILL A4, L1 25",
        "drain": "VDRAIN A5, L1 27",
        "peer": f"VDRAIN A7, L1 20 {PEER}",
        "after_compute": FLAT + FULL + "VMOV v3, K1; VADD v4, v3, K1; VHALT",
    }.items():
        yield _fault(f"read_error_{name}", "F_MEM_RD", "VFILL A3, L1 20\n" + use, read_errors=(error,))
    odd: dict[int, Descriptor] = {1: (9, [1, 0, 0, 0], [16, 1, 1, 1])}
    yield _fault(
        "read_error_inside_chunk",
        "F_MEM_RD",
        "VFILL A3, L1 16\n" + FLAT + FULL + "VLD.FP32 v3, A1",
        read_errors=(error,),
        descriptors=odd,
    )
    yield _fine(
        "fill_untouched_then_good", "VFILL A3, L1 20; VFILL A4, L1 40; VBAR; " + FLAT + FULL + "VLD.FP16 v3, A1-8"
    )


def _vectors() -> Iterable[Kernel]:
    """Every arithmetic opcode in every mode and length, predicates, moves, reductions."""
    operands = {"VMOV": "a", "VNEG": "a", "VABS": "a", "VADD": "ac", "VSUB": "ac", "VMUL": "ab", "VFMA": "abc"}
    operands |= {"VFNMA": "abc", "VMAX": "ab", "VMIN": "ab", "VSEL": "abc", "VEXP2": "a", "VLOG2": "a", "VINV": "a"}
    operands |= {"VRSQRT": "a", "VCMPLT": "ab", "VCMPGT": "ab", "VCMPEQ": "ab"}
    for n in (1, 15, 16, 17, 127, 128):
        flat = LOADS + "S2 = 0x3f4ccd; K3 = 0xc04000\n" + _length(n)
        chains = {D2: flat + D2, D4: flat + D4}
        for op, slots in operands.items():
            target = "P2" if op.startswith("VCMP") else "v4"
            registers = dict(zip("abc", ("v0", "v1", "v2"), strict=True))
            flat += f"{op} {', '.join([target, *(registers[s] for s in slots)])}\n"
            if not op.startswith("VCMP"):
                flat += f"{op} v5, {', '.join(('S2', 'v1', 'K3')[: len(slots)])} where P2\n"
                flat += f"{op} v6, {', '.join(('K3', 'S2', 'v2')[: len(slots)])} where not P2\n"
            unread = "".join(f"s{s}=3 " for s in "abc" if s not in slots).strip()
            tail = f" {{{unread}}}" if unread else ""
            chain = f"{op} {', '.join([target, 'C', *('S2', 'K3')[: len(slots) - 1]])}{tail}\n"
            late = f"{op} {', '.join([target, *('K1', 'S2')[: len(slots) - 1], 'C'])}{tail}\n"
            for mode in (D2, D4):
                head = "VFMA v9, v0, v1, v2\n"
                middle = late + (chain if target == "v4" else "VMUL v9, C, S2 {sc=3}\n")
                chains[mode] += head + (chain if mode == D2 else middle + chain)
        yield _fine(f"flat_ops_{n}", flat)
        for mode, text in chains.items():
            yield _fine(f"chain_ops_{mode[9:11]}_{n}", text)
        moves = LOADS + _length(n) + "S3 = 0xffff37; VCMPGT P1, v0, K0\n"
        moves += "VCVT.FP16 v3, v1; VCVT.FP32 v4, v1; VBCAST v5, S3; VBCAST S4, v1\n"
        moves += "VSHUF v6, v1, S3; VSHUF v1, v1, S3 where P1; VSHUF v7, v0, S3 where not P1\n"
        moves += "VRED.ANY S5, P1; VRED.ALL S6, P1; VST.FP16 v6, A0; VST.FP32 v7, A1"
        yield _fine(f"moves_{n}", moves)
    for k in range(16):
        yield _fine(f"rotate_{k}", LOADS + f"S3 = {0xFFFFF0 | k}\nVSHUF v3, v0, S3; VSHUF v0, v0, S3")
    for n in range(16, 144, 16):
        text = LOADS + "VCMPLT P1, v0, v1; VMOV v3, K1 where P1\n" + TREE + _length(n)
        text += "VRED.SUM S1, v0; VRED.MAX S2, v1; VRED.MIN S3, v2; VRED.SUMSQ S4, v0; VRED.DOT S5, v0, v1\n"
        text += "VRED.EXPSUM S6, v2 -> v5; VRED.EXPSUM S7, v2 -> v2; VRED.ANY S8, P1; VRED.ALL S9, P1"
        yield _fine(f"reductions_{n}", text)
    near = "".join(f"VCMPLT P{n}, v{n % 3}, v{(n + 1) % 3}\nVMOV v{3 + n}, K1 where P{n}\n" for n in range(4))
    for between in range(3):
        gap = "VADD v9, v0, v1\n" * between
        uses = f"VCMPLT P1, v0, v1\n{gap}VMOV v3, K2 where P1\nVCMPGT P1, v0, v1\n{gap}VRED.ANY S1, P1\n"
        uses += f"VCMPEQ P1, v0, v0\n{gap}VSHUF v4, v0, S1 where P1\nVCMPLT P1, v1, K0\n{gap}VRED.ALL S2, P1"
        yield _fine(f"compare_{between}_words_use", LOADS + uses)
    for n in (16, 48, 128):
        for mode, depth in ((FLAT, 1), (D2, 2), (D4, 4)):
            for count in range(1, 7):
                text = LOADS + "VMOV v3, K1\n" + _length(n) + mode
                for target, source in (("v3", "v3"), ("v{n}", "v0")):
                    for k in range(count):
                        text += f"VADD {target.format(n=4 + k)}, {source}, v1\n"
                        text += f"VADD {target.format(n=4 + k)}, C, K1 {{sb=3}}\n" * (depth - 1)
                yield _fine(f"groups_{mode[9:].strip()}_{count}_{n}", text)
    yield _fine("granule_transpose", granule_transpose())
    yield _fine(
        "compare_then_use", LOADS + near + "VCMPGT P0, v0, v1; VRED.ANY S1, P0; VCMPGT P1, v0, K3; VRED.ALL S2, P1"
    )
    yield _fine(
        "in_place_chain",
        LOADS + D4 + f"VADD v0, v0, v1; VMUL v0, C, K1 {{sc=3}}; VADD v0, C, K2 {{sb=3}}; VNEG v0, C {_K}\n" * 6,
    )
    yield _fine(
        "scalar_pipeline", LOADS + "VBCAST S1, v0; VMUL v3, v1, S1; VBCAST S2, v3; VFMA v4, v1, S2, S1; VBCAST v5, S2"
    )
    yield _fine("clamp", FLAT + FULL + "S1 = 0x477ff0\nVBCAST v3, S1\nVCVT.FP16 v4, v3")
    yield _fine(
        "no_clamp_in_the_tail",
        FLAT + _length(17) + "S1 = 0x477ff0\nVBCAST v3, S1\nS1 = 17\nVMOV v3, K1\nVCVT.FP16 v4, v3; VST.FP16 v3, A1",
    )
    yield _fine("clamp_of_a_store", FLAT + FULL + "S1 = 0xc90000\nVBCAST v3, S1\nVST.FP16 v3, A1")
    edge: dict[int, Descriptor] = {4: (508, [1, 0, 0, 0], [16, 1, 1, 1])}
    big = FLAT + FULL + "S1 = 0xc90000\nVBCAST v{}, S1\nVMOV v{}, K1\n" + _length(64)
    before = big.format(3, 4) + "VMOV v4, v3\n" + FULL + "VST.FP16 v4, A4"
    behind = big.format(3, 4) + "VMOV v3, v4\n" + FULL + "VST.FP16 v3, A4"
    yield _fault("clamp_before_a_fault", "F_L1RANGE", before, descriptors=edge)
    yield _fault("no_clamp_behind_a_fault", "F_L1RANGE", behind, descriptors=edge)


def granule_transpose() -> str:
    """Words 0..3 of L1 as 4x4 granules of four FP16 values, transposed into words 8..11.

    Granule i of word j moves to granule j of word i: a rotation by four lanes times i - j, merged where the lane
    belongs to granule j. A comparison of lane numbers with constants selects the lanes.
    """
    text = FLAT + FULL + "VMOV v15, K0; S1 = 0\n" + _length(16)
    # v15 = lane number: the one of lane 0 turned to lane n, times n
    text += "VMOV v14, K0\n" + _length(1) + "VMOV v14, K1\n" + _length(16)
    for lane in range(1, 16):
        text += f"S1 = {16 - lane}\nVSHUF v13, v14, S1\nS2 = {_small_float(lane):#x}\nVFMA v15, v13, S2, v15\n"
    text += "".join(f"VLD.FP16 v{r}, A0{f'+{r}' if r else ''}\n" for r in range(4))
    for j in range(4):
        # P0: lanes 4j..4j+3
        low, high = _small_float(4 * j - 0.5), _small_float(4 * j + 3.5)
        text += f"S1 = {low:#x}\nS2 = {high:#x}\nVCMPGT P0, v15, S1\nVCMPGT P1, v15, S2\n"
        text += "VMOV v12, K1; VMOV v12, K0 where P1; VMOV v11, K0; VMOV v11, v12 where P0; VCMPGT P2, v11, K0\n"
        for i in range(4):
            text += f"S3 = {4 * (i - j) % 16}\nVSHUF v{4 + i}, v{j}, S3 where P2\n"
    return text + "; ".join(f"VST.FP16 v{4 + i}, A0+{8 + i}" for i in range(4))


def _small_float(value: float) -> int:
    """E8M15 code of a number that FP32 holds exactly in its upper 24 bits."""
    return int(np.float32(value).view(np.uint32)) >> 8


ENCODINGS = tuple(_encodings())
CONTROL = tuple(_control())
ADDRESSES = tuple(_addresses())
VECTORS = tuple(_vectors())
KERNELS = (*ENCODINGS, *CONTROL, *ADDRESSES, *VECTORS)

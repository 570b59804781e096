# SPDX-License-Identifier: Apache-2.0
"""Second packer of every encoding, written by hand from the tables of ``docs/spec/*.md``.

It shares no table and no code with ``kohakutpu.isa``; tests compare the two. Each function packs whole
columns at once: a field is an array of n integers, a result is an array of n rows of 64-bit limbs, low limb
first. Every line names the bit range exactly as its page prints it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

LAYER = "L0"

Column = npt.NDArray[np.int64] | npt.NDArray[np.uint64]
Columns = dict[str, Column]
Limbs = npt.NDArray[np.uint64]


class Sheet:
    """n containers of ``width`` bits, all zero at first."""

    def __init__(self, n: int, width: int) -> None:
        self.width = width
        self.limbs: Limbs = np.zeros((n, (width + 63) // 64), dtype=np.uint64)

    def put(self, msb: int, lsb: int, column: Column) -> None:
        """Write ``column`` (two's complement when negative, at most 64 bits) to bits ``msb:lsb``."""
        bits = msb - lsb + 1
        assert 0 < bits <= 64
        assert msb < self.width
        value = column.astype(np.uint64)
        if bits < 64:
            value = value & np.uint64((1 << bits) - 1)
        at, shift = divmod(lsb, 64)
        self.limbs[:, at] |= value << np.uint64(shift)
        if shift + bits > 64:
            self.limbs[:, at + 1] |= value >> np.uint64(64 - shift)


def _new(f: Columns, width: int) -> Sheet:
    return Sheet(len(next(iter(f.values()))), width)


def header(f: Columns) -> Limbs:
    """Flit header, ``docs/spec/fabric.md`` 1.1; the payload stays 0."""
    s = _new(f, 288)
    s.put(287, 284, f["dst_x"])
    s.put(283, 280, f["dst_y"])
    s.put(279, 276, f["src_x"])
    s.put(275, 272, f["src_y"])
    s.put(271, 268, f["type"])
    s.put(267, 260, f["txn"])
    s.put(259, 259, f["last"])
    s.put(258, 256, f["rsvd"])
    return s.limbs


def mem_rd_req(f: Columns) -> Limbs:
    """``MEM_RD_REQ``, fabric 1.3 and memory 3."""
    s = _new(f, 256)
    s.put(255, 216, f["addr"])
    s.put(215, 208, f["len"])
    s.put(207, 200, f["flags"])
    s.put(199, 192, f["count"])
    s.put(191, 184, f["peer2"])
    s.put(183, 176, f["peer1"])
    s.put(175, 168, f["peer0"])
    s.put(167, 166, f["n_peer"])
    s.put(165, 158, f["entry_words"])
    return s.limbs


def mem_wr_req(f: Columns) -> Limbs:
    """``MEM_WR_REQ``, fabric 1.3."""
    s = _new(f, 256)
    s.put(255, 216, f["addr"])
    s.put(215, 208, f["len"])
    return s.limbs


def mem_wr_ack(f: Columns) -> Limbs:
    """``MEM_WR_ACK``, fabric 1.3 and memory 3."""
    s = _new(f, 256)
    s.put(7, 4, f["fault_code"])
    s.put(0, 0, f["drop"])
    return s.limbs


def cu_signal(f: Columns) -> Limbs:
    """``CU_SIGNAL``, fabric 1.3."""
    s = _new(f, 256)
    s.put(255, 248, f["code"])
    s.put(247, 216, f["arg"])
    return s.limbs


def cu_data_desc(f: Columns) -> Limbs:
    """``CU_DATA`` descriptor, fabric 1.3."""
    s = _new(f, 256)
    s.put(255, 248, f["buf_id"])
    s.put(247, 232, f["offset"])
    s.put(231, 224, f["len"])
    s.put(223, 216, f["flags"])
    s.put(215, 212, f["ack_y"])
    s.put(211, 208, f["ack_x"])
    return s.limbs


def cu_ctrl(f: Columns) -> Limbs:
    """``CU_CTRL`` request or reply, fabric 1.3."""
    s = _new(f, 256)
    s.put(255, 248, f["op"])
    s.put(247, 240, f["index"])
    s.put(239, 176, f["value"])
    return s.limbs


def data_arg(f: Columns) -> Limbs:
    """Argument of ``DATA_RECEIVED``, fabric 1.6."""
    s = _new(f, 32)
    s.put(31, 31, f["reject"])
    s.put(30, 24, f["reason"])
    s.put(7, 0, f["buf_id"])
    return s.limbs


def fault_arg(f: Columns) -> Limbs:
    """Argument of ``FAULT``, fabric 1.6."""
    s = _new(f, 32)
    s.put(31, 16, f["tag"])
    s.put(11, 8, f["detail"])
    s.put(7, 0, f["code"])
    return s.limbs


def address(f: Columns) -> Limbs:
    """40-bit address, memory 1.1."""
    s = _new(f, 40)
    s.put(39, 39, f["aperture"])
    s.put(38, 38, f["zero38"])
    s.put(37, 36, f["mesh"])
    s.put(35, 0, f["local"])
    return s.limbs


def cluster(f: Columns) -> Limbs:
    """Cluster instruction, ``docs/spec/cluster.md`` section 2; one layout for FILL, GEMM and DRAIN."""
    addr = f["addr"].astype(np.uint64)
    s = _new(f, 256)
    s.put(255, 252, f["op"])
    s.put(251, 218, addr & np.uint64(0x3FFFFFFFF))
    s.put(217, 202, f["n"])
    s.put(201, 201, f["sel"])
    s.put(200, 200, f["acc"])
    s.put(199, 192, f["gm"])
    s.put(191, 184, f["gn"])
    s.put(183, 176, f["nk"])
    s.put(175, 168, f["anchor"])
    s.put(167, 144, f["peer0"] | f["peer1"] << np.int64(8) | f["peer2"] << np.int64(16))
    s.put(143, 142, f["npeer"])
    s.put(140, 133, f["eoff"])
    s.put(132, 125, f["aoff"])
    s.put(124, 117, f["boff"])
    s.put(116, 116, f["emit"])
    s.put(115, 115, f["fuse"])
    s.put(114, 114, f["abank"])
    s.put(113, 113, f["bbank"])
    s.put(112, 112, f["fbank"])
    s.put(111, 111, f["dnode"])
    s.put(110, 107, f["dst_x"])
    s.put(106, 103, f["dst_y"])
    s.put(102, 95, f["dbuf"])
    s.put(94, 87, f["dflags"])
    s.put(86, 83, f["dack_y"])
    s.put(82, 79, f["dack_x"])
    s.put(78, 77, f["dmesh"])
    s.put(76, 69, f["dfin"])
    s.put(68, 63, addr >> np.uint64(34))
    s.put(62, 62, f["rowmajor"])
    s.put(61, 40, f["pitch"])
    return s.limbs


def imem(f: Columns) -> Limbs:
    """``IMEM``, ``docs/spec/vector.md`` section 2."""
    s = _new(f, 256)
    s.put(255, 252, np.full_like(f["addr"], 1))
    s.put(251, 243, f["addr"])
    s.put(31, 0, f["word"])
    return s.limbs


def desc(f: Columns) -> Limbs:
    """``DESC``, vector 2."""
    s = _new(f, 256)
    s.put(255, 252, np.full_like(f["ad"], 2))
    s.put(251, 249, f["ad"])
    s.put(248, 246, f["fld"])
    s.put(245, 212, f["value"])
    s.put(68, 63, f["value_hi"])
    return s.limbs


def run(f: Columns) -> Limbs:
    """``RUN``, vector 2."""
    s = _new(f, 256)
    s.put(255, 252, np.full_like(f["pc"], 3))
    s.put(251, 243, f["pc"])
    return s.limbs


_ALU: tuple[str, ...] = (
    "VMOV", "VNEG", "VABS", "VADD", "VSUB", "VMUL", "VFMA", "VFNMA", "VMAX", "VMIN", "VSEL",
    "VCMPLT", "VCMPGT", "VCMPEQ", "VEXP2", "VLOG2", "VINV", "VRSQRT",
)  # fmt: skip

# format: fields after the opcode, as the table of vector section 5 prints them
_WORDS: dict[str, tuple[tuple[str, int, int], ...]] = {
    "ALU": (
        ("sa", 26, 25), ("sb", 24, 23), ("sc", 22, 21), ("vd", 20, 17), ("va", 16, 13), ("vb", 12, 9),
        ("vc", 8, 5), ("pr", 4, 3), ("pm", 2, 1),
    ),
    "LDST": (("dtype", 26, 24), ("ad", 23, 21), ("vd", 20, 17), ("off", 13, 0)),
    "CVT": (("dtype", 26, 24), ("vd", 20, 17), ("va", 16, 13)),
    "RED": (("sd", 20, 17), ("va", 16, 13), ("vb", 12, 9), ("kind", 8, 5), ("pr", 4, 3), ("pm", 2, 1)),
    "BCAST": (("sa", 26, 25), ("d", 20, 17), ("a", 16, 13)),
    "SHUF": (("vd", 20, 17), ("va", 16, 13), ("sk", 12, 9), ("pr", 4, 3), ("pm", 2, 1)),
    "SETVL": (("sa", 16, 13),),
    "SETMODE": (("mode", 16, 13),),
    "SETI": (("sel", 26, 25), ("sd", 20, 17)),
    "LOOP": (("sa", 16, 13), ("body", 12, 9)),
    "FILL": (("ad", 23, 21), ("l1", 13, 0)),
    "DRAIN": (
        ("mx", 26, 26), ("signal", 25, 25), ("node", 24, 24), ("ad", 23, 21), ("dst_x", 20, 17),
        ("dst_y", 16, 13), ("buf", 12, 9), ("l1", 8, 0),
    ),
    "NONE": (),
}  # fmt: skip

VECTOR_OPCODES: dict[str, tuple[int, str]] = {name: (code, "ALU") for code, name in enumerate(_ALU)} | {
    "VCVT": (0x12, "CVT"),
    "VRED": (0x13, "RED"),
    "VLD": (0x14, "LDST"),
    "VST": (0x15, "LDST"),
    "VBCAST": (0x16, "BCAST"),
    "VSHUF": (0x17, "SHUF"),
    "VSETVL": (0x18, "SETVL"),
    "VSETMODE": (0x19, "SETMODE"),
    "VSETI": (0x1A, "SETI"),
    "VLOOP": (0x1B, "LOOP"),
    "VBAR": (0x1C, "NONE"),
    "VFILL": (0x1D, "FILL"),
    "VDRAIN": (0x1E, "DRAIN"),
    "VHALT": (0x1F, "NONE"),
}


def vector_word(op: str, f: Columns, n: int) -> Limbs:
    """n words of opcode ``op``, vector 5 and 6."""
    code, form = VECTOR_OPCODES[op]
    s = Sheet(n, 32)
    s.put(31, 27, np.full(n, code, dtype=np.int64))
    for name, msb, lsb in _WORDS[form]:
        s.put(msb, lsb, f[name])
    return s.limbs


def peer_base(f: Columns) -> Limbs:
    """Descriptor base of a peer drain, vector 8."""
    s = _new(f, 40)
    s.put(15, 0, f["off"])
    s.put(19, 16, f["ack_x"])
    s.put(23, 20, f["ack_y"])
    s.put(25, 24, f["mesh"])
    s.put(29, 26, f["fin_x"])
    s.put(33, 30, f["fin_y"])
    return s.limbs


def interlink_header(f: Columns) -> Limbs:
    """Interlink packet header, fabric 10.2."""
    s = _new(f, 96)
    s.put(3, 0, f["kind"])
    s.put(5, 4, f["dmesh"])
    s.put(7, 6, f["smesh"])
    s.put(15, 8, f["txn"])
    s.put(31, 16, f["len"])
    s.put(71, 32, f["addr"])
    s.put(72, 72, f["odd"])
    s.put(73, 73, f["strb"])
    return s.limbs


# register: offset or index on its page, then (field, msb, lsb)
REGISTERS: dict[str, tuple[int, tuple[tuple[str, int, int], ...]]] = {
    # fabric 6.2
    "STATUS": (0x0008, (("mesh_ready", 2, 2), ("error", 1, 1), ("busy", 0, 0))),
    "CAPS": (
        0x0010,
        (("grid_hi", 39, 32), ("grid_lo", 31, 24), ("pos_width", 23, 16), ("flit_width", 15, 0)),
    ),
    "CAPS2": (
        0x0028,
        (("magic", 63, 48), ("revision", 47, 40), ("stage_flits", 39, 24), ("orc_y", 23, 20),
         ("orc_x", 19, 16), ("grid_y_hi", 15, 8), ("grid_x_hi", 7, 0)),
    ),
    "ERR_STAT": (
        0x0030,
        (("aux_absent", 11, 11), ("axi_bad", 10, 10), ("mesh_lost", 9, 9), ("data_reject", 8, 8),
         ("node_fault", 7, 7), ("rx_drop", 6, 6), ("txkick_drop", 5, 5), ("dst_bad", 4, 4),
         ("cred_range", 3, 3), ("stage_range", 2, 2), ("kick_len0", 1, 1), ("kick_busy", 0, 0)),
    ),
    "ERR_INFO": (
        0x0038,
        (("events", 63, 48), ("arg", 47, 16), ("code", 15, 8), ("node_y", 7, 4), ("node_x", 3, 0)),
    ),
    "PROG_DST": (0x0040, (("dst_y", 7, 4), ("dst_x", 3, 0))),
    "PROG_LEN": (0x0048, (("len", 15, 0),)),
    "PROG_STAT": (0x0058, (("credit", 32, 17), ("left", 16, 1), ("run", 0, 0))),
    "PROG_CRED": (0x0060, (("credit", 15, 0),)),
    "PROG_BASE": (0x0068, (("base", 15, 0),)),
    "SIG_DONE": (0x0070, (("count", 15, 0),)),
    "TX_STATUS": (0x0148, (("full", 16, 16),)),
    "RX_STATUS": (0x01C8, (("overflow", 17, 17), ("empty", 16, 16))),
    "NODE_STATUS": (0x1000, (("code", 63, 56), ("arg", 55, 24), ("signal_count", 23, 8), ("valid", 0, 0))),
    # memory 7
    "MEM_CAPS": (
        0x0200,
        (("stage_bytes", 31, 0), ("dram_log2", 39, 32), ("ports", 43, 40), ("wburst", 47, 44),
         ("wr_slots", 55, 48), ("version", 63, 56)),
    ),
    "MEM_FAULT": (
        0x0208,
        (("code", 3, 0), ("cls", 7, 4), ("node", 15, 8), ("txn", 23, 16), ("addr", 63, 24)),
    ),
    "MEM_DROP": (0x0210, (("faults", 15, 0), ("orphan", 31, 16), ("ctrl", 47, 32))),
    "MEM_STGCNT": (0x0218, (("read", 31, 0), ("written", 63, 32))),
    "MEM_DRAMCNT": (0x0220, (("read", 31, 0), ("written", 63, 32))),
    # fabric 7.2
    "ENG_CTRL": (0x0000, (("err_code", 7, 4), ("err", 2, 2), ("done", 1, 1), ("busy", 0, 0))),
    "ENG_PC": (0x0008, (("pc", 15, 0),)),
    "ENG_POLLS": (0x0018, (("polls", 31, 0),)),
    "ENG_CAPS": (0x0020, (("magic", 63, 48), ("poll_ivl", 31, 16), ("ncmd", 15, 0))),
    "ENG_POLL_LIMIT": (0x0028, (("limit", 31, 0),)),
    "ENG_ERR_ADDR": (0x0030, (("addr", 31, 0),)),
    # fabric 10.2
    "IL_CTRL": (0x0880, (("clr_fault", 2, 2), ("clr_dbell", 1, 1), ("enable", 0, 0))),
    "IL_MESH": (0x0888, (("mesh", 1, 0),)),
    "IL_RING": (0x0890, (("tag", 15, 8), ("dst", 1, 0))),
    "IL_CAPS": (
        0x0080,
        (("const1", 31, 28), ("const4", 27, 24), ("mesh", 21, 20), ("const2", 19, 16), ("magic", 15, 0)),
    ),
    "IL_FAULT": (
        0x0088,
        (("inj", 4, 4), ("axi", 3, 3), ("switch", 2, 2), ("ack0", 1, 1), ("rd_remote", 0, 0)),
    ),
    "IL_DBELL0": (0x0090, (("last_tag", 47, 32), ("count", 31, 0))),
    "IL_DBELL3": (0x00A8, (("last_tag", 47, 32), ("count", 31, 0))),
    # memory 12.1
    "MV_CTRL": (
        0x0800,
        (("mode", 2, 0), ("ewidth", 4, 3), ("coalesce", 11, 11), ("cap", 15, 13), ("go", 16, 16)),
    ),
    "MV_CLEAR": (0x0808, (("fault", 0, 0), ("nonfinite", 1, 1))),
    "MV_HDR": (
        0x0810,
        (("walker", 0, 0), ("base", 43, 4), ("ndim", 46, 44), ("xform_id", 50, 47), ("xform_mode", 58, 55)),
    ),
    "MV_DIM": (0x0818, (("walker", 0, 0), ("index", 3, 1), ("count", 19, 4), ("stride", 51, 20))),
    "MV_AXIS": (0x0820, (("axis", 1, 0), ("step", 17, 2))),
    "MV_WINDOW": (0x0828, (("walker", 0, 0), ("axis", 1, 1), ("base", 17, 2), ("extent", 33, 18))),
    "MV_INDEX": (0x0830, (("addr", 39, 0), ("count", 55, 40))),
    "MV_SEED": (0x0838, (("seed", 63, 0),)),
    "MV_IMM": (0x0840, (("imm", 31, 0),)),
    "MV_GATHER": (0x0850, (("pitch", 31, 0), ("words", 47, 32))),
}  # fmt: skip

# index of a CU_CTRL request: fabric 5.5 and memory 11.2
CONTROL: dict[str, tuple[int, tuple[tuple[str, int, int], ...]]] = {
    "CU_CAPS": (
        0,
        (("cu_type", 63, 48), ("cu_version", 47, 40), ("n_buffers", 39, 36), ("inst_depth", 35, 20),
         ("max_inflight", 19, 16), ("features", 15, 8)),
    ),
    "CU_STATUS": (1, (("busy", 63, 63), ("error", 62, 62), ("inst_space", 47, 32))),
    "CU_COUNTERS": (2, (("retired", 63, 32), ("busy_cycles", 31, 0))),
    "CU_DBG": (3, (("dbg_ctr", 63, 0),)),
    "CU_ERR": (
        4,
        (("first_hdr", 47, 16), ("unit_err", 15, 8), ("ctrl_ovf", 6, 6), ("spur_ack", 5, 5),
         ("spur_done", 4, 4), ("rd_err", 3, 3), ("wr_drop", 2, 2), ("bad_type", 1, 1), ("misroute", 0, 0)),
    ),
    "AD_CAPS": (0xE0, (("kind", 63, 48), ("version", 47, 40), ("l2_bits", 39, 32), ("depth", 31, 0))),
    "AD_BASE": (0xE1, (("base", 39, 0),)),
    "AD_ENABLE": (0xE2, (("l2_en", 0, 0),)),
    "AD_COUNT": (0xE3, (("local", 63, 32), ("fwd", 31, 0))),
    "AD_STATUS": (0xE4, (("straddle", 0, 0), ("multicast", 1, 1), ("wr_proto", 2, 2), ("ctrl_lost", 3, 3))),
}  # fmt: skip


def register(name: str, f: Columns) -> Limbs:
    """Values of one 64-bit register of :data:`REGISTERS` or :data:`CONTROL`."""
    _, fields = REGISTERS.get(name) or CONTROL[name]
    s = _new(f, 64)
    for field, msb, lsb in fields:
        s.put(msb, lsb, f[field])
    return s.limbs


# container of the specification: its packer here
CONTAINERS: dict[str, Callable[[Columns], Limbs]] = {
    "FLIT": header,
    "MEM_RD_REQ": mem_rd_req,
    "MEM_WR_REQ": mem_wr_req,
    "MEM_WR_ACK": mem_wr_ack,
    "CU_SIGNAL": cu_signal,
    "CU_DATA_DESC": cu_data_desc,
    "CU_CTRL_REQ": cu_ctrl,
    "CU_CTRL_RSP": cu_ctrl,
    "DATA_ARG": data_arg,
    "FAULT_ARG": fault_arg,
    "ADDR40": address,
    "VC_IMEM": imem,
    "VC_DESC": desc,
    "VC_RUN": run,
    "VC_PEER_BASE": peer_base,
    "IL_HEADER": interlink_header,
}

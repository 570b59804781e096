# SPDX-License-Identifier: Apache-2.0
# Generated from spec/*.json by `python -m kohakutpu.gen`; do not edit.
# ruff: noqa: E501
# fmt: off
"""Registers, addresses, signal and fault codes of the machine."""

from enum import IntEnum

LAYER = "L0"

FLIT_W = 288
HDR_W = 32
PAYLOAD_W = 256
POS_W = 4
GRID_LO = 1
GRID_MAX = 14
ADDR_W = 40
GRANULE_BYTES = 32
CTRL_DATA_W = 64
FLIT_WORDS = 5
STAGE_SLOT_BYTES = 40
STAGE_FLITS = 128
NCMD = 128
POLL_IVL = 31
TX_DEPTH = 16
RX_DEPTH = 16
SIG_DEPTH = 16
CTRLQ_DEPTH = 4
INST_DEPTH = 32
RECV_DEPTH = 16
RECV_DEPTH_CLUSTER = 64
RECV_DEPTH_VECTOR = 64
ACKQ_DEPTH = 16
ACKQ_DEPTH_CLUSTER = 128
ACKQ_DEPTH_VECTOR = 64
N_BUFFERS_CLUSTER = 3
N_BUFFERS_VECTOR = 1
MAX_INFLIGHT = 1
MAX_INFLIGHT_HI = 8
ROUTER_FIFO_DEPTH = 32
CDC_DEPTH = 16
WBURST_MAX = 8
CU_DATA_MAX_FLITS = 256
CREDIT_MAX = 32
MAX_BUSY = 0x4E20
CU_VERSION = 5
CU_TYPE_CLUSTER = 0x4D47
CU_TYPE_VECTOR = 0x5643
HOST_ENGINE_BASE = 0
HOST_CTRL_BASE = 0x10000000
HOST_CTRL_STRIDE = 0x10000
CTRL_ADDON_INDEX_LO = 224
CTRL_ADDON_INDEX_HI = 231
CTRL_OP_READ = 0
CTRL_OP_WRITE = 1
CTRL_OP_RSP = 2
CTRL_OP_REFUSED = 3
OP_WR = 1
OP_POLL = 2
OP_DONE = 3
IL_BEAT_W = 288
IL_HDR_W = 96
IL_MAX_BEATS = 32
IL_RX_BEATS = 64
FAULT_MAGIC = 0xFAB0
MEM_WORD_BYTES = 32
MEM_WBURST = 8
MEM_WR_SLOTS = 16
MEM_Q_DEPTH = 64
MEM_Q_MARGIN = 4
MEM_DRAM_BYTES_LOG2 = 32
MEM_STAGE_BANKS = 4
MEM_STAGE_ENTRIES = 0x4000
MEM_STAGE_BYTES = 0x200000
MEM_STAGE_ENTRY_BYTES = 128
MEM_PORTS = 1
MEM_PORTS_MAX = 4
MEM_RD_OUT = 4
MEM_MW = 256
MEM_ADAPTER_DEPTH = 0x2000
MEM_ADAPTER_L2_BITS = 18
MEM_ADAPTER_QUEUE = 4
MEM_ADAPTER_ORDER = 64
MEM_ADAPTER_KIND = 2
MEM_ADAPTER_VERSION = 1
MEM_MOVER_QUEUE = 64
MEM_MOVER_MAX_BURST = 128
MEM_MOVER_FIFO_WORDS = 512
MEM_MOVER_READS = 16
MEM_MOVER_WRITES = 32
MEM_MOVER_NDIM_MAX = 6
MEM_MOVER_INDEX_MAX = 0x800
MEM_MOVER_WINDOW = 128
MEM_PHILOX_M0 = 0xD2511F53
MEM_PHILOX_M1 = 0xCD9E8D57
MEM_PHILOX_W0 = 0x9E3779B9
MEM_PHILOX_W1 = 0xBB67AE85
MEM_PHILOX_ROUNDS = 10
MEM_MV_XFORM_IDENTITY_IN = 4
MEM_MV_XFORM_IDENTITY_OUT = 4
MEM_MV_XFORM_QUANTISE_IN = 8
MEM_MV_XFORM_QUANTISE_OUT = 4
MEM_MV_XFORM_GRANULE_IN = 4
MEM_MV_XFORM_GRANULE_OUT = 4
MEM_ADAPTER_INDEX_LO = 224
MEM_ADAPTER_INDEX_HI = 231


class MessageType(IntEnum):
    MEM_RD_REQ = 0x00
    MEM_WR_REQ = 0x01
    MEM_RD_RESP = 0x02
    MEM_WR_ACK = 0x03
    MEM_WR_DATA = 0x04
    CU_INST = 0x05
    CU_SIGNAL = 0x06
    CU_CTRL = 0x07
    CU_DATA = 0x08
    RSVD_9 = 0x09
    RSVD_A = 0x0A
    RSVD_B = 0x0B
    RSVD_C = 0x0C
    RSVD_D = 0x0D
    RSVD_E = 0x0E
    ERROR = 0x0F


class Signal(IntEnum):
    INST_COMPLETE = 0x00
    BATCH_COMPLETE = 0x01
    BARRIER_REACHED = 0x02
    DATA_RECEIVED = 0x03
    FAULT = 0x04


class EngineError(IntEnum):
    NONE = 0
    BAD_OP = 1
    NO_DONE = 2
    WR_RESP = 3
    RD_RESP = 4
    POLL_LIMIT = 5
    ABORTED = 6


class RejectReason(IntEnum):
    NONE = 0
    UNKNOWN_BUF = 1
    RANGE = 2
    ODD_START = 3
    SECOND_SENDER = 4
    LAST_MISMATCH = 5
    NOT_READY = 6


class ShellFault(IntEnum):
    MISROUTED = 1
    WR_DROP = 2
    RD_ERR = 3


class ControlIndex(IntEnum):
    CU_CAPS = 0x00
    CU_STATUS = 0x01
    CU_COUNTERS = 0x02
    CU_DBG = 0x03
    CU_ERR = 0x04


class AdapterIndex(IntEnum):
    CAPS = 0xE0
    BASE = 0xE1
    ENABLE = 0xE2
    COUNT = 0xE3
    STATUS = 0xE4


class MemFault(IntEnum):
    M_NONE = 0
    M_ALIGN = 1
    M_RSVD = 2
    M_MESH = 3
    M_APER = 4
    M_RANGE = 5
    M_LEN = 6
    M_TAG = 7
    M_FRAME = 8
    M_BUS = 9
    M_REMOTE = 10
    M_ORPHAN = 11
    M_HOSTX = 12


class RequesterClass(IntEnum):
    PORT = 0
    HOST = 1
    MOVER = 2
    INTERLINK = 3


class MoverMode(IntEnum):
    COPY = 0
    TRANSPOSE = 1
    GATHER = 2
    GENERATE = 3
    FILL = 4
    XFORM = 5


class MoverTransform(IntEnum):
    IDENTITY = 0
    QUANTISE = 1
    GRANULE = 2


class MoverFault(IntEnum):
    F_NONE = 0
    F_IDXLEN = 1
    F_RANGE = 2
    F_AXI = 3
    F_MODE = 4
    F_EWIDTH = 5
    F_ALIGN = 6
    F_XPAD = 7
    F_XFORM = 8
    F_RSVD9 = 9
    F_WALK = 10


class ClusterFault(IntEnum):
    F_OPCODE = 0x01
    F_FILL_N = 0x02
    F_FILL_RANGE = 0x03
    F_PEERS = 0x04
    F_GEMM_A = 0x05
    F_GEMM_B = 0x06
    F_TILES = 0x07
    F_UNOPENED = 0x08
    F_EMIT_SEND = 0x09
    F_FUSE = 0x0A
    F_REMOTE = 0x0B
    F_DST = 0x0C
    F_NODE_OFF = 0x0D
    F_ROWMAJOR = 0x0E
    F_MEM_RD = 0x10
    F_WDOG = 0x11
    A_BUF = 0x81
    A_RANGE = 0x82
    A_ODD = 0x83
    A_BUSY = 0x84
    A_LEN = 0x85
    A_NOTREADY = 0x86
    A_RESP = 0x88
    A_SPLIT = 0x89


class ClusterOp(IntEnum):
    FILL = 1
    GEMM = 2
    DRAIN = 3


class VectorFault(IntEnum):
    F_DTYPE = 0x01
    F_VSRC = 0x02
    F_CHAIN = 0x03
    F_OPCODE = 0x04
    F_LEN = 0x05
    F_LOOP = 0x06
    F_VL = 0x07
    F_REDVL = 0x08
    F_CUDATA = 0x09
    F_ENC = 0x0A
    F_L1RANGE = 0x0B
    F_ALIGN = 0x0C
    F_ADDR = 0x0D
    F_PC = 0x0E
    F_PEER = 0x0F
    F_MEM_RD = 0x10
    F_WDOG = 0x11
    F_ENV = 0x12
    A_RESP = 0x88


class EnvelopeOp(IntEnum):
    IMEM = 1
    DESC = 2
    RUN = 3


FAULT_MEANING: dict[str, dict[int, str]] = {
    "ShellFault": {
        0x01: "an instruction for another node arrived",
        0x02: "a memory write of the instruction was refused",
        0x03: "a memory read of the instruction failed",
    },
    "MemFault": {
        0x00: "no fault",
        0x01: "address not a multiple of 32",
        0x02: "address bit 38 set",
        0x03: "names another mesh and cannot be forwarded",
        0x04: "aperture other than 0, or no staging store built",
        0x05: "a byte of the access lies beyond DRAM_BYTES / STAGE_BYTES",
        0x06: "write len > 7",
        0x07: "txn + count - 1 > 255",
        0x08: "write framing error",
        0x09: "SLVERR or DECERR on the memory bus",
        0x0A: "memory flit with rsvd[2] = 1",
        0x0B: "write data with no open write",
        0x0C: "unsupported AXI burst type or size on S_AXI_MEM",
    },
    "MoverFault": {
        0x00: "no fault",
        0x01: "GATHER: index count 0 or > 2,048, or a row >= count is needed",
        0x02: "an element or index address fails classify",
        0x03: "non-OKAY response on a read or write",
        0x04: "mode 1, 6 or 7, or mode 5 with no transform bank built",
        0x05: "element width 3",
        0x06: "destination, used source or index address not 32-byte aligned",
        0x07: "mode 5: an element invalid on either walker",
        0x08: "mode 5: XFORM_ID names no occupant",
        0x09: "reserved, never raised",
        0x0A: "illegal walker, or a walk too short",
    },
    "ClusterFault": {
        0x01: "op is not FILL, GEMM or DRAIN",
        0x02: "FILL of more than 255 entries",
        0x03: "FILL leaves its bank or its L1 side",
        0x04: "npeer != 0 in a build without shared fetch",
        0x05: "GEMM operand range of side A leaves its bank or its L1",
        0x06: "GEMM operand range of side B leaves its bank or its L1",
        0x07: "more sub-tiles than the tile store holds",
        0x08: "accumulate or drain of a sub-tile never opened",
        0x09: "emitting GEMM to buffer 2 of a node (FP16 where accumulator floats are expected)",
        0x0A: "fused DRAIN of more sub-tiles than the current emit batch",
        0x0B: "remote transfer in memory form or without an explicit acknowledgement node",
        0x0C: "destination node is (0,0) or the cluster itself",
        0x0D: "node granule offset unaligned, beyond 16 bits or odd for buffer 2",
        0x0E: "row-major drain not built or illegal",
        0x10: "a word of the FILL could not be read",
        0x11: "no response for FILL_WDOG cycles while a FILL is outstanding",
        0x81: "CU_DATA burst to an unknown buffer",
        0x82: "CU_DATA burst beyond the capacity of the buffer",
        0x83: "CU_DATA burst to buffer 2 with half a sub-tile",
        0x84: "CU_DATA burst of a second sender",
        0x85: "CU_DATA burst whose last disagrees with its count",
        0x86: "CU_DATA burst to an unopened sub-tile, or peer watchdog",
        0x88: "memory response that no outstanding FILL word matches",
        0x89: "CU_DATA word that does not continue its entry",
    },
    "VectorFault": {
        0x01: "VLD, VST or VCVT dtype is not FP16 or FP32",
        0x02: "selector V in a chain word after the first",
        0x03: "selector C in a FLAT word or in the first word of a chain",
        0x04: "arithmetic word in TREE mode, chain word that is not arithmetic, tree reduction outside TREE mode",
        0x05: "VFILL or VDRAIN walk longer than 256 words",
        0x06: "nested VLOOP, count 0, body 0, body past word 511, or an instruction across the loop end",
        0x07: "VSETVL with 0 or more than 128",
        0x08: "tree reduction with VL not a multiple of 16",
        0x09: "a received CU_DATA burst was rejected",
        0x0A: "reserved encoding, or a feature that is not built",
        0x0B: "L1 word outside 0..511",
        0x0C: "memory walk base or stride not a multiple of 32",
        0x0D: "memory walk address outside 0..2^40-1",
        0x0E: "instruction fetch past word 511",
        0x0F: "illegal peer drain",
        0x10: "a fill word was answered with the read-error mark",
        0x11: "no response for FILL_WDOG cycles while a fill is outstanding",
        0x12: "unknown envelope opcode or descriptor field number",
        0x88: "a read response arrived that no outstanding fill word matches",
    },
}

# name, msb, lsb, kind (u unsigned, i signed, o overlay, r reserved), default, enumeration, meaning
FieldRow = tuple[str, int, int, str, int, str, str]

# container: space, bits, fields
LAYOUTS: dict[str, tuple[str, int, tuple[FieldRow, ...]]] = {
    "FLIT": ("header", 288, (
        ("dst_x", 287, 284, "u", 0, "", "destination column"),
        ("dst_y", 283, 280, "u", 0, "", "destination row"),
        ("src_x", 279, 276, "u", 0, "", "sender column"),
        ("src_y", 275, 272, "u", 0, "", "sender row"),
        ("type", 271, 268, "u", 0, "", "message class"),
        ("txn", 267, 260, "u", 0, "", "tag; meaning depends on type"),
        ("last", 259, 259, "u", 0, "", "end marker; meaning depends on type"),
        ("rsvd", 258, 256, "u", 0, "", "reserved bits; meaning depends on type, otherwise 0"),
        ("payload", 255, 0, "u", 0, "", "256-bit payload"),
        ("rsvd_flag", 258, 258, "o", 0, "", "CU_DATA: remote marker; MEM_RD_RESP: read error; memory request: rejected"),
        ("rsvd_low", 257, 256, "o", 0, "", "MEM_RD_RESP: word index in the entry; remote CU_DATA: destination mesh"),
    )),
    "CU_SIGNAL": ("message", 256, (
        ("code", 255, 248, "u", 0, "", "event code"),
        ("arg", 247, 216, "u", 0, "", "event argument"),
        ("zero", 215, 0, "r", 0, "", "sent as 0, ignored"),
    )),
    "CU_CTRL_REQ": ("message", 256, (
        ("op", 255, 248, "u", 0, "", "0 read, 1 write"),
        ("index", 247, 240, "u", 0, "", "control register index"),
        ("value", 239, 176, "u", 0, "", "write value, used only when op = 1"),
        ("zero", 175, 0, "r", 0, "", "sent as 0, ignored"),
    )),
    "CU_CTRL_RSP": ("message", 256, (
        ("op", 255, 248, "u", 0, "", "0x02 value returned, 0x03 write refused"),
        ("index", 247, 240, "u", 0, "", "echo of the request index"),
        ("value", 239, 176, "u", 0, "", "register value"),
        ("zero", 175, 0, "r", 0, "", "sent as 0"),
    )),
    "ADDR40": ("address", 40, (
        ("aperture", 39, 39, "u", 0, "", "1 selects a special aperture, 0 selects DRAM"),
        ("zero38", 38, 38, "u", 0, "", "reserved, 0"),
        ("mesh", 37, 36, "u", 0, "", "mesh id that owns the address"),
        ("local", 35, 0, "u", 0, "", "byte offset inside the mesh (aperture = 0)"),
        ("aperture_index", 35, 32, "o", 0, "", "aperture number when aperture = 1; 0 is the staging store"),
        ("aperture_offset", 31, 0, "o", 0, "", "byte offset inside the aperture when aperture = 1"),
    )),
    "DATA_ARG": ("argument", 32, (
        ("reject", 31, 31, "u", 0, "", "1: the burst was refused and none of it is guaranteed stored"),
        ("reason", 30, 24, "u", 0, "", "0 none, 1 unknown buf_id, 2 range, 3 odd granule start, 4 second sender, 5 last/len mismatch, 6 not ready"),
        ("zero", 23, 8, "r", 0, "", "0"),
        ("buf_id", 7, 0, "u", 0, "", "buf_id of the descriptor"),
    )),
    "FAULT_ARG": ("argument", 32, (
        ("tag", 31, 16, "u", 0, "", "CU_TYPE of the unit, or 0xFAB0 for cu_base"),
        ("zero", 15, 12, "r", 0, "", "0"),
        ("detail", 11, 8, "u", 0, "", "opcode of the retiring instruction, or memory fault code (WR_DROP)"),
        ("code", 7, 0, "u", 0, "", "fault code in the list of the tag"),
    )),
    "FAULT_ARG_FRAMEWORK": ("argument", 32, (
        ("magic", 31, 16, "u", 0, "", "0xFAB0"),
        ("zero", 15, 12, "r", 0, "", "0"),
        ("mem_code", 11, 8, "u", 0, "", "WR_DROP: fault_code of the first failed acknowledgement; else 0"),
        ("code", 7, 0, "u", 0, "", "1 MISROUTED, 2 WR_DROP, 3 RD_ERR"),
    )),
    "CU_CAPS": ("control", 64, (
        ("cu_type", 63, 48, "u", 0, "", "unit type, two ASCII characters"),
        ("cu_version", 47, 40, "u", 0, "", "mesh-wide build number"),
        ("n_buffers", 39, 36, "u", 0, "", "number of CU_DATA buffer indices accepted"),
        ("inst_depth", 35, 20, "u", 0, "", "instruction FIFO depth"),
        ("max_inflight", 19, 16, "u", 0, "", "MAX_INFLIGHT"),
        ("features", 15, 8, "u", 0, "", "FEATURES"),
        ("zero", 7, 0, "r", 0, "", "0"),
    )),
    "CU_STATUS": ("control", 64, (
        ("busy", 63, 63, "u", 0, "", "instruction in flight, or queued, or a completion not yet sent"),
        ("error", 62, 62, "u", 0, "", "OR of the sticky bits of CU_ERR"),
        ("zero_hi", 61, 48, "r", 0, "", "0"),
        ("inst_space", 47, 32, "u", 0, "", "free entries of the instruction FIFO"),
        ("zero_lo", 31, 0, "r", 0, "", "0"),
    )),
    "CU_COUNTERS": ("control", 64, (
        ("retired", 63, 32, "u", 0, "", "instructions retired since reset, modulo 2^32"),
        ("busy_cycles", 31, 0, "u", 0, "", "cycles with busy = 1 since reset, modulo 2^32"),
    )),
    "CU_DBG": ("control", 64, (
        ("dbg_ctr", 63, 0, "u", 0, "", "unit-defined, copied from the dbg_ctr input"),
    )),
    "CU_ERR": ("control", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("first_hdr", 47, 16, "u", 0, "", "header of the flit that set the first sticky bit, 0 if none or not flit related"),
        ("unit_err", 15, 8, "u", 0, "", "sticky copies of the unit_err input"),
        ("zero7", 7, 7, "r", 0, "", "0"),
        ("ctrl_ovf", 6, 6, "u", 0, "", "CU_CTRL request discarded, queue full"),
        ("spur_ack", 5, 5, "u", 0, "", "MEM_WR_ACK with no write outstanding"),
        ("spur_done", 4, 4, "u", 0, "", "exec_done with nothing in flight"),
        ("rd_err", 3, 3, "u", 0, "", "MEM_RD_RESP with rsvd[2] = 1"),
        ("wr_drop", 2, 2, "u", 0, "", "MEM_WR_ACK with drop = 1"),
        ("bad_type", 1, 1, "u", 0, "", "flit of a type this endpoint does not accept"),
        ("misroute", 0, 0, "u", 0, "", "flit whose destination is not this endpoint"),
    )),
    "CTRL": ("register", 64, (
        ("ctrl", 63, 0, "u", 0, "", "scratch; no hardware effect"),
    )),
    "STATUS": ("register", 64, (
        ("zero", 63, 3, "r", 0, "", "0"),
        ("mesh_ready", 2, 2, "u", 0, "", "1 once the post-reset clear has finished"),
        ("error", 1, 1, "u", 0, "", "OR of ERR_STAT"),
        ("busy", 0, 0, "u", 0, "", "dispatch running or transmit FIFO not empty"),
    )),
    "CAPS": ("register", 64, (
        ("zero", 63, 40, "r", 0, "", "0"),
        ("grid_hi", 39, 32, "u", 0, "", "max(NX, NY)"),
        ("grid_lo", 31, 24, "u", 0, "", "1"),
        ("pos_width", 23, 16, "u", 0, "", "4"),
        ("flit_width", 15, 0, "u", 0, "", "288"),
    )),
    "IRQ_STAT": ("register", 64, (
        ("irq_stat", 63, 0, "u", 0, "", "reserved; reads 0"),
    )),
    "IRQ_EN": ("register", 64, (
        ("irq_en", 63, 0, "u", 0, "", "stored only; no interrupt output"),
    )),
    "CAPS2": ("register", 64, (
        ("magic", 63, 48, "u", 0, "", "0x4F52"),
        ("revision", 47, 40, "u", 0, "", "1"),
        ("stage_flits", 39, 24, "u", 0, "", "staging capacity in flits"),
        ("orc_y", 23, 20, "u", 0, "", "orchestrator row, the value to use for dack_y"),
        ("orc_x", 19, 16, "u", 0, "", "orchestrator column, the value to use for dack_x"),
        ("grid_y_hi", 15, 8, "u", 0, "", "NY"),
        ("grid_x_hi", 7, 0, "u", 0, "", "NX"),
    )),
    "ERR_STAT": ("register", 64, (
        ("zero", 63, 12, "r", 0, "", "0"),
        ("aux_absent", 11, 11, "u", 0, "", "AUX_CFG write with no client attached"),
        ("axi_bad", 10, 10, "u", 0, "", "an access answered with SLVERR"),
        ("mesh_lost", 9, 9, "u", 0, "", "a terminator, router, hub or memory port discarded a flit"),
        ("data_reject", 8, 8, "u", 0, "", "DATA_RECEIVED with arg[31] = 1 arrived"),
        ("node_fault", 7, 7, "u", 0, "", "FAULT signal arrived"),
        ("rx_drop", 6, 6, "u", 0, "", "a non-signal flit was discarded because RX was full"),
        ("txkick_drop", 5, 5, "u", 0, "", "TX_KICK while dispatch was running or the transmit FIFO was full"),
        ("dst_bad", 4, 4, "u", 0, "", "PROG_KICK refused: no unit at PROG_DST"),
        ("cred_range", 3, 3, "u", 0, "", "PROG_CRED write above CREDIT_MAX, value limited"),
        ("stage_range", 2, 2, "u", 0, "", "PROG_KICK refused: PROG_BASE + PROG_LEN > STAGE_FLITS"),
        ("kick_len0", 1, 1, "u", 0, "", "PROG_KICK refused: PROG_LEN = 0"),
        ("kick_busy", 0, 0, "u", 0, "", "PROG_KICK refused: dispatch running"),
    )),
    "ERR_INFO": ("register", 64, (
        ("events", 63, 48, "u", 0, "", "node_fault + data_reject events, saturating"),
        ("arg", 47, 16, "u", 0, "", "argument of the first event"),
        ("code", 15, 8, "u", 0, "", "signal code of the first event"),
        ("node_y", 7, 4, "u", 0, "", "row of the first event"),
        ("node_x", 3, 0, "u", 0, "", "column of the first event"),
    )),
    "PROG_DST": ("register", 64, (
        ("zero", 63, 8, "r", 0, "", "0"),
        ("dst_y", 7, 4, "u", 0, "", "row"),
        ("dst_x", 3, 0, "u", 0, "", "column"),
    )),
    "PROG_LEN": ("register", 64, (
        ("zero", 63, 16, "r", 0, "", "0"),
        ("len", 15, 0, "u", 0, "", "number of flits"),
    )),
    "PROG_KICK": ("register", 64, (
        ("prog_kick", 63, 0, "u", 0, "", "any strobed write starts a dispatch; reads 0"),
    )),
    "PROG_STAT": ("register", 64, (
        ("zero", 63, 33, "r", 0, "", "0"),
        ("credit", 32, 17, "u", 0, "", "live credit"),
        ("left", 16, 1, "u", 0, "", "flits not yet read from staging"),
        ("run", 0, 0, "u", 0, "", "dispatch running"),
    )),
    "PROG_CRED": ("register", 64, (
        ("zero", 63, 16, "r", 0, "", "0"),
        ("credit", 15, 0, "u", 0, "", "write: seed; read: live value"),
    )),
    "PROG_BASE": ("register", 64, (
        ("zero", 63, 16, "r", 0, "", "0"),
        ("base", 15, 0, "u", 0, "", "slot number"),
    )),
    "SIG_DONE": ("register", 64, (
        ("zero", 63, 16, "r", 0, "", "0"),
        ("count", 15, 0, "u", 0, "", "modulo 2^16"),
    )),
    "AUX_STAT": ("register", 64, (
        ("aux_stat", 63, 0, "u", 0, "", "one status word from the auxiliary client"),
    )),
    "AUX_STATW": ("register", 64, (
        ("aux_statw", 63, 0, "u", 0, "", "status words from the auxiliary client"),
    )),
    "TX_FLIT": ("register", 64, (
        ("tx_flit", 63, 0, "u", 0, "", "mailbox flit, word w = flit[64w+63:64w]; word 4 uses bits 31:0; reads 0"),
    )),
    "TX_KICK": ("register", 64, (
        ("tx_kick", 63, 0, "u", 0, "", "any strobed write pushes TX_FLIT; reads 0"),
    )),
    "TX_STATUS": ("register", 64, (
        ("zero_hi", 63, 17, "r", 0, "", "0"),
        ("full", 16, 16, "u", 0, "", "transmit FIFO full"),
        ("zero_lo", 15, 0, "r", 0, "", "0"),
    )),
    "PROG_ABORT": ("register", 64, (
        ("prog_abort", 63, 0, "u", 0, "", "any strobed write stops the running dispatch after the current flit; reads 0"),
    )),
    "RX_FLIT": ("register", 64, (
        ("rx_flit", 63, 0, "u", 0, "", "head of the receive FIFO, word w = flit[64w+63:64w]; 0 when empty"),
    )),
    "RX_POP": ("register", 64, (
        ("rx_pop", 63, 0, "u", 0, "", "any strobed write discards the head; reads 0"),
    )),
    "RX_STATUS": ("register", 64, (
        ("zero_hi", 63, 18, "r", 0, "", "0"),
        ("overflow", 17, 17, "u", 0, "", "a flit was discarded; write 1 to clear"),
        ("empty", 16, 16, "u", 0, "", "receive FIFO empty"),
        ("zero_lo", 15, 0, "r", 0, "", "0"),
    )),
    "MEM_BLOCK": ("register", 64, (
        ("mem_block", 63, 0, "u", 0, "", "memory agent registers, forwarded (6.6)"),
    )),
    "AUX_CFG": ("register", 64, (
        ("aux_cfg", 63, 0, "u", 0, "", "256-byte window forwarded to the auxiliary client; reads 0"),
    )),
    "NODE_STATUS": ("register", 64, (
        ("code", 63, 56, "u", 0, "", "code of the latest signal from the node"),
        ("arg", 55, 24, "u", 0, "", "argument of the latest signal"),
        ("signal_count", 23, 8, "u", 0, "", "signals received from the node, modulo 2^16"),
        ("zero", 7, 1, "r", 0, "", "0"),
        ("valid", 0, 0, "u", 0, "", "1 after the first signal"),
    )),
    "STAGE": ("register", 64, (
        ("stage", 63, 0, "u", 0, "", "staging RAM, slot s word w at 0x2000 + 40*s + 8*w; reads 0"),
    )),
    "MEM_CAPS": ("register", 64, (
        ("version", 63, 56, "u", 0, "", "1"),
        ("wr_slots", 55, 48, "u", 0, "", "WR_SLOTS"),
        ("wburst", 47, 44, "u", 0, "", "8"),
        ("ports", 43, 40, "u", 0, "", "memory ports"),
        ("dram_log2", 39, 32, "u", 0, "", "log2 of DRAM_BYTES"),
        ("stage_bytes", 31, 0, "u", 0, "", "staging store bytes, 0 = none"),
    )),
    "MEM_FAULT": ("register", 64, (
        ("addr", 63, 24, "u", 0, "", "address"),
        ("txn", 23, 16, "u", 0, "", "txn, requester class 0, else 0"),
        ("node", 15, 8, "u", 0, "", "source {y, x}, requester class 0, else 0"),
        ("cls", 7, 4, "u", 0, "", "0 port, 1 host, 2 mover, 3 interlink"),
        ("code", 3, 0, "u", 0, "", "memory fault code"),
    )),
    "MEM_DROP": ("register", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("ctrl", 47, 32, "u", 0, "", "control flits dropped at a port or by a full mailbox, saturating"),
        ("orphan", 31, 16, "u", 0, "", "orphan write data flits, saturating"),
        ("faults", 15, 0, "u", 0, "", "memory faults, saturating"),
    )),
    "MEM_STGCNT": ("register", 64, (
        ("written", 63, 32, "u", 0, "", "modulo 2^32"),
        ("read", 31, 0, "u", 0, "", "modulo 2^32"),
    )),
    "MEM_DRAMCNT": ("register", 64, (
        ("written", 63, 32, "u", 0, "", "modulo 2^32"),
        ("read", 31, 0, "u", 0, "", "modulo 2^32"),
    )),
    "ENG_CTRL": ("register", 64, (
        ("zero_hi", 63, 8, "r", 0, "", "0"),
        ("err_code", 7, 4, "u", 0, "", "0 none, 1 bad opcode, 2 no DONE before the last slot, 3 write response error, 4 read response error, 5 poll limit, 6 aborted"),
        ("zero3", 3, 3, "r", 0, "", "0"),
        ("err", 2, 2, "u", 0, "", "read: program ended by an error"),
        ("done", 1, 1, "u", 0, "", "read: program ended"),
        ("busy", 0, 0, "u", 0, "", "read: program running"),
        ("abort", 1, 1, "o", 0, "", "write 1: ABORT"),
        ("go", 0, 0, "o", 0, "", "write 1: GO"),
    )),
    "ENG_PC": ("register", 64, (
        ("zero", 63, 16, "r", 0, "", "0"),
        ("pc", 15, 0, "u", 0, "", "command index"),
    )),
    "ENG_CODE": ("register", 64, (
        ("eng_code", 63, 0, "u", 0, "", "DONE code"),
    )),
    "ENG_POLLS": ("register", 64, (
        ("zero", 63, 32, "r", 0, "", "0"),
        ("polls", 31, 0, "u", 0, "", "modulo 2^32"),
    )),
    "ENG_CAPS": ("register", 64, (
        ("magic", 63, 48, "u", 0, "", "0x4345"),
        ("zero", 47, 32, "r", 0, "", "0"),
        ("poll_ivl", 31, 16, "u", 0, "", "POLL_IVL"),
        ("ncmd", 15, 0, "u", 0, "", "command slots"),
    )),
    "ENG_POLL_LIMIT": ("register", 64, (
        ("zero", 63, 32, "r", 0, "", "0"),
        ("limit", 31, 0, "u", 0, "", "reads"),
    )),
    "ENG_ERR_ADDR": ("register", 64, (
        ("zero", 63, 32, "r", 0, "", "0"),
        ("addr", 31, 0, "u", 0, "", "byte address"),
    )),
    "CMD": ("register", 64, (
        ("cmd", 63, 0, "u", 0, "", "command n field f at 0x1000 + 32*n + 8*f; reads 0"),
    )),
    "CMD_WORD0": ("command", 64, (
        ("zero", 63, 4, "r", 0, "", "ignored"),
        ("op", 3, 0, "u", 0, "", "1 WR, 2 POLL, 3 DONE; others stop with err_code 1"),
    )),
    "CMD_WORD1": ("command", 64, (
        ("zero", 63, 32, "r", 0, "", "ignored"),
        ("addr", 31, 0, "u", 0, "", "byte address for WR and POLL"),
    )),
    "CMD_WORD2": ("command", 64, (
        ("data", 63, 0, "u", 0, "", "WR: data; POLL: wanted value; DONE: code"),
    )),
    "CMD_WORD3": ("command", 64, (
        ("mask", 63, 0, "u", 0, "", "POLL: mask; otherwise ignored"),
    )),
    "IL_CTRL": ("register", 64, (
        ("zero", 63, 3, "r", 0, "", "ignored"),
        ("clr_fault", 2, 2, "u", 0, "", "clear IL_FAULT"),
        ("clr_dbell", 1, 1, "u", 0, "", "clear the receive doorbell counts"),
        ("enable", 0, 0, "u", 0, "", "interlink enable, reset 1"),
    )),
    "IL_MESH": ("register", 64, (
        ("zero", 63, 2, "r", 0, "", "ignored"),
        ("mesh", 1, 0, "u", 0, "", "this mesh's id, reset to the build value"),
    )),
    "IL_RING": ("register", 64, (
        ("zero_hi", 63, 16, "r", 0, "", "ignored"),
        ("tag", 15, 8, "u", 0, "", "doorbell tag"),
        ("zero_lo", 7, 2, "r", 0, "", "ignored"),
        ("dst", 1, 0, "u", 0, "", "destination mesh"),
    )),
    "IL_CAPS": ("register", 64, (
        ("zero", 63, 32, "r", 0, "", "0"),
        ("const1", 31, 28, "u", 0, "", "1"),
        ("const4", 27, 24, "u", 0, "", "4"),
        ("zero23", 23, 22, "r", 0, "", "0"),
        ("mesh", 21, 20, "u", 0, "", "live mesh id"),
        ("const2", 19, 16, "u", 0, "", "2"),
        ("magic", 15, 0, "u", 0, "", "0x494C; whole word 0 while disabled or absent"),
    )),
    "IL_FAULT": ("register", 64, (
        ("zero", 63, 5, "r", 0, "", "0"),
        ("inj", 4, 4, "u", 0, "", "an inbound or outbound flit was discarded"),
        ("axi", 3, 3, "u", 0, "", "AXI error or out-of-range landing address"),
        ("switch", 2, 2, "u", 0, "", "mesh switch fault"),
        ("ack0", 1, 1, "u", 0, "", "remote CU_DATA descriptor with ack = 0"),
        ("rd_remote", 0, 0, "u", 0, "", "marked memory request (M_REMOTE)"),
    )),
    "IL_DBELL0": ("register", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("last_tag", 47, 32, "u", 0, "", "tag of the latest doorbell from mesh 0"),
        ("count", 31, 0, "u", 0, "", "doorbells received from mesh 0"),
    )),
    "IL_DBELL1": ("register", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("last_tag", 47, 32, "u", 0, "", "tag of the latest doorbell from mesh 1"),
        ("count", 31, 0, "u", 0, "", "doorbells received from mesh 1"),
    )),
    "IL_DBELL2": ("register", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("last_tag", 47, 32, "u", 0, "", "tag of the latest doorbell from mesh 2"),
        ("count", 31, 0, "u", 0, "", "doorbells received from mesh 2"),
    )),
    "IL_DBELL3": ("register", 64, (
        ("zero", 63, 48, "r", 0, "", "0"),
        ("last_tag", 47, 32, "u", 0, "", "tag of the latest doorbell from mesh 3"),
        ("count", 31, 0, "u", 0, "", "doorbells received from mesh 3"),
    )),
    "MV_CTRL": ("mover", 64, (
        ("ignored_63_17", 63, 17, "r", 0, "", "ignored"),
        ("go", 16, 16, "u", 0, "", "start a move"),
        ("cap", 15, 13, "u", 0, "", "burst cap: 0 = 128 words, k = 2^(k-1) words"),
        ("ignored_12_12", 12, 12, "r", 0, "", "ignored"),
        ("coalesce", 11, 11, "u", 0, "", "join consecutive destination words into write bursts"),
        ("ignored_10_8", 10, 8, "r", 0, "", "ignored"),
        ("ignored_7_5", 7, 5, "r", 0, "", "ignored"),
        ("ewidth", 4, 3, "u", 0, "", "element width of the immediate: 0 = 8, 1 = 16, 2 = 32 bits; 3 is F_EWIDTH"),
        ("mode", 2, 0, "u", 0, "", "move mode"),
    )),
    "MV_CLEAR": ("mover", 64, (
        ("ignored_63_2", 63, 2, "r", 0, "", "ignored"),
        ("nonfinite", 1, 1, "u", 0, "", "clear sticky non-finite"),
        ("fault", 0, 0, "u", 0, "", "clear sticky fault"),
    )),
    "MV_HDR": ("mover", 64, (
        ("ignored_63_59", 63, 59, "r", 0, "", "ignored"),
        ("xform_mode", 58, 55, "u", 0, "", "walker 0: transform mode"),
        ("ignored_54_51", 54, 51, "r", 0, "", "ignored"),
        ("xform_id", 50, 47, "u", 0, "", "walker 0: transform occupant"),
        ("ndim", 46, 44, "u", 0, "", "dimensions, 1..6"),
        ("base", 43, 4, "u", 0, "", "40-bit base address"),
        ("ignored_3_1", 3, 1, "r", 0, "", "ignored"),
        ("walker", 0, 0, "u", 0, "", "0 source, 1 destination"),
    )),
    "MV_DIM": ("mover", 64, (
        ("ignored_63_52", 63, 52, "r", 0, "", "ignored"),
        ("stride", 51, 20, "i", 0, "", "stride in bytes"),
        ("count", 19, 4, "u", 0, "", "count; 0 acts as 1"),
        ("index", 3, 1, "u", 0, "", "dimension index"),
        ("walker", 0, 0, "u", 0, "", "0 source, 1 destination"),
    )),
    "MV_AXIS": ("mover", 64, (
        ("ignored_63_18", 63, 18, "r", 0, "", "ignored"),
        ("step", 17, 2, "i", 0, "", "axis step"),
        ("axis", 1, 0, "u", 0, "", "0 none, 1 axis 0, 2 axis 1, 3 none"),
    )),
    "MV_WINDOW": ("mover", 64, (
        ("ignored_63_34", 63, 34, "r", 0, "", "ignored"),
        ("extent", 33, 18, "u", 0, "", "extent; 0 disables the axis"),
        ("base", 17, 2, "i", 0, "", "axis base"),
        ("axis", 1, 1, "u", 0, "", "axis 0 or 1"),
        ("walker", 0, 0, "u", 0, "", "0 source, 1 destination"),
    )),
    "MV_INDEX": ("mover", 64, (
        ("ignored_63_56", 63, 56, "r", 0, "", "ignored"),
        ("count", 55, 40, "u", 0, "", "indices"),
        ("addr", 39, 0, "u", 0, "", "address of the index vector"),
    )),
    "MV_SEED": ("mover", 64, (
        ("seed", 63, 0, "u", 0, "", "seed"),
    )),
    "MV_IMM": ("mover", 64, (
        ("ignored_63_32", 63, 32, "r", 0, "", "ignored"),
        ("imm", 31, 0, "u", 0, "", "immediate"),
    )),
    "MV_GATHER": ("mover", 64, (
        ("ignored_63_48", 63, 48, "r", 0, "", "ignored"),
        ("words", 47, 32, "u", 0, "", "words per row"),
        ("pitch", 31, 0, "u", 0, "", "pitch in bytes"),
    )),
    "MV_STAT": ("mover", 64, (
        ("moves", 63, 40, "u", 0, "", "moves completed without fault, modulo 2^24"),
        ("reads", 39, 24, "u", 0, "", "reads served at mesh ports, modulo 2^16"),
        ("writes", 23, 8, "u", 0, "", "write bursts issued by mesh ports, modulo 2^16"),
        ("fault", 7, 4, "u", 0, "", "fault of the last started move, 0 while none"),
        ("zero_3_3", 3, 3, "r", 0, "", "0"),
        ("nonfinite", 2, 2, "u", 0, "", "sticky: quantiser met an infinity or NaN"),
        ("sticky", 1, 1, "u", 0, "", "sticky: some move faulted since CLEAR"),
        ("busy", 0, 0, "u", 0, "", "a move runs or the queue is not empty"),
    )),
    "AD_CAPS": ("adapter", 64, (
        ("kind", 63, 48, "u", 0, "", "0x0002 staging adapter"),
        ("version", 47, 40, "u", 0, "", "1"),
        ("l2_bits", 39, 32, "u", 0, "", "5 + log2 DEPTH"),
        ("depth", 31, 0, "u", 0, "", "lines"),
    )),
    "AD_BASE": ("adapter", 64, (
        ("zero_63_40", 63, 40, "r", 0, "", "0"),
        ("base", 39, 0, "u", 0, "", "window base; bits below L2_BITS are stored as 0"),
    )),
    "AD_ENABLE": ("adapter", 64, (
        ("zero_63_1", 63, 1, "r", 0, "", "0"),
        ("l2_en", 0, 0, "u", 0, "", "window enable"),
    )),
    "AD_COUNT": ("adapter", 64, (
        ("local", 63, 32, "u", 0, "", "responses produced locally, modulo 2^32"),
        ("fwd", 31, 0, "u", 0, "", "in-window requests forwarded, modulo 2^32"),
    )),
    "AD_STATUS": ("adapter", 64, (
        ("zero_63_4", 63, 4, "r", 0, "", "0"),
        ("ctrl_lost", 3, 3, "u", 0, "", "control request discarded"),
        ("wr_proto", 2, 2, "u", 0, "", "write protocol error"),
        ("multicast", 1, 1, "u", 0, "", "in-window multicast forwarded"),
        ("straddle", 0, 0, "u", 0, "", "straddling request refused"),
    )),
}

# register: block, offset in its window, access, reset (None: not a constant), count, stride
REGISTERS: dict[str, tuple[str, int, str, int | None, int, int]] = {
    "CTRL": ("orch", 0x0000, "RW", 0, 1, 8),
    "STATUS": ("orch", 0x0008, "RO", 0, 1, 8),
    "CAPS": ("orch", 0x0010, "RO", None, 1, 8),
    "IRQ_STAT": ("orch", 0x0018, "W1C", 0, 1, 8),
    "IRQ_EN": ("orch", 0x0020, "RW", 0, 1, 8),
    "CAPS2": ("orch", 0x0028, "RO", None, 1, 8),
    "ERR_STAT": ("orch", 0x0030, "W1C", 0, 1, 8),
    "ERR_INFO": ("orch", 0x0038, "RO", 0, 1, 8),
    "PROG_DST": ("orch", 0x0040, "RW", 0, 1, 8),
    "PROG_LEN": ("orch", 0x0048, "RW", 0, 1, 8),
    "PROG_KICK": ("orch", 0x0050, "W", 0, 1, 8),
    "PROG_STAT": ("orch", 0x0058, "RO", 0, 1, 8),
    "PROG_CRED": ("orch", 0x0060, "RW", 0, 1, 8),
    "PROG_BASE": ("orch", 0x0068, "RW", 0, 1, 8),
    "SIG_DONE": ("orch", 0x0070, "R, W clears", 0, 1, 8),
    "AUX_STAT": ("orch", 0x0078, "RO", 0, 1, 8),
    "AUX_STATW": ("orch", 0x0080, "RO", 0, 16, 8),
    "TX_FLIT": ("orch", 0x0100, "W", 0, 5, 8),
    "TX_KICK": ("orch", 0x0140, "W", 0, 1, 8),
    "TX_STATUS": ("orch", 0x0148, "RO", 0, 1, 8),
    "PROG_ABORT": ("orch", 0x0150, "W", 0, 1, 8),
    "RX_FLIT": ("orch", 0x0180, "RO", 0, 5, 8),
    "RX_POP": ("orch", 0x01C0, "W", 0, 1, 8),
    "RX_STATUS": ("orch", 0x01C8, "RO, bit 17 W1C", 65536, 1, 8),
    "MEM_BLOCK": ("orch", 0x0200, "client", None, 16, 8),
    "AUX_CFG": ("orch", 0x0800, "W", 0, 32, 8),
    "NODE_STATUS": ("orch", 0x1000, "RO", 0, 256, 8),
    "STAGE": ("orch", 0x2000, "W", 0, 640, 8),
    "MEM_CAPS": ("memory", 0x0200, "RO", None, 1, 8),
    "MEM_FAULT": ("memory", 0x0208, "R, W clears", 0, 1, 8),
    "MEM_DROP": ("memory", 0x0210, "R, W clears", 0, 1, 8),
    "MEM_STGCNT": ("memory", 0x0218, "RO", 0, 1, 8),
    "MEM_DRAMCNT": ("memory", 0x0220, "RO", 0, 1, 8),
    "ENG_CTRL": ("engine", 0x0000, "RW", 0, 1, 8),
    "ENG_PC": ("engine", 0x0008, "RO", 0, 1, 8),
    "ENG_CODE": ("engine", 0x0010, "RO", 0, 1, 8),
    "ENG_POLLS": ("engine", 0x0018, "RO", 0, 1, 8),
    "ENG_CAPS": ("engine", 0x0020, "RO", None, 1, 8),
    "ENG_POLL_LIMIT": ("engine", 0x0028, "RW", 0, 1, 8),
    "ENG_ERR_ADDR": ("engine", 0x0030, "RO", 0, 1, 8),
    "CMD": ("engine", 0x1000, "W", 0, 512, 8),
    "IL_CTRL": ("interlink_cfg", 0x0880, "W", 1, 1, 8),
    "IL_MESH": ("interlink_cfg", 0x0888, "W", None, 1, 8),
    "IL_RING": ("interlink_cfg", 0x0890, "W", 0, 1, 8),
    "IL_CAPS": ("interlink_stat", 0x0080, "RO", None, 1, 8),
    "IL_FAULT": ("interlink_stat", 0x0088, "RO", 0, 1, 8),
    "IL_DBELL0": ("interlink_stat", 0x0090, "RO", 0, 1, 8),
    "IL_DBELL1": ("interlink_stat", 0x0098, "RO", 0, 1, 8),
    "IL_DBELL2": ("interlink_stat", 0x00A0, "RO", 0, 1, 8),
    "IL_DBELL3": ("interlink_stat", 0x00A8, "RO", 0, 1, 8),
    "MV_CTRL": ("mover", 0x0800, "W", 8, 1, 8),
    "MV_CLEAR": ("mover", 0x0808, "W", None, 1, 8),
    "MV_HDR": ("mover", 0x0810, "W", 17592186044416, 1, 8),
    "MV_DIM": ("mover", 0x0818, "W", 0, 1, 8),
    "MV_AXIS": ("mover", 0x0820, "W", 0, 1, 8),
    "MV_WINDOW": ("mover", 0x0828, "W", 0, 1, 8),
    "MV_INDEX": ("mover", 0x0830, "W", 0, 1, 8),
    "MV_SEED": ("mover", 0x0838, "W", 0, 1, 8),
    "MV_IMM": ("mover", 0x0840, "W", 0, 1, 8),
    "MV_GATHER": ("mover", 0x0850, "W", 4294967296, 1, 8),
}

# window: base, size, distance between meshes (0: one only)
HOST_MAP: dict[str, tuple[int, int, int]] = {
    "engine": (0x0, 0x2000, 0x0),
    "ctrl": (0x10000000, 0x10000, 0x10000),
    "mem": (0x10000000000, 0x10000000000, 0x10000000000),
}
ADDRESS_MAP: dict[str, tuple[int, int, int]] = {
    "dram": (0x0, 0x1000000000, 0x1000000000),
    "staging": (0x8000000000, 0x100000000, 0x1000000000),
    "adapter": (0x8100000000, 0x100000000, 0x1000000000),
}

# of several faults that apply to one request the first is reported
MEM_FAULT_ORDER: tuple[str, ...] = ("M_REMOTE", "M_RSVD", "M_MESH", "M_APER", "M_ALIGN", "M_RANGE", "M_LEN", "M_TAG")
MV_CHECK_ORDER: tuple[str, ...] = ("F_EWIDTH", "F_MODE", "F_XFORM", "F_WALK", "F_IDXLEN")
# transform: source words, output words of an entry
MV_XFORM_WORDS: dict[int, tuple[int, int]] = {
    0: (4, 4),
    1: (8, 4),
    2: (4, 4),
}
# adapter register: index, access, reset
AD_REGISTERS: dict[str, tuple[int, str, int]] = {
    "AD_CAPS": (0xE0, "RO", 0x2011200002000),
    "AD_BASE": (0xE1, "RW", 0xF0000000),
    "AD_ENABLE": (0xE2, "RW", 0x0),
    "AD_COUNT": (0xE3, "RO", 0x0),
    "AD_STATUS": (0xE4, "R, W clears", 0x0),
}

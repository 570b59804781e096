// SPDX-License-Identifier: Apache-2.0
// Generated from spec/*.json by `python -m kohakutpu.gen`; do not edit.
`ifndef KTPU_DEFS_VH
`define KTPU_DEFS_VH

// constants
`define KT_FLIT_W                          288
`define KT_HDR_W                           32
`define KT_PAYLOAD_W                       256
`define KT_POS_W                           4
`define KT_GRID_LO                         1
`define KT_GRID_MAX                        14
`define KT_ADDR_W                          40
`define KT_GRANULE_BYTES                   32
`define KT_CTRL_DATA_W                     64
`define KT_FLIT_WORDS                      5
`define KT_STAGE_SLOT_BYTES                40
`define KT_STAGE_FLITS                     128
`define KT_NCMD                            128
`define KT_POLL_IVL                        31
`define KT_TX_DEPTH                        16
`define KT_RX_DEPTH                        16
`define KT_SIG_DEPTH                       16
`define KT_CTRLQ_DEPTH                     4
`define KT_INST_DEPTH                      32
`define KT_RECV_DEPTH                      16
`define KT_RECV_DEPTH_CLUSTER              64
`define KT_RECV_DEPTH_VECTOR               64
`define KT_ACKQ_DEPTH                      16
`define KT_ACKQ_DEPTH_CLUSTER              128
`define KT_ACKQ_DEPTH_VECTOR               64
`define KT_N_BUFFERS_CLUSTER               3
`define KT_N_BUFFERS_VECTOR                1
`define KT_MAX_INFLIGHT                    1
`define KT_MAX_INFLIGHT_HI                 8
`define KT_ROUTER_FIFO_DEPTH               32
`define KT_CDC_DEPTH                       16
`define KT_WBURST_MAX                      8
`define KT_CU_DATA_MAX_FLITS               256
`define KT_CREDIT_MAX                      32
`define KT_MAX_BUSY                        20000
`define KT_CU_VERSION                      5
`define KT_CU_TYPE_CLUSTER                 16'h4D47
`define KT_CU_TYPE_VECTOR                  16'h5643
`define KT_HOST_ENGINE_BASE                32'h00000000
`define KT_HOST_CTRL_BASE                  32'h10000000
`define KT_HOST_CTRL_STRIDE                32'h00010000
`define KT_CTRL_ADDON_INDEX_LO             8'hE0
`define KT_CTRL_ADDON_INDEX_HI             8'hE7
`define KT_CTRL_OP_READ                    8'h00
`define KT_CTRL_OP_WRITE                   8'h01
`define KT_CTRL_OP_RSP                     8'h02
`define KT_CTRL_OP_REFUSED                 8'h03
`define KT_OP_WR                           4'h1
`define KT_OP_POLL                         4'h2
`define KT_OP_DONE                         4'h3
`define KT_IL_BEAT_W                       288
`define KT_IL_HDR_W                        96
`define KT_IL_MAX_BEATS                    32
`define KT_IL_RX_BEATS                     64
`define KT_FAULT_MAGIC                     16'hFAB0
`define KT_MEM_WORD_BYTES                  32
`define KT_MEM_WBURST                      8
`define KT_MEM_WR_SLOTS                    16
`define KT_MEM_Q_DEPTH                     64
`define KT_MEM_Q_MARGIN                    4
`define KT_MEM_DRAM_BYTES_LOG2             32
`define KT_MEM_STAGE_BANKS                 4
`define KT_MEM_STAGE_ENTRIES               16384
`define KT_MEM_STAGE_BYTES                 2097152
`define KT_MEM_STAGE_ENTRY_BYTES           128
`define KT_MEM_PORTS                       1
`define KT_MEM_PORTS_MAX                   4
`define KT_MEM_RD_OUT                      4
`define KT_MEM_MW                          256
`define KT_MEM_ADAPTER_DEPTH               8192
`define KT_MEM_ADAPTER_L2_BITS             18
`define KT_MEM_ADAPTER_QUEUE               4
`define KT_MEM_ADAPTER_ORDER               64
`define KT_MEM_ADAPTER_KIND                2
`define KT_MEM_ADAPTER_VERSION             1
`define KT_MEM_MOVER_QUEUE                 64
`define KT_MEM_MOVER_MAX_BURST             128
`define KT_MEM_MOVER_FIFO_WORDS            512
`define KT_MEM_MOVER_READS                 16
`define KT_MEM_MOVER_WRITES                32
`define KT_MEM_MOVER_NDIM_MAX              6
`define KT_MEM_MOVER_INDEX_MAX             2048
`define KT_MEM_MOVER_WINDOW                128
`define KT_MEM_PHILOX_M0                   32'hD2511F53
`define KT_MEM_PHILOX_M1                   32'hCD9E8D57
`define KT_MEM_PHILOX_W0                   32'h9E3779B9
`define KT_MEM_PHILOX_W1                   32'hBB67AE85
`define KT_MEM_PHILOX_ROUNDS               10
`define KT_MV_XFORM_IDENTITY_IN            4
`define KT_MV_XFORM_IDENTITY_OUT           4
`define KT_MV_XFORM_QUANTISE_IN            8
`define KT_MV_XFORM_QUANTISE_OUT           4
`define KT_MV_XFORM_GRANULE_IN             4
`define KT_MV_XFORM_GRANULE_OUT            4
`define KT_IDX_AD_LO                       8'hE0
`define KT_IDX_AD_HI                       8'hE7
`define KT_MG_CU_TYPE                      16'h4D47
`define KT_MG_N_BUFFERS                    3
`define KT_MG_LANES                        4
`define KT_MG_K_BLOCK                      32
`define KT_MG_ENTRY_WORDS                  4
`define KT_MG_ENTRY_BYTES                  128
`define KT_MG_ENTRY_L1_W                   928
`define KT_MG_ELEM_W                       7
`define KT_MG_SCALE_W                      8
`define KT_MG_BANK_ENTRIES                 256
`define KT_MG_FILL_MAX                     255
`define KT_MG_SUBTILE_LANES                16
`define KT_MG_ACC_MW                       14
`define KT_MG_ACC_W                        22
`define KT_MG_ACC_BIAS                     63
`define KT_MG_ANCHOR_MXFP7                 8'h28
`define KT_MG_SCALE_BIAS                   20
`define KT_MG_WBURST                       8
`define KT_MG_DRAIN_TXN                    8'h02
`define KT_MG_BUF_A                        8'h00
`define KT_MG_BUF_B                        8'h01
`define KT_MG_BUF_ACC                      8'h02
`define KT_MG_FILL_LEN                     8'h03
`define KT_MG_FILL_FLAGS                   8'h40
`define KT_MG_NODE_GRANULES                65536
`define KT_MG_REUSE_MIN_EXTRA              3
`define KT_MG_FILL_WDOG                    1048576
`define KT_MG_PEER_WDOG                    65536
`define KT_VC_LANES                        16
`define KT_VC_VREGS                        16
`define KT_VC_SREGS                        16
`define KT_VC_KREGS                        4
`define KT_VC_PREGS                        4
`define KT_VC_VLMAX                        128
`define KT_VC_CHUNKS                       8
`define KT_VC_ELEM_BITS                    24
`define KT_VC_IMEM_WORDS                   512
`define KT_VC_L1_WORDS                     512
`define KT_VC_WORD_BITS                    256
`define KT_VC_WORD_BYTES                   32
`define KT_VC_DESCRIPTORS                  8
`define KT_VC_DIMS                         4
`define KT_VC_STRIDE_BITS                  18
`define KT_VC_BOUND_BITS                   16
`define KT_VC_ADDR_BITS                    40
`define KT_VC_WALK_MAX                     256
`define KT_VC_LOOP_BODY_MAX                15
`define KT_VC_WBURST_MAX                   8
`define KT_VC_STREAM_MAX                   255
`define KT_VC_CU_DATA_MAX                  256
`define KT_VC_ACCUMULATORS                 16
`define KT_VC_CU_TYPE                      16'h5643
`define KT_VC_N_BUFFERS                    1
`define KT_VC_INST_DEPTH                   32
`define KT_VC_RECV_DEPTH                   64
`define KT_VC_ALAT                         14
`define KT_VC_ACKQ_DEPTH_MIN               64
`define KT_VC_MAX_INFLIGHT                 1
`define KT_VC_FILL_WDOG_DEFAULT            1048576
`define KT_VC_MX_STORE_DEFAULT             0

// type
`define KT_TYPE_MEM_RD_REQ                 4'h0
`define KT_TYPE_MEM_WR_REQ                 4'h1
`define KT_TYPE_MEM_RD_RESP                4'h2
`define KT_TYPE_MEM_WR_ACK                 4'h3
`define KT_TYPE_MEM_WR_DATA                4'h4
`define KT_TYPE_CU_INST                    4'h5
`define KT_TYPE_CU_SIGNAL                  4'h6
`define KT_TYPE_CU_CTRL                    4'h7
`define KT_TYPE_CU_DATA                    4'h8
`define KT_TYPE_RSVD_9                     4'h9
`define KT_TYPE_RSVD_A                     4'hA
`define KT_TYPE_RSVD_B                     4'hB
`define KT_TYPE_RSVD_C                     4'hC
`define KT_TYPE_RSVD_D                     4'hD
`define KT_TYPE_RSVD_E                     4'hE
`define KT_TYPE_ERROR                      4'hF

// signal
`define KT_SIG_INST_COMPLETE               8'h00
`define KT_SIG_BATCH_COMPLETE              8'h01
`define KT_SIG_BARRIER_REACHED             8'h02
`define KT_SIG_DATA_RECEIVED               8'h03
`define KT_SIG_FAULT                       8'h04

// router_port
`define KT_PORT_N                          3'd0
`define KT_PORT_E                          3'd1
`define KT_PORT_S                          3'd2
`define KT_PORT_W                          3'd3
`define KT_PORT_L                          3'd4

// engine_err
`define KT_ENG_ERR_NONE                    4'd0
`define KT_ENG_ERR_BAD_OP                  4'd1
`define KT_ENG_ERR_NO_DONE                 4'd2
`define KT_ENG_ERR_WR_RESP                 4'd3
`define KT_ENG_ERR_RD_RESP                 4'd4
`define KT_ENG_ERR_POLL_LIMIT              4'd5
`define KT_ENG_ERR_ABORTED                 4'd6

// cu_data_reject
`define KT_REJ_NONE                        3'd0
`define KT_REJ_UNKNOWN_BUF                 3'd1
`define KT_REJ_RANGE                       3'd2
`define KT_REJ_ODD_START                   3'd3
`define KT_REJ_SECOND_SENDER               3'd4
`define KT_REJ_LAST_MISMATCH               3'd5
`define KT_REJ_NOT_READY                   3'd6

// fault_arg
`define KT_FAB_MISROUTED                   8'd1
`define KT_FAB_WR_DROP                     8'd2
`define KT_FAB_RD_ERR                      8'd3

// interlink_kind
`define KT_IL_KIND_MEM_WR                  4'd1
`define KT_IL_KIND_NOC_FLIT                4'd2
`define KT_IL_KIND_DOORBELL                4'd3
`define KT_IL_KIND_CREDIT                  4'd4

// cu_ctrl_index
`define KT_IDX_CU_CAPS                     8'h00
`define KT_IDX_CU_STATUS                   8'h01
`define KT_IDX_CU_COUNTERS                 8'h02
`define KT_IDX_CU_DBG                      8'h03
`define KT_IDX_CU_ERR                      8'h04

// mem_fault
`define KT_M_NONE                          4'd0
`define KT_M_ALIGN                         4'd1
`define KT_M_RSVD                          4'd2
`define KT_M_MESH                          4'd3
`define KT_M_APER                          4'd4
`define KT_M_RANGE                         4'd5
`define KT_M_LEN                           4'd6
`define KT_M_TAG                           4'd7
`define KT_M_FRAME                         4'd8
`define KT_M_BUS                           4'd9
`define KT_M_REMOTE                        4'd10
`define KT_M_ORPHAN                        4'd11
`define KT_M_HOSTX                         4'd12

// mem_class
`define KT_MEM_CLS_PORT                    4'd0
`define KT_MEM_CLS_HOST                    4'd1
`define KT_MEM_CLS_MOVER                   4'd2
`define KT_MEM_CLS_INTERLINK               4'd3

// mover_mode
`define KT_MV_MODE_COPY                    3'd0
`define KT_MV_MODE_TRANSPOSE               3'd1
`define KT_MV_MODE_GATHER                  3'd2
`define KT_MV_MODE_GENERATE                3'd3
`define KT_MV_MODE_FILL                    3'd4
`define KT_MV_MODE_XFORM                   3'd5

// mover_xform
`define KT_MV_XFORM_IDENTITY               4'd0
`define KT_MV_XFORM_QUANTISE               4'd1
`define KT_MV_XFORM_GRANULE                4'd2

// mover_fault
`define KT_MV_F_NONE                       4'd0
`define KT_MV_F_IDXLEN                     4'd1
`define KT_MV_F_RANGE                      4'd2
`define KT_MV_F_AXI                        4'd3
`define KT_MV_F_MODE                       4'd4
`define KT_MV_F_EWIDTH                     4'd5
`define KT_MV_F_ALIGN                      4'd6
`define KT_MV_F_XPAD                       4'd7
`define KT_MV_F_XFORM                      4'd8
`define KT_MV_F_RSVD9                      4'd9
`define KT_MV_F_WALK                       4'd10

// mover_offset
`define KT_MV_REG_CTRL                     8'h00
`define KT_MV_REG_CLEAR                    8'h08
`define KT_MV_REG_HDR                      8'h10
`define KT_MV_REG_DIM                      8'h18
`define KT_MV_REG_AXIS                     8'h20
`define KT_MV_REG_WINDOW                   8'h28
`define KT_MV_REG_INDEX                    8'h30
`define KT_MV_REG_SEED                     8'h38
`define KT_MV_REG_IMM                      8'h40
`define KT_MV_REG_GATHER                   8'h50

// adapter_index
`define KT_IDX_AD_CAPS                     8'hE0
`define KT_IDX_AD_BASE                     8'hE1
`define KT_IDX_AD_ENABLE                   8'hE2
`define KT_IDX_AD_COUNT                    8'hE3
`define KT_IDX_AD_STATUS                   8'hE4

// mg_op
`define KT_MG_OP_FILL                      4'd1
`define KT_MG_OP_GEMM                      4'd2
`define KT_MG_OP_DRAIN                     4'd3

// mg_fault
`define KT_MG_F_OPCODE                     8'h01
`define KT_MG_F_FILL_N                     8'h02
`define KT_MG_F_FILL_RANGE                 8'h03
`define KT_MG_F_PEERS                      8'h04
`define KT_MG_F_GEMM_A                     8'h05
`define KT_MG_F_GEMM_B                     8'h06
`define KT_MG_F_TILES                      8'h07
`define KT_MG_F_UNOPENED                   8'h08
`define KT_MG_F_EMIT_SEND                  8'h09
`define KT_MG_F_FUSE                       8'h0A
`define KT_MG_F_REMOTE                     8'h0B
`define KT_MG_F_DST                        8'h0C
`define KT_MG_F_NODE_OFF                   8'h0D
`define KT_MG_F_ROWMAJOR                   8'h0E
`define KT_MG_F_MEM_RD                     8'h10
`define KT_MG_F_WDOG                       8'h11
`define KT_MG_A_BUF                        8'h81
`define KT_MG_A_RANGE                      8'h82
`define KT_MG_A_ODD                        8'h83
`define KT_MG_A_BUSY                       8'h84
`define KT_MG_A_LEN                        8'h85
`define KT_MG_A_NOTREADY                   8'h86
`define KT_MG_A_RESP                       8'h88
`define KT_MG_A_SPLIT                      8'h89

// mg_unit_err
`define KT_MG_UERR_THIRD                   0
`define KT_MG_UERR_REJECT                  1
`define KT_MG_UERR_RESP                    2
`define KT_MG_UERR_CLAMP                   3
`define KT_MG_UERR_PEER_WDOG               4
`define KT_MG_UERR_FILL_WDOG               5
`define KT_MG_UERR_SPLIT                   6
`define KT_MG_UERR_ZERO                    7

// mg_feature
`define KT_MG_FEATURE_ROWMAJOR             0

// vc_op
`define KT_VC_OP_VMOV                      5'd0
`define KT_VC_OP_VNEG                      5'd1
`define KT_VC_OP_VABS                      5'd2
`define KT_VC_OP_VADD                      5'd3
`define KT_VC_OP_VSUB                      5'd4
`define KT_VC_OP_VMUL                      5'd5
`define KT_VC_OP_VFMA                      5'd6
`define KT_VC_OP_VFNMA                     5'd7
`define KT_VC_OP_VMAX                      5'd8
`define KT_VC_OP_VMIN                      5'd9
`define KT_VC_OP_VSEL                      5'd10
`define KT_VC_OP_VCMPLT                    5'd11
`define KT_VC_OP_VCMPGT                    5'd12
`define KT_VC_OP_VCMPEQ                    5'd13
`define KT_VC_OP_VEXP2                     5'd14
`define KT_VC_OP_VLOG2                     5'd15
`define KT_VC_OP_VINV                      5'd16
`define KT_VC_OP_VRSQRT                    5'd17
`define KT_VC_OP_VCVT                      5'd18
`define KT_VC_OP_VRED                      5'd19
`define KT_VC_OP_VLD                       5'd20
`define KT_VC_OP_VST                       5'd21
`define KT_VC_OP_VBCAST                    5'd22
`define KT_VC_OP_VSHUF                     5'd23
`define KT_VC_OP_VSETVL                    5'd24
`define KT_VC_OP_VSETMODE                  5'd25
`define KT_VC_OP_VSETI                     5'd26
`define KT_VC_OP_VLOOP                     5'd27
`define KT_VC_OP_VBAR                      5'd28
`define KT_VC_OP_VFILL                     5'd29
`define KT_VC_OP_VDRAIN                    5'd30
`define KT_VC_OP_VHALT                     5'd31

// vc_env
`define KT_VC_ENV_IMEM                     4'd1
`define KT_VC_ENV_DESC                     4'd2
`define KT_VC_ENV_RUN                      4'd3

// vc_lane_op
`define KT_VC_LANE_VMOV                    5'd0
`define KT_VC_LANE_VNEG                    5'd1
`define KT_VC_LANE_VABS                    5'd2
`define KT_VC_LANE_VADD                    5'd3
`define KT_VC_LANE_VSUB                    5'd4
`define KT_VC_LANE_VMUL                    5'd5
`define KT_VC_LANE_VFMA                    5'd6
`define KT_VC_LANE_VFNMA                   5'd7
`define KT_VC_LANE_VMAX                    5'd8
`define KT_VC_LANE_VMIN                    5'd9
`define KT_VC_LANE_VSEL                    5'd10
`define KT_VC_LANE_VCMPLT                  5'd11
`define KT_VC_LANE_VCMPGT                  5'd12
`define KT_VC_LANE_VCMPEQ                  5'd13
`define KT_VC_LANE_VEXP2                   5'd16
`define KT_VC_LANE_VLOG2                   5'd17
`define KT_VC_LANE_VINV                    5'd18
`define KT_VC_LANE_VRSQRT                  5'd19

// vc_src
`define KT_VC_SRC_V                        2'd0
`define KT_VC_SRC_S                        2'd1
`define KT_VC_SRC_C                        2'd2
`define KT_VC_SRC_K                        2'd3

// vc_mode
`define KT_VC_MODE_FLAT                    4'd0
`define KT_VC_MODE_D2                      4'd1
`define KT_VC_MODE_D4                      4'd2
`define KT_VC_MODE_TREE                    4'd3

// vc_dtype
`define KT_VC_DTYPE_FP16                   3'd1
`define KT_VC_DTYPE_FP32                   3'd2

// vc_pm
`define KT_VC_PM_ALL                       2'd0
`define KT_VC_PM_SET                       2'd1
`define KT_VC_PM_CLEAR                     2'd2

// vc_red
`define KT_VC_RED_SUM                      4'd0
`define KT_VC_RED_MAX                      4'd1
`define KT_VC_RED_MIN                      4'd2
`define KT_VC_RED_SUMSQ                    4'd3
`define KT_VC_RED_DOT                      4'd4
`define KT_VC_RED_EXPSUM                   4'd5
`define KT_VC_RED_ANY                      4'd6
`define KT_VC_RED_ALL                      4'd7

// vc_bcast
`define KT_VC_BCAST_V                      2'd0
`define KT_VC_BCAST_S                      2'd1

// vc_seti
`define KT_VC_SETI_S                       2'd0
`define KT_VC_SETI_K3                      2'd3

// vc_fault
`define KT_VC_F_DTYPE                      8'h01
`define KT_VC_F_VSRC                       8'h02
`define KT_VC_F_CHAIN                      8'h03
`define KT_VC_F_OPCODE                     8'h04
`define KT_VC_F_LEN                        8'h05
`define KT_VC_F_LOOP                       8'h06
`define KT_VC_F_VL                         8'h07
`define KT_VC_F_REDVL                      8'h08
`define KT_VC_F_CUDATA                     8'h09
`define KT_VC_F_ENC                        8'h0A
`define KT_VC_F_L1RANGE                    8'h0B
`define KT_VC_F_ALIGN                      8'h0C
`define KT_VC_F_ADDR                       8'h0D
`define KT_VC_F_PC                         8'h0E
`define KT_VC_F_PEER                       8'h0F
`define KT_VC_F_MEM_RD                     8'h10
`define KT_VC_F_WDOG                       8'h11
`define KT_VC_F_ENV                        8'h12
`define KT_VC_A_RESP                       8'h88

// vc_unit_err
`define KT_VC_UERR_THIRD                   0
`define KT_VC_UERR_REJECT                  1
`define KT_VC_UERR_RESP                    2
`define KT_VC_UERR_CLAMP                   3
`define KT_VC_UERR_ZERO4                   4
`define KT_VC_UERR_FILL_WDOG               5
`define KT_VC_UERR_ZERO6                   6
`define KT_VC_UERR_ZERO7                   7

// register offsets
`define KT_REG_CTRL                        16'h0000
`define KT_REG_STATUS                      16'h0008
`define KT_REG_CAPS                        16'h0010
`define KT_REG_IRQ_STAT                    16'h0018
`define KT_REG_IRQ_EN                      16'h0020
`define KT_REG_CAPS2                       16'h0028
`define KT_REG_ERR_STAT                    16'h0030
`define KT_REG_ERR_INFO                    16'h0038
`define KT_REG_PROG_DST                    16'h0040
`define KT_REG_PROG_LEN                    16'h0048
`define KT_REG_PROG_KICK                   16'h0050
`define KT_REG_PROG_STAT                   16'h0058
`define KT_REG_PROG_CRED                   16'h0060
`define KT_REG_PROG_BASE                   16'h0068
`define KT_REG_SIG_DONE                    16'h0070
`define KT_REG_AUX_STAT                    16'h0078
`define KT_REG_AUX_STATW                   16'h0080
`define KT_REG_TX_FLIT                     16'h0100
`define KT_REG_TX_KICK                     16'h0140
`define KT_REG_TX_STATUS                   16'h0148
`define KT_REG_PROG_ABORT                  16'h0150
`define KT_REG_RX_FLIT                     16'h0180
`define KT_REG_RX_POP                      16'h01C0
`define KT_REG_RX_STATUS                   16'h01C8
`define KT_REG_MEM_BLOCK                   16'h0200
`define KT_REG_AUX_CFG                     16'h0800
`define KT_REG_NODE_STATUS                 16'h1000
`define KT_REG_STAGE                       16'h2000
`define KT_REG_MEM_CAPS                    16'h0200
`define KT_REG_MEM_FAULT                   16'h0208
`define KT_REG_MEM_DROP                    16'h0210
`define KT_REG_MEM_STGCNT                  16'h0218
`define KT_REG_MEM_DRAMCNT                 16'h0220
`define KT_REG_ENG_CTRL                    16'h0000
`define KT_REG_ENG_PC                      16'h0008
`define KT_REG_ENG_CODE                    16'h0010
`define KT_REG_ENG_POLLS                   16'h0018
`define KT_REG_ENG_CAPS                    16'h0020
`define KT_REG_ENG_POLL_LIMIT              16'h0028
`define KT_REG_ENG_ERR_ADDR                16'h0030
`define KT_REG_CMD                         16'h1000
`define KT_REG_IL_CTRL                     16'h0880
`define KT_REG_IL_MESH                     16'h0888
`define KT_REG_IL_RING                     16'h0890
`define KT_REG_IL_CAPS                     16'h0080
`define KT_REG_IL_FAULT                    16'h0088
`define KT_REG_IL_DBELL0                   16'h0090
`define KT_REG_IL_DBELL1                   16'h0098
`define KT_REG_IL_DBELL2                   16'h00A0
`define KT_REG_IL_DBELL3                   16'h00A8
`define KT_REG_MV_CTRL                     16'h0800
`define KT_REG_MV_CLEAR                    16'h0808
`define KT_REG_MV_HDR                      16'h0810
`define KT_REG_MV_DIM                      16'h0818
`define KT_REG_MV_AXIS                     16'h0820
`define KT_REG_MV_WINDOW                   16'h0828
`define KT_REG_MV_INDEX                    16'h0830
`define KT_REG_MV_SEED                     16'h0838
`define KT_REG_MV_IMM                      16'h0840
`define KT_REG_MV_GATHER                   16'h0850

// reset values of the mover and of an adapter
`define KT_MV_CTRL_RESET                   64'h0000000000000008
`define KT_MV_HDR_RESET                    64'h0000100000000000
`define KT_MV_DIM_RESET                    64'h0000000000000000
`define KT_MV_AXIS_RESET                   64'h0000000000000000
`define KT_MV_WINDOW_RESET                 64'h0000000000000000
`define KT_MV_INDEX_RESET                  64'h0000000000000000
`define KT_MV_SEED_RESET                   64'h0000000000000000
`define KT_MV_IMM_RESET                    64'h0000000000000000
`define KT_MV_GATHER_RESET                 64'h0000000100000000
`define KT_AD_CAPS_RESET                   64'h0002011200002000
`define KT_AD_BASE_RESET                   64'h00000000F0000000
`define KT_AD_ENABLE_RESET                 64'h0000000000000000
`define KT_AD_COUNT_RESET                  64'h0000000000000000
`define KT_AD_STATUS_RESET                 64'h0000000000000000

// flit header: FLIT, 288 bits
`define KT_FLIT_DST_X                      287:284
`define KT_FLIT_DST_X_W                    4
`define KT_FLIT_DST_Y                      283:280
`define KT_FLIT_DST_Y_W                    4
`define KT_FLIT_SRC_X                      279:276
`define KT_FLIT_SRC_X_W                    4
`define KT_FLIT_SRC_Y                      275:272
`define KT_FLIT_SRC_Y_W                    4
`define KT_FLIT_TYPE                       271:268
`define KT_FLIT_TYPE_W                     4
`define KT_FLIT_TXN                        267:260
`define KT_FLIT_TXN_W                      8
`define KT_FLIT_LAST                       259
`define KT_FLIT_LAST_W                     1
`define KT_FLIT_RSVD                       258:256
`define KT_FLIT_RSVD_W                     3
`define KT_FLIT_PAYLOAD                    255:0
`define KT_FLIT_PAYLOAD_W                  256
`define KT_FLIT_RSVD_FLAG                  258
`define KT_FLIT_RSVD_FLAG_W                1
`define KT_FLIT_RSVD_LOW                   257:256
`define KT_FLIT_RSVD_LOW_W                 2

// message payloads: MEM_RD_REQ, 256 bits
`define KT_MEM_RD_REQ_ADDR                 255:216
`define KT_MEM_RD_REQ_ADDR_W               40
`define KT_MEM_RD_REQ_LEN                  215:208
`define KT_MEM_RD_REQ_LEN_W                8
`define KT_MEM_RD_REQ_FLAGS                207:200
`define KT_MEM_RD_REQ_FLAGS_W              8
`define KT_MEM_RD_REQ_COUNT                199:192
`define KT_MEM_RD_REQ_COUNT_W              8
`define KT_MEM_RD_REQ_PEER2                191:184
`define KT_MEM_RD_REQ_PEER2_W              8
`define KT_MEM_RD_REQ_PEER1                183:176
`define KT_MEM_RD_REQ_PEER1_W              8
`define KT_MEM_RD_REQ_PEER0                175:168
`define KT_MEM_RD_REQ_PEER0_W              8
`define KT_MEM_RD_REQ_N_PEER               167:166
`define KT_MEM_RD_REQ_N_PEER_W             2
`define KT_MEM_RD_REQ_ENTRY_WORDS          165:158
`define KT_MEM_RD_REQ_ENTRY_WORDS_W        8
`define KT_MEM_RD_REQ_FLAG_CACHEABLE       200
`define KT_MEM_RD_REQ_FLAG_CACHEABLE_W     1
`define KT_MEM_RD_REQ_FLAG_INVALIDATE      201
`define KT_MEM_RD_REQ_FLAG_INVALIDATE_W    1
`define KT_MEM_RD_REQ_FLAG_FLUSH           202
`define KT_MEM_RD_REQ_FLAG_FLUSH_W         1
`define KT_MEM_RD_REQ_FLAG_RSVD4           204
`define KT_MEM_RD_REQ_FLAG_RSVD4_W         1
`define KT_MEM_RD_REQ_FLAG_RSVD5           205
`define KT_MEM_RD_REQ_FLAG_RSVD5_W         1
`define KT_MEM_RD_REQ_FLAG_STREAM          206
`define KT_MEM_RD_REQ_FLAG_STREAM_W        1

// message payloads: MEM_WR_REQ, 256 bits
`define KT_MEM_WR_REQ_ADDR                 255:216
`define KT_MEM_WR_REQ_ADDR_W               40
`define KT_MEM_WR_REQ_LEN                  215:208
`define KT_MEM_WR_REQ_LEN_W                8

// message payloads: MEM_WR_DATA, 256 bits
`define KT_MEM_WR_DATA_DATA                255:0
`define KT_MEM_WR_DATA_DATA_W              256

// message payloads: MEM_RD_RESP, 256 bits
`define KT_MEM_RD_RESP_DATA                255:0
`define KT_MEM_RD_RESP_DATA_W              256

// message payloads: MEM_WR_ACK, 256 bits
`define KT_MEM_WR_ACK_FAULT_CODE           7:4
`define KT_MEM_WR_ACK_FAULT_CODE_W         4
`define KT_MEM_WR_ACK_DROP                 0
`define KT_MEM_WR_ACK_DROP_W               1

// message payloads: CU_INST, 256 bits
`define KT_CU_INST_BODY                    255:0
`define KT_CU_INST_BODY_W                  256

// message payloads: CU_SIGNAL, 256 bits
`define KT_CU_SIGNAL_CODE                  255:248
`define KT_CU_SIGNAL_CODE_W                8
`define KT_CU_SIGNAL_ARG                   247:216
`define KT_CU_SIGNAL_ARG_W                 32

// message payloads: CU_DATA_DESC, 256 bits
`define KT_CU_DATA_BUF_ID                  255:248
`define KT_CU_DATA_BUF_ID_W                8
`define KT_CU_DATA_OFFSET                  247:232
`define KT_CU_DATA_OFFSET_W                16
`define KT_CU_DATA_LEN                     231:224
`define KT_CU_DATA_LEN_W                   8
`define KT_CU_DATA_FLAGS                   223:216
`define KT_CU_DATA_FLAGS_W                 8
`define KT_CU_DATA_ACK_Y                   215:212
`define KT_CU_DATA_ACK_Y_W                 4
`define KT_CU_DATA_ACK_X                   211:208
`define KT_CU_DATA_ACK_X_W                 4
`define KT_CU_DATA_FLAG_SIGNAL             216
`define KT_CU_DATA_FLAG_SIGNAL_W           1

// message payloads: CU_DATA_DATA, 256 bits
`define KT_CU_DATA_FLIT_DATA               255:0
`define KT_CU_DATA_FLIT_DATA_W             256

// message payloads: CU_CTRL_REQ, 256 bits
`define KT_CU_CTRL_REQ_OP                  255:248
`define KT_CU_CTRL_REQ_OP_W                8
`define KT_CU_CTRL_REQ_INDEX               247:240
`define KT_CU_CTRL_REQ_INDEX_W             8
`define KT_CU_CTRL_REQ_VALUE               239:176
`define KT_CU_CTRL_REQ_VALUE_W             64
`define KT_CU_CTRL_OP                      255:248
`define KT_CU_CTRL_OP_W                    8
`define KT_CU_CTRL_INDEX                   247:240
`define KT_CU_CTRL_INDEX_W                 8
`define KT_CU_CTRL_VALUE                   239:176
`define KT_CU_CTRL_VALUE_W                 64

// message payloads: CU_CTRL_RSP, 256 bits
`define KT_CU_CTRL_RSP_OP                  255:248
`define KT_CU_CTRL_RSP_OP_W                8
`define KT_CU_CTRL_RSP_INDEX               247:240
`define KT_CU_CTRL_RSP_INDEX_W             8
`define KT_CU_CTRL_RSP_VALUE               239:176
`define KT_CU_CTRL_RSP_VALUE_W             64

// message payloads: ADDR40, 40 bits
`define KT_ADDR_APERTURE                   39
`define KT_ADDR_APERTURE_W                 1
`define KT_ADDR_ZERO38                     38
`define KT_ADDR_ZERO38_W                   1
`define KT_ADDR_MESH                       37:36
`define KT_ADDR_MESH_W                     2
`define KT_ADDR_LOCAL                      35:0
`define KT_ADDR_LOCAL_W                    36
`define KT_ADDR_APERTURE_INDEX             35:32
`define KT_ADDR_APERTURE_INDEX_W           4
`define KT_ADDR_APERTURE_OFFSET            31:0
`define KT_ADDR_APERTURE_OFFSET_W          32

// message payloads: DATA_ARG, 32 bits
`define KT_DATA_ARG_REJECT                 31
`define KT_DATA_ARG_REJECT_W               1
`define KT_DATA_ARG_REASON                 30:24
`define KT_DATA_ARG_REASON_W               7
`define KT_DATA_ARG_BUF_ID                 7:0
`define KT_DATA_ARG_BUF_ID_W               8

// message payloads: FAULT_ARG, 32 bits
`define KT_FAULT_ARG_TAG                   31:16
`define KT_FAULT_ARG_TAG_W                 16
`define KT_FAULT_ARG_DETAIL                11:8
`define KT_FAULT_ARG_DETAIL_W              4
`define KT_FAULT_ARG_CODE                  7:0
`define KT_FAULT_ARG_CODE_W                8

// message payloads: FAULT_ARG_FRAMEWORK, 32 bits
`define KT_FAB_ARG_MAGIC                   31:16
`define KT_FAB_ARG_MAGIC_W                 16
`define KT_FAB_ARG_MEM_CODE                11:8
`define KT_FAB_ARG_MEM_CODE_W              4
`define KT_FAB_ARG_CODE                    7:0
`define KT_FAB_ARG_CODE_W                  8

// registers: CU_CAPS, 64 bits
`define KT_CU_CAPS_CU_TYPE                 63:48
`define KT_CU_CAPS_CU_TYPE_W               16
`define KT_CU_CAPS_CU_VERSION              47:40
`define KT_CU_CAPS_CU_VERSION_W            8
`define KT_CU_CAPS_N_BUFFERS               39:36
`define KT_CU_CAPS_N_BUFFERS_W             4
`define KT_CU_CAPS_INST_DEPTH              35:20
`define KT_CU_CAPS_INST_DEPTH_W            16
`define KT_CU_CAPS_MAX_INFLIGHT            19:16
`define KT_CU_CAPS_MAX_INFLIGHT_W          4
`define KT_CU_CAPS_FEATURES                15:8
`define KT_CU_CAPS_FEATURES_W              8

// registers: CU_STATUS, 64 bits
`define KT_CU_STATUS_BUSY                  63
`define KT_CU_STATUS_BUSY_W                1
`define KT_CU_STATUS_ERROR                 62
`define KT_CU_STATUS_ERROR_W               1
`define KT_CU_STATUS_INST_SPACE            47:32
`define KT_CU_STATUS_INST_SPACE_W          16

// registers: CU_COUNTERS, 64 bits
`define KT_CU_COUNTERS_RETIRED             63:32
`define KT_CU_COUNTERS_RETIRED_W           32
`define KT_CU_COUNTERS_BUSY_CYCLES         31:0
`define KT_CU_COUNTERS_BUSY_CYCLES_W       32

// registers: CU_DBG, 64 bits
`define KT_CU_DBG_DBG_CTR                  63:0
`define KT_CU_DBG_DBG_CTR_W                64

// registers: CU_ERR, 64 bits
`define KT_CU_ERR_FIRST_HDR                47:16
`define KT_CU_ERR_FIRST_HDR_W              32
`define KT_CU_ERR_UNIT_ERR                 15:8
`define KT_CU_ERR_UNIT_ERR_W               8
`define KT_CU_ERR_CTRL_OVF                 6
`define KT_CU_ERR_CTRL_OVF_W               1
`define KT_CU_ERR_SPUR_ACK                 5
`define KT_CU_ERR_SPUR_ACK_W               1
`define KT_CU_ERR_SPUR_DONE                4
`define KT_CU_ERR_SPUR_DONE_W              1
`define KT_CU_ERR_RD_ERR                   3
`define KT_CU_ERR_RD_ERR_W                 1
`define KT_CU_ERR_WR_DROP                  2
`define KT_CU_ERR_WR_DROP_W                1
`define KT_CU_ERR_BAD_TYPE                 1
`define KT_CU_ERR_BAD_TYPE_W               1
`define KT_CU_ERR_MISROUTE                 0
`define KT_CU_ERR_MISROUTE_W               1

// registers: CTRL, 64 bits
`define KT_CTRL_CTRL                       63:0
`define KT_CTRL_CTRL_W                     64

// registers: STATUS, 64 bits
`define KT_STATUS_MESH_READY               2
`define KT_STATUS_MESH_READY_W             1
`define KT_STATUS_ERROR                    1
`define KT_STATUS_ERROR_W                  1
`define KT_STATUS_BUSY                     0
`define KT_STATUS_BUSY_W                   1

// registers: CAPS, 64 bits
`define KT_CAPS_GRID_HI                    39:32
`define KT_CAPS_GRID_HI_W                  8
`define KT_CAPS_GRID_LO                    31:24
`define KT_CAPS_GRID_LO_W                  8
`define KT_CAPS_POS_WIDTH                  23:16
`define KT_CAPS_POS_WIDTH_W                8
`define KT_CAPS_FLIT_WIDTH                 15:0
`define KT_CAPS_FLIT_WIDTH_W               16

// registers: IRQ_STAT, 64 bits
`define KT_IRQ_STAT_IRQ_STAT               63:0
`define KT_IRQ_STAT_IRQ_STAT_W             64

// registers: IRQ_EN, 64 bits
`define KT_IRQ_EN_IRQ_EN                   63:0
`define KT_IRQ_EN_IRQ_EN_W                 64

// registers: CAPS2, 64 bits
`define KT_CAPS2_MAGIC                     63:48
`define KT_CAPS2_MAGIC_W                   16
`define KT_CAPS2_REVISION                  47:40
`define KT_CAPS2_REVISION_W                8
`define KT_CAPS2_STAGE_FLITS               39:24
`define KT_CAPS2_STAGE_FLITS_W             16
`define KT_CAPS2_ORC_Y                     23:20
`define KT_CAPS2_ORC_Y_W                   4
`define KT_CAPS2_ORC_X                     19:16
`define KT_CAPS2_ORC_X_W                   4
`define KT_CAPS2_GRID_Y_HI                 15:8
`define KT_CAPS2_GRID_Y_HI_W               8
`define KT_CAPS2_GRID_X_HI                 7:0
`define KT_CAPS2_GRID_X_HI_W               8

// registers: ERR_STAT, 64 bits
`define KT_ERR_STAT_AUX_ABSENT             11
`define KT_ERR_STAT_AUX_ABSENT_W           1
`define KT_ERR_STAT_AXI_BAD                10
`define KT_ERR_STAT_AXI_BAD_W              1
`define KT_ERR_STAT_MESH_LOST              9
`define KT_ERR_STAT_MESH_LOST_W            1
`define KT_ERR_STAT_DATA_REJECT            8
`define KT_ERR_STAT_DATA_REJECT_W          1
`define KT_ERR_STAT_NODE_FAULT             7
`define KT_ERR_STAT_NODE_FAULT_W           1
`define KT_ERR_STAT_RX_DROP                6
`define KT_ERR_STAT_RX_DROP_W              1
`define KT_ERR_STAT_TXKICK_DROP            5
`define KT_ERR_STAT_TXKICK_DROP_W          1
`define KT_ERR_STAT_DST_BAD                4
`define KT_ERR_STAT_DST_BAD_W              1
`define KT_ERR_STAT_CRED_RANGE             3
`define KT_ERR_STAT_CRED_RANGE_W           1
`define KT_ERR_STAT_STAGE_RANGE            2
`define KT_ERR_STAT_STAGE_RANGE_W          1
`define KT_ERR_STAT_KICK_LEN0              1
`define KT_ERR_STAT_KICK_LEN0_W            1
`define KT_ERR_STAT_KICK_BUSY              0
`define KT_ERR_STAT_KICK_BUSY_W            1

// registers: ERR_INFO, 64 bits
`define KT_ERR_INFO_EVENTS                 63:48
`define KT_ERR_INFO_EVENTS_W               16
`define KT_ERR_INFO_ARG                    47:16
`define KT_ERR_INFO_ARG_W                  32
`define KT_ERR_INFO_CODE                   15:8
`define KT_ERR_INFO_CODE_W                 8
`define KT_ERR_INFO_NODE_Y                 7:4
`define KT_ERR_INFO_NODE_Y_W               4
`define KT_ERR_INFO_NODE_X                 3:0
`define KT_ERR_INFO_NODE_X_W               4

// registers: PROG_DST, 64 bits
`define KT_PROG_DST_DST_Y                  7:4
`define KT_PROG_DST_DST_Y_W                4
`define KT_PROG_DST_DST_X                  3:0
`define KT_PROG_DST_DST_X_W                4

// registers: PROG_LEN, 64 bits
`define KT_PROG_LEN_LEN                    15:0
`define KT_PROG_LEN_LEN_W                  16

// registers: PROG_KICK, 64 bits
`define KT_PROG_KICK_PROG_KICK             63:0
`define KT_PROG_KICK_PROG_KICK_W           64

// registers: PROG_STAT, 64 bits
`define KT_PROG_STAT_CREDIT                32:17
`define KT_PROG_STAT_CREDIT_W              16
`define KT_PROG_STAT_LEFT                  16:1
`define KT_PROG_STAT_LEFT_W                16
`define KT_PROG_STAT_RUN                   0
`define KT_PROG_STAT_RUN_W                 1

// registers: PROG_CRED, 64 bits
`define KT_PROG_CRED_CREDIT                15:0
`define KT_PROG_CRED_CREDIT_W              16

// registers: PROG_BASE, 64 bits
`define KT_PROG_BASE_BASE                  15:0
`define KT_PROG_BASE_BASE_W                16

// registers: SIG_DONE, 64 bits
`define KT_SIG_DONE_COUNT                  15:0
`define KT_SIG_DONE_COUNT_W                16

// registers: AUX_STAT, 64 bits
`define KT_AUX_STAT_AUX_STAT               63:0
`define KT_AUX_STAT_AUX_STAT_W             64

// registers: AUX_STATW, 64 bits
`define KT_AUX_STATW_AUX_STATW             63:0
`define KT_AUX_STATW_AUX_STATW_W           64

// registers: TX_FLIT, 64 bits
`define KT_TX_FLIT_TX_FLIT                 63:0
`define KT_TX_FLIT_TX_FLIT_W               64

// registers: TX_KICK, 64 bits
`define KT_TX_KICK_TX_KICK                 63:0
`define KT_TX_KICK_TX_KICK_W               64

// registers: TX_STATUS, 64 bits
`define KT_TX_STATUS_FULL                  16
`define KT_TX_STATUS_FULL_W                1

// registers: PROG_ABORT, 64 bits
`define KT_PROG_ABORT_PROG_ABORT           63:0
`define KT_PROG_ABORT_PROG_ABORT_W         64

// registers: RX_FLIT, 64 bits
`define KT_RX_FLIT_RX_FLIT                 63:0
`define KT_RX_FLIT_RX_FLIT_W               64

// registers: RX_POP, 64 bits
`define KT_RX_POP_RX_POP                   63:0
`define KT_RX_POP_RX_POP_W                 64

// registers: RX_STATUS, 64 bits
`define KT_RX_STATUS_OVERFLOW              17
`define KT_RX_STATUS_OVERFLOW_W            1
`define KT_RX_STATUS_EMPTY                 16
`define KT_RX_STATUS_EMPTY_W               1

// registers: MEM_BLOCK, 64 bits
`define KT_MEM_BLOCK_MEM_BLOCK             63:0
`define KT_MEM_BLOCK_MEM_BLOCK_W           64

// registers: AUX_CFG, 64 bits
`define KT_AUX_CFG_AUX_CFG                 63:0
`define KT_AUX_CFG_AUX_CFG_W               64

// registers: NODE_STATUS, 64 bits
`define KT_NODE_STATUS_CODE                63:56
`define KT_NODE_STATUS_CODE_W              8
`define KT_NODE_STATUS_ARG                 55:24
`define KT_NODE_STATUS_ARG_W               32
`define KT_NODE_STATUS_SIGNAL_COUNT        23:8
`define KT_NODE_STATUS_SIGNAL_COUNT_W      16
`define KT_NODE_STATUS_VALID               0
`define KT_NODE_STATUS_VALID_W             1

// registers: STAGE, 64 bits
`define KT_STAGE_STAGE                     63:0
`define KT_STAGE_STAGE_W                   64

// registers: MEM_CAPS, 64 bits
`define KT_MEM_CAPS_VERSION                63:56
`define KT_MEM_CAPS_VERSION_W              8
`define KT_MEM_CAPS_WR_SLOTS               55:48
`define KT_MEM_CAPS_WR_SLOTS_W             8
`define KT_MEM_CAPS_WBURST                 47:44
`define KT_MEM_CAPS_WBURST_W               4
`define KT_MEM_CAPS_PORTS                  43:40
`define KT_MEM_CAPS_PORTS_W                4
`define KT_MEM_CAPS_DRAM_LOG2              39:32
`define KT_MEM_CAPS_DRAM_LOG2_W            8
`define KT_MEM_CAPS_STAGE_BYTES            31:0
`define KT_MEM_CAPS_STAGE_BYTES_W          32

// registers: MEM_FAULT, 64 bits
`define KT_MEM_FAULT_ADDR                  63:24
`define KT_MEM_FAULT_ADDR_W                40
`define KT_MEM_FAULT_TXN                   23:16
`define KT_MEM_FAULT_TXN_W                 8
`define KT_MEM_FAULT_NODE                  15:8
`define KT_MEM_FAULT_NODE_W                8
`define KT_MEM_FAULT_CLS                   7:4
`define KT_MEM_FAULT_CLS_W                 4
`define KT_MEM_FAULT_CODE                  3:0
`define KT_MEM_FAULT_CODE_W                4

// registers: MEM_DROP, 64 bits
`define KT_MEM_DROP_CTRL                   47:32
`define KT_MEM_DROP_CTRL_W                 16
`define KT_MEM_DROP_ORPHAN                 31:16
`define KT_MEM_DROP_ORPHAN_W               16
`define KT_MEM_DROP_FAULTS                 15:0
`define KT_MEM_DROP_FAULTS_W               16

// registers: MEM_STGCNT, 64 bits
`define KT_MEM_STGCNT_WRITTEN              63:32
`define KT_MEM_STGCNT_WRITTEN_W            32
`define KT_MEM_STGCNT_READ                 31:0
`define KT_MEM_STGCNT_READ_W               32

// registers: MEM_DRAMCNT, 64 bits
`define KT_MEM_DRAMCNT_WRITTEN             63:32
`define KT_MEM_DRAMCNT_WRITTEN_W           32
`define KT_MEM_DRAMCNT_READ                31:0
`define KT_MEM_DRAMCNT_READ_W              32

// registers: ENG_CTRL, 64 bits
`define KT_ENG_CTRL_ERR_CODE               7:4
`define KT_ENG_CTRL_ERR_CODE_W             4
`define KT_ENG_CTRL_ERR                    2
`define KT_ENG_CTRL_ERR_W                  1
`define KT_ENG_CTRL_DONE                   1
`define KT_ENG_CTRL_DONE_W                 1
`define KT_ENG_CTRL_BUSY                   0
`define KT_ENG_CTRL_BUSY_W                 1
`define KT_ENG_CTRL_ABORT                  1
`define KT_ENG_CTRL_ABORT_W                1
`define KT_ENG_CTRL_GO                     0
`define KT_ENG_CTRL_GO_W                   1

// registers: ENG_PC, 64 bits
`define KT_ENG_PC_PC                       15:0
`define KT_ENG_PC_PC_W                     16

// registers: ENG_CODE, 64 bits
`define KT_ENG_CODE_ENG_CODE               63:0
`define KT_ENG_CODE_ENG_CODE_W             64

// registers: ENG_POLLS, 64 bits
`define KT_ENG_POLLS_POLLS                 31:0
`define KT_ENG_POLLS_POLLS_W               32

// registers: ENG_CAPS, 64 bits
`define KT_ENG_CAPS_MAGIC                  63:48
`define KT_ENG_CAPS_MAGIC_W                16
`define KT_ENG_CAPS_POLL_IVL               31:16
`define KT_ENG_CAPS_POLL_IVL_W             16
`define KT_ENG_CAPS_NCMD                   15:0
`define KT_ENG_CAPS_NCMD_W                 16

// registers: ENG_POLL_LIMIT, 64 bits
`define KT_ENG_POLL_LIMIT_LIMIT            31:0
`define KT_ENG_POLL_LIMIT_LIMIT_W          32

// registers: ENG_ERR_ADDR, 64 bits
`define KT_ENG_ERR_ADDR_ADDR               31:0
`define KT_ENG_ERR_ADDR_ADDR_W             32

// registers: CMD, 64 bits
`define KT_CMD_CMD                         63:0
`define KT_CMD_CMD_W                       64

// registers: CMD_WORD0, 64 bits
`define KT_CMD_WORD0_OP                    3:0
`define KT_CMD_WORD0_OP_W                  4

// registers: CMD_WORD1, 64 bits
`define KT_CMD_WORD1_ADDR                  31:0
`define KT_CMD_WORD1_ADDR_W                32

// registers: CMD_WORD2, 64 bits
`define KT_CMD_WORD2_DATA                  63:0
`define KT_CMD_WORD2_DATA_W                64

// registers: CMD_WORD3, 64 bits
`define KT_CMD_WORD3_MASK                  63:0
`define KT_CMD_WORD3_MASK_W                64

// registers: IL_HEADER, 96 bits
`define KT_IL_HDR_KIND                     3:0
`define KT_IL_HDR_KIND_W                   4
`define KT_IL_HDR_DMESH                    5:4
`define KT_IL_HDR_DMESH_W                  2
`define KT_IL_HDR_SMESH                    7:6
`define KT_IL_HDR_SMESH_W                  2
`define KT_IL_HDR_TXN                      15:8
`define KT_IL_HDR_TXN_W                    8
`define KT_IL_HDR_LEN                      31:16
`define KT_IL_HDR_LEN_W                    16
`define KT_IL_HDR_ADDR                     71:32
`define KT_IL_HDR_ADDR_W                   40
`define KT_IL_HDR_ODD                      72
`define KT_IL_HDR_ODD_W                    1
`define KT_IL_HDR_STRB                     73
`define KT_IL_HDR_STRB_W                   1

// registers: IL_CTRL, 64 bits
`define KT_IL_CTRL_CLR_FAULT               2
`define KT_IL_CTRL_CLR_FAULT_W             1
`define KT_IL_CTRL_CLR_DBELL               1
`define KT_IL_CTRL_CLR_DBELL_W             1
`define KT_IL_CTRL_ENABLE                  0
`define KT_IL_CTRL_ENABLE_W                1

// registers: IL_MESH, 64 bits
`define KT_IL_MESH_MESH                    1:0
`define KT_IL_MESH_MESH_W                  2

// registers: IL_RING, 64 bits
`define KT_IL_RING_TAG                     15:8
`define KT_IL_RING_TAG_W                   8
`define KT_IL_RING_DST                     1:0
`define KT_IL_RING_DST_W                   2

// registers: IL_CAPS, 64 bits
`define KT_IL_CAPS_CONST1                  31:28
`define KT_IL_CAPS_CONST1_W                4
`define KT_IL_CAPS_CONST4                  27:24
`define KT_IL_CAPS_CONST4_W                4
`define KT_IL_CAPS_MESH                    21:20
`define KT_IL_CAPS_MESH_W                  2
`define KT_IL_CAPS_CONST2                  19:16
`define KT_IL_CAPS_CONST2_W                4
`define KT_IL_CAPS_MAGIC                   15:0
`define KT_IL_CAPS_MAGIC_W                 16

// registers: IL_FAULT, 64 bits
`define KT_IL_FAULT_INJ                    4
`define KT_IL_FAULT_INJ_W                  1
`define KT_IL_FAULT_AXI                    3
`define KT_IL_FAULT_AXI_W                  1
`define KT_IL_FAULT_SWITCH                 2
`define KT_IL_FAULT_SWITCH_W               1
`define KT_IL_FAULT_ACK0                   1
`define KT_IL_FAULT_ACK0_W                 1
`define KT_IL_FAULT_RD_REMOTE              0
`define KT_IL_FAULT_RD_REMOTE_W            1

// registers: IL_DBELL0, 64 bits
`define KT_IL_DBELL0_LAST_TAG              47:32
`define KT_IL_DBELL0_LAST_TAG_W            16
`define KT_IL_DBELL0_COUNT                 31:0
`define KT_IL_DBELL0_COUNT_W               32

// registers: IL_DBELL1, 64 bits
`define KT_IL_DBELL1_LAST_TAG              47:32
`define KT_IL_DBELL1_LAST_TAG_W            16
`define KT_IL_DBELL1_COUNT                 31:0
`define KT_IL_DBELL1_COUNT_W               32

// registers: IL_DBELL2, 64 bits
`define KT_IL_DBELL2_LAST_TAG              47:32
`define KT_IL_DBELL2_LAST_TAG_W            16
`define KT_IL_DBELL2_COUNT                 31:0
`define KT_IL_DBELL2_COUNT_W               32

// registers: IL_DBELL3, 64 bits
`define KT_IL_DBELL3_LAST_TAG              47:32
`define KT_IL_DBELL3_LAST_TAG_W            16
`define KT_IL_DBELL3_COUNT                 31:0
`define KT_IL_DBELL3_COUNT_W               32

// memory mover and adapter: MV_CTRL, 64 bits
`define KT_MV_CTRL_GO                      16
`define KT_MV_CTRL_GO_W                    1
`define KT_MV_CTRL_CAP                     15:13
`define KT_MV_CTRL_CAP_W                   3
`define KT_MV_CTRL_COALESCE                11
`define KT_MV_CTRL_COALESCE_W              1
`define KT_MV_CTRL_EWIDTH                  4:3
`define KT_MV_CTRL_EWIDTH_W                2
`define KT_MV_CTRL_MODE                    2:0
`define KT_MV_CTRL_MODE_W                  3

// memory mover and adapter: MV_CLEAR, 64 bits
`define KT_MV_CLEAR_NONFINITE              1
`define KT_MV_CLEAR_NONFINITE_W            1
`define KT_MV_CLEAR_FAULT                  0
`define KT_MV_CLEAR_FAULT_W                1

// memory mover and adapter: MV_HDR, 64 bits
`define KT_MV_HDR_XFORM_MODE               58:55
`define KT_MV_HDR_XFORM_MODE_W             4
`define KT_MV_HDR_XFORM_ID                 50:47
`define KT_MV_HDR_XFORM_ID_W               4
`define KT_MV_HDR_NDIM                     46:44
`define KT_MV_HDR_NDIM_W                   3
`define KT_MV_HDR_BASE                     43:4
`define KT_MV_HDR_BASE_W                   40
`define KT_MV_HDR_WALKER                   0
`define KT_MV_HDR_WALKER_W                 1

// memory mover and adapter: MV_DIM, 64 bits
`define KT_MV_DIM_STRIDE                   51:20
`define KT_MV_DIM_STRIDE_W                 32
`define KT_MV_DIM_COUNT                    19:4
`define KT_MV_DIM_COUNT_W                  16
`define KT_MV_DIM_INDEX                    3:1
`define KT_MV_DIM_INDEX_W                  3
`define KT_MV_DIM_WALKER                   0
`define KT_MV_DIM_WALKER_W                 1

// memory mover and adapter: MV_AXIS, 64 bits
`define KT_MV_AXIS_STEP                    17:2
`define KT_MV_AXIS_STEP_W                  16
`define KT_MV_AXIS_AXIS                    1:0
`define KT_MV_AXIS_AXIS_W                  2

// memory mover and adapter: MV_WINDOW, 64 bits
`define KT_MV_WINDOW_EXTENT                33:18
`define KT_MV_WINDOW_EXTENT_W              16
`define KT_MV_WINDOW_BASE                  17:2
`define KT_MV_WINDOW_BASE_W                16
`define KT_MV_WINDOW_AXIS                  1
`define KT_MV_WINDOW_AXIS_W                1
`define KT_MV_WINDOW_WALKER                0
`define KT_MV_WINDOW_WALKER_W              1

// memory mover and adapter: MV_INDEX, 64 bits
`define KT_MV_INDEX_COUNT                  55:40
`define KT_MV_INDEX_COUNT_W                16
`define KT_MV_INDEX_ADDR                   39:0
`define KT_MV_INDEX_ADDR_W                 40

// memory mover and adapter: MV_SEED, 64 bits
`define KT_MV_SEED_SEED                    63:0
`define KT_MV_SEED_SEED_W                  64

// memory mover and adapter: MV_IMM, 64 bits
`define KT_MV_IMM_IMM                      31:0
`define KT_MV_IMM_IMM_W                    32

// memory mover and adapter: MV_GATHER, 64 bits
`define KT_MV_GATHER_WORDS                 47:32
`define KT_MV_GATHER_WORDS_W               16
`define KT_MV_GATHER_PITCH                 31:0
`define KT_MV_GATHER_PITCH_W               32

// memory mover and adapter: MV_STAT, 64 bits
`define KT_MV_STAT_MOVES                   63:40
`define KT_MV_STAT_MOVES_W                 24
`define KT_MV_STAT_READS                   39:24
`define KT_MV_STAT_READS_W                 16
`define KT_MV_STAT_WRITES                  23:8
`define KT_MV_STAT_WRITES_W                16
`define KT_MV_STAT_FAULT                   7:4
`define KT_MV_STAT_FAULT_W                 4
`define KT_MV_STAT_NONFINITE               2
`define KT_MV_STAT_NONFINITE_W             1
`define KT_MV_STAT_STICKY                  1
`define KT_MV_STAT_STICKY_W                1
`define KT_MV_STAT_BUSY                    0
`define KT_MV_STAT_BUSY_W                  1

// memory mover and adapter: AD_CAPS, 64 bits
`define KT_AD_CAPS_KIND                    63:48
`define KT_AD_CAPS_KIND_W                  16
`define KT_AD_CAPS_VERSION                 47:40
`define KT_AD_CAPS_VERSION_W               8
`define KT_AD_CAPS_L2_BITS                 39:32
`define KT_AD_CAPS_L2_BITS_W               8
`define KT_AD_CAPS_DEPTH                   31:0
`define KT_AD_CAPS_DEPTH_W                 32

// memory mover and adapter: AD_BASE, 64 bits
`define KT_AD_BASE_BASE                    39:0
`define KT_AD_BASE_BASE_W                  40

// memory mover and adapter: AD_ENABLE, 64 bits
`define KT_AD_ENABLE_L2_EN                 0
`define KT_AD_ENABLE_L2_EN_W               1

// memory mover and adapter: AD_COUNT, 64 bits
`define KT_AD_COUNT_LOCAL                  63:32
`define KT_AD_COUNT_LOCAL_W                32
`define KT_AD_COUNT_FWD                    31:0
`define KT_AD_COUNT_FWD_W                  32

// memory mover and adapter: AD_STATUS, 64 bits
`define KT_AD_STATUS_CTRL_LOST             3
`define KT_AD_STATUS_CTRL_LOST_W           1
`define KT_AD_STATUS_WR_PROTO              2
`define KT_AD_STATUS_WR_PROTO_W            1
`define KT_AD_STATUS_MULTICAST             1
`define KT_AD_STATUS_MULTICAST_W           1
`define KT_AD_STATUS_STRADDLE              0
`define KT_AD_STATUS_STRADDLE_W            1

// matmul cluster: MG_INST, 256 bits
`define KT_MG_INST_OP                      255:252
`define KT_MG_INST_OP_W                    4
`define KT_MG_INST_ADDR_LO                 251:218
`define KT_MG_INST_ADDR_LO_W               34
`define KT_MG_INST_N                       217:202
`define KT_MG_INST_N_W                     16
`define KT_MG_INST_SEL                     201
`define KT_MG_INST_SEL_W                   1
`define KT_MG_INST_ACC                     200
`define KT_MG_INST_ACC_W                   1
`define KT_MG_INST_GM                      199:192
`define KT_MG_INST_GM_W                    8
`define KT_MG_INST_GN                      191:184
`define KT_MG_INST_GN_W                    8
`define KT_MG_INST_NK                      183:176
`define KT_MG_INST_NK_W                    8
`define KT_MG_INST_ANCHOR                  175:168
`define KT_MG_INST_ANCHOR_W                8
`define KT_MG_INST_PEER2                   167:160
`define KT_MG_INST_PEER2_W                 8
`define KT_MG_INST_PEER1                   159:152
`define KT_MG_INST_PEER1_W                 8
`define KT_MG_INST_PEER0                   151:144
`define KT_MG_INST_PEER0_W                 8
`define KT_MG_INST_NPEER                   143:142
`define KT_MG_INST_NPEER_W                 2
`define KT_MG_INST_EOFF                    140:133
`define KT_MG_INST_EOFF_W                  8
`define KT_MG_INST_AOFF                    132:125
`define KT_MG_INST_AOFF_W                  8
`define KT_MG_INST_BOFF                    124:117
`define KT_MG_INST_BOFF_W                  8
`define KT_MG_INST_EMIT                    116
`define KT_MG_INST_EMIT_W                  1
`define KT_MG_INST_FUSE                    115
`define KT_MG_INST_FUSE_W                  1
`define KT_MG_INST_ABANK                   114
`define KT_MG_INST_ABANK_W                 1
`define KT_MG_INST_BBANK                   113
`define KT_MG_INST_BBANK_W                 1
`define KT_MG_INST_FBANK                   112
`define KT_MG_INST_FBANK_W                 1
`define KT_MG_INST_DNODE                   111
`define KT_MG_INST_DNODE_W                 1
`define KT_MG_INST_DST_X                   110:107
`define KT_MG_INST_DST_X_W                 4
`define KT_MG_INST_DST_Y                   106:103
`define KT_MG_INST_DST_Y_W                 4
`define KT_MG_INST_DBUF                    102:95
`define KT_MG_INST_DBUF_W                  8
`define KT_MG_INST_DFLAGS                  94:87
`define KT_MG_INST_DFLAGS_W                8
`define KT_MG_INST_DACK_Y                  86:83
`define KT_MG_INST_DACK_Y_W                4
`define KT_MG_INST_DACK_X                  82:79
`define KT_MG_INST_DACK_X_W                4
`define KT_MG_INST_DMESH                   78:77
`define KT_MG_INST_DMESH_W                 2
`define KT_MG_INST_DFIN                    76:69
`define KT_MG_INST_DFIN_W                  8
`define KT_MG_INST_ADDR_HI                 68:63
`define KT_MG_INST_ADDR_HI_W               6
`define KT_MG_INST_ROWMAJOR                62
`define KT_MG_INST_ROWMAJOR_W              1
`define KT_MG_INST_PITCH                   61:40
`define KT_MG_INST_PITCH_W                 22

// matmul cluster: MG_WORD, 256 bits
`define KT_MG_WORD_ELEMENTS                255:32
`define KT_MG_WORD_ELEMENTS_W              224
`define KT_MG_WORD_SCALE0                  31:24
`define KT_MG_WORD_SCALE0_W                8
`define KT_MG_WORD_SCALE1                  23:16
`define KT_MG_WORD_SCALE1_W                8
`define KT_MG_WORD_SCALE2                  15:8
`define KT_MG_WORD_SCALE2_W                8
`define KT_MG_WORD_SCALE3                  7:0
`define KT_MG_WORD_SCALE3_W                8

// matmul cluster: MG_L1, 928 bits
`define KT_MG_L1_ELEMENTS                  895:0
`define KT_MG_L1_ELEMENTS_W                896
`define KT_MG_L1_SCALE0                    903:896
`define KT_MG_L1_SCALE0_W                  8
`define KT_MG_L1_SCALE1                    911:904
`define KT_MG_L1_SCALE1_W                  8
`define KT_MG_L1_SCALE2                    919:912
`define KT_MG_L1_SCALE2_W                  8
`define KT_MG_L1_SCALE3                    927:920
`define KT_MG_L1_SCALE3_W                  8

// matmul cluster: MG_SCALE, 8 bits
`define KT_MG_SCALE_EXP                    7:3
`define KT_MG_SCALE_EXP_W                  5
`define KT_MG_SCALE_MAN                    2:0
`define KT_MG_SCALE_MAN_W                  3

// matmul cluster: MG_FAULT, 32 bits
`define KT_MG_FAULT_TAG                    31:16
`define KT_MG_FAULT_TAG_W                  16
`define KT_MG_FAULT_OP                     11:8
`define KT_MG_FAULT_OP_W                   4
`define KT_MG_FAULT_CODE                   7:0
`define KT_MG_FAULT_CODE_W                 8

// matmul cluster: MG_RESULT, 32 bits
`define KT_MG_RESULT_COUNT                 15:0
`define KT_MG_RESULT_COUNT_W               16

// matmul cluster: MG_DBG, 64 bits
`define KT_MG_DBG_COMPUTE                  63:32
`define KT_MG_DBG_COMPUTE_W                32
`define KT_MG_DBG_MEMORY                   31:0
`define KT_MG_DBG_MEMORY_W                 32

// vector core: VC_IMEM, 256 bits
`define KT_VC_IMEM_OP                      255:252
`define KT_VC_IMEM_OP_W                    4
`define KT_VC_IMEM_ADDR                    251:243
`define KT_VC_IMEM_ADDR_W                  9
`define KT_VC_IMEM_WORD                    31:0
`define KT_VC_IMEM_WORD_W                  32

// vector core: VC_DESC, 256 bits
`define KT_VC_DESC_OP                      255:252
`define KT_VC_DESC_OP_W                    4
`define KT_VC_DESC_AD                      251:249
`define KT_VC_DESC_AD_W                    3
`define KT_VC_DESC_FLD                     248:246
`define KT_VC_DESC_FLD_W                   3
`define KT_VC_DESC_VALUE                   245:212
`define KT_VC_DESC_VALUE_W                 34
`define KT_VC_DESC_VALUE_HI                68:63
`define KT_VC_DESC_VALUE_HI_W              6

// vector core: VC_RUN, 256 bits
`define KT_VC_RUN_OP                       255:252
`define KT_VC_RUN_OP_W                     4
`define KT_VC_RUN_PC                       251:243
`define KT_VC_RUN_PC_W                     9

// vector core: VC_ALU, 32 bits
`define KT_VC_ALU_OP                       31:27
`define KT_VC_ALU_OP_W                     5
`define KT_VC_ALU_SA                       26:25
`define KT_VC_ALU_SA_W                     2
`define KT_VC_ALU_SB                       24:23
`define KT_VC_ALU_SB_W                     2
`define KT_VC_ALU_SC                       22:21
`define KT_VC_ALU_SC_W                     2
`define KT_VC_ALU_VD                       20:17
`define KT_VC_ALU_VD_W                     4
`define KT_VC_ALU_VA                       16:13
`define KT_VC_ALU_VA_W                     4
`define KT_VC_ALU_VB                       12:9
`define KT_VC_ALU_VB_W                     4
`define KT_VC_ALU_VC                       8:5
`define KT_VC_ALU_VC_W                     4
`define KT_VC_ALU_PR                       4:3
`define KT_VC_ALU_PR_W                     2
`define KT_VC_ALU_PM                       2:1
`define KT_VC_ALU_PM_W                     2

// vector core: VC_LDST, 32 bits
`define KT_VC_LDST_OP                      31:27
`define KT_VC_LDST_OP_W                    5
`define KT_VC_LDST_DTYPE                   26:24
`define KT_VC_LDST_DTYPE_W                 3
`define KT_VC_LDST_AD                      23:21
`define KT_VC_LDST_AD_W                    3
`define KT_VC_LDST_VD                      20:17
`define KT_VC_LDST_VD_W                    4
`define KT_VC_LDST_OFF                     13:0
`define KT_VC_LDST_OFF_W                   14

// vector core: VC_CVT, 32 bits
`define KT_VC_CVT_OP                       31:27
`define KT_VC_CVT_OP_W                     5
`define KT_VC_CVT_DTYPE                    26:24
`define KT_VC_CVT_DTYPE_W                  3
`define KT_VC_CVT_VD                       20:17
`define KT_VC_CVT_VD_W                     4
`define KT_VC_CVT_VA                       16:13
`define KT_VC_CVT_VA_W                     4

// vector core: VC_RED, 32 bits
`define KT_VC_RED_OP                       31:27
`define KT_VC_RED_OP_W                     5
`define KT_VC_RED_SD                       20:17
`define KT_VC_RED_SD_W                     4
`define KT_VC_RED_VA                       16:13
`define KT_VC_RED_VA_W                     4
`define KT_VC_RED_VB                       12:9
`define KT_VC_RED_VB_W                     4
`define KT_VC_RED_KIND                     8:5
`define KT_VC_RED_KIND_W                   4
`define KT_VC_RED_PR                       4:3
`define KT_VC_RED_PR_W                     2
`define KT_VC_RED_PM                       2:1
`define KT_VC_RED_PM_W                     2

// vector core: VC_BCAST, 32 bits
`define KT_VC_BCAST_OP                     31:27
`define KT_VC_BCAST_OP_W                   5
`define KT_VC_BCAST_SA                     26:25
`define KT_VC_BCAST_SA_W                   2
`define KT_VC_BCAST_D                      20:17
`define KT_VC_BCAST_D_W                    4
`define KT_VC_BCAST_A                      16:13
`define KT_VC_BCAST_A_W                    4

// vector core: VC_SHUF, 32 bits
`define KT_VC_SHUF_OP                      31:27
`define KT_VC_SHUF_OP_W                    5
`define KT_VC_SHUF_VD                      20:17
`define KT_VC_SHUF_VD_W                    4
`define KT_VC_SHUF_VA                      16:13
`define KT_VC_SHUF_VA_W                    4
`define KT_VC_SHUF_SK                      12:9
`define KT_VC_SHUF_SK_W                    4
`define KT_VC_SHUF_PR                      4:3
`define KT_VC_SHUF_PR_W                    2
`define KT_VC_SHUF_PM                      2:1
`define KT_VC_SHUF_PM_W                    2

// vector core: VC_SETVL, 32 bits
`define KT_VC_SETVL_OP                     31:27
`define KT_VC_SETVL_OP_W                   5
`define KT_VC_SETVL_SA                     16:13
`define KT_VC_SETVL_SA_W                   4

// vector core: VC_SETMODE, 32 bits
`define KT_VC_SETMODE_OP                   31:27
`define KT_VC_SETMODE_OP_W                 5
`define KT_VC_SETMODE_MODE                 16:13
`define KT_VC_SETMODE_MODE_W               4

// vector core: VC_SETI, 32 bits
`define KT_VC_SETI_OP                      31:27
`define KT_VC_SETI_OP_W                    5
`define KT_VC_SETI_SEL                     26:25
`define KT_VC_SETI_SEL_W                   2
`define KT_VC_SETI_SD                      20:17
`define KT_VC_SETI_SD_W                    4

// vector core: VC_IMM, 32 bits
`define KT_VC_IMM_ZERO                     31:24
`define KT_VC_IMM_ZERO_W                   8
`define KT_VC_IMM_IMM                      23:0
`define KT_VC_IMM_IMM_W                    24

// vector core: VC_LOOP, 32 bits
`define KT_VC_LOOP_OP                      31:27
`define KT_VC_LOOP_OP_W                    5
`define KT_VC_LOOP_SA                      16:13
`define KT_VC_LOOP_SA_W                    4
`define KT_VC_LOOP_BODY                    12:9
`define KT_VC_LOOP_BODY_W                  4

// vector core: VC_NONE, 32 bits
`define KT_VC_NONE_OP                      31:27
`define KT_VC_NONE_OP_W                    5

// vector core: VC_FILL, 32 bits
`define KT_VC_FILL_OP                      31:27
`define KT_VC_FILL_OP_W                    5
`define KT_VC_FILL_AD                      23:21
`define KT_VC_FILL_AD_W                    3
`define KT_VC_FILL_L1                      13:0
`define KT_VC_FILL_L1_W                    14

// vector core: VC_DRAIN, 32 bits
`define KT_VC_DRAIN_OP                     31:27
`define KT_VC_DRAIN_OP_W                   5
`define KT_VC_DRAIN_MX                     26
`define KT_VC_DRAIN_MX_W                   1
`define KT_VC_DRAIN_SIGNAL                 25
`define KT_VC_DRAIN_SIGNAL_W               1
`define KT_VC_DRAIN_NODE                   24
`define KT_VC_DRAIN_NODE_W                 1
`define KT_VC_DRAIN_AD                     23:21
`define KT_VC_DRAIN_AD_W                   3
`define KT_VC_DRAIN_DST_X                  20:17
`define KT_VC_DRAIN_DST_X_W                4
`define KT_VC_DRAIN_DST_Y                  16:13
`define KT_VC_DRAIN_DST_Y_W                4
`define KT_VC_DRAIN_BUF                    12:9
`define KT_VC_DRAIN_BUF_W                  4
`define KT_VC_DRAIN_L1                     8:0
`define KT_VC_DRAIN_L1_W                   9

// vector core: VC_PEER_BASE, 40 bits
`define KT_VC_PEER_OFF                     15:0
`define KT_VC_PEER_OFF_W                   16
`define KT_VC_PEER_ACK_X                   19:16
`define KT_VC_PEER_ACK_X_W                 4
`define KT_VC_PEER_ACK_Y                   23:20
`define KT_VC_PEER_ACK_Y_W                 4
`define KT_VC_PEER_MESH                    25:24
`define KT_VC_PEER_MESH_W                  2
`define KT_VC_PEER_FIN_X                   29:26
`define KT_VC_PEER_FIN_X_W                 4
`define KT_VC_PEER_FIN_Y                   33:30
`define KT_VC_PEER_FIN_Y_W                 4

// vector core: VC_FAULT, 32 bits
`define KT_VC_FAULT_TAG                    31:16
`define KT_VC_FAULT_TAG_W                  16
`define KT_VC_FAULT_ENV_OP                 11:8
`define KT_VC_FAULT_ENV_OP_W               4
`define KT_VC_FAULT_CODE                   7:0
`define KT_VC_FAULT_CODE_W                 8

// vector core: VC_DBG, 64 bits
`define KT_VC_DBG_FAULT_VALID              63
`define KT_VC_DBG_FAULT_VALID_W            1
`define KT_VC_DBG_FAULT_PC                 56:48
`define KT_VC_DBG_FAULT_PC_W               9
`define KT_VC_DBG_FAULT_CODE               39:32
`define KT_VC_DBG_FAULT_CODE_W             8
`define KT_VC_DBG_CYCLES                   31:0
`define KT_VC_DBG_CYCLES_W                 32

`endif

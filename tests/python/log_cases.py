"""Logs of benchmarks in all variants that people have, generated: no line of them was measured."""

import json

from linkwright.formats.logs.checks import BYTES

FULL = ("size", "count", "type", "redop", "root")
SIZES = (1 << 10, 1 << 20, 1 << 30)


def rates(collective, ranks, size, time):
    """algbw and busbw as nccl-tests computes them."""
    algbw = size / time / 1e3
    whole = {"allreduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1, "sendrecv": 1}
    factor = whole.get(collective, (ranks - 1) / ranks)
    return algbw, algbw * factor


def time_of(size, slower=1.0):
    """Any law serves: 10 us and 100 GB/s."""
    return (10 + size / 1e5) * slower


def nccl(
    collective="allreduce", ranks=8, dtype="float", *, columns=FULL, wrong="0", title=True, devices=True, between=(),
    in_place=True, sizes=SIZES, checked_in_place=True, end=True, name="NVIDIA H100 80GB HBM3", nodes=1, times=None,
):  # fmt: skip
    """The text of nccl-tests; `times`, size -> us, take the place of sizes."""
    sizes = times or sizes
    program = {"allreduce": "all_reduce", "allgather": "all_gather"}.get(collective, collective)
    redop = "sum" if collective in ("allreduce", "reduce_scatter", "reduce") else "none"
    root = "0" if collective in ("broadcast", "reduce") else "-1"
    lines = [f"# Collective test starting: {program}_perf"] if title else []
    lines += ["# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20", "#"]
    if devices:
        lines += ["# Using devices"]
        lines += [
            f"#  Rank {at:2} Group  0 Pid {900 + at} on node{at * nodes // ranks} device {at:2} [0x1{at}] {name}"
            for at in range(ranks)
        ]
    group = " time algbw busbw #wrong" if wrong == "0" else " time algbw busbw error"
    lines += ["#      " + " ".join(columns) + group * (1 + in_place), "#        (B)    (elements)        (us)  (GB/s)"]
    for size in sizes:
        said = {"size": size, "count": size // BYTES[dtype], "type": dtype, "redop": redop, "root": root}
        row = "  ".join(f"{said[column]:>12}" for column in columns)
        for place in range(1 + in_place):
            time = times[size] if times else time_of(size, 1 + place / 10)
            algbw, busbw = rates(collective, ranks, size, time)
            row += f"  {time:8.2f} {algbw:7.2f} {busbw:7.2f} {wrong if not place or checked_in_place else 'N/A':>6}"
        lines += [row, *between]
    if end:
        lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.3456", "#"]
    return "".join(f"{line}\n" for line in lines)


def json_place(ranks, size, time):
    algbw, busbw = rates("allreduce", ranks, size, time)
    return {"time": time, "alg_bw": algbw, "bus_bw": busbw}


def nccl_json(collective="all_reduce", ranks=8):
    """The document of `-J`."""
    results = [
        {
            "size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "-1",
            "out_of_place": json_place(ranks, size, time_of(size)) | {"nwrong": 0.0},
            "in_place": json_place(ranks, size, time_of(size, 1.1)) | {"nwrong": None},
        }
        for size in SIZES
    ]  # fmt: skip
    devices = [{"rank": rank, "hostname": "node0", "device_info": "NVIDIA H100 80GB HBM3"} for rank in range(ranks)]
    document = {
        "version": 1, "args": [f"./{collective}_perf", "-g", "8"], "env": ["NCCL_ALGO=Ring", "HOME=/root"],
        "nccl_version": 22703, "config": {"ngpus": 8}, "devices": devices, "results": results,
    }  # fmt: skip
    return json.dumps(document)


def osu(title="Allreduce Latency", header="# Size       Avg Latency(us)", value=lambda size: f"{time_of(size):.2f}"):
    """The text of an OSU benchmark."""
    rows = "".join(f"{size:<20}{value(size)}\n" for size in SIZES)
    return f"\n# OSU MPI {title} Test v7.3\n# Datatype: MPI_FLOAT.\n{header}\n{rows}"


def imb():
    """The text of IMB-MPI1 Allreduce."""
    rows = "".join(
        f"{size:13}{1000:13}{time_of(size, 0.9):12.2f}{time_of(size, 1.1):12.2f}{time_of(size):12.2f}\n"
        for size in SIZES
    )
    head = "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    line = "#" + "-" * 40 + "\n"
    end = "\n# All processes entering MPI_Finalize\n"
    return f"{line}# Benchmarking Allreduce\n# #processes = 16\n{line}{head}{rows}{end}"


def nvbandwidth():
    """The text of nvbandwidth."""
    return (
        "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:18:00)\n"
        "Device 1: NVIDIA H100 80GB HBM3 (00000000:2a:00)\n\nRunning host_to_device_memcpy_ce.\n"
        "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n 0     55.31     55.29\n\n"
        "SUM host_to_device_memcpy_ce 110.60\n\nRunning device_to_device_memcpy_read_ce.\n"
        "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n 0       N/A    390.20\n"
        " 1    390.10       N/A\n\nSUM device_to_device_memcpy_read_ce 780.30\n"
    )


def inspector(indent=None):
    """Objects of NCCL's Inspector: two times of each size."""
    objects = [
        {
            "header": {"id": "0x1", "rank": 0, "n_ranks": 8, "nnodes": 1}, "metadata": {"hostname": "node0"},
            "coll_perf": {
                "coll": "AllReduce", "coll_msg_size_bytes": size, "coll_exec_time_us": round(time_of(size) + extra),
            },
        }
        for size in SIZES
        for extra in (0, 2)
    ]  # fmt: skip
    return "".join(json.dumps(item, indent=indent) + "\n" for item in objects)


# us of one reduce-scatter on each rank: rank 4 comes last.
LATE = (71_800, 60_200, 55_100, 50_000, 11_700, 40_900, 33_300, 65_000)


def inspector_rank(rank, times=LATE, count=5, coll="ReduceScatter", size=1 << 28):
    """What one rank of NCCL's Inspector writes in format 4.4: a header for all records that follow."""
    header = {"id": "0x7f", "rank": rank, "n_ranks": len(times), "nnodes": 1}
    lines = [{"header": header, "metadata": {"hostname": "n0"}, "dump_stats": {"coll_records": count}}]
    lines += [
        {
            "coll_perf": {
                "coll": coll, "coll_algo": "RING", "coll_proto": "SIMPLE", "coll_sn": number,
                "coll_msg_size_bytes": size, "coll_exec_time_us": times[rank] + number,
            }
        }
        for number in range(count)
    ]  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


def kineto_rank(rank, times=LATE, count=3, with_seq=True):
    """A trace of one rank of PyTorch's profiler."""
    args = {
        "Collective name": "allreduce", "In msg nelems": 1 << 20, "Out msg nelems": 1 << 20, "dtype": "Float",
        "Group size": len(times), "Process Group Name": "0", "Process Group Ranks": "[0, 1]",
    }  # fmt: skip
    events = [
        {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "dur": times[rank] + at,
         "args": args | ({"Seq": at} if with_seq else {})}
        for at in range(count)
    ]  # fmt: skip
    return json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events})


def kineto():
    """A trace of PyTorch's profiler: two kernels of each size."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::add", "dur": 3, "args": {}}]
    events += [
        {
            "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16", "dur": time_of(size) + extra,
            "args": {"Collective name": "allreduce", "In msg nelems": size // 2, "Out msg nelems": size // 2,
                     "dtype": "BFloat16", "Group size": 8},
        }
        for size in SIZES
        for extra in (0, 2)
    ]  # fmt: skip
    return json.dumps({"deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}], "traceEvents": events})


def prometheus(collective="AllReduce", busbw=400.0, size="1-2GB", gpus=2, nranks=8):
    """What NCCL's Inspector writes for the exporter of a node."""
    lines = ["# HELP nccl_bus_bandwidth_gbs NCCL bus bandwidth", "# TYPE nccl_bus_bandwidth_gbs gauge"]
    for gpu in range(gpus):
        labels = (
            f'version="v5.1",slurm_job_id="7",node="n0",gpu="GPU{gpu}",comm_name="DP Group 0",n_nodes="1",'
            f'nranks="{nranks}",collective="{collective}",message_size="{size}",algo_proto="RING_SIMPLE"'
        )
        lines += [f"nccl_bus_bandwidth_gbs{{{labels}}} {busbw + gpu}"]
        lines += [f"nccl_collective_exec_time_microseconds{{{labels}}} 4700.5"]
    return "".join(f"{line}\n" for line in lines)


PINGPONG = (
    "# MPI PingPong Test\n# Size [B]  Bandwidth [MB/s] | Time Mean [s] \u00b1 StdDev [s]  Samples\n"
    "         1              4.00 | 2.5000000e-07 \u00b1 1.0e-08    10000\n"
)
RING = "time for 1000 loops = 0.008 seconds (8 processes, 1 bytes)\n"


def perftest(unit="Gb", rows=((131072, 49.0),), device="mlx5_0", title="RDMA_Write BW Test"):
    """The text of ib_write_bw; rows are (size, 10^9 B/s)."""
    scale = {"Gb": 8, "MB": 1e9 / 2**20, "MiB": 1e9 / 2**20}[unit]
    dashes = "-" * 87 + "\n"
    head = f" #bytes     #iterations    BW peak[{unit}/sec]    BW average[{unit}/sec]   MsgRate[Mpps]\n"
    body = "".join(
        f" {size:<10} 5000 {rate * scale * 1.001:18.2f} {rate * scale:18.2f}\t\t {rate * 1e3 / size:.6f}\n"
        for size, rate in rows
    )
    return (
        f"{dashes}                    {title}\n Dual-port       : OFF\t\tDevice         : {device}\n"
        f" Number of qps   : 1\t\tTransport type : IB\n Link type       : IB\n{dashes}{head}{body}{dashes}"
    )


PERFTEST_LATENCY = """\
                    RDMA_Write Latency Test
 Dual-port       : OFF\t\tDevice         : mlx5_1
 Link type       : IB
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99%[usec]
 2       1000          1.10           2.05         1.11               1.12           0.00            1.19
"""


def pairs(slow=(), gpus=4, rate=390.0):
    """The text of p2pBandwidthLatencyTest; `slow` pairs have a tenth of the rate."""

    def row(one):
        found = (2500.0 if one == other else rate / 10 if (one, other) in slow else rate for other in range(gpus))
        return f"{one:6}" + "".join(f" {value:6.2f}" for value in found) + "\n"

    names = "".join(f"Device: {at}, NVIDIA H100 80GB HBM3, pciBusID: {at}b, pciDeviceID: 0\n" for at in range(gpus))
    columns = "   D\\D" + "".join(f" {at:6}" for at in range(gpus)) + "\n"
    body = "".join(map(row, range(gpus)))
    access = "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"
    late = "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1\n     0   2.5   1.6\n     1   1.6   2.5\n"
    return (
        f"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n{names}{access}"
        f"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n{columns}{body}"
        f"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n{columns}{body}{late}"
        "NOTE: The CUDA Samples are not meant for performance measurements.\n"
    )


TRANSFERBENCH = """\
TransferBench v1.60.00
Bytes Per Direction 67108864
Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
 SRC+EXE\\DST    CPU 00       GPU 00    GPU 01
  CPU 00  ->     24.37        27.32     27.30

  GPU 00  ->     27.11      1689.85     48.46
  GPU 01  ->     27.15        48.51   1672.91
                           CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU
Averages (During UniDir):     24.37     27.31     27.13     48.48

Bidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
     SRC\\DST    CPU 00       GPU 00    GPU 01
  GPU 00  ->     27.11           N/A     47.46
  GPU 00 <-      27.11           N/A     47.41
  GPU 00 <->     54.22           N/A     94.87
Transfer 00 | 48.460 GB/s | 1.385 ms | 67108864 bytes | G0 -> GPU00:004 -> G1
"""

ROCM_BANDWIDTH = """\
          RocmBandwidthTest Version: 2.6.0
          Device: 0,  AMD EPYC 9654
          Device: 1,  AMD Instinct MI300X,  GPU-XX,  c1:0.0
          Inter-Device Access

          D/D       0         1
          0         1         1
          1         1         1

          Unidirectional copy peak bandwidth GB/s

          D/D       0           1

          0         N/A         54.364

          1         54.147      2112.419
"""

DEEPEP = """\
[config] num_tokens=4096, hidden=7168, num_topk_groups=4, num_topk=8
[tuning] SMs 24, NVL chunk 20, RDMA chunk 32: 42.99 GB/s (RDMA), 140.33 GB/s (NVL)
[tuning] Best dispatch (FP8): SMs 24, NVL chunk 20, RDMA chunk 32: 43.10 GB/s (RDMA), 140.70 GB/s (NVL)
[tuning] Best dispatch (BF16): SMs 24, NVL chunk 24, RDMA chunk 16: 21 + 1201 us, 43.20 GB/s (RDMA), 141.10 GB/s (NVL)
[tuning] Best combine: SMs 24, NVL chunk 15: 339.63 GB/s (NVL), t: 775.61 us
[rank 0] Dispatch + combine bandwidth: 40.10 GB/s, avg_t=336.46 us, min_t=323.53 us, max_t=383.85 us
[rank 1] Dispatch bandwidth: 39.01 GB/s, avg_t=85.2 us | Combine bandwidth: 41.61 GB/s, avg_t=210.1 us
[rank 1] Dispatch send/recv time: 55.81 + 19.22 us | Combine send/recv time: 109.23 + 28.95 us
[rank 0] expanded dispatch: 61 GB/s (SO), 205 GB/s (SU), 310.1 us
"""


OF_LINKS = ("nvbandwidth", "perftest", "perftest latency", "pairs", "transferbench", "rocm", "deepep")

# What a library reports between the rows, with NCCL_DEBUG=INFO.
SAID = """n{node}:11:22 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB ib0:10.0.0.1<0>
n{node}:11:22 [0] NCCL INFO Using network IB
n{node}:11:22 [0] NCCL INFO NCCL_IB_HCA set to mlx5_0,mlx5_1
n{node}:11:22 [0] NCCL INFO NVLS multicast support is not available on dev 0
n{node}:11:22 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
n{node}:11:22 [0] NCCL INFO Channel 00/0 : 7[7] -> 15[7] [send] via NET/IB/1(3)
n{node}:11:22 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct
n{node}:11:22 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo 1 proto 2 time 123.4
n{node}:11:22 [0] NCCL INFO AllReduce: 8 Bytes -> Algo NVLSTREE proto LL channel{{Lo..Hi}}={{0..0}}
n{node}:11:22 [0] NCCL INFO 16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels
n{node}:11:22 [0] NCCL WARN Cannot create SHARP job"""


ZONE_HEAD = (
    "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 500, Max Compute Cores: 64\n"
    "PCIe slot, core_x, core_y, RISC processor type, timer_id, time[cycles since reset], data, run host ID, trace id, "
    "trace id counter, zone name, type, source line, source file, meta data\n"
)


def zone_markers(core, begun, cycles, *, run=1, name="RISCV0", risc="BRISC", stated=(), trace=",", line=28):
    """The two ends of a zone of a core `x,y`, and what it states."""
    front, at = f"0,{core},{risc}", f"{run},{trace}"
    rows = [
        f"{front},17,{begun},0,{at},{name},ZONE_START,{line},sender.cpp,",
        f"{front},18,{begun + cycles},0,{at},{name},ZONE_END,{line},sender.cpp,",
    ]
    rows += [f"{front},19,{begun + cycles + 9},{value},{at},{key},TS_DATA,60,sender.cpp," for key, value in stated]
    return "".join(f"{row}\n" for row in rows)


STATED = (
    ("Test id", 300), ("NoC Index", 1), ("Number of transactions", 16), ("Transaction size in bytes", 64),
    ("Number of subordinates", 4),
)  # fmt: skip


def zones():
    """A test of the vendor's on two cores, twice: 500 MHz, so that a cycle takes 2 ns."""
    return ZONE_HEAD + "".join(
        zone_markers("2,1", 1000 * run + 30, 300 + run, run=run, stated=STATED)
        + zone_markers("1,1", 1000 * run, 200, run=run, stated=STATED)
        + zone_markers("1,1", 1000 * run - 50, 400, run=run, name="BRISC-FW")
        for run in (1, 2)
    )


KINDS = {
    "nccl": nccl(), "reports": nccl(sizes=SIZES[1:2], ranks=2, between=[SAID.format(node=1)]),
    "old": nccl(columns=FULL[:4], wrong="2e-07", title=False, devices=False), "json": nccl_json(),
    "osu": osu(), "imb": imb(), "nvbandwidth": nvbandwidth(), "inspector": inspector(), "kineto": kineto(),
    "pingpong": PINGPONG, "ring": RING, "perftest": perftest(), "perftest latency": PERFTEST_LATENCY, "pairs": pairs(),
    "transferbench": TRANSFERBENCH, "rocm": ROCM_BANDWIDTH, "deepep": DEEPEP, "prometheus": prometheus(),
    "inspector-ranks": inspector_rank(0) + inspector_rank(4), "kineto-rank": kineto_rank(1), "zones": zones(),
}  # fmt: skip

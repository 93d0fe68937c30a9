"""Logs of benchmarks in all variants that people have, generated: no line of them was measured."""

import json

FULL = ("size", "count", "type", "redop", "root")
SIZES = (1 << 10, 1 << 20, 1 << 30)


def rates(collective, ranks, size, time):
    """algbw and busbw as nccl-tests computes them."""
    algbw = size / time / 1e3
    factor = {"allreduce": 2 * (ranks - 1) / ranks, "broadcast": 1, "reduce": 1}.get(collective, (ranks - 1) / ranks)
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
        said = {"size": size, "count": size // 4, "type": dtype, "redop": redop, "root": root}
        row = "  ".join(f"{said[column]:>12}" for column in columns)
        for place in range(1 + in_place):
            time = times[size] if times else time_of(size, 1 + place / 10)
            algbw, busbw = rates(collective, ranks, size, time)
            row += f"  {time:8.2f} {algbw:7.2f} {busbw:7.2f} {wrong if not place or checked_in_place else 'N/A':>6}"
        lines += [row, *between]
    if end:
        lines += ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.3456", "#"]
    return "".join(f"{line}\n" for line in lines)


def nccl_json(collective="all_reduce", ranks=8):
    """The document of `-J`."""
    results = [
        {
            "size": size, "count": size // 4, "type": "float", "redop": "sum", "root": "-1",
            "out_of_place": {"time": time_of(size), "alg_bw": 1.0, "bus_bw": 1.75, "nwrong": 0.0},
            "in_place": {"time": time_of(size, 1.1), "alg_bw": 1.0, "bus_bw": 1.75, "nwrong": None},
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
    rows = "".join(f"{size:13}{1000:13}{1.0:12.2f}{99.0:12.2f}{time_of(size):12.2f}\n" for size in SIZES)
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


PINGPONG = (
    "# MPI PingPong Test\n# Size [B]  Bandwidth [MB/s] | Time Mean [s] \u00b1 StdDev [s]  Samples\n"
    "         1              4.00 | 2.5000000e-07 \u00b1 1.0e-08    10000\n"
)
RING = "time for 1000 loops = 0.008 seconds (8 processes, 1 bytes)\n"

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

KINDS = {
    "nccl": nccl(), "reports": nccl(sizes=SIZES[1:2], ranks=2, between=[SAID.format(node=1)]),
    "old": nccl(columns=FULL[:4], wrong="2e-07", title=False, devices=False), "json": nccl_json(),
    "osu": osu(), "imb": imb(), "nvbandwidth": nvbandwidth(), "inspector": inspector(), "kineto": kineto(),
    "pingpong": PINGPONG, "ring": RING,
}  # fmt: skip

"""How fast logs are read, and in how much memory: three that are made, without a line that was measured.

    .venv/bin/python benches/logs.py [--megabytes 100] [--runs 3]

    tables    what nccl-tests prints for 8 GPUs, one run after another
    debug     what NCCL prints with NCCL_DEBUG=INFO on 512 ranks, and their collectives; one short table at the end
    mixed     both, with lines of a training program between them

Each log is read in processes of their own: the rate is the median of processor time, from opening the file to its
tables; the peak is that of the process, of which Python and the package take about 20 MB.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import quick

MEGA = 1e6
READ = r"""
import json, re, sys, time
from pathlib import Path
from linkwright.formats.logs import read_log
began = time.process_time()
log = read_log(sys.argv[1])
took = time.process_time() - began
rows = sum(len(table.rows) for table in log.tables)
peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024  # of this program alone
print(json.dumps([took, peak, len(log.tables), rows, log.skipped]))
"""
_HEADS = """#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""


def tables(random_: random.Random) -> Iterator[str]:
    """Runs of nccl-tests, from 8 B to 8 GiB."""
    while True:
        yield "# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20\n#\n"
        yield "# Using devices\n"
        for rank in range(8):
            yield f"#  Rank {rank:2} Group  0 Pid {9000 + rank:6} on      n01 device {rank:2} [0x1{rank}] NVIDIA H100\n"
        yield _HEADS
        for size in (1 << power for power in range(3, 34)):
            row = f"{size:12}  {size // 4:12}     float     sum      -1"
            for _ in range(2):
                time = (20 + size / 240e3) * random_.uniform(0.97, 1.03)
                rate = size / time / 1e3
                row += f"  {time:7.{2 if time < 1000 else 0}f} {rate:7.2f} {rate * 1.75:7.2f}      0"
            yield f"{row}\n"
        yield "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 123.456\n#\n\n"


def debug(random_: random.Random) -> Iterator[str]:
    """Lines of one rank after another."""
    for at in range(1 << 62):
        rank, gpu = at % 512, at % 8
        front = f"gpu-{rank // 8:02}:{9000 + gpu}:{9100 + gpu} [{gpu}] NCCL INFO "
        to = [(rank + 1) % 512, (rank + 8) % 512]
        comm = f"comm 0x5581{rank:06x} rank {rank} nranks 512 cudaDev {gpu} nvmlDev {gpu} busId {gpu}8000"
        said = [
            "NCCL_SOCKET_IFNAME set by environment to eth0", "Bootstrap : Using eth0:10.0.0.1<0>",
            "cudaDriverVersion 12040", "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_4:1/IB [RO]",
            "Using network IB", f"{comm} commId 0x9fae - Init START",
            f"Setting affinity for GPU {gpu} to ffffffff,00000000", f"NVLS multicast support is available on dev {gpu}",
            f"comm 0x5581{rank:06x} rank {rank} nRanks 512 nNodes 64 localRanks 8 localRank {gpu} MNNVL 0",
            *(f"Channel {channel:02}/16 : " + " ".join(map(str, range(512))) for channel in range(0 if rank else 16)),
            "Trees " + " ".join(f"[{channel}] {to[0]}/{to[1]}/-1->{rank}->-1" for channel in range(16)),
            "P2P Chunksize set to 131072",
            *(f"Channel {at:02}/0 : {rank}[{gpu}] -> {to[0]}[{to[0] % 8}] via P2P/CUMEM/read" for at in range(16)),
            *(f"Channel {at:02}/0 : {rank}[{gpu}] -> {to[1]}[{gpu}] [send] via NET/IB/{at % 4}" for at in range(8)),
            *(f"Channel {at:02}/0 : {to[1]}[{gpu}] -> {rank}[{gpu}] [receive] via NET/IB/{at % 4}" for at in range(8)),
            "Connected all rings", "Connected all trees",
            "16 coll channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer",
            f"{comm} commId 0x9fae - Init COMPLETE",
        ]  # fmt: skip
        said += [
            f"AllReduce: opCount {operation:x} sendbuff 0x7f{random_.getrandbits(36):x} recvbuff "
            f"0x7f{random_.getrandbits(36):x} count {random_.randrange(1 << 28)} datatype 7 op 0 root 0 "
            f"comm 0x5581{rank:06x} [nranks=512] stream 0x55{random_.getrandbits(28):x}"
            for operation in range(20)
        ]
        yield from (f"{front}{line}\n" for line in said)


def mixed(random_: random.Random) -> Iterator[str]:
    """300 lines of the library, 50 of a program and a run of nccl-tests, again and again."""
    sources = debug(random_), tables(random_)
    for step in range(1 << 62):
        yield from (next(sources[0]) for _ in range(300))
        for at in range(50):
            stamp = f"[2026-11-30 12:{step % 60:02}:{at:02}]"
            yield f"{stamp} INFO step {step * 50 + at} loss {random_.random():.4f} rate {random_.randrange(10**6)}\n"
        yield from (next(sources[1]) for _ in range(47))


def write(path: Path, lines: Iterator[str], size: float) -> None:
    """Write lines until a file has this many bytes."""
    with path.open("w", encoding="ascii") as file:
        while (left := size - file.tell()) > 0:
            file.write("".join(line for _, line in zip(range(1 + int(left / 200)), lines, strict=False)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=10, help="of each log")
    parser.add_argument("--runs", type=int, default=3, help="of which the median counts")
    asked = quick.arguments(parser, megabytes=0.1, runs=1)
    print(f"{'log':8} {'MB':>6} {'s':>7} {'MB/s':>6} {'peak MB':>8} {'tables':>7} {'rows':>8} {'others':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for make in (tables, debug, mixed):
            file = Path(folder) / f"{make.__name__}.log"
            random_ = random.Random(make.__name__)
            ends = chain.from_iterable(tables(random_) for _ in range(make is debug))
            write(file, chain(make(random_)), asked.megabytes * MEGA)
            with file.open("a", encoding="ascii") as end:
                end.writelines(line for _, line in zip(range(47), ends, strict=False))
            read = [sys.executable, "-c", READ, str(file)]
            ran = [subprocess.run(read, check=True, stdout=subprocess.PIPE).stdout for _ in range(asked.runs)]
            took, peak, *counts = map(statistics.median, zip(*map(json.loads, ran), strict=True))
            size = file.stat().st_size / MEGA
            print(f"{make.__name__:8} {size:6.1f} {took:7.2f} {size / took:6.1f} {peak:8.0f}", end=" ")
            print("{:7.0f} {:8.0f} {:8.0f}".format(*counts), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

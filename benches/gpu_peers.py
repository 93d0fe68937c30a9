"""What PyTorch and cooperative groups reach on a GPU, for comparison with what linkwright measures there.

    python benches/gpu_peers.py

One JSON line each: name, value (median), unit. Needs PyTorch for CUDA; nvcc for the reduction by cooperative groups.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import quick

quick.only("nvidia-smi", "nvcc", "torch")
import torch  # noqa: E402  needed only where there is a GPU

HERE = Path(__file__).parent
REPEATS = 21


def median_s(work: Callable[[], object], inner: int = 1) -> float:
    """Seconds of one `work`, the median over batches of `inner` between two events of the GPU."""
    for _ in range(3):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(inner):
            work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3 / inner)
    return statistics.median(times)


def tell(name: str, value: float, unit: str) -> None:
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit}), flush=True)


def memory() -> None:
    """Copies and reads of HBM; both counts of bytes are those that the program moves."""
    a = torch.randint(-(1 << 31), (1 << 31) - 1, (1 << 29,), dtype=torch.int32, device="cuda")  # 2 GiB
    b = torch.empty_like(a)
    tell("copy of 2 GiB in HBM, read and written", 2 * a.nbytes / median_s(lambda: b.copy_(a), 5) / 1e9, "GB/s")
    floats = a.view(torch.float32)
    tell("sum of 2 GiB in HBM", a.nbytes / median_s(floats.sum, 5) / 1e9, "GB/s")


def link() -> None:
    """Copies of pinned memory, back to back."""
    host = torch.empty(1 << 28, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    to, back = (lambda: there.copy_(host, non_blocking=True)), (lambda: host.copy_(there, non_blocking=True))
    tell("256 MiB pinned to the GPU", host.nbytes / median_s(to, 8) / 1e9, "GB/s")
    tell("256 MiB back to pinned memory", host.nbytes / median_s(back, 8) / 1e9, "GB/s")


def products() -> None:
    """Products of random matrices."""
    for n in (4096, 8192):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        tell(f"bf16 product n={n}", 2 * n**3 / median_s(lambda a=a, b=b: torch.matmul(a, b), 10) / 1e12, "TFLOP/s")


def reductions(nbytes: int) -> None:
    """Allreduce of a vector for each SM, by two kernels of PyTorch in a graph, and by one of cooperative groups."""
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    vectors = torch.zeros(sms, nbytes // 2, device="cuda", dtype=torch.bfloat16)

    def reduced() -> None:
        vectors.copy_(vectors.sum(0, keepdim=True).expand_as(vectors))

    reduced()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(100):
            reduced()
    tell(f"allreduce by PyTorch in a graph, {sms} vectors, {nbytes} B bf16", median_s(graph.replay) / 100 * 1e6, "us")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "peer"
        major, minor = torch.cuda.get_device_capability()
        target = f"-gencode=arch=compute_{major}{minor},code=sm_{major}{minor}"
        build = ["nvcc", "-O3", "-std=c++17", target, "-o", program, HERE / "grid_reduce_peer.cu"]
        subprocess.run(build, check=True)
        print(subprocess.run([program, str(nbytes)], check=True, capture_output=True, text=True).stdout, end="")


def main() -> None:
    failed = 0
    for part in (memory, link, products, lambda: reductions(4096)):
        try:
            part()
        except Exception as error:  # the next part may work
            failed += 1
            print(f"{type(error).__name__}: {error}", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()

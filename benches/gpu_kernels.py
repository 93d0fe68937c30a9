"""Compiles every kernel for the GPU at hand, side by side; or runs a few of them, alone or under a sanitizer.

python benches/gpu_kernels.py                 compile all; they stay in the cache
python benches/gpu_kernels.py --run           a few schedules in this process, each checked
python benches/gpu_kernels.py --memcheck      the same under compute-sanitizer: no wrong address
python benches/gpu_kernels.py --racecheck     the same: no race in shared memory but the flags themselves
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import quick

from linkwright.ask.question import Collective
from linkwright.executors.cuda import clocks, compiler, measure
from linkwright.executors.cuda.device import device
from linkwright.executors.cuda.job import DTYPES, OPS
from linkwright.executors.process import Sampling

HOW = Sampling(samples=4, warmup_at_most=1, budget_s=2.0, settle_within=None, seed=1)


def compile_all() -> int:
    """Compile all kernels in processes of their own, which leave them in the cache; the number that failed."""
    architecture = device().architecture
    program = (
        "import sys; from linkwright.executors.cuda import compiler as c; c.code(*sys.argv[1:3], tuple(sys.argv[3:]))"
    )
    kinds = [(f"KNOWN_DTYPE={dtype}", f"KNOWN_OP={op}") for dtype in range(len(DTYPES)) for op in range(len(OPS))]
    wanted = [(source,) for source in compiler.sources()]
    wanted += [(source, *kind) for source in ("schedule_walk", "grid_reduce") for kind in kinds]
    wanted += [("schedule_walk", "WALK_IN_CLUSTER", *kind) for kind in kinds]
    began = time.monotonic()

    def compiled(names: tuple[str, ...]) -> str:
        command = [sys.executable, "-c", program, names[0], architecture, *names[1:]]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return " ".join(names) + ": " + (done.stderr.strip() or "killed").splitlines()[-1] if done.returncode else ""

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failed = [said for said in pool.map(compiled, wanted) if said]
    print(*failed, sep="\n")
    print(f"{len(wanted)} kernels for {architecture} by NVRTC {compiler.version()} in {time.monotonic() - began:.1f} s")
    return len(failed)


def run_some() -> int:
    """Run schedules on a few SMs, each checked; the number that failed."""
    gpu = device()
    found = clocks.measure(gpu, span_ns=2_000_000)
    whole = measure.Gpu(gpu, tuple(sorted(found.sms)), found.sms, found, clocks.Throttling(gpu.bus_id))

    def allreduce(algorithm: str, ranks: int, nbytes: int, **more: object) -> Collective:
        return Collective("sanitized", algorithm, ranks, nbytes, "bf16", op="sum", collective="allreduce", **more)

    asked = [
        allreduce("ring", 4, 4096),
        allreduce("all_pairs", 8, 4096),
        allreduce("recursive_doubling_latency", 8, 1000),
        allreduce("cuda-native", 8, 4096),
        allreduce("swing_bandwidth", 4, 4096, path="cluster"),
    ]
    failed = 0
    for question in asked:
        try:
            answer = measure.run(whole, question, HOW)
            print(f"{question.key}: {len(answer.values_ns)} samples")
        except Exception as error:  # the next one may work
            failed += 1
            print(f"{question.key}: {type(error).__name__}: {error}")
    return failed


# Flags of a cluster lie in shared memory: one block stores with release what another awaits with acquire. Racecheck
# knows barriers but not this order, so it reports the pair; the memory model of PTX does not call it a race.
_FLAGS = re.compile(r"Write access at (store|add)_release_cluster\(|Read access at load_acquire_cluster\(")


def sanitized(tool: str) -> int:
    """Run under a tool of compute-sanitizer; the number of failures, and of findings other than flags of a cluster."""
    command = ["compute-sanitizer", "--tool", tool, sys.executable, __file__, "--run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="")
    accesses = [line for line in done.stdout.splitlines() if " access at " in line]
    flags = sum(bool(_FLAGS.search(line)) for line in accesses)
    print(f"{tool}: {len(accesses)} accesses reported, {flags} of them flags of a cluster")
    # Without a code of its own for findings, the sanitizer ends as what it ran.
    failed = bool(done.returncode) or "sanitized/" not in done.stdout
    clean = "ERROR SUMMARY: 0 errors" in done.stdout if tool == "memcheck" else "RACECHECK SUMMARY" in done.stdout
    return len(accesses) - flags + failed + (not clean)


def main(how: str = "") -> int:
    """The number of failures."""
    if how in ("--memcheck", "--racecheck"):
        return sanitized(how.removeprefix("--"))
    if how == "--quick" and not quick.only("nvidia-smi"):
        return 1
    return run_some() if how in ("--run", "--quick") else compile_all()


if __name__ == "__main__":
    sys.exit(bool(main(*sys.argv[1:2])))

"""Chapters 1 and 3: the memory of a tile, by the probes `memory_latency` and `memory_bandwidth` of the machine.

time of a pass = start + block / (width of a load x f / 6), each of six threads a sixth of the slots
rate           = threads x block / time
"""

from __future__ import annotations

from collections.abc import Iterable

from linkwright_evidence.ipu.arithmetic import Device, device
from linkwright_evidence.ipu.tables import BANDWIDTH, Table, Waived
from linkwright_evidence.outcome import Claim

HARDWARE_THREADS = 6
# The report does not print the block of table 3.1: the largest that its figure 3.1 shows.
BLOCK = 200 * 1024
WIDEST = "128"
# Rows whose language level offers a wide type, which the compiler loads by 64 bits.
LIMIT_ROW = "Theoretical limit"


def rate(ipu: Device, width: str, block: int = BLOCK, threads: int = HARDWARE_THREADS, tiles: int | None = None):
    """TB/s read by so many threads on each of so many tiles."""
    axes = {"block": block, "width": width, "threads": threads * (tiles or ipu.threads)}
    found = ipu.ask("memory_bandwidth", axes)
    return found["counted_bytes"] / found["time_ps"]


def limit(ipu: Device) -> float:
    """TB/s of one widest load in every slot."""
    per_cycle = float(ipu.numbers["probe.memory.level[0].read"]["value"])
    return per_cycle * float(ipu.numbers["machine.clock"]["value"]) * ipu.threads / 1e3


def bandwidth(bench, row: dict[str, str]) -> float:
    """Table 3.1."""
    ipu = device("IPU")
    at_limit = row["approach"] == LIMIT_ROW
    found = limit(ipu) if at_limit else rate(ipu, row["load_width_bits"])
    return 100 * found / limit(ipu) if row["metric"] == "fraction_of_theoretical" else found


def comparison(bench, row: dict[str, str]) -> float | Waived:
    """Table 1.1."""
    if row["architecture"] != "Graphcore IPU":
        return Waived("stands beside the IPU for comparison; no model of it is meant")
    ipu = device("IPU")
    clock_ghz = float(ipu.numbers["machine.clock"]["value"])
    latency_ns = ipu.ask("memory_latency", {"working_set": "64K"})["time_ps"] / 1e3
    return {
        "capacity_per_chip": ipu.threads * float(ipu.numbers["probe.memory.level[0].size"]["value"]) / 1024,
        "latency": latency_ns,
        "latency_cycles": latency_ns * clock_ghz,
        "clock_frequency": clock_ghz,
    }[row["metric"]]


def figure_3_1() -> Iterable[dict]:
    """Aggregate read rate by block size, width of a load and threads, beside the limit."""
    ipu = device("IPU")
    sizes = [4 * 2**power for power in range(16)] + [BLOCK]
    for width in ("32", "64", "128"):
        for threads in range(1, HARDWARE_THREADS + 1):
            for block in sizes:
                found = rate(ipu, width, block, threads)
                yield {"width_bits": int(width), "threads": threads, "block_bytes": block, "read_tb_per_s": found} | {
                    "limit_tb_per_s": limit(ipu)
                }


TABLES = [
    Table(
        "1.1",
        "t1_01_memory_comparison.csv",
        BANDWIDTH,
        comparison,
        errata=dict.fromkeys(range(2, 6), "another device, for comparison"),
    ),
    Table("3.1", "t3_01_local_memory_read_bandwidth.csv", BANDWIDTH, bandwidth, apart={1: "limit"}),
]


def claims() -> list[Claim]:
    """Claim 0."""
    ipu = device("IPU")
    wide, middle, narrow = (rate(ipu, width) for width in ("128", "64", "32"))
    latencies = {
        ipu.ask("memory_latency", {"working_set": size, "order": order, "neighbours": others})["time_ps"]
        for size in (64, 4096, 200 * 1024)
        for order in ("random", "stride_64")
        for others in (0, ipu.threads - 1)
    }
    alone, together = rate(ipu, WIDEST, tiles=1), wide / ipu.threads
    share = wide / limit(ipu)
    holds = (
        abs(wide / narrow - 4) < 0.04
        and abs(middle / narrow - 2) < 0.04
        and abs(share - 0.986) < 0.02
        and len(latencies) == 1
        and abs(together / alone - 1) < 1e-6
    )
    why = (
        f"{wide / narrow:.2f} : {middle / narrow:.2f} : 1; best {100 * share:.1f} % of the limit (98.6 printed); "
        f"{len(latencies)} latency over sizes, orders and neighbours; a tile among all reads "
        f"{together / alone:.4f} of one alone; float4 is loaded by 64 bits as float2 is"
    )
    statement = (
        "local memory: rates 4 : 2 : 1 for 128, 64, 32-bit loads, best 98.6 % of the limit, constant latency, "
        "no interference between tiles"
    )
    return [Claim("I-00", statement, holds, why)]

"""Experiments that are no schedule: DMA programs of the chip's elements.

Where the latency of one DMA goes (table 1); lists, queues, fences and barriers; mailboxes; an OR-signal barrier; a
contended counter; what addresses and sizes off the line cost.
"""

from __future__ import annotations

from linkwright import _native
from linkwright.base.errors import LinkwrightError
from linkwright_evidence.cell.chip import SPES
from linkwright_evidence.cell.programs import run


def spe(number: int) -> str:
    """Name of an SPE."""
    return f"SPE{number}"


def finish_ns(found: dict, program: int = 0) -> float:
    """When the last line of a program was over."""
    return float(found["lines_ps"][program][-1]) / 1e3


def components(machine) -> dict[str, float]:
    """Table 1: nanoseconds of each part of one list DMA between SPEs, from its trace."""
    found = run(machine, [("SPE0", ["list put SPE1 128 x 1", "wait"])])
    plain = run(machine, [("SPE0", ["put SPE1 128", "wait"])])
    times = {
        name: float(found[f"{name}_ps"][0]) / 1e3 for name in ("issued", "queued", "requested", "data", "complete")
    }
    through = (float(plain["requested_ps"][0]) - float(plain["queued_ps"][0])) / 1e3
    return {
        "dma_issue": times["queued"] - times["issued"],
        "dma_to_eib": through,
        "list_element_fetch": times["requested"] - times["queued"] - through,
        "coherence_protocol": times["data"] - times["requested"],
        "data_transfer_inter_spe_put": times["complete"] - times["data"],
        "total": times["complete"] - times["issued"],
    }


def mailboxes(machine) -> dict[str, float]:
    """One word from the PPE, and one there and back between SPEs, in nanoseconds."""
    one_way = run(machine, [("PPE", ["mail SPE1"]), ("SPE1", ["read"])])
    round_trip = run(machine, [("SPE0", ["mail SPE1", "read"]), ("SPE1", ["read", "mail SPE0"])])
    return {"one way": finish_ns(one_way, 1), "round trip": finish_ns(round_trip, 0)}


def signal_barrier(machine, count: int) -> float:
    """Nanoseconds until all of `count` SPEs have passed: everyone sets a bit at SPE 0, which answers everyone."""
    everyone = (1 << count) - 2
    root = [f"await {everyone}", *(f"signal {spe(i)} 1" for i in range(1, count))]
    others = [(spe(i), [f"signal SPE0 {1 << i}", "await 1"]) for i in range(1, count)]
    found = run(machine, [("SPE0", root), *others])
    return max(finish_ns(found, i) for i in range(count))


def counter(machine, count: int, increments: int = 50) -> dict[str, float]:
    """A shared counter that `count` SPEs increment: time of one increment, and retries per success."""
    found = run(machine, [(spe(i), ["add"] * increments) for i in range(count)])
    total = count * increments
    end = max(finish_ns(found, i) for i in range(count))
    return {"increment_ns": end / total, "retries_per_increment": float(found["retries"].sum()) / total}


def synchronisation(machine) -> list[dict]:
    """Barrier over 2 to 8 SPEs and counter over 1 to 8."""
    rows = [
        {"primitive": "signal barrier", "spes": n, "time_ns": signal_barrier(machine, n)} for n in range(2, SPES + 1)
    ]
    for n in range(1, SPES + 1):
        found = counter(machine, n)
        figures = {"time_ns": found["increment_ns"], "retries_per_increment": found["retries_per_increment"]}
        rows.append({"primitive": "shared counter, per increment", "spes": n, **figures})
    return rows


def lists(machine) -> list[dict]:
    """64 pieces: as one list, as single DMAs of the SPU, and as DMAs in the proxy queue by the PPE."""
    rows = []
    for size in (16, 64, 128, 256, 512, 1024, 4096):
        ways = {
            "one list": [("SPE0", [f"list put SPE1 {size} x 64", "wait"])],
            "single DMAs": [("SPE0", [f"put SPE1 {size}"] * 64 + ["wait"])],
            "proxy queue": [("PPE", [f"on SPE0 put SPE1 {size}"] * 64 + ["wait"])],
        }
        for way, programs in ways.items():
            time = finish_ns(run(machine, programs))
            rows.append({"way": way, "size_bytes": size, "time_ns": time, "rate_gb_per_s": 64 * size / time})
    return rows


def ordering(machine) -> list[dict]:
    """Eight DMAs of one tag group in a row: free, each with a fence, each with a barrier."""
    rows = []
    for size in (16, 128, 1024, 16384):
        for order in ("", "fence", "barrier"):
            found = run(machine, [("SPE0", [f"put SPE1 {size} tag=1 {order}".strip()] * 8 + ["wait"])])
            rows.append({"order": order or "none", "size_bytes": size, "time_ns": finish_ns(found)})
    return rows


# What stands in a stream of 64 DMAs: name -> (size, addresses).
ADDRESSES = {
    "whole lines": (4096, ""),
    "both addresses half a line off": (4096, "local=64 at=64"),
    "only the target half a line off": (4096, "at=64"),
    "32 lines and 16 bytes": (4112, ""),
    "pieces of 16 bytes": (16, ""),
    "pieces of 112 bytes": (112, ""),
    "pieces of 128 bytes": (128, ""),
}


def alignment(machine) -> list[dict]:
    """Rates of streams off the line."""
    rows = []
    for name, (size, addresses) in ADDRESSES.items():
        found = run(machine, [("SPE0", [f"put SPE1 {size} {addresses}".strip()] * 64 + ["wait"])])
        time = finish_ns(found)
        rows.append({"addresses": name, "size_bytes": size, "rate_gb_per_s": 64 * size / time})
    return rows


def refusals(machine) -> list[dict]:
    """What the hardware refuses, and a circle of full mailboxes, each with the message."""
    attempts = {
        "24 bytes": [("SPE0", ["put SPE1 24"])],
        "beyond 16 KB": [("SPE0", ["put SPE1 32768"])],
        "unaligned": [("SPE0", ["put SPE1 8 at=4"])],
        "list too long": [("SPE0", ["list get MIC 128 x 4096"])],
        "full mailboxes in a circle": [("SPE0", ["mail SPE1"] * 5), ("SPE1", ["mail SPE0"] * 5)],
    }
    rows = []
    for name, programs in attempts.items():
        try:
            run(machine, programs)
            answer = "accepted"
        except LinkwrightError as error:
            answer = str(error)
        rows.append({"attempt": name, "answer": answer})
    return rows


def full_queue(machine) -> tuple[float, float]:
    """(issue of the 16th, of the 17th DMA in a row) in nanoseconds: the queue has 16 entries."""
    found = run(machine, [("SPE0", ["put SPE1 16384"] * 20)])
    queued = sorted(float(t) / 1e3 for t in found["queued_ps"])
    return queued[15] - queued[14], queued[16] - queued[15]


def quiet(machine, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """(segments, picoseconds) of a put of one line between endpoints, alone."""
    return _native.quiet(machine, pairs, 128)

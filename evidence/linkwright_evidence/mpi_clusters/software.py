"""What code and memory of a node add to messages: threads, copies, pages, ports and starts that overlap."""

from __future__ import annotations

import math

from . import trees
from .condition import Condition
from .tags import Way

Numbers = dict[str, float]
# Algorithms of whole vectors.
WHOLE = {"swing_latency", "recursive_doubling_latency"}
# Algorithms whose messages are one block, and those whose messages go one way.
ONE_BLOCK = {"ring", "neighbor_exchange", "pairwise", "scatter/binomial"}
TREES = {"binomial", "binary_tree", "bine", "linear", "tree/binomial", "tree/bine", "tree/knomial"}


def path(at: Condition, way: Way, numbers: Numbers) -> str:
    """What software carries the messages."""
    if way.puts:
        return "both" if way.twice else "whole" if way.algorithm in WHOLE else "blocks"
    cached = numbers.get("facts.cached", math.inf) * 2**20
    return "mpi" if at.size_bytes <= cached else "memory"


def parallel(at: Condition, way: Way) -> int:
    """How many parts of the vector move at once: ports, but an axis of two nodes has one link."""
    if not way.divided:
        return 1
    links = sum(2 if side > 2 else 1 for side in at.sides) or 1
    return min(way.ports, links)


def changes(at: Condition, way: Way, path: str, numbers: Numbers) -> dict[str, str]:
    """Key -> another value for this way: one thread serves all ports, and ranks of a node share its memory."""
    found = _shared(at, path, numbers)
    parts = parallel(at, way)
    if way.ports > 1:
        found[f"path.{path}.receive"] = f"{numbers[f'path.{path}.receive'] * way.ports:.6g}"
        for rate in ("combine_rate", "copy_rate"):
            found[f"path.{path}.{rate}"] = f"{numbers[f'path.{path}.{rate}'] / parts:.6g}"
    if way.blocks:
        found[f"path.{path}.per_run"] = f"{numbers['facts.per_block'] * way.ports:.6g}"
    if at.machine == "leonardo":
        found |= _leonardo(at, way, path, numbers)
    for key, factor in _starts(at, way, path, numbers).items():
        found[key] = f"{numbers[key] * factor:.6g}"
    if way.segment:
        key = "fabric.transport.utofu.rate"
        each_ns = way.segment / numbers[key] + numbers["facts.per_segment"]  # GB/s are bytes per ns
        found[key] = f"{way.segment / each_ns:.6g}"
    return found


def _shared(at: Condition, path: str, numbers: Numbers) -> dict[str, str]:
    """Rates of combining (two inputs and a result) and copying, if the ranks of a node use its memory at once."""
    if at.tasks_per_node == 1:
        return {}
    each = numbers["facts.memory"] / at.tasks_per_node
    keys = {f"path.{path}.combine_rate": each / 3, f"path.{path}.copy_rate": each / 2}
    return {key: f"{min(numbers[key], most):.6g}" for key, most in keys.items()}


def _leonardo(at: Condition, way: Way, path: str, numbers: Numbers) -> dict[str, str]:
    """What a message and a node's ports carry."""
    rate, one = _rate(at, way, path, numbers), numbers["fabric.transport.net_mpi.rate"]
    found = {"fabric.transport.net_mpi.rate": f"{rate:.6g}"}
    if at.tasks_per_node > 1 and rate == one:
        found["fabric.links.port.bandwidth"] = f"{numbers['fabric.links.port.bandwidth'] / 2:.6g}"
    return found


def _starts(at: Condition, way: Way, path: str, numbers: Numbers) -> dict[str, float]:
    """Factors of the times before messages move, less than 1 where a rank has several messages under way at once."""
    transport = "mpi" if at.machine == "fugaku" else "net_mpi"
    keys = [f"fabric.transport.{transport}.{start}" for start in ("start", "long_start")]
    if way.algorithm.startswith("tree/"):
        return dict.fromkeys(keys, trees.overlap(way.algorithm.removeprefix("tree/"), at.ranks))
    if way.interfaces > 1:
        return dict.fromkeys([*keys, f"path.{path}.receive"], 1 / way.interfaces)
    if transport != "mpi" and way.algorithm == "linear" and at.collective in ("alltoall", "gather", "scatter"):
        return {key: numbers[f"path.{path}.receive"] / numbers[key] for key in keys}
    return {}


def _rate(at: Condition, way: Way, path: str, numbers: Numbers) -> float:
    """GB/s of messages on Leonardo: copied at both ends if short, else from one port or from both.

    Both ports carry messages of trees, which go one way, blocks that are sent on as they came, and several messages
    under way at once. Long vectors that partners exchange get the rate of one.
    """
    one_port = numbers["fabric.transport.net_mpi.rate"]
    longest = at.size_bytes / at.ranks if way.algorithm in ONE_BLOCK else at.size_bytes
    if longest < numbers["fabric.transport.net_mpi.long"] * 2**10 and not way.blocks:
        return 1 / (1 / one_port + 2 / numbers[f"path.{path}.copy_rate"])
    passed_on = way.algorithm in ONE_BLOCK and longest >= numbers["facts.striped_from"] * 2**20
    one_way = at.collective in ("broadcast", "reduce") and way.algorithm in TREES
    one_way |= at.collective in ("gather", "scatter") and way.algorithm == "linear"
    return numbers["facts.both_ports"] if passed_on or one_way or way.blocks else one_port


def memory_us(at: Condition, way: Way, path: str, numbers: Numbers) -> float:
    """Copies of the vector besides those of the schedule, and pages that are new to the kernel."""
    time = way.copies * at.size_bytes / numbers[f"path.{path}.copy_rate"] / 1e3
    if "facts.fresh_from" in numbers and at.size_bytes >= numbers["facts.fresh_from"] * 2**20 and not way.puts:
        time += way.fresh * at.size_bytes / numbers["facts.fresh_rate"] / 1e3
    if "facts.threads" in numbers and way.puts:
        time += forks(at, way, numbers["facts.threaded"] * 2**10) * numbers["facts.threads"]
    return time


def forks(at: Condition, way: Way, least: float) -> int:
    """In how many steps the authors' library combines by all threads: those of blocks of at least so many bytes."""
    if at.collective not in ("allreduce", "reduce", "reduce_scatter"):
        return 0
    steps = math.ceil(math.log2(at.ranks))
    part = at.size_bytes / parallel(at, way)
    if way.algorithm in WHOLE or not way.divided:
        return steps if part >= least else 0
    return max(0, min(steps, math.floor(math.log2(part / least)))) if part >= least else 0

"""The table of the tuner plugin that NCCL and RCCL ship as an example.

    NCCL_TUNER_PLUGIN=libnccl-tuner-example.so NCCL_TUNER_CONFIG_FILE=FILE ...

    collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
    allreduce,0,65535,tree,ll,-1,1,8,-1,-1

The first line that matches is taken; where none does, the library chooses as ever. So a line is written only where
what it forces is separably faster than the library's own choice, and says by how much; it ends at the largest size for
which that was seen, since larger ones up to the next were not timed. `channels` is the largest
number that the model of the library gives the sizes of the line, or -1, the library's.

The plugin reads lines of at most 255 characters, comments among them, and takes a wrong word for `ring` or `simple`.

Source: NVIDIA/nccl and ROCm/rccl, ext-tuner/example (plugin.c, README.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .rules import Rule, Table
from .runtime import About, Runtime, Written

HEADER = "collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff"
MOST_CHARACTERS = 255  # of a line
NAMES = {"reduce_scatter": "reducescatter"}
_PROTOCOLS = ("ll", "ll128", "simple")
# What NCCL has for each collective, by the names after the slash of `nccl-2.27/tree/ll`.
_OF = {
    "allreduce": ("ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
    "allgather": ("ring", "collnet_direct", "nvls", "pat"),
    "reduce_scatter": ("ring", "collnet_direct", "nvls", "pat"),
    "broadcast": ("ring",),
    "reduce": ("ring",),
}
OWN = ""  # nothing after the slash: the library chooses
ALGORITHMS: Mapping[str, Mapping[str, object]] = {
    collective: {OWN: "the library's choice"}
    | {f"{name}/{protocol}": f"{name},{protocol}" for name in names for protocol in _PROTOCOLS}
    for collective, names in _OF.items()
}


def render(tables: Sequence[Table], about: About) -> Written:
    """The table, with a comment above each line."""
    lines = [f"# from {about.title}"[:MOST_CHARACTERS], f"# {HEADER}"]
    for table in tables:
        lines += _lines(table, about)
    return Written("\n".join(lines) + "\n")


def _lines(table: Table, about: About) -> Iterator[str]:
    for rule in table.rules:
        stem, _, name = rule.algorithm.partition("/")
        gains = dict(_gains(table, rule, stem))
        if name == OWN or not gains:
            continue
        first, last = min(gains), max(gains)
        most, at = max((gain, size) for size, gain in gains.items())
        found = [about.channels(table.collective, rule.algorithm, table.ranks, size) or -1 for size in gains]
        where = f"{table.collective} from {first} B, {table.ranks} ranks"
        yield f"# {where}: {name}, {most:.0%} faster than the choice of {stem} at {at} B"
        fields = (
            NAMES.get(table.collective, table.collective), first, last, ALGORITHMS[table.collective][name],
            max(found), about.nodes or -1, table.ranks, -1, -1,
        )  # fmt: skip
        yield ",".join(map(str, fields))


def _gains(table: Table, rule: Rule, own: str) -> Iterator[tuple[int, float]]:
    """The sizes of the rule at which it separably beats the library's own choice, and by what share."""
    for size in rule.sizes:
        now, before = table.times[size][rule.algorithm], table.times[size].get(own)
        if before and now.separably_faster(before):
            yield size, before.value / now.value - 1


_DESCRIPTION = (
    "Lines for the example tuner plugin: the algorithm and protocol for each range of sizes, by collective and "
    "ranks. A line is written only where it is separably faster than the library's choice, so a table may be empty."
)
NCCL = Runtime(
    "nccl", "NCCL: the table of the example tuner plugin (CSV)", _DESCRIPTION,
    "NVIDIA/nccl, ext-tuner/example", ALGORITHMS, render, library="nccl",
)  # fmt: skip
RCCL = Runtime(
    "rccl", "RCCL: the table of the example tuner plugin (CSV)", _DESCRIPTION,
    "ROCm/rccl, ext-tuner/example", ALGORITHMS, render, library="rccl",
)  # fmt: skip

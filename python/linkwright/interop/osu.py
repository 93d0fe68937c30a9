"""The text of the OSU micro-benchmarks, read.

    # OSU MPI Allreduce Latency Test v7.3
    # Datatype: MPI_FLOAT.
    # Size       Avg Latency(us)
    4                       1.46

The title says what was run; the number of ranks is nowhere in it. OSU's sizes are bytes of one rank's
block, where linkwright counts the whole array for blocked collectives, so those are multiplied by the
ranks.

Source: OSU micro-benchmarks 7.3, c/util/osu_util.c (`print_preamble`).
"""

from __future__ import annotations

import re
from pathlib import Path

from .formats import Importer
from .importing import MOST_MICROS, MOST_RATE, Defaults, Imported, Lines, check_growth, number_of, shown, size_of

_TITLE = re.compile(r"#\s*OSU MPI\S*\s+(.*?)\s+(?:Test\s+)?v[\d.]+", re.IGNORECASE)
_Test = tuple[str | None, str, str]  # collective, algorithm, metric
# By the words of a title.
_TESTS: dict[str, _Test] = {
    "allreduce": ("allreduce", "osu", "time"),
    "reduce_scatter": ("reduce_scatter", "osu", "time"),
    "reduce": ("reduce", "osu", "time"),
    "allgather": ("allgather", "osu", "time"),
    "all-to-all personalized exchange": ("alltoall", "osu", "time"),
    "alltoall": ("alltoall", "osu", "time"),
    "broadcast": ("broadcast", "osu", "time"),
    "gather": ("gather", "osu", "time"),
    "scatter": ("scatter", "osu", "time"),
    "barrier": ("barrier", "osu", "time"),
    "bandwidth": (None, "pairs", "bandwidth"),
    "latency": (None, "ping_pong", "latency"),
}


def parse(path: Path, text: str, defaults: Defaults) -> list[Imported]:
    """All numbers of a file."""
    lines = Lines(path, text)
    found: list[Imported] = []
    test, before, last = None, None, 0
    for number, line in lines:
        words = line.split()
        if line.startswith("#"):
            if title := _TITLE.match(line):
                test, before = _test(lines, number, title[1].lower()), None
            continue
        if not words:
            continue
        if test is None:
            raise lines.refuse(number, "numbers before a title such as `# OSU MPI Latency Test v7.3`; give whole files")
        found.append(_number(lines, number, words, test, defaults))
        check_growth(lines, number, found[-1].size_bytes, before)
        before, last = found[-1].size_bytes, number
    if not found:
        raise lines.refuse(max(1, len(lines.lines)), "the file ends without a number; it is cut or not of this format")
    if not text.endswith("\n"):
        raise lines.refuse(last, "the last line has no end, so the file is cut; run the benchmark again")
    return found


def _test(lines: Lines, number: int, title: str) -> _Test:
    wanted = title.removesuffix(" latency") if title != "latency" else title
    for words, test in _TESTS.items():
        if wanted == words:
            return test
    raise lines.refuse(number, f"test `{shown(title)}` is not one of {', '.join(_TESTS)}; leave it out")


def _number(lines: Lines, number: int, words: list[str], test: _Test, defaults: Defaults) -> Imported:
    collective, algorithm, metric = test
    ranks = defaults.ranks if collective else 2
    if ranks is None:
        raise lines.refuse(number, "the format does not tell the number of ranks; give it with --ranks")
    if len(words) < (1 if collective == "barrier" else 2):
        raise lines.refuse(number, f"{len(words)} columns, at least 2 expected; the line is cut")
    # reduce_scatter alone is printed by the bytes of the whole array.
    per_rank = collective in ("allgather", "alltoall", "gather", "scatter")
    size = 0 if collective == "barrier" else size_of(lines, number, words[0], ranks if per_rank else 1)
    most = MOST_RATE if metric == "bandwidth" else MOST_MICROS
    value = number_of(lines, number, words[0 if collective == "barrier" else 1], metric, most)
    reduces = collective in ("allreduce", "reduce", "reduce_scatter")
    return Imported(
        line=number,
        collective=collective,
        algorithm=algorithm,
        ranks=ranks,
        size_bytes=size,
        dtype="f32" if reduces else "u8",
        op="sum" if reduces else None,
        root=0,
        metric=metric,
        value=value * (1e6 if metric == "bandwidth" else 1e3),  # MB/s or us
        executor="osu",
        machine=defaults.machine,
    )


IMPORTER = Importer(
    "osu",
    "the text of the OSU micro-benchmarks: latency, bandwidth and collectives",
    "Reads osu_latency, osu_bw and the blocking collectives. Times are means over ranks and iterations, as OSU prints "
    "them, so rows have no interval. The number of ranks must be given for collectives.",
    "OSU micro-benchmarks 7.3, c/util",
    parse,
    marks_end=False,
)

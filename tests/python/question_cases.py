"""What users have asked: keys, columns and plain values that their run folders, journals and resumed sweeps hold."""

import hashlib
import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import linkwright as lw
from linkwright import _native
from linkwright.ask import sources
from linkwright.base import registry
from linkwright.executors import resolve_one
from linkwright.executors.protocol import Extent
from linkwright.libraries.questions import collective_question as collective_question
from linkwright.libraries.questions import own_question as own_question
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand

EACH = 3  # questions of each part of a suite
SOURCE = """
import linkwright as lw
def ring(ranks, size): return lw.schedule("allreduce", "ring", ranks=ranks, size=size)
def wrong(ranks, size): return 1 / 0
"""


def of_suites():
    for name in registry.keys("suites"):
        suite = load.load(registry.suite_path(name))
        for extent in (Extent("measured", 5), Extent("modelled", 16, (4, 4))):
            for part in suite.parts:
                found = expand(load.replace(suite, parts=(part,)), extent)
                yield from found[:: max(1, len(found) // EACH)]


def of_commands():
    how = {"issue": "window(2)", "path": "ll", "skew": "late:0:2us", "arithmetic": False}
    common = {"sizes": (1024,), "ranks": (4, 8)}
    for axes in (
        {"collectives": ("all",)},
        {"collectives": ("allreduce", "broadcast"), "algorithms": ("all",), "root": 1, "op": "max", "dtype": "f64"},
        {"collectives": ("allreduce",), "algorithms": ("ring",), **how},
        {"pattern": "hot_spot", "messages": 3, "both_ways": True, "root": 2, **how},
        {"pattern": "pairs", "ranks": (2,), "placement": "doubling"},
        {"pattern": "uniform_random", "sizes": (64, 256), "rising_to": 4096},
    ):
        suite = load.one_part("ask", "asked", **{**common, **axes})
        yield from expand(suite, Extent("measured", 8, (2, 4)))


def of_libraries():
    for machine in ("hgx-h100", "dgx1-p100", "mi300x"):
        suite = load.one_part("ask", "asked", collectives=("all",), algorithms=("own",), sizes=(8, 65536), ranks=(8,))
        yield from expand(suite, resolve_one(machine).extent)
    target = resolve_one("hgx-h100", variant=lw.machines.Variant(nodes=16))
    for size in (1 << 10, 1 << 30):
        made = collective_question("ask", "allreduce", "nccl-2.27", target.extent.ranks, size, "bf16", "sum")
        yield target.extent.planned(made)
    for algorithm, more in (("nccl-2.27/pat", {}), ("nccl-2.27", {"path": "simple"})):
        made = collective_question("ask", "allreduce", algorithm, 8, 1 << 10, "f32", "sum", **more)
        yield resolve_one("hgx-h100").extent.planned(made)


def of_sources():
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            sources.find.cache_clear()
            Path("own.py").write_text(SOURCE)
            Path("own.lw").write_text(lw.schedule("allreduce", "ring", ranks=4, size="64K").text())
            Path("traffic.lw").write_text(_native.Schedule.pattern("uniform_random", 4, 64, element_bytes=4).text())
            for name in ("own.lw", "own.py:ring", "own.py:wrong"):
                yield collective_question("ask", "allreduce", name, 4, 4096, "f32", "sum", skew="late:0:2us")
                yield own_question("ask", name, 4, 4096, "f32", "sum", path="ll", root=0, grid=(2, 2))
            yield own_question("ask", "own.lw", None, None, "f32", "max")
            yield own_question("ask", "traffic.lw", None, None, "f32", "sum", issue="unlimited")
            yield own_question("ask", "traffic.lw", 4, 64, "f32", "sum")
        finally:
            os.chdir(before)
            sources.find.cache_clear()


def questions():
    """Every case once, in this order."""
    found = {}
    for cases in (of_suites, of_commands, of_libraries, of_sources):
        for question in cases():
            found.setdefault((cases.__name__, question.key), question)
    return found


def plain(question):
    """What files keep of a question."""
    return json.dumps([question.key, question.columns(), question.to_json()])


def text():
    """One line for each case: where it comes from, its key, and a digest of its columns and plain values."""
    lines = [
        f"{cases} {key} {hashlib.sha256(plain(question).encode()).hexdigest()[:12]}"
        for (cases, key), question in questions().items()
    ]
    return "\n".join(lines) + "\n"

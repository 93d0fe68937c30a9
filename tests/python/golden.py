"""Texts that people read, as this version prints them: name -> function that makes the text."""

import contextlib
import tempfile
from pathlib import Path

import question_cases
from linkwright.advise.explain.system import System
from linkwright.base import registry
from linkwright.cli import plan
from linkwright.cli.main import VERBS
from linkwright_cases import invoke
from log_cases import nccl
from tables import RESULTS, shown

FOLDER = Path(__file__).parent.parent / "golden"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def _printed(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.status == 0, result.err
    return result.out


def _help() -> str:
    pages = [_printed("--help"), *(_printed(verb, "--help") for verb in VERBS)]
    subjects = [("plan", subject.name) for subject in plan.SUBJECTS] + [
        ("predict", "llm"),
        ("predict", "training_step"),
    ]
    return "\n".join([*pages, *(_printed(*subject, "--help") for subject in subjects)])


def _explained(*without: str) -> str:
    """The answer to the log of two nodes, without some of their network ports."""
    system = System("hgx-h100", 2, 8, "ndr-fat-tree", "nccl-2.27", "allreduce", without=without)
    times = {size: 1.03 * system.time(size).time_us for size in (1 << 10, 1 << 16, 1 << 22, 1 << 26, 1 << 30)}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        log = Path("all_reduce.log")
        log.write_text("NCCL version 2.27.3+cuda12.9\n" + nccl(times=times, in_place=False, ranks=16, nodes=2))
        asked = ("--on", "hgx-h100", "--nodes", "2", "--fabric", "ndr-fat-tree")
        return _printed("explain", str(log), *asked)


def _tuned() -> str:
    """What engines are to set on HGX H100, where one setting gains, none does, and some sizes alone gain."""
    on = ("tune", "--on", "hgx-h100")
    return "\n".join((
        _printed(*on, "--for", "vllm-0.24", "-p", "2", "--sizes", "64K,8M,16M,64M"),
        _printed(*on, "--for", "sglang", "-p", "4", "--sizes", "64K,8M"),
        _printed(*on, "--for", "trtllm-1.4", "--sizes", "256K,512K,2M"),
        _printed(*on, "--for", "deepep", "--nodes", "2", "--tokens", "16,4096"),
    ))  # fmt: skip


_SIMULATED = ("simulate", "allreduce", "--on", "wormhole-n150", "--sizes", "1K,128K")
TEXTS = {
    "questions.txt": question_cases.text,
    "table-measured.txt": lambda: shown(*RESULTS),
    "table-simulated.txt": lambda: _printed(*_SIMULATED),
    "table-columns.txt": lambda: _printed(*_SIMULATED, "--columns", "size,algorithm,time,hops_max,limit,limit_name"),
    "table-wide.txt": lambda: _printed(*_SIMULATED, "--wide"),
    "help.txt": _help,
    "tune-engines.txt": _tuned,
    "list.txt": lambda: _printed("list"),
    "describe.txt": lambda: "\n".join(_printed("describe", key) for key in DESCRIBED),
    "predict-resnet.txt": lambda: _printed(
        "predict", "resnet", "--depth", "8", "--batch", "16,64", "--on", "dgx1-p100,gx8-p100", "--imbalance", "2%"
    ),
    "predict-trace.txt": lambda: _printed(
        "predict", str(EXAMPLES / "recorded_step.toml"), "--on", "dgx1-p100,gx8-p100"
    ),
    "explain-fine.txt": lambda: _explained(),
    "explain-broken.txt": lambda: _explained("NIC 7", "NIC 6", "NIC 5", "NIC 4"),
    "explain-schedule.txt": lambda: _printed("explain", "allreduce/ring", "--on", "dgx1-p100", "--size", "64M"),
    **{
        f"machine-{name}.txt": lambda name=name: _printed("machines", "show", name)
        for name in registry.keys("machines")
    },
    **{
        f"rules-{name}.txt": lambda name=name: _printed("machines", "show", name, "--rules")
        for name in ("ipu-c2-chip", "loggp", "wormhole-n150")
    },
}

# One of each kind; the sweep in test_cli.py describes every entry.
DESCRIBED = ("allreduce/ring", "pattern/ping_pong", "loggp", "threads", "dissect", "wormhole-n150", "resnet")

"""Texts that people read, as this version prints them: name -> function that makes the text."""

from pathlib import Path

from linkwright import registry
from linkwright.cli import plan
from linkwright.cli.main import VERBS
from linkwright_cases import invoke
from tables import RESULTS, shown

FOLDER = Path(__file__).parent.parent / "golden"
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def _printed(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.status == 0, result.err
    return result.out


def _help() -> str:
    pages = [_printed("--help"), *(_printed(verb, "--help") for verb in VERBS)]
    return "\n".join([*pages, *(_printed("plan", subject.name, "--help") for subject in plan.SUBJECTS)])


_SIMULATED = ("simulate", "allreduce", "--on", "wormhole-n150", "--sizes", "1K,128K")
TEXTS = {
    "table-measured.txt": lambda: shown(*RESULTS),
    "table-simulated.txt": lambda: _printed(*_SIMULATED),
    "table-columns.txt": lambda: _printed(*_SIMULATED, "--columns", "size,algorithm,time,hops_max,limit,limit_name"),
    "table-wide.txt": lambda: _printed(*_SIMULATED, "--wide"),
    "help.txt": _help,
    "list.txt": lambda: _printed("list"),
    "describe.txt": lambda: "\n".join(_printed("describe", key) for key in DESCRIBED),
    "predict-resnet.txt": lambda: _printed(
        "predict", "resnet", "--depth", "8", "--batch", "16,64", "--on", "dgx1-p100,gx8-p100", "--imbalance", "2%"
    ),
    "predict-trace.txt": lambda: _printed(
        "predict", str(EXAMPLES / "recorded_step.toml"), "--on", "dgx1-p100,gx8-p100"
    ),
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

"""Shared by the benches: `--quick`, the smallest run that proves a bench works, and the table of ratios to peers.

for bench in benches/*.py; do .venv/bin/python $bench --quick; done      tests/python/test_benches.py does the same

Benches with peers print one line for each work and peer, with the ratio that `--record` wrote to recorded.json last.
"""

import argparse
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

# Examples of the crates, if they have been built.
BUILT = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[1] / "target")) / "release/examples"

RECORDED = Path(__file__).with_name("recorded.json")


def compare(rows, record=False):
    """Print rows of work, peer, ours, the peer's, unit; ratios are ours to the peer's. Keep them if asked to."""
    known = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    print(f"{'work':36} {'peer':24} {'ours':>11} {'peer':>11} {'unit':5} {'ratio':>7} {'recorded':>8}")
    for work, peer, ours, theirs, unit in rows:
        last, ratio = known.get(f"{work}, {peer}"), ours / theirs
        told = "-" if last is None else f"{last:.3f}"
        print(f"{work:36} {peer:24} {ours:11.4g} {theirs:11.4g} {unit:5} {ratio:7.3f} {told:>8}", flush=True)
        known[f"{work}, {peer}"] = round(ratio, 4)
    if record:
        RECORDED.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def arguments(parser, needs=(), **few):
    """The arguments; with `--quick` those in `few`, unless stated, and a good end without a program that it `needs`."""
    parser.add_argument("--quick", action="store_true", help="the smallest run, to see that it works")
    parser.add_argument("--record", action="store_true", help=f"write ratios to {RECORDED.name}; on an idle machine")
    asked = parser.parse_args()
    if asked.quick:
        if lacking := [str(one) for one in needs if not installed(str(one))]:
            print(f"skipped: {', '.join(lacking)} is not installed")
            sys.exit(0)
        free = {name: value for name, value in few.items() if vars(asked)[name] in (parser.get_default(name), [])}
        vars(asked).update(free)
    return asked


def installed(name):
    """Whether a program or a Python module of this name is installed."""
    return shutil.which(name) or (name.isidentifier() and importlib.util.find_spec(name))


def only(*needs):
    """Whether a bench that takes no other options was given `--quick`."""
    return arguments(argparse.ArgumentParser(), needs).quick

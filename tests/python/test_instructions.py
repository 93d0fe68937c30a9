"""What `make bench` says of instruction counts; the counts themselves depend on the compiler."""

import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).parent.parent.parent / "benches"
sys.path.insert(0, str(BENCHES))
import instructions  # noqa: E402


def test_a_quarter_more_fails_and_a_quarter_less_wants_an_update():
    known = {"w": {"engine": 10_000_000, "lower": 1000}}
    verdict = lambda engine, lower=1000: instructions.compare({"w": {"engine": engine, "lower": lower}}, known)  # noqa: E731
    assert verdict(12_400_000) == ([], [])
    assert verdict(12_600_000) == (["w: engine takes 12,600,000 instructions, 1.26 x 10,000,000"], [])
    assert verdict(7_400_000) == ([], ["w: engine takes 0.74 x 10,000,000 instructions; --update"])
    assert verdict(10_000_000, lower=900_000) == ([], []), "too little to be judged"
    assert instructions.compare({"new": {"engine": 1}}, known)[0] == [
        "new: engine is not in instructions.toml; write it with --update"
    ]


def test_files_of_callgrind_are_told_apart_by_their_order():
    dump = lambda stage, total: f"desc: Trigger: --dump-after=workloads::stages::{stage}\ntotals: {total}\n"  # noqa: E731
    dumps = [dump("machine", 5), dump("prove", 7), dump("inject", 9), "desc: Trigger: Program termination\ntotals: 3\n"]
    found = instructions.sorted_out(dumps, ["a", "b"])
    assert found == {"a": {"machine": 5, "verify": 7}, "b": {"engine": 9}}
    with pytest.raises(RuntimeError, match="inlined"):
        instructions.sorted_out(dumps[:2], ["a", "b"])

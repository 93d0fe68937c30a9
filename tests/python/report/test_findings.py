"""Every rule on a run that it must speak of, and on one of which it must be silent."""

from __future__ import annotations

import math

import made
import pandas as pd
import pytest

from linkwright.show.report import findings as rules
from linkwright.show.report.first import earlier

FINE = [{"value": 10.0, **made.sure(10)} for _ in range(10)]
FLAT = ((32 << 10, 1.0), (1 << 20, 4.0), (math.inf, 100.0))  # no step at 16 MiB
CLAIMED = ((32 << 10, 1.0), (1 << 20, 4.0), (16 << 20, 20.0), (math.inf, 100.0))
SHORT = ((32 << 10, 1.0), (1 << 20, 4.0), (4 << 20, 20.0), (math.inf, 100.0))  # L3 ends at a quarter
EXTRA = ((32 << 10, 1.0), (1 << 20, 4.0), (16 << 20, 20.0), (300 << 20, 100.0), (math.inf, 300.0))


def flagged(count: int, flag: str) -> list[dict]:
    return [row | ({"flags": flag} if n < count else {}) for n, row in enumerate(FINE)]


def four(far: float) -> dict[tuple[str, str], float]:
    """Twelve processors in one package, all 100 ns apart but for two of them."""
    names = [f"cpu {k}" for k in range(12)]
    values = {(a, b): 100.0 for a in names for b in names if a != b}
    return values | {("cpu 3", "cpu 7"): far, ("cpu 7", "cpu 3"): far}


def stream(*rates: tuple[int, float]) -> list[dict]:
    about = {"collective": "pattern", "algorithm": "pairs", "metric": "bandwidth", "unit": "B/s", "ranks": 2}
    return [about | {"size_bytes": size} | made.sure(rate) for size, rate in rates]


def reading(bytes_per_s: float) -> list[dict]:
    about = {"algorithm": "memory_bandwidth", "metric": "bandwidth", "unit": "B/s", "axes": "kernel=read width=widest"}
    return [about | {"ranks": 1, "size_bytes": 64 << 20} | made.sure(bytes_per_s)]


HOST = {"environment": made.host()}
WIDE = [row | made.sure(10, 0.3) for row in FINE]
# Rule -> (rows and environment that it speaks of, a word of what it says, rows of which it is silent).
CASES = {
    "failed": (([{"status": "failed", "algorithm": "ring", "reason": "wrong sum"}],), "1 experiment failed", (FINE,)),
    "busy": ((flagged(3, "disturbed"),), "30 %", (FINE,)),
    "imprecise": ((WIDE,), "(10 wide, 0 single)", ([*FINE, WIDE[0]],)),
    "not-started": (([*FINE, {"status": "out-of-time"}],), "1 experiment did not start", (FINE,)),
    "shared-processors": ((flagged(1, "two-modes,oversubscribed"),), "shared processors", (FINE,)),
    "moved": ((flagged(2, "moved"),), "20 %", (FINE,)),
    "two-modes": ((flagged(1, "two-modes"),), "10 %", (FINE,)),
    "hidden-cache": (
        (made.curve(*FLAT), HOST),
        "L3 of 16 MiB: 100 ns, but no step in the curve",
        (made.curve(*CLAIMED), HOST),
    ),
    "cache-size": ((made.curve(*SHORT), HOST), "L3 ends at", (made.curve(*CLAIMED), HOST)),
    "unclaimed-step": ((made.curve(*EXTRA, to=2 << 30), HOST), "rises at", (made.curve(*CLAIMED), HOST)),
    # 128 GB/s x 100 ns / 64 B = 200 lines; 32 GB/s are 50.
    "too-fast-memory": (
        ([*made.curve(*CLAIMED), *reading(128e9)], HOST),
        "200 lines in flight",
        ([*made.curve(*CLAIMED), *reading(32e9)], HOST),
    ),
    "far-pair": ((made.pairs(four(250)), {"environment": made.host(12)}), "2.50×", (made.pairs(four(100)),)),
    "uneven-pair": (
        (made.pairs({("cpu 0", "cpu 1"): 50, ("cpu 1", "cpu 0"): 70}),),
        "differ by 40 %",
        (made.pairs({("cpu 0", "cpu 1"): 50, ("cpu 1", "cpu 0"): 70}, half=0.3),),  # wide: it may be chance
    ),
    "fewer-bytes-slower": (
        (made.allreduce((8, 200), (64, 100)),),
        "longer than 100.0 ns for 64 B",
        (made.allreduce((8, 200), (64, 100), half=0.5),),  # the intervals overlap
    ),
    "beyond-limit": (
        ([FINE[0] | made.MODEL | {"algorithm": "ring", "limit": 12.0}],),
        "120 % of its limit",
        ([FINE[0] | made.MODEL | {"limit": 10.0}],),
    ),
    "beyond-best-seen": (
        ([FINE[0] | {"algorithm": "ring", "best_seen": 20.0, "best_seen_name": "cache_line"}],),
        "2.00× as good",
        ([FINE[0] | {"best_seen": 10.4}],),
    ),
    "off-published": (
        ([FINE[0] | made.MODEL | {"algorithm": "ring", "reference": 8.0}],),
        "published 8 ns",
        ([FINE[0] | made.MODEL | {"reference": 9.5}],),
    ),
    "still-rising": ((stream((8, 1e9), (64, 2e9)),), "still rises at 64 B", (stream((8, 1e9), (64, 1.02e9)),)),
}


def told(key: str, rows: list[dict], about: dict | None = None) -> list[str]:
    run = made.run_of(*rows, **(about or {}))
    (rule,) = [rule for rule in rules.RULES if rule.key == key]
    return [str(finding) for machine in run.machines for finding in rule.find(run, machine)]


@pytest.mark.parametrize("key", CASES)
def test_a_rule_speaks_and_is_silent(key):
    speaks, words, silent = CASES[key]
    found = told(key, *speaks)
    assert len(found) == 1
    assert words in found[0].replace("\u00a0", " ")
    assert told(key, *silent) == []


def test_every_rule_has_a_case():
    assert {rule.key for rule in rules.RULES} == {*CASES, "slower-than-before"}


@pytest.mark.parametrize(("now", "count"), [(150, 1), (101, 0)])
def test_slower_than_in_the_earlier_run(monkeypatch, now, count):
    before, after = (_launched(value) for value in (100, now))
    monkeypatch.setattr(earlier, "find", lambda run: before)
    monkeypatch.setattr(earlier, "when", lambda run: "2026-11-21 12:31")
    (rule,) = [rule for rule in rules.RULES if rule.key == "slower-than-before"]
    found = [str(finding) for finding in rule.find(after, "here")]
    assert len(found) == count
    assert all("allreduce by +50 %" in words and "2026-11-21 12:31" in words for words in found)


def _launched(value: float):
    launches = [("e0", k, value * (1 + k / 1000), None, None) for k in range(12)]
    samples = pd.DataFrame(launches, columns=["experiment", "launch", "value_ns", "rank", "set_aside"])
    return made.run_of(*made.allreduce((8, value)), samples=samples)


def test_the_weightiest_comes_first():
    failed = {"status": "failed", "algorithm": "ring", "reason": "wrong sum"}
    found = rules.findings(made.run_of(*flagged(3, "two-modes"), failed), "here")
    assert [finding.weight for finding in found] == sorted((finding.weight for finding in found), reverse=True)
    assert "failed" in found[0].what


def test_a_model_is_not_asked_for_its_caches():
    modelled = [row | made.MODEL for row in made.curve(*FLAT)]
    assert told("hidden-cache", modelled, HOST) == []

"""Command lines that ask for more than any machine has, or that bring a terminal into disorder: one message each."""

import os
import subprocess
import sys
import time

import pytest

from linkwright.ask.question import Pattern
from linkwright.executors import process
from linkwright.executors.protocol import Launch
from linkwright_cases import invoke

BEYOND = [
    ("simulate allreduce --on torus-2d --grid 999999x999999 --sizes 8", "a grid of 999999x999999 asked for"),
    ("simulate allreduce --on loggp -p 4 --sizes 8 --skew late:0:18446745s", "times of at most an hour"),
    ("simulate pattern/pairs --on loggp -p 2 --sizes 8 --messages 4294967295", "messages is 4294967295; write"),
    ("verify allreduce/ring -p 4 --size 2305843009213693952", "beyond 1024T"),
    (
        "simulate allreduce --on loggp -p 4 --sizes 99999999999999999999999999999999999999999999",
        "not a number of bytes",
    ),
    ("dissect scaling -j 1000000", "1000000 is not in the range"),
    ("dissect --watts nan", "`nan` is not a power"),
    ("dissect --watts inf", "`inf` is not a power"),
    ("dissect --watts 0", "`0` is not a power"),
    ("run allreduce --time-budget 99999999999s", "longer than ten years"),
    ("draw loggp -p 4194304 --out x.svg", "4,194,304 endpoints, of which no picture shows one"),
    ("draw torus-2d --grid 2048x2048 --out x.svg", "4,194,304 endpoints"),
    ("draw allreduce/ring --on loggp -p 4 --size 7 --out x.svg", "size 7 is not a whole number of f32 elements"),
    ("draw allreduce/ring --on loggp -p 4 --size 0 --out x.svg", "allreduce moves at least one element"),
    ("explain allreduce/ring --on loggp -p 4 --size 7", "size 7 is not a whole number of f32 elements"),
]


@pytest.mark.parametrize(("words", "message"), BEYOND)
def test_what_is_beyond_any_machine_is_refused_before_any_work(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    began = time.process_time()
    result = invoke(*words.split())
    assert time.process_time() - began < 10
    assert (result.status, result.out) in ((2, ""), (1, "")), result
    assert message in result.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("verb", ["simulate", "list", "describe", "draw --report", "predict", "machines show"])
def test_names_bring_no_escapes_and_no_endless_message(tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    for name in ("\x1b[31mred\x07", "x" * 300_000, "a\rb"):
        on = ("--on", "loggp") if verb in ("simulate", "predict") else ()
        result = invoke(*verb.split(), name, *on)
        assert result.status in (1, 2)  # 1: the system refuses such a name of a file
        assert len(result.err) < 5000
        assert not any(ord(c) < 32 and c != "\n" for c in result.err)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("list nothing", 2),
        ("list machines", 0),
        ("simulate allreduce -a ring --on loggp -p 4 --sizes 64", 0),
        ("synthesize allreduce --on loggp -p 2 --sizes 64 --budget 1ms", 0),
        ("run allreduce -a ring --on threads -p 2 --sizes 64 --time-budget 20s --target 90%", 0),
    ],
)
def test_a_closed_stderr_changes_no_status(tmp_path, words, status):
    command = f"{sys.executable} -m linkwright {words} 2>&- > /dev/null"
    assert subprocess.run(["sh", "-c", command], check=False, cwd=tmp_path).returncode == status


def test_packets_are_counted_before_they_are_simulated():
    began = time.process_time()
    # A ring over 2 ranks has 2 phases, in each of which both send 512 GiB: 2 TiB in packets of 8 KiB.
    result = invoke("simulate", "allreduce", "-a", "ring", "--on", "torus-2d", "--grid", "2x1", "--sizes", "1T,64K")
    assert time.process_time() - began < 10
    assert f"{2 * (1 << 40) // 8192} packets" in " ".join(result.out.replace("#", "").split())
    assert result.status == 0  # the other size has a value
    beyond = invoke("simulate", "pattern/ping_pong", "--on", "vollo-ia420f", "--sizes", "1T")
    assert (beyond.status, time.process_time() - began < 20) == (1, True)


SLEEPS = """
import json, sys, time
json.load(sys.stdin)
print('{"ready": true}', flush=True)
time.sleep(60)
"""


def test_a_repetition_longer_than_the_budget_is_stopped(tmp_path, monkeypatch):
    (tmp_path / "sleeps.py").write_text(SLEEPS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    work = [Pattern("p", "pairs", 2, 8), Pattern("p", "pairs", 2, 16)]
    began = time.monotonic()
    (ended,) = process.fresh("sleeps", Launch(0, work, 1.0, stop_s=1.0))
    assert time.monotonic() - began < 20
    assert (ended.experiment, ended.status, ended.code) == (work[0].key, "out-of-time", "out-of-time")
    assert "longer than the time budget" in ended.reason

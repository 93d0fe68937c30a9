"""Foreign load: told from our own, set aside if some launch was undisturbed, never averaged in."""

import subprocess
import sys
import time

import numpy as np
import pytest

from linkwright.ask.question import Pattern
from linkwright.executors.measured import Measured
from linkwright.executors.threads import foreign
from linkwright.session.suite import rows
from linkwright.store.record import Record

EXPERIMENT = Pattern("latency", "ping_pong", 2, 8, "u8")
CONTEXT = rows.Context("r", "s", "box", "threads", ("a", "b"))


def launch(value, foreign_load=None, **more):
    return Record(experiment=EXPERIMENT.key, values_ns=[value] * 8, first_ns=value, foreign=foreign_load, **more)


def time_row(records):
    found = rows.of_samples(CONTEXT, EXPERIMENT, ["latency"], Measured.of(records))
    return {row["metric"]: row for row in found}


def test_busy_time_leaves_out_idle_and_waiting():
    stat = "cpu  100 20 30 4000 500 6 7 80 9 0\ncpu0 1 2\n"
    ticks = 100 + 20 + 30 + 6 + 7  # user nice system irq softirq; not idle, iowait, steal
    assert foreign.busy_s(stat) == pytest.approx(ticks * foreign._TICK_S)
    assert foreign.busy_s("intr 5\n") is None


def test_launches_beside_foreign_load_are_set_aside():
    found = time_row([launch(100.0)] * 6 + [launch(900.0, 0.97)] * 5)
    assert found["time"]["value"] == 100.0
    assert found["time"]["status"] == "ok"
    assert (found["dropped"]["value"], found["dropped"]["reason"]) == (40.0, "40 foreign")


def test_without_an_undisturbed_launch_the_row_says_how_busy_it_was():
    found = time_row([launch(100.0, 0.5), *[launch(100.0, 1.25)] * 6])
    assert (found["time"]["status"], found["time"]["flags"]) == ("ok", "disturbed")
    assert found["time"]["reason"].startswith("others kept up to 1.25 processors busy in every launch")


def test_our_own_work_is_not_foreign_and_that_of_others_is(monkeypatch):
    busy, own, now = iter([0.0, 0.6, 1.8]), iter([0.0, 0.58, 1.0]), iter([0.0, 0.6, 1.2])
    monkeypatch.setattr(foreign, "busy_s", lambda: next(busy))
    monkeypatch.setattr(foreign, "own_s", lambda: next(own))
    monkeypatch.setattr(foreign.time, "monotonic", lambda: next(now))
    watch = foreign.Watch()
    assert watch.foreign() is None  # 0.02 s of 0.6 s: within the slack
    assert watch.foreign() == pytest.approx((1.8 - 0.6 - 0.42) / 0.6, abs=0.01)


def test_short_experiments_are_judged_over_half_a_second(monkeypatch):
    clock = iter(np.arange(0.0, 3.0, 0.1))
    moments = []

    def monotonic():
        moments.append(next(clock))
        return moments[-1]

    monkeypatch.setattr(foreign.time, "monotonic", monotonic)
    monkeypatch.setattr(foreign, "busy_s", lambda: moments[-1])  # one processor busy all the time, none of it ours
    monkeypatch.setattr(foreign, "own_s", lambda: 0.0)
    watch = foreign.Watch()
    found = [watch.foreign() for _ in range(8)]
    assert found[-1] == pytest.approx(1.0)


def test_a_busy_neighbour_is_seen():
    """On this machine, with a process that does nothing but compute."""
    code = "import time; end = time.time() + 30\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as other:
        watch = foreign.Watch()
        time.sleep(0.7)
        seen = watch.foreign()
        other.kill()
    assert seen is not None
    assert seen > 0.2

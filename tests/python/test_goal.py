"""GOAL text from the outside: through the command line, and there and back in simulated time."""

import random
import re

import pytest

import linkwright as lw
from linkwright import _native
from linkwright.base import registry
from linkwright_cases import invoke

TWO = """num_ranks 2
rank 0 {
l1: calc 1000
l2: send 64b to 1 tag 0
l2 requires l1
}
rank 1 {
l1: recv 64b from 0 tag 0
l2: calc 500
l2 requires l1
}
"""
# Algorithms for nodes, or for rows.
OF_A_GRID = ("hierarchical", "by_rows", "nvls_tree", "rails", "rails_chunked")
NEEDS = {row["key"]: {"grid": (4, 2)} for row in _native.algorithms() if row["key"].split("/")[1] in OF_A_GRID}
# Messages of two steps reach a rank at one instant; which one it handles first, the format does not keep.
MEETING = ("allgather/bine",)
# A statement as `txt2bin` of LogGOPSim takes it, each on a line of its own.
OPTIONS = r"( tag \d+)?( cpu \d+)?( nic \d+)?"
STATEMENT = re.compile(
    rf"(// .*|num_ranks \d+|rank \d+ {{|}}||\w+: calc \d+( cpu \d+)?|\w+: send [1-9]\d*b to \d+{OPTIONS}|"
    rf"\w+: recv [1-9]\d*b from \d+{OPTIONS}|\w+ i?requires \w+)"
)


def read(text):
    return _native.read_schedule(text, "test.goal")


def test_calculations_are_in_nanoseconds():
    def only(text):
        return lw.simulate(read(text), "loggp").time_us

    message = only(TWO.replace("calc 1000", "calc 0").replace("calc 500", "calc 0"))
    assert only(TWO) == pytest.approx(message + 1.5)


def test_the_command_line_reads_and_simulates(tmp_path):
    file = tmp_path / "two.goal"
    file.write_text(TWO)
    for asked in (("verify", str(file)), ("simulate", str(file), "--on", "loggp")):
        result = invoke(*asked)
        assert result.status == 0, result.err
    file = tmp_path / "wrong.goal"
    file.write_text(TWO.replace("l1: recv", "l1: recv 64b from 0 tag 1\nl3: recv"))
    result = invoke("simulate", str(file), "--on", "loggp")
    assert result.status == 2
    assert "wrong.goal: line 8: the message of 64 B from rank 0 to rank 1 with tag 1 never comes" in result.err


@pytest.mark.parametrize("key", registry.keys("algorithms"))
def test_what_is_written_is_in_the_grammar_of_loggopsim(key):
    collective, name = key.split("/")
    schedule = lw.schedule(collective, name, ranks=8, size="4K", **NEEDS.get(key, {}))
    for line in schedule.export("goal").splitlines():
        assert STATEMENT.fullmatch(line), line


@pytest.mark.parametrize("issue", ["blocking", "window(2)", "unlimited"])
@pytest.mark.parametrize("name", [row["name"] for row in _native.patterns()])
def test_traffic_comes_back_in_the_same_time(name, issue):
    schedule = _native.Schedule.pattern(name, ranks=8, elements=1000, count=3)
    back = read(schedule.export("goal"))
    for machine in ("loggp", "wormhole-n150", "dgx1-p100"):
        times = [lw.simulate(one, machine, issue=issue).time_us for one in (schedule, back)]
        assert times[0] == times[1], machine


@pytest.mark.parametrize("key", registry.keys("algorithms"))
def test_collectives_come_back_in_the_same_time_without_their_arithmetic(key):
    """Where GOAL holds all that takes time: messages, but no gets, multicasts, copies and acknowledgements."""
    schedule = lw.schedule(*key.split("/"), ranks=8, size="8K", **NEEDS.get(key, {}))
    back = read(schedule.export("goal"))
    assert back.collective == "pattern"
    kinds = set(schedule.operations()["kind"])
    if key not in MEETING and kinds <= {"put", "notice"} and "!" not in schedule.text():
        times = [lw.simulate(one, "loggp", arithmetic=False).time_us for one in (schedule, back)]
        assert times[0] == times[1]


def test_large_traces_are_read():
    """Ten thousand sends, receives and calculations between 64 ranks, each behind the one before it."""
    draw = random.Random(1)
    lines, last = [[] for _ in range(64)], [None] * 64
    for tag in range(3333):
        source, target = draw.sample(range(64), 2)
        size = draw.choice([8, 64, 4096, 1 << 20])
        for rank, what in ((source, f"send {size}b to {target}"), (target, f"recv {size}b from {source}")):
            lines[rank].append(f"m{tag}: {what} tag {tag}")
            lines[rank] += [f"m{tag} requires {last[rank]}"] if last[rank] else []
            last[rank] = f"m{tag}"
        lines[target] += [f"c{tag}: calc {draw.randrange(1000)}", f"c{tag} requires m{tag}"]
        last[target] = f"c{tag}"
    ranks = ["\n".join([f"rank {rank} {{", *found, "}"]) for rank, found in enumerate(lines)]
    schedule = read("\n".join(["num_ranks 64", *ranks]))
    assert len(schedule) == 2 * 3333
    again = read(schedule.export("goal"))
    assert lw.simulate(again, "loggp").time_us == lw.simulate(schedule, "loggp").time_us

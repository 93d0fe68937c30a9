"""No row names a condition that its executor did not obey: every field of a question on every executor."""

from dataclasses import fields, replace
from types import SimpleNamespace

import pytest

import linkwright as lw
from linkwright.ask import schedules
from linkwright.ask.answer import How
from linkwright.ask.exchange import UnevenExchange
from linkwright.ask.question import Collective, Pattern, Probe, Program
from linkwright.base.errors import UsageError
from linkwright.executors import EXECUTORS, check_obeyed, resolve_one
from linkwright.executors.mpi import ranks as mpi_ranks
from linkwright.executors.process import Sampling
from linkwright.executors.protocol import CONDITIONS
from linkwright.session.suite import load
from linkwright.session.suite.expand import expand_on
from linkwright_cases import invoke

PLAIN = Collective("p", "ring", 4, 4096, "f32", collective="broadcast")
UNEVEN = UnevenExchange(counts=((1, 2, 3, 4), (4, 3, 2, 1), (1, 1, 1, 1), (2, 0, 2, 0)))
PATTERN = Pattern("p", "pairs", 4, 4096, "u8")
# What the schedule holds, by an experiment that differs in it.
IN_SCHEDULE = {
    "collective": replace(PLAIN, collective="allgather"),
    "algorithm": replace(PLAIN, algorithm="binomial"),
    "ranks": replace(PLAIN, ranks=3),
    "size_bytes": replace(PLAIN, size_bytes=8192),
    "root": replace(PLAIN, root=1),
    "dtype": replace(PLAIN, dtype="f64"),
    "exchange": replace(PLAIN, collective="alltoallv", algorithm="linear", exchange=UNEVEN),
    "messages": replace(PATTERN, messages=2),
    "both_ways": replace(PATTERN, both_ways=True),
    "grid": replace(PATTERN, algorithm="neighbour", grid=(2, 2)),
}
UNUSUAL = {"issue": "window(2)", "path": "other", "skew": "late:1:2us", "arithmetic": False, "placement": (1, 0)}
# The operator is part of the data; the others name a question or the size that was typed, are a probe's, or say when
# it is planned.
ELSEWHERE = {"op", "part", "axes", "named", "own", "rising", "asked_bytes"}
REFUSED = [(executor, name) for executor in EXECUTORS for name in UNUSUAL if name not in EXECUTORS[executor].obeys]


def test_every_field_of_a_question_is_obeyed_somewhere():
    kinds = (Collective, Pattern, Program, Probe)
    assert {field.name for kind in kinds for field in fields(kind)} == {*IN_SCHEDULE, *CONDITIONS, *ELSEWHERE}
    assert UNUSUAL.keys() == CONDITIONS.keys()


@pytest.mark.parametrize("name", IN_SCHEDULE)
def test_the_schedule_holds_what_no_executor_needs_to_know(name):
    differs = IN_SCHEDULE[name]
    usual = replace(differs, **{name: None}) if name == "grid" else PATTERN if isinstance(differs, Pattern) else PLAIN
    assert schedules.of(differs).text() != schedules.of(usual).text()


@pytest.mark.parametrize(("executor", "name"), REFUSED)
def test_what_an_executor_cannot_obey_is_refused_with_the_cure(executor, name):
    with pytest.raises(UsageError, match=f"p: `{name} = .*`: --on {executor} cannot apply it") as refusal:
        check_obeyed(EXECUTORS[executor], replace(PLAIN, **{name: UNUSUAL[name]}))
    assert f"modelled = {{ {name} = ... }}" in str(refusal.value)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_an_executor_obeys_is_not_refused(executor):
    obeyed = {name: UNUSUAL[name] for name in EXECUTORS[executor].obeys}
    check_obeyed(EXECUTORS[executor], replace(PLAIN, **obeyed))


def test_the_simulator_is_told_every_condition():
    # Of a collective, the path or the machine has a rate of computes.
    told = How(issue="window(2)", path="other", skew="late:1:2us", placement=(1, 0), arithmetic=False)
    assert schedules.how(replace(PLAIN, **UNUSUAL)) == told


def test_threads_are_told_what_they_obey(monkeypatch):
    told = {}

    def run(schedule, options):
        told.update(options)
        raise UsageError("seen")

    native = SimpleNamespace(cpus=lambda: [7, 9], run_threads=run)
    monkeypatch.setattr(schedules, "_native", native)
    obeyed = {name: UNUSUAL[name] for name in EXECUTORS["threads"].obeys}
    with pytest.raises(UsageError, match="seen"):
        schedules.run_threads(None, replace(PLAIN, op="max", **obeyed))
    assert told == {"dtype": "f32", "op": "max", "skew": "late:1:2us", "issue": "window(2)", "cpus": [9, 7]}


def test_mpi_is_told_what_it_obeys():
    told = {}

    def run(schedule, options):
        told.update(options)
        return {}

    def group(members):
        told["members"] = members
        return SimpleNamespace(run=run), ()

    obeyed = {name: UNUSUAL[name] for name in EXECUTORS["mpi"].obeys}
    experiment = replace(PLAIN, ranks=2, op="max", **obeyed)
    world = SimpleNamespace(rank=0, group=group)
    mpi_ranks._answer(
        world, {"experiment": experiment.to_json(), "sampling": Sampling(1, None, 0.1, None, seed=0), "folder": None}
    )
    assert told["members"] == (1, 0)
    assert (told["skew"], told["issue"], told["dtype"], told["op"]) == ("late:1:2us", "window(2)", "f32", "max")


def test_a_collective_of_the_mpi_library_obeys_no_issue_policy():
    experiment = replace(PLAIN, algorithm="mpi-native", ranks=2, issue="window(2)")
    world = SimpleNamespace(rank=0)
    answer = mpi_ranks._answer(
        world, {"experiment": experiment.to_json(), "sampling": Sampling(1, None, 0.1, None, seed=0), "folder": None}
    )
    assert "the library's own collective has its own issue policy, not `issue = window(2)`" in str(answer.error)


HEAD = '[suite]\nformat = 1\nname = "own"\nsummary = "s"\n[[part]]\nname = "steered"\nsummary = "s"\nsizes = ["4K"]\n'


@pytest.mark.parametrize(("axis", "shown"), [('path = "other"', "path = other"), ("arithmetic = false",) * 2])
def test_a_suite_is_refused_on_threads_and_kept_to_described_machines(axis, shown, tmp_path):
    common = 'collectives = ["allreduce"]\nalgorithms = ["ring"]\nranks = [2]\n'
    (tmp_path / "own.toml").write_text(f"{HEAD}{common}{axis}\n")
    result = invoke("dissect", str(tmp_path / "own.toml"), "--on", "loggp,threads", "--runs", str(tmp_path / "runs"))
    assert result.status == 2
    assert f"steered: `{shown}`: --on threads cannot apply it" in result.err
    assert not (tmp_path / "runs").exists()
    kept = load.parse(f"{HEAD}{common}modelled = {{ {axis} }}\n", "own.toml")
    (measured,) = expand_on(kept, resolve_one("threads"), "full")
    (modelled,) = expand_on(kept, resolve_one("loggp"), "full")
    assert (measured.path, measured.arithmetic) == (None, True)
    assert (modelled.path, modelled.arithmetic) != (None, True)


def test_a_pattern_obeys_its_root_and_skew():
    text = HEAD + 'pattern = "hot_spot"\nranks = [4]\nroot = 2\nskew = "late:1:2us"\n'
    (found,) = expand_on(load.parse(text, "own.toml"), resolve_one("loggp"), "full")
    assert (found.root, found.skew) == (2, "late:1:2us")
    assert set(schedules.of(found).operations()["to"].tolist()) == {2}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('pattern = "pairs"\nop = "max"\n', "`op`: a pattern has no algorithms and combines nothing; omit it"),
        ('pattern = "pairs"\nalgorithms = ["ring"]\n', "`algorithms`: a pattern has no algorithms"),
        ('collectives = ["reduce"]\nmessages = 4\n', "`messages`: only patterns have it; omit it"),
        ('collectives = ["reduce"]\nmodelled = { both_ways = true }\n', "`both_ways`: only patterns have it"),
        (
            'pattern = "pairs"\nmetrics = ["latency"]\n',
            "`latency` is half of a round trip, which only pattern `ping_pong`",
        ),
        ('collectives = ["reduce"]\nmetrics = ["bandwidth"]\n', "a collective has `alg_bw` and `bus_bw`"),
    ],
)
def test_axes_that_mean_nothing_here_are_refused(lines, said):
    with pytest.raises(lw.LinkwrightError) as refusal:
        load.parse(HEAD + lines, "own.toml")
    assert said in str(refusal.value)


def test_python_refuses_what_an_executor_ignores():
    schedule = lw.schedule("allreduce", "ring", ranks=2, size="4K")
    with pytest.raises(UsageError, match="`skew = late:1:2us`: --on reference cannot apply it"):
        lw.run(schedule, on="reference", skew="late:1:2us")

"""Steps of training: cut into compute, waiting and communication; predicted from one rank; refusals with their cure.

A stand-in for the Python that has PyTorch answers with steps of known length, so every number can be derived by hand.
The last tests train for real, where there is PyTorch.
"""

import ast
import json
import stat
import sys

import pytest

from linkwright import _native
from linkwright.base.errors import ExecError, WaivedError
from linkwright.executors import probes, training
from linkwright.executors.probes import training_step
from linkwright_cases import invoke

MS = 1e6
# What the stand-in's steps take: computing before and after the sum, and the sum of 4 MiB of gradients.
BEFORE, AFTER, SUM, GRADIENT = 30 * MS, 5 * MS, 11 * MS, 4 << 20
BESIDE = 8 * MS  # by which another process lengthens the first part
# Its exchanges: 0.05 ms, 1 GB/s both ways, sums at 4 GB/s. A ring of two sends each half twice, and sums it once.
LATENCY, RATE, SUMS = 0.05 * MS, 1.0, 4.0
RING = 2 * (LATENCY + GRADIENT / 2 / RATE) + GRADIENT / 2 / SUMS
STAND_IN = f"""#!{sys.executable}
import json, sys, time
if sys.argv[1] == "-c":
    sys.exit(0)
asked = json.loads(sys.argv[2])
while asked["steps"] == sys.maxsize:
    time.sleep(1)
if asked["model"] == "vgg":
    sys.exit("out of memory")
several = asked["ranks"] > 1
late = asked["delay_ms"] * {MS}
before = {BEFORE} + {BESIDE} * (asked["ranks"] + asked["neighbours"] > 1)
own = late if asked["rank"] == asked["delayed"] else 0
step = before + {AFTER} + late + {SUM} * several
stamps = []
for number in range(9):
    begin = 1e9 + number * step
    reduced = begin + before + late + {SUM} * several
    stamps.append([begin, begin + before + own, reduced, reduced + {AFTER}])
large = 8 << 20
message = {{"small_ns": [{LATENCY}] * 3, "large_ns": [large / {RATE}] * 3, "sum_ns": [large / {SUMS}] * 3}}
found = {{"torch": "none", "pinned": True, "gradient_bytes": {GRADIENT}, "warm_up": 3, "stamps": stamps}}
print(json.dumps({{**found, "message": {{**message, "large_bytes": large}} if several else None}}))
"""
TWO = pytest.mark.skipif(len(_native.cpus()) < 2, reason="two ranks need two processors, and there is one")
QUICK = ("--time-budget", "6s", "--target", "90%")


@pytest.fixture(autouse=True)
def asked_again():
    training.python.cache_clear()
    yield
    training.python.cache_clear()


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    program = tmp_path / "python-with-torch"
    program.write_text(STAND_IN)
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv(training.ENVIRONMENT, str(program))
    monkeypatch.chdir(tmp_path)


def trained(*asked):
    return training.train(training.TrainingJob(*asked), _native.cpus(), 1.0, None, 0)


@TWO
def test_a_step_is_cut_at_the_first_and_the_last_rank_that_are_ready(stand_in):
    found = trained("mlp", 8, 2, 20, 1)
    assert set(found.waiting_ns) == {20 * MS}
    assert set(found.communication_ns) == {SUM}
    assert set(found.compute_ns) == {BEFORE + BESIDE + AFTER}
    assert set(found.step_ns) == {BEFORE + BESIDE + AFTER + 20 * MS + SUM}
    assert (found.late_rank, found.late_ns) == (1, 20 * MS)
    alone = trained("mlp", 8, 1)
    assert set(alone.step_ns) == set(alone.compute_ns) == {BEFORE + AFTER}


@TWO
def test_several_ranks_are_predicted_from_one_and_a_late_rank_is_named(stand_in):
    late = ("--axis", "delay_ms=0,20", "--axis", "delayed=0")
    run = invoke("run", "training_step", "--model", "mlp", "--ranks", "1,2", *late, *QUICK, "--json")
    assert run.status == 0, run.err
    rows = json.loads(run.out)["rows"]
    assert {row["value"] for row in rows if row["metric"] == "late_rank" and "delay_ms=20" in row["axes"]} == {0}
    assert {row["ranks"] for row in rows} == {1, 2}
    result = invoke("predict", "training_step", "--json")
    assert result.status == 0, result.err
    healthy, delayed = json.loads(result.out)["steps"]
    assert healthy["predicted_ns"]["compute"] == pytest.approx(BEFORE + AFTER)
    assert healthy["predicted_ns"]["communication"] == pytest.approx(RING, rel=1e-3)
    assert healthy["error"] == pytest.approx((BEFORE + AFTER + RING) / (BEFORE + BESIDE + AFTER + SUM) - 1, rel=1e-3)
    assert (healthy["late_rank"], delayed["late_rank"]) == (None, 0)
    assert delayed["measured_ns"]["waiting"] == 20 * MS
    shown = invoke("predict", "training_step").out
    assert "`--axis neighbours=0,1` measures it" in " ".join(shown.split())
    assert "mlp on 2 ranks: rank 0 is late by 20 ms in each step" in shown
    other = invoke("predict", "training_step", "--on", "loggp", "--json")
    assert json.loads(other.out)["messages"] == "allreduce/ring on loggp"


@TWO
def test_one_rank_beside_a_neighbour_stands_for_one_of_two(stand_in):
    invoke(
        "run", "training_step", "--model", "mlp", "--ranks", "1,2", "--axis", "neighbours=0,1", "--time-budget", "15s"
    )
    (step,) = json.loads(invoke("predict", "training_step", "--json").out)["steps"]
    assert step["predicted_ns"]["compute"] == pytest.approx(BEFORE + BESIDE + AFTER)
    assert step["error"] == pytest.approx((RING - SUM) / (BEFORE + BESIDE + AFTER + SUM), rel=1e-3)
    assert step["neighbours"] == 1


@TWO
def test_what_gave_no_value_is_named_next_to_what_did(stand_in):
    invoke("run", "training_step", "--model", "mlp,vgg", "--ranks", "1,2", *QUICK)
    answer = json.loads(invoke("predict", "training_step", "--json").out)
    assert [step["model"] for step in answer["steps"]] == ["mlp"]
    assert [("vgg" in row["experiment"], row["status"]) for row in answer["without_value"]] == [(True, "failed")] * 2
    assert "rank 0 ended with status 1: out of memory" in " ".join(invoke("predict", "training_step").out.split())


def test_without_a_step_of_one_rank_the_command_that_measures_it_is_named(stand_in):
    assert invoke("run", "training_step", "--model", "mlp", *QUICK).status == 0
    result = invoke("predict", "training_step")
    assert (result.status, "no step of several ranks to predict; measure with --ranks 1,2" in result.err) == (2, True)
    if len(_native.cpus()) > 1:
        assert invoke("run", "training_step", "--model", "mlp", "--ranks", "2", *QUICK).status == 0
        assert "--model mlp --axis batch=8 --ranks 1,2`" in invoke("predict", "training_step").err
    assert invoke("run", "round_trip", "--ranks", "1", *QUICK).status == 0
    assert "has no step of training; `linkwright run training_step" in invoke("predict", "training_step").err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "resnt"), "did you mean `resnet`"),
        (("--ranks", "4096"), "--ranks 4096: training_step gives each rank a processor of its own"),
        (("--ranks", "0"), "--ranks"),
        (("--axis", "model=mlp", "--model", "vgg"), "--axis model: is given twice"),
    ],
)
def test_what_cannot_be_trained_is_refused_once(stand_in, arguments, said):
    result = invoke("run", "training_step", *arguments)
    assert result.status == 2
    assert said in result.err
    assert result.err.count("linkwright:") == 1


def test_only_the_probe_takes_a_model(stand_in):
    assert "--model: only probes have it" in invoke("run", "allreduce", "--model", "mlp").err
    assert "axis of probe matmul `model`" in invoke("run", "matmul", "--model", "mlp").err


@pytest.mark.parametrize(
    ("named", "said"),
    [("/nowhere/python", "is no program; name a Python with PyTorch"), (sys.executable, "has no PyTorch; install it")],
)
def test_a_python_without_torch_is_named_with_the_cure(monkeypatch, named, said):
    monkeypatch.setattr("shutil.which", lambda name: "/bin/false" if name == sys.executable else None)
    monkeypatch.setenv(training.ENVIRONMENT, named)
    result = invoke("run", "training_step")
    assert (result.status, said in result.err) == (2, True)
    with pytest.raises(WaivedError, match="training_step: waived"):
        probes.measure("training_step", probes.find("training_step").assignment({}), probes.Setting((0,), 0.1))


def test_no_torch_at_all_says_how_to_get_it(monkeypatch):
    monkeypatch.delenv(training.ENVIRONMENT, raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(WaivedError, match=r"'\.\[torch\]'.* LINKWRIGHT_TORCH_PYTHON \(/usr/bin/python3"):
        training.python()


def test_a_rank_that_fails_ends_the_others_and_says_why(stand_in):
    with pytest.raises(ExecError, match="vgg on 1 ranks: rank 0 ended with status 1: out of memory"):
        trained("vgg", 8, 1)


def test_the_models_of_a_rank_are_those_of_the_probe():
    tree = ast.parse(training.RANK.read_text(encoding="utf-8"))
    models = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "MODELS")
    assert tuple(key.value for key in models.keys) == training_step.MODELS


def torch_missing():
    try:
        training.python()
    except WaivedError as error:
        return str(error)
    return None


@TWO
@pytest.mark.parametrize("late", [0, 1])
def test_ranks_train_and_the_one_that_sleeps_is_late(late):
    if missing := torch_missing():
        pytest.skip(missing)
    found = trained("transformer-tiny", 1, 2, 300, late)
    assert (found.step_ns > 0).all()
    assert found.gradient_bytes % 4 == 0
    assert found.late_rank == late
    assert found.late_ns > 100 * MS
    assert found.step_ns == pytest.approx(found.compute_ns + found.waiting_ns + found.communication_ns)

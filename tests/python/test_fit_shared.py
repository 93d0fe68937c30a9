"""`linkwright fit` of a host whose ranks are threads: an invented host found again, levels, states of a machine."""

import json

import numpy as np
import pytest

from fit_cases import constant, like, measured, stored, swept
from linkwright import _native
from linkwright.advise.fit import hierarchy, points, prediction, shared
from linkwright.advise.fit.hierarchy import ANY_TWO, CacheLevel, Hierarchy
from linkwright.advise.fit.points import Point
from linkwright.advise.fit.protocol import Protocol
from linkwright.ask.question import Collective
from linkwright.base.errors import StoreError
from linkwright.store.record import Record
from linkwright_cases import invoke

CACHES = (CacheLevel("L1d", 32 << 10, False), CacheLevel("L2", 1 << 20, False), CacheLevel("L3", 32 << 20, True))
FLAT = Hierarchy((), 2, CACHES)
TWO_PACKAGES = Hierarchy((("package", 2),), 4, CACHES)


def known(levels: Hierarchy, seed: int) -> shared.Shared:
    """An invented host: plausible numbers, each drawn within a factor of 1.5 either way."""
    drawn = np.random.default_rng(seed)
    numbers = {"start": 12.0, "receive": 10.0, "gap": 40.0, "copy_start": 12.0, "combine_start": 15.0}
    numbers |= {"cache0": 0.01, "cache1": 0.02, "cache2": 0.04, "cache3": 0.09, "combine_rate": 0.12}
    for farther, distance in enumerate(levels.distances):
        far = 1 + 1.5 * farther
        at_nearest = {"latency": 80, "crossing": 50, "other_start": 60}
        at_nearest |= {"other_read": 0.2, "other_write": 0.1, "other_lost": 0.08}
        numbers |= {f"{key}@{distance}": value * far for key, value in at_nearest.items()}
    scale = {key: float(np.exp(drawn.uniform(-0.4, 0.4))) for key in ("time", "byte")}
    fits = {}
    for key, value in numbers.items():
        value *= scale["byte" if shared._is_rate(key) else "time"] * float(np.exp(drawn.uniform(-0.2, 0.2)))
        fits[key] = constant(value)
    return shared.Shared("invented", "an invented host", "r", levels.ranks, levels, 1.0, fits)


def measured_on(model: shared.Shared, noise: float) -> list[Point]:
    """What a host exactly like the model would have given."""
    ends = model.hierarchy.ranks
    trips = (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20)
    rows = (8, 64, 512, 4 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20)
    sizes = (64, 512, 4096, 32768, 262144)
    algorithms = ("allreduce/ring", "allreduce/recursive_doubling_latency", "broadcast/scatter_allgather")
    cases = swept(sorted({2, ends}), sorted({1, ends - 1}), trips, rows, sizes, algorithms)
    return measured(like(model, Protocol(starts_together=False)), cases, noise)


@pytest.mark.parametrize(("levels", "seed"), [(FLAT, 1), pytest.param(TWO_PACKAGES, 2, marks=pytest.mark.slow)])
def test_an_invented_host_is_found_again(levels, seed):
    truth, protocol = known(levels, seed), Protocol(starts_together=False)
    data = measured_on(truth, noise=0.0)
    found = shared.fit(data, "invented", "an invented host", "r", levels, protocol)
    for distance in levels.distances:
        for key in ("latency", "crossing", "other_start"):
            fit, true = found.numbers[f"{key}@{distance}"], truth.numbers[f"{key}@{distance}"].value
            assert fit.value == pytest.approx(true, rel=0.15), (key, distance)
            assert fit.low <= fit.value <= fit.high
        # Between two ranks each byte of the other is read and written once: only the sum shows.
        way = [sum(model.numbers[f"other_{w}@{distance}"].value for w in ("read", "write")) for model in (found, truth)]
        assert way[0] == pytest.approx(way[1], rel=0.1)
    predictions = prediction.predict(found, data, protocol)
    assert np.median(prediction.errors(predictions, seen=False)) < 0.02
    assert np.percentile(prediction.errors(predictions, seen=False), 90) < 0.1


@pytest.mark.slow
def test_noise_stays_noise():
    data, protocol = measured_on(known(FLAT, 3), noise=0.1), Protocol(starts_together=False)
    found = shared.fit(data, "invented", "an invented host", "r", FLAT, protocol)
    predictions = prediction.predict(found, data, protocol)
    assert np.median(prediction.errors(predictions, seen=False)) < 0.12


def test_the_file_has_levels_and_costs_for_each():
    model = known(TWO_PACKAGES, 4)
    machine = _native.Machine.parse(model.text(), "invented.toml")
    numbers = {n["key"]: n for n in machine.numbers()}
    assert numbers["fabric.level[0].latency"]["value"] != numbers["fabric.latency"]["value"]
    assert numbers["path.message.memory.other[0].start"]["status"] == "fitted"
    assert numbers["path.message.memory.cache[1].size"]["source"] == "L2, as the kernel says it"
    assert 'name = "package"\ncount = "any"' in model.text()


def test_too_few_points_name_the_cure():
    few = [point for point in measured_on(known(FLAT, 1), 0.0) if isinstance(point.question, Collective)]
    with pytest.raises(StoreError, match="no ping-pongs between two ranks are seen; run the suite `fit`"):
        shared.fit(few, "x", "x", "r", FLAT, Protocol(starts_together=False))
    with pytest.raises(StoreError, match=r"3 ping-pongs.*12 are needed"):
        shared.fit([p for p in few if p.seen][:3], "x", "x", "r", FLAT, Protocol(starts_together=False))


# --- how the times are taken -------------------------------------------------------------------------------


# A broadcast is repeated apart, so its receiver begins one flag before its root. An exchange falls into step.
@pytest.mark.parametrize(("collective", "releases"), [("broadcast", 1), ("allgather", 0)])
def test_ranks_leave_a_barrier_one_after_the_other(collective, releases):
    model = known(FLAT, 1)
    one = Collective("p", "linear", 2, 8, "u8", collective=collective)
    together, repeated = (like(model, Protocol(starts_together=flag))(one) for flag in (True, False))
    assert repeated == pytest.approx(together + releases * model.release_ns, rel=0.01)


# --- levels ---------------------------------------------------------------------------------------------------


def environment(packages: int, groups: int, cores: int, threads: int = 1) -> dict:
    """A host as `environment.json` describes it."""
    total = packages * groups * cores
    rows = []
    for cpu in range(total * threads):
        core = cpu % total
        group = core // cores
        siblings = ",".join(str(core + total * t) for t in range(threads))
        shared_by = ",".join(str(group * cores + c + total * t) for t in range(threads) for c in range(cores))
        caches = [
            ("1", "Data", "32K", siblings),
            ("2", "Unified", "1024K", siblings),
            ("3", "Unified", "32768K", shared_by),
        ]
        rows.append({
            "cpu": cpu, "package": str(group // groups), "core": str(core), "siblings": siblings,
            "caches": [dict(zip(("level", "type", "size", "shared_cpu_list"), cache, strict=True)) for cache in caches],
        })  # fmt: skip
    return {"topology": rows, "affinity": list(range(total * threads))}


@pytest.mark.parametrize(
    ("host", "levels", "ranks"),
    [
        (environment(1, 1, 2), (), 2),
        (environment(2, 1, 4), (("package", 2),), 8),
        (environment(2, 2, 4, threads=2), (("package", 2), ("cache", 2)), 16),
        (environment(1, 4, 2), (("cache", 4),), 8),
    ],
)
def test_the_levels_of_a_host(host, levels, ranks):
    found = hierarchy.of_host(host)
    assert (found.levels, found.ranks) == (levels, ranks)
    assert [(cache.name, cache.shared) for cache in found.caches] == [("L1d", False), ("L2", False), ("L3", True)]


def test_what_two_ranks_share():
    found = hierarchy.of_host(environment(2, 2, 4))
    assert [found.shared(0, other) for other in (1, 4, 8)] == ["cache", "package", ANY_TWO]
    assert found.distances == ["cache", "package", ANY_TWO]


def test_hosts_of_a_cluster():
    assert hierarchy.of_hosts(["a", "a", "b", "b"]).levels == (("host", 2),)
    assert hierarchy.of_hosts(["a", "b", "a", "b"]).levels == ()  # ranks dealt in turn
    assert hierarchy.of_hosts(["a", "a"]).levels == ()


# --- states of a machine -----------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    """A run whose machine is near in a third of the launches and three times as far in the others."""
    far, records = measured_on(known(FLAT, 1), noise=0.0), []
    for k, point in enumerate(far):
        for launch in range(3):
            state = 3 if launch == k % 3 else 1
            probe = 400 / state
            records.append(Record(
                experiment=point.question.key, launch=launch, values_ns=[point.time_ns / state] * 2, first_ns=1.0,
                canary_ns=(probe, 1.1 * probe),
            ))  # fmt: skip
    about, half = environment(1, 1, 2), lambda point: point.time_ns / 2
    return stored(tmp_path / "runs", far, "Box", "threads", about, records, half)


def test_only_launches_in_the_most_frequent_state_count(run):
    far = {point.question.key: point.time_ns for point in measured_on(known(FLAT, 1), noise=0.0)}
    judged = points.points(run)
    assert {p.question.key for p in judged} == far.keys()
    assert all(p.time_ns == pytest.approx(far[p.question.key]) for p in judged)


def test_probes_of_one_state_are_not_divided():
    drawn = np.random.default_rng(1)
    assert points.state_of([tuple(200 * drawn.lognormal(0, 0.1, 2)) for _ in range(200)]) is None
    assert points.state_of([]) is None


def test_the_verb_writes_a_host_of_coherent_caches(run):
    result = invoke("fit", "--runs", str(run.folder.parent), "--name", "box")
    assert result.status == 0, result.err
    text = (run.folder / "machines" / "box.toml").read_text()
    assert 'kind = "coherent"' in text
    kept = json.loads((run.folder / "fit.json").read_text())
    errors = [abs(p["predicted_ns"] / p["measured_ns"] - 1) for p in kept["predictions"] if not p["seen"]]
    assert np.median(errors) < 0.05
    simulated = invoke(
        "simulate", "allreduce", "-a", "ring", "--on", str(run.folder / "machines" / "box.toml"), "-p", "4"
    )
    assert simulated.status == 0, simulated.err

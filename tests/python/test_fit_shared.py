"""`linkwright fit` of a host whose ranks are threads: an invented host found again, levels, states of a machine."""

import json

import numpy as np
import pytest

from linkwright import _native
from linkwright.errors import StoreError
from linkwright.experiment import Experiment
from linkwright.models import hierarchy, points, prediction, shared
from linkwright.models.hierarchy import ANY_TWO, CacheLevel, Hierarchy
from linkwright.models.points import SEEN, Point
from linkwright.models.protocol import Protocol
from linkwright.models.regimes import Fit
from linkwright.store import run as runs
from linkwright.store import schema
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
        numbers |= {
            f"latency@{distance}": 80 * far,
            f"crossing@{distance}": 50 * far,
            f"other_start@{distance}": 60 * far,
        }
        numbers |= {f"other_read@{distance}": 0.2 * far, f"other_write@{distance}": 0.1 * far}
        numbers[f"other_lost@{distance}"] = 0.08 * far
    scale = {key: float(np.exp(drawn.uniform(-0.4, 0.4))) for key in ("time", "byte")}
    fits = {}
    for key, value in numbers.items():
        value *= scale["byte" if shared._is_rate(key) else "time"] * float(np.exp(drawn.uniform(-0.2, 0.2)))
        fits[key] = Fit(value, value, value)
    return shared.Shared("invented", "an invented host", "r", levels.ranks, levels, 1.0, fits)


def experiments(levels: Hierarchy):
    for other in sorted({1, levels.ranks - 1}):
        for size in (8, 64, 512, 4 << 10, 32 << 10, 256 << 10, 2 << 20):
            yield Experiment("latency_by_size", None, "ping_pong", 2, size, "u8", placement=(0, other))
        for size in (8, 64, 512, 4 << 10, 16 << 10, 128 << 10, 1 << 20, 4 << 20):
            yield Experiment("bandwidth", None, "pairs", 2, size, "u8", messages=16, placement=(0, other))
    for ranks in sorted({2, levels.ranks}):
        for key in (*SEEN, "allreduce/ring", "allreduce/recursive_doubling_latency", "broadcast/scatter_allgather"):
            collective, algorithm = key.split("/")
            op = "sum" if "reduce" in collective else None
            for size in (0,) if collective == "barrier" else (64, 512, 4096, 32768, 262144):
                yield Experiment("collectives", collective, algorithm, ranks, size, "f32", op)


def measured_on(model: shared.Shared, noise: float, seed: int = 1) -> list[Point]:
    """What a host exactly like the model would have given, as `points` would judge it."""
    machine, protocol, drawn = model.machine(), Protocol(starts_together=False), np.random.default_rng(seed)
    found = []
    for experiment in experiments(model.hierarchy):
        time_ns = protocol.time_ns(experiment, machine, model.release_ns, model.kind) * drawn.lognormal(0, noise)
        found.append(Point(experiment, time_ns, max(0.02, noise) * time_ns, seen=False))
    sizes = {}
    for point in found:
        sizes.setdefault(point.sweep, []).append(point.experiment.size_bytes)
    return [points._judged(point, sorted(sizes[point.sweep])) for point in found]


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
    few = [point for point in measured_on(known(FLAT, 1), 0.0) if point.experiment.collective]
    with pytest.raises(StoreError, match="no ping-pongs between two ranks are seen; run the suite `fit`"):
        shared.fit(few, "x", "x", "r", FLAT, Protocol(starts_together=False))
    with pytest.raises(StoreError, match=r"3 ping-pongs.*12 are needed"):
        shared.fit([p for p in few if p.seen][:3], "x", "x", "r", FLAT, Protocol(starts_together=False))


# --- how the times are taken -------------------------------------------------------------------------------


def test_who_waited_last_leaves_the_barrier_first():
    """A broadcast apart: its receiver begins one flag before its root."""
    model = known(FLAT, 1)
    one = Experiment("p", "broadcast", "linear", 2, 8, "u8")
    alone = Protocol().time_ns(one, model.machine(), model.release_ns, model.kind)
    apart = Protocol(starts_together=False).time_ns(one, model.machine(), model.release_ns, model.kind)
    assert apart == pytest.approx(alone + model.release_ns, abs=0.01)


def test_repetitions_fall_into_step():
    """An exchange back to back takes as long each time, whoever began."""
    model = known(FLAT, 1)
    one = Experiment("p", "allgather", "linear", 2, 8, "u8")
    alone = Protocol().time_ns(one, model.machine(), model.release_ns, model.kind)
    in_a_row = Protocol(starts_together=False).time_ns(one, model.machine(), model.release_ns, model.kind)
    assert in_a_row == pytest.approx(alone, rel=0.01)


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
    made = runs.create(tmp_path / "runs", "fit", "", {}, environment(1, 1, 2))
    far = measured_on(known(FLAT, 1), noise=0.0)
    rows, records = [], []
    for k, point in enumerate(far):
        e = point.experiment
        rows.append(schema.row(
            run=made.id, machine="Box", executor="threads", metric="time",
            value=point.time_ns / 2, unit="ns", status="ok", placement="topology", **e.columns(),
        ))  # fmt: skip
        for launch in range(3):
            state = 3 if launch == k % 3 else 1
            probe = 400 / state
            records.append(Record(
                experiment=e.key, launch=launch, values_ns=[point.time_ns / state] * 2, first_ns=1.0,
                canary_ns=(probe, 1.1 * probe),
            ))  # fmt: skip
    made.write_results(rows, runs.samples_table(made, records))
    made.mark("done")
    return made


def test_only_launches_in_the_most_frequent_state_count(run):
    far = {point.experiment.key: point.time_ns for point in measured_on(known(FLAT, 1), noise=0.0)}
    judged = points.points(run)
    assert {p.experiment.key for p in judged} == far.keys()
    assert all(p.time_ns == pytest.approx(far[p.experiment.key]) for p in judged)


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

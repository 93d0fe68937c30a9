"""Groups of pairs and levels of a latency curve, on made-up matrices and curves whose truth is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from linkwright.base.stats import near, steps
from linkwright.store.topology import Cache, Topology, cpu_list

KIB, MIB = 1024, 1024**2


def machine(packages: int = 2, cores: int = 4, threads: int = 2) -> dict:
    """Packages of cores of hardware threads; an L3 for every two cores."""
    rows = []
    for cpu in range(packages * cores * threads):
        core, package = cpu // threads, cpu // (threads * cores)
        of_core = f"{core * threads}-{core * threads + threads - 1}"
        of_l3 = f"{core // 2 * 2 * threads}-{(core // 2 * 2 + 2) * threads - 1}"
        caches = [
            {"level": "1", "type": "Data", "size": "32K", "shared_cpu_list": of_core},
            {"level": "1", "type": "Instruction", "size": "64K", "shared_cpu_list": of_core},
            {"level": "3", "type": "Unified", "size": "16384K", "shared_cpu_list": of_l3},
        ]
        rows.append(
            {"cpu": cpu, "package": str(package), "core": str(core % cores), "siblings": of_core, "caches": caches}
        )
    return {"topology": rows}


TIMES = {"same core": 8.0, "same cache (L3)": 25.0, "same package": 80.0, "other package": 210.0}


def matrix(topology: Topology, noise: float = 0.02, seed: int = 5) -> dict[tuple[str, str], float]:
    """Latency of every ordered pair by what the two share, with noise."""
    random = np.random.default_rng(seed)
    names = [f"cpu {cpu}" for cpu in topology.rows]
    pairs = itertools.permutations(names, 2)
    return {(a, b): TIMES[topology.relation(a, b)] * float(random.lognormal(0, noise)) for a, b in pairs}


# --- topology ---------------------------------------------------------------------------------------


def test_what_two_processors_share():
    topology = Topology(machine())
    found = [topology.relation("cpu 0", f"cpu {other}") for other in (1, 2, 5, 8)]
    assert found == ["same core", "same cache (L3)", "same package", "other package"]
    assert (topology.packages, topology.cores) == (2, 8)
    assert topology.caches == [Cache("L1d", 32 * KIB, 8, 2), Cache("L3", 16 * MIB, 4, 4)]


def test_what_the_kernel_leaves_out_is_unknown():
    topology = Topology({"topology": [{"cpu": 0, "package": None}, {"cpu": 1, "package": None}]})
    assert topology.relation("cpu 0", "cpu 1") is None
    assert topology.relation("cpu 0", "tile (1,1)") is None
    assert (topology.packages, topology.cores, topology.caches) == (0, 0, [])
    assert cpu_list("0-2,8") == {0, 1, 2, 8}


# --- groups of pairs --------------------------------------------------------------------------------


def test_groups_are_named_by_what_their_pairs_share():
    topology = Topology(machine())
    groups = near.near_groups(near.both_ways(matrix(topology)), topology.relation, near.GAP_MEASURED)
    assert [group.name for group in groups] == list(TIMES)
    # 8 cores of 2; in each of 4 L3s 2 x 2; in each of 2 packages 4 x 4; between packages 8 x 8.
    assert [len(group.cluster.members) for group in groups] == [8, 16, 32, 64]
    assert [group.cluster.median for group in groups] == pytest.approx(list(TIMES.values()), rel=0.02)


def test_a_pair_far_from_its_group_is_an_anomaly():
    topology = Topology(machine())
    values = near.both_ways(matrix(topology))
    values["cpu 0", "cpu 5"] = 131.0  # others of the same package take 80
    *groups, odd = near.near_groups(values, topology.relation, near.GAP_MEASURED)
    assert not any(group.anomaly for group in groups)
    assert (odd.name, odd.cluster.members, odd.anomaly) == ("same package", (("cpu 0", "cpu 5"),), True)
    assert odd.typical == pytest.approx(80.0, rel=0.02)


def test_what_the_kernel_does_not_tell_is_numbered_by_distance():
    topology = Topology(machine(packages=1, cores=8))
    values = near.both_ways(matrix(topology))
    for pair in values:
        if topology.relation(*pair) == "same package" and "cpu 0" in pair:
            values[pair] *= 1.5  # a die of its own
    groups = near.near_groups(values, topology.relation, near.GAP_MEASURED)
    assert [group.name for group in groups][2:] == ["same package, distance 1", "same package, distance 2"]


def test_levels_of_a_model_are_numbered():
    names = [f"tile {i}" for i in range(8)]
    values = {(a, b): 100 + 20.0 * ((j - i) % 8) for (i, a), (j, b) in itertools.permutations(enumerate(names), 2)}
    groups = near.near_groups(values, lambda a, b: None, near.GAP_MODELLED)
    assert [group.name for group in groups] == [f"level {i}" for i in range(1, 8)]
    assert [group.cluster.median for group in groups] == [100 + 20.0 * hops for hops in range(1, 8)]


def test_symmetry():
    values = {("a", "b"): 10.0, ("b", "a"): 10.4, ("a", "c"): 10.0, ("c", "a"): 20.0, ("b", "c"): 10.0}
    found = near.symmetry(values, 0.15)
    assert (found.compared, found.uneven, found.worst, found.worst_ratio) == (2, 1, ("a", "c"), 2.0)
    assert near.symmetry({("a", "b"): 1.0}, 0.15).worst is None


# --- levels of a curve ------------------------------------------------------------------------------


def curve(
    factor: float, caches=((32 * KIB, 1.2), (512 * KIB, 4.0), (16 * MIB, 15.0)), memory: float = 90.0, noise=0.01
):
    """Mean latency where each cache holds a share C / W of a larger working set."""
    sizes, size = [], 4.0 * KIB
    while size <= 256 * MIB:
        sizes.append(size)
        size *= factor
    random = np.random.default_rng(2)
    times = []
    for size in sizes:
        time, left = 0.0, 1.0
        for capacity, latency in caches:
            here = min(left, max(0.0, capacity / size - (1 - left)))
            time, left = time + here * latency, left - here
        times.append((time + left * memory) * float(random.lognormal(0, noise)))
    return np.array(sizes), np.array(times)


@pytest.mark.parametrize("factor", [2.0, 2**0.5])
def test_steps_stand_at_the_sizes_of_the_caches(factor):
    found = steps.levels(*curve(factor))
    assert len(found) == 4
    for level, size, latency in zip(found, (32 * KIB, 512 * KIB, 16 * MIB), (1.2, 4.0, 15.0), strict=False):
        assert size / 1.5 <= level.end_bytes <= 1.5 * size
        assert level.latency == pytest.approx(latency, rel=0.2)
    assert found[-1].end_bytes is None
    assert found[-1].latency == pytest.approx(90, rel=0.1)


def test_a_flat_curve_is_one_level():
    sizes = 4.0 * KIB * 2 ** np.arange(10)
    (level,) = steps.levels(sizes, np.random.default_rng(1).lognormal(np.log(6.0), 0.02, 10))
    assert (level.first_bytes, level.last_bytes, level.end_bytes) == (sizes[0], sizes[-1], None)


def test_wide_intervals_hide_small_steps():
    sizes = 4.0 * KIB * 2 ** np.arange(8)
    times = np.array([10.0] * 4 + [15.0] * 4)
    assert len(steps.levels(sizes, times)) == 2
    assert len(steps.levels(sizes, times, errors=0.5 * times)) == 1


def test_too_few_points_show_no_level():
    assert steps.levels(np.array([1.0, 2.0, 4.0]), np.array([1.0, 1.0, 9.0])) == []

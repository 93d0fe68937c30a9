"""What logs of MPI libraries are compared with: the fastest algorithm that one of the libraries has."""

import pytest

from linkwright import _native, machines
from linkwright.libraries import mpi
from linkwright.machines import Variant
from linkwright_cases import invoke


@pytest.fixture(scope="module")
def cluster():
    return machines.load("leonardo-mpi", Variant(16, "hdr-hosts"))


def test_every_algorithm_is_one_of_the_registry():
    known = {entry["key"] for entry in _native.algorithms()}
    assert {f"{collective}/{name}" for collective, names in mpi.ALGORITHMS.items() for name in names} <= known
    assert {f"{collective}/{name}" for collective, name in mpi.LONGEST} <= known


@pytest.mark.parametrize(
    ("collective", "size", "algorithm"),
    [("allreduce", 8, "recursive_doubling_latency"), ("alltoall", 16 * 8, "bruck"), ("alltoall", 16 << 20, "linear")],
)
def test_short_and_long_vectors_have_their_own_algorithm(cluster, collective, size, algorithm):
    assert mpi.chosen(cluster, collective, 16, size, 4) == algorithm


def test_a_library_does_not_choose_what_its_decision_function_excludes(cluster):
    """By Bruck, blocks of 1 KiB would take half of the time, but no library takes it from 256 B on."""
    assert mpi.chosen(cluster, "alltoall", 16, 16 << 10, 4) != "bruck"


def test_machines_of_other_libraries_are_not_served(cluster):
    assert mpi.serves(cluster, "allreduce")
    assert not mpi.serves(cluster, "sendrecv")
    assert not mpi.serves(machines.load("hgx-h100"), "allreduce")


def test_a_small_allreduce_of_many_nodes_is_not_compared_with_a_ring(tmp_path):
    (tmp_path / "imb.txt").write_text(
        "# Benchmarking Allreduce\n# #processes = 144\n"
        "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
        "            8         1000         4.60        18.00        11.70\n"
        "         1024         1000         9.30        17.20        14.10\n"
    )
    place = ("--on", "leonardo-mpi", "--nodes", "144", "--fabric", "hdr-hosts")
    out = invoke("explain", str(tmp_path / "imb.txt"), *place).out
    assert "20.51 us" in out
    assert "recursive_doubling_latency, the fastest that MPI libraries have" in " ".join(out.split())


def test_blocks_of_osu_and_imb_are_counted_alike(tmp_path):
    """1 MiB from each of 16 ranks to each are 16 MiB, whichever tool says so."""
    rows = {1024: 27.0, 65536: 160.0, 1048576: 2150.0}
    osu = "# OSU MPI All-to-All Personalized Exchange Latency Test v7.4\n# Size       Avg Latency(us)\n"
    (tmp_path / "osu.txt").write_text(osu + "".join(f"{size} {time}\n" for size, time in rows.items()))
    imb = "# Benchmarking Alltoall\n# #processes = 16\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
    (tmp_path / "imb.txt").write_text(imb + "".join(f"{size} 9 {time} {time} {time}\n" for size, time in rows.items()))
    place = ("--on", "leonardo-mpi", "--nodes", "16", "--ranks", "16", "--fabric", "hdr-hosts")
    answers = [invoke("explain", str(tmp_path / f"{tool}.txt"), *place).out.splitlines()[3:] for tool in ("osu", "imb")]
    assert answers[0] == answers[1]
    assert any("16M" in line and "2.15 ms" in line for line in answers[0])

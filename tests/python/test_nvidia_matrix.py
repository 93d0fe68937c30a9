"""Matrices of `nvidia-smi topo -m` as nodes: columns of any name, switches, links that do not tell the GPU."""

import pytest

from linkwright.base.errors import FileError
from linkwright.formats.discovery import hosts
from linkwright.machines import gpus


def matrix(names: list[str], entry) -> str:
    """What nvidia-smi prints, `entry(i, j)` between columns i and j."""
    rows = [[name, *("X" if i == j else entry(i, j) for j in range(len(names)))] for i, name in enumerate(names)]
    return "\t".join(["", *names, "CPU Affinity", "NUMA Affinity"]) + "\n" + "\n".join("\t".join(row) for row in rows)


def test_more_links_than_a_gpu_has_are_those_of_a_switch():
    eight = [f"GPU{i}" for i in range(8)]
    rows = [[name, *("X" if name == other else "NV12" for other in eight), "0-7", "0"] for name in eight]
    matrix = "\t".join([*eight, "CPU Affinity", "NUMA Affinity"]) + "\n" + "\n".join("\t".join(row) for row in rows)
    found = hosts.recognised(matrix).read(matrix, "x", None)
    assert found.device.name == "A100"
    assert found.peers == {(f"GPU {i}", "NVSwitch"): 12 for i in range(8)}


def test_gpus_with_memory_as_numa_nodes_belong_to_their_processors():
    matrix = (
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV18\t0-71\t0,3-9,11-17\t2\n"
        "GPU1\tNV18\t X \t72-143\t1,19-25\t18\n"
    )
    found = hosts.recognised(matrix).read(matrix, "x", gpus.called("GB200"))
    assert [found.tree[f"PCIe {i}"][0] for i in (0, 1)] == ["CPU 0", "CPU 1"]


def test_ports_have_any_name():
    names = ["GPU0", "GPU1", "mlx5_bond_0", "ibp12s0", "roceP2p1s0"]
    told = matrix(names, lambda i, j: "NV12" if max(i, j) < 2 else "PIX" if {i, j} == {1, 3} else "SYS")
    found = hosts.recognised(told).read(told, "x", gpus.called("A100"))
    assert [nic.name for nic in found.nics] == names[2:]
    assert found.tree["NIC 1"][0] == found.tree["GPU 1"][0] != found.tree["GPU 0"][0]


@pytest.mark.parametrize(
    ("gpus", "entry"),
    [
        (4, lambda i, j: "NV6"),  # four GH200 each to each, or four H100: eighteen links in all
        (4, lambda i, j: "NV12" if i // 2 == j // 2 else "SYS"),  # cards with bridges: H100 NVL, A100
    ],
)
def test_links_without_switches_do_not_tell_the_gpu(gpus, entry):
    told = matrix([f"GPU{i}" for i in range(gpus)], entry)
    with pytest.raises(FileError, match="which several GPUs have; name yours"):
        hosts.recognised(told).read(told, "x", None)


def test_a_link_of_a_switch_that_is_down_is_said():
    told = matrix([f"GPU{i}" for i in range(8)], lambda i, j: "NV17" if 3 in (i, j) else "NV18")
    with pytest.raises(FileError, match="GPU 3 has 17 links to the switch, others have 18; is one down"):
        hosts.recognised(told).read(told, "x", gpus.called("H100"))

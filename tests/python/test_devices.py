"""Devices that people have: names as programs print them, boxes that are assumed, and the ways out for unknown ones."""

import tomllib
from pathlib import Path

import pytest

from linkwright import machines
from linkwright.base import registry, toml
from linkwright.formats.discovery import importing
from linkwright.libraries.settings import Condition, Refusal, settle
from linkwright.machines import gpus
from linkwright_cases import invoke

LOGS = Path(__file__).parent.parent / "logs"
HOSTS = Path(__file__).parent.parent / "hosts"
# Rows whose network is not that of their machine file, and why.
OTHER_NETWORKS = {
    "GB200": "study `modern` predicts racks with leaves of 32 nodes; in the file every rack has leaves of its own",
    "GB300": "as GB200",
    "B300": "study `modern` predicts with NDR's start-ups, which are fitted to tables; those of XDR are not",
}


@pytest.mark.parametrize(
    ("printed", "name", "on"),
    [
        ("NVIDIA GeForce RTX 3090", "RTX 3090", "assumed-rtx-3090"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090", "assumed-rtx-4090"),
        ("NVIDIA GeForce RTX 5090", "RTX 5090", "assumed-rtx-5090"),
        ("NVIDIA RTX A6000", "RTX A6000", "assumed-rtx-a6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada", "assumed-rtx-6000-ada"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000", "rtx-pro-6000"),
        ("NVIDIA A40", "A40", "assumed-a40"),
        ("NVIDIA A30", "A30", "assumed-a30"),
        ("NVIDIA A10", "A10", "assumed-a10"),
        ("NVIDIA A10G", "A10", "assumed-a10"),
        ("NVIDIA L4", "L4", "assumed-l4"),
        ("NVIDIA L40", "L40", "assumed-l40"),
        ("NVIDIA L40S", "L40S", "l40s"),
        ("NVIDIA L20", "L20", "assumed-l20"),
        ("Tesla T4", "T4", "assumed-t4"),
        ("Tesla V100-SXM2-32GB", "V100", "v100"),
        ("Tesla V100-SXM3-32GB", "V100 SXM3", "assumed-v100-sxm3"),
        ("Tesla V100-PCIE-16GB", "V100 PCIe", "assumed-v100-pcie"),
        ("NVIDIA A100-SXM4-40GB", "A100", "dgx-a100"),
        ("NVIDIA A100-SXM-64GB", "A100 64GB", "a100-leonardo"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM4 80GB", "dgx-a100"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe", "assumed-a100-pcie"),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe", "assumed-a100-pcie"),
        ("NVIDIA A800-SXM4-80GB", "A800", "assumed-a800"),
        ("NVIDIA H100 80GB HBM3", "H100", "hgx-h100"),
        ("NVIDIA H100 PCIe", "H100 PCIe", "assumed-h100-pcie"),
        ("NVIDIA H100 NVL", "H100 NVL", "assumed-h100-nvl"),
        ("NVIDIA H800", "H800", "assumed-h800"),
        ("NVIDIA H20", "H20", "hgx-h100"),
        ("NVIDIA H200", "H200", "hgx-h200"),
        ("NVIDIA GH200 480GB", "GH200", "gh200-alps"),
        ("NVIDIA GB10", "GB10", "assumed-gb10"),
        ("NVIDIA B300 SXM6 AC", "B300", "b300"),
        ("NVIDIA GB300", "GB300", "gb200-nvl72"),
        ("8xH100", "H100", "hgx-h100"),
        ("AMD Instinct MI210", "MI210", "assumed-mi210"),
        ("AMD Instinct MI300A", "MI300A", "assumed-mi300a"),
        ("AMD Instinct MI300X VF", "MI300X", "mi300x"),
        ("AMD Instinct MI308X OAM", "MI308X", "assumed-mi308x"),
    ],
)
def test_a_name_as_programs_print_it_is_known(printed, name, on):
    found = gpus.named(printed)
    assert (found.name, found.on) == (name, on)


def test_the_table_is_whole():
    pci = [one for gpu in gpus.known() for one in gpu.pci]
    names = [one for gpu in gpus.known() for one in gpu.names]
    assert len(pci) == len(set(pci))
    assert len(names) == len(set(names))
    for gpu in gpus.known():
        assert bool(gpu.machine) != bool(gpu.box), gpu.name
        assert {gpu.part, gpu.pcie} | {gpu.box or gpu.pcie} <= set(registry.keys("parts"))
        assert (gpu.generation > 0) == (gpu.link_gb_per_s > 0) == (gpu.most_links > 0), gpu.name
        assert all(gpus.named(one) is gpu for one in gpu.names)


def test_nobody_changes_the_table_for_others():
    with pytest.raises(TypeError):
        toml.data_file(gpus.__file__, "gpus.toml")["H100"] = {}


def test_a_row_has_the_network_that_the_file_of_its_machine_states():
    stated = {gpu: tomllib.loads(registry.machine_path(gpu.machine).read_text()) for gpu in gpus.known() if gpu.machine}
    networks = {gpu: file["cluster"]["network"] for gpu, file in stated.items() if "cluster" in file}
    assert {gpu.name for gpu, network in networks.items() if network != gpu.fabric} == set(OTHER_NETWORKS)


@pytest.mark.parametrize("name", gpus.boxes())
def test_a_box_is_simulated_and_says_that_it_is_assumed(name):
    more = ("--nodes", "2", "--fabric", "roce-400") if machines.load(name).ranks == 1 else ()
    done = invoke("simulate", "allreduce", "--on", name, "--sizes", "1M", *more)
    assert (done.status, done.err) == (0, "")
    assert name in done.out
    assert machines.load(name).summary.startswith("ASSUMED")


def test_a_name_that_nobody_knows_gets_ways_out():
    found = settle(Condition("log", "NVIDIA Xyzzy 900", 8, 1, "allreduce"))
    assert isinstance(found, Refusal)
    assert "linkwright machines import" in found.reason
    assert "machines/gpus/gpus.toml" in found.reason
    crowded = settle(Condition("log", "NVIDIA GeForce RTX 4090", 10, 1, "allreduce"))
    assert isinstance(crowded, Refusal)
    assert crowded.reason.startswith("10 ranks on a node, but assumed-rtx-4090 has 8 GPUs; how many")
    # A box goes by the name that says that it is assumed.
    assert "did you mean `assumed-rtx-4090`" in invoke("simulate", "allreduce", "--on", "assumd-rtx-4090").err


@pytest.mark.parametrize(
    ("log", "machine", "busbw"),
    [
        ("rtx4090.nccl.log", "assumed-rtx-4090", None),
        ("a100-pcie.nccl.log", "assumed-a100-pcie", None),
        ("a100-64gb.nccl.log", "a100-leonardo", 60),
    ],
)
def test_a_log_is_explained_by_the_devices_that_it_names(log, machine, busbw):
    done = invoke("explain", str(LOGS / log))
    assert done.status == 0, done.err
    assert f"healthy machine: {machine}" in done.out
    assert ("assumed: a box" in done.out.replace("\n  ", " ")) == machine.startswith("assumed")
    if busbw:
        assert "Verdict: fine" in done.out


def test_eight_v100_reach_what_their_mesh_carries():
    """Six links of 20 GB/s: 120 GB/s; 130 are measured on a DGX-1V, of which the model may be a quarter off."""
    done = invoke("simulate", "allreduce", "--on", "v100", "--sizes", "1G")
    assert float(done.out.splitlines()[-1].split()[4]) == pytest.approx(130, rel=0.2)


def test_bridges_of_cards_are_read_from_the_matrix(tmp_path):
    text = (HOSTS / "a6000.nvidia.txt").read_text(encoding="utf-8")
    made = tmp_path / "mine.toml"
    made.write_text(importing.machine_file(text, "a6000.txt", name="mine", gpu="A6000"), encoding="utf-8")
    rows = {row["key"]: row["value"] for row in machines.load(str(made)).numbers()}
    # Four links of 14.0625 GB/s each way join two cards.
    assert float(rows["fabric.links.nvlink.bandwidth"]) == 56.25
    done = invoke("simulate", "allreduce", "--on", str(made), "-p", "2", "--sizes", "1G")
    assert float(done.out.splitlines()[-1].split()[4]) > 31.5  # more than PCIe carries


def test_every_listed_gpu_is_taken():
    listed = gpus.listed().split("known: ")[1].split(". Name")[0].split(", ")
    assert [gpus.called(name).name for name in listed] == listed


def test_cards_without_peer_access_go_through_host_memory(tmp_path):
    text = (HOSTS / "rtx4090.nccl.xml").read_text(encoding="utf-8")
    made = importing.machine_file(text, "box.xml", name="box")
    assert 'transports = ["host_simple"]' in made
    assert "8 x RTX 4090, 1 network port, no peer access: data between GPUs is staged through host memory" in made
    # The same file with another device: NVIDIA's driver gives an L40S peer access.
    assert "host_simple" not in importing.machine_file(text.replace("0x2684", "0x26b9"), "box.xml", name="box")


def test_a_file_whose_device_and_architecture_disagree_is_refused():
    text = (HOSTS / "rtx4090.nccl.xml").read_text(encoding="utf-8").replace('sm="89"', 'sm="90"')
    with pytest.raises(Exception, match="PCI id 10de:2684, RTX 4090, and architecture sm90, which is another GPU's"):
        importing.machine_file(text, "box.xml", name="box")

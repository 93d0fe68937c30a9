"""Descriptions of hosts and networks made wrong by hand, each by a small change: refused with one message, or right."""

import re
from pathlib import Path

import pytest

from linkwright.base.errors import LinkwrightError
from linkwright.formats.discovery import importing
from linkwright_cases import invoke

FOLDER = Path(__file__).parent.parent
HOSTS, NETWORKS = FOLDER / "hosts", FOLDER / "networks"
GPUS = {"nvidia": "A100", "rocm": "MI250X"}


def refused(text, message, file="mine", **how):
    """Assert that a text gives one message, which has this part."""
    with pytest.raises(LinkwrightError, match=re.escape(message)) as caught:
        importing.machine_file(text, file, name="here", **how)
    assert "\n" not in str(caught.value)


def changed(folder, name, old, new):
    text = (folder / name).read_text(encoding="utf-8")
    assert old in text
    return text.replace(old, new)


# ---- nvidia-smi topo -m


def matrix(gpus, nics=0, tail=("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")):
    """What nvidia-smi prints for GPUs on a switch, each line as words."""
    names = [f"GPU{i}" for i in range(gpus)] + [f"NIC{i}" for i in range(nics)]

    def entry(a, b):
        return " X " if a == b else "NV18" if "NIC" not in a + b else "SYS"

    return [["", *names, *tail]] + [
        [a, *(entry(a, b) for b in names), *(["0-47", "0", "N/A"] if "GPU" in a else [])] for a in names
    ]


def printed(rows, columns=None):
    """The text, whose lines a terminal may have wrapped."""
    lines = ["\t".join(row).expandtabs(8) for row in rows]
    cut = [line[i : i + columns] for line in lines for i in range(0, len(line), columns)] if columns else lines
    return "\n".join(cut) + "\n"


def test_a_matrix_as_it_is_printed_is_read():
    assert "8 x H100, 4 network ports" in importing.machine_file(printed(matrix(8, 4)), "x", name="here", gpu="H100")


@pytest.mark.parametrize(("nics", "columns"), [(0, 64), (4, 64), (4, 80), (0, 72), (8, 100)])
def test_a_wrapped_paste_loses_no_gpu(nics, columns):
    refused(
        printed(matrix(8, nics), columns), "if lines are wrapped or cut, give the output as it was printed", gpu="H100"
    )


def without_last_column(rows, head_only):
    at = len(rows)
    return [row[: at - 1] + row[at:] if number == 0 or not head_only else row for number, row in enumerate(rows)]


def replaced(rows, a, b, word):
    rows[a][b] = word
    return rows


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (without_last_column(matrix(8), head_only=True), "GPU0 has more entries than the 7 columns"),
        (without_last_column(matrix(8), head_only=False), "`GPU7"),
        (replaced(replaced(matrix(4), 1, 2, " X "), 2, 1, " X "), "X is the connection to itself"),
        (replaced(matrix(4), 2, 2, "SYS"), "X is the connection to itself"),
        (replaced(replaced(matrix(4), 1, 2, "NV0"), 2, 1, "NV0"), "`NV0` is not a connection"),
        (replaced(matrix(2, 2), 3, 1, "PIX"), "GPU0 to NIC0 is SYS, and NIC0 to GPU0 is PIX; one is wrong"),
        ([*matrix(4)[:2], ["oops"], *matrix(4)[2:]], "`oops` is not a row of the matrix"),
        ([*matrix(4), [], ["GPU4", "NV18"]], "is neither a row of the matrix nor its legend"),
        ([*matrix(4), [], ["more of something"]], "is neither a row of the matrix nor its legend"),
        (matrix(4, tail=("CPU Aff",)), "the heading ends in `CPU Aff`"),
        (replaced(matrix(4), 0, 2, "GPU0"), "two columns are named GPU0"),
    ],
)
def test_a_wrong_matrix_is_refused(rows, message):
    refused(printed(rows), message, gpu="H100")


# ---- rocm-smi


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("XGMI", "xgmi", "`xgmi` is not a type of link"),
        ("XGMI", "XGMY", "`XGMY` is not a type of link"),
        ("0            15           30", "0            16           30", "GPU0 to GPU1 is 16, and back 15"),
        ("15", "16", "the weight of XGMI is 16, not 15 for each link on the way"),
        ("GPU0   0            15 ", "GPU0   1            15 ", "the weight is `1`; give a whole number"),
        ("GPU0   0            XGMI", "GPU0   XGMI         XGMI", "GPU0 to GPU0: `XGMI` is not a type of link"),
        ("GPU[2]\t\t: (Topology) Numa Node: 1\n", "", "no NUMA node of GPU 2, but of others"),
        ("GPU[2]\t\t: (Topology) Numa Node: 1", "GPU[1]\t\t: (Topology) Numa Node: 1", "NUMA node 1 of GPU 1"),
        ("       GPU0         GPU1         GPU2", "       GPU0         GPU1         GPU3", "not a heading GPU0 GPU1"),
        ("       GPU0         GPU1         GPU2", "       GPU0         GPU1", "no row of 2 GPUs"),
    ],
)  # fmt: skip
def test_a_wrong_table_of_rocm_smi_is_refused(old, new, message):
    refused(changed(HOSTS, "line.rocm.txt", old, new), message, gpu="MI250X")


def test_a_gpu_of_another_maker_is_refused():
    refused(
        (HOSTS / "line.rocm.txt").read_text(),
        "--gpu H100: mine is of rocm-smi, which does not list such GPUs",
        gpu="H100",
    )
    refused(printed(matrix(4)), "which does not list such GPUs", gpu="MI300X")
    refused(printed(matrix(2)), "has links between GPUs, and L40S has none", gpu="L40S")


# ---- NCCL's topology, hwloc, ibnetdiscover


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("two_h100.nccl.xml", "<nvlink ", "<nvlinq ", "<nvlinq> inside of <gpu>; there can be nvlink, xgmi, c2c"),
        ("two_h100.nccl.xml", "<nic>", "<nik>", None),
        ("two_h100.nccl.xml", 'name="mlx5_1" dev="1"', 'name="mlx5_1" dev="0"', "port mlx5_1 has dev 0, as mlx5_0 has"),
        ("two_h100.nccl.xml", 'link_width="16"', 'link_width="x16"', "link_width='x16' is not a number of lanes"),
        ("two_h100.nccl.xml", 'link_width="16"', 'link_width="17"', "link_width='17' is not a number of lanes"),
        ("two_h100.nccl.xml", "32.0 GT/s", "32,0 GT/s", "link_speed='32,0 GT/s PCIe' is not a rate"),
        ("two_h100.nccl.xml", 'speed="400000"', 'speed="-1"', "speed=-1 is not the rate of a port"),
        ("two_h100.nccl.xml", 'speed="400000"', 'speed="999999999"', "speed=999999999 is not the rate of a port"),
        ("two_h100.nccl.xml", "link_speed=", "link_sped=", "<pci> has `link_sped` and no `link_speed`"),
        ("two_h100.nccl.xml", "gdr=", "gdrr=", "has `gdrr` and no `gdr`"),
        ("two_h100.nccl.xml", " count=", " kount=", "<nvlink> has `kount` and no `count`"),
        ("two_l40s.hwloc.xml", "pci_type=", "pci_typo=", "<object> has `pci_typo` and no `pci_type`"),
        ("two_l40s.hwloc.xml", 'type="Package"', 'type="Pakkage"', "'Pakkage' is not a type of object"),
        ("two_l40s.hwloc.xml", "[10de:26b9]", "10de:26b9", "a PCI device without its class and ids"),
        ("two_l40s.hwloc.xml", 'pci_link_speed="0.000000"', 'pci_link_speed="nan"', "'nan' is not a rate"),
    ],
)  # fmt: skip
def test_a_wrong_xml_is_refused(name, old, new, message):
    text = changed(HOSTS, name, old, new)
    if message is None:
        text, message = text.replace("</nic>", "</nik>"), "<nik> inside of <pci>"
    refused(text, message)


def test_a_processor_inside_of_another_element_is_refused():
    text = (HOSTS / "two_h100.nccl.xml").read_text(encoding="utf-8")
    second = text.index('  <cpu numaid="1"')
    moved = text[:second].replace("</cpu>", "") + text[second:].replace("</system>", "</cpu></system>")
    refused(moved, "<cpu> inside of <cpu>; there can be pci, nic, gpu")


def test_a_port_of_two_processors_is_still_one():
    made = importing.machine_file((HOSTS / "tray.nccl.xml").read_text(encoding="utf-8"), "tray.xml", name="here")
    assert "3 x GB200, 3 network ports" in made


@pytest.mark.parametrize(("old", "new"), [("4xNDR", "99xNDR"), ("4xNDR", "3xNDR")])
def test_a_link_has_lanes_as_infiniband_knows_them(old, new):
    refused(changed(NETWORKS, "fat_tree.ibnetdiscover", old, new), "a link has 1, 2, 4, 8, 12 lanes")


# ---- Slurm

TREE = "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[3-4]\nSwitchName=s Switches=a,b\n"
BLOCKS = "BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-8]\nBlockSizes=4,8\n"
SHOWN = (
    "SwitchName=a Level=0 LinkSpeed=1 Nodes=n[1-2]\nSwitchName=b Level=0 LinkSpeed=1 Nodes=n[3-4]\n"
    "SwitchName=s Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=a,b\n"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TREE.replace("Nodes=n[1-2]", "Nodes=n[1-2] Nodes=n[5-6]"), "line 1: Nodes is given twice"),
        (BLOCKS + "BlockSizes=4\n", "line 4: a second BlockSizes"),
        (BLOCKS.replace("4,8", "4,6"), "each must be a multiple of the one before"),
        (BLOCKS.replace("4,8", "8,4"), "each must be a multiple of the one before"),
        (BLOCKS.replace("4,8", "5"), "a has 4 nodes, fewer than the smallest of BlockSizes, 5"),
        (TREE + "BlockName=c Nodes=n[5-6]\n", "a is a switch among blocks; describe a tree or blocks, not both"),
        (TREE + "BlockSizes=4\n", "states sizes of blocks, but no block"),
        (SHOWN.replace("n[1-4]", "n[1-3]"), "line 3: s lists its nodes without n4, which is below one of its switches"),
    ],
)
def test_a_wrong_topology_of_slurm_is_refused(text, message):
    refused(text, message)


def test_a_node_that_only_an_upper_switch_lists_hangs_on_it():
    made = importing.machine_file(SHOWN.replace("n[1-4]", "n[1-5]"), "mine", name="here")
    assert '"n5 - s"' in made
    assert "5 nodes below 3 switches" in made


def test_blocks_are_read_as_scontrol_prints_them():
    shown = (
        "BlockName=b0 BlockIndex=0 Nodes=10.1.1.[3-4] BlockSize=2\nBlockName=b1 BlockIndex=1 Nodes=10.1.1.[5-6] "
        "BlockSize=2\nAggregatedBlock=b[0-1] BlockIndex=2 Nodes=10.1.1.[3-6] BlockSize=4\n"
    )
    assert "4 nodes below 3 switches" in importing.machine_file(shown, "mine", name="here")


def test_nodes_that_are_on_no_fabric_are_left_out_and_counted():
    text = (NETWORKS / "apart.topology.conf").read_text(encoding="utf-8")
    assert "4 nodes below 4 switches, as topology.conf lists them, without 2 nodes that no-topology" in (
        importing.machine_file(text, "mine", name="here")
    )
    made = importing.machine_file(text, "mine", name="here", node="hgx-h100")
    assert "4 x hgx-h100 on the network that mine lists, without 2 nodes that no-topology lists" in made


def test_a_machine_whose_links_nobody_knows_says_so_in_every_answer(tmp_path):
    (tmp_path / "tree.conf").write_text(TREE, encoding="utf-8")
    made = tmp_path / "mine.toml"
    assert invoke("machines", "import", str(tmp_path / "tree.conf"), "--out", str(made)).status == 0
    ask = ("simulate", "allreduce", "-a", "ring", "--sizes", "1M", "--on")
    assert "ALL RATES OF LINKS ASSUMED" in " ".join(invoke(*ask, str(made)).out.replace("#", "").split())
    assert "ASSUMED" not in invoke(*ask, "hgx-h100").out


# ---- the verb


@pytest.mark.parametrize("option", ["--out", "--output"])
def test_the_file_to_write_has_one_option_of_two_names(tmp_path, option):
    done = invoke("machines", "import", str(HOSTS / "two_h100.nccl.xml"), option, str(tmp_path / "mine.toml"))
    assert (done.status, (tmp_path / "mine.toml").is_file()) == (0, True), done.err

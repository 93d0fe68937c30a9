"""Machines as node files name them, by hand: GPUs on a switch, a NIC for each, rails of leaves."""

from linkwright import _native

STARTS = {"ll": (0.9, 0.5), "ll128": (1.6, 0.9375), "simple": (3.0, 1.0)}  # us, share that is data
NET_US = 4


def number(value, unit):
    return f'{{ value = {value}, unit = "{unit}", status = "assumed", source = "by definition" }}'


def names(found):
    return "[" + ", ".join(f'"{name}"' for name in found) + "]"


def links(name, edges, rate):
    return (
        f'[fabric.links.{name}]\nedges = {names(edges)}\nsource = "by definition"\nbandwidth = {number(rate, "GB/s")}\n'
    )


def node_text(
    nodes=1, gpus=8, nvlink=450, nic=50, pcie=63, gpu="sm90", host="intel", versions=("2.27",), modes=("ll128",)
):
    """The text of `nodes` nodes; one for all pairs of modes named `x = "simple"` beside `simple` and `ll`."""
    at = [f"node {n} " if nodes > 1 else "" for n in range(nodes)]
    switches = [
        f"{n}{name}" for n in at for name in ("NVSwitch", f"PCIe 0..{gpus - 1}", f"NIC 0..{gpus - 1}", "CPU 0", "CPU 1")
    ]
    half = max(1, gpus // 2)
    host_edges = [
        edge
        for n in at
        for edge in (
            f"{n}PCIe 0..{gpus - 1} = {n}GPU 0..{gpus - 1}", f"{n}PCIe 0..{gpus - 1} = {n}NIC 0..{gpus - 1}",
            f"{n}CPU 0 - {n}PCIe 0..{half - 1}", *([f"{n}CPU 1 - {n}PCIe {half}..{gpus - 1}"] if gpus > half else []),
        )
    ]  # fmt: skip
    levels = ([("node", nodes)] if nodes > 1 else []) + [("GPU", gpus)]
    text = '[machine]\nname = "test"\nsummary = "a test"\ndescription = "a test"\nformat = 1\n'
    text += 'sources = ["by definition"]\n'
    text += "".join(
        f'[[level]]\nname = "{name}"\ncount = {count}\nsource = "by definition"\n' for name, count in levels
    )
    named = (
        f"names = {names(f'{n}GPU {g}' for n in at for g in range(gpus))}"
        if nodes > 1
        else f'count = {gpus}\nname = "GPU {{i}}"'
    )
    text += f'[endpoints]\n{named}\nsource = "by definition"\n'
    leaves = [f"leaf 0..{gpus - 1}", "spine"] if nodes > 1 else []
    text += f'[fabric]\nkind = "flow"\nswitches = {names([*switches, *leaves])}\n'
    text += links("nvlink", [f"{n}NVSwitch - {n}GPU 0..{gpus - 1}" for n in at], nvlink) if nvlink else ""
    text += links("pcie", host_edges, pcie) + links("socket", [f"{n}CPU 0 - {n}CPU 1" for n in at], 100)
    if nodes > 1:
        text += links("port", [f"leaf {i} - {n}NIC {i}" for n in at for i in range(gpus)], nic)
        text += links("trunk", [f"spine - leaf 0..{gpus - 1}"], nic * nodes)
    inside = ["nvlink"] if nvlink else ["pcie", "socket"]
    for name, (start, _) in STARTS.items():
        text += f"[fabric.transport.in_{name}]\nlinks = {names(inside)}\nstart = {number(start, 'us')}\n"
        if nodes > 1:
            text += f'[fabric.transport.net_{name}]\nlinks = ["pcie", "port", "trunk"]\n'
            text += f"start = {number(start + NET_US, 'us')}\n"
    for name, (_, share) in STARTS.items():
        ways = [f"in_{name}", *([f"net_{name}"] if nodes > 1 else [])]
        text += f"[fabric.network.{name}]\ntransports = {names(ways)}\nefficiency = {number(share, 'ratio')}\n"
    text += f"[hints]\nnetworks = {names(STARTS)}\n"
    for name in STARTS:
        text += f'[path.{name}]\nsummary = "{name}"\nnetwork = "{name}"\nfused_combine = true\n'
    known = ", ".join(f'{m} = "{m if m in STARTS else "simple"}"' for m in ("simple", "ll", *modes))
    text += f'[library]\nname = "nccl"\nversions = {names(versions)}\nmodes = {{ {known} }}\nsource = "by definition"\n'
    return text + f'[library.hardware]\ngpu = "{gpu}"\nhost = "{host}"\nsource = "by definition"\n'


def node_machine(*args, **more):
    return _native.Machine.parse(node_text(*args, **more), "test.toml")

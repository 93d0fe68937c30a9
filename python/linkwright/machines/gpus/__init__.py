"""GPUs that are known, from one table: what their links carry, and which machine stands for a node of them.

    name in a log, --gpu   row of `gpus/gpus.toml` ->   a described machine, such as hgx-h100
                                                   an assumed box, such as assumed-a40: parts, and the row's numbers

An assumed box is a machine like any other, made from the table each time that it is asked for. Its name says that it is
assumed, so every answer does.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from linkwright.base import registry, toml
from linkwright.base.errors import UsageError
from linkwright.machines import ASSUMED, writer

LIBRARIES = {"nvlink": "nccl", "xgmi": "rccl"}
CARDS = "pcie-8"  # the box of cards, of which a node mostly has one port
NONE = "assumed: no such links"
WITHOUT = "data sheet: BF16 tensor cores, without sparsity"
LANES = 16  # of the parts pcie-gen3 to pcie-gen6
NO_PEERS = ", no peer access: data between GPUs is staged through host memory"
# Without peer access data is staged through host memory; the part has the rates.
STAGED_PART = "no-peers"
STAGED = {"simple": "host_simple", "ll": "host_ll", "ll128": "host_simple", "copy": "host_simple"}
_WORD = re.compile(r"[a-z0-9]+")
_COUNT = re.compile(r"(?<![a-z0-9])\d+x(?=[a-z])")  # `8xH100`

Table = dict[str, Any]


@dataclass(frozen=True)
class GpuKind:
    """A row of the table; `gpus/gpus.toml` says what its keys mean."""

    name: str
    names: tuple[str, ...]
    pci: tuple[str, ...]
    architecture: tuple[str, ...]
    part: str
    links: str
    memory_gb: float
    pcie: str
    lanes: int
    source: str
    fabric: str
    memory_gb_per_s: float = 0.0
    multiprocessors: int = 0
    generation: int = 0
    link_gb_per_s: float = 0.0
    most_links: int = 0
    switched: bool = False
    combines: bool = False
    peers: bool = True
    library: str = ""
    share: float | None = None
    machine: str = ""
    box: str = ""
    bridged: int = 0
    why: str = ""
    # Tables do not hash, and the name of a row is enough.
    tensor_tflops: Mapping[str, float] = field(default_factory=dict, hash=False)
    reached: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def library_generation(self) -> str:
        """What the library calls it: `sm90`, `gfx942`."""
        return self.library or self.architecture[0]

    @property
    def on(self) -> str:
        """The machine that stands for a node of such GPUs, as --on takes it."""
        return self.machine or ASSUMED + re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    @property
    def reason(self) -> str:
        """How well that machine stands for a node."""
        if self.machine:
            return self.why
        return (
            f"assumed: a box of {self.name} as such GPUs are often built in, rates by data sheets; boxes differ, so "
            "describe yours with `linkwright machines import`"
            + ("" if self.peers else "; without peer access, published rates differ by a factor of ten")
        )


@functools.cache
def known() -> tuple[GpuKind, ...]:
    """All rows of the table."""
    rows = toml.data_file(__file__, "gpus.toml")
    return tuple(_row(name, row, rows) for name, row in rows.items())


def _row(name: str, row: Table, rows: Mapping[str, Table]) -> GpuKind:
    own = {**rows[row["like"]], **row} if "like" in row else row
    found: Table = {
        key: tuple(value) if isinstance(value, list) else value for key, value in own.items() if key != "like"
    }
    return GpuKind(name, **found)


def named(text: str) -> GpuKind | None:
    """The GPU in a text such as `NVIDIA A100-PCIE-40GB`: that with the most words of its name there."""
    words = set(_WORD.findall(_COUNT.sub("", text.lower())))
    found = [(len(one.split()), len(one), gpu) for gpu in known() for one in gpu.names if words.issuperset(one.split())]
    return max(found, key=lambda one: one[:2])[2] if found else None


def others(architecture: str, names: Iterable[str]) -> list[str]:
    """Return those names of devices that are known to be of another architecture, such as `sm90`."""
    found = ((name, named(name)) for name in names)
    return [name for name, gpu in found if gpu and architecture not in (gpu.library, *gpu.architecture)]


def called(name: str) -> GpuKind:
    """The GPU that a user or a program calls so; raises a `UsageError` for one that is unknown."""
    if found := named(name):
        return found
    raise UsageError(f"unknown GPU `{name}`; {listed()}")


def agreed(asked: GpuKind | None, stated: GpuKind | None, file: str, exact: bool = False) -> GpuKind | None:
    """The GPU that the user names, which must not be another one than the file states; else that of the file.

    `exact`: the file states the GPU itself, by a PCI id, and not only its architecture.
    """
    if asked and stated and set(asked.architecture).isdisjoint(stated.architecture):
        raise UsageError(f"--gpu {asked.name}: {file} states that its GPUs are {stated.name}; omit --gpu")
    return stated if exact and stated else asked or stated


def of_architecture(architecture: str) -> GpuKind | None:
    """The first GPU of `sm90` or `gfx942`, which goes by that where several are alike."""
    found = [gpu for gpu in known() if architecture in gpu.architecture]
    return replace(found[0], name=architecture) if len(found) > 1 else found[0] if found else None


def of_pci(pci: str) -> GpuKind | None:
    """The GPU with this PCI vendor and device, such as `10de:2330`."""
    return next((gpu for gpu in known() if pci in gpu.pci), None)


def of_machine(name: str) -> GpuKind | None:
    """Return the first GPU that this machine stands for, such as H100 for `hgx-h100`."""
    return next((gpu for gpu in known() if gpu.on == name), None)


def listed() -> str:
    """What is known, and the cure, for messages."""
    names = ", ".join(gpu.name for gpu in known())
    return f"known: {names}. Name one with --gpu, or add yours to linkwright/machines/gpus/gpus.toml"


def entries() -> list[dict[str, object]]:
    """All rows, as `list` and `describe` print them."""
    return [
        {"key": gpu.name, "summary": f"a node of them is {gpu.on}", "machine": gpu.on, "memory_gb": gpu.memory_gb,
         "source": gpu.source}
        for gpu in known()
    ]  # fmt: skip


def boxes() -> dict[str, GpuKind]:
    """The assumed boxes by name, as --on takes them."""
    return {gpu.on: gpu for gpu in known() if gpu.box}


def text(gpu: GpuKind) -> str:
    """The machine file of an assumed box."""
    return writer.text(
        {
            "parts": list(_parts(gpu)),
            "machine": {
                "name": gpu.on,
                "summary": f"ASSUMED box of {gpu.name}: rates by data sheets, the rest a guess"
                + ("" if gpu.peers else NO_PEERS),
                "description": f"No {gpu.name} was at hand. {gpu.reason[:1].upper()}{gpu.reason[1:]}.",
                "format": 1,
                "sources": [gpu.source],
            },
            "endpoints": {"capacity": writer.number(gpu.memory_gb, "GB", "documented", gpu.source)},
            "cluster": {"network": gpu.fabric, **({"ports": "NIC 0"} if gpu.box == CARDS else {})},
            **own_rates(gpu),
            "fabric": {"links": _links(gpu), **staged(gpu)},
            "library": {
                "hardware": {"gpu": gpu.library_generation, "host": "intel" if gpu.links == "nvlink" else "amd"}
            },
        }
    )


def _parts(gpu: GpuKind) -> Iterable[str]:
    yield "gpu-node"
    if gpu.links == "nvlink":
        yield "ll128"
    yield from (gpu.part, gpu.pcie, gpu.box) if gpu.part != "pcie-gpu" else (gpu.pcie, gpu.box, gpu.part)
    yield LIBRARIES[gpu.links]
    if gpu.combines:
        yield "nvls"
    yield "assumed-box"
    if not gpu.peers:
        yield STAGED_PART


def _links(gpu: GpuKind) -> Table:
    found: Table = {}
    if gpu.lanes != LANES:
        for name in ("pcie", "nic", "host"):
            source = f"{gpu.lanes} lanes: {gpu.source}"
            found[name] = {"bandwidth": writer.derived(_lane_gb_per_s(gpu) * gpu.lanes, source)}
    if gpu.part == "pcie-gpu" or not (gpu.switched or gpu.box == CARDS):
        return found
    count = gpu.most_links if gpu.switched or gpu.bridged == 2 else 1
    rate = writer.derived(count * gpu.link_gb_per_s, f"{count} x {gpu.link_gb_per_s:g} GB/s: {gpu.source}")
    found[gpu.links] = {"bandwidth": rate}
    if gpu.share is not None:
        found[gpu.links]["share"] = writer.number(gpu.share, "ratio", "documented", gpu.source)
    if not gpu.switched:
        groups = [range(first, first + gpu.bridged) for first in range(0, 8, gpu.bridged)] if gpu.bridged else []
        found |= {
            name: {"edges": [], "source": NONE} for name in _links_of(gpu.part) if name.startswith(f"{gpu.links}_")
        }
        found[gpu.links]["edges"] = [f"GPU {a} - GPU {b}" for group in groups for b in group for a in group if a < b]
        found[gpu.links]["source"] = "assumed: bridges between neighbours" if groups else NONE
    return found


def own_rates(gpu: GpuKind) -> dict[str, Table]:
    """Return what a GPU computes and reads where its part is that of another GPU: tables of a machine file."""
    found: dict[str, Table] = {}
    if "bf16" in gpu.tensor_tflops:
        found["facts"] = {"tensor_bf16": writer.number(gpu.tensor_tflops["bf16"], "TFLOP/s", "documented", WITHOUT)}
    if gpu.memory_gb_per_s:
        source = f"data sheet: memory of {gpu.memory_gb_per_s:g} GB/s; two reads and a write"
        found["path"] = {"copy": {"combine_rate": writer.derived(gpu.memory_gb_per_s / 3, source)}}
    return found


def _lane_gb_per_s(gpu: GpuKind) -> float:
    return float(_links_of(gpu.pcie)["pcie"]["bandwidth"]["value"]) / LANES


def _links_of(part: str) -> Table:
    """The classes of links of a shipped part."""
    document: Table = tomllib.loads(registry.part_path(part).read_text(encoding="utf-8"))
    links: Table = document["fabric"]["links"]
    return links


def staged(gpu: GpuKind) -> dict[str, Table]:
    """The networks of a node whose GPUs have no peer access over PCIe."""
    if gpu.peers:
        return {}
    linked = gpu.links if gpu.most_links else None
    ways = {name: [*([f"{linked}_{name}"] if linked else []), way] for name, way in STAGED.items()}
    return {"network": {name: {"transports": its} for name, its in ways.items()}}

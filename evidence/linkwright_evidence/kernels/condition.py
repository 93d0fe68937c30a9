"""Conditions of measured kernels: one line of a table, with the time absent or present.

The columns are those of the published tables and of `--conditions FILE.csv`; a column that a kind has no use for may be
missing or empty.
"""

from __future__ import annotations

import csv
import functools
import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path

from linkwright.base.errors import FileError, LinkwrightError, unknown
from linkwright.base.units import counted
from linkwright.libraries.settings import COLLECTIVES
from linkwright.machines import Variant, load
from linkwright.machines.gpus import named
from linkwright_evidence import asked

KINDS = (
    "collective", "framework_allreduce", "deepep_ll", "deepep_ht_dispatch", "deepep_ht_combine", "moe_alltoall",
)  # fmt: skip
NEEDED = ("kind", "system", "gpus", "nodes", "backend", "op")
# Kind -> the words that a column may have.
OPS: Mapping[str, Iterable[str]] = {
    "collective": COLLECTIVES, "framework_allreduce": ("all_reduce",), "deepep_ll": ("dispatch", "combine"),
    "deepep_ht_dispatch": ("dispatch", "dispatch_notify"), "deepep_ht_combine": ("combine", "combine_notify"),
    "moe_alltoall": ("prepare", "dispatch", "combine", "combine_low_precision"),
}  # fmt: skip
BACKENDS: Mapping[str, Iterable[str]] = {
    "collective": ("nccl", "oneccl"), "framework_allreduce": ("sglang", "trtllm", "vllm"),
    **dict.fromkeys(KINDS[2:5], ("deepep",)), "moe_alltoall": ("NVLinkOneSided", "NVLinkTwoSided"),
}  # fmt: skip
MODES: Mapping[str, Iterable[str]] = {"collective": ("stream",), "framework_allreduce": ("graph", "eager")}
# Of DeepEP also by operation: tokens go as fp8 and come back as bf16.
DTYPES: Mapping[str, Iterable[str]] = {
    "collective": ("half", "int8"), "framework_allreduce": ("bfloat16",), "dispatch": ("fp8",), "combine": ("bf16",),
    "moe_alltoall": ("bfloat16", "fp8", "nvfp4"),
}  # fmt: skip
RACK_GPUS = 72  # of one NVLink network of trays
MOST, MOST_EXPERTS = 1 << 40, 1 << 16


@dataclass(frozen=True)
class System:
    """A published system: the machine file, its row of `gpus.toml` and its generation."""

    machine: str
    gpu: str
    generation: str
    node_gpus: int
    capability: str
    rack: bool = False  # one NVLink network of several nodes

    @functools.cached_property
    def _numbers(self) -> Mapping[str, float]:
        """The numbers of the machine file; two of its nodes have a network."""
        several = 2 if self.generation != "pcie" and not self.rack else None
        found = load(self.machine, Variant.of(several, None, (), {})).numbers()
        return {row["key"]: float(row["value"]) for row in found if row["unit"] in ("GB/s", "Gb/s")}

    @functools.cached_property
    def link(self) -> float:
        """Bytes/us from one GPU to others, each direction."""
        return self._numbers[f"fabric.links.{'pcie' if self.generation == 'pcie' else 'nvlink'}.bandwidth"] * GB

    @functools.cached_property
    def nic(self) -> float:
        """Bytes/us of the network port of one GPU, each direction; in a rack its link, 0 where none is modelled."""
        return self.link if self.rack else self._numbers.get("fabric.links.port.bandwidth", 0.0) * GB / BITS

    @functools.cached_property
    def memory(self) -> float:
        """Bytes/us of the memory of one GPU, both directions; of a GPU without a row, what its machine file implies."""
        row = named(self.gpu)
        rate = row.memory_gb_per_s if row else READS_AND_WRITE * self._numbers["path.copy.combine_rate"]
        return rate * GB

    @functools.cached_property
    def sms(self) -> int:
        """Multiprocessors of one GPU; 0 of a GPU without a row."""
        row = named(self.gpu)
        return row.multiprocessors if row else 0


GB = 1000.0  # bytes per us of 1 GB/s
BITS = 8
READS_AND_WRITE = 3  # what combining two vectors moves
SYSTEMS: Mapping[str, System] = {
    "a100_sxm": System("dgx-a100", "A100-SXM4-80GB", "ampere", 8, "8.0"),
    "h100_sxm": System("hgx-h100", "H100", "hopper", 8, "9.0"),
    "h200_sxm": System("hgx-h200", "H200", "hopper", 8, "9.0"),
    "b200_sxm": System("b200", "B200", "blackwell", 8, "10.0"),
    "b300_sxm": System("b300", "B300", "blackwell", 8, "10.3"),
    "gb200": System("gb200-nvl72", "GB200", "blackwell", 4, "10.0", rack=True),
    "gb300": System("gb200-nvl72", "GB300", "blackwell", 4, "10.3", rack=True),
    "l40s": System("l40s", "L40S", "pcie", 8, "8.9"),
    "rtx_pro_6000_server": System("rtx-pro-6000", "RTX PRO 6000", "pcie", 8, "12.0"),
    "b60": System("arc-b60", "Arc Pro B60", "pcie", 8, "xe2"),
}


@dataclass(frozen=True)
class Condition:
    """What was run; numbers are 0 and texts empty where a kind has none."""

    kind: str
    system: str
    gpus: int
    nodes: int
    backend: str
    op: str
    mode: str = ""
    table: str = ""
    reported: str = ""
    dtype: str = ""
    size_bytes: int = 0
    tokens: int = 0
    hidden: int = 0
    topk: int = 0
    experts: int = 0
    sms: int = 0

    @property
    def on(self) -> System:
        """The system."""
        return SYSTEMS[self.system]

    @property
    def version(self) -> tuple[int, ...]:
        """The version in the name of the table: `vllm/0.19.0` is (0, 19, 0)."""
        return version_of(self.table.rpartition("/")[2])


def version_of(text: str) -> tuple[int, ...]:
    """(1, 3, 0, 10) of `1.3.0rc10` and of `v1.3.0rc10`, as tags are named."""
    parts = text.removeprefix("v").replace("rc", ".").replace("post", ".").split(".")
    return tuple(int(part) for part in parts if part.isdigit())


_NUMBERS = tuple(field.name for field in fields(Condition) if field.type == "int")


@dataclass(frozen=True)
class Measured:
    """A published row: its condition, the time in us and why it may not be scored."""

    condition: Condition
    time_us: float
    suspect: str


def condition(row: Mapping[str, str], where: str) -> Condition:
    """The condition of a row; refuses what no model knows."""
    values: dict[str, object] = {}
    for field in fields(Condition):
        text = (row.get(field.name) or "").strip()
        values[field.name] = _count(text, field.name, where) if field.name in _NUMBERS else text
    one = Condition(**values)  # type: ignore[arg-type]
    if one.kind not in KINDS:
        raise unknown("kind of kernel", one.kind, KINDS, where=where)
    if one.system not in SYSTEMS:
        raise unknown("system", one.system, SYSTEMS, where=where)
    if one.op not in OPS[one.kind]:
        what = "collective" if one.kind == "collective" else f"operation of {one.kind}"
        raise unknown(what, one.op, OPS[one.kind], where=where)
    if one.backend not in BACKENDS.get(one.kind, (one.backend,)):
        raise unknown(f"backend of {one.kind}", one.backend, BACKENDS[one.kind], where=where)
    if one.mode not in ("", *MODES.get(one.kind, ())):
        raise unknown(f"mode of {one.kind}", one.mode, MODES.get(one.kind, ()), where=where)
    dtypes = DTYPES[one.op.partition("_")[0] if one.kind.startswith("deepep") else one.kind]
    # Only the exchange of experts depends on it.
    if one.dtype not in (dtypes if one.kind == "moe_alltoall" else ("", *dtypes)):
        raise unknown(f"data type of {one.kind} {one.op}", one.dtype, dtypes, where=where)
    _check_version(one, where)
    _check_ranks(one, where)
    if one.kind.startswith(("deepep", "moe")):
        _check_tokens(one, where)
    elif not one.size_bytes:
        raise FileError(f"{where}: size_bytes is missing; {one.kind} needs it")
    return one


def _check_version(one: Condition, where: str) -> None:
    library = one.table.rpartition("/")[0]
    if one.table and not (library and one.version):
        raise FileError(f"{where}: table `{one.table}` has no library and version; write such as `vllm/0.19.0`")
    if one.kind != "framework_allreduce":
        return
    if not one.table:
        raise FileError(f"{where}: table is missing; the kernel depends on the version of {one.backend}")
    if library != one.backend:
        raise FileError(f"{where}: table `{one.table}` is not of backend `{one.backend}`; give its own version")


def remark(one: Condition) -> str:
    """What was answered in place of what was asked; empty if the very version has published times."""
    said = []
    if one.kind == "framework_allreduce" and not one.mode:
        said.append("no mode: answered as graph")
    library = one.table.rpartition("/")[0]
    known = _tables(one.kind, one.backend)
    if not one.table:
        said.append(f"no version: answered as {known[-1].table}")
    elif one.version not in [its.version for its in known if its.table.startswith(f"{library}/")]:
        its = [its for its in known if its.table.startswith(f"{library}/")] or known
        near = next((older for older in reversed(its) if older.version <= one.version), its[0])
        said.append(f"no time of {one.table} is published: answered by the rules that also hold for {near.table}")
    return "; ".join(said)


@functools.cache
def _tables(kind: str, backend: str) -> tuple[Condition, ...]:
    """A published condition of each version of a backend, the oldest first."""
    mine = {
        one.condition.table: one.condition
        for one in published()
        if (one.condition.kind, one.condition.backend) == (kind, backend)
    }
    return tuple(sorted(mine.values(), key=lambda one: (one.table.rpartition("/")[0], one.version)))


def _check_ranks(one: Condition, where: str) -> None:
    asked = f"{where}: {counted(one.gpus, 'GPU')} on {counted(one.nodes, 'node')}"
    if not one.nodes or one.gpus % one.nodes:
        raise FileError(f"{asked}; every node must have as many")
    if one.gpus < 2:
        raise FileError(f"{asked}; there is nothing to exchange, give at least 2 GPUs")
    rack = one.on.rack
    each, local = (RACK_GPUS if rack else one.on.node_gpus), one.gpus // one.nodes
    if one.nodes > 1 and not one.on.nic:
        raise FileError(f"{asked}; no network of `{one.system}` is described, give one node")
    if not one.kind.startswith("deepep") and one.nodes > 1 and not rack:
        raise FileError(f"{asked}; {one.kind} is described on one node of `{one.system}` only")
    if (local if one.kind.startswith("deepep") else one.gpus) > each:
        raise FileError(f"{asked}; `{one.system}` has {each} that reach each other without a network")


def _check_tokens(one: Condition, where: str) -> None:
    missing = [name for name in ("tokens", "hidden", "topk", "experts") if not getattr(one, name)]
    if missing:
        raise FileError(f"{where}: {', '.join(missing)} missing or 0; {one.kind} needs them")
    if one.experts > MOST_EXPERTS:
        raise FileError(f"{where}: {one.experts} experts; give at most {MOST_EXPERTS:,}")
    if not one.on.sms:
        raise FileError(f"{where}: no {one.kind} is described on `{one.system}`, whose multiprocessors are unknown")
    if one.sms > one.on.sms:
        raise FileError(f"{where}: {one.sms} SMs, but `{one.system}` has {one.on.sms}; lower sms")
    if one.topk > one.experts:
        raise FileError(f"{where}: {one.topk} experts of a token, but there are {one.experts}; lower topk")
    if one.kind.startswith("deepep_ht") and not one.sms:
        raise FileError(f"{where}: sms is missing; the normal mode of DeepEP needs it")


def _count(text: str, name: str, where: str) -> int:
    try:
        value = int(text or 0)
    except ValueError:
        value = -1
    if not 0 <= value <= MOST:
        raise FileError(f"{where}: {name} = `{text}`; a whole number from 0 on, at most 2^40")
    return value


def read(file: Path) -> list[tuple[dict[str, str], Condition | LinkwrightError]]:
    """Return the rows of a file of conditions, as they are, each with its condition or why no model knows it.

    Raises:
        LinkwrightError: the file is no table, or no model knows any of its rows.
    """
    found: list[tuple[dict[str, str], Condition | LinkwrightError]] = []
    for where, row in asked.rows(file, NEEDED):
        try:
            found.append((row, condition(row, where)))
        except LinkwrightError as error:
            found.append((row, error))
    if all(isinstance(one, LinkwrightError) for _, one in found):
        raise found[0][1]  # type: ignore[misc]
    return found


@functools.cache
def published() -> tuple[Measured, ...]:
    """All published rows, in the order of the tables."""
    folder = resources.files("linkwright_evidence") / "references" / "kernels"
    found = []
    for kind in KINDS:
        text = gzip.decompress((folder / f"{kind}.csv.gz").read_bytes()).decode("utf-8")
        for row in csv.DictReader(io.StringIO(text)):
            suspect = "" if row["quality"] == "ok" else row["reason"] or "suspect"
            found.append(Measured(condition(row, kind), float(row["time_us"]), suspect))
    return tuple(found)

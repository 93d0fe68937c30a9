"""Map an operator's description of a system to a described machine, by the rules of `settings.toml`.

    machine, GPUs, nodes, notes   node rule      machine file, GPUs of one node; else those of the GPU, by `gpus.toml`
                                  network rule   `--fabric` of several nodes; `8x400Gb` in the text sets its ports
    library version               the text, or a rule by date or generation
    notes                         process rule   whether one process drives all GPUs of a node

A setting names the rules that fired. A description that no rule matches is refused, never guessed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from linkwright.base import toml
from linkwright.machines import gpus, load

Rule = Mapping[str, Any]

# Names of nccl-tests -> names here.
COLLECTIVES = {
    "all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reduce_scatter", "alltoall": "alltoall",
    "broadcast": "broadcast", "reduce": "reduce", "sendrecv": "sendrecv", "gather": "gather", "scatter": "scatter",
}  # fmt: skip

_ADAPTERS = re.compile(r"(\d+) ?x ?(\d+) ?g(?:b|bps|bit|b/s)?\b")
_VERSION = re.compile(r"(?:^|[^\d.])(2\.\d+)(?:\.\d+)?")
_ALGORITHMS = {
    "ring": "ring", "tree": "tree", "nvls": "nvls", "nvlstree": "nvls_tree", "collnetchain": "collnet_chain",
    "collnetdirect": "collnet_direct", "pat": "pat",
}  # fmt: skip
_PROTOCOLS = {"simple": "simple", "ll": "ll", "ll128": "ll128"}


@dataclass(frozen=True)
class Condition:
    """How one table was measured, in the words of its author."""

    table_id: str
    machine: str
    gpus: int
    nodes: int
    collective: str  # as here
    library_version: str = ""
    algo: str = ""
    proto: str = ""
    quality: str = "ok"  # `ok`, `busbw-only`, `check`, `case`
    notes: str = ""
    split: str = ""
    source_url: str = ""
    sizes: tuple[int, ...] = ()
    plugin: str = ""  # `plugin NAME`: that of the network, of a log

    @property
    def text(self) -> str:
        """The author's whole description in lower case, for patterns."""
        return f"{self.machine} | {self.library_version} | {self.notes} {self.plugin}".lower()

    @property
    def healthy(self) -> bool:
        """Whether its values may be scored: nothing was wrong or changed on purpose."""
        return self.quality in ("ok", "busbw-only") and self.split != "case"


@dataclass(frozen=True)
class Setup:
    """Everything except the size that a time depends on; tables of one setup share their predictions.

    Attributes:
        machine: name or path of a machine file.
        nodes: copies of it.
        gpus_per_node: GPUs that take part, of each.
        fabric: the network between several nodes.
        algorithm: of the library, with what is forced: `nccl-2.27/tree`.
        collective: our key, or `sendrecv`.
        one_process: whether one process starts the work of all GPUs of a node.
    """

    machine: str
    nodes: int
    gpus_per_node: int
    fabric: str | None
    algorithm: str
    collective: str
    one_process: bool = False

    @property
    def ranks(self) -> int:
        """GPUs that take part."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True)
class Setting:
    """The setup of a condition, and what else its description says."""

    setup: Setup
    generation: str
    library: str  # `nccl`, `rccl`, `oneccl`
    version: str
    site: str
    rules: tuple[str, ...]


@dataclass(frozen=True)
class Refusal:
    """Why a condition has no prediction."""

    reason: str


def settle(condition: Condition) -> Setting | Refusal:
    """Return the setting of a condition, or why there is none."""
    if condition.collective not in COLLECTIVES.values():
        return Refusal(f"unknown collective `{condition.collective}`; one of {', '.join(COLLECTIVES)}")
    if condition.gpus % condition.nodes:
        return Refusal(f"{condition.gpus} GPUs on {condition.nodes} nodes; every node must have as many")
    node = _first("node", f"{condition.machine} {condition.plugin}".lower()) or _by_gpu(condition.machine)
    if node is None:
        return Refusal(
            f"no rule knows the machine `{condition.machine}`; describe a node with `linkwright machines import`, or "
            "add the device to linkwright/machines/gpus/gpus.toml"
        )
    nodes, each = _domains(condition, node["machine"])
    if each > (most := _size_of(node["machine"])[0]):
        return Refusal(
            f"{each} ranks on a node, but {node['machine']} has {most} GPUs; how many nodes were there? Give --nodes, "
            "or describe the node with `linkwright machines import`"
        )
    if (forced := _forced(condition)) is None:
        return Refusal(f"forced algorithm `{condition.algo.strip()}`: not known; one of {', '.join(_ALGORITHMS)}")
    fabric, why = _fabric(condition, node) if nodes > 1 else (None, "")
    version, stated = _version(condition, node)
    one, process = _process(condition)
    library = node.get("library", "nccl")
    algorithm = "/".join((f"{library}-{version}", *forced))
    setup = Setup(node["machine"], nodes, each, fabric, algorithm, condition.collective, one and each > 1)
    rules = tuple(filter(None, (node["why"], why, stated, process)))
    return Setting(setup, node["generation"], library, version, _site(condition), rules)


def _by_gpu(words: str) -> Rule | None:
    """The rule of a GPU of the table."""
    if (gpu := gpus.named(words)) is None:
        return None
    rule = {"machine": gpu.on, "generation": gpu.part, "fabric": gpu.fabric, "why": gpu.reason}
    return rule | {"library": gpus.LIBRARIES[gpu.links]}


def _domains(condition: Condition, machine: str) -> tuple[int, int]:
    """Return the copies of the machine file, and the GPUs of each: trays of one rack are one NVLink domain."""
    if machine != "gb200-nvl72":
        return condition.nodes, condition.gpus // condition.nodes
    racks = -(-condition.gpus // _size_of(machine)[1])  # each GPU has one
    return racks, condition.gpus // racks


def _fabric(condition: Condition, node: Rule) -> tuple[str, str]:
    """Return (`--fabric`, the rule) for several nodes."""
    rule = _first("network", condition.text)
    name = rule["fabric"] if rule else node["fabric"]
    why = rule["why"] if rule else f"assumed: {name}, as this generation mostly has"
    stated = _adapters(condition)
    if stated and (rule is None or rule.get("rate_by_text")):
        (count, each), ports = stated, _ports(condition, node)
        # Several adapters next to a GPU are one port; fewer adapters than ports leave some GPUs without.
        used, total = (f",ports={count}" if count < ports else ""), count * each
        rate = total / min(count, ports)
        kept = ",".join(part for part in name.split(",") if not part.startswith("rate="))
        return f"{kept}{used},rate={rate:g}", f"{why}; {total:g} Gb/s per node"
    return name, why


def _ports(condition: Condition, node: Rule) -> int:
    """Return how many ports share the rate of a node's adapters; fewer if it has fewer GPUs than the machine file."""
    gpus, ports = condition.gpus // condition.nodes, _size_of(node["machine"])[1]
    fewer = re.search(rf"\b{gpus} (gpus )?per node", condition.machine.lower())
    return min(ports, gpus) if fewer else ports


@functools.cache
def _size_of(machine: str) -> tuple[int, int]:
    """Return how many GPUs and ports a node has; the text states the joint rate of the ports."""
    described = load(machine)
    return described.ranks, len(described.cluster[0]) if described.cluster else 0


def _adapters(condition: Condition) -> tuple[int, int] | None:
    """Return how many adapters a node has, and the rate of each in Gb/s, if the text states it: `8x400Gb`."""
    found = _ADAPTERS.search(condition.machine.lower())
    return (int(found[1]), int(found[2])) if found else None


def _version(condition: Condition, node: Rule) -> tuple[str, str]:
    stated = _VERSION.search(condition.library_version)
    if stated and node.get("library", "nccl") == "nccl":
        return stated[1], ""
    rule = _first("version", f"{condition.text} | {condition.source_url}")
    assert rule is not None  # the last one matches all
    return rule["version"], f"version {rule['version']}: {rule['why']}"


def _forced(condition: Condition) -> tuple[str, ...] | None:
    """Return the algorithm and protocol that the author forced, each one word; remarks on the choice do not count.

    None if it is one word that no algorithm is known by.
    """
    algo, proto = (re.sub(r"\W.*", "", text.strip().lower()) for text in (condition.algo, condition.proto))
    whole = re.fullmatch(r"\w+( \(forced.*\))?", condition.algo.strip())
    if not whole:
        return ()
    if algo not in _ALGORITHMS:
        return None
    return (_ALGORITHMS[algo], *((_PROTOCOLS[proto],) if proto in _PROTOCOLS else ()))


def _process(condition: Condition) -> tuple[bool, str]:
    rule = _first("process", condition.text)
    return (
        (rule["one"], f"{'one process' if rule['one'] else 'a process or thread per GPU'}: {rule['why']}")
        if rule
        else (False, "")
    )


def _site(condition: Condition) -> str:
    """Return where it was measured: the repository that published it, else the machine's text."""
    found = re.match(r"https?://(?:www\.)?([^/]+/[^/]+(?:/[^/#]+)?)", condition.source_url)
    words = re.findall(r"\(([^,)]*)", condition.machine)
    return f"{found[1] if found else 'unknown'}: {words[0]}" if words else (found[1] if found else condition.machine)


def _first(kind: str, text: str) -> Rule | None:
    return next((rule for rule in _rules()[kind] if re.search(rule["match"], text)), None)


def post_hoc() -> dict[str, str]:
    """Return the rules that were chosen after published values had been seen: why -> the pattern of the rule."""
    return {rule["why"]: rule["match"] for its in _rules().values() for rule in its if rule.get("status") == "post_hoc"}


_rules = functools.partial(toml.data_file, __file__, "settings.toml")

"""Tables in documents that are made from the program: marker name -> function that makes the table."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

import licences
from expect_cases import PUBLIC
from linkwright import _native, machines
from linkwright.base import registry
from linkwright.base.stats.bandwidth import FACTORS
from linkwright.base.units import format_size
from linkwright.cli import groups
from linkwright.formats import interop
from linkwright.formats.gates.gate import rate
from linkwright.store import schema
from linkwright_cases import invoke
from tables import RESULTS, shown

DOCUMENTS = Path(__file__).parent.parent.parent / "docs"
MARKED = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def _table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _columns(columns: dict) -> str:
    rows = [[f"`{name}`", str(kind), "yes" if null else "", text] for name, (kind, null, text) in columns.items()]
    return _table(["column", "type", "may be null", "meaning"], rows)


def _metrics() -> str:
    rows = [[f"`{name}`", unit, better, text] for name, (unit, better, text) in schema.METRICS.items()]
    return _table(["metric", "unit", "better", "meaning"], rows)


def _words(table: dict[str, str]) -> str:
    return _table(["code", "meaning"], [[f"`{name}`", text] for name, text in table.items()])


def _collectives() -> str:
    rows = []
    for row in _native.collectives():
        size = "one rank's own block times p" if row["blocked"] else "the whole array"
        size = "what the fullest rank has to send" if row["uneven"] else size
        name = row["key"]
        rows.append([f"`{name}`", size if name in FACTORS else "no bytes", FACTORS.get(name, "none")])
    return _table(["collective", "S", "f"], rows)


def _shown() -> str:
    usual = (*groups.DEFAULT, "status")
    rows = [[f"`{key}`", "yes" if key in usual else "", column.summary] for key, column in groups.COLUMNS.items()]
    return _table(["column", "usual", "meaning"], rows)


def _formats() -> str:
    tables = {"export": interop.EXPORTERS, "import": interop.IMPORTERS}
    rows = [[verb, f"`{entry.key}`", entry.summary] for verb, table in tables.items() for entry in table]
    return _table(["verb", "format", "what it is"], rows)


def _runtimes() -> str:
    rows = [[f"`{entry['key']}`", str(entry["summary"])] for entry in registry.entries("runtimes")]
    return _table(["`--for`", "what it writes"], rows)


def _gates() -> str:
    rows = [[f"`{entry['key']}`", str(entry["summary"])] for entry in registry.entries("gates")]
    return _table(["`--format`", "what it writes"], rows)


def _expected() -> str:
    asked = ("expect", "allreduce,alltoall", "--on", "hgx-h100", "--nodes", "2", "--sizes", "1M,64M,1G,8G")
    return f"```console\n$ linkwright {' '.join(asked)}\n{invoke(*asked).out}```\n"


def _floors() -> str:
    rows = [
        [one.where, f"`{f'{one.machine} {one.variant.options}'.strip()}`", str(one.ranks or "all"),
         format_size(one.size_bytes), str(one.shipped), rate(one.ours), str(one.measured)]
        for one in PUBLIC
    ]  # fmt: skip
    return _table(["where", "asked", "ranks", "size", "shipped", "ours", "measured"], rows)


def _pages() -> str:
    """The pages of docs/ in the order of the site: by what the reader has, then concepts and reference."""
    navigation = yaml.safe_load((DOCUMENTS.parent / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2])
    return "\n".join(
        f"{title}:\n\n{''.join(_entries(pages))}" for section in navigation for title, pages in section.items()
    )


def _entries(pages: list[Any]) -> Iterator[str]:
    for page in pages:
        if isinstance(page, dict):
            for inner in page.values():
                yield from _entries(inner)
        elif (path := DOCUMENTS / page).exists() and page != "README.md":
            title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            yield f"- [{title}]({page})\n"


# Family of machines -> where its page lists them.
_FAMILIES = {
    "nvidia": ("ampere", "hopper", "blackwell", "pcie-gpu"),
    "amd": ("cdna2", "cdna3", "cdna4"),
}
_OTHERS = ("arc-b60", "gaudi2", "gaudi3", "tenstorrent-galaxy", "tenstorrent-t3000", "tpu-v4")


def _nodes(family: str | None) -> str:
    """The machines of a family, or the others, with what their links carry."""
    rows = []
    for key in registry.keys("machines"):
        text = registry.machine_path(key).read_text(encoding="utf-8")
        parts = tomllib.loads(text).get("parts", [])
        if (set(parts) & set(_FAMILIES[family])) if family else key in _OTHERS:
            rows.append(_node(key))
    return _table(["machine", "ranks", "to the others", "out", "what it is"], rows)


def _node(key: str) -> list[str]:
    """A row: rates in GB/s, each way."""
    machine, joined = machines.load(key), _joined(key)
    ranks = str(machine.ranks) if not machine.open_size else "any grid"
    fabric = tomllib.loads(machines.source(key)[0])["fabric"]
    peers = f"{_rate(fabric['torus']):.0f} a link" if "torus" in fabric else _shown_rate(_rates(machine))
    out = _shown_rate(_rates(joined, "port") if joined else 0.0)
    return [f"`{key}`", ranks, peers, out, machine.summary]


def _joined(key: str) -> _native.Machine | None:
    """Two nodes on the usual network, if the machine can be a node."""
    return machines.load(key, machines.Variant(2)) if machines.load(key).cluster else None


def _shown_rate(rate: float) -> str:
    return f"{rate:.0f}" if rate else "-"


def _rates(machine: _native.Machine, port: str | None = None) -> float:
    """GB/s of the links between ranks out of the first rank, or out of the ports of the first node."""
    network = machine.network()
    names, edges = network["nodes"]["name"], network["edges"]
    total, rows = 0.0, list(zip(edges["class"], edges["a"], edges["b"], strict=True))
    for kind, links in tomllib.loads(machine.text)["fabric"]["links"].items():
        pairs = [(names[a], names[b]) for one, a, b in rows if one == kind]
        if port is None and kind.startswith(("nvlink", "xgmi", "mesh")):
            total += _rate(links) * sum(any(end in ("GPU 0", "HPU 0") for end in pair) for pair in pairs)
        elif kind == port:
            total += _rate(links) * sum(pair[0].startswith("node 0 ") for pair in pairs)
    return total


def _rate(links: dict) -> float:
    units = {"GB/s": 1.0, "Gb/s": 1 / 8}
    return links["bandwidth"]["value"] * units[links["bandwidth"]["unit"]] * links.get("share", {"value": 1})["value"]


def _networks() -> str:
    rows = []
    for entry in registry.entries("networks"):
        numbers = entry["parameters"]
        shown = ", ".join(f"`{key}` {one['value']:g}" for key, one in numbers.items() if key not in SWITCHES)
        rows.append([f"`{entry['key']}`", f"`{entry['topology']}`", shown, str(entry["summary"])])
    return _table(["network", "topology", "parameters", "what it is"], rows)


def _executors() -> str:
    """The executors, each with its page."""
    rows = []
    for row in registry.entries("executors"):
        page = {"sim": "simulation.md"}.get(row["key"], f"{row['key']}.md")
        name = f"`{row['key']}`"
        rows.append([f"[{name}]({page})" if (DOCUMENTS / page).exists() else name, row["summary"]])
    return _table(["executor", "what it is"], rows)


def _licences() -> str:
    return _table(["crate", "version", "licence"], [[f"`{name}`", *rest] for name, *rest in licences.crates()])


def _packages() -> str:
    rows = [[f"`{name}`", extras or "always", licence] for name, extras, licence in licences.packages()]
    return _table(["package", "installed by", "licence"], rows)


SWITCHES = ("gpudirect", "forwarding", "ports", "sharp")
TABLES = {
    "licences": _licences,
    "packages": _packages,
    "nvidia": lambda: _nodes("nvidia"),
    "amd": lambda: _nodes("amd"),
    "accelerators": lambda: _nodes(None),
    "networks": _networks,
    "executors": _executors,
    "pages": _pages,
    "results": lambda: _columns(schema.RESULTS),
    "samples": lambda: _columns(schema.SAMPLES),
    "metrics": _metrics,
    "codes": lambda: _words(schema.CODES),
    "flags": lambda: _words(schema.FLAGS),
    "collectives": _collectives,
    "columns": _shown,
    "lines": lambda: f"```text\n{shown(*RESULTS[:4])}```\n",
    "formats": _formats,
    "runtimes": _runtimes,
    "gates": _gates,
    "expected": _expected,
    "floors": _floors,
}


def machine_files(*, whole: bool = False) -> list[tuple[str, str]]:
    """Texts and names of machine files that together open every table; `whole` ones stand over their parts."""
    root = DOCUMENTS.parent
    paths = map(registry.machine_path, registry.keys("machines"))
    shipped = (
        [machines.source(key) for key in registry.keys("machines")]
        if whole
        else [(path.read_text(encoding="utf-8"), path.name) for path in paths]
    )
    folders = [
        root / "tests/cases/machines",
        root / "crates/linkwright-core/tests/machine",
    ]
    files = [path for folder in folders for path in sorted(folder.glob("*.toml")) if path.name != "errors.toml"]
    return [*shipped, *((path.read_text(encoding="utf-8"), path.name) for path in files)]


def filled(text: str) -> str:
    """A document with every marked table made again."""
    return MARKED.sub(lambda match: match[1] + TABLES[match[2]]() + match[3], text)


def marked_documents() -> list[Path]:
    """The documents that have such tables."""
    return [path for path in sorted(DOCUMENTS.glob("**/*.md")) if MARKED.search(path.read_text(encoding="utf-8"))]

"""Tables in documents that are made from the program: marker name -> function that makes the table."""

import re
from pathlib import Path

from linkwright import _native, interop, machines, registry
from linkwright.cli import groups
from linkwright.stats.bandwidth import FACTORS
from linkwright.store import schema
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


def _pages() -> str:
    """The pages of docs/, those of each folder together."""
    parts = []
    for folder in (DOCUMENTS, *sorted(path for path in DOCUMENTS.iterdir() if path.is_dir())):
        pages = [path for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
        if folder != DOCUMENTS and pages:
            parts.append(f"\n{folder.name.capitalize()}:\n\n")
        for page in pages:
            title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            parts.append(f"- [{title}]({page.relative_to(DOCUMENTS)})\n")
    return "".join(parts)


TABLES = {
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
}


def machine_files() -> list[tuple[str, str]]:
    """Texts and names of machine files that together open every table; those with parts are whole."""
    root = DOCUMENTS.parent
    shipped = [machines.source(key) for key in registry.keys("machines")]
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

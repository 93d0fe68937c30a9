"""Pages of the documentation site that follow from the program itself.

index.md                 the README of the repository, with its pictures side by side
reference/commands.md    the help of every verb
reference/algorithms.md  every algorithm, as it describes itself
reference/python.md      what `import linkwright` offers, from its docstrings
reference/keys.md        the keys of files, from their schemas
machines/all.md          every shipped machine, as a picture
machines/NAME.md         one of them: published against predicted, each number with its source
playground.html          the engine in a page of its own, which docs/playground.md leads to

MkDocs calls the functions `on_*`. A link that leaves docs/ leads to a file of the repository, which the site does not
hold; it becomes the name of that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import machine_pages
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from linkwright.base import registry
from linkwright.base.errors import FileError
from linkwright.show import playground

ROOT = Path(__file__).parent.parent
STYLE = "assets/site.css"
_LEAVING = re.compile(
    r"\[([^\]]*)\]\(((?:\.\./)+(?:python|crates|examples|benches|plugins|tests)/[^)]*|(?:\.\./)*[A-Z]+\.md[^)]*)\)"
)
_ROW = re.compile(r"^\| `([\w-]+)` \|", re.MULTILINE)
_PICTURES = re.compile(r"^\| (!\[.*)\|\n\|[-|]+\|\n\| (.*) \|\n", re.MULTILINE)


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the generated pages and pictures, and the style."""
    for path, text in _pages():
        files.append(File.generated(config, path, content=text))
    files.append(File.generated(config, "playground.html", content=_playground()))
    files.append(File.generated(config, STYLE, content=(ROOT / "website" / "site.css").read_text(encoding="utf-8")))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the generated pages in the navigation, and pages of fabrics, studies and executors that are new."""
    listed = _by_title(config.nav or [])
    docs = Path(config.docs_dir)
    for section, folder in ((_by_title(listed["Machines"])["Fabrics"], "fabrics"), (listed["Studies"], "studies")):
        section += sorted({f"{folder}/{page.name}" for page in (docs / folder).glob("*.md")}.difference(section))
    cluster = listed["A cluster"]
    executors = [f"{key}.md" for key in registry.keys("executors")]
    cluster += [page for page in executors if page not in cluster and (docs / page).exists()]
    listed["Reference"][:0] = [f"reference/{page}.md" for page in ("commands", "algorithms", "python", "keys")]
    listed["Machines"].insert(
        1, {"All machines": ["machines/all.md", *(f"machines/{k}.md" for k in machine_pages.names())]}
    )
    return config


def _by_title(nav: list[Any]) -> dict[str, list[Any]]:
    """The parts of a navigation that have a title."""
    return {title: pages for part in nav if isinstance(part, dict) for title, pages in part.items()}


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Name what a link outside of the site leads to, and link the machines that a table lists to their pages."""

    def named(link: re.Match[str]) -> str:
        words, target = link[1], link[2]
        if target.split("#")[0] == "README.md":
            return link[0]
        return words if words.strip("`").split("/")[-1] in target else f"{words} (`{target.lstrip('./')}`)"

    return _machines_linked(_LEAVING.sub(named, markdown), page.file.src_uri)


def _machines_linked(markdown: str, path: str) -> str:
    """The page with a link from each row whose first column names a machine."""
    up = "../" * path.count("/")

    def linked(row: re.Match[str]) -> str:
        return f"| [`{row[1]}`]({up}machines/{row[1]}.md) |" if row[1] in machine_pages.names() else row[0]

    return _ROW.sub(linked, markdown)


def _pages() -> Iterator[tuple[str, str]]:
    yield "index.md", _home()
    yield "reference/commands.md", reference.commands()
    yield "reference/algorithms.md", reference.algorithms()
    yield "reference/python.md", reference.python()
    yield "reference/keys.md", reference.keys()
    yield "machines/all.md", machine_pages.gallery()
    for key in machine_pages.names():
        yield f"machines/{key}.md", machine_pages.page(key)
        yield from machine_pages.drawings(key)


def _playground() -> str:
    """The playground, or why this site has none."""
    try:
        return playground.page()
    except FileError as error:
        return f"<!doctype html><title>No playground</title><p>{error}</p>"


def _home() -> str:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    return _PICTURES.sub(_side_by_side, readme)


def _side_by_side(table: re.Match[str]) -> str:
    """The table of pictures as figures, which become one column on a narrow screen."""
    pairs = zip(table[1].split("|"), table[2].split("|"), strict=False)
    figures = "".join(
        f"<figure markdown>{shown.strip()}<figcaption>{told.strip()}</figcaption></figure>\n" for shown, told in pairs
    )
    return f'<div class="pictures" markdown>\n{figures}</div>\n'

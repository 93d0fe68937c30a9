"""A page for each shipped machine, and one that shows all of them.

A page has a picture, what was published against what is predicted, and every number with its status and source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby

from agreement import Table, tables
from histogram import histogram

from linkwright import _native, machines
from linkwright.base import registry
from linkwright.show import picture
from linkwright.show.picture.subjects import Asked, sized
from linkwright_evidence import scoring

# Machines without a model of something that can be bought.
_IDEAL = ("crossbar", "loggp", "torus-2d")


@cache
def names() -> list[str]:
    """All shipped machines."""
    return [str(entry["key"]) for entry in registry.entries("machines")]


def drawings(key: str) -> Iterator[tuple[str, str]]:
    """Path and text of the pictures in light and dark."""
    scene = picture.scene(sized(machines.load(key), Asked()))
    yield f"machines/pictures/{key}.svg", picture.svg(scene, dark=False)
    yield f"machines/pictures/{key}-dark.svg", picture.svg(scene, dark=True)


def gallery() -> str:
    """The page of all machines: a picture, what it is, and how far to trust it."""
    cards = "\n".join(_card(key) for key in names())
    return (
        "---\nhide: [toc]\n---\n\n# All described machines\n\n"
        "Each machine is a file in which every number states its unit, status and source. Its page shows all of "
        "them, and how close predictions come to published values.\n\n"
        f'<div class="gallery" markdown>\n{cards}\n</div>\n'
    )


def page(key: str) -> str:
    """The page of one machine."""
    machine = machines.load(key)
    rules = [f"- **{rule['name']}**: {rule['statement']}. {rule['evidence']}." for rule in machine.rules()]
    return "\n\n".join(
        [
            f"# {key}",
            f"{machine.summary}.",
            _picture(key, f"{key}: endpoints and the links between them"),
            machine.description,
            _facts(key, machine),
            "## Published against predicted",
            *_agreement(key),
            "## Numbers",
            _statuses(machine),
            *_numbers(machine),
            *(["## Rules", "\n".join(rules)] if rules else []),
            "## Sources",
            "\n".join(f"- {source}" for source in machine.sources),
        ]
    )


def _picture(key: str, told: str) -> str:
    return f"![{told}](pictures/{key}.svg#only-light)![{told}](pictures/{key}-dark.svg#only-dark)"


def _card(key: str) -> str:
    machine = machines.load(key)
    return (
        '<figure markdown="block">\n'
        f'<a href="../{key}/">{_thumbnail(key, "light")}{_thumbnail(key, "dark")}</a>\n'
        f"<figcaption markdown>**[{key}]({key}.md)** {machine.summary.removesuffix('; unchecked')}. "
        f"<small>{_trust(key)}</small></figcaption>\n</figure>"
    )


def _thumbnail(key: str, theme: str) -> str:
    file = f"{key}-dark" if theme == "dark" else key
    return f'<img alt="" loading="lazy" src="../pictures/{file}.svg#only-{theme}">'


def _trust(key: str) -> str:
    """How close predictions come, in a few words."""
    found = _tables(key)
    score = _pooled(found)
    if score is None and found:
        return f"{sum(table.cells for table in found):,} published values, none of them scored"
    if score is None:
        return "an ideal network" if key in _IDEAL else "unchecked: no published table to compare with"
    return f"median error {score.median:.1%} over {len(score.errors):,} published values"


def _facts(key: str, machine: _native.Machine) -> str:
    ranks = (
        "as many ranks as you ask for"
        if machine.open_size
        else f"{machine.ranks:,} {'rank' if machine.ranks == 1 else 'ranks'}"
    )
    paths = ", ".join(f"`{path}`" for path in machine.paths)
    told = f"{ranks} on the fabric [`{machine.fabric}`](../fabrics/{machine.fabric}.md); paths {paths or 'none'}."
    told = told[0].upper() + told[1:]
    return f"{told}\n\n```console\n$ linkwright machines show {key}\n$ linkwright draw {key} --out {key}.html\n```"


def _agreement(key: str) -> Iterator[str]:
    """How close predictions come, as a chart and by table of each study."""
    found = _tables(key)
    if not found:
        yield (
            "This is an ideal network, which nothing was measured on."
            if key in _IDEAL
            else "No published table has been compared with this machine, so its predictions are unchecked."
        )
        return
    errors = [error for table in found for error in table.errors]
    if errors:
        yield histogram(errors)
    for study, its in groupby(found, key=lambda table: table.study):
        yield (
            f"Study [`{study}`](../studies/{study}.md). *Given* cells were inputs of the model, or a number was "
            "fitted to them; they are in no error."
        )
        yield "\n".join(_rows(list(its)))


def _rows(its: Sequence[Table]) -> Iterator[str]:
    yield "| table | cells | given | median error | 90th percentile | largest | within 10 % |"
    yield "|---|--:|--:|--:|--:|--:|--:|"
    for table in its:
        yield f"| {_cell(table.name)} | {table.cells:,} | {table.given or ''} | {_figures(table.score)} |"
    if len(its) > 1:
        cells, given = sum(table.cells for table in its), sum(table.given for table in its)
        yield f"| **all** | {cells:,} | {given or ''} | {_figures(_pooled(its))} |"


def _figures(score: scoring.Score | None) -> str:
    if score is None:
        return "| | |"
    return " | ".join(f"{value:.1%}" for value in (score.median, score.p90, score.largest, score.within()))


def _pooled(its: Sequence[Table]) -> scoring.Score | None:
    errors = tuple(sorted(abs(error) for table in its for error in table.errors))
    return scoring.Score("all", errors) if errors else None


@cache
def _all_tables() -> list[Table]:
    return tables()


def _tables(key: str) -> list[Table]:
    return [table for table in _all_tables() if table.machine == key]


def _statuses(machine: _native.Machine) -> str:
    counts = Counter(number["status"] for number in machine.numbers())
    told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.most_common())
    return f"{counts.total()} numbers: {told}. [What a status means](../machines.md)."


def _numbers(machine: _native.Machine) -> Iterator[str]:
    """A table for each part of the file."""
    for part, its in groupby(machine.numbers(), key=lambda number: number["key"].partition(".")[0]):
        yield f"### `{part}`"
        rows = (
            f"| `{n['key'].removeprefix(f'{part}.')}` | {n['value']} {n['unit']} | {n['status'].replace('_', ' ')} "
            f"| {_cell(n['source'])} |"
            for n in its
        )
        yield "\n".join(["| number | value | status | source |", "|---|--:|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")

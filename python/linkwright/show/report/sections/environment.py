"""Where, when and how the run was made: everything needed to judge or repeat its numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..model import Cell, Column, Section, Table, Text
from ..runs import Run

# Fact -> its key in environment.json or run.json; of a model, what computed it is no fact about the machine.
_FACTS = (
    ("when", "time"),
    ("command", "command"),
    ("linkwright", "linkwright"),
    ("seed", "seed"),
)
_HOST = (("processor", "processor"), ("processors", "cpus_online"), ("system", "system"), ("kernel", "kernel"))


def section(run: Run) -> Section | None:
    """The contents of environment.json and run.json, and the suite as it was run."""
    told = run.environment | ({"plan": run.plan} if run.plan else {})
    modelled = _only_modelled(run)
    rows = [[group, key, Cell(value)] for group, key, value in flat(told)]
    items: list = [Table("This run", (Column("Fact"), Column("Value")), [list(fact) for fact in facts(run)])]
    if rows:
        columns = (Column("Group"), Column("Key"), Column("Value"))
        items.append(Table("Environment of the run", columns, rows, collapsed=len(rows) > 30 or modelled))
    if run.suite:
        items.append(Text((run.suite,), title="The suite, as it was run", preformatted=True))
    intro = "Recorded when the run started."
    if modelled:
        intro += " The processor computed the model; it is not the machine that is described."
    return Section("Environment", items, intro)


def _only_modelled(run: Run) -> bool:
    return bool(len(run.rows)) and bool(run.rows["modelled"].all())


def facts(run: Run) -> list[tuple[str, str]]:
    """What identifies the run, and what it measured."""
    machines = ", ".join(
        f"{name} (modelled)" if run.rows[run.rows["machine"] == name]["modelled"].all() else name
        for name in run.machines
    )
    found = [("run", run.id), ("machines", machines)]
    wanted = _FACTS + (() if _only_modelled(run) else _HOST)
    found += [(name, _find(run.environment, key) or _find(run.plan, key)) for name, key in wanted]
    if run.plan.get("state") == "running":
        found.append(("state", f"not finished; linkwright dissect --resume {run.id} continues it"))
    return [(name, value) for name, value in found if value]


def flat(tree: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Every (group, key, value) of a nested object, with lists of plain values on one line."""
    for name, value in sorted(tree.items()):
        if isinstance(value, dict):
            for group, key, leaf in flat(value):
                yield name, f"{group}.{key}" if group else key, leaf
        else:
            yield "", name, _words(value)


def _find(tree: dict[str, Any], key: str) -> str:
    """The value of `key` at the top or one level down; empty if it is absent or an object."""
    for place in (tree, *(v for _, v in sorted(tree.items()) if isinstance(v, dict))):
        if key in place and not isinstance(place[key], dict) and place[key] is not None:
            return _words(place[key])
    return ""


def _words(value: Any) -> str:
    if isinstance(value, list):
        return (
            " ".join(_words(item) for item in value)
            if all(isinstance(v, str) for v in value)
            else ", ".join(map(_words, value))
        )
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_words(item)}" for key, item in sorted(value.items()))
    return "not recorded" if value is None else str(value)

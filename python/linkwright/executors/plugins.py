"""Executors of installed packages: entry points of the group `linkwright.executors`.

    [project.entry-points."linkwright.executors"]
    tcp = "linkwright_tcp:Tcp"          key = module:class

Finding them reads the metadata of packages. A package is imported only when its executor is named or listed; it takes
no part in anything else, so one that is broken disturbs nothing else.
"""

from __future__ import annotations

import functools
import re
from importlib.metadata import EntryPoint, entry_points

from linkwright.errors import PluginError

from .protocol import CONDITIONS, Executor

GROUP = "linkwright.executors"
_KEY = re.compile(r"[a-z][a-z0-9_-]*")


@functools.cache
def installed() -> dict[str, list[EntryPoint]]:
    """The entry points of the group by key; packages may compete for one."""
    found: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        found.setdefault(entry.name, []).append(entry)
    return found


def package(entry: EntryPoint) -> str:
    """The package of an entry point and its version, such as `linkwright-tcp 0.1.0`."""
    return f"{entry.dist.metadata['Name']} {entry.dist.version}" if entry.dist else "an unknown package"


@functools.cache
def load(key: str) -> Executor:
    """The executor of an installed key; raises a `PluginError` that says why it cannot be used."""
    entries = installed()[key]
    if len(entries) > 1:
        raise PluginError(
            f"executor `{key}`: {' and '.join(map(package, entries))} both have it; uninstall one of them"
        )
    (entry,) = entries
    where = f"executor `{key}` of {package(entry)}"
    try:
        found = entry.load()
        executor = found() if isinstance(found, type) else found
    except (Exception, SystemExit) as error:
        module = entry.value.partition(":")[0]
        raise PluginError(
            f"{where}: `{entry.value}` does not load: {type(error).__name__}: {error}; "
            f"`python -c 'import {module}'` shows where, and uninstalling the package removes the executor"
        ) from error
    if problem := _problem(key, executor):
        raise PluginError(f"{where}: `{entry.value}` {problem}; linkwright.executor_api documents what an executor is")
    return executor


def _problem(key: str, executor: Executor) -> str | None:
    """What is wrong with an object that should be an executor, as the rest of a sentence."""
    kind = type(executor)
    if Executor not in kind.__mro__:
        return f"is an object of class {kind.__name__}, not of a subclass of linkwright.executor_api.Executor"
    for name in ("key", "summary", "description"):
        if not isinstance(getattr(executor, name, None), str):
            return f"has no text in `{name}`"
    if executor.key != key or not _KEY.fullmatch(key):
        return f"has the key `{executor.key}`, but the entry point is called `{key}`; a key is one lower-case word"
    if executor.modelled:
        return "says that its times are modelled; described machines do that, and a plug-in measures"
    missing = [name for name in ("resolve", "launch") if getattr(kind, name) is getattr(Executor, name)]
    if missing:
        return f"does not define `{'` and `'.join(missing)}`"
    if strange := sorted(set(executor.obeys) - set(CONDITIONS)):
        names, known = ", ".join(map(str, strange)), ", ".join(CONDITIONS)
        return f"obeys {names}, which linkwright does not know; the conditions are {known}"
    return None

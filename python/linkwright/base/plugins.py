"""Plug-ins: objects that installed packages add through entry points.

    [project.entry-points."linkwright.networks"]
    simgrid = "linkwright_networks.simgrid:NETWORK"          key = module:object

Finding entry points only reads the metadata of packages. A package is imported when its key is named or listed, so a
broken one affects nothing else.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from linkwright.base.errors import PluginError


@functools.cache
def installed(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by key; several packages may claim one key."""
    by_key: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value)):
        by_key.setdefault(entry.name, []).append(entry)
    return by_key


def package(entry: EntryPoint) -> str:
    """Return the package of an entry point with its version, such as `linkwright-tcp 0.1.0`."""
    return f"{entry.dist.metadata['Name']} {entry.dist.version}" if entry.dist else "an unknown package"


def load(group: str, key: str, what: str) -> tuple[Any, str, EntryPoint]:
    """Load the object of an installed key; return it, its name in messages and its entry point. `what` is its kind.

    Raise a `PluginError` that says why it cannot be used.
    """
    entries = installed(group)[key]
    if len(entries) > 1:
        raise PluginError(
            f"{what} `{key}`: {' and '.join(map(package, entries))} both provide it; uninstall one of them"
        )
    (entry,) = entries
    where = f"{what} `{key}` of {package(entry)}"
    try:
        found = entry.load()
        return (found() if isinstance(found, type) else found), where, entry
    except (Exception, SystemExit) as error:
        module = entry.value.partition(":")[0]
        raise PluginError(
            f"{where}: `{entry.value}` does not load: {type(error).__name__}: {error}; "
            f"`python -c 'import {module}'` shows where, and uninstalling the package removes the {what}"
        ) from error


def unusable(group: str, key: str, why: str) -> dict[str, object]:
    """Return the entry of an unusable key, for `list` and `describe`."""
    packages = " and ".join(map(package, installed(group)[key]))
    return {"key": key, "summary": f"cannot be used: {why}", "description": "", "package": packages}

"""Executors of installed packages: entry points of the group `linkwright.executors`.

[project.entry-points."linkwright.executors"]
tcp = "linkwright_tcp:Tcp"          key = module:class
"""

from __future__ import annotations

import functools
import re

from linkwright.base import plugins
from linkwright.base.errors import PluginError

from .protocol import CONDITIONS, Executor

GROUP = "linkwright.executors"
_KEY = re.compile(r"[a-z][a-z0-9_-]*")

installed = functools.partial(plugins.installed, GROUP)
unusable = functools.partial(plugins.unusable, GROUP)
package = plugins.package


@functools.cache
def load(key: str) -> Executor:
    """The executor of an installed key; raises a `PluginError` that says why it cannot be used."""
    executor, where, entry = plugins.load(GROUP, key, "executor")
    if problem := _problem(key, executor):
        raise PluginError(f"{where}: `{entry.value}` {problem}; linkwright.executor_api documents executors")
    return executor


def _problem(key: str, executor: Executor) -> str | None:
    """What is wrong with an object that should be an executor, as the rest of a sentence."""
    kind = type(executor)
    if Executor not in kind.__mro__:
        return f"is an instance of {kind.__name__}, not of a subclass of linkwright.executor_api.Executor"
    for name in ("key", "summary", "description"):
        if not isinstance(getattr(executor, name, None), str):
            return f"has no text in `{name}`"
    if executor.key != key or not _KEY.fullmatch(key):
        return f"has the key `{executor.key}`, but the entry point is called `{key}`; a key is one lower-case word"
    if executor.modelled:
        return "declares its times modelled; only described machines model, a plug-in must measure"
    missing = [name for name in ("resolve", "launch") if getattr(kind, name) is getattr(Executor, name)]
    if missing:
        return f"does not define `{'` and `'.join(missing)}`"
    if strange := sorted(set(executor.obeys) - set(CONDITIONS)):
        names, known = ", ".join(map(str, strange)), ", ".join(CONDITIONS)
        return f"declares the conditions {names}, which linkwright does not know; known: {known}"
    return None

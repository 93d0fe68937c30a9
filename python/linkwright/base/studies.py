"""Published studies: an installed package brings them through the entry point group `linkwright.studies`.

    [project.entry-points."linkwright.studies"]
    evidence = "linkwright_evidence"

That module has a `REGISTRY`, from the key of a study to an object with its `summary`. Its module `cli` has the
`command` of `linkwright reproduce`, and `report` has `page` and `sections`, which draw the `study.json` of a run
folder. Finding the package reads metadata alone; nothing of it is imported before a study is named or listed.
"""

from __future__ import annotations

import functools
import importlib
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

from linkwright.base import extras
from linkwright.base.errors import PluginError, UsageError

GROUP = "linkwright.studies"


@functools.cache
def installed() -> EntryPoint | None:
    """The package of studies, if there is one."""
    return next(iter(entry_points(group=GROUP)), None)


def missing() -> UsageError:
    """The error for studies that are not installed."""
    cure = extras.install_package("linkwright-evidence")
    return UsageError(f"studies are in the package linkwright-evidence, which is not installed; {cure} installs it")


def module(name: str = "") -> ModuleType:
    """The module of that name in the installed package, or the package itself."""
    entry = installed()
    if entry is None:
        raise missing()
    path = f"{entry.value}.{name}" if name else entry.value
    try:
        return importlib.import_module(path)
    except ImportError as error:
        raise PluginError(
            f"studies: `{path}` does not load: {error}; install linkwright and linkwright-evidence of one version"
        ) from error


def entries() -> list[dict[str, object]]:
    """Key and summary of each study; none where no package brings any."""
    return [{"key": key, "summary": study.summary} for key, study in module().REGISTRY.items()] if installed() else []

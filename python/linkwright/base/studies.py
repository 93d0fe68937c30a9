"""Published studies, which an installed package provides through the entry point group `linkwright.studies`.

    [project.entry-points."linkwright.studies"]
    evidence = "linkwright_evidence"

That package has a `REGISTRY`, which maps the key of a study to an object with a `summary`. Its module `cli` has the
`command` of `linkwright reproduce`; its module `report` has `page` and `sections`, which draw the `study.json` of a run
folder. Finding the package only reads metadata; it is imported when a study is named or listed.
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
    """Return the entry point of the package of studies, if one is installed."""
    return next(iter(entry_points(group=GROUP)), None)


def missing() -> UsageError:
    """Return the error for studies that are not installed."""
    cure = extras.install_package("linkwright-evidence")
    return UsageError(f"studies are in the package linkwright-evidence, which is not installed; {cure} installs it")


def module(name: str = "") -> ModuleType:
    """Import the module `name` of the installed package, or the package itself."""
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
    """Return the key and summary of each study; none if no package is installed."""
    return [{"key": key, "summary": study.summary} for key, study in module().REGISTRY.items()] if installed() else []

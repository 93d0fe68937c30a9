"""From a run to a model: which kind of machine its executor ran on.

`threads` shares memory, so its host becomes `coherent` caches (`shared`), and so does a GPU, whose SMs share an L2
(`chip`); everything else sends messages and becomes `loggp` (`host`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from linkwright.store.run import Run

from . import chip, hierarchy, host, shared
from .points import Point, measured_rows
from .protocol import Protocol

Model = host.Model | shared.Shared | chip.Chip


def fit(run: Run, points: Sequence[Point], name: str, of: str) -> tuple[Model, Protocol]:
    """The model of the machine called `of` in `run`, and how its times were taken."""
    executor = measured_rows(run, of)[0]["executor"]
    protocol = Protocol(executor)
    path = run.folder / "environment.json"
    environment = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if executor == "threads":
        levels = hierarchy.of_host(environment)
        if levels.caches:
            return shared.fit(points, host.slug(name), of, run.id, levels, protocol), protocol
    l2_bytes = environment.get("cuda", {}).get("l2_bytes")
    if executor == "cuda" and l2_bytes:
        return chip.fit(points, host.slug(name), of, run.id, l2_bytes, protocol), protocol
    job = environment.get("mpi", {}).get("ranks", ()) if executor == "mpi" else ()
    hosts = hierarchy.of_hosts([rank["host"] for rank in job])
    return host.fit(points, name, of, run.id, hosts), protocol

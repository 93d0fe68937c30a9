"""One of the links between GPUs is gone."""

from __future__ import annotations

from collections.abc import Iterator

from linkwright.advise.explain.system import System
from linkwright.formats.logs import Facts

from .kind import UNUSUAL, Case, Hypothesis, is_full

MOST = 4  # links of the first GPU; those of others give the same curves on a symmetric machine


def _cases(system: System, facts: Facts) -> Iterator[Case]:
    if system.nodes > 1 or is_full(facts, "nvlink") or is_full(facts, "xgmi"):
        return
    for a, b in system.peers[:MOST]:
        yield Case(
            f"one link between GPUs is missing, such as {a} - {b}", system.lacking(f"{a} - {b}"), "missing link",
            "a link failed its training or was switched off after errors", system.command("links"),
            "reset the GPUs, reseat the bridge or baseboard; compare with a healthy node",
            common=UNUSUAL,
        )  # fmt: skip


HYPOTHESIS = Hypothesis("missing_link", "one link between GPUs is missing", _cases)

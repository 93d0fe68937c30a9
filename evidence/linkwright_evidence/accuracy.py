"""Write the table of docs/accuracy.md: what each study tuned, scored and found.

    linkwright reproduce STUDY --json STUDY.json      for each study
    python -m linkwright_evidence.accuracy docs/accuracy.md *.json

The studies take minutes together, so the table is written from their results and is not part of `make generate`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from linkwright.base import files
from linkwright_evidence import REGISTRY, scoring

HEAD = ("study", "claims that hold", "cells scored", "median error", "nine in ten within", "fitted", "post hoc", "free")
_MARKED = re.compile(r"(<!-- accuracy -->\n).*?(<!-- end -->)", re.DOTALL)


def row(name: str, study: dict) -> list[str]:
    """Return the row of a study, from what `reproduce NAME --json` writes."""
    judged = [claim["holds"] for claim in study["claims"] if claim["holds"] is not None]
    errors = [
        abs(error)
        for cell in study["cells"]
        if cell["role"] == "predicted" and not cell.get("erratum")
        if (error := scoring.relative_error(cell["predicted"], cell["reference"])) is not None
    ]
    score = scoring.Score(name, tuple(sorted(errors)))
    tuned = Counter(number["status"] for number in study["tuned"])
    counts = [str(tuned[status]) for status in ("fitted", "post_hoc", "assumed")]
    return [
        f"`{name}`",
        f"{sum(judged)} of {len(judged)}",
        f"{len(errors):,}",
        f"{score.median:.1%}",
        f"{score.p90:.1%}",
        *counts,
    ]


def table(results: dict[str, dict]) -> str:
    """Return the table of the studies whose results are given, in the order of `REGISTRY`."""
    rows = [
        HEAD,
        ["---"] + ["---:"] * (len(HEAD) - 1),
        *(row(name, results[name]) for name in REGISTRY if name in results),
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def main(page: Path, results: list[Path]) -> None:
    """Write the table into the page."""
    studies = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in results}
    missing = set(REGISTRY) - set(studies)
    if missing:
        raise SystemExit(f"no result of {', '.join(sorted(missing))}: linkwright reproduce STUDY --json STUDY.json")
    files.write_text(page, _MARKED.sub(rf"\g<1>{table(studies)}\2", page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(name) for name in sys.argv[2:]])

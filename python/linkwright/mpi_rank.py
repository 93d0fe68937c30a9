"""One rank of the job that `lw.run(schedule, on="mpi")` starts outside one (`executors/mpi/local.py`).

    python -m linkwright.mpi_rank FOLDER

reads `request.json` in the folder; rank 0 leaves `answer.json` there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from linkwright import _native, api
from linkwright.base.errors import LinkwrightError
from linkwright.executors.mpi.world import rank_from_launcher


def _serve(folder: Path) -> None:
    """One rank of the job; rank 0 writes the answer."""
    asked = json.loads((folder / "request.json").read_text(encoding="utf-8"))
    schedule = _native.Schedule.parse(asked["schedule"])
    try:
        answer = {"rows": api.run(schedule, on="mpi", **asked["how"]).rows}
    except LinkwrightError as error:
        answer = {"reason": str(error), "code": error.code}
    if rank_from_launcher() == 0:
        whole = folder / f"answer.{os.getpid()}"
        whole.write_text(json.dumps(answer), encoding="utf-8")
        whole.replace(folder / "answer.json")


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))

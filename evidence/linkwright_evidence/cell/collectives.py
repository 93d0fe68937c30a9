"""Which allreduce is fastest over eight SPEs: every algorithm of the registry, by size, on the default path."""

from __future__ import annotations

from linkwright import _native
from linkwright.ask.answer import ask
from linkwright.base.errors import UnsuitedError, WaivedError
from linkwright_evidence import Options, parallel
from linkwright_evidence.cell.chip import SPES

SIZES = (64, 512, 4096, 16384, 65536)
ELEMENT = 4


def measure(machine, options: Options) -> list[dict]:
    """Time of every algorithm and size; `fastest` marks the best of a size."""
    keys = [row["key"] for row in _native.algorithms() if row["collective"] == "allreduce"]
    cases = [(key, size) for key in keys for size in SIZES]

    def one(key: str, size: int) -> dict | None:
        try:
            made = _native.Schedule.build(key, SPES, size // ELEMENT, element_bytes=ELEMENT, grid=None)
            answer = ask(machine, made)
        except (WaivedError, UnsuitedError):  # not for eight ranks, or too large for a local store
            return None
        return {"algorithm": key.removeprefix("allreduce/"), "size_bytes": size, "time_us": answer.time.us}

    rows = [row for row in parallel(one, cases, options, "allreduce") if row]
    best = {size: min((r["time_us"], r["algorithm"]) for r in rows if r["size_bytes"] == size)[1] for size in SIZES}
    return [row | {"best_algorithm": best[row["size_bytes"]]} for row in rows]

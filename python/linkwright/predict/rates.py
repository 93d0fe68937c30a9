"""How fast one endpoint works, as the program states it, and how much it holds, as the machine file does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkwright import _native
    from linkwright.predict.document import Table

_SIZE_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def capacity_bytes(machine: _native.Machine) -> int | None:
    """Memory of one endpoint, where the machine file states it."""
    for row in machine.numbers():
        if row["key"] == "endpoints.capacity":
            return int(float(row["value"]) * _SIZE_UNITS[row["unit"]])
    return None


class Rates:
    """Rates of one endpoint."""

    def __init__(self, head: Table):
        self._head = head
        self._rates = {key: head.amount(key) for key in ("flops_per_s", "bytes_per_s") if head.has(key)}
        for key, rate in self._rates.items():
            if rate == 0:
                raise head.error(f"{key} is 0; give a rate above 0, or leave the key out")

    def flops_ns(self, flops: float) -> float:
        """Time of so many additions and multiplications."""
        return self._time_ns(flops, "flops", "flops_per_s")

    def bytes_ns(self, moved: int) -> float:
        """Time to read or write so many bytes of an endpoint's own memory."""
        return self._time_ns(moved, "bytes", "bytes_per_s")

    def _time_ns(self, amount: float, what: str, key: str) -> float:
        if amount == 0:
            return 0.0
        if key not in self._rates:
            raise self._head.error(f"a superstep has `{what}`, and nothing says how fast they go; add `{key}`")
        return amount / self._rates[key] * 1e9

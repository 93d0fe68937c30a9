"""How fast one endpoint of a described machine works, and how much it holds.

Arithmetic runs at the rate of a large matrix product, shared evenly by the endpoints that work on it. Memory is read
by all hardware threads of an endpoint, at the rate of the nearest level that holds its data. Both rates come from the
models behind `linkwright run`, unless the program states its own (`flops_per_s`, `bytes_per_s`). If neither the
program nor the machine gives a rate, there is no forecast.
"""

from __future__ import annotations

from linkwright import _native
from linkwright.base.errors import WaivedError
from linkwright.base.toml import Table
from linkwright.base.units import NS_PER_S, PS_PER_S

# Large enough that start-up costs vanish, small enough for the memory of one chip.
PRODUCT_SIDE = 2048
DTYPES = {"half": "f16", "single": "f32"}

_SIZE_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def capacity_bytes(machine: _native.Machine) -> int | None:
    """Memory of one endpoint, if the machine file states it."""
    row = _numbers(machine).get("endpoints.capacity")
    return None if row is None else int(float(row["value"]) * _SIZE_UNITS[row["unit"]])


def product_flops_per_s(machine: _native.Machine, precision: str) -> tuple[float, int]:
    """(rate of a large product, endpoints that work on it); a `WaivedError` if the machine has no model of it."""
    threads = _number(machine, "probe.compute.product.tiles")
    axes = {"n": PRODUCT_SIDE, "dtype": DTYPES[precision], "threads": threads}
    found = _native.model_probe(machine, "matmul", axes)
    return found["work"] / found["time_ps"] * PS_PER_S, threads


def read_bytes_per_s(machine: _native.Machine, block: int) -> float:
    """Rate at which all hardware threads of one endpoint read `block` bytes each; a `WaivedError` as above."""
    threads = _number(machine, "probe.memory.level[0].hardware_threads")
    found = _native.model_probe(machine, "memory_bandwidth", {"block": block, "threads": threads})
    return found["counted_bytes"] / found["time_ps"] * PS_PER_S


def _numbers(machine: _native.Machine) -> dict[str, dict]:
    return {row["key"]: row for row in machine.numbers()}


def _number(machine: _native.Machine, key: str) -> int:
    return int(_numbers(machine).get(key, {"value": 1})["value"])


class Rates:
    """Rates of one endpoint, for one program."""

    def __init__(self, machine: _native.Machine, head: Table):
        self._machine, self._head = machine, head
        self._stated = {key: head[key] for key in ("flops_per_s", "bytes_per_s") if key in head}
        for key, rate in self._stated.items():
            if rate < 1:
                raise head.error(f"{key} is {rate:g}; give a rate of at least 1, or omit the key")

    def flops_ns(self, flops: float, precision: str) -> float:
        """Time of so many additions and multiplications."""
        if flops == 0:
            return 0.0
        if "flops_per_s" in self._stated:
            return flops / self._stated["flops_per_s"] * NS_PER_S
        try:
            rate, endpoints = product_flops_per_s(self._machine, precision)
        except WaivedError as error:
            raise self._unknown("flops", "flops_per_s", error) from error
        return flops * endpoints / rate * NS_PER_S

    def bytes_ns(self, moved: int, working_set: int) -> float:
        """Time to read so many bytes of a working set in an endpoint's own memory."""
        if moved == 0:
            return 0.0
        if "bytes_per_s" in self._stated:
            return moved / self._stated["bytes_per_s"] * NS_PER_S
        try:
            return moved / read_bytes_per_s(self._machine, max(1, min(moved, working_set))) * NS_PER_S
        except WaivedError as error:
            raise self._unknown("bytes", "bytes_per_s", error) from error

    def _unknown(self, what: str, key: str, reason: WaivedError) -> Exception:
        return self._head.error(
            f"the program states `{what}`, but neither it nor the machine gives a rate; add `{key}` ({reason})"
        )

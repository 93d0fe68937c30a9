"""The numbers of a machine: by key, changed, fitted."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright import _native


def values(machine: _native.Machine) -> dict[str, float]:
    """Scalars of the machine file by key, in the units of the file."""
    return {row["key"]: float(row["value"]) for row in machine.numbers() if not row["value"].startswith("[")}


def fitted(machine: _native.Machine) -> list[dict]:
    """The numbers of the machine file that were fitted."""
    return [row for row in machine.numbers() if row["status"] == "fitted"]


def changed(machine: _native.Machine, values: Mapping[str, str]) -> _native.Machine:
    """The machine with other values, written as in a machine file."""
    for key, value in values.items():
        machine = machine.with_value(key, value)
    return machine

"""The numbers of a machine: by key, changed, fitted."""

from __future__ import annotations

from collections.abc import Mapping

from linkwright import _native

# The unit of a word or a flag among the numbers of a machine.
WORD = "word"
TUNED = ("fitted", "post_hoc", "assumed")


def values(machine: _native.Machine) -> dict[str, float]:
    """Scalars of the machine file by key, in the units of the file."""
    rows = (row for row in machine.numbers() if row["unit"] != WORD and not row["value"].startswith("["))
    return {row["key"]: float(row["value"]) for row in rows}


def fitted(machine: _native.Machine) -> list[dict]:
    """The numbers of the machine file that were fitted."""
    return [row for row in machine.numbers() if row["status"] == "fitted"]


def tuned(machine: _native.Machine) -> list[dict]:
    """What was chosen for the model rather than known.

    These are the numbers and words of the machine file that were fitted, chosen among alternatives after the
    published values were seen (`post_hoc`, with the rules of the file that say so) or assumed. Each row has `machine`,
    `key`, `value`, `unit`, `status` and `source`.
    """
    rows = [row for row in machine.numbers() if row["status"] in TUNED]
    rules = [
        {"key": rule["name"], "value": rule["statement"], "unit": "rule", "status": "post_hoc"}
        | {"source": rule["evidence"]}
        for rule in machine.rules()
        if rule["post_hoc"]
    ]
    return [{"machine": machine.name, **row} for row in (*rows, *rules)]


def changed(machine: _native.Machine, values: Mapping[str, str]) -> _native.Machine:
    """The machine with other values, written as in a machine file."""
    for key, value in values.items():
        machine = machine.with_value(key, value)
    return machine

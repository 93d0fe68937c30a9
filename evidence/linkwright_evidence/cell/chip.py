"""The chip as the study sees it: numbers, sizes, and variants of what nobody has published."""

from __future__ import annotations

from linkwright_evidence.numbers import changed, values

SPES = 8
MEMORY = 8  # participant of main memory, after the SPEs
LINE = 128
KIB = 1024

SIZES = tuple(16 << k for k in range(11))  # 16 B to 16 KB
BATCHES = ("blocking", "batch(2)", "batch(4)", "batch(8)", "batch(16)", "batch(32)", "unlimited")

# Structural choices besides the default of the machine file: name -> values that differ.
VARIANTS = {
    "default": {},
    "arbiter sees all lines": {"fabric.arbiter_sees": '"all"'},
    "arbiter sees the oldest of each source": {"fabric.arbiter_sees": '"oldest"'},
    "arbiter sees one line": {"fabric.arbiter_depth": "1"},
    "arbiter sees two lines": {"fabric.arbiter_depth": "2"},
    "arbiter sees eight lines": {"fabric.arbiter_depth": "8"},
    "tie by parity": {"fabric.tie": '"parity"'},
    "round robin at the receiver": {"fabric.receiver_order": '"round_robin"'},
    "data phase covers one line": {"fabric.data_lines": "1"},
    "partial lines take their bytes": {"fabric.partial_line": '"bytes"'},
}


def variant(machine, name: str):
    """The machine with the structural choice `name`."""
    return changed(machine, VARIANTS[name])


def port(machine) -> float:
    """GB/s of an element's port: its width in each bus cycle."""
    known = values(machine)
    return known["fabric.width"] * known["fabric.bus_clock"]


def snoop_limit(machine) -> float:
    """GB/s of the whole bus: one address, so one line, in each bus cycle."""
    known = values(machine)
    return known["fabric.line"] * known["fabric.bus_clock"]

"""The short name of a measured machine, for titles, tiles and legends: `node17 xeon-8370C`, `epyc-7742 64 cores`.

The rows of a run keep the full name of the model, because runs are compared by it. A host name is shown only if a
person chose it: containers and cloud instances are called after random numbers, which tell a reader nothing.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .topology import Topology

# Marks and descriptions that name neither family nor model.
_NOISE = re.compile(
    r"\((?:R|TM)\)|\d+(?:st|nd|rd|th) Gen|\d+-Core|@|\b(?:CPU|Processor|Intel|AMD|NVIDIA|Genuine|Virtual|Core|Common)\b"
    r"|\b(?:Platinum|Gold|Silver|Bronze|Ryzen(?= Threadripper)|with Radeon Graphics)\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\b(\d+(?:\.\d+)?)\s*([GM])Hz\b", re.IGNORECASE)
# What a machine is called that no person named: hexadecimal, a UUID, an address, or a default.
_RANDOM = re.compile(r"(?:[0-9a-f]{8,}|[0-9a-f]+(?:-[0-9a-f]{4,}){2,}|ip-[\d-]+|localhost|runsc|\(none\)|)")
_CONTAINER = ("/.dockerenv", "/run/.containerenv")


def host_name() -> str | None:
    """The name of this host without its domain; None in a container, or if no person chose it."""
    name = socket.gethostname().partition(".")[0]
    return None if any(Path(mark).exists() for mark in _CONTAINER) or not chosen(name) else name


def chosen(name: str) -> bool:
    """Whether a host name looks as if a person had chosen it."""
    return not _RANDOM.fullmatch(name.lower())


def abbreviated(processor: str) -> str:
    """Family and model of a processor: `Intel(R) Xeon(R) Platinum 8370C CPU @ 2.80GHz` is `xeon-8370C`."""
    clock = _CLOCK.search(processor)
    words = _NOISE.sub(" ", _CLOCK.sub(" ", processor)).split()
    if not words:
        return processor.strip() or "unknown processor"
    family, *rest = words
    if _numbered(family):
        return family
    model = next(filter(_numbered, rest), f"{clock[1]}{clock[2]}Hz" if clock and not rest else "")
    return f"{family.lower()}-{model}" if model else family.lower()


def _numbered(word: str) -> bool:
    return len(word) > 1 and any(letter.isdigit() for letter in word)


def short_name(environment: Mapping[str, Any], asked: str | None = None) -> str:
    """The requested name, or the host and its model, or the model and its number of cores."""
    if asked:
        return asked
    model = abbreviated(str(environment.get("processor") or environment.get("architecture") or ""))
    if host := environment.get("host"):
        return f"{host} {model}"
    cores = Topology(environment).cores or environment.get("cpus_online")
    return f"{model} {cores} core{'s' if cores != 1 else ''}" if cores else model

"""Texts of strangers that would run a script if a page treated them as markup, put into every text field."""

from __future__ import annotations

import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

PAYLOADS = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    '"><script>window.pwned=1</script>',
    "' onmouseover='window.pwned=1' autofocus onfocus='window.pwned=1' x='",
    '" onfocus="window.pwned=1" autofocus x="',
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "<a href='javascript:window.pwned=1' id=content>x</a>",
    "--><script>window.pwned=1</script><!--",
    "</style><script>window.pwned=1</script>",
    "</title><script>window.pwned=1</script>",
    "{{ ''.__class__ }}<details open ontoggle=window.pwned=1>\u2028;window.pwned=1//",
)
# Fields whose words the report reads, and so refuses or ignores others.
WORDS = {"status", "unit", "split", "role", "metric", "executor", "grade", "tone", "collective", "dtype", "run", "part"}


def spoilt(value: Any, payloads: Iterator[str], key: str = "") -> Any:
    """`value` with a payload behind every text that is not one of the report's own words."""
    if isinstance(value, dict):
        return {name: spoilt(inner, payloads, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [spoilt(inner, payloads, key) for inner in value]
    if isinstance(value, str) and key not in WORDS:
        return value + next(payloads)
    return value


def toml(text: str) -> str:
    """A machine file or a suite with a payload behind every text that only people read."""
    payloads = itertools.cycle(PAYLOADS)

    def poisoned(found: re.Match) -> str:
        return found[1] + json.dumps(tomllib.loads(f"x = {found[2]}")["x"] + next(payloads))

    text = re.sub(r"\"\"\".*?\"\"\"", '"long"', text, flags=re.DOTALL)
    return re.sub(r'\b((?:summary|description|source|note|title|cure) *= *)("(?:[^"\\]|\\.)*")', poisoned, text)


def study(made: dict) -> dict:
    """A study of a poisoned file."""
    return spoilt(made, itertools.cycle(PAYLOADS))


def run(folder: Path) -> Path:
    """The run folder, with all its texts poisoned: results, environment, request."""
    payloads = itertools.cycle(PAYLOADS)
    for file in folder.glob("*.parquet"):
        frame = pd.read_parquet(file)
        for column in frame.columns.difference(sorted(WORDS)):
            if frame[column].dtype == object or pd.api.types.is_string_dtype(frame[column]):
                # One payload for each text, so that equal texts stay equal.
                names = {
                    text: text + next(payloads) for text in frame[column].dropna().unique() if isinstance(text, str)
                }
                frame[column] = frame[column].map(names).where(frame[column].isin(list(names)), frame[column])
        frame.to_parquet(file)
    for file in folder.glob("*.json"):
        value = json.loads(file.read_text(encoding="utf-8"))
        kept = {"format", "id", "state"}
        value = {key: inner if key in kept else spoilt(inner, payloads, key) for key, inner in value.items()}
        file.write_text(json.dumps(value), encoding="utf-8")
    return folder

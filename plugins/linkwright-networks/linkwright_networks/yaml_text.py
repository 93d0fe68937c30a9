"""Read untrusted YAML: safely, with a size limit, and without aliases, which could expand to fill memory."""

from __future__ import annotations

import re
from typing import Any

from linkwright.network_api import FileError

MOST_CHARACTERS = 1 << 20
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_DECIMAL = re.compile(r"[-+]?(0|[1-9]\d*)?(\.\d*)?([eE][-+]?\d+)?", re.ASCII)
SHOWN = 80


def load(text: str, file: str) -> dict[str, Any]:
    """Read a file as one table."""
    found = _load(text, file)
    if not isinstance(found, dict):
        raise FileError(f"{file}: holds no table of keys; give the whole file")
    return found


def load_list(text: str, file: str) -> list[Any]:
    """Read a file as one list."""
    found = _load(text, file)
    if not isinstance(found, list):
        raise FileError(f"{file}: holds no list; give the whole file")
    return found


def _load(text: str, file: str) -> object:
    import yaml  # not needed to list the formats

    if len(text) > MOST_CHARACTERS:
        raise FileError(f"{file}: {len(text):,} characters of YAML; at most {MOST_CHARACTERS:,} are read")

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent, index):
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise FileError(f"{file}: line {line}: an alias, `*name`; write out what it stands for")
            node = super().compose_node(parent, index)
            # YAML 1.1 also reads 1:30 as 90, 010 as 8 and 1_000 as 1000.
            if node.tag in _NUMBERS and not _DECIMAL.fullmatch(node.value):
                line = node.start_mark.line + 1
                raise FileError(
                    f"{file}: line {line}: `{node.value[:SHOWN]}`: write a number in decimals, or in quotes"
                )
            return node

        def construct_mapping(self, node, deep=False):
            seen = set()
            for key, _ in node.value:
                name = key.value if isinstance(key.value, str) else ""
                if name in seen:
                    line = key.start_mark.line + 1
                    raise FileError(f"{file}: line {line}: key `{name[:SHOWN]}` stands there twice; keep one")
                seen.add(name)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # a stricter SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}: line {mark.line + 1}" if mark else file
        raise FileError(f"{where}: not valid YAML: {getattr(error, 'problem', None) or 'it cannot be read'}") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise FileError(
            f"{file}: not valid YAML: nested too deeply, or with a number of thousands of digits"
        ) from error

"""What systems say of themselves, as machine files.

    a file --- recognised by its text ---> importer ---> machine file, checked

An importer reads one format (`IMPORTERS`). A number that the file states is documented, with the file as its source;
one that it leaves out is assumed, and says so.
"""

from __future__ import annotations

from pathlib import Path

from linkwright.discovery.networks import NETWORKS, Network, recognised
from linkwright.errors import FileError, unknown
from linkwright.store.files import read_text

IMPORTERS = NETWORKS


def importer(path: Path, asked: str | None = None) -> tuple[Network, str]:
    """The importer for a file, by what its text says or as `asked`, and the text."""
    text = read_text(path, "a description of a network or system")
    if asked is not None:
        found = [one for one in IMPORTERS if one.key == asked]
        if not found:
            raise unknown("description", asked, [one.key for one in IMPORTERS], lists="linkwright list descriptions")
        return found[0], text
    if (one := recognised(text)) is None:
        raise FileError(
            f"{path.name}: is none of the descriptions that are known ({', '.join(one.key for one in IMPORTERS)}); "
            "`linkwright list descriptions` says what they are"
        )
    return one, text


def entries() -> list[dict[str, object]]:
    """The formats, as `list` and `describe` print them."""
    return [one.described() for one in IMPORTERS]

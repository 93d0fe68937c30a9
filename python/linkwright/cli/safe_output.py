"""Standard output on which text from strangers moves no cursor.

Names come from result files, machine files and hosts, which may hold control characters. All that is printed goes
through one stream that shows these as escapes; only line ends, tabs and the colours of a terminal pass. The bytes of a
file name that is not UTF-8 pass as they are, so that a script can use the path that a command prints.
"""

from __future__ import annotations

import io
import re
from typing import TextIO

# Control characters other than tab and line feed, halves of characters that no file name has, and escapes that do not
# begin a colour such as ESC [1;32m.
_CONTROL = re.compile(r"\x1b(?!\[[0-9;]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\ud800-\udc7f\udd00-\udfff]")


class SafeOutput:
    """A text stream without control characters; everything but `write` is that of the stream behind it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="surrogateescape")

    def write(self, text: str) -> int:
        """Write `text` with its control characters as escapes."""
        return self._stream.write(_CONTROL.sub(_escaped, text) if _CONTROL.search(text) else text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()

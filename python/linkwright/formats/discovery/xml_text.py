"""XML of strangers, as a tree with line numbers: no entities, nothing loaded, bounded in size and depth.

A document type is refused, but for the bare `<!DOCTYPE platform SYSTEM "...">` that SimGrid's files carry by custom: it
declares nothing itself, what it points to is never opened, and the parser does not see it, so that an entity that only
it could have declared is an error.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from linkwright.base.errors import FileError, nearest

MOST_CHARACTERS = 1 << 26
MOST_ELEMENTS = 2_000_000
MOST_DEPTH = 100
MOST_ATTRIBUTE = 100_000  # characters


@dataclass
class Element:
    """An element with its attributes and children; the text between them is kept where it was asked for."""

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # of the text


class _Reader:
    def __init__(self, file: str, texts_of: Collection[str]):
        self.file = file
        self.texts_of = texts_of
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0
        # The text is decoded already, so the encoding that the file states no longer matters.
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self.begin
        self.parser.EndElementHandler = lambda _: self.open.pop()
        if texts_of:
            self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = lambda *_: self.refuse("a document type, <!DOCTYPE ...>, is not accepted")

    def refuse(self, what: str) -> NoReturn:
        raise FileError(f"{self.file}: line {self.parser.CurrentLineNumber}: {what}; take it out")

    def begin(self, tag: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MOST_ELEMENTS or len(self.open) >= MOST_DEPTH:
            self.refuse(f"more than {MOST_ELEMENTS:,} elements, or nesting deeper than {MOST_DEPTH}")
        if any(len(value) > MOST_ATTRIBUTE for value in attributes.values()):
            self.refuse(f"an attribute of more than {MOST_ATTRIBUTE:,} characters")
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def characters(self, text: str) -> None:
        if self.open and self.open[-1].tag in self.texts_of:
            self.open[-1].pieces.append(text)


def check_spelling(element: Element, known: Collection[str], file: str) -> None:
    """Refuse an attribute that looks like a known one that is missing; programs add others in every version."""
    for name in sorted(set(element.attributes) - set(known)):
        if close := nearest(name, [one for one in known if one not in element.attributes]):
            raise FileError(
                f"{file}: line {element.line}: <{element.tag}> has `{name[:40]}` and no `{close[0]}`; correct one"
            )


def read(text: str, file: str, doctype: str | None = None, texts_of: Collection[str] = ()) -> Element:
    """The root of the file.

    Args:
        text: the file's.
        file: its name, for messages.
        doctype: the name of the one bare document type that is let pass.
        texts_of: the elements whose text is kept.

    Raises:
        FileError: the file is not valid.

    """
    if len(text) > MOST_CHARACTERS:
        raise FileError(f"{file}: {len(text):,} characters of XML; at most {MOST_CHARACTERS:,} are read")
    if doctype:
        bare = rf"<!DOCTYPE\s+{doctype}\s+SYSTEM\s+(?:\"[^\"<>]*\"|'[^'<>]*')\s*>"
        text = re.sub(bare, lambda match: "\n" * match[0].count("\n"), text, count=1)
    reader = _Reader(file, texts_of)
    try:
        reader.parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise FileError(
            f"{file}: line {error.lineno}: not valid XML: {expat.ErrorString(error.code)}; cut file?"
        ) from error
    if reader.root is None:
        raise FileError(f"{file}: holds no element; give the whole file")
    return reader.root

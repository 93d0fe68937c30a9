"""Read the text format of protocol buffers: fields, lists and messages, without their schema.

    mesh_descriptors { name: "M0" device_topology { dims: [ 8, 4 ] } }
    channels: { count: 2 policy: RELAXED }                                  # a comment

A message is read as a table of lists, because any field may repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from linkwright.network_api import FileError

MOST_CHARACTERS = 1 << 22
MOST_DEPTH = 50
_TOKEN = re.compile(
    r"(?P<space>[\s,;]+|#[^\n]*)|(?P<text>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<number>[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?![\w.])|(?P<word>[A-Za-z_][\w.]*)|(?P<sign>[{}<>\[\]:])",
    re.ASCII,
)
_CLOSING = {"{": "}", "<": ">"}


@dataclass
class Message:
    """A message: the values of each field, in order, and the line where it begins."""

    fields: dict[str, list]
    line: int


def read(text: str, file: str) -> Message:
    """Read a file as one message."""
    if len(text) > MOST_CHARACTERS:
        raise FileError(f"{file}: {len(text):,} characters; at most {MOST_CHARACTERS:,} are read")
    tokens = list(_tokens(text, file))
    return _message(tokens, 0, "", 0, file)[0]


def _tokens(text: str, file: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, text and line of each token."""
    at, line = 0, 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if not match:
            raise FileError(
                f"{file}: line {line}: `{text[at : at + 20]!r}` is no text of a protocol buffer; correct it"
            )
        if match.lastgroup != "space":
            yield str(match.lastgroup), match[0], line
        line += match[0].count("\n")
        at = match.end()


def _message(tokens: list, at: int, closing: str, depth: int, file: str) -> tuple[Message, int]:
    """Read the fields up to the `closing` sign; return them and the index after it."""
    message = Message({}, tokens[at][2] if at < len(tokens) else 1)
    if depth > MOST_DEPTH:
        raise FileError(f"{file}: line {message.line}: messages within messages, more than {MOST_DEPTH} deep")
    while at < len(tokens):
        kind, word, line = tokens[at]
        if kind == "sign" and word == closing:
            return message, at + 1
        if kind != "word":
            raise FileError(f"{file}: line {line}: `{word[:40]}` where the name of a field belongs")
        values, at = _values(tokens, at + 1, depth, f"{file}: line {line}: {word[:40]}", file)
        message.fields.setdefault(word, []).extend(values)
    if closing:
        raise FileError(f"{file}: ends inside of a message that begins at line {message.line}; cut file?")
    return message, at


def _values(tokens: list, at: int, depth: int, where: str, file: str) -> tuple[list, int]:
    """Read the values of one field."""
    if at < len(tokens) and tokens[at][:2] == ("sign", ":"):
        at += 1
    if at < len(tokens) and tokens[at][:2] == ("sign", "["):
        values: list = []
        at += 1
        while at < len(tokens) and tokens[at][:2] != ("sign", "]"):
            value, at = _value(tokens, at, depth, where, file)
            values.append(value)
        if at == len(tokens):
            raise FileError(f"{where}: a list without an end; cut file?")
        return values, at + 1
    value, at = _value(tokens, at, depth, where, file)
    return [value], at


def _value(tokens: list, at: int, depth: int, where: str, file: str) -> tuple[object, int]:
    if at >= len(tokens):
        raise FileError(f"{where}: has no value; cut file?")
    kind, word, _ = tokens[at]
    if kind == "sign" and word in _CLOSING:
        return _message(tokens, at + 1, _CLOSING[word], depth + 1, file)
    if kind == "sign":
        raise FileError(f"{where}: `{word}` where a value belongs")
    if kind == "number":
        return _number(word, where), at + 1
    return (word[1:-1] if kind == "text" else word), at + 1


def _number(word: str, where: str) -> int | float:
    if len(word) > 40:
        raise FileError(f"{where}: a number of {len(word)} characters; write one that is used")
    return int(word) if re.fullmatch(r"[-+]?\d+", word, re.ASCII) else float(word)

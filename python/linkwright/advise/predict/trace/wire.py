"""The binary form, `name.R.et`: one `GlobalMetadata`, then one `Node` after the other.

    length (varint) | message | length | message | ...          message: (field number << 3 | wire type) value ...

This reads the wire format of protobuf itself. The format has four kinds of values, and a reader of its own says at
which byte a file is broken, keeps only the attributes that matter, needs no generated classes and cannot recurse: the
messages of interest are nested three deep and each depth has its function. Unknown fields are skipped, as protobuf
demands.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from linkwright.advise.predict.trace.nodes import MOST_DEPENDENCIES, WANTED, Node, clean, distinct

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Span = tuple[int, int]

_NODE = {1: VARINT, 2: BYTES, 3: VARINT, 6: VARINT, 7: VARINT, 8: BYTES, 10: BYTES}
_CONTROL, _DATA = 4, 5
# Attribute values: field -> wire type, and how the bits are read.
_VALUES = {
    3: (FIXED64, "<d"), 5: (FIXED32, "<f"), 7: (VARINT, "signed"), 9: (VARINT, "signed"), 11: (VARINT, ""),
    13: (VARINT, ""), 15: (VARINT, "zigzag"), 17: (VARINT, "zigzag"), 19: (FIXED32, "<I"), 21: (FIXED64, "<Q"),
    23: (FIXED32, "<i"), 25: (FIXED64, "<q"), 27: (VARINT, ""), 28: (BYTES, "flags"), 29: (BYTES, "text"),
}  # fmt: skip
_WANTED = {name.encode() for name in WANTED}


class BrokenError(Exception):
    """Bytes that are not the format; `at` is the offset in the file."""

    def __init__(self, at: int, problem: str):
        super().__init__(problem)
        self.at = at


def nodes(data: bytes) -> Iterator[tuple[Node, str]]:
    """The nodes of a file, each with the text of its inputs if it is metadata."""
    messages = _messages(data)
    _metadata(data, next(messages, (0, 0)))
    for span in messages:
        yield _node(data, span)


def _messages(data: bytes) -> Iterator[Span]:
    at, end = 0, len(data)
    while at < end:
        begin = at
        length, at = _varint(data, at, end)
        if length > end - at:
            raise BrokenError(begin, f"a message of {length:,} B begins here, and only {end - at:,} B follow")
        yield at, at + length
        at += length


def _metadata(data: bytes, span: Span) -> None:
    """The first message; its fields are a version and attributes."""
    for number, wire, _ in _fields(data, *span):
        if number in (1, 2) and wire != BYTES:
            raise BrokenError(span[0], "the first message is not GlobalMetadata, as in traces before Chakra 0.0.4")
    if span == (0, 0):
        raise BrokenError(0, "it is empty")


def _node(data: bytes, span: Span) -> tuple[Node, str]:
    found: dict[int, int] = {}
    name, inputs, waits_for, follows, attributes = "", None, [], [], {}
    for number, wire, value in _fields(data, *span):
        if number in (_CONTROL, _DATA):
            _extend(data, wire, value, follows if number == _CONTROL else waits_for, span[0])
        elif number not in _NODE:
            continue
        elif wire != _NODE[number]:
            raise BrokenError(span[0], f"field {number} of a node has wire type {wire} where {_NODE[number]} belongs")
        elif number == 10:
            _attribute(data, value, attributes)
        elif number == 2:
            name = clean(_text(data, value))
        elif number == 8:
            inputs = value
        else:
            found[number] = value
    kind = found.get(3, 0)
    before = (distinct(waits_for), distinct(follows))
    node = Node(found.get(1, 0), name, kind, *before, found.get(6, 0), found.get(7, 0), attributes)
    return node, _inputs(data, inputs) if kind == 1 and inputs else ""


def _extend(data: bytes, wire: int, value: int | Span, ids: list[int], at: int) -> None:
    """Add dependencies, packed or not."""
    if wire == VARINT:
        ids.append(value)
    elif wire == BYTES:
        begin, end = value
        while begin < end:
            one, begin = _varint(data, begin, end)
            ids.append(one)
            if len(ids) > MOST_DEPENDENCIES:
                raise BrokenError(at, f"a node has more than {MOST_DEPENDENCIES:,} dependencies")
    else:
        raise BrokenError(at, f"a dependency has wire type {wire}")


def _attribute(data: bytes, span: Span, into: dict[str, object]) -> None:
    begin, end = span
    # Nearly all attributes begin with their name, and most do not matter.
    if end - begin > 2 and data[begin] == 10 and data[begin + 1] < 128:
        name = data[begin + 2 : min(end, begin + 2 + data[begin + 1])]
        if name not in _WANTED:
            return
    name, value = "", None
    for number, wire, bits in _fields(data, begin, end):
        if number == 1 and wire == BYTES:
            name = _text(data, bits)
        elif number in _VALUES:
            expected, how = _VALUES[number]
            if wire != expected:
                raise BrokenError(
                    begin, f"field {number} of an attribute has wire type {wire} where {expected} belongs"
                )
            value = _value(data, how, bits)
        elif number > 2:
            value = f"a value of field {number}"
    if name in WANTED:
        into[name] = value


def _value(data: bytes, how: str, bits: int | Span) -> object:
    if how == "signed":
        return bits - (1 << 64) if bits >> 63 else bits
    if how == "zigzag":
        return (bits >> 1) ^ -(bits & 1)
    if how == "text":
        return clean(_text(data, bits))
    if how == "flags":
        flags: list[int] = []
        for number, wire, value in _fields(data, *bits):
            if number == 1:
                _extend(data, wire, value, flags, bits[0])
        return tuple(flags)
    if how:
        size = struct.calcsize(how)
        return struct.unpack(how, bits.to_bytes(size, "little"))[0]
    return bits


def _inputs(data: bytes, span: Span) -> str:
    """`IOInfo.values`."""
    for number, wire, value in _fields(data, *span):
        if number == 1 and wire == BYTES:
            return _text(data, value)
    return ""


def _text(data: bytes, span: Span) -> str:
    try:
        return data[span[0] : span[1]].decode()
    except UnicodeDecodeError as error:
        raise BrokenError(span[0], "a text is not UTF-8") from error


def _fields(data: bytes, at: int, end: int) -> Iterator[tuple[int, int, int | Span]]:
    """(number, wire type, value) of each field; a value with a length is where it stands."""
    while at < end:
        begin = at
        key, at = _varint(data, at, end)
        wire = key & 7
        if wire == VARINT:
            value, at = _varint(data, at, end)
            yield key >> 3, wire, value
            continue
        if wire == BYTES:
            length, at = _varint(data, at, end)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise BrokenError(begin, f"wire type {wire} is not of this format")
        if length > end - at:
            raise BrokenError(begin, f"a value of {length:,} B begins here, and its message ends after {end - at:,} B")
        follows = at + length
        yield key >> 3, wire, (at, follows) if wire == BYTES else int.from_bytes(data[at:follows], "little")
        at = follows


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number of at most 64 bits in groups of seven, and where it ends."""
    if at < end and data[at] < 128:
        return data[at], at + 1
    value = shift = 0
    for place in range(at, min(end, at + 10)):
        byte = data[place]
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & (1 << 64) - 1, place + 1
    raise BrokenError(at, "a number is cut" if end - at < 10 else "a number has more than ten bytes")

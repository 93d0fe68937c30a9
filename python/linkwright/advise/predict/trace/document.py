"""The JSON forms: the text of each message, one after the other, or one object with a list `workload_graph`.

The first is what `chakra_jsonizer` prints, in protobuf's own JSON: names in camel case, 64-bit numbers as strings and
nothing where a value is the default. The second is what the feeder of Chakra reads, with all attributes as plain keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from linkwright.advise.predict.trace.nodes import TYPES, WANTED, Node, clean, distinct, shown
from linkwright.advise.predict.trace.wire import BrokenError

_WHOLE = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_SPACE = re.compile(r"[ \t\r\n]*")
# Keys of what PyTorch records, from which Chakra traces are made.
_PYTORCH = ("traceEvents", "nodes")
_LISTS = ("boolList", "bool_list")


def nodes(text: str) -> Iterator[tuple[Node, str]]:
    """The nodes of a file, each with the text of its inputs if it is metadata."""
    objects = _objects(text)
    first = next(objects, None)
    if first is None:
        raise BrokenError(0, "it is empty")
    at, head = first
    if "workload_graph" in head:
        listed = head["workload_graph"]
        if not isinstance(listed, list):
            raise BrokenError(at, "workload_graph is not a list")
        objects = ((at, one) for one in listed)
        made: Callable = _flat
    else:
        made = _message
        if any(key in head for key in _PYTORCH):
            raise BrokenError(at, "it is PyTorch's own trace; convert it with chakra_trace_link and chakra_converter")
        if "id" in head and "type" in head:
            raise BrokenError(at, "the first object is a node, not GlobalMetadata")
    for at, one in objects:
        if not isinstance(one, dict):
            raise BrokenError(at, "a node is not an object")
        yield made(one, at)


def _objects(text: str) -> Iterator[tuple[int, dict]]:
    """Every object of the text, and where it begins."""
    decoder = json.JSONDecoder(parse_constant=_refuse)
    at = _SPACE.match(text).end()
    while at < len(text):
        try:
            one, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise BrokenError(error.pos, f"not valid JSON: {error.msg}") from error
        except RecursionError as error:
            raise BrokenError(at, "objects are nested too deep") from error
        except ValueError as error:
            raise BrokenError(at, f"not valid JSON: {error}") from error
        if not isinstance(one, dict):
            raise BrokenError(at, "there is no object here")
        yield at, one
        at = _SPACE.match(text, end).end()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number")


def _message(one: dict, at: int) -> tuple[Node, str]:
    def get(key: str, other: str) -> int:
        return _whole(one.get(key, one.get(other, 0)), key, at)

    attributes: dict[str, object] = {}
    for attribute in _list(one.get("attr", []), "attr", at):
        if not isinstance(attribute, dict) or not isinstance(attribute.get("name", ""), str):
            raise BrokenError(at, f"an attribute is {shown(attribute)}, not an object with a name")
        if attribute.get("name") in WANTED:
            attributes[attribute["name"]] = _value(attribute, at)
    before = (_ids(one, ("dataDeps", "data_deps"), at), _ids(one, ("ctrlDeps", "ctrl_deps"), at))
    start, duration = get("startTimeMicros", "start_time_micros"), get("durationMicros", "duration_micros")
    name, kind = _text(one.get("name", ""), "name", at), _type(one.get("type", 0), at)
    inputs = one.get("inputs")
    values = inputs.get("values", "") if isinstance(inputs, dict) else ""
    node = Node(get("id", "id"), clean(name), kind, *before, start, duration, attributes)
    return node, values if kind == 1 and isinstance(values, str) else ""


def _flat(one: dict, at: int) -> tuple[Node, str]:
    if "Id" not in one or "NodeType" not in one:
        raise BrokenError(at, "a node has no `Id` or no `NodeType`")
    attributes = {key: _plain(one[key]) for key in WANTED if key in one}
    before = (_ids(one, ("data_deps", "dataDeps"), at), _ids(one, ("ctrlDeps", "ctrl_deps"), at))
    name, duration = _text(one.get("Name", ""), "Name", at), _whole(one.get("runtime", 0), "runtime", at)
    kind = _whole(one["NodeType"], "NodeType", at)
    return Node(_whole(one["Id"], "Id", at), clean(name), kind, *before, 0, duration, attributes), ""


def _ids(one: dict, names: tuple[str, str], at: int) -> tuple[int, ...]:
    """The nodes of a list of dependencies, which has one of two names."""
    listed = next((one[name] for name in names if name in one), [])
    return distinct(_whole(each, names[0], at) for each in _list(listed, names[0], at))


def _value(attribute: dict, at: int) -> object:
    """The one value of an attribute."""
    for key, value in attribute.items():
        if key in _LISTS:
            return _plain(value.get("values", []) if isinstance(value, dict) else value)
        if key.endswith(("Val", "_val")):
            whole = isinstance(value, str) and not key.startswith(("string", "bytes")) and _WHOLE.fullmatch(value)
            return int(value) if whole else _plain(value)
    return None


def _plain(value: object) -> object:
    if isinstance(value, str):
        return clean(value)
    return tuple(value) if isinstance(value, list) else value


def _type(value: object, at: int) -> int:
    if isinstance(value, str) and value in TYPES:
        return TYPES.index(value)
    return _whole(value, "type", at)


def _whole(value: object, key: str, at: int) -> int:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise BrokenError(at, f"{key} is {shown(value)}, not a whole number")
    return value


def _text(value: object, key: str, at: int) -> str:
    if not isinstance(value, str):
        raise BrokenError(at, f"{key} is {shown(value)}, not a string")
    return value


def _list(value: object, key: str, at: int) -> list:
    if not isinstance(value, list):
        raise BrokenError(at, f"{key} is {shown(value)}, not a list")
    return value

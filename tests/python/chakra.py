"""Writes Chakra traces for the tests, from the layout of the format alone: the counterpart of the reader."""

import json

TYPES = {"label": 1, "load": 2, "store": 3, "compute": 4, "send": 5, "receive": 6, "collective": 7}
COLLECTIVES = (
    "allreduce", "reduce", "allgather", "gather", "scatter", "broadcast", "alltoall", "reduce_scatter",
    "reduce_scatter_block", "barrier",
)  # fmt: skip
# Field of an attribute's value by the Python type that stands for it, and its name in JSON.
FIELDS = {bool: (27, "boolVal"), int: (9, "int64Val"), str: (29, "stringVal"), list: (28, "boolList")}


def node(id, type="compute", us=0, after=(), control=(), name="", start=0, inputs="", **attributes):
    """One node as plain values; `kind` names a collective."""
    if "kind" in attributes:
        attributes["comm_type"] = COLLECTIVES.index(attributes.pop("kind"))
    number = TYPES.get(type, type)
    return {
        "id": id, "type": number, "us": us, "after": list(after), "control": list(control), "name": name or f"n{id}",
        "start": start, "inputs": inputs, "attributes": attributes,
    }  # fmt: skip


def compute(id, us, after=(), **more):
    return node(id, "compute", us, after, **more)


def collective(id, kind, size, after=(), **more):
    return node(id, "collective", 0, after, kind=kind, comm_size=size, **more)


def send(id, to, size, after=(), **more):
    return node(id, "send", 0, after, comm_dst=to, comm_size=size, **more)


def receive(id, source, size, after=(), **more):
    return node(id, "receive", 0, after, comm_src=source, comm_size=size, **more)


def varint(number):
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """A field with a number, or with bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def delimited(message):
    return varint(len(message)) + message


def binary(nodes):
    """The content of a `.et` file."""
    return delimited(field(1, b"0.0.4")) + b"".join(delimited(message(one)) for one in nodes)


def message(one):
    packed = [(4, one["control"]), (5, one["after"])]
    parts = [field(1, one["id"]), field(2, one["name"].encode()), field(3, one["type"])]
    parts += [field(number, b"".join(map(varint, ids))) for number, ids in packed if ids]
    parts += [field(number, value) for number, value in ((6, one["start"]), (7, one["us"])) if value]
    parts += [field(8, field(1, one["inputs"].encode()))] if one["inputs"] else []
    return b"".join([*parts, *(field(10, attribute(*pair)) for pair in one["attributes"].items())])


def attribute(name, value):
    number, _ = FIELDS[type(value)]
    if isinstance(value, list):
        value = field(1, bytes(value))
    return field(1, name.encode()) + field(number, value.encode() if isinstance(value, str) else value)


def text(nodes):
    """What the jsonizer prints."""
    return "".join(json.dumps(one, indent=2) for one in ({"version": "0.0.4"}, *map(_object, nodes)))


def _object(one):
    names = ["INVALID", "METADATA", "MEM_LOAD", "MEM_STORE", "COMP", "COMM_SEND", "COMM_RECV", "COMM_COLL"]
    kind = f"{names[one['type']]}_NODE" if one["type"] < len(names) else one["type"]
    found = {"id": str(one["id"]), "name": one["name"], "type": kind}
    ids = {"ctrlDeps": one["control"], "dataDeps": one["after"]}
    found |= {key: list(map(str, value)) for key, value in ids.items() if value}
    found |= {"startTimeMicros": str(one["start"])} if one["start"] else {}
    found |= {"durationMicros": str(one["us"])} if one["us"] else {}
    found |= {"inputs": {"values": one["inputs"]}} if one["inputs"] else {}
    found["attr"] = [{"name": name, FIELDS[type(value)][1]: _json(value)} for name, value in one["attributes"].items()]
    return found


def _json(value):
    if isinstance(value, list):
        return {"values": value}
    return str(value) if type(value) is int else value


def graph(nodes):
    """What the feeder reads."""
    rows = [
        {"Id": one["id"], "Name": one["name"], "NodeType": one["type"], "runtime": one["us"]}
        | {"data_deps": one["after"], "ctrlDeps": one["control"]}
        | one["attributes"]
        for one in nodes
    ]
    return json.dumps({"workload_graph": rows}, indent=1)


def write(folder, ranks, form="et"):
    """The files of all ranks; returns their names."""
    names = []
    for rank, nodes in enumerate(ranks):
        path = folder / f"step.{rank}.{'et' if form == 'et' else 'json'}"
        path.write_bytes(binary(nodes) if form == "et" else (text if form == "json" else graph)(nodes).encode())
        names.append(str(path))
    return names

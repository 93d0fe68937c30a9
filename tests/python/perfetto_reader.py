"""Perfetto traces as its trace processor reads them: packets, sorted by time, become slices, flows and counters.

The fields are those of protos/perfetto/trace/ of github.com/google/perfetto that linkwright writes.
A field that is not listed fails the reading, so a wrong number is found. The rules that follow from the trace
processor: packets are sorted by time, equal times stay in the order of the file; an end closes the innermost slice of
its track; a flow leads from the latest slice with its number to the next.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

_U64, _TEXT, _DOUBLE, _FIXED, _U32, _BOOL, _I32 = 4, 9, 1, 6, 13, 8, 5
_FIELDS: dict[str, list[tuple[str, int, int | str, bool]]] = {
    "Trace": [("packet", 1, "TracePacket", True)],
    "TracePacket": [
        ("timestamp", 8, _U64, False), ("sequence", 10, _U32, False), ("event", 11, "TrackEvent", False),
        ("interned", 12, "InternedData", False), ("flags", 13, _U32, False), ("track", 60, "TrackDescriptor", False),
        ("first", 87, _BOOL, False),
    ],
    "TrackEvent": [
        ("annotations", 4, "Annotation", True), ("type", 9, _I32, False), ("track", 11, _U64, False),
        ("name", 23, _TEXT, False), ("value", 44, _DOUBLE, False), ("flows", 47, _FIXED, True),
        ("ending", 48, _FIXED, True),
    ],
    "Annotation": [("name_iid", 1, _U64, False), ("number", 3, _U64, False)],
    "InternedData": [("annotation_names", 3, "Name", True)],
    "Name": [("iid", 1, _U64, False), ("name", 2, _TEXT, False)],
    "TrackDescriptor": [
        ("uuid", 1, _U64, False), ("name", 2, _TEXT, False), ("parent", 5, _U64, False),
        ("counter", 8, "CounterDescriptor", False), ("ordering", 11, _I32, False), ("rank", 12, _I32, False),
    ],
    "CounterDescriptor": [("unit", 6, _TEXT, False), ("share", 7, _TEXT, False)],
}  # fmt: skip
BEGIN, END, COUNTER = 1, 2, 4
NEEDS_STATE = 2


def _trace_class() -> type[Message]:
    file = descriptor_pb2.FileDescriptorProto(name="trace.proto", syntax="proto2")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for key, number, kind, repeated in fields:
            one = message.field.add(name=key, number=number, label=3 if repeated else 1)
            if isinstance(kind, str):
                one.type, one.type_name = 11, f".{kind}"
            else:
                one.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Trace"))


@dataclass
class Slice:
    """A slice; times in ns."""

    track: int
    name: str
    start: int
    end: int = -1
    depth: int = 0
    arguments: dict[str, int] = field(default_factory=dict)


@dataclass
class Read:
    """A trace.

    Attributes:
        names, parents: of tracks, by number.
        slices: in the order of their beginning.
        flows: slices at both ends.
        counters: values by track: (time, value).
    """

    names: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    flows: list[tuple[Slice, Slice]] = field(default_factory=list)
    counters: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, name: str, parent: str | None = None) -> list[Slice]:
        """Slices of the tracks of this name, below a track of that name."""
        tracks = {
            track for track, known in self.names.items()
            if known == name and (parent is None or self.names.get(self.parents.get(track, 0)) == parent)
        }  # fmt: skip
        return [one for one in self.slices if one.track in tracks]


def read(file: Path) -> Read:
    """The trace in a file; anything that the trace processor would complain of fails."""
    trace = _trace_class().FromString(file.read_bytes())
    _nothing_unknown(trace)
    first = trace.packet[0]
    assert first.flags & 1, "state is cleared at the beginning"
    assert first.first
    words = {word.iid: word.name for word in first.interned.annotation_names}
    found = Read()
    for packet in trace.packet:
        assert packet.sequence == 1
        assert packet.flags & NEEDS_STATE
        if packet.HasField("track"):
            _track(found, packet.track)
    events = [packet for packet in trace.packet if packet.HasField("event")]
    open_slices: dict[int, list[Slice]] = defaultdict(list)
    under_way: dict[int, Slice] = {}
    for packet in sorted(events, key=lambda packet: packet.timestamp):
        event, at = packet.event, packet.timestamp
        assert event.track in found.names, "a track is described"
        if event.type == COUNTER:
            found.counters[event.track].append((at, event.value))
        elif event.type == BEGIN:
            stack = open_slices[event.track]
            one = Slice(event.track, event.name, at, depth=len(stack))
            one.arguments = {words[note.name_iid]: note.number for note in event.annotations}
            stack.append(one)
            found.slices.append(one)
            for flow in event.ending:
                found.flows.append((under_way.pop(flow), one))
            for flow in event.flows:
                assert flow not in under_way
                under_way[flow] = one
        else:
            assert event.type == END
            open_slices[event.track].pop().end = at
    assert not any(open_slices.values()), "every slice ends"
    assert not under_way, "every flow arrives"
    return found


def _track(found: Read, track: Message) -> None:
    if not track.uuid:
        return
    assert track.uuid not in found.names
    found.names[track.uuid] = track.name
    if track.HasField("parent"):
        assert track.parent in found.names
        found.parents[track.uuid] = track.parent


def _nothing_unknown(message: Message) -> None:
    from google.protobuf.unknown_fields import UnknownFieldSet

    assert not len(UnknownFieldSet(message)), f"{message.DESCRIPTOR.name} has fields that are not listed"
    for descriptor, value in message.ListFields():
        if descriptor.message_type:
            for one in value if descriptor.is_repeated else [value]:
                _nothing_unknown(one)

//! Tracks, slices, values of counters and arrows as Perfetto reads them: a stream of protobuf packets, each written as
//! soon as it is known.
//!
//! ```text
//!   Trace          packet 1
//!   TracePacket    timestamp 8, trusted_packet_sequence_id 10, track_event 11, interned_data 12, sequence_flags 13,
//!                  track_descriptor 60
//!   TrackEvent     debug_annotations 4, type 9, track_uuid 11, name 23, double_counter_value 44, flow_ids 47,
//!                  terminating_flow_ids 48
//! ```
//!
//! A slice is two packets, its begin and its end. The reader sorts packets by time and keeps the order of the file
//! where times are equal. It counts whole nanoseconds, so times are rounded down. An arrow is a flow: a number that the
//! earlier slice has as `flow_ids`, the later one as `terminating_flow_ids`. The few fields are encoded here; a library
//! would be larger than what it replaces.
//!
//! Source: protos/perfetto/trace/ of github.com/google/perfetto.

use std::io::{self, Write};
use std::ops::Range;

/// All packets come from one writer.
const SEQUENCE: u64 = 1;
const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const COUNTER: u64 = 4;
/// Children of a track are shown by their `sibling_order_rank`.
const EXPLICIT: u64 = 3;

/// A line of a trace.
pub(super) struct Track<'a> {
    /// Number, at least 1.
    pub id: u64,
    /// The track under which it is shown.
    pub parent: Option<u64>,
    /// What readers see.
    pub name: &'a str,
    /// Whether it shows values instead of slices.
    pub counts: bool,
}

/// Something that lasts for a time.
pub(super) struct Slice<'a> {
    pub track: u64,
    pub name: &'a str,
    /// Picoseconds.
    pub from: u64,
    pub to: u64,
    /// What else is known of it, by number of [`ARGUMENTS`].
    pub arguments: &'a [(usize, u64)],
    /// Arrows that begin here.
    pub leaving: &'a [u64],
    /// Arrows that end here; what they left comes earlier in the trace.
    pub arriving: Range<u64>,
}

/// Names of arguments.
pub(super) const ARGUMENTS: [&str; 3] = ["operation", "step", "bytes"];
pub(super) const OPERATION: usize = 0;
pub(super) const STEP: usize = 1;
pub(super) const BYTES: usize = 2;

/// A file of packets. Slices of one track come in the order of time, or one within another.
pub(super) struct Perfetto<'a> {
    out: &'a mut dyn Write,
    packet: Message,
    event: Message,
    part: Message,
    /// Tracks so far.
    tracks: u64,
}

impl<'a> Perfetto<'a> {
    pub fn new(out: &'a mut dyn Write) -> Self {
        Perfetto {
            out,
            packet: Message::default(),
            event: Message::default(),
            part: Message::default(),
            tracks: 0,
        }
    }

    /// Write the packet, and begin another.
    fn send(&mut self, flags: u64) -> io::Result<()> {
        self.packet.number(10, SEQUENCE);
        self.packet.number(13, flags);
        let mut head = Message::default();
        head.key(1, LENGTH);
        head.varint(self.packet.bytes.len() as u64);
        self.out.write_all(&head.bytes)?;
        self.out.write_all(&self.packet.bytes)?;
        self.packet.bytes.clear();
        Ok(())
    }

    /// A packet with the event, and begin another.
    fn send_event(&mut self, kind: u64, track: u64, at: u64) -> io::Result<()> {
        self.event.number(9, kind);
        self.event.number(11, track);
        self.packet.number(8, at / 1000);
        self.packet.message(11, &mut self.event);
        self.send(NEEDS_STATE)
    }

    /// Before everything else: names of arguments stand here once.
    pub fn begin(&mut self) -> io::Result<()> {
        for (number, name) in (1..).zip(ARGUMENTS) {
            self.part.number(1, number);
            self.part.text(2, name);
            self.event.message(3, &mut self.part);
        }
        self.packet.message(12, &mut self.event);
        self.packet.number(87, 1);
        self.send(STATE_CLEARED | NEEDS_STATE)?;
        // The track above all others says that they come in order.
        self.event.number(1, 0);
        self.event.number(11, EXPLICIT);
        self.packet.message(60, &mut self.event);
        self.send(NEEDS_STATE)
    }

    /// A track, before its first slice or value; tracks with the same parent are shown in the order of their coming.
    pub fn track(&mut self, track: &Track<'_>) -> io::Result<()> {
        let descriptor = &mut self.event;
        descriptor.number(1, track.id);
        descriptor.text(2, track.name);
        if let Some(parent) = track.parent {
            descriptor.number(5, parent);
        }
        if track.counts {
            self.part.text(6, "%");
            self.part.text(7, "load");
            descriptor.message(8, &mut self.part);
        }
        descriptor.number(11, EXPLICIT);
        descriptor.number(12, self.tracks);
        self.tracks += 1;
        self.packet.message(60, &mut self.event);
        self.send(NEEDS_STATE)
    }

    /// A slice.
    pub fn slice(&mut self, slice: &Slice<'_>) -> io::Result<()> {
        self.event.text(23, slice.name);
        for &(name, value) in slice.arguments {
            self.part.number(1, name as u64 + 1);
            self.part.number(3, value);
            self.event.message(4, &mut self.part);
        }
        for &flow in slice.leaving {
            self.event.fixed(47, flow);
        }
        for flow in slice.arriving.clone() {
            self.event.fixed(48, flow);
        }
        self.send_event(SLICE_BEGIN, slice.track, slice.from)?;
        self.send_event(SLICE_END, slice.track, slice.to)
    }

    /// From `at` on, the counter has this value.
    pub fn value(&mut self, track: u64, at: u64, value: f64) -> io::Result<()> {
        self.event.fixed(44, value.to_bits());
        self.send_event(COUNTER, track, at)
    }
}

/// Fields of a protobuf message.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u64, kind: u64) {
        self.varint(field << 3 | kind);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, field: u64, value: &str) {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend(value.as_bytes());
    }

    /// `other` as a field, which is empty afterwards.
    fn message(&mut self, field: u64, other: &mut Message) {
        self.key(field, LENGTH);
        self.varint(other.bytes.len() as u64);
        self.bytes.append(&mut other.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_protobuf_documentation() {
        // Field 1 with 150 is 08 96 01, field 2 with "testing" 12 07 and the text (protobuf.dev, Encoding).
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        assert_eq!(message.bytes, b"\x08\x96\x01\x12\x07testing");
        let mut outer = Message::default();
        outer.message(3, &mut message);
        assert_eq!(outer.bytes[..2], [0x1a, 12]);
        outer.bytes.clear();
        outer.fixed(47, 1);
        assert_eq!(outer.bytes, [0xf9, 2, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}

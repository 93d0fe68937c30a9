//! The numbers of a torus network, without any value: values stand in machine files.

use linkwright_core::{BytesPerSec, TimePs};

/// How the links of one network run and in which order a packet uses the dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// One-way links east and south (+x, +y), x first.
    SouthEast,
    /// One-way links north and west (-y, -x), y first.
    NorthWest,
    /// Links in all four directions, the shorter way, x first.
    Shortest,
}

/// How a sender picks the virtual channel of a unicast request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelChoice {
    /// Always the same channel.
    Static,
    /// Per packet, the channel with the fewest packets at the sender's port.
    Dynamic,
}

/// Input buffer of one router port, in flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffers {
    /// Flits that each virtual channel owns.
    pub guaranteed: u32,
    /// Flits that the channels of the port share.
    pub shared: u32,
    /// Most shared flits that one channel may take.
    pub shared_per_channel: u32,
}

/// Cost of a stream of packets at the interface that sends the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Least time between the issue of two packets by one processor.
    pub issue: TimePs,
    /// Time per flit at the sending interface.
    pub flit: TimePs,
}

/// Memory channels behind the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dram {
    /// Rate of one channel when read.
    pub read: BytesPerSec,
    /// Rate of one channel when written.
    pub write: BytesPerSec,
    /// From the start of a read to its first data.
    pub read_latency: TimePs,
    /// From the end of a write to its acknowledgement.
    pub write_latency: TimePs,
    /// Least time that an access occupies the channel.
    pub least: TimePs,
    /// A write of fewer bytes than this is partial.
    pub partial_below: u64,
    /// Least time that a partial write occupies the channel.
    pub partial_write: TimePs,
}

/// Where an endpoint is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Column, counted eastwards.
    pub x: u32,
    /// Row, counted southwards.
    pub y: u32,
    /// Memory channel behind the place; `None` for a tile with its own memory.
    pub channel: Option<u32>,
}

/// Everything that defines a [`super::TorusNoc`].
#[derive(Clone, Debug, PartialEq)]
pub struct TorusNocConfig {
    /// Columns of the torus.
    pub width: u32,
    /// Rows of the torus.
    pub height: u32,
    /// The independent networks; `Msg::network` counts them.
    pub networks: Vec<Heading>,
    /// Place of each endpoint, by `EndpointId`.
    pub sites: Vec<Site>,
    /// Bytes of a flit.
    pub flit_bytes: u64,
    /// Largest payload of a packet; longer messages are cut.
    pub packet_bytes: u64,
    /// Time of one flit on a link.
    pub link_flit: TimePs,
    /// Time of the head from router to router.
    pub hop: TimePs,
    /// Time of the head from interface to router.
    pub interface_out: TimePs,
    /// Time of the head from router to interface.
    pub interface_in: TimePs,
    /// Channel of a unicast request.
    pub channels: ChannelChoice,
    /// Router buffers; `None` for buffers without limit.
    pub buffers: Option<Buffers>,
    /// Request packets that a receiving interface works on at once.
    pub receive_requests: u32,
    /// Response packets that a receiving interface works on at once.
    pub receive_responses: u32,
    /// Multicasts of one interface to one set keep their reservation until the last.
    pub multicast_linked: bool,
    /// Writes to another place.
    pub write: Stream,
    /// Reads; `flit` is paid by the interface that sends the data back.
    pub read: Stream,
    /// Writes to the own place.
    pub loopback: Stream,
    /// Time of an atomic at the memory of the target.
    pub atomic: TimePs,
    /// Memory channels, where sites name some.
    pub dram: Option<Dram>,
}

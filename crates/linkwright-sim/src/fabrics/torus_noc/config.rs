//! The parameters of a torus network; their values come from machine files.

use crate::fabric::Bounds;
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

/// The place of an endpoint.
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
    /// Writes, atomics and multicasts without a wanted acknowledgement ([`crate::fabric::Msg::wanted`]) are posted: the
    /// target does not answer.
    pub posted: bool,
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

impl TorusNocConfig {
    /// Rates that no message can beat: full packets on every link that leads the right way.
    pub(super) fn bounds(&self) -> Bounds {
        let data_flits = self.packet_bytes / self.flit_bytes;
        let packet_ps = (data_flits + 1) * self.link_flit.0;
        let links = |count: usize| {
            BytesPerSec(count as f64 * self.packet_bytes as f64 * 1e12 / packet_ps as f64)
        };
        let port = Some(links(self.networks.len()));
        // A cut between two columns (or rows) is crossed in each row (or column), in one direction
        // once per one-way network and twice, through the middle and the wrap, with links both ways.
        let ways: usize = self.networks.iter().map(|heading| heading.ways()).sum();
        let across = [
            self.splits(|site| site.x)
                .then_some(self.height as usize * ways),
            self.splits(|site| site.y)
                .then_some(self.width as usize * ways),
        ];
        Bounds {
            rank_out: port,
            rank_in: port,
            memory_out: self.dram.map_or(port, |dram| Some(dram.read)),
            memory_in: self.dram.map_or(port, |dram| Some(dram.write)),
            halves: across.into_iter().flatten().min().map(links),
        }
    }

    /// Whether a cut across one coordinate has equally many tiles on both sides.
    fn splits(&self, coordinate: impl Fn(&Site) -> u32) -> bool {
        let tiles = self.sites.iter().filter(|site| site.channel.is_none());
        let mut places: Vec<u32> = tiles.map(coordinate).collect();
        places.sort_unstable();
        let half = places.len() / 2;
        places.len() % 2 == 0 && half > 0 && places[half - 1] != places[half]
    }
}

impl Heading {
    /// Links of one row or column that cross a cut in one direction.
    fn ways(self) -> usize {
        match self {
            Heading::Shortest => 2,
            Heading::SouthEast | Heading::NorthWest => 1,
        }
    }
}

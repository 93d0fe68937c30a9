//! The parameters of a torus network; their values come from machine files.

use crate::network::{NetworkCut, PortRates};
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
    /// Least time from a partial write to the next write over the same virtual channel.
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
    /// A router puts a response, or a request that is not static, on the buddy of its lane where the lane is taken.
    pub buddy_each_hop: bool,
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
    /// What `count` links carry, in bytes per second, if all their packets are full.
    pub(super) fn links(&self, count: usize) -> BytesPerSec {
        let data_flits = self.packet_bytes / self.flit_bytes;
        let packet_ps = (data_flits + 1) * self.link_flit.0;
        BytesPerSec(count as f64 * self.packet_bytes as f64 * 1e12 / packet_ps as f64)
    }

    /// The ports of a site: a link out and in for each network, or its memory channel.
    pub(super) fn port(&self, site: &Site, networks: &[u8]) -> PortRates {
        let link = self.links(networks.len());
        match (site.channel, self.dram) {
            (Some(_), Some(dram)) => PortRates {
                out: Some(dram.read),
                into: Some(dram.write),
            },
            _ => PortRates {
                out: Some(link),
                into: Some(link),
            },
        }
    }

    /// Bands of columns and bands of rows.
    ///
    /// A band has two borders. Each row (or column) crosses them, in one direction, once per one-way network and
    /// twice with links both ways.
    pub(super) fn cuts(&self, sites: &[Site], networks: &[u8]) -> Vec<NetworkCut> {
        let used = networks
            .iter()
            .filter_map(|&n| self.networks.get(n as usize));
        let ways: usize = used.map(|heading| heading.ways()).sum();
        let bands = |extent: u32| {
            (0..extent).flat_map(move |from| (from + 1..extent).map(move |to| from..to))
        };
        let cut = |inside: Vec<bool>, across: u32| {
            let rate = self.links(across as usize * ways);
            NetworkCut {
                inside,
                out: rate,
                into: rate,
            }
        };
        let columns = bands(self.width).map(|band| {
            let inside = sites.iter().map(|site| band.contains(&site.x)).collect();
            cut(inside, self.height)
        });
        let rows = bands(self.height).map(|band| {
            let inside = sites.iter().map(|site| band.contains(&site.y)).collect();
            cut(inside, self.width)
        });
        columns.chain(rows).collect()
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

//! The numbers of a torus network, without any value: values stand in machine files.

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
    /// Writes, atomics and multicasts whose acknowledgement is not waited for ([`crate::fabric::Msg::wanted`]) are
    /// posted: the target answers nothing.
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
    /// What no message can beat: full packets on every link that leads the right way.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn tiles(width: u32, height: u32) -> Vec<Site> {
        let places = (0..width * height).map(|i| (i % width, i / width));
        places
            .map(|(x, y)| Site {
                x,
                y,
                channel: None,
            })
            .collect()
    }

    #[test]
    fn bounds_count_links() {
        let stream = Stream {
            issue: TimePs(0),
            flit: TimePs(1000),
        };
        let torus = |width, height, networks: &[Heading]| TorusNocConfig {
            width,
            height,
            networks: networks.to_vec(),
            sites: tiles(width, height),
            flit_bytes: 32,
            packet_bytes: 256 * 32,
            link_flit: TimePs(1000),
            hop: TimePs(9000),
            interface_out: TimePs(5000),
            interface_in: TimePs(5000),
            channels: ChannelChoice::Static,
            buffers: None,
            receive_requests: 12,
            receive_responses: 4,
            posted: false,
            multicast_linked: false,
            write: stream,
            read: stream,
            loopback: stream,
            atomic: TimePs(0),
            dram: None,
        };
        // One link of full packets: 8192 B in 257 cycles.
        let link = 8192.0 / 257e-9;
        let near = |rate: Option<BytesPerSec>, links: f64| {
            let rate = rate.expect("known").0;
            assert!((rate / link - links).abs() < 1e-9, "{} links", rate / link);
        };
        // Two one-way networks: a rank has two ports; 4 x 6: six rows cross the cut between
        // columns, four columns the cut between rows, once per network.
        let both = torus(4, 6, &[Heading::SouthEast, Heading::NorthWest]).bounds();
        near(both.rank_out, 2.0);
        near(both.halves, 8.0);
        // One network, links both ways. 3 columns cannot be halved, so only the cut between rows
        // counts, where each column has a middle and a wrap link.
        let shortest = torus(3, 2, &[Heading::Shortest]).bounds();
        near(shortest.rank_in, 1.0);
        near(shortest.halves, 6.0);
        assert_eq!(torus(3, 3, &[Heading::Shortest]).bounds().halves, None);
    }
}

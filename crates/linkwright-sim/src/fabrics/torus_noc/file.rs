//! `[fabric]` of a machine file with `kind = "torus_noc"`.

use linkwright_core::machine::{EndpointKind, Machine, Section};
use linkwright_core::{MachineError, TimePs};

use super::config::{Buffers, ChannelChoice, Dram, Heading, Site, Stream, TorusNocConfig};
use super::lane::LANES;
use super::link::STREAMS;
use super::TorusNoc;
use crate::error::SimError;
use crate::fabric::FabricKind;

/// Registry entry.
pub static KIND: FabricKind = FabricKind {
    key: "torus_noc",
    summary: "packets on one-way or two-way tori, virtual channels, finite buffers",
    description:
        "Packets in dimension order over a two-dimensional torus, virtual cut-through with \
                  back-pressure, acknowledgements that travel on around the ring, and interfaces \
                  that pace reads and writes.",
    source: "Tenstorrent ISA documentation, Wormhole B0",
};

/// The fabric that `machine` describes.
pub fn from_machine(machine: &Machine) -> Result<TorusNoc, SimError> {
    Ok(TorusNoc::new(TorusNocConfig::from_machine(machine)?))
}

/// The routers have a dateline bit, two class bits and a buddy bit.
const REQUEST_CHANNELS: u64 = 4;
/// Largest extent of the grid in one dimension.
const EXTENT: u32 = 255;

impl TorusNocConfig {
    /// Read the fabric of a machine whose endpoints all have a place.
    pub fn from_machine(machine: &Machine) -> Result<TorusNocConfig, MachineError> {
        let mut s = machine.fabric_section();
        let Some(grid) = machine.grid().filter(|g| g.columns.max(g.rows) <= EXTENT) else {
            let problem = "a torus needs [endpoints] with a grid of at most 255 x 255 places";
            return Err(s.inconsistent("kind", problem));
        };
        let flit = s.bytes("flit")?.0;
        let header = s.count("header_flits")?;
        if header != 1 || flit == 0 {
            return Err(s.inconsistent("flit", "a packet has one header flit of at least one byte"));
        }
        let data_flits = s.count("packet_data_flits")?.max(1);
        let packet_flits = header + data_flits;
        let stream = |s: &mut Section<'_>, what: &str| {
            Ok::<_, MachineError>(Stream {
                issue: s.time(&format!("issue_{what}"))?,
                flit: TimePs(s.time(&format!("packet_{what}"))?.0 / packet_flits),
            })
        };
        let dram = dram(&mut s)?;
        let sites = sites(machine, &s, dram.is_some())?;
        let config = TorusNocConfig {
            width: grid.columns,
            height: grid.rows,
            networks: networks(&mut s)?,
            sites,
            flit_bytes: flit,
            packet_bytes: flit.saturating_mul(data_flits),
            link_flit: s.rate("link_bandwidth")?.time(linkwright_core::Bytes(flit)),
            hop: s.time("hop_latency")?,
            interface_out: s.time("interface_out")?,
            interface_in: s.time("interface_in")?,
            channels: match s.choice("channel_choice", &["static", "dynamic"])? {
                0 => ChannelChoice::Static,
                _ => ChannelChoice::Dynamic,
            },
            buddy_each_hop: s.choice("buddy", &["sender", "each_hop"])? == 1,
            buffers: buffers(&mut s, flit)?,
            receive_requests: s.small_count("target_requests")?,
            receive_responses: s.small_count("target_responses")?,
            posted: s.choice("acknowledgements", &["always", "awaited"])? == 1,
            multicast_linked: s.choice("multicast", &["unlinked", "linked"])? == 1,
            write: stream(&mut s, "write")?,
            read: stream(&mut s, "read")?,
            loopback: stream(&mut s, "self")?,
            atomic: s.time("atomic_bank")?,
            dram,
        };
        check(&mut s, &config)?;
        check_sizes(&s, &config)?;
        s.finish()?;
        Ok(config)
    }
}

/// The site of each endpoint; each memory has a channel if the machine describes memories.
fn sites(machine: &Machine, s: &Section<'_>, dram: bool) -> Result<Vec<Site>, MachineError> {
    let mut channels = 0..;
    let mut sites = Vec::new();
    for endpoint in machine.endpoints() {
        let Some(place) = endpoint.place else {
            let problem = format!("endpoint \"{}\" has no place on the grid", endpoint.name);
            return Err(s.inconsistent("kind", problem));
        };
        let memory = endpoint.kind == EndpointKind::Memory && dram;
        let channel = if memory { channels.next() } else { None };
        sites.push(Site {
            x: place.x,
            y: place.y,
            channel,
        });
    }
    Ok(sites)
}

fn networks(s: &mut Section<'_>) -> Result<Vec<Heading>, MachineError> {
    let mut headings = Vec::new();
    for mut network in s.sections("network")? {
        network.text("name")?;
        let order = network.choice("order", &["xy", "yx"])?;
        let ways = ["+", "-", "shortest"];
        let (x, y) = (network.choice("x", &ways)?, network.choice("y", &ways)?);
        headings.push(match (order, x, y) {
            (0, 0, 0) => Heading::SouthEast,
            (1, 1, 1) => Heading::NorthWest,
            (0, 2, 2) => Heading::Shortest,
            _ => {
                let problem = "networks are xy with x and y \"+\", yx with both \"-\", or xy \
                               with both \"shortest\"; write one of these";
                return Err(network.inconsistent("order", problem));
            }
        });
        network.finish()?;
    }
    if headings.is_empty() {
        return Err(s.inconsistent("", "a torus needs at least one [[fabric.network]]; add it"));
    }
    Ok(headings)
}

fn buffers(s: &mut Section<'_>, flit: u64) -> Result<Option<Buffers>, MachineError> {
    let mut flits = |key: &str| Ok::<_, MachineError>(s.bytes(key)?.0 / flit);
    let whole = flits("input_buffer")?;
    let guaranteed = flits("channel_guaranteed")?;
    let shared_per_channel = flits("channel_shared_most")?;
    let finite = s.choice("buffers", &["finite", "unlimited"])? == 0;
    if whole > u64::from(u16::MAX) {
        let problem = format!("{whole} flits; this model has room for {}", u16::MAX);
        return Err(s.inconsistent("input_buffer", problem));
    }
    let lanes = u64::from(LANES);
    if guaranteed == 0 || whole / lanes < guaranteed {
        let problem = format!("each of {LANES} channels needs a flit of its own in input_buffer");
        return Err(s.inconsistent("channel_guaranteed", problem));
    }
    let shared = whole - guaranteed * lanes;
    Ok(finite.then_some(Buffers {
        guaranteed: guaranteed as u32,
        shared: shared as u32,
        shared_per_channel: shared_per_channel.min(shared) as u32,
    }))
}

fn dram(s: &mut Section<'_>) -> Result<Option<Dram>, MachineError> {
    let Some(read) = s.optional_rate("dram_read_rate")? else {
        return Ok(None);
    };
    Ok(Some(Dram {
        read,
        write: s.rate("dram_write_rate")?,
        read_latency: s.time("dram_read_extra")?,
        write_latency: s.time("dram_write_extra")?,
        least: s.time("dram_least")?,
        partial_below: s.bytes("dram_partial_below")?.0,
        partial_write: s.time("dram_partial_write")?,
    }))
}

/// The numbers that describe the routers must agree with this model.
fn check(s: &mut Section<'_>, config: &TorusNocConfig) -> Result<(), MachineError> {
    let built = [
        ("channels", u64::from(LANES)),
        ("request_channels", REQUEST_CHANNELS),
        ("initiators", 4),
    ];
    for (key, needed) in built {
        let given = s.count(key)?;
        if given != needed {
            let problem = format!("this model has {needed}, not {given}; write {needed}");
            return Err(s.inconsistent(key, problem));
        }
    }
    let (requests, responses) = (config.receive_requests, config.receive_responses);
    if requests.min(responses) == 0 || requests as usize + responses as usize > STREAMS {
        let problem = format!(
            "{requests} requests and {responses} responses at once; write at least 1 each and at \
             most {STREAMS} together"
        );
        return Err(s.inconsistent("target_requests", problem));
    }
    Ok(())
}

/// Links, packets and jobs keep their times and sizes in 32 bits.
fn check_sizes(s: &Section<'_>, config: &TorusNocConfig) -> Result<(), MachineError> {
    let most = u64::from(u32::MAX);
    if config.packet_bytes > most {
        let problem = format!(
            "packets of {} bytes; this model has room for {most}",
            config.packet_bytes
        );
        return Err(s.inconsistent("packet_data_flits", problem));
    }
    let flits = config.packet_bytes / config.flit_bytes + 1;
    let packet = |flit: TimePs| flit.0.saturating_mul(flits);
    let times = [
        ("hop_latency", config.hop.0),
        ("interface_out", config.interface_out.0),
        ("interface_in", config.interface_in.0),
        ("link_bandwidth", packet(config.link_flit)),
        ("packet_write", packet(config.write.flit)),
        ("packet_read", packet(config.read.flit)),
        ("packet_self", packet(config.loopback.flit)),
    ];
    match times.into_iter().find(|&(_, time)| time > most) {
        None => Ok(()),
        Some((key, time)) => {
            let problem = format!(
                "{} for one packet; this model has room for {}, some 4 ms",
                TimePs(time),
                TimePs(most)
            );
            Err(s.inconsistent(key, problem))
        }
    }
}

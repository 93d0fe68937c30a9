//! `[fabric]` of kind `exchange`, read.
//!
//! Only `sync` and `bandwidth` are required: one chip whose tiles are all equally near. `word`, `transit`
//! and `collect_lead` refine it; `[fabric.floorplan]` places the tiles, `[fabric.multicast]` gives the rules of
//! multicasts, `[fabric.ladder]` joins chips to boards and boards to a ladder, `[fabric.host]`
//! attaches the memory endpoints.

use super::chip::{Chip, Floorplan, Multicast};
use super::ladder::Ladder;
use crate::error::SimError;
use linkwright_core::machine::Section;
use linkwright_core::{BytesPerSec, Machine, MachineError, TimePs};

/// Links between chips.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// Which chips are linked.
    pub ladder: Ladder,
    /// Of one link, each way, payload.
    pub rate: BytesPerSec,
    /// Of one link, each way, as the vendor states it.
    pub nominal: BytesPerSec,
    /// From the last arrival to the start of a phase among chips, and into a link.
    pub base: TimePs,
    /// Per rail of the route.
    pub rail_hop: TimePs,
    /// Per rung of the route.
    pub rung_hop: TimePs,
    /// Least time of a stream on a rail.
    pub message_cost: TimePs,
    /// Least time of a stream on a link of a rung, in units of that on a rail.
    pub rung_units: u64,
    /// Whether streams of both directions share a rung's time for messages.
    pub rung_half_duplex: bool,
    /// Of a link, from one word to the next.
    pub word_interval: TimePs,
    /// Whether streams of a chip to several boards are sorted at every board on their way.
    pub sorted_by_board: bool,
    /// Whether a message longer than a word is stored before it is sent on.
    pub stored: bool,
    /// Per rail, of a message longer than a word.
    pub packet_fill: TimePs,
    /// Whether a multicast to two chips, one of them its own, serves its own in a second pass.
    pub own_chip_last: bool,
}

impl Links {
    /// Bytes of one packet: those that pass while it fills.
    pub fn packet(&self) -> u64 {
        (self.packet_fill.0 as f64 * 1e-12 * self.rate.0) as u64
    }
}

/// How the memories of the machine, which belong to the host, are attached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Host {
    /// Of the lanes of one chip, each way.
    pub chip_rate: BytesPerSec,
    /// Of the lanes that a group of chips shares, each way.
    pub group_rate: BytesPerSec,
    /// Chips of a group, neighbours on the ladder.
    pub group: u32,
}

/// All parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// One chip.
    pub chip: Chip,
    /// Several chips; `None`: all tiles are on one.
    pub links: Option<Links>,
    /// The host, where the machine has memories.
    pub host: Option<Host>,
}

impl Config {
    /// Read the fabric of `machine`.
    pub fn read(machine: &Machine) -> Result<Config, SimError> {
        let mut s = machine.fabric_section();
        let links = s.optional_section("ladder")?.map(read_links).transpose()?;
        let chips = links.as_ref().map_or(1, |l| l.ladder.chips() as usize);
        if machine.ranks() % chips != 0 {
            let problem = format!(
                "{} ranks do not divide into {chips} chips; correct one side",
                machine.ranks()
            );
            return Err(s.inconsistent("ladder", problem).into());
        }
        let tiles = (machine.ranks() / chips) as u32;
        let floorplan = s.optional_section("floorplan")?;
        let floorplan = floorplan.map(|f| read_floorplan(f, tiles)).transpose()?;
        let multicast = s.optional_section("multicast")?;
        let (sync, transit) = (s.time("sync")?, s.optional_time("transit")?);
        let transit = transit.unwrap_or(TimePs::ZERO);
        let chip = Chip {
            tiles,
            sync,
            transit,
            collect_lead: s.optional_time("collect_lead")?.unwrap_or(sync + transit),
            rate: s.rate("bandwidth")?,
            word: s.optional_bytes("word")?.map_or(1, |b| b.0.max(1)),
            floorplan,
            multicast: multicast.map(read_multicast).transpose()?,
        };
        let host = s.optional_section("host")?.map(read_host).transpose()?;
        if host.is_none() && machine.memories() > 0 {
            let problem =
                "the machine has memories, which belong to the host; describe how they are attached";
            return Err(s.inconsistent("host", problem).into());
        }
        s.finish()?;
        Ok(Config { chip, links, host })
    }

    /// Number of chips.
    pub fn chips(&self) -> u32 {
        self.links.as_ref().map_or(1, |links| links.ladder.chips())
    }
}

fn read_floorplan(mut s: Section<'_>, tiles: u32) -> Result<Floorplan, MachineError> {
    let plan = Floorplan {
        columns: s.small_integer("columns")?,
        column_tiles: s.small_integer("column_tiles")?,
        island_step: s.time("island_step")?,
        column_step: s.time("column_step")?,
        hides: s.flag("hides")?,
    };
    s.text("source")?;
    let (columns, column_tiles) = (plan.columns, plan.column_tiles);
    if columns.checked_mul(column_tiles) != Some(tiles) || column_tiles % 2 == 1 {
        let problem = format!(
            "{columns} columns of {column_tiles} tiles for {tiles} tiles; the product must be right and \
             a column have an even number"
        );
        return Err(s.inconsistent("columns", problem));
    }
    s.finish()?;
    Ok(plan)
}

fn read_multicast(mut s: Section<'_>) -> Result<Multicast, MachineError> {
    let multicast = Multicast {
        paired_from: s.count("paired_from")?,
        wide_above: s.count("wide_above")?,
        wide_start: s.time("wide_start")?,
    };
    s.finish()?;
    Ok(multicast)
}

fn read_links(mut s: Section<'_>) -> Result<Links, MachineError> {
    let boards = s.small_integer("boards")?;
    let ids = s.optional_integers("device_ids")?;
    let ids = match ids {
        Some(ids) => ids.into_iter().map(|id| id as u32).collect(),
        None => (0..boards.saturating_mul(2)).collect(),
    };
    s.text("source")?;
    let ladder =
        Ladder::new(boards, ids).map_err(|problem| s.inconsistent("device_ids", problem))?;
    let nominal = s.rate("link_bandwidth")?;
    let efficiency = s.share("efficiency")?;
    let links = Links {
        ladder,
        rate: BytesPerSec(nominal.0 * efficiency),
        nominal,
        base: s.time("base")?,
        rail_hop: s.time("rail_hop")?,
        rung_hop: s.time("rung_hop")?,
        message_cost: s.time("message_cost")?,
        rung_units: s.count("rung_units")?,
        rung_half_duplex: s.flag("rung_half_duplex")?,
        word_interval: s.time("word_interval")?,
        sorted_by_board: s.flag("sorted_by_board")?,
        stored: s.flag("stored")?,
        packet_fill: s.time("packet_fill")?,
        own_chip_last: s.flag("own_chip_last")?,
    };
    s.finish()?;
    Ok(links)
}

fn read_host(mut s: Section<'_>) -> Result<Host, MachineError> {
    let host = Host {
        chip_rate: s.rate("chip_rate")?,
        group_rate: s.rate("group_rate")?,
        group: match s.small_integer("group")? {
            0 => return Err(s.inconsistent("group", "a group of no chips; write at least 1")),
            chips => chips,
        },
    };
    s.text("source")?;
    s.finish()?;
    Ok(host)
}

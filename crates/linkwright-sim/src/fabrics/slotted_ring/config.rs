//! `[fabric]` of a machine file with `kind = "slotted_ring"`, in bus cycles.
//!
//! Durations may have any unit but must be whole bus cycles. Unpublished structure is a choice of words
//! (`arbiter_sees`, `tie`, `receiver_order`), so that every prediction can be repeated with another
//! choice.

use linkwright_core::machine::{Machine, Section};
use linkwright_core::{Bytes, BytesPerSec, MachineError};

/// Most elements on a ring: their sets are bits of a word.
pub(super) const MOST_ELEMENTS: usize = 16;
/// Fractions of bus cycles are kept in thousandths.
pub(super) const MILLI: u64 = 1000;

/// Which of the lines that wait the data arbiter considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sees {
    /// Every line.
    All,
    /// The oldest of each source.
    Oldest,
    /// As many of the oldest of the whole chip.
    Limited(u32),
}

/// Which way a transfer goes if both are equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// Whichever is free first.
    Either,
    /// Elements at even positions go clockwise, at odd positions the other way.
    Parity,
}

/// Which of several requests for one receiver comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverOrder {
    /// The oldest, as long as its sender could begin.
    Age,
    /// In turn; starves some senders of a hot receiver.
    RoundRobin,
}

/// All parameters; times in bus cycles unless they say otherwise.
#[derive(Clone, Debug)]
pub struct RingConfig {
    /// Names of the elements in ring order.
    pub elements: Vec<String>,
    /// Position of each endpoint, ranks first.
    pub sites: Vec<u8>,
    /// Position of the memory controller.
    pub memory: u8,
    /// Length of a bus cycle in picoseconds.
    pub period_ps: u64,
    /// Rings clockwise and counter-clockwise.
    pub rings: [u8; 2],
    /// Transfers that a ring carries at once.
    pub transfers_per_ring: u8,
    /// Least distance of two starts on one ring.
    pub ring_start: u64,
    /// Most bytes of one request.
    pub line_bytes: u32,
    /// Bytes per bus cycle on a ring and through a port.
    pub width: u32,
    /// Command phase of a request.
    pub snoop: u64,
    /// The SPU writes one command.
    pub issue: u64,
    /// From there to the first request.
    pub flow_through: u64,
    /// Fetching a list element.
    pub list_fetch: u64,
    /// Data phase of a command, at least.
    pub data: u64,
    /// Lines that this data phase covers.
    pub data_lines: u64,
    /// Lines that an element keeps in flight.
    pub in_flight: u32,
    /// Reading a line from memory.
    pub memory_read: u64,
    /// Memory's time for one line, in thousandths.
    pub memory_line_milli: u64,
    /// Entries of the queues of an SPU and of the others.
    pub queues: [usize; 2],
    /// Most bytes of a command.
    pub dma_largest: u32,
    /// Most elements of a list.
    pub list_longest: usize,
    /// Whether a partial line takes the data cycles of a whole one.
    pub partial_is_whole: bool,
    /// Further requests if the two addresses lie differently in their lines.
    pub offset_requests: u32,
    /// Page walk that every command pays; 0 where translations hit.
    pub walk: u64,
    /// Writing or reading a mapped register.
    pub mmio: u64,
    /// Depth of the inbound mailbox.
    pub mailbox: usize,
    /// Visibility of requests.
    pub sees: Sees,
    /// Way of ties.
    pub tie: Tie,
    /// Order at a receiver.
    pub receiver_order: ReceiverOrder,
}

impl RingConfig {
    /// Read the fabric of a machine; every key is required.
    pub fn from_machine(machine: &Machine) -> Result<RingConfig, MachineError> {
        let mut s = machine.fabric_section();
        let elements = elements(&mut s)?;
        let controller = s.text("memory_controller")?;
        let memory = position(&s, &elements, &controller)?;
        let endpoints = machine.endpoints().iter();
        let sites = endpoints.map(|endpoint| position(&s, &elements, &endpoint.name));
        let sites = sites.collect::<Result<_, _>>()?;
        let period_ps = period(&mut s)?;
        let clock = |s: &mut Section<'_>, key: &str| cycles(s, key, period_ps);
        let line_bytes = positive(&mut s, "line")?;
        let width = positive(&mut s, "width")?;
        let queues = [
            s.count("spu_queue")? as usize,
            s.count("proxy_queue")? as usize,
        ];
        let tlb_walk = clock(&mut s, "tlb_walk")?;
        let memory_rate = s.rate("memory_bandwidth")?.0 * s.ratio("memory_efficiency")?;
        let sees = s.choice("arbiter_sees", &["all", "oldest", "limited"])?;
        let depth = s.small_count("arbiter_depth")?;
        let config = RingConfig {
            memory,
            sites,
            period_ps,
            rings: [
                s.small_count("rings_clockwise")?,
                s.small_count("rings_counterclockwise")?,
            ],
            transfers_per_ring: s.small_count("transfers_per_ring")?,
            ring_start: clock(&mut s, "ring_start")?,
            line_bytes,
            width,
            snoop: clock(&mut s, "snoop")?,
            issue: clock(&mut s, "issue")?,
            flow_through: clock(&mut s, "flow_through")?,
            list_fetch: clock(&mut s, "list_fetch")?,
            data: clock(&mut s, "data")?,
            data_lines: s.count("data_lines")?,
            in_flight: s.small_count("lines_in_flight")?,
            memory_read: clock(&mut s, "memory_read")?,
            memory_line_milli: line_milli(line_bytes, memory_rate, period_ps),
            queues,
            dma_largest: positive(&mut s, "dma_largest")?,
            list_longest: s.count("list_longest")? as usize,
            partial_is_whole: s.choice("partial_line", &["bytes", "whole"])? == 1,
            offset_requests: s.small_count("offset_requests")?,
            walk: tlb_walk * s.choice("translation", &["hits", "misses"])? as u64,
            mmio: clock(&mut s, "mmio")?,
            mailbox: s.count("mailbox_in")? as usize,
            sees: [Sees::All, Sees::Oldest, Sees::Limited(depth)][sees],
            tie: [Tie::Either, Tie::Parity][s.choice("tie", &["either", "parity"])?],
            receiver_order: [ReceiverOrder::Age, ReceiverOrder::RoundRobin]
                [s.choice("receiver_order", &["age", "round_robin"])?],
            elements,
        };
        config.check(&s)?;
        s.finish()?;
        Ok(config)
    }

    /// Most through one port, each way.
    pub fn port(&self) -> BytesPerSec {
        BytesPerSec(f64::from(self.width) * 1e12 / self.period_ps as f64)
    }

    /// Bus cycles of a whole line.
    pub fn line(&self) -> u64 {
        u64::from(self.line_bytes.div_ceil(self.width))
    }

    /// From the end of a line on the ring until it counts as done.
    pub fn tail(&self) -> u64 {
        self.data - self.data_lines * self.line()
    }

    /// Lines in the arbiter's window, at most.
    fn depth(&self) -> u64 {
        match self.sees {
            Sees::Limited(depth) => u64::from(depth),
            _ => u64::MAX,
        }
    }

    fn check(&self, s: &Section<'_>) -> Result<(), MachineError> {
        if self.data < self.data_lines * self.line() {
            let problem = "the data phase is shorter than the lines it covers; lower this";
            return Err(s.inconsistent("data_lines", problem));
        }
        let needed = [
            ("rings_clockwise", u64::from(self.rings[0])),
            ("rings_counterclockwise", u64::from(self.rings[1])),
            ("transfers_per_ring", u64::from(self.transfers_per_ring)),
            ("lines_in_flight", u64::from(self.in_flight)),
            ("spu_queue", self.queues[0] as u64),
            ("proxy_queue", self.queues[1] as u64),
            ("mailbox_in", self.mailbox as u64),
            ("arbiter_depth", self.depth()),
            ("data_lines", self.data_lines),
        ];
        if let Some((key, _)) = needed.iter().find(|(_, count)| *count == 0) {
            return Err(s.inconsistent(key, "0 of them move nothing; write at least 1"));
        }
        if self.rings.map(u32::from).iter().sum::<u32>() > 8 || self.transfers_per_ring > 8 {
            let problem = "at most 8 rings, of at most 8 transfers each";
            return Err(s.inconsistent("transfers_per_ring", problem));
        }
        if self.queues.iter().any(|&entries| entries > 32) {
            return Err(s.inconsistent("spu_queue", "a queue has at most 32 entries; write fewer"));
        }
        Ok(())
    }
}

/// Names in ring order.
fn elements(s: &mut Section<'_>) -> Result<Vec<String>, MachineError> {
    let elements = s.texts("elements")?;
    match (2..=MOST_ELEMENTS).contains(&elements.len()) {
        true => Ok(elements),
        false => {
            let problem = format!("a ring has 2 to {MOST_ELEMENTS} elements; name as many");
            Err(s.inconsistent("elements", problem))
        }
    }
}

fn position(s: &Section<'_>, elements: &[String], name: &str) -> Result<u8, MachineError> {
    let position = elements.iter().position(|element| element == name);
    position.map(|at| at as u8).ok_or_else(|| {
        let problem = format!("no element is called \"{name}\"; add it in ring order");
        s.inconsistent("elements", problem)
    })
}

/// Length of a bus cycle, which must be whole picoseconds.
fn period(s: &mut Section<'_>) -> Result<u64, MachineError> {
    let clock = s.clock("bus_clock")?;
    let ps = clock.time(1).0;
    match ps > 0 && clock.time(1000).0 == 1000 * ps {
        true => Ok(ps),
        false => Err(s.inconsistent("bus_clock", "a bus cycle must last whole picoseconds")),
    }
}

/// A duration in whole bus cycles.
fn cycles(s: &mut Section<'_>, key: &str, period_ps: u64) -> Result<u64, MachineError> {
    let ps = s.time(key)?.0;
    match ps % period_ps {
        0 => Ok(ps / period_ps),
        _ => Err(s.inconsistent(
            key,
            "is not a whole number of bus cycles; choose one that is",
        )),
    }
}

fn line_milli(line_bytes: u32, rate: f64, period_ps: u64) -> u64 {
    let line = BytesPerSec(rate).time(Bytes(u64::from(line_bytes)));
    (line.0 * MILLI).div_ceil(period_ps)
}

fn positive(s: &mut Section<'_>, key: &str) -> Result<u32, MachineError> {
    match s.bytes(key)?.0 {
        0 => Err(s.inconsistent(key, "0 bytes; write at least 1")),
        bytes => Ok(bytes.min(u64::from(u32::MAX)) as u32),
    }
}

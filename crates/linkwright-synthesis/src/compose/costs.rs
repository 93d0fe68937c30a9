//! What the messages of a stage cost on a machine: numbers that small simulations of every rank tell.
//!
//! ```text
//!   start     everyone sends an element to its neighbour, which sends it on: the second less the first
//!   hop       the same half way round, by place more
//!   message   an element to each of several in one lane, by message more
//!   byte      a block to the neighbour along one axis, by byte
//!   port      blocks to both neighbours along every axis at once, by byte
//!   sum       a block that is added, by byte more
//!   copy      everyone has a block copied to its line, by byte of all members; copy_start of an element
//!   reads     the same with reads instead of writes: of initial data, of what was received, by message and by byte
//! ```

use linkwright_core::Machine;
use linkwright_schedule::error::ScheduleError;
use linkwright_schedule::ir::{Buffer, Hint};
use linkwright_schedule::pull::{pull, Pulled};
use linkwright_schedule::{Builder, Collective, Schedule, Shape};
use linkwright_sim::error::SimError;
use linkwright_sim::{ask, lowered, How, Issue};

/// Bytes of a block by which rates are told: long enough to hide what a message costs, and within any memory.
const BLOCK: u64 = 16 << 10;

/// Buffers that copies of several members share in turn.
const MOST_COPIES: u32 = 32;

/// Costs in ps, of bytes in ps per byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// Of a message that waits for another.
    pub start: f64,
    /// Of each further place that it passes along a line.
    pub hop: f64,
    /// Of each further message of a lane.
    pub message: f64,
    /// Of a byte on a link, by axis.
    pub byte: Vec<f64>,
    /// Of a byte that leaves a rank.
    pub port: f64,
    /// Of a byte that is added.
    pub sum: f64,
    /// Of an element that the network copies to a line, for everyone.
    pub copy_start: f64,
    /// Of a byte that the network copies to a line, over all of its members; infinite where it copies nothing.
    pub copy: f64,
    /// Of what receivers read.
    pub reads: ReadCosts,
}

/// Costs in ps of reads instead of writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReadCosts {
    /// What it saves to read initial data.
    pub saved: f64,
    /// Of a message that is read behind a notice, after another.
    pub start: f64,
    /// Of each further message that a rank reads.
    pub message: f64,
    /// Of a byte, more than when it is written.
    pub byte: f64,
}

/// A line of neighbours along one axis.
#[derive(Clone, Copy)]
struct Axis {
    number: usize,
    stride: u32,
    side: u32,
}

impl Axis {
    /// The rank `distance` places ahead.
    fn ahead(self, rank: u32, distance: u32) -> u32 {
        let place = rank / self.stride % self.side;
        rank - place * self.stride + (place + distance) % self.side * self.stride
    }
}

struct Probe<'a> {
    machine: &'a Machine,
    options: How,
    shape: Shape,
    axes: Vec<Axis>,
}

/// The costs on `machine` with ranks in a grid of `sides`.
pub fn measure(machine: &Machine, path: Option<&str>, sides: &[u32]) -> Result<Costs, SimError> {
    let probe = Probe::new(machine, path, sides);
    let Some(&first) = probe.axes.first() else {
        return Ok(Costs::free());
    };
    let once = probe.time(probe.passed(first, 1, 1, 1)?)?;
    let twice = probe.time(probe.passed(first, 1, 2, 1)?)?;
    let far = probe.time(probe.passed(first, (first.side / 2).max(1), 1, 1)?)?;
    let many = probe.time(probe.many(first)?)?;
    let block = probe.time(probe.passed(first, 1, 1, BLOCK)?)?;
    let per_byte = |time: f64, bytes: u64| ((time - once) / bytes as f64).max(0.0);
    let mut byte = vec![0.0; sides.len()];
    for &axis in &probe.axes {
        byte[axis.number] = per_byte(probe.time(probe.passed(axis, 1, 1, BLOCK)?)?, BLOCK);
    }
    let (all_ways, ways) = probe.all_ways()?;
    let (copy_start, copy) = probe.copies(first);
    Ok(Costs {
        start: (twice - once).max(0.0),
        hop: (far - once).max(0.0) / f64::from((first.side / 2).max(2) - 1),
        message: (many - once).max(0.0) / f64::from((first.side - 1).max(2) - 1),
        byte,
        port: per_byte(probe.time(all_ways)?, BLOCK * ways),
        sum: (probe.time(probe.added(first)?)? - block).max(0.0) / BLOCK as f64,
        copy_start,
        copy,
        reads: probe.reads(first, once, block)?,
    })
}

impl Costs {
    /// Nobody to send to.
    fn free() -> Self {
        Costs {
            start: 0.0,
            hop: 0.0,
            message: 0.0,
            byte: Vec::new(),
            port: 0.0,
            sum: 0.0,
            copy_start: 0.0,
            copy: 0.0,
            reads: ReadCosts::default(),
        }
    }
}

impl<'a> Probe<'a> {
    fn new(machine: &'a Machine, path: Option<&str>, sides: &[u32]) -> Self {
        let mut stride = 1;
        let mut axes = Vec::new();
        for (number, &side) in sides.iter().enumerate() {
            if side > 1 {
                axes.push(Axis {
                    number,
                    stride,
                    side,
                });
            }
            stride *= side;
        }
        let options = How {
            path: path.map(str::to_string),
            issue: Issue::Unlimited,
            grid: if machine.ranks() == 0 {
                sides.to_vec()
            } else {
                Vec::new()
            },
            ..How::default()
        };
        Probe {
            machine,
            options,
            shape: Shape::new(stride, 1),
            axes,
        }
    }

    /// Time in ps.
    fn time(&self, schedule: Schedule) -> Result<f64, SimError> {
        let lowered = {
            let options = &self.options;
            lowered(
                &schedule,
                self.machine,
                options.path.as_deref(),
                &options.placement,
            )?
        };
        let modelled = ask(
            self.machine,
            lowered.as_ref().unwrap_or(&schedule),
            &self.options,
        )?;
        Ok(modelled.simulation.makespan.0 as f64)
    }

    fn builder(&self, bytes: u64) -> Builder {
        let elements = (bytes / u64::from(self.shape.element_bytes)).max(1);
        let shape = Shape {
            elements,
            ..self.shape.clone()
        };
        Builder::new(Collective::Pattern, &shape)
    }

    /// Everyone sends `distance` places ahead, `times` in turn.
    fn passed(
        &self,
        axis: Axis,
        distance: u32,
        times: u32,
        bytes: u64,
    ) -> Result<Schedule, ScheduleError> {
        let mut b = self.builder(bytes);
        let buffers: Vec<_> = (0..=times)
            .map(|k| b.buffer(Buffer::vector(&format!("at{k}"), 1)))
            .collect();
        for pair in buffers.windows(2) {
            b.step();
            for rank in 0..self.shape.ranks {
                b.put(
                    rank,
                    pair[0].at(0),
                    axis.ahead(rank, distance),
                    pair[1].at(0),
                )
                .hint(Hint::along(axis.number as u8, true));
            }
        }
        b.finish()
    }

    /// What reads cost where writes take `once`, and `block` with a block.
    fn reads(&self, axis: Axis, once: f64, block: f64) -> Result<ReadCosts, SimError> {
        let read = |schedule: Schedule| self.time(pull(&schedule, Pulled::Everything, None)?);
        let read_once = read(self.passed(axis, 1, 1, 1)?)?;
        let read_twice = read(self.passed(axis, 1, 2, 1)?)?;
        let read_block = read(self.passed(axis, 1, 1, BLOCK)?)?;
        let read_many = read(self.many(axis)?)?;
        let further = f64::from((axis.side - 1).max(2) - 1);
        Ok(ReadCosts {
            saved: once - read_once,
            start: (read_twice - read_once).max(0.0),
            message: (read_many - read_once).max(0.0) / further,
            byte: (read_block - read_once - (block - once)) / BLOCK as f64,
        })
    }

    /// Everyone sends to each other member of its line.
    fn many(&self, axis: Axis) -> Result<Schedule, ScheduleError> {
        let mut b = self.builder(1);
        let data = b.buffer(Buffer::vector("at0", 1));
        let there = b.buffer(Buffer::vector("at1", axis.side));
        b.step();
        for distance in 1..axis.side {
            for rank in 0..self.shape.ranks {
                b.put(
                    rank,
                    data.at(0),
                    axis.ahead(rank, distance),
                    there.at(distance),
                )
                .hint(Hint::along(axis.number as u8, true));
            }
        }
        b.finish()
    }

    /// Everyone sends to its neighbours ahead and back along all axes; how many that are.
    fn all_ways(&self) -> Result<(Schedule, u64), ScheduleError> {
        let mut b = self.builder(BLOCK);
        let data = b.buffer(Buffer::vector("data", 1));
        b.step();
        let mut ways = 0;
        for &axis in &self.axes {
            for distance in [1, axis.side - 1] {
                let there = b.buffer(Buffer::vector(&format!("from{ways}"), 1));
                for rank in 0..self.shape.ranks {
                    b.put(rank, data.at(0), axis.ahead(rank, distance), there.at(0))
                        .lane(ways as u8)
                        .hint(Hint::along(axis.number as u8, distance == 1));
                }
                ways += 1;
            }
        }
        Ok((b.finish()?, ways))
    }

    /// Everyone adds what comes from behind.
    fn added(&self, axis: Axis) -> Result<Schedule, ScheduleError> {
        let mut b = self.builder(BLOCK);
        let data = b.buffer(Buffer::vector("data", 1));
        let sum = b.buffer(Buffer::vector("sum", 1));
        b.step();
        for rank in 0..self.shape.ranks {
            b.put(rank, data.at(0), axis.ahead(rank, 1), sum.at(0))
                .reduce()
                .hint(Hint::along(axis.number as u8, true));
        }
        b.finish()
    }

    /// Time until everyone has had an element copied to its line, and what each further byte of a member costs.
    fn copies(&self, axis: Axis) -> (f64, f64) {
        let time = |bytes: u64| self.time(self.copied(axis, bytes)?);
        match (time(1), time(BLOCK)) {
            (Ok(one), Ok(block)) => (
                one,
                (block - one).max(0.0) / (BLOCK * u64::from(axis.side)) as f64,
            ),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// Everyone has `bytes` copied to the others of its line.
    fn copied(&self, axis: Axis, bytes: u64) -> Result<Schedule, ScheduleError> {
        let mut b = self.builder(bytes);
        let data = b.buffer(Buffer::vector("data", 1));
        let there: Vec<_> = (0..axis.side.min(MOST_COPIES))
            .map(|k| b.buffer(Buffer::vector(&format!("from{k}"), 1)))
            .collect();
        b.step();
        for rank in 0..self.shape.ranks {
            let place = rank / axis.stride % axis.side;
            let others: Vec<u32> = (1..axis.side)
                .map(|distance| axis.ahead(rank, distance))
                .collect();
            b.multicast(
                rank,
                data.at(0),
                &others,
                there[(place % MOST_COPIES) as usize].at(0),
            )
            .hint(Hint::along(axis.number as u8, true));
        }
        b.finish()
    }
}

//! The workloads: one line each in [`WORKLOADS`].

use crate::noc::{Load, Target};
use linkwright_schedule::builder::Shape;
use linkwright_sim::Issue;

/// A workload, which describes itself.
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Selected only by name: it takes long or much memory, or serves to count instructions.
    pub by_name: bool,
    /// Its kind.
    pub kind: Kind,
}

/// The kind of a workload.
pub enum Kind {
    /// A schedule on a machine.
    Schedule(Case),
    /// Packets that enter a network at a rate.
    Traffic(Load),
}

/// A schedule on a machine.
pub struct Case {
    pub machine: Source,
    /// `collective/algorithm` or `pattern/name`.
    pub key: &'static str,
    pub shape: Size,
    pub way: Way,
    pub issue: Issue,
}

/// How a schedule's messages use the machine.
#[derive(Clone, Copy, PartialEq)]
pub enum Way {
    /// Over the machine's default path, lowered for it.
    Lowered,
    /// At the cost of the default path, but targets add what they receive and get no signal with it.
    Plain,
}

/// The source of a machine.
pub enum Source {
    /// A file among those shipped.
    Shipped(&'static str),
    /// A text made here, and its name.
    Made(&'static str, fn() -> String),
}

impl Source {
    /// Name of the machine in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Source::Shipped(name) | Source::Made(name, _) => name,
        }
    }

    /// The machine file.
    pub fn text(&self) -> String {
        match self {
            Source::Made(_, make) => make(),
            Source::Shipped(name) => {
                let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
                let file = format!("{root}/python/linkwright/machines/{name}.toml");
                std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{file}: {error}"))
            }
        }
    }
}

/// Ranks and bytes of a case.
#[derive(Clone, Copy)]
pub struct Size {
    pub ranks: u32,
    pub grid: Option<(u32, u32)>,
    /// Size S of the collective, or of one message of a pattern.
    pub bytes: u64,
    /// Messages per sender of a pattern.
    pub count: u32,
}

impl Size {
    /// The shape for builders, in elements of four bytes.
    pub fn shape(&self) -> Shape {
        Shape {
            grid: self.grid.map_or_else(Vec::new, |(c, r)| vec![c, r]),
            ..Shape::new(self.ranks, self.bytes / 4)
        }
    }
}

const fn size(ranks: u32, bytes: u64) -> Size {
    Size {
        ranks,
        grid: None,
        bytes,
        count: 1,
    }
}

/// One block of 1 KiB for each rank.
const fn blocks(ranks: u32) -> Size {
    size(ranks, ranks as u64 * 1024)
}

const fn grid(columns: u32, rows: u32) -> Size {
    Size {
        grid: Some((columns, rows)),
        ..blocks(columns * rows)
    }
}

const fn on(machine: Source, key: &'static str, shape: Size, way: Way, issue: Issue) -> Kind {
    Kind::Schedule(Case {
        machine,
        key,
        shape,
        way,
        issue,
    })
}

const fn usual(name: &'static str, summary: &'static str, kind: Kind) -> Workload {
    Workload {
        name,
        summary,
        by_name: false,
        kind,
    }
}

const fn named(name: &'static str, summary: &'static str, kind: Kind) -> Workload {
    Workload {
        by_name: true,
        ..usual(name, summary, kind)
    }
}

const LOGGP: Source = Source::Shipped("loggp");
const CROSSBAR: Source = Source::Shipped("crossbar");
const TORUS: Source = Source::Shipped("torus-2d");
const FIFO_256: Source = Source::Made("fifo-torus-16x16", || fifo_torus(16));
const FIFO_1024: Source = Source::Made("fifo-torus-32x32", || fifo_torus(32));

const RING: &str = "allreduce/ring";
const DOUBLING: &str = "allreduce/recursive_doubling_latency";
const POSTED: &str = "alltoall/linear";
const STEPWISE: &str = "alltoall/pairwise";

const OWN: Way = Way::Lowered;
const ONE: Issue = Issue::Blocking;
const ALL: Issue = Issue::Unlimited;

const fn posted(target: Target, permille: u32, part: u64) -> Load {
    Load {
        target,
        permille,
        part,
        acknowledged: false,
    }
}

const fn rate(target: Target, permille: u32) -> Kind {
    Kind::Traffic(posted(target, permille, 1))
}

const fn acknowledged(target: Target, permille: u32) -> Kind {
    Kind::Traffic(Load {
        acknowledged: true,
        ..posted(target, permille, 1)
    })
}

/// All workloads: w1 to w5 as `docs/performance.md` has them and, at the end, a small one for each fabric.
#[rustfmt::skip] // a table
pub const WORKLOADS: &[Workload] = &[
    usual("w1-64", "ring allreduce of 1 KiB chunks over 64 ranks, LogGP", on(LOGGP, RING, blocks(64), OWN, ONE)),
    usual("w1-256", "the same over 256", on(LOGGP, RING, blocks(256), OWN, ONE)),
    usual("w1-1024", "the same over 1,024", on(LOGGP, RING, blocks(1024), OWN, ONE)),
    usual("w1c-crossbar-64", "w1-64 on a crossbar", on(CROSSBAR, RING, blocks(64), Way::Plain, ONE)),
    usual("w1c-crossbar-256", "w1-256 on a crossbar", on(CROSSBAR, RING, blocks(256), Way::Plain, ONE)),
    usual("w1c-crossbar-1024", "w1-1024 on a crossbar", on(CROSSBAR, RING, blocks(1024), Way::Plain, ONE)),
    usual("w1c-lowered-1024", "the same with copies and local combinations", on(CROSSBAR, RING, blocks(1024), OWN, ONE)),
    usual("w1c-noc-1024", "w1-1024 on a 32x32 torus, packets", on(TORUS, RING, grid(32, 32), Way::Plain, ONE)),
    usual("w1c-fifo-1024", "w1-1024 on a 32x32 torus, flows queueing at links", on(FIFO_1024, RING, blocks(1024), OWN, ONE)),
    usual("w2-64", "recursive doubling allreduce of 1 KiB over 64 ranks, LogGP", on(LOGGP, DOUBLING, size(64, 1024), OWN, ONE)),
    usual("w2-256", "the same over 256", on(LOGGP, DOUBLING, size(256, 1024), OWN, ONE)),
    usual("w2-1024", "the same over 1,024", on(LOGGP, DOUBLING, size(1024, 1024), OWN, ONE)),
    usual("w2-4096", "the same over 4,096", on(LOGGP, DOUBLING, size(4096, 1024), OWN, ONE)),
    usual("w2-16384", "the same over 16,384", on(LOGGP, DOUBLING, size(16384, 1024), OWN, ONE)),
    usual("w3-uniform-0.1", "8x8 torus, 4-flit packets to anyone, 0.1 flits per node and cycle; counts flit hops", rate(Target::Uniform, 100)),
    usual("w3-uniform-0.3", "the same at 0.3", rate(Target::Uniform, 300)),
    usual("w3-neighbour-0.3", "the same to the next node", rate(Target::Neighbour, 300)),
    usual("w4-posted-256", "all-to-all of 1 KiB blocks over 256 ranks, LogGP, all posted at once", on(LOGGP, POSTED, blocks(256), OWN, ALL)),
    usual("w4-stepwise-256", "the same step by step", on(LOGGP, STEPWISE, blocks(256), OWN, ONE)),
    usual("w4-posted-1024", "w4-posted-256 over 1,024", on(LOGGP, POSTED, blocks(1024), OWN, ALL)),
    usual("w4-stepwise-1024", "w4-stepwise-256 over 1,024", on(LOGGP, STEPWISE, blocks(1024), OWN, ONE)),
    usual("w4c-posted-256", "w4-posted-256 on a crossbar", on(CROSSBAR, POSTED, blocks(256), Way::Plain, ALL)),
    usual("w4c-stepwise-256", "w4-stepwise-256 on a crossbar", on(CROSSBAR, STEPWISE, blocks(256), Way::Plain, ONE)),
    usual("w4c-posted-1024", "w4-posted-1024 on a crossbar", on(CROSSBAR, POSTED, blocks(1024), Way::Plain, ALL)),
    usual("w4c-stepwise-1024", "w4-stepwise-1024 on a crossbar", on(CROSSBAR, STEPWISE, blocks(1024), Way::Plain, ONE)),
    usual("w4f-posted-256", "w4-posted-256 on a 16x16 torus, flows queueing at links", on(FIFO_256, POSTED, blocks(256), OWN, ALL)),
    usual("w4f-stepwise-256", "w4-stepwise-256 on the same", on(FIFO_256, STEPWISE, blocks(256), OWN, ONE)),
    usual("w4f-posted-1024", "w4-posted-1024 on a 32x32 torus, flows queueing at links", on(FIFO_1024, POSTED, blocks(1024), OWN, ALL)),
    usual("w4f-stepwise-1024", "w4-stepwise-1024 on the same", on(FIFO_1024, STEPWISE, blocks(1024), OWN, ONE)),
    named("w4c-noc-posted-256", "w4-posted-256 on a 16x16 torus, packets", on(TORUS, POSTED, grid(16, 16), Way::Plain, ALL)),
    named("w4c-noc-stepwise-256", "w4-stepwise-256 on a 16x16 torus, packets", on(TORUS, STEPWISE, grid(16, 16), Way::Plain, ONE)),
    named("w5-alltoall-608", "all-to-all of words over 608 tiles of an IPU", on(Source::Shipped("ipu-c2-chip"), POSTED, size(608, 608 * 4), OWN, ALL)),
    named("w5-broadcast-19456", "broadcast of a word to 19,456 tiles of 16 IPUs", on(Source::Shipped("ipu-c2-server"), "broadcast/multicast", size(19456, 4), OWN, ALL)),
    named("w5-gather-19456", "gather of words from 19,456 tiles", on(Source::Shipped("ipu-c2-server"), "gather/linear", size(19456, 19456 * 4), OWN, ALL)),
    named("w5-scatter-19456", "scatter of words to 19,456 tiles", on(Source::Shipped("ipu-c2-server"), "scatter/linear", size(19456, 19456 * 4), OWN, ALL)),
    named("w3-acknowledged-uniform-0.1", "w3-uniform-0.1, every packet acknowledged", acknowledged(Target::Uniform, 100)),
    named("w3-acknowledged-uniform-0.3", "the same at 0.3", acknowledged(Target::Uniform, 300)),
    named("w3-acknowledged-neighbour-0.3", "the same to the next node", acknowledged(Target::Neighbour, 300)),
    named("w3-short", "w3-uniform-0.3 for 1,000 cycles", Kind::Traffic(posted(Target::Uniform, 300, 40))),
    named("noc-64", "w1-64 on an 8x8 torus, packets, as the machine file says", on(TORUS, RING, grid(8, 8), OWN, ONE)),
    named("exchange-64", "all-to-all of 1 KiB blocks over 64 tiles of an IPU", on(Source::Shipped("ipu-c2-chip"), POSTED, blocks(64), OWN, ALL)),
    named("flow-8", "all-to-all of 1 MiB over 8 GPUs, max-min shares", on(Source::Shipped("dgx1-p100"), POSTED, size(8, 8 << 20), OWN, ALL)),
    named("slotted-ring-8", "all-to-all of 16 KiB over 8 SPEs", on(Source::Shipped("cell-be"), POSTED, size(8, 8 * 16384), OWN, ALL)),
    named("host-link-3", "16 messages of 64 KiB from each part of a host with a card to the next", on(Source::Shipped("vollo-ia420f"), "pattern/neighbour", Size { count: 16, ..size(3, 65536) }, OWN, ALL)),
];

/// A torus of `side` x `side` places whose links serve one flow after another.
fn fifo_torus(side: u32) -> String {
    let place = |x: u32, y: u32| y % side * side + x % side;
    let mut edges = String::new();
    for (x, y) in (0..side).flat_map(|y| (0..side).map(move |x| (x, y))) {
        for to in [place(x + 1, y), place(x, y + 1)] {
            edges += &format!("  \"node {} - node {to}\",\n", place(x, y));
        }
    }
    let places = side * side;
    let number = |value: f64, unit| {
        format!("{{ value = {value}, unit = \"{unit}\", status = \"assumed\", source = \"by definition\" }}")
    };
    format!(
        r#"
[machine]
name = "fifo-torus"
summary = "torus of links that serve one flow after another"
description = "For measuring."
format = 1
sources = ["by definition"]
[[level]]
name = "node"
count = {places}
source = "by definition"
[endpoints]
count = {places}
name = "node {{i}}"
source = "by definition"
[fabric]
kind = "flow"
sharing = "fifo"
[fabric.links.wire]
source = "by definition"
bandwidth = {}
latency = {}
edges = [
{edges}]
[fabric.transport.wire]
links = ["wire"]
relays = "forward"
start = {}
[path.put]
summary = "a message"
fused_combine = true
combine_rate = {}
"#,
        number(12.5, "GB/s"),
        number(1.0, "us"),
        number(200.0, "ns"),
        number(10.0, "GB/s")
    )
}

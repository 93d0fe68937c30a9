//! What endpoints compute: `[probe.compute]` of a machine file.
//!
//! ```toml
//! [probe.compute.product]
//! kind = "split_planner"          # or "tile_waves"; then the keys of that model
//! [probe.compute.random]
//! rate = { value = 0.776, unit = "GHz", ... }     # samples per second of one endpoint
//! start = { value = 162, unit = "cycle", ... }    # of a call
//! ```
//!
//! A matrix product and a convolution are the same work ([`Product`]), so both probes read one table, and what
//! was fitted to the one is tested by the other. No answer is faster than the peak of the machine.

pub mod product;
pub mod split_planner;
pub mod tile_waves;

pub use product::{Precision, Product};
pub use split_planner::{Plan, SplitPlanner};
pub use tile_waves::TileWaves;

use super::{section, waived, Answer};
use crate::error::SimError;
use linkwright_core::machine::{EndpointKind, Section};
use linkwright_core::probes::{Assignment, Description, MATMUL};
use linkwright_core::{Machine, TimePs};

/// The models of products, by the word in `kind`.
const KINDS: &[&str] = &["split_planner", "tile_waves"];

/// A model of products with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Many small tiles among which a compiler divides the work.
    SplitPlanner(SplitPlanner),
    /// Multiprocessors that take tiles of the output, wave after wave.
    TileWaves(TileWaves),
}

/// How fast one endpoint makes random numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generator {
    /// Samples per second.
    pub rate: f64,
    /// Time of a call without samples.
    pub start: TimePs,
}

/// The whole table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compute {
    product: Option<Model>,
    random: Option<Generator>,
}

impl Compute {
    /// Reads the table; a machine without it waives the probe.
    pub fn read(machine: &Machine, about: &Description) -> Result<Compute, SimError> {
        let mut table = section(machine, about)?;
        let product = table.optional_section("product")?;
        let random = table.optional_section("random")?;
        table.finish()?;
        Ok(Compute {
            product: product.map(|s| Model::read(machine, s)).transpose()?,
            random: random.map(read_generator).transpose()?,
        })
    }

    /// The model of products of a machine, or why there is none.
    pub fn model(machine: &Machine) -> Result<Model, SimError> {
        let found = Compute::read(machine, &MATMUL)?.product;
        found.ok_or_else(|| absent(&MATMUL, "product"))
    }

    /// The planner of a machine, where its model is one.
    pub fn planner(machine: &Machine) -> Option<SplitPlanner> {
        match Compute::model(machine) {
            Ok(Model::SplitPlanner(planner)) => Some(planner),
            _ => None,
        }
    }

    /// The generator, or why there is no answer.
    pub fn random(&self, about: &Description) -> Result<Generator, SimError> {
        self.random.ok_or_else(|| absent(about, "random"))
    }
}

impl Model {
    fn read(machine: &Machine, mut s: Section<'_>) -> Result<Model, SimError> {
        let model = match s.choice("kind", KINDS)? {
            0 => {
                let clock = machine.clock().ok_or_else(|| {
                    s.inconsistent("kind", "counts cycles; add `clock` to [machine]")
                })?;
                Model::SplitPlanner(SplitPlanner::read(&mut s, clock.hertz().to_f64())?)
            }
            _ => Model::TileWaves(TileWaves::read(&mut s)?),
        };
        s.finish()?;
        Ok(model)
    }

    /// Time in seconds.
    pub fn time_s(&self, product: &Product) -> f64 {
        match self {
            Model::SplitPlanner(planner) => planner.plan(product).time_s,
            Model::TileWaves(waves) => waves.time_s(product),
        }
    }

    /// Flops per second that nothing exceeds.
    pub fn peak(&self, precision: Precision) -> f64 {
        match self {
            Model::SplitPlanner(planner) => planner.peak(precision),
            Model::TileWaves(waves) => waves.peak(precision),
        }
    }

    /// The same where `threads` endpoints work on one product.
    fn on(self, threads: u64, about: &Description) -> Result<Model, SimError> {
        match self {
            Model::SplitPlanner(planner) if (1..=planner.tiles()).contains(&threads) => {
                Ok(Model::SplitPlanner(planner.on(threads)))
            }
            Model::SplitPlanner(planner) => {
                let most = planner.tiles();
                let reason = format!(
                    "one product is divided among the {most} tiles of one chip at most, not among {threads}; \
                     ask for 1 to {most} threads"
                );
                Err(waived(about, reason))
            }
            Model::TileWaves(_) if threads == 1 => Ok(self),
            Model::TileWaves(_) => {
                let reason = format!(
                    "one product runs on one endpoint, not on {threads}; ask for one thread"
                );
                Err(waived(about, reason))
            }
        }
    }
}

fn read_generator(mut s: Section<'_>) -> Result<Generator, SimError> {
    let generator = Generator {
        rate: s.clock("rate")?.hertz().to_f64(),
        start: s.time("start")?,
    };
    s.finish()?;
    Ok(generator)
}

fn absent(about: &Description, table: &str) -> SimError {
    let reason = format!("the machine file states nothing about it; add [probe.compute.{table}]");
    waived(about, reason)
}

/// The answer about a product; `make` gives it in the precision asked for.
pub(super) fn answer(
    machine: &Machine,
    asked: &Assignment,
    make: impl Fn(Precision) -> Product,
) -> Result<Answer, SimError> {
    let about = asked.probe();
    let model = Compute::read(machine, about)?.product;
    let model = model.ok_or_else(|| absent(about, "product"))?;
    let precision = match asked.word("dtype") {
        "f16" => Precision::Half,
        "f32" => Precision::Single,
        other => {
            let reason = format!("products are described for f16 and f32, not for {other}");
            return Err(waived(about, reason));
        }
    };
    let threads = asked.number("threads");
    let product = make(precision);
    if product.flops() == 0.0 {
        return Err(waived(
            about,
            "a size of 0 is no product; ask for at least 1",
        ));
    }
    let model = model.on(threads, about)?;
    fits(machine, about, &product, threads)?;
    Ok(Answer {
        time: TimePs::from_secs_f64(model.time_s(&product)),
        counted_bytes: product.bytes() as u64,
        moved_bytes: product.bytes() as u64,
        work: product.flops() as u64,
        columns: Vec::new(),
    })
}

/// Operands and result must fit into the memory of the endpoints, where the file states it.
fn fits(
    machine: &Machine,
    about: &Description,
    product: &Product,
    threads: u64,
) -> Result<(), SimError> {
    let ranks = machine.endpoints().iter();
    let capacity = ranks
        .filter(|endpoint| endpoint.kind == EndpointKind::Rank)
        .find_map(|endpoint| endpoint.capacity);
    let Some(capacity) = capacity else {
        return Ok(());
    };
    let there = capacity.0 as f64 * threads as f64;
    if product.bytes() <= there {
        return Ok(());
    }
    let reason = format!(
        "operands and result have {:.1} MiB, the memory of {threads} endpoints {:.1} MiB; ask for less, or more endpoints",
        product.bytes() / 1048576.0,
        there / 1048576.0
    );
    Err(waived(about, reason))
}

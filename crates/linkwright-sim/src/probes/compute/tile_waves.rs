//! Products on multiprocessors that take square tiles of the output, wave after wave.
//!
//! A library cuts the output into tiles of one shape and gives each to a multiprocessor, which walks
//! through the inner dimension K = taps x input channels step by step:
//!
//! ```text
//!   tiles = ceil(pixels / tile rows) x ceil(out / tile columns)
//!
//!   |<- full wave: two tiles on each multiprocessor ->|<- last wave: one or two ->|
//!        K x step x pair_factor                            K x step (x pair_factor)
//!
//!   T = max(least, launch + waves x K x step + bytes / memory rate)
//! ```
//!
//! At small batches a few tiles walk alone through the whole K, so time does not depend on the batch; at
//! large ones it grows in steps of a wave. Two tiles on one multiprocessor hide each other's waiting, so
//! a pair takes less than twice as long as one. Where the output has no more channels than the narrow
//! tile, tiles have twice the rows and half the columns. The operands are read, rearranged and written
//! before the product starts, which is why bytes add to the time and why their rate is far below that of
//! the memory. No call is faster than `least`, the time in which a host can issue it.
//!
//! Groups run one after the other: launch and waves once per group. In single precision ordinary arithmetic units
//! work at their peak, and in half precision too where the channels of a group are no multiple of 8, which tensor
//! cores need. For tensor cores the channels of a group are gathered, at a rate of its own.
//!
//! *Failure modes.* A library knows many shapes of tiles and switches between them: jumps between
//! neighbouring batches are missed, as are strided layers at large batches, and groups that a small batch keeps from
//! the tensor cores.
//!
//! Sources: Jia, Tillman, Maggioni, Scarpazza, "Dissecting the Graphcore IPU architecture via
//! microbenchmarking" (2019), tables 5.1 and 5.4; NVIDIA, cuDNN 7.5 developer guide (channels of tensor operations).

use super::product::{Precision, Product};
use crate::error::SimError;
use linkwright_core::machine::Section;

/// Parameters in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TileWaves {
    multiprocessors: u64,
    tile_rows: u64,
    tile_columns: u64,
    half: f64,
    single: f64,
    step_s: f64,
    pair_factor: f64,
    launch_s: f64,
    least_s: f64,
    memory_rate: f64,
    grouped_rate: f64,
    /// Tensor cores take multiples of so many channels.
    tensor_channels: u64,
}

impl TileWaves {
    /// Reads the keys of this model.
    pub fn read(s: &mut Section<'_>) -> Result<TileWaves, SimError> {
        let model = TileWaves {
            multiprocessors: s.count("multiprocessors")?,
            tile_rows: s.count("tile_rows")?,
            tile_columns: s.count("tile_columns")?,
            half: s.work("half")?,
            single: s.work("single")?,
            step_s: s.time("step")?.0 as f64 / 1e12,
            pair_factor: s.ratio("pair_factor")?,
            launch_s: s.time("launch")?.0 as f64 / 1e12,
            least_s: s.time("least")?.0 as f64 / 1e12,
            memory_rate: s.rate("memory_rate")?.0,
            grouped_rate: s.rate("grouped_rate")?.0,
            tensor_channels: s.count("tensor_channels")?,
        };
        for (key, count) in [
            ("multiprocessors", model.multiprocessors),
            ("tile_rows", model.tile_rows),
            ("tensor_channels", model.tensor_channels),
            ("tile_columns", model.tile_columns / 2),
        ] {
            if count == 0 {
                return Err(s.inconsistent(key, "is too small to divide").into());
            }
        }
        if !(1.0..=2.0).contains(&model.pair_factor) {
            let problem = "must be from 1 (two tiles as fast as one) to 2 (no gain)";
            return Err(s.inconsistent("pair_factor", problem).into());
        }
        let pairs = 2.0 * model.multiprocessors as f64 * model.tile_flops();
        if pairs / (model.step_s * model.pair_factor) > model.half {
            let problem = "makes full waves faster than the peak `half`; a longer step would not";
            return Err(s.inconsistent("step", problem).into());
        }
        Ok(model)
    }

    /// Whether tensor cores can take the channels of a group.
    fn on_tensor_cores(&self, product: &Product) -> bool {
        let fits = |channels: u64| channels % self.tensor_channels == 0;
        fits(product.inner) && fits(product.outer)
    }

    /// Flops per second of all units.
    pub fn peak(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Half => self.half,
            Precision::Single => self.single,
        }
    }

    /// Time in seconds.
    pub fn time_s(&self, product: &Product) -> f64 {
        let groups = product.groups as f64;
        let rate = if product.groups > 1 && self.on_tensor_cores(product) {
            self.grouped_rate
        } else {
            self.memory_rate
        };
        let inner = (product.taps() * product.inner) as f64;
        let each = self.launch_s + self.waves_s(product) * inner;
        self.least_s.max(groups * each + product.bytes() / rate)
    }

    /// Flops of one step of one tile.
    fn tile_flops(&self) -> f64 {
        2.0 * (self.tile_rows * self.tile_columns) as f64
    }

    /// Time of all waves, for one step of the inner dimension.
    fn waves_s(&self, product: &Product) -> f64 {
        let narrow = product.outer <= self.tile_columns / 2;
        let (rows, columns) = if narrow {
            (2 * self.tile_rows, self.tile_columns / 2)
        } else {
            (self.tile_rows, self.tile_columns)
        };
        let tiles = product.pixels.div_ceil(rows) * product.outer.div_ceil(columns);
        if product.precision == Precision::Single || !self.on_tensor_cores(product) {
            let alone = self.tile_flops() * self.multiprocessors as f64 / self.single;
            return tiles.div_ceil(self.multiprocessors) as f64 * alone;
        }
        let (full, rest) = (
            tiles / (2 * self.multiprocessors),
            tiles % (2 * self.multiprocessors),
        );
        let last = match rest {
            0 => 0.0,
            alone if alone <= self.multiprocessors => 1.0,
            _ => self.pair_factor,
        };
        (full as f64 * self.pair_factor + last) * self.step_s
    }
}

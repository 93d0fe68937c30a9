//! Products on many small tiles, each with a memory of its own, that a compiler divides among them.
//!
//! The compiler splits a product over tiles in up to four directions: pixels, output channels, input
//! channels, groups. It takes the split of least time:
//!
//! ```text
//!   p x q x r x g <= tiles                 P, Q, R = shares of one tile: pixels, blocks of out, blocks of in
//!
//!   T = start
//!     + P taps Q R x cycles of a block / efficiency            multiply
//!     + taps Q R x block overhead                              load the weights of each block, set up
//!     + (window of P pixels x in + taps x in x out) / operand rate      fetch both operands
//!     + P x out x 4 B x (r - 1)/r / partial rate               add the partial sums of r tiles
//!     + pieces x piece                                         lay out anew, where in < block
//! ```
//!
//! Where a group has fewer input channels than the multiplier takes at once, its input is laid out anew and padded,
//! and with several groups its output too, which lies between those of other groups. A piece is a vector of
//! 16 B, or one channel where the channels of a group are no whole vectors. The planner may also spread the window
//! over the input channels, so that one tap has taps x in of them; then each of these is laid out for each pixel.
//!
//! A block is what the multiplier takes at once (16 input by 8 output channels, say); channels are padded
//! to whole blocks. The window is that of a square of P pixels, so small shares fetch relatively more
//! (the halo). More tiles for the pixels fetch less input but more copies of the weights, more for the
//! input channels fewer weights but partial sums: the rate at small sizes and the size at which it
//! saturates follow from this trade, not from numbers.
//!
//! *Failure modes.* Nothing limits a share to the memory of its tile, so the fall at large batches is
//! missed. Groups never share a block, which a compiler may do.
//!
//! Source: Jia, Tillman, Maggioni, Scarpazza, "Dissecting the Graphcore IPU architecture via
//! microbenchmarking" (2019), chapter 5; the splits are those of the planner in Graphcore's Poplibs.

use super::product::{Precision, Product};
use crate::error::SimError;
use linkwright_core::machine::Section;

/// Parameters in cycles of the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplitPlanner {
    tiles: u64,
    hertz: f64,
    half_flops_per_cycle: f64,
    single_flops_per_cycle: f64,
    block_inner: u64,
    block_outer: u64,
    efficiency: f64,
    start_s: f64,
    block_overhead: f64,
    operand_bytes_per_cycle: f64,
    partial_bytes_per_cycle: f64,
    piece_cycles: f64,
}

/// The split that the planner chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Time in seconds.
    pub time_s: f64,
    /// Parts into which the pixels are split.
    pub pixels: u64,
    /// Parts into which the blocks of output channels are split.
    pub outer: u64,
    /// Parts into which the blocks of input channels are split.
    pub inner: u64,
    /// Parts into which the groups are split.
    pub groups: u64,
}

/// Bytes of a partial sum.
const PARTIAL_BYTES: f64 = 4.0;

impl SplitPlanner {
    /// The same with this many tiles.
    pub fn on(self, tiles: u64) -> SplitPlanner {
        SplitPlanner { tiles, ..self }
    }

    /// Tiles of one chip, among which one product is divided at most.
    pub fn tiles(&self) -> u64 {
        self.tiles
    }

    /// Reads the keys of this model; `hertz` is the clock of the machine.
    pub fn read(s: &mut Section<'_>, hertz: f64) -> Result<SplitPlanner, SimError> {
        let planner = SplitPlanner {
            tiles: s.count("tiles")?,
            hertz,
            half_flops_per_cycle: s.work("half")? / hertz,
            single_flops_per_cycle: s.work("single")? / hertz,
            block_inner: s.count("block_inner")?,
            block_outer: s.count("block_outer")?,
            efficiency: s.share("efficiency")?,
            start_s: s.time("start")?.0 as f64 / 1e12,
            block_overhead: s.time("block_overhead")?.0 as f64 / 1e12 * hertz,
            operand_bytes_per_cycle: s.rate("operand_rate")?.0 / hertz,
            partial_bytes_per_cycle: s.rate("partial_rate")?.0 / hertz,
            piece_cycles: s.time("piece")?.0 as f64 / 1e12 * hertz,
        };
        for (key, count) in [
            ("tiles", planner.tiles),
            ("block_inner", planner.block_inner),
            ("block_outer", planner.block_outer),
        ] {
            if count == 0 {
                return Err(s.inconsistent(key, "is 0; give at least 1").into());
            }
        }
        Ok(planner)
    }

    /// Flops per second of all multipliers.
    pub fn peak(&self, precision: Precision) -> f64 {
        self.tiles as f64 * self.hertz * self.flops_per_cycle(precision)
    }

    fn flops_per_cycle(&self, precision: Precision) -> f64 {
        match precision {
            Precision::Half => self.half_flops_per_cycle,
            Precision::Single => self.single_flops_per_cycle,
        }
    }

    /// The best split; of equal ones the first, with the fewest parts of groups, output, input channels.
    pub fn plan(&self, product: &Product) -> Plan {
        let narrow = product.inner < self.block_inner;
        let plan = self.split(product, narrow);
        if !narrow || product.filter == 1 {
            return plan;
        }
        let spread = self.split(&product.spread(), true);
        if spread.time_s < plan.time_s {
            spread
        } else {
            plan
        }
    }

    /// The best split of a product whose operands are laid out anew or lie where they are wanted.
    fn split(&self, product: &Product, anew: bool) -> Plan {
        let outer = shares(product.outer.div_ceil(self.block_outer));
        let inner = shares(product.inner.div_ceil(self.block_inner));
        let mut best: Option<Plan> = None;
        for &(groups, groups_share) in &shares(product.groups) {
            for &(q, outer_share) in &outer {
                for &(r, inner_share) in &inner {
                    let used = groups * q * r;
                    if used > self.tiles {
                        break;
                    }
                    let pixels = (self.tiles / used).min(product.pixels);
                    let share = Share {
                        pixels: product.pixels.div_ceil(pixels),
                        outer: outer_share,
                        inner: inner_share,
                        groups: groups_share,
                        adders: r,
                        anew,
                    };
                    let time_s = self.start_s + self.cycles(product, &share) / self.hertz;
                    if best.is_none_or(|plan| time_s < plan.time_s) {
                        best = Some(Plan {
                            time_s,
                            pixels,
                            outer: q,
                            inner: r,
                            groups,
                        });
                    }
                }
            }
        }
        best.expect("one tile can hold everything")
    }

    fn cycles(&self, product: &Product, share: &Share) -> f64 {
        let block = 2.0 * (self.block_inner * self.block_outer) as f64
            / self.flops_per_cycle(product.precision);
        let blocks = (product.taps() * share.outer * share.inner) as f64;
        let pixels = share.pixels as f64;
        let inner = (share.inner * self.block_inner).min(product.inner) as f64;
        let outer = (share.outer * self.block_outer).min(product.outer) as f64;
        let weights = product.taps() as f64 * inner * outer;
        let seen = window(product, pixels);
        let operands = (seen * inner + weights) * product.precision.bytes();
        let adders = share.adders as f64;
        let partials = pixels * outer * PARTIAL_BYTES * (adders - 1.0) / adders;
        share.groups as f64
            * (pixels * blocks * block / self.efficiency
                + blocks * self.block_overhead
                + operands / self.operand_bytes_per_cycle
                + partials / self.partial_bytes_per_cycle
                + if share.anew {
                    self.pieces(product, seen, pixels) * self.piece_cycles
                } else {
                    0.0
                })
    }

    /// Pieces of one group that are laid out anew: of the input `seen`, and of the output. What a tile moves in
    /// a cycle is one piece where channels fill it, and each channel is one where they do not.
    fn pieces(&self, product: &Product, seen: f64, pixels: f64) -> f64 {
        let of = |channels: u64| {
            let bytes = channels as f64 * product.precision.bytes();
            let vectors = bytes / self.operand_bytes_per_cycle.round().max(1.0);
            match vectors.fract() == 0.0 {
                true => vectors,
                false => channels as f64,
            }
        };
        let output = match product.groups > 1 {
            true => pixels * of(product.outer),
            false => 0.0,
        };
        seen * of(product.inner) + output
    }
}

/// What one tile has of everything.
struct Share {
    pixels: u64,
    outer: u64,
    inner: u64,
    groups: u64,
    adders: u64,
    anew: bool,
}

/// Input pixels that a tile needs for `pixels` output pixels: those of squares as large as they can be.
fn window(product: &Product, pixels: f64) -> f64 {
    let stride = product.stride as f64;
    let own = pixels * stride * stride;
    if product.filter == 1 {
        return own;
    }
    let side = pixels.sqrt().min(product.side as f64);
    let squares = (pixels / (product.side * product.side) as f64).max(1.0);
    let reach = side * stride + product.filter as f64 - stride;
    own + squares * (reach * reach - side * side * stride * stride).max(0.0)
}

/// (parts, largest share) of `whole`, without splits that leave the largest share as it is.
fn shares(whole: u64) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for parts in 1..=whole {
        let share = whole.div_ceil(parts);
        if found.last().is_none_or(|&(_, last)| share < last) {
            found.push((parts, share));
        }
    }
    found
}

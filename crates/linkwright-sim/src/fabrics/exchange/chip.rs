//! One chip: the places of tiles, and the cost of a message that stays on the chip.
//!
//! ```text
//!   columns   0  1  2 ...  7          column(t) = t div column_tiles
//!            15 14 13 ...  8          x(column) folds the second half back under the first
//!
//!   island(t) = min(r div 2, (column_tiles - 1 - r) div 2),  r = t mod column_tiles
//! ```
//!
//! A column of tiles runs away from the exchange and back, two tiles per island each way, so island 0 is
//! nearest. A message waits for the island of its *destination* and for each column that it crosses
//! towards smaller x; the other way is free. A multicast to many tiles pays for the columns that it
//! crosses in either direction, and starts later.

use linkwright_core::{BytesPerSec, TimePs};

/// The places of tiles, and the cost of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floorplan {
    /// Columns of tiles, folded in two rows.
    pub columns: u32,
    /// Tiles of a column, even.
    pub column_tiles: u32,
    /// Per island between the destination and the exchange.
    pub island_step: TimePs,
    /// Per column crossed towards smaller x.
    pub column_step: TimePs,
    /// Whether places hide behind a queue at one end.
    pub hides: bool,
}

impl Floorplan {
    /// Place of a tile's column in its row of columns.
    pub fn x(&self, tile: u32) -> u32 {
        let column = tile / self.column_tiles;
        column.min(self.columns - 1 - column)
    }

    /// Islands between the tile and the exchange.
    pub fn island(&self, tile: u32) -> u32 {
        let r = tile % self.column_tiles;
        (r / 2).min((self.column_tiles - 1 - r) / 2)
    }

    /// Latency that the places of both ends add.
    pub fn latency(&self, from: u32, to: u32) -> TimePs {
        let columns = self.x(from).saturating_sub(self.x(to));
        self.island_step * u64::from(self.island(to)) + self.column_step * u64::from(columns)
    }
}

/// How a multicast on a chip differs from a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multicast {
    /// From this many targets on, pairs of tiles receive over both their buses, at twice the rate.
    pub paired_from: u64,
    /// To more targets than this it starts later and pays for the columns that it crosses.
    pub wide_above: u64,
    /// This much later.
    pub wide_start: TimePs,
}

/// The parameters of one chip.
#[derive(Clone, Debug, PartialEq)]
pub struct Chip {
    /// Tiles of a chip.
    pub tiles: u32,
    /// From the last arrival to the common start of a phase.
    pub sync: TimePs,
    /// Between two tiles that are nearest to the exchange.
    pub transit: TimePs,
    /// From the last arrival to the first word at a tile that collects from otherwise idle tiles.
    pub collect_lead: TimePs,
    /// Of a port, each way.
    pub rate: BytesPerSec,
    /// Ports move whole words.
    pub word: u64,
    /// Places of tiles; `None`: all at one place.
    pub floorplan: Option<Floorplan>,
    /// `None`: a multicast is like a message.
    pub multicast: Option<Multicast>,
}

impl Chip {
    /// From the last arrival to the delivery of a message without data between the nearest tiles.
    pub fn start(&self) -> TimePs {
        self.sync + self.transit
    }

    /// Load of a port that moves `bytes`, counted twice so that a paired receive is half of it.
    pub fn load(&self, bytes: u64) -> u64 {
        2 * bytes.div_ceil(self.word) * self.word
    }

    /// Load of a multicast to `targets` tiles of its chip.
    pub fn multicast_load(&self, bytes: u64, targets: u64) -> u64 {
        match self.multicast {
            Some(rule) if targets >= rule.paired_from => self.load(bytes) / 2,
            _ => self.load(bytes),
        }
    }

    /// Time of a port for a load.
    pub fn time(&self, load: u64) -> TimePs {
        TimePs((load as f64 * 0.5e12 / self.rate.0) as u64)
    }

    /// Whether places hide behind a queue at one end.
    pub fn hides(&self) -> bool {
        self.floorplan.is_none_or(|plan| plan.hides)
    }

    /// Latency that the places of both tiles add.
    pub fn position(&self, from: u32, to: u32) -> TimePs {
        let tiles = (from % self.tiles, to % self.tiles);
        (self.floorplan).map_or(TimePs::ZERO, |plan| plan.latency(tiles.0, tiles.1))
    }

    /// Later start of a multicast whose `targets` tiles of one chip lie in columns `x` (least, most),
    /// seen from column `from`; from the edge of the chip where it comes from outside.
    pub fn spread(&self, targets: u64, from: Option<u32>, x: (u32, u32)) -> TimePs {
        let (Some(rule), Some(plan)) = (self.multicast, self.floorplan) else {
            return TimePs::ZERO;
        };
        if targets <= rule.wide_above {
            return TimePs::ZERO;
        }
        let columns = match from {
            Some(from) => from.abs_diff(x.0).max(from.abs_diff(x.1)),
            None => x.1 - x.0,
        };
        rule.wide_start + plan.column_step * u64::from(columns)
    }

    /// Place of the column of an endpoint.
    pub fn x(&self, endpoint: u32) -> u32 {
        (self.floorplan).map_or(0, |plan| plan.x(endpoint % self.tiles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Floorplan {
        Floorplan {
            columns: 16,
            column_tiles: 76,
            island_step: TimePs(1250),
            column_step: TimePs(5600),
            hides: true,
        }
    }

    #[test]
    fn tiles_are_where_the_report_puts_them() {
        let plan = plan();
        // Tiles 0, 1, 74 and 75 are the island nearest to the exchange; 646 is in column 8.
        assert_eq!([0, 1, 74, 75].map(|t| plan.island(t)), [0; 4]);
        assert_eq!(646 / 76, 8);
        // Columns 0 and 15 are leftmost, 7 and 8 rightmost.
        assert_eq!(
            [0, 15 * 76, 7 * 76, 8 * 76].map(|t| plan.x(t)),
            [0, 0, 7, 7]
        );
        // Every island has four tiles, and there are nineteen.
        for island in 0..19 {
            assert_eq!((0..76).filter(|&t| plan.island(t) == island).count(), 4);
        }
    }

    #[test]
    fn only_the_destination_and_leftward_columns_cost() {
        let plan = plan();
        // Within a column 18 islands of 2 cycles = 36 cycles = 22.5 ns.
        let far = (0..76).map(|t| plan.latency(5, t)).max().unwrap();
        assert_eq!(far, TimePs(18 * 1250));
        assert_eq!(plan.latency(38, 0), TimePs::ZERO);
        assert_eq!(plan.latency(0, 8 * 76), TimePs::ZERO);
        assert_eq!(plan.latency(8 * 76, 0), TimePs(7 * 5600));
    }
}

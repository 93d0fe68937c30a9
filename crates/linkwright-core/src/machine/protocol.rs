//! What kernels do around the messages of an allreduce: `[path.NAME.protocol]`.
//!
//! ```text
//! [path.kernels.protocol]
//! window_tiles = 2          a vector goes in windows of two tiles with a signal each,
//! windows_at_least = 32     but in at least 32 windows while there are as many tiles;
//! repeats = 5               the collective runs five times back to back,
//! evaluated = 5             and the fifth run is the one that is timed
//! ```
//!
//! A tile is the path's `combine_tile`. A receiver combines the part of a window that came and skips the rest,
//! which costs `tile_handling` per tile. `linkwright-sim/src/protocol.rs` says to which schedules all this applies.
//! A protocol does not say where arriving data lie: `fused_combine = false` demands the receive buffer.

use super::section::Section;
use crate::error::MachineError;
use crate::units::Bytes;

/// Windows and repeats of an allreduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Tiles of a window.
    pub window_tiles: u32,
    /// Fewest windows of a vector that has as many tiles.
    pub windows_at_least: u32,
    /// Runs back to back.
    pub repeats: u32,
    /// The run that is timed, counted from 1.
    pub evaluated: u32,
}

impl Protocol {
    pub(super) fn read(mut s: Section<'_>, tile: Option<Bytes>) -> Result<Self, MachineError> {
        let protocol = Protocol {
            window_tiles: s.small_count("window_tiles")?,
            windows_at_least: s.small_count("windows_at_least")?,
            repeats: s.small_count("repeats")?,
            evaluated: s.small_count("evaluated")?,
        };
        if tile.is_none() {
            let problem = "counts tiles; add `combine_tile`, the size of a tile, to the path";
            return Err(s.inconsistent("window_tiles", problem));
        }
        if protocol.window_tiles == 0 {
            return Err(s.inconsistent("window_tiles", "a window has at least one tile"));
        }
        if protocol.windows_at_least == 0 {
            let problem = "a vector has at least one window; write 1";
            return Err(s.inconsistent("windows_at_least", problem));
        }
        if protocol.repeats == 0 {
            return Err(s.inconsistent("repeats", "the collective runs at least once; write 1"));
        }
        if !(1..=protocol.repeats).contains(&protocol.evaluated) {
            let problem = format!("one of the runs 1 to {} is timed", protocol.repeats);
            return Err(s.inconsistent("evaluated", problem));
        }
        s.finish()?;
        Ok(protocol)
    }

    /// Windows of a vector of this many tiles.
    pub fn windows(&self, tiles: u32) -> u32 {
        tiles.min(self.windows_at_least.max(tiles / self.window_tiles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_two_tiles_once_there_are_enough() {
        let protocol = Protocol {
            window_tiles: 2,
            windows_at_least: 32,
            repeats: 5,
            evaluated: 5,
        };
        // One window per tile up to 32, then 32 until 64 tiles make 32 windows of two.
        let windows = [1, 31, 32, 33, 64, 65, 66, 320].map(|tiles| protocol.windows(tiles));
        assert_eq!(windows, [1, 31, 32, 32, 32, 32, 33, 160]);
    }
}

//! Lines for transfers that overlap: on a track, slices follow each other.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks of each rank, by when they are free.
pub(super) struct Transfers {
    free: Vec<BinaryHeap<Reverse<(u64, u64)>>>,
}

impl Transfers {
    pub fn new(ranks: u32) -> Self {
        Transfers {
            free: vec![BinaryHeap::new(); ranks as usize],
        }
    }

    /// A track of `rank` whose last transfer has ended when this one begins, or the track `new`; whether it is that.
    pub fn place(&mut self, rank: u32, (from, to): (u64, u64), new: u64) -> (u64, bool) {
        let free = &mut self.free[rank as usize];
        let known = match free.peek() {
            Some(&Reverse((end, track))) if end <= from => Some(track),
            _ => None,
        };
        if known.is_some() {
            free.pop();
        }
        let track = known.unwrap_or(new);
        free.push(Reverse((to, track)));
        (track, known.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_at_once_have_lines_of_their_own() {
        let mut lines = Transfers::new(1);
        let places =
            [(0, 10), (4, 6), (6, 9), (9, 12), (10, 11)].map(|time| lines.place(0, time, 7));
        assert_eq!(
            places.map(|place| place.1),
            [true, true, false, false, false]
        );
        let mut lines = Transfers::new(1);
        assert_eq!(lines.place(0, (0, 10), 7), (7, true));
        assert_eq!(lines.place(0, (4, 6), 8), (8, true));
        assert_eq!(lines.place(0, (6, 9), 9), (8, false));
        assert_eq!(lines.place(0, (10, 11), 9), (8, false));
    }
}

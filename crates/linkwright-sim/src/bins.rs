//! How busy each link was when: its busy time by bins of simulated time.
//!
//! A link has the same number of bins throughout, and their width is a power of two. When a stretch lies beyond
//! the last bin, bins are added up until it fits, so memory is links times bins whatever the time, and no pass before the
//! run has to find out how long it takes:
//!
//! ```text
//!   |aa|bb|cc|dd|          the next stretch begins here  -> |ab|cd|ee|  |   bins twice as wide
//! ```
//!
//! Links widen one by one, when they are used; the table shows all at the greatest width. Sums are exact: the bins of a
//! link add up to its busy time.

use linkwright_core::TimePs;

/// Busy time of links by bins of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    /// Bins of a link.
    count: usize,
    /// Time before the run, of which the fabric does not know.
    ahead: u64,
    rows: Vec<Row>,
    /// Picoseconds by link, then bin.
    busy_ps: Vec<u64>,
    /// Logarithm of the greatest width so far.
    widest: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Row {
    /// Logarithm of the width of its bins; none are in use before the first stretch.
    width: Option<u32>,
    /// When what waits for it has passed, see [`Bins::serve`].
    served: u64,
}

impl Bins {
    /// At least two bins for each of `links` links; the fabric begins `ahead` after time zero.
    pub fn new(links: usize, count: usize, ahead: TimePs) -> Self {
        let count = count.max(2);
        Bins {
            count,
            ahead: ahead.0,
            rows: vec![Row::default(); links],
            busy_ps: vec![0; links * count],
            widest: 0,
        }
    }

    /// Forget everything.
    pub fn clear(&mut self) {
        *self = Bins::new(self.rows.len(), self.count, TimePs(self.ahead));
    }

    /// `link` is busy from `from` to `to`; stretches of a link come in any order.
    #[inline]
    pub fn add(&mut self, link: usize, from: TimePs, to: TimePs) {
        let (from, to) = (from.0 + self.ahead, to.0 + self.ahead);
        if from >= to {
            return;
        }
        let width = match self.rows[link].width {
            Some(width) if (to - 1) >> width < self.count as u64 => width,
            _ => self.widen(link, to - 1),
        };
        let row = link * self.count;
        let (first, last) = ((from >> width) as usize, ((to - 1) >> width) as usize);
        if first == last {
            self.busy_ps[row + first] += to - from;
            return;
        }
        self.busy_ps[row + first] += ((first as u64 + 1) << width) - from;
        self.busy_ps[row + first + 1..row + last]
            .iter_mut()
            .for_each(|bin| *bin += 1 << width);
        self.busy_ps[row + last] += to - ((last as u64) << width);
    }

    /// `link` gets `work` to do at `now`, and is busy until all of its work is done.
    #[inline]
    pub fn serve(&mut self, link: usize, now: TimePs, work: u64) {
        let from = now.0.max(self.rows[link].served);
        self.rows[link].served = from + work;
        self.add(link, TimePs(from), TimePs(from + work));
    }

    /// Give `link` bins so wide that `last` lies in one; their logarithm.
    #[cold]
    fn widen(&mut self, link: usize, last: u64) -> u32 {
        let before = self.rows[link].width;
        let width = self.holding(last, self.widest);
        self.widest = width;
        self.rows[link].width = Some(width);
        if let Some(before) = before {
            fold(
                &mut self.busy_ps[link * self.count..][..self.count],
                width - before,
            );
        }
        width
    }

    /// The least logarithm of a width, from `least` on, at which `last` lies in a bin.
    fn holding(&self, last: u64, least: u32) -> u32 {
        let fits = |width: &u32| last >> width < self.count as u64;
        (least..u64::BITS).find(fits).unwrap_or(u64::BITS - 1)
    }

    /// All links at one width, and so wide that the bins reach to `end_ps`.
    pub fn table(mut self, end_ps: u64) -> BinTable {
        let widest = self.holding(end_ps.saturating_sub(1), self.widest);
        for (row, bins) in self.rows.iter().zip(self.busy_ps.chunks_mut(self.count)) {
            fold(bins, row.width.map_or(0, |width| widest - width));
        }
        BinTable {
            width_ps: 1 << widest,
            count: self.count,
            busy_ps: self.busy_ps,
        }
    }
}

/// Add up the bins of one link by groups of two to the power of `by`.
fn fold(bins: &mut [u64], by: u32) {
    let mut used = bins.len();
    for _ in 0..by {
        if used == 1 {
            break;
        }
        for at in 0..used / 2 {
            bins[at] = bins[2 * at] + bins[2 * at + 1];
        }
        if used % 2 == 1 {
            bins[used / 2] = bins[used - 1];
        }
        bins[used.div_ceil(2)..used].fill(0);
        used = used.div_ceil(2);
    }
}

/// Busy time of all links by bins of one width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BinTable {
    /// Width of a bin; the first begins at zero.
    pub width_ps: u64,
    /// Bins of a link; the last ones may lie behind the end.
    pub count: usize,
    /// By link, then bin.
    pub busy_ps: Vec<u64>,
}

impl BinTable {
    /// Shares of the first `used` bins of each link, by link, then bin.
    pub fn shares(&self, used: usize) -> Vec<f32> {
        let share = |&busy_ps: &u64| (busy_ps as f64 / self.width_ps as f64) as f32;
        let rows = self.busy_ps.chunks(self.count);
        rows.flat_map(|row| row[..used].iter().map(share)).collect()
    }

    /// Bins up to `end_ps` and all that are not idle.
    pub fn used(&self, end_ps: u64) -> usize {
        let until = |row: &[u64]| {
            row.iter()
                .rposition(|&busy| busy > 0)
                .map_or(0, |at| at + 1)
        };
        let rows = self.busy_ps.chunks(self.count).map(until);
        let end = end_ps.div_ceil(self.width_ps).min(self.count as u64) as usize;
        rows.max().unwrap_or(0).max(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn filled(count: usize, stretches: &[(usize, u64, u64)]) -> Bins {
        let mut bins = Bins::new(3, count, TimePs::ZERO);
        for &(link, from, length) in stretches {
            bins.add(link, TimePs(from), TimePs(from + length));
        }
        bins
    }

    #[test]
    fn bins_double_until_the_latest_stretch_fits() {
        // Four bins of 1 ps hold 0..4; 9 needs width 4, since 9 / 2 = 4 and 9 / 4 = 2.
        let table = filled(4, &[(0, 0, 2), (0, 3, 1), (0, 6, 4)]).table(0);
        assert_eq!(table.width_ps, 4);
        assert_eq!(table.busy_ps[..4], [3, 2, 2, 0]);
        assert_eq!(table.used(9), 3);
        assert_eq!(table.used(13), 4);
    }

    #[test]
    fn work_that_waits_comes_after_what_is_under_way() {
        let mut bins = Bins::new(1, 8, TimePs(1));
        bins.serve(0, TimePs(0), 2); // 0 to 2
        bins.serve(0, TimePs(1), 2); // 2 to 4
        bins.serve(0, TimePs(6), 1);
        assert_eq!(bins.clone().table(9).count, 8);
        assert_eq!(bins.clone().table(9).width_ps, 2);
        assert_eq!(bins.table(8).busy_ps, [0, 1, 1, 1, 1, 0, 0, 1]);
    }

    proptest! {
        /// What the bins hold is what was added, and each bin what lies in it.
        #[test]
        fn nothing_is_lost(
            stretches in prop::collection::vec((0..3usize, 0u64..1 << 20, 0u64..1 << 12), 0..40), count in 2..9usize,
        ) {
            let table = filled(count, &stretches).table(0);
            for link in 0..3 {
                for bin in 0..table.count {
                    let (begin, end) = (bin as u64 * table.width_ps, (bin as u64 + 1) * table.width_ps);
                    let inside = |&(at, from, length): &(usize, u64, u64)| match at == link {
                        true => (from + length).min(end).saturating_sub(from.max(begin)),
                        false => 0,
                    };
                    let due: u64 = stretches.iter().map(inside).sum();
                    prop_assert_eq!(table.busy_ps[link * table.count + bin], due);
                }
            }
            let all: u64 = stretches.iter().map(|stretch| stretch.2).sum();
            prop_assert_eq!(table.busy_ps.iter().sum::<u64>(), all);
        }
    }
}

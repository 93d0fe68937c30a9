//! In words, how what a chunk holds differs from what it should hold.

use std::ops::Range;

/// Contribution `chunk` of `len` ranks from `first` on, each counted `often`.
pub(super) struct Counted {
    pub chunk: u32,
    pub first: u32,
    pub len: u32,
    pub often: u64,
}

/// Contribution `chunk` of these ranks, each counted `often`.
pub(super) struct Due {
    pub chunk: u32,
    pub ranks: Range<u32>,
    pub often: u64,
}

/// The difference, with the contribution (rank, chunk) that is there too often, if that is what is wrong.
/// Intervals in `found` ascend and do not overlap.
pub(super) fn difference(found: &[Counted], due: &Due) -> (String, Option<(u32, u32)>) {
    if found.is_empty() {
        return ("ends empty; send data there".to_string(), None);
    }
    if let Some(strange) = found.iter().find_map(|one| due.strange(one)) {
        return (strange, None);
    }
    if let Some(one) = found.iter().find(|one| one.often > due.often) {
        let problem = format!(
            "ends with rank {}'s contribution {} instead of {}; combine it on one way only, or replace \
             instead of reduce",
            one.first,
            times(one.often),
            times(due.often)
        );
        return (problem, Some((one.first, one.chunk)));
    }
    (due.lacking(found), None)
}

impl Due {
    /// What is wrong with `one` if not all of it belongs there.
    fn strange(&self, one: &Counted) -> Option<String> {
        let (chunk, end) = (one.chunk, one.first + one.len);
        let rank = match chunk == self.chunk && self.ranks.contains(&one.first) {
            true if end <= self.ranks.end => return None,
            true => self.ranks.end,
            false => one.first,
        };
        let whose = match self.ranks.len() {
            1 => format!("rank {}", self.ranks.start),
            _ => "every rank".to_string(),
        };
        Some(format!(
            "ends with chunk {chunk} of rank {rank}, which does not belong there; it should hold chunk {} of \
             {whose}",
            self.chunk
        ))
    }

    /// Whose contribution is not there as often as it should be.
    fn lacking(&self, found: &[Counted]) -> String {
        let complete = || found.iter().filter(|one| one.often == self.often);
        let first = complete().fold(self.ranks.start, |next, one| match one.first == next {
            true => one.first + one.len,
            false => next,
        });
        let there: u32 = complete().map(|one| one.len).sum();
        let others = match self.ranks.len() as u32 - there {
            0 | 1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        format!(
            "ends without rank {first}'s contribution{others}; send it there before the last step, or reduce \
             instead of replace"
        )
    }
}

fn times(often: u64) -> String {
    match often {
        1 => "once".to_string(),
        2 => "twice".to_string(),
        n => format!("{n} times"),
    }
}

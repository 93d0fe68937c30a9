//! When operations were delivered: four bytes each.
//!
//! Nearly all are, shortly after their issue, so what is kept is the distance from there: 32 bits of picoseconds
//! are four milliseconds. Those that take longer stand in a table of their own, of which nothing is written, so
//! no memory taken, before the first of them.

/// In place of a distance: not yet.
const NEVER: u32 = u32::MAX;
/// In place of a distance: it stands in the table of long ones.
const LONG: u32 = NEVER - 1;

/// Deliveries by operation.
pub(super) struct Deliveries {
    after_issue: Vec<u32>,
    long: Vec<u64>,
}

impl Deliveries {
    /// For this many operations, none of them delivered.
    pub fn new(operations: usize) -> Self {
        Deliveries {
            after_issue: vec![NEVER; operations],
            long: Vec::new(),
        }
    }

    /// Operation `id`, issued at `issued`, is delivered at `at`.
    #[inline]
    pub fn note(&mut self, id: u32, issued: u64, at: u64) {
        let distance = at - issued;
        self.after_issue[id as usize] = match distance < u64::from(LONG) {
            true => distance as u32,
            false => self.note_long(id, at),
        };
    }

    #[cold]
    fn note_long(&mut self, id: u32, at: u64) -> u32 {
        if self.long.is_empty() {
            self.long = vec![0; self.after_issue.len()];
        }
        self.long[id as usize] = at;
        LONG
    }

    /// When operation `id`, issued at `issued`, was delivered; `None` as long as it is not.
    pub fn of(&self, id: u32, issued: u64) -> Option<u64> {
        match self.after_issue[id as usize] {
            NEVER => None,
            LONG => Some(self.long[id as usize]),
            distance => Some(issued + u64::from(distance)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_ways_are_as_exact_as_short_ones() {
        let border = u64::from(LONG);
        let ways = [0, 1, border - 1, border, border + 1, border + 2, 1 << 60];
        let mut deliveries = Deliveries::new(ways.len() + 1);
        for (id, way) in (0..).zip(ways) {
            deliveries.note(id, 7, 7 + way);
        }
        for (id, way) in (0..).zip(ways) {
            assert_eq!(deliveries.of(id, 7), Some(7 + way));
        }
        assert_eq!(deliveries.of(ways.len() as u32, 7), None);
        // The last target of a multicast counts.
        deliveries.note(0, 7, 7 + border);
        deliveries.note(6, 7, 9);
        assert_eq!(
            (deliveries.of(0, 7), deliveries.of(6, 7)),
            (Some(7 + border), Some(9))
        );
    }
}

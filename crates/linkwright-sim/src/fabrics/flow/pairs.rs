//! A number for each ordered pair of endpoints and network.
//!
//! Every message looks up its pair three times, so a lookup must cost little more than a read. A source keeps a short
//! list of its targets. Once the list is full, it becomes a row with one place per endpoint, in which the targets of
//! successive steps are neighbours. Few sources of a large machine need one; an all-to-all uses every row.

/// Source, target and network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub from: u32,
    pub to: u32,
    pub network: u8,
}

/// Most entries of a list.
const FEW: usize = 16;
/// A pair without a number.
const UNKNOWN: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Row {
    /// Target and number.
    Few(Vec<(u32, u32)>),
    /// Number by target.
    All(Box<[u32]>),
}

/// The numbers, all below `u32::MAX`.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    endpoints: usize,
    /// By network, then source.
    rows: Vec<Row>,
}

impl Pairs {
    pub fn new(endpoints: usize) -> Self {
        Pairs {
            endpoints,
            rows: Vec::new(),
        }
    }

    #[inline]
    fn row(&self, key: Key) -> usize {
        key.network as usize * self.endpoints + key.from as usize
    }

    #[inline]
    pub fn get(&self, key: Key) -> Option<u32> {
        match self.rows.get(self.row(key))? {
            Row::Few(few) => few.iter().find(|pair| pair.0 == key.to).map(|pair| pair.1),
            Row::All(all) => Some(all[key.to as usize]).filter(|&number| number != UNKNOWN),
        }
    }

    /// The number of a pair that has none yet.
    pub fn insert(&mut self, key: Key, number: u32) {
        let row = self.row(key);
        if row >= self.rows.len() {
            let end = (row / self.endpoints + 1) * self.endpoints;
            self.rows.resize(end, Row::Few(Vec::new()));
        }
        match &mut self.rows[row] {
            Row::All(all) => all[key.to as usize] = number,
            Row::Few(few) if few.len() < FEW => few.push((key.to, number)),
            Row::Few(few) => {
                let mut all = vec![UNKNOWN; self.endpoints].into_boxed_slice();
                for (to, number) in few.drain(..).chain([(key.to, number)]) {
                    all[to as usize] = number;
                }
                self.rows[row] = Row::All(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn each_pair_keeps_its_number(keys in proptest::collection::vec((0u32..3, 0u32..40, 0u8..3), 1..300)) {
            let (mut pairs, mut model) = (Pairs::new(40), HashMap::new());
            for (number, &(from, to, network)) in (0u32..).zip(&keys) {
                let key = Key { from, to, network };
                let known = model.entry((from, to, network)).or_insert(number);
                if *known == number {
                    prop_assert_eq!(pairs.get(key), None);
                    pairs.insert(key, number);
                }
                prop_assert_eq!(pairs.get(key), Some(*known));
            }
        }
    }
}

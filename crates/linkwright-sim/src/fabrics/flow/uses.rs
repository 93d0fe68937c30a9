//! The resources that data use on their way: links, and anything else they compete for.
//!
//! An all-to-all over a torus of 1,024 places has a million routes over sixteen links each, so a use takes four bytes
//! and one table holds all lists, in the order of first use, which is nearly the order of later messages.

/// A resource, and how often each byte uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use(u32);

const WEIGHT_BITS: u32 = 8;

impl Use {
    /// Most resources of a machine.
    pub const RESOURCES: usize = 1 << (32 - WEIGHT_BITS);

    /// Use of `resource`, `weight` times per byte.
    ///
    /// # Panics
    /// If a route uses a resource more than 255 times; no route is long enough for that.
    #[inline]
    pub fn new(resource: u32, weight: u32) -> Self {
        assert!(weight >> WEIGHT_BITS == 0, "a route in circles");
        Use(resource << WEIGHT_BITS | weight)
    }

    #[inline]
    pub fn resource(self) -> usize {
        (self.0 >> WEIGHT_BITS) as usize
    }

    #[inline]
    pub fn weight(self) -> u64 {
        u64::from(self.0 & ((1 << WEIGHT_BITS) - 1))
    }
}

/// A list in the table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: u32,
    count: u32,
}

/// All lists.
#[derive(Clone, Debug, Default)]
pub(super) struct Uses {
    all: Vec<Use>,
}

impl Uses {
    /// File what `write` appends, each resource once.
    pub fn add(&mut self, write: impl FnOnce(&mut Vec<Use>)) -> List {
        let first = self.all.len();
        write(&mut self.all);
        self.all[first..].sort_unstable();
        let mut kept = first;
        for next in first + 1..self.all.len() {
            let (last, new) = (self.all[kept], self.all[next]);
            if last.resource() == new.resource() {
                let weight = (last.weight() + new.weight()) as u32;
                self.all[kept] = Use::new(last.resource() as u32, weight);
            } else {
                kept += 1;
                self.all[kept] = new;
            }
        }
        self.all.truncate(kept + 1);
        self.list(first)
    }

    /// File these links, which are all different, one use of each.
    pub fn links(&mut self, links: &[u32]) -> List {
        let first = self.all.len();
        self.all.extend(links.iter().map(|&link| Use::new(link, 1)));
        self.list(first)
    }

    /// What lies in the table from `first` on.
    fn list(&self, first: usize) -> List {
        List {
            first: u32::try_from(first).expect("routes of four billion links"),
            count: (self.all.len() - first) as u32,
        }
    }

    #[inline]
    pub fn of(&self, list: List) -> &[Use] {
        &self.all[list.first as usize..][..list.count as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_fit_and_equal_resources_are_one_use() {
        let last = Use::RESOURCES as u32 - 1;
        let mut uses = Uses::default();
        let written = [(last, 200), (0, 1), (last, 55)].map(|(r, weight)| Use::new(r, weight));
        let list = uses.add(|all| all.extend(written));
        let found = uses.of(list).iter().map(|u| (u.resource(), u.weight()));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 1), (last as usize, 255)]);
    }

    #[test]
    #[should_panic(expected = "a route in circles")]
    fn a_weight_does_not_run_into_the_resource() {
        Use::new(0, 256);
    }
}

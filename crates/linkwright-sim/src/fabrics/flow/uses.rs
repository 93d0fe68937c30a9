//! The resources that data use on their way: links, and anything else they compete for.
//!
//! An all-to-all over a torus of 1,024 places has a million routes over sixteen links each, so a use takes four bytes
//! and one table holds all lists, in the order of first use, which is nearly the order of later messages. Data that are
//! spread over several links use a part of each: a weight then stands for a fraction, see [`Fractions`].

use std::collections::BTreeMap;

/// A resource, and how often each byte uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Use(u32);

const WEIGHT_BITS: u32 = 9;
/// Weights from here on stand for fractions.
const WHOLE: u32 = 256;
/// The denominator of fractions.
const PARTS: u64 = 1 << 16;

impl Use {
    /// Most resources of a machine.
    pub const RESOURCES: usize = 1 << (32 - WEIGHT_BITS);

    /// Use of `resource`, `weight` times per byte.
    ///
    /// # Panics
    /// If a route uses a resource more than 255 times; no route is long enough for that.
    #[inline]
    pub fn new(resource: u32, weight: u32) -> Self {
        assert!(weight < WHOLE, "a route in circles");
        Use(resource << WEIGHT_BITS | weight)
    }

    #[inline]
    pub fn resource(self) -> usize {
        (self.0 >> WEIGHT_BITS) as usize
    }

    /// How often each byte uses it; for data that are spread, a number that [`Fractions`] knows.
    #[inline]
    pub fn weight(self) -> u64 {
        u64::from(self.0 & ((1 << WEIGHT_BITS) - 1))
    }
}

/// What weights mean, in units of 1 / 2^`shift` of a byte: whole weights themselves, others the fractions that data which
/// are spread have needed so far.
#[derive(Clone, Debug)]
pub(super) struct Fractions {
    /// By weight, less `WHOLE`.
    parts: Vec<u64>,
    /// By how many bits units are smaller than bytes.
    shift: u32,
}

impl Fractions {
    /// Fractions of resources with these capacities; without `spread` nothing is ever spread.
    pub fn new(capacity: &[u64], spread: bool) -> Self {
        let most = capacity.iter().copied().max().unwrap_or(1).max(1);
        // Capacities are counted in the same units, and must fit.
        let room = (u64::MAX / 4 / most).max(1);
        let shift = if spread {
            PARTS.ilog2().min(room.ilog2())
        } else {
            0
        };
        Fractions {
            parts: Vec::new(),
            shift,
        }
    }

    /// The same, before anything was spread.
    pub fn unlearnt(&self) -> Self {
        Fractions {
            parts: Vec::new(),
            ..*self
        }
    }

    /// By how many bits units are smaller than bytes.
    #[inline]
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Units of one use.
    #[inline]
    pub fn of(&self, each: Use) -> u64 {
        match each.weight().checked_sub(u64::from(WHOLE)) {
            None => each.weight() << self.shift,
            Some(place) => self.parts[place as usize],
        }
    }

    /// Bytes of data of `bytes` that use a resource so.
    #[inline]
    pub fn bytes(&self, bytes: u64, each: Use) -> u64 {
        match each.weight().checked_sub(u64::from(WHOLE)) {
            None => bytes * each.weight(),
            Some(place) => {
                let units = u128::from(bytes) * u128::from(self.parts[place as usize]);
                (units >> self.shift) as u64
            }
        }
    }

    /// Bytes per second that one flow can have of `capacity`.
    pub fn most(&self, capacity: u64, each: Use) -> u64 {
        // A division would cost more than all the rest.
        match each.weight() {
            1 => capacity,
            weight if weight < u64::from(WHOLE) => capacity / weight,
            _ => {
                let most = (u128::from(capacity) << self.shift) / u128::from(self.of(each));
                u64::try_from(most).unwrap_or(u64::MAX)
            }
        }
    }

    /// Use of `resource` by a part of the data, rounded up: nothing may be faster than its limits. Once the table is
    /// full, the next larger part that it has, or the next whole number.
    pub fn part(&mut self, resource: u32, part: f64) -> Use {
        let one = 1 << self.shift;
        let wanted = ((part * one as f64 - 1e-6).ceil() as u64).max(1);
        if wanted % one == 0 {
            return Use::new(resource, (wanted / one) as u32);
        }
        let mut place = self.parts.iter().position(|&part| part == wanted);
        if place.is_none() && self.parts.len() < WHOLE as usize {
            place = Some(self.parts.len());
            self.parts.push(wanted);
        }
        let larger = |place: &usize| self.parts[*place] > wanted;
        let next = || {
            (0..self.parts.len())
                .filter(larger)
                .min_by_key(|&at| self.parts[at])
        };
        match place.or_else(next) {
            Some(place) => Use((resource << WEIGHT_BITS) | (WHOLE + place as u32)),
            None => Use::new(resource, wanted.div_ceil(one) as u32),
        }
    }

    /// Take over what `other`, of the same machine, has learnt since.
    #[inline]
    pub fn learn(&mut self, other: &Fractions) {
        if self.parts.len() != other.parts.len() {
            self.clone_from(other);
        }
    }
}

/// A list in the table.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct List {
    first: u32,
    count: u32,
}

/// All lists.
#[derive(Clone, Debug)]
pub(super) struct Uses {
    all: Vec<Use>,
    pub fractions: Fractions,
}

impl Uses {
    /// No lists yet.
    pub fn new(fractions: Fractions) -> Self {
        Uses {
            all: Vec::new(),
            fractions,
        }
    }

    /// File `parts` of the data, each resource once.
    pub fn spread(&mut self, parts: &BTreeMap<u32, f64>) -> List {
        let first = self.all.len();
        for (&resource, &part) in parts {
            self.all.push(self.fractions.part(resource, part));
        }
        self.list(first)
    }

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
        let mut uses = Uses::new(Fractions::new(&[1], false));
        let written = [(last, 200), (0, 1), (last, 55)].map(|(r, weight)| Use::new(r, weight));
        let list = uses.add(|all| all.extend(written));
        let found = uses.of(list).iter().map(|u| (u.resource(), u.weight()));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 1), (last as usize, 255)]);
    }

    #[test]
    fn a_part_is_never_rounded_down_even_where_the_table_is_full() {
        let mut fractions = Fractions::new(&[1], true);
        let parts = (1..400).map(|i| f64::from(i) / 401.0).chain([1.5, 1.75]);
        for part in parts {
            let each = fractions.part(3, part);
            assert!(
                fractions.of(each) as f64 >= part * PARTS as f64 - 1e-6,
                "{part}"
            );
            assert_eq!(each.resource(), 3);
        }
    }

    #[test]
    #[should_panic(expected = "a route in circles")]
    fn a_weight_does_not_run_into_the_resource() {
        Use::new(0, 256);
    }
}

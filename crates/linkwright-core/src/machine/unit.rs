//! The closed list of units of a machine file, and what each is worth.
//!
//! Every unit belongs to one dimension and is a fixed multiple of that dimension's base unit.
//! Units that count clock cycles are worth what `[machine] clock` makes them. Decimal and binary
//! prefixes are different units: 1 KB = 1000 B, 1 KiB = 1024 B.

use crate::ratio::Ratio;

/// What a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// A duration; base unit: picosecond.
    Time,
    /// An amount of data; base unit: byte.
    Size,
    /// Data per time; base unit: byte per second.
    Rate,
    /// Events per time; base unit: hertz.
    Frequency,
    /// Whole things, such as hops, flits or channels.
    Count,
    /// A share or factor.
    Ratio,
    /// Arithmetic per time; base unit: operation per second.
    Work,
    /// Power; base unit: watt.
    Power,
}

impl Dimension {
    /// The dimension with its article, for error messages.
    pub fn phrase(self) -> &'static str {
        match self {
            Dimension::Time => "a time",
            Dimension::Size => "a size",
            Dimension::Rate => "a rate",
            Dimension::Frequency => "a frequency",
            Dimension::Count => "a count",
            Dimension::Ratio => "a ratio",
            Dimension::Work => "a rate of arithmetic",
            Dimension::Power => "a power",
        }
    }

    /// The dimension without its article.
    pub fn name(self) -> &'static str {
        self.phrase().trim_start_matches("a ")
    }

    /// A usual unit, for error messages.
    pub fn example(self) -> &'static str {
        match self {
            Dimension::Time => "ns",
            Dimension::Size => "B",
            Dimension::Rate => "GB/s",
            Dimension::Frequency => "GHz",
            Dimension::Count => "count",
            Dimension::Ratio => "ratio",
            Dimension::Work => "TFLOP/s",
            Dimension::Power => "W",
        }
    }

    /// The least value above zero and the largest, in base units and in words. No machine lies outside, and
    /// what models add and multiply stays within their 64 bits.
    pub fn range(self) -> (f64, f64, &'static str) {
        match self {
            Dimension::Time => (0.0, 1e15, "at most 1000 s"),
            Dimension::Size => (0.0, 1e15, "at most 1000 TB"),
            Dimension::Rate => (1e3, 1e18, "from 1000 B/s to 10^9 GB/s"),
            Dimension::Frequency => (1e3, 1e13, "from 1 kHz to 10,000 GHz"),
            Dimension::Count => (0.0, 1e12, "at most 10^12"),
            Dimension::Ratio => (0.0, 1e9, "at most 10^9"),
            Dimension::Work => (1e3, 1e24, "from 1000 FLOP/s to 10^12 TFLOP/s"),
            Dimension::Power => (0.0, 1e12, "at most 10^12 W"),
        }
    }

    /// Whether zero makes no sense, because something is divided by it.
    pub fn must_exceed_zero(self) -> bool {
        matches!(
            self,
            Dimension::Rate | Dimension::Frequency | Dimension::Work
        )
    }
}

/// How a unit follows from the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocked {
    /// Not at all.
    No,
    /// It is a number of cycles: the longer, the slower the clock.
    Cycles,
    /// It is an amount per cycle: the more, the faster the clock.
    PerCycle,
}

/// One unit of the closed list.
#[derive(Debug, PartialEq, Eq)]
pub struct Unit {
    /// As written in a file.
    pub name: &'static str,
    /// What it measures.
    pub dimension: Dimension,
    /// Its worth in base units (before the clock), as numerator and denominator.
    worth: (u64, u64),
    /// Whether the clock enters.
    pub clocked: Clocked,
}

const fn fixed(name: &'static str, dimension: Dimension, num: u64, den: u64) -> Unit {
    Unit {
        name,
        dimension,
        worth: (num, den),
        clocked: Clocked::No,
    }
}

const fn clocked(name: &'static str, dimension: Dimension, worth: u64, clocked: Clocked) -> Unit {
    Unit {
        name,
        dimension,
        worth: (worth, 1),
        clocked,
    }
}

const KILO: u64 = 1_000;
const MEGA: u64 = 1_000_000;
const GIGA: u64 = 1_000_000_000;
const TERA: u64 = 1_000_000_000_000;

/// Every unit that a machine file may use.
pub const UNITS: &[Unit] = &[
    fixed("ps", Dimension::Time, 1, 1),
    fixed("ns", Dimension::Time, KILO, 1),
    fixed("us", Dimension::Time, MEGA, 1),
    fixed("ms", Dimension::Time, GIGA, 1),
    fixed("s", Dimension::Time, TERA, 1),
    clocked("cycle", Dimension::Time, TERA, Clocked::Cycles),
    fixed("B", Dimension::Size, 1, 1),
    fixed("KB", Dimension::Size, KILO, 1),
    fixed("MB", Dimension::Size, MEGA, 1),
    fixed("GB", Dimension::Size, GIGA, 1),
    fixed("KiB", Dimension::Size, 1 << 10, 1),
    fixed("MiB", Dimension::Size, 1 << 20, 1),
    fixed("GiB", Dimension::Size, 1 << 30, 1),
    fixed("B/s", Dimension::Rate, 1, 1),
    fixed("MB/s", Dimension::Rate, MEGA, 1),
    fixed("GB/s", Dimension::Rate, GIGA, 1),
    fixed("TB/s", Dimension::Rate, TERA, 1),
    fixed("MiB/s", Dimension::Rate, 1 << 20, 1),
    fixed("GiB/s", Dimension::Rate, 1 << 30, 1),
    fixed("Gb/s", Dimension::Rate, GIGA, 8),
    clocked("B/cycle", Dimension::Rate, 1, Clocked::PerCycle),
    fixed("Hz", Dimension::Frequency, 1, 1),
    fixed("kHz", Dimension::Frequency, KILO, 1),
    fixed("MHz", Dimension::Frequency, MEGA, 1),
    fixed("GHz", Dimension::Frequency, GIGA, 1),
    fixed("count", Dimension::Count, 1, 1),
    fixed("hop", Dimension::Count, 1, 1),
    fixed("flit", Dimension::Count, 1, 1),
    fixed("packet", Dimension::Count, 1, 1),
    fixed("ratio", Dimension::Ratio, 1, 1),
    fixed("percent", Dimension::Ratio, 1, 100),
    fixed("GFLOP/s", Dimension::Work, GIGA, 1),
    fixed("TFLOP/s", Dimension::Work, TERA, 1),
    clocked("FLOP/cycle", Dimension::Work, 1, Clocked::PerCycle),
    fixed("W", Dimension::Power, 1, 1),
];

impl Unit {
    /// The unit of this name.
    pub fn find(name: &str) -> Option<&'static Unit> {
        UNITS.iter().find(|u| u.name == name)
    }

    /// Base units in one of this unit; `None` when it needs a clock and there is none.
    pub fn worth(&self, clock_hertz: Option<Ratio>) -> Option<Ratio> {
        let worth = Ratio::new(self.worth.0.into(), self.worth.1.into());
        match self.clocked {
            Clocked::No => Some(worth),
            Clocked::Cycles => worth.over(clock_hertz?),
            Clocked::PerCycle => worth.times(clock_hertz?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = UNITS.iter().map(|u| u.name).collect();
        assert_eq!(names.len(), UNITS.len());
        for unit in UNITS {
            assert_eq!(Unit::find(unit.name), Some(unit));
            assert_eq!(
                Unit::find(unit.dimension.example()).unwrap().dimension,
                unit.dimension
            );
        }
    }

    #[test]
    fn cycles_follow_the_clock() {
        let clock = Some(Ratio::from_decimal("1.6e9").unwrap());
        let cycle = Unit::find("cycle").unwrap();
        assert_eq!(cycle.worth(clock).unwrap().whole(), Some(625));
        assert_eq!(cycle.worth(None), None);
        let rate = Unit::find("B/cycle").unwrap();
        assert_eq!(rate.worth(clock).unwrap().whole(), Some(1_600_000_000));
    }

    #[test]
    fn network_bits_are_eighths_of_bytes() {
        let unit = Unit::find("Gb/s").unwrap();
        assert_eq!(unit.worth(None).unwrap().whole(), Some(125_000_000));
    }
}

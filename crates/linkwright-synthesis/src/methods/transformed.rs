//! Known algorithms, run backwards, joined and transformed: the recipes of the portfolio.

use crate::reads::Reads;
use linkwright_schedule::concatenate::concatenate;
use linkwright_schedule::error::Result;
use linkwright_schedule::own_scratch::own_scratch;
use linkwright_schedule::reorder::reorder;
use linkwright_schedule::reverse::{counterpart, reverse};
use linkwright_schedule::{collectives, transforms, Collective, Schedule, Shape};
use std::fmt;

/// Where a schedule comes from, before it is transformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A registered algorithm, by its key.
    Known(String),
    /// A registered algorithm of the dual collective, backwards.
    Reversed(String),
    /// One after the other.
    Joined(Box<Source>, Box<Source>),
}

/// A transform of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Scratch of its own for every arrival.
    OwnScratch,
    /// The longest chain first, by bytes.
    ByBytes,
    /// The longest chain first, by number of operations.
    ByCount,
    /// This many slices that follow each other.
    Pipeline(u32),
    /// This many slices on lanes of their own.
    Stripe(u32),
    /// Reads instead of writes.
    Read(Reads),
}

/// How a schedule is made: a source, and what is done to it, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transformed {
    pub source: Source,
    pub steps: Vec<Step>,
}

/// Registered algorithms of a collective, then those of its dual, backwards.
pub fn sources(collective: Collective) -> Vec<Source> {
    let own = collectives::of(collective).map(|a| Source::Known(a.key()));
    let dual = counterpart(collective)
        .into_iter()
        .flat_map(collectives::of);
    own.chain(dual.map(|a| Source::Reversed(a.key()))).collect()
}

impl Source {
    fn make(&self, shape: &Shape) -> Result<Schedule> {
        match self {
            Source::Known(key) => collectives::build(key, shape),
            Source::Reversed(key) => reverse(&collectives::build(key, shape)?),
            Source::Joined(first, second) => concatenate(&first.make(shape)?, &second.make(shape)?),
        }
    }
}

impl Step {
    fn apply(self, schedule: &Schedule) -> Result<Schedule> {
        match self {
            Step::OwnScratch => own_scratch(schedule),
            Step::ByBytes => reorder(schedule, 0),
            // More than any message, so that only the number of operations counts.
            Step::ByCount => reorder(schedule, 1 << 40),
            Step::Pipeline(slices) => transforms::pipeline(schedule, slices),
            Step::Stripe(lanes) => transforms::stripe(schedule, lanes),
            Step::Read(reads) => reads.apply(schedule),
        }
    }

    /// How many operations it makes of one.
    fn factor(self) -> u64 {
        match self {
            Step::Pipeline(slices) | Step::Stripe(slices) => slices.into(),
            _ => 1,
        }
    }
}

impl Transformed {
    /// A source as it is.
    pub fn plain(source: Source) -> Self {
        Transformed {
            source,
            steps: Vec::new(),
        }
    }

    /// The same with one more step.
    pub fn then(&self, step: Step) -> Self {
        let mut recipe = self.clone();
        recipe.steps.push(step);
        recipe
    }

    /// Make the schedule; an error where the source or a step cannot serve the shape.
    pub fn make(&self, shape: &Shape) -> Result<Schedule> {
        let mut schedule = self.source.make(shape)?;
        for step in &self.steps {
            schedule = step.apply(&schedule)?;
        }
        Ok(schedule)
    }

    /// How many operations the steps make of one.
    pub fn factor(&self) -> u64 {
        self.steps.iter().map(|step| step.factor()).product()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Known(key) => f.write_str(key),
            Source::Reversed(key) => write!(f, "{key} backwards"),
            Source::Joined(first, second) => write!(f, "{first} + {second}"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::OwnScratch => f.write_str("own scratch"),
            Step::ByBytes => f.write_str("most bytes behind first"),
            Step::ByCount => f.write_str("longest chain first"),
            Step::Pipeline(slices) => write!(f, "{slices} slices"),
            Step::Stripe(lanes) => write!(f, "{lanes} lanes"),
            Step::Read(reads) => write!(f, "{reads}"),
        }
    }
}

impl fmt::Display for Transformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        self.steps.iter().try_for_each(|step| write!(f, ", {step}"))
    }
}

//! A schedule that a method proposes, and the recipe that makes it again.

use linkwright_core::Issue;
use linkwright_schedule::concatenate::concatenate;
use linkwright_schedule::error::Result;
use linkwright_schedule::ir::Schedule;
use linkwright_schedule::own_scratch::own_scratch;
use linkwright_schedule::reorder::reorder;
use linkwright_schedule::reverse::reverse;
use linkwright_schedule::{collectives, transforms, Shape};
use std::fmt;

/// Where a schedule comes from, before it is transformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A registered algorithm, by its key.
    Library(String),
    /// A registered algorithm of the dual collective, backwards.
    Reversed(String),
    /// One after the other.
    Joined(Box<Source>, Box<Source>),
    /// What a method made, in its words.
    Made(String),
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
}

/// How a schedule is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// Where it comes from.
    pub source: Source,
    /// What is done to it, in this order.
    pub steps: Vec<Step>,
}

/// A schedule with all that determines its time.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Key of the method that proposes it.
    pub method: &'static str,
    /// How it is made.
    pub recipe: Recipe,
    /// The schedule, before the machine lowers it.
    pub schedule: Schedule,
    /// Issue policy of every lane.
    pub issue: Issue,
    /// Software path; that of the problem where absent.
    pub path: Option<String>,
}

impl Source {
    /// Make the schedule; an error where the source cannot serve the shape.
    pub fn make(&self, shape: &Shape) -> Result<Schedule> {
        match self {
            Source::Library(key) => collectives::build(key, shape),
            Source::Reversed(key) => reverse(&collectives::build(key, shape)?),
            Source::Joined(first, second) => concatenate(&first.make(shape)?, &second.make(shape)?),
            Source::Made(words) => Err(linkwright_schedule::ScheduleError::Shape(format!(
                "{words}: only its method makes it again"
            ))),
        }
    }
}

impl Step {
    fn apply(self, schedule: &Schedule) -> Result<Schedule> {
        match self {
            Step::OwnScratch => own_scratch(schedule),
            Step::ByBytes => reorder(schedule, 0),
            // More than any message, so that only the number of operations counts; sums stay far below 64 bits.
            Step::ByCount => reorder(schedule, 1 << 40),
            Step::Pipeline(slices) => transforms::pipeline(schedule, slices),
            Step::Stripe(lanes) => transforms::stripe(schedule, lanes),
        }
    }
}

impl Recipe {
    /// A source as it is.
    pub fn plain(source: Source) -> Self {
        Recipe {
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

    /// Make the schedule.
    pub fn make(&self, shape: &Shape) -> Result<Schedule> {
        let mut schedule = self.source.make(shape)?;
        for step in &self.steps {
            schedule = step.apply(&schedule)?;
        }
        Ok(schedule)
    }

    /// Whether this is a registered algorithm as it is.
    pub fn is_known(&self) -> bool {
        matches!(self.source, Source::Library(_)) && self.steps.is_empty()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Library(key) => f.write_str(key),
            Source::Reversed(key) => write!(f, "{key} backwards"),
            Source::Joined(first, second) => write!(f, "{first} + {second}"),
            Source::Made(words) => f.write_str(words),
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
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)?;
        self.steps.iter().try_for_each(|step| write!(f, ", {step}"))
    }
}

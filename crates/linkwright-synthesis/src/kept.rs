//! What a judge keeps besides the incumbent: the fastest few of each method.
//!
//! The fastest schedule may owe its place to the digits of the machine file. Others that are nearly as fast and came
//! about in another way may not; the answer is chosen among all of them ([`crate::lasting`]). Variants of one idea take
//! nearly the same time and fail together, so each method has few places.

use crate::candidate::Draft;
use linkwright_core::{Issue, TimePs};

/// Candidates that are kept of each method.
const OF_EACH: usize = 3;

/// A candidate that was priced, and is neither made nor proved.
#[derive(Clone)]
pub struct Kept {
    /// Its makespan.
    pub time: TimePs,
    /// What makes it.
    pub draft: Draft,
    /// The policy with which it takes that long.
    pub issue: Issue,
}

/// The fastest few of each method, the fastest first.
#[derive(Clone, Default)]
pub struct Shortlist(Vec<Kept>);

impl Shortlist {
    /// Keep it, if it is one of the fastest of its method; of those that take equally long the first.
    pub(crate) fn offer(&mut self, time: TimePs, draft: &Draft, issue: Issue) {
        let of_method = || self.0.iter().filter(|one| one.draft.method == draft.method);
        let ahead = of_method().filter(|one| one.time <= time).count();
        if ahead >= OF_EACH || of_method().any(|one| one.time == time) {
            return;
        }
        if of_method().count() == OF_EACH {
            let slowest = self
                .0
                .iter()
                .rposition(|one| one.draft.method == draft.method);
            self.0.remove(slowest.expect("the method has some"));
        }
        let place = self.0.partition_point(|one| one.time <= time);
        let draft = draft.clone();
        self.0.insert(place, Kept { time, draft, issue });
    }

    /// All, the fastest first.
    pub fn all(&self) -> &[Kept] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::candidate::Recipe;
    use std::sync::Arc;

    fn draft(method: &'static str, words: &'static str) -> Draft {
        Draft {
            method,
            recipe: Recipe::new(words),
            issues: Vec::new(),
            path: None,
            operations: 1,
            make: Arc::new(|| unreachable!("nobody makes it")),
        }
    }

    #[test]
    fn few_of_each_method_and_of_equals_the_first() {
        let mut list = Shortlist::default();
        for (time, method, words) in [
            (50, "a", "first"),
            (40, "a", "second"),
            (40, "a", "the same"),
            (45, "b", "other"),
            (60, "a", "third"),
            (30, "a", "fourth"),
            (70, "a", "late"),
        ] {
            list.offer(TimePs(time), &draft(method, words), Issue::Blocking);
        }
        let told = list.all().iter();
        let told: Vec<_> = told
            .map(|one| (one.time.0, one.draft.recipe.to_string()))
            .collect();
        let wanted = [(30, "fourth"), (40, "second"), (45, "other"), (50, "first")];
        assert_eq!(told, wanted.map(|(time, words)| (time, words.to_string())));
    }
}

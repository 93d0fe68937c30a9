//! Refinement: a local search from the fastest compositions.
//!
//! ```text
//!   fastest composition --> all that is one change away, the likeliest first --batch by batch--> a faster one?
//!        ^                                                                        |yes            |no more
//!        +------------------------------------------------------------------------+               v
//!                                                                              the next fastest to start from
//! ```
//!
//! The search goes on from the fastest of the first batch that has something faster. Nothing is simulated twice. An
//! estimate puts the most promising changes first, and leaves out those that it puts far behind. The order is fixed;
//! the clock does nothing but end it.
//!
//! The method `composition` takes some hundred steps before the methods that search on links, because they gain from a
//! good incumbent. This method follows them, in the time that is left.

use super::composition;
use super::descent::refine;
use super::rehearsal::is_rehearsed;
use crate::judge::Judge;
use crate::method::Method;
use crate::problem::Problem;
use crate::Result;

/// The method.
pub static METHOD: Method = Method {
    key: "refinement",
    weight: 1,
    serves: |problem| (composition::METHOD.serves)(problem) && !is_rehearsed(problem),
    summary: "the fastest compositions, changed step by step while they get faster",
    description: "Changes one thing of a composition at a time: an exchange, a way round, the order of stages, digits, \
                  parts, slices or the issue policy, and goes on from what is faster. An estimate says what is tried \
                  first. Takes what time the other methods leave.",
    source: "Aarts and Lenstra, Local Search in Combinatorial Optimization, Wiley 1997 (first improvement with \
             restarts)",
    propose,
};

fn propose(problem: &Problem, judge: &mut Judge) -> Result<()> {
    if judge.explored.found.is_empty() {
        // Without the method `composition` before it, there is nothing to start from.
        (composition::METHOD.propose)(problem, judge)?;
    }
    refine(METHOD.key, problem, judge, u64::MAX);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::composition;
    use crate::judge::{Control, Judge};
    use crate::Problem;
    use linkwright_core::Machine;
    use linkwright_schedule::{Collective, Shape};
    use std::sync::{Arc, Mutex};

    /// Recipes and times of all winners, and how many candidates there were.
    fn winners(collective: Collective, threads: usize) -> (Vec<String>, u64) {
        let text = include_str!("../../../../python/linkwright/machines/torus-2d.toml");
        let machine = Machine::parse(text, "torus-2d.toml").unwrap();
        let shape = Shape::new(8, 1024).with_sides(&[4, 2]);
        let problem = Arc::new(Problem::new(&machine, collective, shape, None, 0).unwrap());
        let all = Arc::new(Mutex::new(Vec::new()));
        let heard = all.clone();
        let control = Control {
            threads,
            ..Control::default()
        };
        let mut judge = Judge::new(
            problem.clone(),
            control,
            Box::new(move |winner| {
                let words = format!("{} {:?}", winner.candidate.recipe, winner.time);
                heard.lock().unwrap().push(words);
            }),
        );
        (composition::METHOD.propose)(&problem, &mut judge).unwrap();
        super::refine(super::METHOD.key, &problem, &mut judge, 64);
        let all = all.lock().unwrap().clone();
        (all, judge.tried())
    }

    #[test]
    fn the_same_steps_on_one_thread_and_on_three() {
        for collective in [Collective::Allreduce, Collective::Broadcast] {
            assert_eq!(winners(collective, 1), winners(collective, 3));
        }
    }
}

//! Round trips, plans derived by hand, refusals, mutants.

use super::{read, FORMAT};
use linkwright_schedule::collectives::REGISTRY;
use linkwright_schedule::ir::{Combine, OpKind};
use linkwright_schedule::{transforms, verify, Schedule, Shape};

/// Every algorithm that the format has a collective for, over `ranks` ranks.
fn built_in(ranks: u32) -> Vec<(String, Schedule)> {
    let shape = Shape::new(ranks, u64::from(ranks) * 24);
    let grid = (2..ranks).find(|x| ranks % x == 0).map(|x| (x, ranks / x));
    let shapes = [
        Some(shape.clone()),
        grid.map(|(x, y)| shape.with_grid(x, y)),
    ];
    let made = REGISTRY.iter().flat_map(|algorithm| {
        shapes.iter().flatten().filter_map(move |shape| {
            let schedule = (algorithm.build)(shape).ok()?;
            Some((
                format!("{} {ranks} {:?}", algorithm.key(), shape.grid),
                schedule,
            ))
        })
    });
    made.collect()
}

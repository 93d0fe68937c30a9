//! Every algorithm on several shapes: what the sweeps over transforms go through.

use super::REGISTRY;
use crate::builder::Shape;
use crate::ir::Schedule;

/// Schedules of all algorithms over 1 to 16 ranks, each with a name for messages; those that waive a shape are left out.
pub(crate) fn samples() -> Vec<(String, Schedule)> {
    let line = |p: u32| Shape::new(p, 480).with_root(p - 1);
    let shapes = [line(1), line(2), line(7), line(8), line(16).with_grid(4, 4)];
    let made = |algorithm: &&'static super::Algorithm, shape: &Shape| {
        let built = (algorithm.build)(shape).ok()?;
        Some((format!("{} {shape:?}", algorithm.key()), built))
    };
    let all = REGISTRY.iter();
    let found: Vec<_> = all
        .flat_map(|algorithm| {
            shapes
                .iter()
                .filter_map(move |shape| made(algorithm, shape))
        })
        .collect();
    assert!(found.len() > 3 * REGISTRY.len(), "{}", found.len());
    found
}

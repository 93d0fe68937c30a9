//! Large tori by small ones: recipes for long sides are stretched from short ones, and chosen there.

use crate::problem::Problem;
use crate::Result;
use linkwright_schedule::Shape;

/// Longest side whose recipes are listed; longer ones are stretched.
pub(super) const MOST_SIDE: u32 = 8;

/// Ranks above which recipes are chosen on a smaller machine.
const MANY_RANKS: u32 = 256;

/// The problem on a torus of short sides; `None` where ranks are few enough to do without. Its vector is shorter by the
/// same factor as its first shortened side, so that steps and bytes count as they do on the large torus.
pub(super) fn rehearsal(problem: &Problem) -> Result<Option<Problem>> {
    let (machine, shape) = (&problem.machine, &problem.shape);
    let small = shortened(&shape.grid);
    let stretched = shape
        .grid
        .iter()
        .zip(&small)
        .find(|(large, small)| large != small);
    let Some((&large, &short)) =
        stretched.filter(|_| shape.ranks > MANY_RANKS && machine.open_size().is_some())
    else {
        return Ok(None);
    };
    let ranks = small.iter().product();
    let elements = (shape.elements * u64::from(short) / u64::from(large)).max(1);
    let shape = Shape {
        ranks,
        root: 0,
        grid: small.clone(),
        elements,
        ..shape.clone()
    };
    let machine = machine.with_sides(&small)?;
    Problem::new(
        &machine,
        problem.collective,
        shape,
        problem.path.clone(),
        problem.seed,
    )
    .map(Some)
}

/// Whether recipes are chosen on a smaller machine.
pub(super) fn is_rehearsed(problem: &Problem) -> bool {
    !matches!(rehearsal(problem), Ok(None))
}

/// The sides for which recipes are listed: each of `sides`, or [`MOST_SIDE`] where it is a multiple of that.
pub(super) fn shortened(sides: &[u32]) -> Vec<u32> {
    let short = |&side: &u32| match side > MOST_SIDE && side % MOST_SIDE == 0 {
        true => MOST_SIDE,
        false => side,
    };
    sides.iter().map(short).collect()
}

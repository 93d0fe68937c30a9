//! Directed cycles through all places of a torus that share no link.
//!
//! On a torus of c columns and r rows let d = gcd(c, r) and colour place (x, y) with
//! (x + y) mod d. Cycle A goes +x from d1 colours and +y from the other d2 = d - d1; cycle B does
//! the opposite, so they share no link. Either step adds one to the colour, so d steps go d1
//! right and d2 up, and A first comes home after
//!
//! ```text
//!   d lcm(c / gcd(c, d1), r / gcd(r, d2)) steps      =  c r   if it passes every place
//! ```
//!
//! (for B exchange d1 and d2). On a square torus d1 = d - 1 serves both: c-1 moves along, one
//! move across. A and B use only forward links, their reversals only backward links, so four
//! directed cycles run at once.
//!
//! ```text
//!   A on 4 x 4:   y = 1   > > ^ >      row y is left at x = 3 - y and entered beside it
//!                 y = 0   > > > ^
//! ```
//!
//! The condition that the literature on collectives states, k c columns by c rows with gcd(k c, c - 1) = 1,
//! is the case d1 = c - 1, d2 = 1: the tori named there are among those found here.
//!
//! Source: Trotter and Erdos, "When the Cartesian product of directed cycles is Hamiltonian"
//! (Journal of Graph Theory 1978).

use super::ring::Ring;
use crate::collectives::prelude::*;

/// The first `count` (1 or 2) of cycles A and B on the grid of `shape`, or, where it has none, on
/// the squarest torus of its ranks that has them.
pub fn cycles(shape: &Shape, count: usize) -> Option<Vec<Ring>> {
    let grids: Vec<(u32, u32)> = match shape.grid[..] {
        [columns, rows] => vec![(columns, rows)],
        [_, ..] => Vec::new(),
        [] => (1..=shape.ranks.isqrt())
            .rev()
            .filter(|rows| shape.ranks % rows == 0)
            .map(|rows| (shape.ranks / rows, rows))
            .collect(),
    };
    grids.into_iter().find_map(|(columns, rows)| {
        let right = split(columns, rows, count)?;
        let a = cycle(columns, rows, |colour| colour < right);
        let b = (count > 1).then(|| cycle(columns, rows, |colour| colour >= right));
        Some([a].into_iter().chain(b).collect())
    })
}

/// How many colours go right in cycle A so that `count` cycles pass every place, if any do.
fn split(columns: u32, rows: u32, count: usize) -> Option<u32> {
    let d = gcd(columns, rows);
    let passes_all = |right: u32, up: u32| {
        let (x, y) = (columns / gcd(columns, right), rows / gcd(rows, up));
        u64::from(d) * u64::from(x / gcd(x, y)) * u64::from(y)
            == u64::from(columns) * u64::from(rows)
    };
    (0..=d)
        .rev()
        .find(|&right| passes_all(right, d - right) && (count < 2 || passes_all(d - right, right)))
}

fn cycle(columns: u32, rows: u32, goes_right: impl Fn(u32) -> bool) -> Ring {
    let d = gcd(columns, rows);
    let (mut x, mut y) = (0, 0);
    let (mut ranks, mut hints) = (Vec::new(), Vec::new());
    for _ in 0..columns * rows {
        ranks.push(y * columns + x);
        if goes_right((x + y) % d) {
            hints.push(Hint::PlusX);
            x = (x + 1) % columns;
        } else {
            hints.push(Hint::PlusY);
            y = (y + 1) % rows;
        }
    }
    Ring { ranks, hints }
}

fn gcd(a: u32, b: u32) -> u32 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Links used, as (rank, way); panics where a place is missed.
    fn links(rings: &[Ring], ranks: u32) -> HashSet<(u32, Hint)> {
        for ring in rings {
            let places: HashSet<u32> = ring.ranks.iter().copied().collect();
            assert_eq!(places.len(), ranks as usize);
            assert_eq!(ring.ranks.len(), ranks as usize);
        }
        let ways = |r: &Ring| std::iter::zip(r.ranks.clone(), r.hints.clone()).collect::<Vec<_>>();
        rings.iter().flat_map(ways).collect()
    }

    #[test]
    fn the_8x8_torus_goes_seven_along_and_one_across() {
        let rings = cycles(&Shape::new(64, 0).with_grid(8, 8), 2).unwrap();
        // Row ly starts at lx = -ly mod 8.
        let starts: Vec<u32> = (0..4).map(|row| rings[0].ranks[row * 8]).collect();
        assert_eq!(starts, [0, 8 + 7, 16 + 6, 24 + 5]);
        let across = |ring: &Ring, way| ring.hints.iter().filter(|&&h| h == way).count();
        assert_eq!(across(&rings[0], Hint::PlusX), 56);
        assert_eq!(across(&rings[1], Hint::PlusY), 56);
        let four = [rings.clone(), rings.iter().map(Ring::reversed).collect()].concat();
        assert_eq!(links(&four, 64).len(), 4 * 64);
    }

    #[test]
    fn every_torus_found_has_disjoint_cycles() {
        let mut found = 0;
        for (columns, rows) in (1..=12).flat_map(|c| (1..=12).map(move |r| (c, r))) {
            let shape = Shape::new(columns * rows, 0).with_grid(columns, rows);
            for count in [1, 2] {
                if let Some(rings) = cycles(&shape, count) {
                    assert_eq!(
                        links(&rings, shape.ranks).len(),
                        count * shape.ranks as usize
                    );
                    found += 1;
                }
            }
            assert!(columns != rows || cycles(&shape, 2).is_some());
        }
        assert!(found > 60, "{found}");
    }

    /// k c by c with gcd(k c, c - 1) = 1, and the transposed.
    #[test]
    fn tori_with_the_published_condition_have_both_cycles() {
        let mut found = 0;
        for (k, c) in (1..=8).flat_map(|k| (2..=8).map(move |c| (k, c))) {
            if gcd(k * c, c - 1) == 1 {
                for (columns, rows) in [(k * c, c), (c, k * c)] {
                    let shape = Shape::new(columns * rows, 0).with_grid(columns, rows);
                    let rings = cycles(&shape, 2).unwrap_or_else(|| panic!("{columns}x{rows}"));
                    assert_eq!(links(&rings, shape.ranks).len(), 2 * shape.ranks as usize);
                    found += 1;
                }
            }
        }
        assert!(found > 40, "{found}");
    }

    #[test]
    fn coprime_sides_have_no_directed_cycle() {
        assert!(cycles(&Shape::new(12, 0).with_grid(4, 3), 1).is_none());
        // Without a grid another torus of as many ranks will do: 6 x 2.
        assert!(cycles(&Shape::new(12, 0), 2).is_some());
        assert!(cycles(&Shape::new(7, 0), 2).is_none());
    }
}

//! Fixed patterns: the place of a rank determines the rank it sends to.
//!
//! ```text
//!   pairs        r -> r + p/2       p = 6:   0 -> 3   1 -> 4   2 -> 5          an odd rank is idle
//!   complement   r -> p-1-r         p = 6:   0 <-> 5   1 <-> 4   2 <-> 3       on a grid: the opposite place
//!   neighbour    r -> r+1; on a grid (x, y) -> (x+1, y) and (x, y+1)           closed to rings
//!   tornado      x -> x + ceil(k/2) - 1 along every axis of k     k = 8: +3    k = 7: +3
//!   transpose    of c columns and r rows: y c + x -> x r + y
//!                0 1 2           0 -> 0 (idle)   1 -> 2   2 -> 4
//!                3 4 5           3 -> 1          4 -> 3   5 -> 5 (idle)
//! ```
//!
//! - **Pairs** measure the bandwidth of one connection; with more than two ranks, how it holds up
//!   when many send at once.
//! - In the **complement** everything crosses the middle, so it measures the bisection. For powers
//!   of two it flips all bits of the rank, hence the name.
//! - **Neighbour** is the easiest traffic, that of stencils: no link is shared on a ring or a torus.
//!   In both directions on a grid, it is the exchange of halos with four neighbours.
//! - In a **tornado** all shortest routes go the same way around, so half of a ring's links carry
//!   everything and the others nothing: the worst case for shortest-path routing on rings and tori.
//! - **Transpose** is the traffic of matrix transposes and of Fourier transforms. Routes that follow
//!   one axis first all turn on the diagonal, which makes it the hard case for such networks.
//!   Without a grid it takes the squarest one of as many ranks.
//!
//! Sources: Dally and Towles, "Principles and Practices of Interconnection Networks" (2004),
//! section 3.2; pairs: the multiple-pair bandwidth test of the OSU micro-benchmarks
//! (`osu_mbw_mr`).

use super::pattern::{Pattern, DALLY_TOWLES};
use super::traffic::Traffic;
use crate::error::Result;
use crate::ir::Schedule;

/// Registry entry of pattern/pairs.
pub static PAIRS: Pattern = Pattern {
    name: "pairs",
    summary: "disjoint pairs stream from the first half of the ranks to the second",
    description: "With two ranks, the bandwidth of one connection; with more, how it holds up \
                 when many send at once.",
    needs: "",
    source: "OSU micro-benchmarks, osu_mbw_mr",
    messages: |traffic| u64::from(traffic.shape.ranks / 2),
    build: |traffic| {
        let half = traffic.shape.ranks / 2;
        PAIRS.each(traffic, |r| (r < half).then_some((r, r + half)))
    },
};

/// Registry entry of pattern/complement.
pub static COMPLEMENT: Pattern = Pattern {
    name: "complement",
    summary: "rank r sends to rank p-1-r, across the middle",
    description: "All traffic crosses the middle, so it measures the bisection bandwidth of the \
                 network.",
    needs: "",
    source: DALLY_TOWLES,
    messages: |traffic| u64::from(traffic.shape.ranks / 2 * 2),
    build: |traffic| {
        let p = traffic.shape.ranks;
        COMPLEMENT.each(traffic, |r| Some((r, p - 1 - r)))
    },
};

/// Registry entry of pattern/neighbour.
pub static NEIGHBOUR: Pattern = Pattern {
    name: "neighbour",
    summary: "every rank sends to the next one, on a grid along either axis",
    description: "The easiest traffic, that of stencils; in both directions on a grid, it is a \
                 halo exchange.",
    needs: "",
    source: DALLY_TOWLES,
    messages: |traffic| {
        let (columns, rows) = traffic.grid();
        u64::from(traffic.shape.ranks) * (u64::from(columns > 1) + u64::from(rows > 1))
    },
    build: neighbour,
};

/// Registry entry of pattern/tornado.
pub static TORNADO: Pattern = Pattern {
    name: "tornado",
    summary: "every rank sends just short of halfway around every axis",
    description: "All shortest routes go the same way around, so half of the links of a ring or \
                 torus are idle: the worst case for shortest-path routing.",
    needs: "an axis of three or more ranks",
    source: DALLY_TOWLES,
    messages: |traffic| traffic.shape.ranks.into(),
    build: tornado,
};

/// Registry entry of pattern/transpose.
pub static TRANSPOSE: Pattern = Pattern {
    name: "transpose",
    summary: "place (x, y) of the grid sends to place (y, x) of its transpose",
    description: "The traffic of matrix transposes; routes that follow one axis first all turn on \
                 the diagonal. Without a grid it takes the squarest one.",
    needs: "ranks that form a grid with more than one row",
    source: DALLY_TOWLES,
    messages: |traffic| {
        let (columns, rows) = grid_to_transpose(traffic);
        u64::from(traffic.shape.ranks - common_divisor(columns - 1, rows - 1) - 1)
    },
    build: transpose,
};

fn neighbour(traffic: &Traffic) -> Result<Schedule> {
    let (columns, rows) = traffic.grid();
    NEIGHBOUR.each(traffic, |r| {
        let (x, y) = (r % columns, r / columns);
        let along_x = (columns > 1).then_some((r, y * columns + (x + 1) % columns));
        let along_y = (rows > 1).then_some((r, (y + 1) % rows * columns + x));
        along_x.into_iter().chain(along_y)
    })
}

fn tornado(traffic: &Traffic) -> Result<Schedule> {
    let (columns, rows) = traffic.grid();
    let shift = |k: u32| k.div_ceil(2) - 1;
    TORNADO.check(traffic)?;
    if shift(columns) + shift(rows) == 0 {
        return Err(TORNADO.waive(format!(
            "{columns}x{rows} ranks have no way of less than half round; use an axis of 3 or more"
        )));
    }
    TORNADO.each(traffic, |r| {
        let (x, y) = (r % columns + shift(columns), r / columns + shift(rows));
        Some((r, y % rows * columns + x % columns))
    })
}

fn transpose(traffic: &Traffic) -> Result<Schedule> {
    TRANSPOSE.check(traffic)?;
    let (columns, rows) = grid_to_transpose(traffic);
    if columns == 1 || rows == 1 {
        return Err(TRANSPOSE.waive(format!(
            "the transpose of {columns}x{rows} ranks moves nothing; use a grid with columns and rows"
        )));
    }
    TRANSPOSE.each(traffic, |r| Some((r, r % columns * rows + r / columns)))
}

/// The given grid, or the squarest one of as many ranks.
fn grid_to_transpose(traffic: &Traffic) -> (u32, u32) {
    let p = traffic.shape.ranks;
    let squarest = || {
        let rows = (1..=p.isqrt()).rev().find(|rows| p % rows == 0);
        rows.map_or((p, 1), |rows| (p / rows, rows))
    };
    traffic.shape.plane().unwrap_or_else(squarest)
}

/// The greatest common divisor. One more than that of columns - 1 and rows - 1 is the number of ranks that a
/// transpose leaves where they are: those n with n (rows - 1) a multiple of p - 1, and the last.
fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 {
        a
    } else {
        common_divisor(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Shape;

    #[test]
    fn all_bits_flip() {
        let schedule = (COMPLEMENT.build)(&Traffic::new(Shape::new(16, 1))).unwrap();
        assert_eq!(schedule.ops().len(), 16);
        assert!(schedule.ops().iter().all(|op| op.to == !op.from & 15));
    }

    #[test]
    fn axes_without_a_way_are_waived() {
        assert!(tornado(&Traffic::new(Shape::new(2, 1))).is_err());
        assert!(transpose(&Traffic::new(Shape::new(7, 1))).is_err());
    }
}

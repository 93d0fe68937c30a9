//! How many ranks a machine has and where they are. `[endpoints]` states it in one of five ways:
//!
//! ```text
//! names = ["host", "card"]                 one endpoint per name, without places
//! count = 16                               16 endpoints without places
//! count = "any"                            as many as a run asks for
//! grid = [10, 12]                          columns, rows; every place is a rank, row by row
//!   columns = [1, 2, ..] rows = [1, ..]      ... or only where these lines cross
//!   places = [[1, 1], [2, 1], ..]            ... or only these, in this order
//! grid = "any"                             a grid of the size a run asks for
//! ```
//!
//! On a grid with `columns` and `rows`, rank `r = ly * columns + lx` sits at
//! `(columns[lx], rows[ly])`: a logical grid inside a physical one, whose other lines carry traffic
//! but no ranks. Each place must lie on the grid and none may be used twice, because two ranks on one
//! place would share a port that the model counts once.

use std::collections::BTreeSet;

use super::section::Section;
use crate::error::MachineError;

/// A place of a grid: column `x`, row `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Column.
    pub x: u32,
    /// Row.
    pub y: u32,
}

/// Size of a grid; the same for physical places and for ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of columns, the extent in x.
    pub columns: u32,
    /// Number of rows, the extent in y.
    pub rows: u32,
}

impl Grid {
    /// The grid of `columns` by `rows`.
    pub const fn new(columns: u32, rows: u32) -> Self {
        Grid { columns, rows }
    }

    /// Number of places.
    pub fn places(self) -> usize {
        self.columns as usize * self.rows as usize
    }
}

/// The size that a machine file leaves to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenSize {
    /// A number of ranks.
    Count,
    /// A grid of ranks.
    Grid,
}

/// The size that a run asks of a machine of open size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// None: that of the file.
    Unstated,
    Count(usize),
    Grid(Grid),
}

/// Where the ranks are: how many, on which places, on which grids.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranks {
    pub open: Option<OpenSize>,
    pub count: usize,
    pub places: Option<Vec<Place>>,
    pub grid: Option<Grid>,
    pub rank_grid: Option<Grid>,
}

/// Read the size and the places of the ranks, at the size asked for.
pub(super) fn read(s: &mut Section<'_>, size: Size) -> Result<Ranks, MachineError> {
    let other = ["count", "grid", "name"].into_iter().find(|key| s.has(key));
    if let Some(other) = other.filter(|_| s.has("names")) {
        let problem = format!("`names` and `{other}` exclude each other; keep one");
        return Err(s.inconsistent("names", problem));
    }
    if s.has("grid") {
        if s.has("count") {
            return Err(s.inconsistent("count", "`count` and `grid` exclude each other; keep one"));
        }
        return read_grid(s, size);
    }
    let open = s.is_any("count");
    let count = match size {
        _ if s.has("names") => {
            let names = s.texts("names")?.len() as u64;
            to_size(s, "names", names)?
        }
        _ if !open => read_size(s, "count")?,
        Size::Count(n) => n,
        _ => 0,
    };
    Ok(Ranks {
        open: open.then_some(OpenSize::Count),
        count,
        ..Ranks::default()
    })
}

fn read_grid(s: &mut Section<'_>, size: Size) -> Result<Ranks, MachineError> {
    if s.is_any("grid") {
        let (places, grid) = match size {
            Size::Grid(grid) => (all_places(grid), Some(grid)),
            _ => (Vec::new(), None),
        };
        return Ok(Ranks {
            open: Some(OpenSize::Grid),
            count: places.len(),
            places: Some(places),
            grid,
            rank_grid: grid,
        });
    }
    let grid = read_sides(s)?;
    let (used, rank_grid) = used_places(s, grid)?;
    Ok(Ranks {
        open: None,
        count: used.len(),
        places: Some(used),
        grid: Some(grid),
        rank_grid,
    })
}

fn read_sides(s: &mut Section<'_>) -> Result<Grid, MachineError> {
    let sides = s.optional_integers("grid")?.unwrap_or_default();
    let [columns, rows] = sides[..] else {
        return Err(s.inconsistent("grid", "a grid is `[columns, rows]` or \"any\""));
    };
    let places = (columns.checked_mul(rows)).ok_or_else(|| s.inconsistent("grid", TOO_MANY))?;
    to_size(s, "grid", places)?;
    Ok(Grid::new(columns as u32, rows as u32))
}

/// The places of the ranks in their order, and the grid that the ranks form, where they do.
fn used_places(
    s: &mut Section<'_>,
    grid: Grid,
) -> Result<(Vec<Place>, Option<Grid>), MachineError> {
    let columns = s.optional_integers("columns")?;
    let rows = s.optional_integers("rows")?;
    let list = s.optional_places("places")?;
    match (columns, rows, list) {
        (None, None, None) => Ok((all_places(grid), Some(grid))),
        (None, None, Some(list)) => Ok((on_grid(s, "places", &list, grid)?, None)),
        (Some(xs), Some(ys), None) => {
            let crossings: Vec<(u64, u64)> =
                (ys.iter().flat_map(|&y| xs.iter().map(move |&x| (x, y)))).collect();
            let rank_grid = Grid::new(xs.len() as u32, ys.len() as u32);
            Ok((on_grid(s, "columns", &crossings, grid)?, Some(rank_grid)))
        }
        (Some(_), None, None) => Err(s.missing("rows")),
        (None, Some(_), None) => Err(s.missing("columns")),
        (_, _, Some(_)) => {
            let problem = "`places` excludes `columns` and `rows`; keep one";
            Err(s.inconsistent("places", problem))
        }
    }
}

/// A file that states more endpoints than this is mistaken.
pub(super) const MOST_ENDPOINTS: usize = 1 << 24;
pub(super) const TOO_MANY: &str = "a machine has between 1 and 16,777,216 endpoints";

/// A bare integer between 1 and the most endpoints.
pub(super) fn read_size(s: &mut Section<'_>, key: &str) -> Result<usize, MachineError> {
    let n = s.integer(key)?;
    to_size(s, key, n)
}

fn to_size(s: &Section<'_>, key: &str, n: u64) -> Result<usize, MachineError> {
    match usize::try_from(n) {
        Ok(n) if (1..=MOST_ENDPOINTS).contains(&n) => Ok(n),
        _ => Err(s.inconsistent(key, TOO_MANY)),
    }
}

fn all_places(grid: Grid) -> Vec<Place> {
    (0..grid.rows)
        .flat_map(|y| (0..grid.columns).map(move |x| Place { x, y }))
        .collect()
}

/// The places, each on the grid and none twice.
pub(super) fn on_grid(
    s: &Section<'_>,
    key: &str,
    places: &[(u64, u64)],
    grid: Grid,
) -> Result<Vec<Place>, MachineError> {
    if places.is_empty() {
        return Err(s.inconsistent(key, "no place is left; name at least one"));
    }
    let mut seen = BTreeSet::new();
    let check = |&(x, y): &(u64, u64)| {
        if x >= u64::from(grid.columns) || y >= u64::from(grid.rows) {
            let Grid { columns, rows } = grid;
            let problem = format!(
                "place [{x}, {y}] lies outside the grid of {columns} columns and {rows} rows; \
                 both count from 0"
            );
            return Err(s.inconsistent(key, problem));
        }
        let place = Place {
            x: x as u32,
            y: y as u32,
        };
        if !seen.insert(place) {
            let problem = format!("place [{x}, {y}] is named twice; keep one");
            return Err(s.inconsistent(key, problem));
        }
        Ok(place)
    };
    places.iter().map(check).collect()
}
